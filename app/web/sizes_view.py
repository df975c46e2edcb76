"""The parameters of the search page, its columns and cells, and prices by unit of time and divisor.

The parameters are those of `GET /sizes` and what the view adds, which no program needs: columns,
units, pages by number.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any, Literal, NamedTuple

from markupsafe import Markup
from pydantic import AfterValidator, Field

from app.catalog.fields import SHOWN_FIELDS, SIZE_FIELDS, is_inapplicable, short_title
from app.catalog.names import Category
from app.catalog.price_notes import price_note
from app.catalog.projections import SIZE_JSON_FIELDS, SPOT_SAVING, UNIT_PRICES
from app.catalog.providers import PROVIDERS
from app.catalog.purchases import PURCHASE_MODELS
from app.catalog.queries.exchange_rates import USD, CurrencyRate
from app.catalog.queries.lookups import RegionPlace
from app.catalog.queries.params import (
    SORT_KEYS,
    Currency,
    DatedSelection,
    PlainText,
    QueryParams,
    SizeList,
    SizeSearch,
    SortOrder,
    Status,
)
from app.catalog.queries.provenance import find_currencies, find_providers, find_region_names
from app.catalog.queries.sizes import JsonPage, find_sizes, read_sizes
from app.catalog.queries.snapshot import Catalog, short, short_if
from app.nearest import did_you_mean, nearest
from app.web.rendering import OLD_DAYS, PURCHASE_TITLES, UNKNOWN, format_age, format_amount, format_number
from app.web.size_fields import shown_unit

Unit = Literal["hour", "day", "month", "year"]
Per = Literal["vm", "vcpu", "1000_coremark", "gib", "gpu", "gpu_gib"]

HOURS: Mapping[str, int] = {"hour": 1, "day": 24, "month": 730, "year": 8760}
"""How many hours a unit has; a month is a twelfth of a year, as in `GET /sizes/{name}/cost`."""

UNIT_TITLES: Mapping[str, str] = {"hour": "an hour", "day": "a day", "month": "a month", "year": "a year"}
PER_TITLES: Mapping[str, str] = {
    "vm": "VM",
    "vcpu": "vCPU",
    "1000_coremark": "1,000 CoreMark",
    "gib": "GiB of memory",
    "gpu": "GPU",
    "gpu_gib": "GiB of GPU memory",
}


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the table: the field of an item, its title and unit, and how it is shown.

    `kind` is number, text, flag, or the name of a cell of its own in the template. `sort` is the key to sort by.
    """

    field: str
    title: str
    unit: str = ""
    kind: str = "number"
    sort: str = ""

    @property
    def is_number(self) -> bool:
        """Return whether the column is aligned to the right."""
        return self.kind in {"number", "gbps", "price", "money", "gpu_count", "percent"}

    @property
    def title_with_unit(self) -> str:
        """Return the title, with the unit of numbers: `Memory (GiB)`."""
        return f"{self.title} ({self.unit})" if self.unit and self.kind == "number" else self.title


def heading_of(column: Column, price_title: str) -> str:
    """Return what a cell is where there is no header above it, as on phones: of the price only the unit."""
    if column.kind == "price":
        return price_title
    return f"{column.title} {price_title if column.kind == 'money' else column.unit}".rstrip()


_CELL_KINDS = {"integer": "number", "fraction": "gpu_count", "boolean": "flag", "date": "text"}
"""The kind of cell by the kind of field, where it has another name."""


def _column_of(name: str) -> Column:
    """Return the column of a field of a size, as the table of fields has it."""
    spec = SHOWN_FIELDS[name]
    kind = {"network_mbps": "gbps", "category": "words"}.get(name) or _CELL_KINDS.get(spec.kind, spec.kind)
    return Column(name, short_title(name), shown_unit(spec.unit), kind, sort=name)


