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

from app.catalog.fields import SIZE_FLAGS
from app.catalog.purchases import PURCHASE_MODELS
from app.catalog.queries.exchange_rates import USD, CurrencyRate
from app.catalog.queries.params import SORT_KEYS, Currency, PlainText, QueryParams, SizeList, SizeSearch
from app.nearest import did_you_mean, nearest

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

FLAG_TITLES: Mapping[str, str] = {
    "nvlink": "NVLink",
    "infiniband": "InfiniBand",
    "gpudirect_rdma": "GPUDirect RDMA",
    "premium_storage": "Premium Storage",
    "premium_storage_caching": "Premium Storage caching",
    "ultra_disk": "Ultra Disk",
    "ephemeral_os_disk": "Ephemeral OS disk",
}
"""Proper names among the flags."""


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


_COLUMNS = (
    Column("price", "Price", kind="price", sort="usd_per_hour"),
    Column("series", "Series", kind="text", sort="series"),
    Column("category", "Type", kind="words"),
    Column("vcpus", "vCPUs", sort="vcpus"),
    Column("memory_gib", "Memory", "GiB", sort="memory_gib"),
    Column("gpu_model", "GPU", kind="text", sort="gpu_model"),
    Column("gpu_count", "GPUs", kind="gpu_count", sort="gpu_count"),
    Column("gpu_memory_gib", "GPU memory", "GiB", sort="gpu_memory_gib"),
    Column("gpu_memory_gib_per_gpu", "On one GPU", "GiB", sort="gpu_memory_gib_per_gpu"),
    Column("temp_disk_gib", "Temp disk", "GiB", sort="temp_disk_gib"),
    Column("nvme_disk_gib", "NVMe disks", "GiB", sort="nvme_disk_gib"),
    Column("network_mbps", "Network", "Gbps", kind="gbps", sort="network_mbps"),
    Column("infiniband_gbps", "InfiniBand", "Gbps", sort="infiniband_gbps"),
    Column("nvlink", "NVLink", kind="flag"),
    Column("arch", "CPU", kind="text", sort="arch"),
    Column("cpu_model", "Processor", kind="text", sort="cpu_model"),
    Column("max_data_disks", "Data disks", sort="max_data_disks"),
    Column("uncached_disk_iops", "Disk rate", "IOPS", sort="uncached_disk_iops"),
    Column("uncached_disk_mbps", "Disk rate", "MBps", sort="uncached_disk_mbps"),
    Column("max_nics", "NICs", sort="max_nics"),
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
    Column("retirement_date", "Retires", kind="text", sort="retirement_date"),
    Column("quota_family", "Quota family", kind="text", sort="quota_family"),
    Column("confidential_computing", "Confidential", kind="text", sort="confidential_computing"),
    *(Column(flag, FLAG_TITLES.get(flag, flag.replace("_", " ").capitalize()), kind="flag") for flag in SIZE_FLAGS),
)
COLUMNS: Mapping[str, Column] = {column.field: column for column in _COLUMNS}
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
