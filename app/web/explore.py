"""The page that draws sizes as points of two figures, marks those that no other beats, and prices by region as bars."""

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import ceil, floor, log, log2, log10
from operator import itemgetter
from typing import Annotated, Any, Literal, TypeVar

from markupsafe import Markup, escape
from pydantic import Field

from app.catalog.names import size_key
from app.catalog.price_notes import price_note
from app.catalog.queries.exchange_rates import CurrencyRate, find_exchange_rate
from app.catalog.queries.lookups import find_gpus, get_size_keys
from app.catalog.queries.params import LowerText, PriceDayParams, SizeFilter, SizeList, check_days
from app.catalog.queries.prices import PriceSearch, find_prices
from app.catalog.queries.size_sets import list_query
from app.catalog.queries.sizes import normalize, render_size
from app.catalog.queries.snapshot import Catalog
from app.errors import BadQuery, NotFound
from app.web import filter_panel
from app.web.rendering import format_amount, format_number, format_tick, path_segment, render_page
from app.web.search import find_view_facets
from app.web.serving import PageContent, PageRequest, with_query
from app.web.sizes_view import UNIT_TITLES, PriceBar, ShownCurrency, Unit, find_price_bar, price_in

T = TypeVar("T")

_MARGIN = 0.04
"""The part of the axis that is left free beyond the first and the last point."""
_MAX_TICKS = 12
_FEW_TICKS = 6
"""From this number of ticks on every other one is minor: it has no label on narrow screens."""


@dataclass(frozen=True, slots=True)
class Tick:
    """A value with its line, and where it is; a minor one has no label where there is little space."""

    value: float
    position: float
    minor: bool


@dataclass(frozen=True, slots=True)
class LogAxis:
    """A logarithmic axis from the least to the greatest value, both above zero."""

    least: float
    greatest: float

    def position(self, value: float) -> float:
        """Return where a value is, in percent of the axis."""
        share = log(value / self.least) / log(self.greatest / self.least)
        return round(100 * share, 3)

    def ticks(self, base: int) -> Sequence[Tick]:
        """Return the ticks of an axis: powers of two for `base` 2, else 1, 2 and 5 times powers of ten."""
        values = _powers_of_two(self) if base == 2 else _one_two_five(self)  # noqa: PLR2004  # a base
        crowded = len(values) >= _FEW_TICKS
        return [Tick(value, self.position(value), crowded and index % 2 == 1) for index, value in enumerate(values)]


def log_axis(values: Iterable[float]) -> LogAxis:
    """Return the axis of values above zero; that of one value alone reaches from its half to its double."""
    amounts = list(values)
    least, greatest = min(amounts), max(amounts)
    if least == greatest:
        return LogAxis(least / 2, greatest * 2)
    room = (greatest / least) ** _MARGIN
    return LogAxis(least / room, greatest * room)


def _powers_of_two(axis: LogAxis) -> list[float]:
    first, last = ceil(log2(axis.least)), floor(log2(axis.greatest))
    step = ceil((last - first + 1) / _MAX_TICKS) or 1
    return [2.0**exponent for exponent in range(first, last + 1, step)]


def _one_two_five(axis: LogAxis) -> list[float]:
    decades = range(floor(log10(axis.least)), ceil(log10(axis.greatest)) + 1)
    for digits in ((1, 2, 5), (1,)):
        values = [digit * 10.0**decade for decade in decades for digit in digits]
        shown = [value for value in values if axis.least <= value <= axis.greatest]
        if len(shown) <= _MAX_TICKS:
            break
    return shown


def pareto_front(points: Iterable[T], x: Callable[[T], float], y: Callable[[T], float]) -> list[T]:
    """Return the points that no other one beats, by x; greater is better, so what is better if less comes negated.

    A point beats another that it equals in one figure and exceeds in the other, or exceeds in both. Equal points are
    all kept.
    """
    front: list[T] = []
    best = float("-inf")
    for point in sorted(points, key=lambda candidate: (x(candidate), y(candidate)), reverse=True):
        equal = bool(front) and (x(front[-1]), y(front[-1])) == (x(point), y(point))
        if y(point) > best or equal:
            front.append(point)
            best = y(point)
    return front[::-1]