ON_WINDOWS = "windows_"
"""What the columns of prices on Windows begin with; they sort the list of Windows."""
_PRICE_KEYS = {name: f"{name}_usd_per_hour" for name in PURCHASE_MODELS}
_CLOUD = Column("provider", "Cloud", kind="cloud", sort="provider")
_PRICE_COLUMNS = (
    Column("price", "Price", kind="price", sort="usd_per_hour"),
    Column("region", "Region", kind="text"),
    Column("price_age_days", "Price age", kind="age"),
    *(Column(key, PURCHASE_TITLES[name].capitalize(), kind="money", sort=key) for name, key in _PRICE_KEYS.items()),
    Column(SPOT_SAVING, "Spot saving", "%", kind="percent", sort=SPOT_SAVING),
    *(
        Column(f"{ON_WINDOWS}{key}", f"Windows, {PURCHASE_TITLES[name]}", kind="money", sort=key)
        for name, key in _PRICE_KEYS.items()
    ),
)
_FIRST = (
    *("provider", "price", "series", "category", "vcpus", "memory_gib", "gpu_model", "gpu_count", "gpu_memory_gib"),
    *("gpu_memory_gib_per_gpu", "temp_disk_gib", "nvme_disk_gib", "network_mbps", "infiniband_gbps", "nvlink"),
    *("arch", "cpu_model", "max_data_disks", "uncached_disk_iops", "uncached_disk_mbps", "max_nics"),
    *(column.field for column in _PRICE_COLUMNS if column.field != "price"),
    *("retirement_date", "quota_family", "confidential_computing"),
)
"""The columns that the list begins with; those of any other field follow."""
_SAID_ELSEWHERE = frozenset(
    {
        *("gpu_vendor", "gpu_interconnect", "temp_disk_count", "nvme_disk_count", "infiniband", "parent_size"),
        *("preview", "withdrawn"),
    }
)
"""Fields that other columns, or the badges of a name, say well enough."""
_COLUMNS = {column.field: column for column in (_CLOUD, *_PRICE_COLUMNS)} | {
    name: _column_of(name)
    for name in SIZE_JSON_FIELDS
    if name == "category" or (name in SIZE_FIELDS and SIZE_FIELDS[name].column and name not in _SAID_ELSEWHERE)
}
COLUMNS: Mapping[str, Column] = {name: _COLUMNS[name] for name in dict.fromkeys((*_FIRST, *_COLUMNS))}
Kind = Literal["any", "gpu", "cpu"]

_OF_ALL, _OF_PLACE = ("provider", "price", "vcpus", "memory_gib"), ("region", "price_age_days")
_OF_GPU = ("gpu_model", "gpu_count", "gpu_memory_gib", "gpu_memory_gib_per_gpu", "network_mbps")
KIND_COLUMNS: Mapping[Kind, tuple[str, ...]] = {
    "any": (*_OF_ALL, "gpu_model", "network_mbps", "cpu_model", *_OF_PLACE),
    "gpu": (*_OF_ALL, *_OF_GPU, *_OF_PLACE),
    "cpu": (*_OF_ALL, "temp_disk_gib", "network_mbps", "cpu_model", "uncached_disk_iops", *_OF_PLACE),
}
"""The columns of a list whose columns are not chosen, by the kind of sizes; in a catalog of one cloud without it."""
_OF_GPUS = ("gpu", "gpu_vendor", "nvlink", "min_gpus", "min_gpu_mem", "min_gpu_mem_per_gpu")
GPU_CATEGORY: tuple[Category] = ("gpu_accelerated",)
SOLD: tuple[Status, ...] = ("current", "preview")
"""The statuses of a list whose statuses are not chosen: who looks around does not want what retires."""


def _in_order(names: tuple[str, ...]) -> tuple[str, ...]:
    for name in names:
        if name not in COLUMNS:
            hint = did_you_mean(nearest(name, COLUMNS), " ")
            raise ValueError(f"{name}: {hint}allowed are {', '.join(COLUMNS)}")
    ordered = tuple(name for name in COLUMNS if name in names)
    return () if ("provider", *ordered) in KIND_COLUMNS.values() or ordered in KIND_COLUMNS.values() else ordered


