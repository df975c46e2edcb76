"""The page that compares up to eight sizes with one of them, field by field."""

import asyncio
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from app.catalog.fields import field_title, is_inapplicable
from app.catalog.names import size_key
from app.catalog.providers import AZURE
from app.catalog.queries.exchange_rates import USD
from app.catalog.queries.lookups import check_regions, get_size_keys
from app.catalog.queries.params import (
    CompareSearch,
    JsonBool,
    LowerText,
    OfferParams,
    PlaceParams,
    PriceDayParams,
    SimilarSearch,
    SizeSearch,
)
from app.catalog.queries.provenance import find_disputing_sources
from app.catalog.queries.sizes import find_sizes
from app.catalog.queries.snapshot import Catalog, short
from app.errors import BadQuery, NotFound
from app.web.rendering import PURCHASE_TITLES, render_page
from app.web.search_words import load_vocabulary, respell_sizes
from app.web.serving import PageContent, PageRequest, Rewritten, with_query
from app.web.size_fields import Amount, Difference, better_by, describe, in_groups, is_price, shown_amount, shown_unit
from app.web.sizes_view import PER_TITLES, UNIT_TITLES, PriceBar, ShownCurrency, Unit, find_price_bar, price_in

if TYPE_CHECKING:
    from app.schemas.catalog import ComparisonOut, LineOut

MAX_SIZES = 8
_LEAST = 2
_SUGGESTED = 6
_EXAMPLES = 4
_HIDDEN = frozenset(
    {
        *("provider", "gpu_id", "disputed_fields", "flags", "source_url", "gpu_fraction"),
        *("usd_per_hour", "price_per_hour"),
    }
)
"""Fields that say nothing beside the others, or that others say in more detail."""


class CompareView(PriceDayParams, PlaceParams, OfferParams, ShownCurrency):
    """Which sizes are compared, and how."""

    name: Annotated[tuple[LowerText, ...], Field(max_length=MAX_SIZES)] = Field(
        default=(), description="The sizes, 2 to 8, by any of their names."
    )
    add: tuple[LowerText, ...] = Field(default=(), description="More sizes, which become part of `name`.")
    size: tuple[LowerText, ...] = Field(default=(), description="The same as `name`, as GET /compare calls it.")
    baseline: LowerText | None = Field(default=None, description="The one that others are compared with.")
    unit: Unit = Field(default="hour", description="The time that prices are for.")
    differing: JsonBool = Field(default=False, description="Only fields in which the sizes differ.")


@dataclass(frozen=True, slots=True)
class ComparedFigure:
    """A value of a size: `value` as it is shown, None where it is unknown, and its difference from the baseline's.

    `share` is an amount in percent of the greatest of the row, None where no bar is drawn. What does not apply to a
    size, such as the memory of no GPU, has no value either.
    """

    value: Any
    difference: Difference | None
    same: bool
    disputed: bool
    applies: bool
    best: bool = False
    share: float | None = None


@dataclass(frozen=True, slots=True)
class ComparedRow:
    """A field of all sizes; `kind` is money, number, flag or text."""

    field: str
    title: str
    unit: str
    kind: str
    differs: bool
    cells: Sequence[ComparedFigure]


