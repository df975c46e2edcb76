"""The parameters of the search page, its columns, and prices by unit of time and by what they are divided.

The parameters are those of `GET /sizes` and what the view adds, which no program needs: columns,
units, pages by number.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from app.catalog.fields import SHOWN_FIELDS, SIZE_FIELDS, short_title
from app.catalog.projections import SIZE_JSON_FIELDS
from app.catalog.purchases import PURCHASE_MODELS
from app.catalog.queries.exchange_rates import USD, CurrencyRate
from app.catalog.queries.params import SORT_KEYS, Currency, PlainText, QueryParams, SizeList, SizeSearch
from app.nearest import did_you_mean, nearest
from app.web.size_fields import shown_unit

Unit = Literal["hour", "day", "month", "year"]
Per = Literal["vm", "vcpu", "gib", "gpu", "gpu_gib"]

HOURS: Mapping[str, int] = {"hour": 1, "day": 24, "month": 730, "year": 8760}
"""How many hours a unit has; a month is a twelfth of a year, as in `GET /sizes/{name}/cost`."""

UNIT_TITLES: Mapping[str, str] = {"hour": "an hour", "day": "a day", "month": "a month", "year": "a year"}
PER_TITLES: Mapping[str, str] = {
    "vm": "VM",
    "vcpu": "vCPU",
    "gib": "GiB of memory",
    "gpu": "GPU",
    "gpu_gib": "GiB of GPU memory",
}
PURCHASE_TITLES: Mapping[str, str] = {
    "on_demand": "on demand",
    "spot": "spot",
    "reserved_1y": "reserved, 1 year",
    "reserved_3y": "reserved, 3 years",
    "savings_1y": "savings plan, 1 year",
    "savings_3y": "savings plan, 3 years",
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
        return self.kind in {"number", "gbps", "price", "money", "gpu_count"}


_CELL_KINDS = {"integer": "number", "fraction": "gpu_count", "boolean": "flag", "date": "text"}
"""The kind of cell by the kind of field, where it has another name."""


def _column_of(name: str) -> Column:
    """Return the column of a field of a size, as the table of fields has it."""
    spec = SHOWN_FIELDS[name]
    kind = {"network_mbps": "gbps", "category": "words"}.get(name) or _CELL_KINDS.get(spec.kind, spec.kind)
    return Column(name, short_title(name), shown_unit(spec.unit), kind, sort=name)


_PRICE_COLUMNS = (
    Column("price", "Price", kind="price", sort="usd_per_hour"),
    Column("region", "Region", kind="text"),
    Column("price_age_days", "Price seen", "ago", kind="age"),
    *(
        Column(
            f"{purchase}_usd_per_hour",
            PURCHASE_TITLES[purchase].capitalize(),
            kind="money",
            sort=f"{purchase}_usd_per_hour",
        )
        for purchase in PURCHASE_MODELS
    ),
)
_FIRST = (
    *("price", "series", "category", "vcpus", "memory_gib", "gpu_model", "gpu_count", "gpu_memory_gib"),
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
_COLUMNS = {column.field: column for column in _PRICE_COLUMNS} | {
    name: _column_of(name)
    for name in SIZE_JSON_FIELDS
    if name == "category" or (name in SIZE_FIELDS and SIZE_FIELDS[name].column and name not in _SAID_ELSEWHERE)
}
COLUMNS: Mapping[str, Column] = {name: _COLUMNS[name] for name in dict.fromkeys((*_FIRST, *_COLUMNS))}
DEFAULT_COLUMNS = (
    *("price", "vcpus", "memory_gib", "gpu_model", "gpu_count", "gpu_memory_gib", "gpu_memory_gib_per_gpu"),
    *("network_mbps", "region", "price_age_days"),
)


def _in_order(names: tuple[str, ...]) -> tuple[str, ...]:
    for name in names:
        if name not in COLUMNS:
            hint = did_you_mean(nearest(name, COLUMNS), " ")
            raise ValueError(f"{name}: {hint}allowed are {', '.join(COLUMNS)}")
    return tuple(name for name in COLUMNS if name in names)


class ShownCurrency(QueryParams):
    """In which currency a page shows prices."""

    currency: Currency = Field(default=USD, description="The currency of all prices (ISO 4217).")

    @property
    def converted_to(self) -> str | None:
        """The `currency` of what a page asks for: none for US dollars, which it has anyway."""
        return None if self.currency == USD else self.currency


class SizesView(SizeList, ShownCurrency):
    """A view of the search page: filters, order, currency, and how the list is shown."""

    limit: int = Field(default=50, ge=1, le=500, description="How many sizes a page has.")
    page: int = Field(default=1, ge=1, le=10_000, description="Which page, from 1.")
    unit: Unit = Field(default="hour", description="The time that prices are for.")
    per: Per = Field(default="vm", description="What the price is divided by.")
    columns: Annotated[tuple[PlainText, ...], AfterValidator(_in_order)] = Field(
        default=DEFAULT_COLUMNS, description="The columns of the table, beside the name."
    )

    def search(self) -> SizeSearch:
        """Return the search of `GET /sizes` with the same filters."""
        given = self.model_fields_set & SizeSearch.model_fields.keys() - {"currency"}
        return SizeSearch(**{name: getattr(self, name) for name in given}, currency=self.converted_to)

    def shown_price(
        self, item: Mapping[str, Any], rate: CurrencyRate | None, field: str = "usd_per_hour"
    ) -> Decimal | None:
        """Return a price of a size by the view's currency, unit of time and divisor; None where a part is unknown."""
        hourly, divisor = item[field], _divisor(item, self.per)
        if hourly is None or not divisor:
            return None
        exact = Fraction(hourly) * HOURS[self.unit] / divisor
        return Decimal(exact.numerator) / Decimal(exact.denominator) if rate is None else rate.convert(exact)

    def price_title(self) -> str:
        """Return what a price of the view is: `USD an hour`, `EUR a month per GPU`."""
        per = f" per {PER_TITLES[self.per]}" if self.per != "vm" else ""
        return f"{self.currency} {UNIT_TITLES[self.unit]}{per}"


def _divisor(item: Mapping[str, Any], per: str) -> Fraction | None:
    if per == "vm":
        return Fraction(1)
    if per == "gpu" and item["gpu_fraction"]:
        return Fraction(item["gpu_fraction"])
    field = {"vcpu": "vcpus", "gib": "memory_gib", "gpu": "gpu_count", "gpu_gib": "gpu_memory_gib"}[per]
    value = item[field]
    return None if value is None else Fraction(value)


_PRICE_SORTS: Mapping[str, str] = {
    "vm": "usd_per_hour",
    "vcpu": "usd_per_vcpu_hour",
    "gib": "usd_per_memory_gib_hour",
    "gpu": "usd_per_gpu_hour",
    "gpu_gib": "usd_per_gpu_gib_hour",
}


def sort_key_of(column: Column, view: SizesView) -> str:
    """Return the key that a column's header sorts by; empty if it has none."""
    if column.kind == "price":
        return _PRICE_SORTS[view.per]
    return column.sort if column.sort in SORT_KEYS else ""