FigureName = Literal[
    "price",
    "price_per_gpu",
    "gpu_memory",
    "gpu_memory_per_gpu",
    "gpu_bandwidth",
    "gpu_bf16",
    "gpus",
    "vcpus",
    "memory",
    "network",
]

_MAX_PRICES = 500
_COLOURS = 6
"""How many families of GPUs, those with the most points, have colours of their own."""
_NEAR = 3.5
"""Points that are closer than this, in percent of both axes, share a label."""


class ExploreView(PriceDayParams, SizeFilter, ShownCurrency):
    """Which sizes are drawn, as on the search page, and by which two figures; `name` marks a size."""

    name: Annotated[tuple[LowerText, ...], Field(max_length=1)] = Field(
        default=(), description="A size to mark, whose prices by region are drawn; it is no filter here."
    )
    x: FigureName = Field(default="gpu_memory", description="The figure from left to right.")
    y: FigureName = Field(default="price", description="The figure from below to above.")
    unit: Unit = Field(default="hour", description="The time that prices are for.")


Item = Mapping[str, Any]
Speeds = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class AxisFigure:
    """A figure that an axis can have: how it is read from a size; None where it is unknown or there is none.

    Money, of which less is better, is read in USD an hour. `base` is that of the axis' ticks.
    """

    title: str
    unit: str
    read: Callable[[Item, Speeds], Any]
    base: int = 10
    is_money: bool = False
    needs_gpu: bool = False


def _gpus_of(item: Item) -> Fraction | None:
    count = item["gpu_fraction"] or item["gpu_count"]
    return Fraction(count) if count else None


def _price_per_gpu(item: Item, _speeds: Speeds) -> Fraction | None:
    gpus, price = _gpus_of(item), item["usd_per_hour"]
    return Fraction(price) / gpus if gpus and price is not None else None


def _speed_of(column: str) -> Callable[[Item, Speeds], Fraction | None]:
    """Return what multiplies a figure of one GPU by the GPUs of a size."""

    def read(item: Item, speeds: Speeds) -> Fraction | None:
        gpus, speed = _gpus_of(item), speeds.get(item["gpu_id"] or "", {}).get(column)
        return gpus * Fraction(speed) if gpus and speed else None

    return read


def _field(name: str) -> Callable[[Item, Speeds], Any]:
    return lambda item, _speeds: item[name]


FIGURES: Mapping[FigureName, AxisFigure] = {
    "price": AxisFigure("Price of the VM", "", _field("usd_per_hour"), is_money=True),
    "price_per_gpu": AxisFigure("Price of a GPU", "", _price_per_gpu, is_money=True, needs_gpu=True),
    "gpu_memory": AxisFigure("GPU memory of the VM", "GiB", _field("gpu_memory_gib"), base=2, needs_gpu=True),
    "gpu_memory_per_gpu": AxisFigure(
        "Memory of one GPU", "GiB", _field("gpu_memory_gib_per_gpu"), base=2, needs_gpu=True
    ),
    "gpu_bandwidth": AxisFigure(
        "GPU memory bandwidth of the VM", "GB/s", _speed_of("memory_bandwidth_gb_per_s"), needs_gpu=True
    ),
    "gpu_bf16": AxisFigure("BF16 of all GPUs, dense", "TFLOPS", _speed_of("bf16_tflops"), needs_gpu=True),
    "gpus": AxisFigure("GPUs", "", lambda item, _speeds: _gpus_of(item), base=2, needs_gpu=True),
    "vcpus": AxisFigure("vCPUs", "", _field("vcpus"), base=2),
    "memory": AxisFigure("Memory", "GiB", _field("memory_gib"), base=2),
    "network": AxisFigure(
        "Network", "Gbps", lambda item, _speeds: item["network_mbps"] and Fraction(item["network_mbps"]) / 1000
    ),
}