async def render(request: PageRequest) -> str:
    """Render the comparison; with fewer than two sizes, what to do."""
    view: CompareView = request.params
    if (view.add or view.size) and not request.errors:
        given = {name: getattr(view, name) for name in view.model_fields_set - {"add", "size"}}
        raise Rewritten(CompareView.model_construct(**given | {"name": (*view.name, *view.size, *view.add)}))
    comparison = await _compare(request) if len(view.name) >= _LEAST else None
    sizes = comparison.sizes if comparison else ()
    mended = await _mend(request)
    asked = request.executor.ask(_find_names, sizes)
    (bar, disputes), similar = await asyncio.gather(asked, _suggest(request, comparison))
    rows = _rows(comparison, view) if comparison else []
    listed = [row for row in rows if row.differs or not view.differing]
    return render_page(
        request,
        "compare.html",
        comparison=comparison,
        columns=_columns(request, comparison),
        groups=_in_groups(listed),
        hidden=len(rows) - len(listed),
        disputes=disputes,
        suggestions=[
            (other, request.url(name=(*view.name, other.lower()))) for other in similar if len(view.name) < MAX_SIZES
        ],
        mended=mended,
        mended_url=request.url(name=tuple(name.lower() for name in mended), add=None),
        examples=[] if view.name or request.errors else await request.executor.ask_once("examples", _find_examples),
        json_url=with_query("compare", _search(view)) if comparison else "",
        most=MAX_SIZES,
        bar=bar,
        baseline_options=(("", "the first"), *((size.lower(), size) for size in sizes)),
        region_title=bar.regions.get(view.region[0]) if len(view.region) == 1 else None,
        price_unit=f"{view.currency} {UNIT_TITLES[view.unit]}",
        of_azure=comparison is not None and AZURE.id in _values(comparison, "provider"),
        is_unpriced=comparison is not None and _is_unpriced(comparison),
        anywhere=request.url(region=None, country=None, continent=None),
    )


def _is_unpriced(comparison: "ComparisonOut") -> bool:
    """Return whether no size has a price by the chosen way to buy."""
    return all(price is None for price in _values(comparison, "usd_per_hour"))


def _values(comparison: "ComparisonOut", name: str) -> list[Any]:
    (values,) = (field.values for field in comparison.fields if field.field == name)
    return [value.value for value in values]


async def _mend(request: PageRequest) -> list[str]:
    """Return the sizes that were meant where a name is unknown: of each the nearest; empty if nothing can be meant."""
    if "name" not in request.errors:
        return []
    sent = [name.strip() for given, value in request.given if given == "name" for name in value.split(",")]
    vocabulary = await request.executor.ask_once("words", load_vocabulary)
    meant = respell_sizes(filter(None, sent), vocabulary)
    return meant if _LEAST <= len(meant) <= MAX_SIZES else []


def _find_examples(catalog: Catalog) -> list[tuple[str, list[str]]]:
    """Find sizes that are worth comparing: the cheapest with each of the GPUs, or processors, that most sizes have."""
    searches = {
        "The cheapest with one GPU, by model": (
            "gpu_model",
            SizeSearch(min_gpus=1, max_gpus=1, sort=("usd_per_hour",), limit=200),
        ),
        "The cheapest with 8 vCPUs, by processor": (
            "cpu_model",
            SizeSearch(min_vcpus=8, max_vcpus=8, max_gpus=0, sort=("usd_per_hour",), limit=200),
        ),
    }
    examples = []
    for title, (field, search) in searches.items():
        sizes = [
            item for item in map(json.loads, find_sizes(catalog, search).items) if item["usd_per_hour"] is not None
        ]
        cheapest = {item[field]: item["name"] for item in reversed(sizes) if item[field] is not None}
        common = [value for value, _ in Counter(item[field] for item in sizes).most_common() if value in cheapest]
        if len(common) >= _LEAST:
            examples.append((title, [cheapest[value] for value in common[:_EXAMPLES]]))
    return examples


@short
def _find_names(catalog: Catalog, sizes: Sequence[str]) -> tuple[PriceBar, Mapping[str, list[tuple[str, str]]]]:
    return find_price_bar(catalog), find_disputing_sources(catalog, sizes)


def _search(view: CompareView) -> CompareSearch:
    return view.as_params(CompareSearch, size=view.name, currency=view.converted_to)


async def _compare(request: PageRequest) -> "ComparisonOut":
    """Compare as GET /compare does; its parameter for the sizes is `name` here, as in the search page's form."""
    from app.services.compare import compare

    view = request.params
    search = _search(view)
    try:
        # A region that is remembered from another page is not refused: a note has the link to drop it.
        return await request.executor.ask(compare, search, foreign_regions=True)
    except BadQuery as error:
        if error.field == "size" and not request.errors:
            names = await request.executor.ask(_take_once, view.name)
            if names != view.name:
                raise Rewritten(view.model_copy(update={"name": names})) from None
        field = "name" if error.field == "size" else error.field
        raise BadQuery(field, error.value, error.allowed) from None


