"""Templates, and how figures are shown: units, money, ages; an unknown figure is a dash that says so.

Autoescaping is always on: names come from feeds. Nothing is marked as safe but what `Markup` builds from escaped parts.
"""

import sys
from collections.abc import Mapping
from contextlib import suppress
from decimal import Decimal
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from app.catalog.fields import field_title
from app.fit import costs
from app.web.assets import assets

if TYPE_CHECKING:
    from jinja2 import Environment

_NAVIGATION = (
    ("", "Search"),
    ("ui/compare", "Compare"),
    ("ui/fit", "Fit"),
    ("ui/explore", "Explore"),
    ("ui/changes", "Changes"),
    ("ui/conflicts", "Conflicts"),
    ("ui/retirements", "Retirements"),
    ("ui/preflight", "Preflight"),
)
"""The paths of the navigation, below the root, with their titles."""

_LIVE, _RESET = " data-swap", ' data-swap="reset"'
"""Attributes of a link or form whose answer is the same page: with scripts its content is swapped, without a reload.

A link is a change of what the form of the page has now, unless it resets the form.
"""

_PRELOADED_FONTS = (
    *("ibm-plex-sans-latin-400-normal.woff2", "ibm-plex-sans-latin-600-normal.woff2"),
    "ibm-plex-mono-latin-400-normal.woff2",
)
"""The fonts that every page shows at once."""

UNKNOWN = "–"
_UNKNOWN_FIGURE = (
    f'<span class="unknown"><span aria-hidden="true">{UNKNOWN}</span><span class="hidden">unknown</span></span>'
)
"""A dash that screen readers call unknown."""
OLD_DAYS = 180
"""From this age on a price has the colour of warnings."""

PURCHASE_TITLES: Mapping[str, str] = {
    "on_demand": "on demand",
    "spot": "spot",
    "reserved_1y": "reserved, 1 year",
    "reserved_3y": "reserved, 3 years",
    "savings_1y": "savings plan, 1 year",
    "savings_3y": "savings plan, 3 years",
}

_SYMBOLS = {"USD": "$", "EUR": "€", "GBP": "£", "JPY": "¥", "INR": "₹"}
_SYSTEMS = {"linux": "Linux", "windows": "Windows with its licence"}
_OF_AZURE = {"windows": " (with Azure Hybrid Benefit it costs what Linux does)"}


def render_template(template: str, **values: object) -> str:
    """Render a template of `templates/` to HTML."""
    return environment().get_template(template).render(values)


def render_page(request: Any, template: str, **values: object) -> str:
    """Render a template for a `PageRequest`, which it has as `request`, with the parameters as `view`."""
    return render_template(
        template, root=request.root, path=request.path, request=request, view=request.params, **values
    )


