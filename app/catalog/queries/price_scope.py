"""What a question about sizes stands on: whose prices are meant, and the offers that the sizes are shown with."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sqlalchemy import (
    Date,
    Double,
    FromClause,
    Select,
    String,
    and_,
    bindparam,
    case,
    cast,
    func,
    literal_column,
    or_,
    select,
)
from sqlalchemy.sql.elements import ColumnElement

from app.catalog.column_types import table_of
from app.catalog.models import Gpu, Offer, Series, Size
from app.catalog.projections import ANY_REGION, COPIED_SIZE_COLUMNS, cheapest_offers, offers_on
from app.catalog.queries.params import OfferParams

SIZE, GPU, OFFER, SERIES = table_of(Size), table_of(Gpu), table_of(Offer), table_of(Series)
size, gpu = SIZE.c, GPU.c
TODAY = bindparam("today", type_=Date)


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceScopeKey:
    """What of a question's prices is written into a statement: the system, the purchase model, how many regions."""

    os: str
    purchase: str
    regions: int

    @staticmethod
    def of(scope: OfferParams) -> "PriceScopeKey":
        """Take it from a question."""
        return PriceScopeKey(os=scope.os, purchase=scope.purchase, regions=len(scope.region))


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceScope:
    """The prices that a question means, and the one offer that each size has by them: `offers`, where `held`."""

    os: str
    purchase: str
    offers: FromClause
    has_offer: ColumnElement[bool]
    all_offers: FromClause = OFFER

    @staticmethod
    def of(scope: OfferParams) -> "PriceScope":
        """Take from a question whose prices in which regions it means; the regions are parameters `region_0`, …."""
        return _current_scope(scope.os, scope.purchase, len(scope.region))

    @staticmethod
    def as_of(scope: OfferParams) -> "PriceScope":
        """The same with the prices that were in force on the day `priced_on`, by the history of prices."""
        return _past_scope(scope.os, scope.purchase, len(scope.region))

    @staticmethod
    def for_sizes(place: "PriceScopeKey", keys: Select[Any]) -> "PriceScope":
        """The same for a few sizes: of several regions the cheapest is chosen among the offers of these alone."""
        return _build_scope(place.os, place.purchase, place.regions, OFFER.c.size_key.in_(keys))

    @property
    def offer(self) -> Any:
        """The columns of the offer."""
        return self.offers.c

    @property
    def key(self) -> ColumnElement[str]:
        """The key of the size, which is its name without regard to case."""
        key: ColumnElement[str] = self.offers.c.size_key
        return key

    @property
    def usd(self) -> ColumnElement[float]:
        """The price of the purchase model that is meant, as a double."""
        return cast(self.offer[f"{self.purchase}_usd_per_hour"], Double)

    def column(self, name: str) -> ColumnElement[Any]:
        """A column of a size, taken from its offer where that repeats it."""
        column: ColumnElement[Any] = self.offer[name] if name in COPIED_SIZE_COLUMNS else size[name]
        return column


def region_parameters(scope: OfferParams) -> dict[str, Any]:
    """The parameters of the regions of a question."""
    return {f"region_{index}": code for index, code in enumerate(scope.region or (ANY_REGION,))}


@lru_cache(maxsize=32)
def _current_scope(os: str, purchase: str, regions: int) -> PriceScope:
    return _build_scope(os, purchase, regions)


def _build_scope(os: str, purchase: str, regions: int, *of_sizes: ColumnElement[bool]) -> PriceScope:
    """The ground of a question; `of_sizes` says which sizes it is about, where the cheapest region is looked for."""
    asked = [bindparam(f"region_{index}", type_=OFFER.c.region.type) for index in range(max(1, regions))]
    meant = and_(OFFER.c.os == literal_text(os), OFFER.c.purchase == literal_text(purchase))
    if regions <= 1:
        return PriceScope(os=os, purchase=purchase, offers=OFFER, has_offer=and_(OFFER.c.region == asked[0], meant))
    several = select(OFFER).where(OFFER.c.region.in_(asked), meant, *of_sizes).subquery()
    best = cheapest_offers(several, ("size_key",))
    return PriceScope(os=os, purchase=purchase, offers=best, has_offer=best.c.size_key.is_not(None))


@lru_cache(maxsize=32)
def _past_scope(os: str, purchase: str, regions: int) -> PriceScope:
    there = offers_on(purchase, bindparam("priced_on", type_=Date), bindparam("spot_since", type_=Date))
    asked = [bindparam(f"region_{index}", type_=OFFER.c.region.type) for index in range(regions)]
    meant = select(there).where(there.c.os == literal_text(os))
    best = cheapest_offers((meant.where(there.c.region.in_(asked)) if asked else meant).subquery(), ("size_key",))
    return PriceScope(os=os, purchase=purchase, offers=best, has_offer=best.c.size_key.is_not(None), all_offers=there)


def status_of(columns: Any) -> ColumnElement[str]:
    """The standing of a size, or of its offer, on the day `today`: retired from its date on, retiring before it.

    A size that was withdrawn without a date stays withdrawn, whatever else is announced.
    """
    retires, preview = columns.retirement_date, columns.preview
    return case(
        (retires <= TODAY, literal_text("retired")),
        (columns.withdrawn.is_(True), literal_text("withdrawn")),
        (retires.is_not(None), literal_text("retiring")),
        (preview.is_(True), literal_text("preview")),
        else_=literal_text("current"),
    )


def can_be_ordered(ground: PriceScope) -> ColumnElement[bool]:
    """Whether a size is neither retired on the day `today` nor withdrawn."""
    return is_orderable(ground.column("retirement_date"), ground.column("withdrawn"))


def is_orderable(retires: ColumnElement[Any], withdrawn: ColumnElement[Any]) -> ColumnElement[bool]:
    """The same of two columns."""
    return and_(or_(retires.is_(None), retires > TODAY), withdrawn.is_not(True))


def literal_text(text: str) -> ColumnElement[str]:
    """A word of ours (letters and underscores), written into the statement."""
    if not text.isidentifier():
        raise ValueError(f"{text!r} is no word of ours")
    return literal_column(f"'{text}'", String)


def local_disk_gib() -> ColumnElement[float]:
    """Temporary and NVMe disks together, GiB; unknown only where both are."""
    some = func.coalesce(size.temp_disk_gib, 0.0) + func.coalesce(size.nvme_disk_gib, 0.0)
    return case((or_(size.temp_disk_gib.is_not(None), size.nvme_disk_gib.is_not(None)), some))


def gpu_slice_gib() -> ColumnElement[float]:
    """GPU memory that one GPU gives the VM, GiB: a fraction of a GPU gives its slice; unknown where the count is."""
    whole, a_slice = size.gpu_count >= 1, size.gpu_count < 1
    return case((a_slice, size.gpu_memory_gib), (whole, size.gpu_memory_gib_per_gpu))


def whole_gpu_gib() -> ColumnElement[float]:
    """GPU memory of one whole GPU of the VM, GiB; unknown where nobody knows how many GPUs, or what part of one."""
    return case((size.gpu_count.is_not(None), size.gpu_memory_gib_per_gpu))