@short
def _take_once(catalog: Catalog, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the first name of each size; all of them where one is unknown."""
    try:
        keys = get_size_keys(catalog, names, catalog.snapshot.series)
    except NotFound:
        return names
    return tuple(name for index, name in enumerate(names) if keys[index] not in keys[:index])


async def _suggest(request: PageRequest, comparison: "ComparisonOut | None") -> list[str]:
    """Return sizes that are similar to the baseline and not compared yet."""
    from app.services.compare import find_similar

    view = request.params
    start = comparison.baseline if comparison else next(iter(view.name), None)
    if start is None:
        return []

    places = {name: getattr(view, name) for name in ("region", "country", "continent")}
    search = SimilarSearch(os=view.os, purchase=view.purchase, **places, limit=_SUGGESTED + MAX_SIZES)

    def find(catalog: Catalog) -> list[str]:
        check_regions(catalog.snapshot.regions, "region", view.region)
        try:
            taken = set(get_size_keys(catalog, view.name, catalog.snapshot.series))
        except NotFound as unknown:
            raise BadQuery("name", unknown.name, str(unknown)) from None
        similar = find_similar(catalog, start, search)
        return [peer.size for peer in similar.items if size_key(peer.size) not in taken][:_SUGGESTED]

    return await request.executor.ask(find)


def _columns(request: PageRequest, comparison: "ComparisonOut | None") -> list[dict[str, Any]]:
    """Return the sizes with the URLs that remove them and make them the baseline."""
    if comparison is None:
        return []
    given = request.params.name
    verified = next(field.values for field in comparison.fields if field.field == "verified")
    columns = []
    for index, size in enumerate(comparison.sizes):
        left = (*given[:index], *given[index + 1 :])
        is_base = size == comparison.baseline
        kept = None if is_base else request.params.baseline
        columns.append(
            {
                "name": size,
                "verified": verified[index].value,
                "baseline": is_base,
                "remove": request.url(name=left, baseline=kept),
                "choose": request.url(baseline=given[index] if index else None),
            }
        )
    return columns


def _rows(comparison: "ComparisonOut", view: CompareView) -> list[ComparedRow]:
    """Return the fields in which any size has a value; prices in the currency and unit of time of the view."""
    by_field = [[(field.field, value.value) for value in field.values] for field in comparison.fields]
    items = [dict(values) for values in zip(*by_field, strict=True)]
    money = "usd_per" if view.currency == USD else "price_per"
    rows = []
    for field in comparison.fields:
        name = field.field
        if name in _HIDDEN or (is_price(name) and money not in name) or name.endswith(("_as_of", "_approximate_date")):
            continue
        if any(value.value is not None for value in field.values):
            rows.append(_row(field, comparison, view, items))
    return rows


def _row(
    field: "LineOut", comparison: "ComparisonOut", view: CompareView, items: Sequence[Mapping[str, Any]]
) -> ComparedRow:
    name, money = field.field, is_price(field.field)
    base = field.values[comparison.sizes.index(comparison.baseline)].value
    by_hours = price_in(view.unit, None)
    cells = []
    for value, item in zip(field.values, items, strict=True):
        amount: Any = value.value
        change: Amount | None = value.difference
        if money:
            amount, change = (None if figure is None else by_hours(figure) for figure in (amount, change))
        elif isinstance(amount, float | int) and not isinstance(amount, bool):
            amount, change = shown_amount(amount, field.unit), shown_amount(change, field.unit)
        elif isinstance(amount, list):
            amount = ", ".join(map(str, amount))
        shown = describe(change, value.difference_percent, better=better_by(name), money=money) if change else None
        is_base = value.size == comparison.baseline
        same = not is_base and value.value is not None and value.value == base
        is_disputed = name in (item["disputed_fields"] or ())
        cells.append(ComparedFigure(amount, shown, same, is_disputed, not is_inapplicable(name, item)))
    marked = _mark_best(cells, better_by(name))
    return ComparedRow(
        name, _title(name), _unit(field, view, money=money), _kind(field, money=money), field.differs, marked
    )


def _mark_best(cells: Sequence[ComparedFigure], better: int) -> Sequence[ComparedFigure]:
    """Mark the best amounts of a row and draw all, unless those known are alike or neither more nor less is better."""
    amounts = [cell.value for cell in cells if isinstance(cell.value, int | float | Decimal)]
    if not better or len(set(amounts)) < _LEAST:
        return cells
    best, most = max(amounts) if better > 0 else min(amounts), max(amounts)
    return [
        cell
        if cell.value is None
        else replace(cell, best=cell.value == best, share=round(float(100 * cell.value / most), 1))
        for cell in cells
    ]


def _title(name: str) -> str:
    """Return the title of a row: prices are named by the way to buy, or by what they are divided by."""
    if name in _PRICE_TITLES:
        return _PRICE_TITLES[name]
    for purchase, title in PURCHASE_TITLES.items():
        if name in (f"{purchase}_usd_per_hour", f"{purchase}_price_per_hour"):
            return title.capitalize()
    if "_per_" in name and name.endswith("_hour"):
        divisor = name.removesuffix("_hour").partition("_per_")[2]
        return f"Price per {PER_TITLES.get(divisor) or _divisor_title(divisor)}"
    if name.startswith("gpus_"):
        return f"All GPUs: {field_title(name.removeprefix('gpus_'))}"
    return field_title(name)


_PRICE_TITLES = {
    "region": "Region of the price",
    "price_age_days": "Age of the price",
    "list_usd_per_hour": "List price",
    "adjustments": "Rules that change it",
    "estimate_formula": "Computed as",
}


_DIVISORS = {"gb_per_s": "GB/s of memory bandwidth", "memory_gib": "GiB of memory"}


def _divisor_title(name: str) -> str:
    """Return what a price is divided by: `FP16 TFLOPS`."""
    if name in _DIVISORS:
        return _DIVISORS[name]
    kind, _, unit = name.rpartition("_")
    return f"{kind.upper()} {unit.upper()}" if unit in ("tflops", "tops") else field_title(name)


def _unit(field: "LineOut", view: CompareView, *, money: bool) -> str:
    if money:
        divisor = (field.unit or "").partition(" per ")[2]
        per = f" per {divisor}" if divisor else ""
        return f"{view.currency} {UNIT_TITLES[view.unit]}{per}"
    return shown_unit(field.unit)


def _kind(field: "LineOut", *, money: bool) -> str:
    if money:
        return "money"
    example = next(value.value for value in field.values if value.value is not None)
    if isinstance(example, bool):
        return "flag"
    return "number" if isinstance(example, float | int) else "text"


def _in_groups(rows: Iterable[ComparedRow]) -> dict[str, list[ComparedRow]]:
    """Return rows by group: prices first, that of a GPU before all, then as on the page of a size."""
    by_name = {row.field: row for row in rows}
    prices = [row for row in by_name.values() if row.kind == "money" or row.field == "region"]
    ages = [row for row in by_name.values() if row.field in ("price_age_days", "adjustments", "estimate_formula")]
    first = {row.field for row in (*prices, *ages)}
    per_unit = [row for row in prices if row.title.startswith("Price per")]
    per_unit.sort(key=lambda row: ("per_gpu_hour" not in row.field, "flops" not in row.field))
    plain = sorted((row for row in prices if row not in per_unit), key=lambda row: row.field == "list_usd_per_hour")
    grouped = {"Price per unit": per_unit, "Price": [*plain, *ages]}
    together = [name for name in by_name if name.startswith("gpus_")]
    others = in_groups(name for name in by_name if name not in first and name not in together)
    grouped |= {title: [by_name[name] for name in names] for title, names in others.items()}
    if together:
        grouped["All GPUs together"] = [by_name[name] for name in together]
    return {title: listed for title, listed in grouped.items() if listed}


PAGE = PageContent(params=CompareView, render=render)