@cache
def environment() -> "Environment":
    """Return the environment of the templates; Jinja is loaded with the first page, not at the start.

    Compiled templates are cached in __pycache__, like modules: that halves the time of a worker's first page.
    """
    from jinja2 import Environment, FileSystemBytecodeCache, FileSystemLoader, StrictUndefined, nodes
    from jinja2.bccache import Bucket
    from jinja2.compiler import CodeGenerator, Frame
    from markupsafe import Markup, escape
    from markupsafe import _escape_inner as escape_str  # type: ignore[attr-defined]  # what `escape` calls for a str

    unknown = Markup(_UNKNOWN_FIGURE)  # noqa: S704  # a constant

    def show_price(value: Any, currency: str = "") -> str:
        """Return an amount of money; `currency` is left out in columns that name it."""
        if value is None:
            return unknown
        text = format_money(value, currency) if currency else format_amount(value)
        return Markup(f'<span class="price">{escape(text)}</span>')  # noqa: S704  # escaped

    @lru_cache(maxsize=1024)  # there are only as many days as price lists
    def show_age(days: int | None, day: object = "") -> str:
        """Return how old a figure is; from half a year on in the colour of warnings, too."""
        if days is None:
            return unknown
        old, day = " old" if days >= OLD_DAYS else "", escape(day)
        seen = f' datetime="{day}" title="last seen on {day}"' if day else ""
        return Markup(f'<time class="age{old}"{seen}>{format_age(days)}</time>')  # noqa: S704  # escaped

    class CompiledTemplates(FileSystemBytecodeCache):
        def dump_bytecode(self, bucket: Bucket) -> None:
            if not sys.dont_write_bytecode:
                with suppress(OSError):  # the folder may be read-only, or the disk full
                    super().dump_bytecode(bucket)

    class EscapingGenerator(CodeGenerator):
        """Escapes what is output at once to a str, without the Markup between, which takes six times as long."""

        def _output_child_pre(self, node: nodes.Expr, frame: Frame, finalize: Any) -> None:
            del node, frame, finalize  # autoescaping is always on, and there is no finalizer
            self.write("environment.to_output(")

    class PageEnvironment(Environment):
        code_generator_class = EscapingGenerator

        @staticmethod
        def to_output(value: Any) -> str:
            """Return a value as escaped text."""
            if type(value) is str:
                escaped: str = escape_str(value)
                return escaped
            return str(value) if type(value) is Markup else str(escape(value))

    folder = Path(__file__).parent
    env = PageEnvironment(
        loader=FileSystemLoader(folder / "templates"),
        bytecode_cache=CompiledTemplates(str(folder / "__pycache__"), "escaped_%s.cache"),  # not of another generator
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    env.globals |= {"assets": assets(), "navigation": _NAVIGATION, "unknown": unknown}
    env.globals |= {"field_title": field_title, "purchase_titles": PURCHASE_TITLES}
    env.globals |= {"live": Markup(_LIVE), "reset": Markup(_RESET)}  # noqa: S704  # constants
    env.globals["fonts"] = [name for name in _PRELOADED_FONTS if name in assets()]
    env.filters |= {
        "number": format_number,
        "money": format_money,
        "amount": format_amount,
        "age": show_age,
        "figure": lambda value, unit="", digits=2: (
            unknown if value is None else format_number(value, unit, digits=digits)
        ),
        "price": show_price,
        "text": lambda value: unknown if value in (None, "") else value,
        "yes_no": lambda value: unknown if value is None else "yes" if value else "no",
        "segment": path_segment,
        "middle": middle,
        "system": lambda os, of_azure=True: _SYSTEMS[os] + (_OF_AZURE.get(os, "") if of_azure else ""),
        "words": lambda name: str(name).replace("_", " "),
    }
    return env


def format_number(value: float | Decimal | None, unit: str = "", *, digits: int = 2) -> str:
    """Return a number with thousands separated and at most `digits` decimal places: `1,536`, `0.75 GiB`."""
    if value is None:
        return UNKNOWN
    text = f"{value:,.{digits}f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return f"{text}\u00a0{unit}" if unit else text


def format_amount(value: Decimal | float | None, *, digits: int = costs.SHOWN_DIGITS) -> str:
    """Return an amount of money without its currency, as `costs.format_amount` does."""
    if value is None:
        return UNKNOWN
    return costs.format_amount(value if isinstance(value, Decimal) else Decimal(str(value)), digits=digits)


def format_tick(value: float) -> str:
    """Return the amount of a tick of an axis in few letters: `0.2`, `500,000`, `20M`, `1.5bn`."""
    for size, letters in ((1e12, "tn"), (1e9, "bn"), (1e6, "M")):
        if value >= size:
            return f"{value / size:,.10g}{letters}"
    return f"{value:,.10g}"


def format_money(value: Decimal | float | None, currency: str = "USD", *, digits: int = costs.SHOWN_DIGITS) -> str:
    """Return an amount with its currency: `$3.673`, `€2,681.29`, `CHF 1.20`."""
    if value is None:
        return UNKNOWN
    return f"{_SYMBOLS.get(currency, f'{currency} ')}{format_amount(value, digits=digits)}"


def middle(figure: Any) -> float | None:
    """Return the value of an exact figure or a bound, or the middle of an estimate; None where it is unknown."""
    value = figure.value if figure.value is not None else figure.mid
    return float(value) if value is not None else None


def format_age(days: int | None) -> str:
    """Return an age: `today`, `10 d`, `5 mo`, `2.5 y`."""
    if days is None:
        return UNKNOWN
    if days < 1:
        return "today"
    if days < _DAYS_IN_DAYS:
        return f"{days}\u00a0d"
    if days < _DAYS_IN_MONTHS:
        return f"{days // 30}\u00a0mo"
    return f"{days / 365:.1f}\u00a0y"


_DAYS_IN_DAYS, _DAYS_IN_MONTHS = 61, 730


@lru_cache(maxsize=8192)
def path_segment(name: str) -> str:
    """Return a name as one segment of a URL's path; a size's name in lower case, as `lower` before it says."""
    return quote(str(name), safe="")
