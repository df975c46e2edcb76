"""Which offers (region, OS, purchase model) a size query joins, and expressions over the columns of a size."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sqlalchemy import (
    BindParameter,
    Date,
    FromClause,
    Select,
    String,
    and_,
    bindparam,
    case,
    func,
    literal_column,
    or_,
    select,
    true,
)
from sqlalchemy.sql.elements import ColumnElement

from app.catalog.column_types import table_of
from app.catalog.models import Gpu, Offer, Series, Size
from app.catalog.projections import (
    cheapest_offers,
    memory_index,
    offer_json,
    offer_json_columns,
    offers_on,
    usd_by,
)
from app.catalog.purchases import ANY_REGION
from app.catalog.queries.params import OfferParams

SIZE, GPU, OFFER, SERIES = table_of(Size), table_of(Gpu), table_of(Offer), table_of(Series)
size, gpu = SIZE.c, GPU.c
TODAY = bindparam("today", type_=Date)
_OFFER_KEY = ("region", "os", "size_key")


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceScopeKey:
    """What of an offer scope is written into a statement: the OS, the purchase model and the number of regions.

    The regions themselves are parameters, so that one compiled statement serves all of them.
    """

    os: str
    purchase: str
    regions: int

    @staticmethod
    def of(params: OfferParams) -> "PriceScopeKey":
        """Take the key from the parameters of a request."""
        return PriceScopeKey(os=params.os, purchase=params.purchase, regions=len(params.region))


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceScope:
    """Which offers (region, OS, purchase model) a size query joins: one row of `offers` a size, where `has_offer`.

    `cheapest` are the keys of the offers that count, where they must be searched among several regions. `all_offers`
    are the offers of every region. The regions of the scope are the parameters of `region_parameters`.
    """

    os: str
    purchase: str
    offers: FromClause
    has_offer: ColumnElement[bool]
    cheapest: FromClause | None = None
    all_offers: FromClause = OFFER

    @staticmethod
    def of(params: OfferParams) -> "PriceScope":
        """Return the scope of today's offers."""
        return _current_scope(PriceScopeKey.of(params))

    @staticmethod
    def as_of(params: OfferParams) -> "PriceScope":
        """Return the scope of the prices in force on the day `priced_on`, computed from the price history."""
        return _past_scope(PriceScopeKey.of(params))

    @staticmethod
    def for_sizes(key: PriceScopeKey, sizes: Select[Any]) -> "PriceScope":
        """Return the scope of today's offers for a few sizes: the cheapest region is searched among these alone."""
        return _build_scope(key, OFFER.c.size_key.in_(sizes))

    @property
    def source(self) -> FromClause:
        """Return what a query of offers selects from."""
        if self.cheapest is None:
            return self.offers
        return self.cheapest.join(self.offers, _same_offer(self.cheapest, self.offers))

    def join_to_sizes(self, query: Select[Any]) -> Select[Any]:
        """Join the offers to a query of sizes; the columns of the offer are null for a size without one."""
        if self.cheapest is None:
            return query.join(self.offers, and_(self.key == size.key, self.has_offer), isouter=True)
        found = query.join(self.cheapest, self.cheapest.c.size_key == size.key, isouter=True)
        return found.join(self.offers, _same_offer(self.cheapest, self.offers), isouter=True)

    @property
    def offer(self) -> Any:
        """Return the columns of the offer."""
        return self.offers.c

    @property
    def key(self) -> ColumnElement[str]:
        """Return the column of the size's key, which is its name without regard to case."""
        key: ColumnElement[str] = self.offers.c.size_key
        return key

    @property
    def rank(self) -> ColumnElement[float]:
        """Return the price an hour by this purchase model, infinity where it is unknown."""
        return self.rank_of(self.purchase)

    @property
    def usd(self) -> ColumnElement[float]:
        """Return the price an hour by this purchase model, null where it is unknown."""
        return usd_by(self.offer, self.purchase)

    def rank_of(self, purchase: str) -> ColumnElement[float]:
        """Return the price an hour by any purchase model, infinity where it is unknown."""
        rank: ColumnElement[float] = self.offer[f"{purchase}_rank_usd"]
        return rank

    def column(self, name: str) -> ColumnElement[Any]:
        """Return a column of the size, taken from the offer where that has a copy of it, which saves a join."""
        column: ColumnElement[Any] = self.offer[name] if name in self.offer else size[name]
        return column

    @property
    def json_columns(self) -> list[ColumnElement[Any]]:
        """Return the columns of the offer that `json_of` needs: the JSON itself where it is stored."""
        names = ("doc",) if self.purchase == "on_demand" else offer_json_columns(self.purchase)
        return [self.offer[name] for name in names]

    def json_of(self, columns: Any) -> ColumnElement[str]:
        """Return the offer as JSON from `json_columns`, which may have gone through a subquery."""
        json: ColumnElement[str] = (
            columns["doc"] if self.purchase == "on_demand" else offer_json(columns, self.purchase)
        )
        return json