@dataclass(frozen=True, slots=True)
class Point:
    """A size at its two figures, in the units of the page."""

    item: Item
    x: Decimal | Fraction
    y: Decimal | Fraction


@dataclass(frozen=True, slots=True)
class Mark:
    """A point as it is drawn: in percent from the left and from the top, with what it says to the pointer.

    `number` is its place in the table of the front, 0 for a point that another one beats; `colour` is that of its GPU.
    """

    name: str
    left: float
    top: float
    title: str
    number: int
    here: bool
    colour: int


@dataclass(frozen=True, slots=True)
class _Found:
    items: Sequence[Item]
    speeds: Speeds
    rate: CurrencyRate | None
    key: str
    """The key of the size that is marked, else empty."""


async def render(request: PageRequest) -> str:
    """Render the page; raises BadQuery for two axes of one figure."""
    view: ExploreView = request.params
    if view.x == view.y:
        raise BadQuery("x" if "x" in view.model_fields_set else "y", view.x, "the two axes must have different figures")
    facets, sizes, bar = await asyncio.gather(
        find_view_facets(request, view.model_copy(update={"name": ()})),
        request.executor.ask(_find, view),
        request.executor.ask(find_price_bar),
    )
    x, y = FIGURES[view.x], FIGURES[view.y]
    points = _points(sizes, view)
    front = pareto_front(points, _goodness(x, lambda point: point.x), _goodness(y, lambda point: point.y))
    axes = (
        (log_axis(float(point.x) for point in points), log_axis(float(point.y) for point in points)) if points else None
    )
    # inside a sentence: `price of the VM`, but `GPU memory`
    across = x.title if x.title[:2].isupper() or x.title.startswith("vC") else f"{x.title[0].lower()}{x.title[1:]}"
    bars = await _bars(request, sizes, bar) if sizes.key else []
    money = f"{view.currency} {UNIT_TITLES[view.unit]}"
    vendors = [bucket.value for bucket in facets.counts["gpu_vendor"] if bucket.value]
    # Several regions, which a link may have, are one option.
    several = [(",".join(view.region), ", ".join(view.region))] if len(view.region) > 1 else []
    families = Counter(family_of(point.item, sizes.speeds) for point in points)
    colours = {family: colour for colour, (family, _) in enumerate(families.most_common(_COLOURS), 1) if family}
    marks = _marks(points, front, axes, view, sizes=sizes, colours=colours) if axes else []
    return render_page(
        request,
        "explore.html",
        panel=filter_panel,
        x=x,
        y=y,
        x_unit=money if x.is_money else x.unit,
        y_unit=money if y.is_money else y.unit,
        money=money,
        axes=axes,
        tick_text=format_tick,
        heading=f"{y.title} against {across}",
        marks=marks,
        points=_drawn(marks),
        labels=_labels(marks),
        colours=colours,
        uncoloured=families.total() - sum(families[family] for family in colours),
        front=[(point.item, _text(point.x), _text(point.y), _beside_price(point.item, view, sizes)) for point in front],
        total=len(points),
        left_out=len(sizes.items) - len(points),
        bars=bars,
        marked=next((item["name"] for item in sizes.items if size_key(item["name"]) == sizes.key), sizes.key),
        chips=filter_panel.chips(request, bar.regions),
        gpus=filter_panel.gpu_choices(
            facets, view.gpu, {gpu["model"]: gpu["family"] for gpu in sizes.speeds.values() if gpu["family"]}
        ),
        series=facets.counts["series"],
        rate=sizes.rate,
        search_url=with_query("", _list_of(view)),
        bar=bar,
        figure_options=[(name, figure.title) for name, figure in FIGURES.items()],
        vendor_options=[("", "any"), *((vendor.lower(), vendor) for vendor in vendors)],
        region_options=[("", "the cheapest of each"), *several, *bar.region_options],
    )