def regions_by_cloud(names: Mapping[str, str], places: Mapping[str, RegionPlace]) -> list[tuple[str, str]]:
    """Return the codes of regions with their names, by cloud, which is named where there are several."""
    clouds = {code: PROVIDERS[places[code].provider].name for code in names}
    several = len({*clouds.values()}) > 1
    ordered = sorted((clouds[code], name, code) for code, name in names.items())
    return [(code, f"{name}, {cloud}" if several else name) for cloud, name, code in ordered]


@dataclass(frozen=True, slots=True)
class PriceBar:
    """What the bar of prices offers: names of regions by code, and the options of its selects."""

    regions: Mapping[str, str]
    region_options: Sequence[tuple[str, str]]
    currencies: Sequence[tuple[str, str]]
    purchases: Sequence[tuple[str, str]] = tuple(PURCHASE_TITLES.items())
    units: Sequence[tuple[str, str]] = tuple(UNIT_TITLES.items())


@short
def find_price_bar(catalog: Catalog) -> PriceBar:
    """Read the regions and currencies of the bar."""
    names, currencies = find_region_names(catalog), [(code, code) for code in find_currencies(catalog)]
    return PriceBar(names, regions_by_cloud(names, catalog.snapshot.regions), currencies)


class ShownCurrency(QueryParams):
    """In which currency a page shows prices."""

    currency: Currency = Field(default=USD, description="The currency of all prices (ISO 4217).")

    @property
    def converted_to(self) -> str | None:
        """The `currency` of what a page asks for: none for US dollars, which it has anyway."""
        return None if self.currency == USD else self.currency


class SizesView(SizeList, ShownCurrency):
    """A view of the search page: filters, order, currency, and how the list is shown."""

    sort: SortOrder = Field(default=("usd_per_hour",), description="Columns to order by, as in `GET /sizes`.")
    limit: int = Field(default=50, ge=1, le=500, description="How many sizes a page has.")
    page: int = Field(default=1, ge=1, le=10_000, description="Which page, from 1.")
    unit: Unit = Field(default="hour", description="The time that prices are for.")
    per: Per = Field(default="vm", description="What the price is divided by.")
    columns: Annotated[tuple[PlainText, ...], AfterValidator(_in_order)] = Field(
        default=(), description="The columns of the table, beside the name; default: those of its kind of sizes."
    )

    @property
    def kind(self) -> Kind:
        """Return whether the filters leave sizes with a GPU or without one."""
        if self.max_gpus == 0:
            return "cpu"
        return "gpu" if self.category == GPU_CATEGORY or any(getattr(self, name) for name in _OF_GPUS) else "any"

    @property
    def leaves_out_retiring(self) -> bool:
        """Return whether sizes that retire are left out: unless statuses, or sizes by their names, are asked for."""
        return not (self.status or self.q or self.name or self.series)

    @property
    def order(self) -> tuple[str, ...]:
        """The columns to order by, where the price is the one that is shown: of a VM, or of a part of it."""
        shown = _PRICE_SORTS[self.per]
        return tuple({"usd_per_hour": shown, "-usd_per_hour": f"-{shown}"}.get(key, key) for key in self.sort)

    def as_list(self) -> SizeList:
        """Return the list of `GET /sizes` with the filters and order of this view, its defaults too."""
        sold = {"status": SOLD} if self.leaves_out_retiring else {}
        return self.as_params(SizeList, sort=self.order, **sold)

    def search(self) -> SizeSearch:
        """Return the search of `GET /sizes` for that list, in the view's currency."""
        return self.as_list().as_params(SizeSearch, limit=self.limit, currency=self.converted_to)

    def shown_price(
        self, item: Mapping[str, Any], rate: CurrencyRate | None, field: str = "usd_per_hour"
    ) -> Decimal | None:
        """Return a price of a size by the view's currency, unit of time and divisor; None where a part is unknown."""
        hourly, divisor = item[field], _divisor(item, self.per)
        if hourly is None or not divisor:
            return None
        return price_in(self.unit, rate)(Fraction(hourly) / divisor)

    def price_title(self) -> str:
        """Return what a price of the view is: `USD an hour`, `EUR a month per GPU`."""
        per = f" per {PER_TITLES[self.per]}" if self.per != "vm" else ""
        return f"{self.currency} {UNIT_TITLES[self.unit]}{per}"


