"""Which columns a list of sizes needs, told without loading any, or NumPy."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from datetime import date

from app.catalog.projections import UNIT_PRICE_FIELDS
from app.catalog.purchases import ANY_REGION
from app.catalog.queries.filters import sort_names
from app.catalog.queries.params import PRICE_SORT_KEYS, SIZE_COLUMNS, SimilarSearch, SizeFilter, SizeList
from app.catalog.queries.snapshot import CatalogSnapshot

SIZES = "sizes"
"""What the columns that sizes are filtered by are kept under."""

FILTERED_NUMBERS = (
    *("gpu_memory_gib", "gpu_memory_gib_per_gpu", "gpu_count", "vcpus", "memory_gib"),
    *("network_mbps", "infiniband_gbps"),
)
"""Columns of numbers that sizes are filtered by: they are loaded with the sizes, and also sort lists."""

SORTED = 10_000
"""A page of up to so many sizes is found by sorting them, in 0.2 ms; of more along an order of all, which is kept."""

BY_PRICE = frozenset((*PRICE_SORT_KEYS, *UNIT_PRICE_FIELDS))
"""The sort keys that depend on the regions, the system and the purchase model."""


def sort_column_key(column: str) -> Hashable:
    """Return what another column that sizes are sorted by is kept under."""
    return ("sort", column)


def offers_key(os: str, region: str) -> Hashable:
    """Return what the offers of a region are kept under."""
    return ("offers", os, region)


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnNeeds:
    """The columns of a list: `regions` are those whose offers count, `others` those that sizes must be priced in."""

    os: str
    purchase: str
    regions: tuple[str, ...]
    others: tuple[str, ...]
    sort_columns: tuple[str, ...]

    @staticmethod
    def of(search: SizeList) -> "ColumnNeeds":
        """Return what a normalized list needs."""
        names = [name.removeprefix("-") for name in search.sort]
        columns = (SIZE_COLUMNS[name] for name in names if name in SIZE_COLUMNS)
        return ColumnNeeds(
            os=search.os,
            purchase=search.purchase,
            regions=search.region or (ANY_REGION[search.purchase],),
            others=search.available_in,
            sort_columns=tuple(column for column in columns if column not in FILTERED_NUMBERS),
        )

    @staticmethod
    def of_facets(search: SizeFilter, snapshot: CatalogSnapshot) -> "ColumnNeeds":
        """Return what the facets of a search need: the offers of every region."""
        return ColumnNeeds(
            os=search.os,
            purchase=search.purchase,
            regions=(*sorted(snapshot.regions), ANY_REGION[search.purchase]),
            others=(),
            sort_columns=(),
        )

    @staticmethod
    def of_neighbours(search: SimilarSearch, snapshot: CatalogSnapshot) -> "ColumnNeeds":
        """Return what the neighbours of a size need; a region that the catalog does not have needs nothing."""
        return ColumnNeeds(
            os=search.os,
            purchase=search.purchase,
            regions=tuple(snapshot.regions.intersection(search.region)) or (ANY_REGION[search.purchase],),
            others=(),
            sort_columns=("name",),
        )

    @property
    def prices_key(self) -> Hashable:
        """What the least prices of all sizes in the regions are kept under."""
        return ("prices", self.os, self.purchase, self.regions)

    def order_key(self, sort: Sequence[str]) -> Hashable:
        """Return what the order of all sizes by these sort keys is kept under."""
        by_price = any(name.removeprefix("-") in BY_PRICE for name in sort)
        return ("order", *sort_names(sort), self.prices_key if by_price else None)

    def are_kept(self, snapshot: CatalogSnapshot) -> bool:
        """Return whether all these columns are kept."""
        return (
            snapshot.has(SIZES)
            and all(snapshot.has(sort_column_key(column)) for column in self.sort_columns)
            and snapshot.columns.has(offers_key(self.os, region) for region in (*self.regions, *self.others))
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceNeeds:
    """The columns of a list of prices: which sizes have prices of some regions, of an OS, by a purchase model.

    On `day` these are the prices in force, or with `history` all that have begun; without a day all that ever were.
    """

    regions: tuple[str, ...]
    os: str | None
    purchase: str | None
    day: date | None = None
    history: bool = False

    @property
    def all_prices(self) -> bool:
        """Return whether every price is meant, of which no column is needed."""
        return not (self.regions or self.os or self.purchase or self.day)

    def are_kept(self, snapshot: CatalogSnapshot) -> bool:
        """Return whether these columns are kept, and those of the sizes."""
        return snapshot.has(SIZES) and (self.all_prices or snapshot.columns.has([self]))