def _list_of(view: ExploreView) -> SizeList:
    """Return the list of the sizes that may be drawn, the cheapest first; with GPUs where an axis is about them."""
    given = view.model_fields_set & SizeList.model_fields.keys() - {"name"}
    filters: dict[str, Any] = {name: getattr(view, name) for name in given}
    if view.min_gpus is None and view.max_gpus != 0 and (FIGURES[view.x].needs_gpu or FIGURES[view.y].needs_gpu):
        filters["min_gpus"] = "0.01"
    return SizeList(**filters, sort="usd_per_hour")


def _find(catalog: Catalog, view: ExploreView) -> _Found:
    check_days(view, catalog.today)
    rate = find_exchange_rate(catalog, view.converted_to, view.as_of or catalog.today)
    search = normalize(_list_of(view), catalog.snapshot)
    rows = catalog.fetch(list_query(search, catalog.today, catalog.snapshot.rules))
    gpus = find_gpus(catalog)
    marked = ""
    if view.name:
        try:
            (marked,) = get_size_keys(catalog, view.name, catalog.snapshot.series)
        except NotFound as unknown:
            raise BadQuery("name", unknown.name, str(unknown)) from None
    items = [json.loads(render_size(row, catalog.today), parse_float=Decimal) for row in rows]
    return _Found(items, {gpu["id"]: gpu for gpu in gpus}, rate, marked)


def _points(sizes: _Found, view: ExploreView) -> list[Point]:
    """Return the sizes of which both figures are known and above zero, which logarithmic axes need."""
    x, y = FIGURES[view.x], FIGURES[view.y]
    of_x, of_y = (price_in(view.unit, sizes.rate) if figure.is_money else Fraction for figure in (x, y))
    figures = ((item, x.read(item, sizes.speeds), y.read(item, sizes.speeds)) for item in sizes.items)
    return [Point(item, of_x(across), of_y(up)) for item, across, up in figures if across and up]


def _goodness(figure: AxisFigure, read: Callable[[Point], Decimal | Fraction]) -> Callable[[Point], float]:
    """Return what is greater for a better point."""
    return (lambda point: -float(read(point))) if figure.is_money else (lambda point: float(read(point)))


def _text(value: Decimal | Fraction) -> str:
    return format_amount(value) if isinstance(value, Decimal) else format_number(float(value), digits=4)


def _marks(
    points: Sequence[Point],
    front: Sequence[Point],
    axes: tuple[LogAxis, LogAxis],
    view: ExploreView,
    *,
    sizes: _Found,
    colours: Mapping[str, int],
) -> list[Mark]:
    """Return the points as they are drawn, those of the front and the marked one last, which is on top."""
    x, y = FIGURES[view.x], FIGURES[view.y]
    numbers = {id(point): number for number, point in enumerate(front, 1)}
    marks = []
    for point in points:
        figures = [
            f"{_text(value)} {view.currency if figure.is_money else figure.unit}".strip()
            for figure, value in ((x, point.x), (y, point.y))
        ]
        title = f"{point.item['name']}: {', '.join(figures)}; {_what(point.item)}"
        left, top = axes[0].position(float(point.x)), round(100 - axes[1].position(float(point.y)), 3)
        here = size_key(point.item["name"]) == sizes.key
        colour = colours.get(family_of(point.item, sizes.speeds), 0)
        marks.append(Mark(point.item["name"], left, top, title, numbers.get(id(point), 0), here, colour))
    return sorted(marks, key=lambda mark: (mark.here, mark.number > 0, mark.number))


def family_of(item: Item, speeds: Speeds) -> str:
    """Return the family of the GPU of a size, its model if it has none, empty without a GPU."""
    return speeds.get(item["gpu_id"] or "", {}).get("family") or item["gpu_model"] or ""