def price_in(unit: Unit, rate: CurrencyRate | None) -> Callable[[Any], Decimal]:
    """Return what converts USD an hour, also a negative difference, to the unit of time and the currency."""

    def convert(usd: Any) -> Decimal:
        exact = Fraction(repr(usd) if isinstance(usd, float) else usd) * HOURS[unit]
        return Decimal(exact.numerator) / Decimal(exact.denominator) if rate is None else rate.convert(exact)

    return convert


def _divisor(item: Mapping[str, Any], per: str) -> Fraction | None:
    if per == "vm":
        return Fraction(1)
    if per == "gpu" and item["gpu_fraction"]:
        return Fraction(item["gpu_fraction"])
    factor, divisor = UNIT_PRICES[_PRICE_SORTS[per]]
    value = item[divisor if per != "gpu" else "gpu_count"]
    return None if value is None else Fraction(value) / (factor if isinstance(factor, int) else 1)


_PRICE_SORTS: Mapping[str, str] = {
    "vm": "usd_per_hour",
    "vcpu": "usd_per_vcpu_hour",
    "1000_coremark": "usd_per_1000_coremark_hour",
    "gib": "usd_per_memory_gib_hour",
    "gpu": "usd_per_gpu_hour",
    "gpu_gib": "usd_per_gpu_gib_hour",
}


def sort_key_of(column: Column, view: SizesView) -> str:
    """Return the key that a column's header sorts by; empty if it has none."""
    if column.kind == "price":
        return _PRICE_SORTS[view.per]
    return column.sort if column.sort in SORT_KEYS else ""


UNKNOWN_CELL = Markup(f'<span aria-hidden="true">{UNKNOWN}</span><span class="hidden">unknown</span>')  # noqa: S704  # a constant
_CUT_LENGTH = 28
"""Longer texts are cut off, and are in full in the title."""

Price = Callable[..., Decimal | None]


class Cell(NamedTuple):
    """The text of a cell, the class of its element, and a title for the pointer."""

    text: str
    kind: str
    title: str = ""


def table(items: Sequence[Mapping[str, Any]], columns: Sequence[Column], price: Price) -> list[list[Cell]]:
    """Return the cells of each size; `price` computes the price of an item by a field, in the units of the view.

    Amounts of a column have their decimal points below each other.
    """
    return [list(cells) for cells in zip(*(_cells(items, column, price) for column in columns), strict=True)]


def _cells(items: Sequence[Mapping[str, Any]], column: Column, price: Price) -> list[Cell]:
    values = [amount_of(item, column, price) for item in items]
    if column.kind not in {"price", "money"}:
        return [_cell(value, item, column) for value, item in zip(values, items, strict=True)]
    amounts = [None if value is None else format_amount(value) for value in values]
    places = max((len(amount.partition(".")[2]) for amount in amounts if amount), default=0)
    cells = []
    for amount, item in zip(amounts, items, strict=True):
        if amount is None:
            cells.append(Cell(UNKNOWN_CELL, "number unknown"))
            continue
        # blanks as wide as figures for the decimal places that it lacks
        cell = Cell(amount + "\u2007" * (places - len(amount.partition(".")[2])), f"number {column.kind}")
        cells.append(_noted(cell, item, price) if column.kind == "price" else cell)
    return cells


def _cell(value: Any, item: Mapping[str, Any], column: Column) -> Cell:
    kind = "number" if column.is_number else "nowrap"
    if value is None and is_inapplicable(column.field, item):
        return Cell("none" if column.field == "gpu_model" else "", f"{kind} muted")
    if value is None:
        return Cell(UNKNOWN_CELL, f"{kind} unknown")
    return _CELLS.get(column.kind, _text)(value, item)