def region_parameters(params: OfferParams) -> dict[str, Any]:
    """Return the parameters `region_0`, … of a statement."""
    regions = params.region or (ANY_REGION[params.purchase],)
    return {f"region_{index}": code for index, code in enumerate(regions)}


def region_binds(count: int) -> list[BindParameter[str]]:
    """Return the binds of `region_parameters`."""
    return [bindparam(f"region_{index}", type_=OFFER.c.region.type) for index in range(count)]


@lru_cache(maxsize=32)
def _current_scope(key: PriceScopeKey) -> PriceScope:
    return _build_scope(key)


def _build_scope(key: PriceScopeKey, *of_sizes: ColumnElement[bool]) -> PriceScope:
    """Build a scope; `of_sizes` limits the sizes among whose offers the cheapest of several regions is searched."""
    regions = region_binds(max(1, key.regions))
    of_os = matches_offer(OFFER.c, key)
    if key.regions <= 1:
        has_offer = and_(OFFER.c.region == regions[0], of_os)
        return PriceScope(os=key.os, purchase=key.purchase, offers=OFFER, has_offer=has_offer)
    several = (OFFER.c.region.in_(regions), of_os, *of_sizes)
    best = cheapest_offers(OFFER, key.purchase, ("size_key",), *several, columns=_OFFER_KEY)
    return PriceScope(os=key.os, purchase=key.purchase, offers=OFFER, has_offer=true(), cheapest=best)


def _same_offer(left: FromClause, right: FromClause) -> ColumnElement[bool]:
    return and_(*(left.c[name] == right.c[name] for name in _OFFER_KEY))


@lru_cache(maxsize=32)
def _past_scope(key: PriceScopeKey) -> PriceScope:
    past = offers_on(*(bindparam(name, type_=Date) for name in ("priced_on", "known_on", "spot_since")))
    meant = select(past).where(past.c.os == literal_text(key.os))
    if key.regions:
        meant = meant.where(past.c.region.in_(region_binds(key.regions)))
    best = cheapest_offers(meant.subquery(), key.purchase, ("size_key",))
    has_offer = best.c.size_key.is_not(None)
    return PriceScope(os=key.os, purchase=key.purchase, offers=best, has_offer=has_offer, all_offers=past)


def matches_offer(offer: Any, key: "PriceScopeKey | PriceScope") -> ColumnElement[bool]:
    """Return the condition that an offer is for the scope's OS."""
    of_os: ColumnElement[bool] = offer.os == literal_text(key.os)
    return of_os


def use_memory_index(query: Select[Any], offers: FromClause, purchase: str) -> Select[Any]:
    """Make SQLite use the index by memory bucket.

    Its planner cannot know from its sample that one bucket has fewer rows than a region.
    """
    return query.with_hint(offers, f"indexed by {memory_index(purchase)}", "sqlite")


def status_of(columns: Any) -> ColumnElement[str]:
    """Return the status of a size, or of its offer, on the day `today`: retired from its date on, retiring before it.

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


def is_orderable(retirement_date: ColumnElement[Any], withdrawn: ColumnElement[Any]) -> ColumnElement[bool]:
    """Return whether a size is neither retired on the day `today` nor withdrawn."""
    return and_(or_(retirement_date.is_(None), retirement_date > TODAY), withdrawn.is_not(True))


def literal_text(text: str) -> ColumnElement[str]:
    """Write a constant into the statement; only letters and underscores, so that no text of a client gets here."""
    if not text.isidentifier():
        raise ValueError(f"{text!r} is not an identifier")
    return literal_column(f"'{text}'", String)


def local_disk_gib() -> ColumnElement[float]:
    """Return the size of temporary and NVMe disks together, GiB; unknown only where both are."""
    some = func.coalesce(size.temp_disk_gib, 0.0) + func.coalesce(size.nvme_disk_gib, 0.0)
    return case((or_(size.temp_disk_gib.is_not(None), size.nvme_disk_gib.is_not(None)), some))


def gpu_slice_gib() -> ColumnElement[float]:
    """Return the memory that one GPU gives the VM, GiB: its slice for a fraction of a GPU; unknown without a count."""
    whole, a_slice = size.gpu_count >= 1, size.gpu_count < 1
    return case((a_slice, size.gpu_memory_gib), (whole, size.gpu_memory_gib_per_gpu))


def whole_gpu_gib() -> ColumnElement[float]:
    """Return the memory of one whole GPU of the VM, GiB; unknown where the number of GPUs is."""
    return case((size.gpu_count.is_not(None), size.gpu_memory_gib_per_gpu))