def _drawn(marks: Sequence[Mark]) -> Markup:
    """Return the points as links of the chart, of parts that are escaped here: templates take three times as long."""
    drawn = []
    for dot in marks:
        title, radius = escape(dot.title), 6 if dot.number or dot.here else 4.5
        kinds = f"point series-{dot.colour}{' best' if dot.number else ''}{' here' if dot.here else ''}"
        drawn.append(
            f'<a href="sizes/{path_segment(dot.name.lower())}" tabindex="-1" aria-label="{title}">'
            f'<circle cx="{dot.left}%" cy="{dot.top}%" r="{radius}" class="{kinds}"><title>{title}</title></circle></a>'
        )
    return Markup("\n".join(drawn))  # noqa: S704  # of escaped parts


def _labels(marks: Sequence[Mark]) -> list[tuple[str, Mark]]:
    """Return the numbers beside the points of the front, one for neighbours that would cover each other's labels."""
    groups: list[tuple[Mark, Mark]] = []
    for mark in sorted((best for best in marks if best.number), key=lambda best: best.number):
        first = groups[-1][0] if groups else mark
        if groups and abs(mark.left - first.left) < _NEAR and abs(mark.top - first.top) < _NEAR:
            groups[-1] = (first, mark)
        else:
            groups.append((mark, mark))
    return [(f"{first.number}" if first is last else f"{first.number}–{last.number}", last) for first, last in groups]


def _beside_price(item: Item, view: ExploreView, sizes: _Found) -> dict[str, Any]:
    """Return the text beside a price in the table, per VM or per GPU: its list price and a note."""
    figure = FIGURES[view.y if FIGURES[view.y].is_money else view.x]
    convert = price_in(view.unit, sizes.rate)

    def shown(usd: Any) -> Decimal:
        return convert(figure.read({**item, "usd_per_hour": usd}, sizes.speeds) or 0)

    adjustment = item.get("adjustment")
    return {
        "adjustment": adjustment and adjustment | {"shown": shown(adjustment["list_usd_per_hour"])},
        "note": price_note(item, "price_", lambda usd: format_amount(shown(usd))),
    }


def _what(item: Item) -> str:
    """Return a size in a few words."""
    model = item["gpu_model"]
    count = item["gpu_fraction"] or format_number(item["gpu_count"])
    gpus = f"{count} × {model}" if model and item["gpu_count"] else f"{format_number(item['vcpus'])} vCPUs"
    return f"{gpus}, {item['region']}" if item["region"] else gpus


async def _bars(request: PageRequest, sizes: _Found, bar: PriceBar) -> list[dict[str, Any]]:
    """Return the price of the marked size in each region, the cheapest first, beside the cheapest and the dearest."""
    view: ExploreView = request.params
    search = PriceSearch(
        os=view.os, purchase=view.purchase, as_of=view.as_of, known_at=view.known_at, limit=_MAX_PRICES
    )
    prices = await request.executor.ask(find_prices, sizes.key, search)
    if not prices.items:
        return []
    convert = price_in(view.unit, sizes.rate)
    shown = [(convert(price["usd_per_hour"]), price) for price in prices.items]
    amounts = [amount for amount, _ in shown]
    least, most = min(amounts), max(amounts)
    bars = [
        {
            "code": price["region"],
            "title": bar.regions.get(price["region"], price["region"]),
            "price": amount,
            "width": round(float(100 * amount / most), 2) if most else 0.0,
            "more_percent": float(100 * (amount - least) / least) if least else 0.0,
            "age_days": price["price_age_days"],
            "seen": price["seen_until"],
            "chosen": price["region"] in view.region,
            "adjustment": (rules := price.get("adjustment")) and rules | {"shown": convert(rules["list_usd_per_hour"])},
            "note": price_note(price, shown=lambda usd: format_amount(convert(usd))),
        }
        for amount, price in shown
    ]
    return sorted(bars, key=itemgetter("price", "title"))


PAGE = PageContent(params=ExploreView, render=render)