def _noted(cell: Cell, item: Mapping[str, Any], price: Price) -> Cell:
    """Return the cell of a price with what is unusual about it, and the list price that rules changed."""

    def shown(usd: Any) -> str:
        return format_amount(price({**item, "usd_per_hour": usd}))

    if note := price_note(item, "price_", shown):
        cell = cell._replace(text=Markup('{} <span class="badge warn">{}</span>').format(cell.text, note))
    if adjustment := item.get("adjustment"):
        listed = shown(adjustment["list_usd_per_hour"])
        text = Markup('{}<span class="list-price">list <s>{}</s></span>').format(cell.text, listed)
        cell = Cell(text, cell.kind, f"by {', '.join(adjustment['rules'])}")
    return cell


def amount_of(item: Mapping[str, Any], column: Column, price: Price) -> Any:
    """Return what a column says of a size, prices in the units of the view; None where it is unknown."""
    if column.kind == "price":
        return price(item)
    if column.field == SPOT_SAVING:
        spot, listed = item["spot_usd_per_hour"], item["on_demand_usd_per_hour"]
        return round(100 - 100 * spot / listed, 1) if spot is not None and listed else None
    return price(item, field=column.field) if column.kind == "money" else item[column.field]


def find_columns(catalog: Catalog, view: SizesView) -> tuple[str, ...]:
    """Return the columns that were chosen, or those of the kind of sizes, without the cloud if there is but one."""
    columns = KIND_COLUMNS[view.kind]
    return view.columns or (columns[1:] if len(find_providers(catalog)) == 1 else columns)


@short_if(lambda view, **_more: not view.names_a_day)
def find_items(
    catalog: Catalog, view: SizesView, *, offset: int, limit: int = 0
) -> tuple[JsonPage, list[dict[str, Any]]]:
    """Find a page of a view, and its sizes, with their prices on Windows where columns show these."""
    page = find_sizes(
        catalog, view.search().model_copy(update={"limit": limit or view.limit}), offset=offset, natural=True
    )
    items = [json.loads(item, parse_float=Decimal) for item in page.items]
    windows = [name for name in view.columns if name.startswith(ON_WINDOWS)]
    if windows:
        selection = view.as_params(DatedSelection, os="windows")
        sizes = read_sizes(catalog, selection, [item["name"] for item in items])
        by_name = {size["name"]: size for size in (json.loads(text, parse_float=Decimal) for text in sizes)}
        for item in items:
            size = by_name.get(item["name"], {})
            item |= {name: size.get(name.removeprefix(ON_WINDOWS)) for name in windows}
    return page, items


def _text(value: Any, _item: Mapping[str, Any]) -> Cell:
    text = str(value)
    return Cell(text, "nowrap cut", text) if len(text) > _CUT_LENGTH else Cell(text, "nowrap")


def _number(value: Any, _item: Mapping[str, Any]) -> Cell:
    return Cell(format_number(value), "number" if value else "number muted")


def _age(value: int, item: Mapping[str, Any]) -> Cell:
    return Cell(format_age(value), "age old" if value >= OLD_DAYS else "age", f"last seen on {item['price_as_of']}")


_CELLS: Mapping[str, Callable[[Any, Mapping[str, Any]], Cell]] = {
    "number": _number,
    "gpu_count": lambda value, item: (
        Cell(item["gpu_fraction"], "number") if item["gpu_fraction"] else _number(value, item)
    ),
    "gbps": lambda value, item: _number(value / 1000, item),
    "age": _age,
    "percent": lambda value, _item: Cell(f"{value:.1f}", "number"),
    "cloud": lambda value, _item: Cell(PROVIDERS[value].name, "nowrap"),
    "flag": lambda value, _item: Cell("yes" if value else "no", "nowrap"),
    "words": lambda value, _item: Cell(value.replace("_", " ").replace("gpu", "GPU"), "nowrap"),
}
