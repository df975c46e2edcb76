"""Which offers (region, OS, purchase model) a size query joins, and expressions over the columns of a size."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from typing import Any

import orjson
from sqlalchemy import (
    BigInteger,
    BindParameter,
    Date,
    Double,
    FromClause,
    Integer,
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
    true,
)
from sqlalchemy.sql.elements import ColumnElement

from app.catalog.column_types import table_of
from app.catalog.in_force import (
    PRICE,
    KnownDay,
    Rules,
    UnevenRules,
    adjusted_nano_usd,
    earliest_spot_day,
    is_in_force,
    known_on,
    prices_in_force,
)
from app.catalog.models import UNKNOWN_ZONES, Availability, Gpu, Offer, Series, Size, Source
from app.catalog.projections import (
    COPIED_SIZE_COLUMNS,
    PRICE_COLUMNS,
    RANK_COLUMNS,
    UNRANKED,
    cheapest_offers,
    rank_usd,
    side_by_side,
)
from app.catalog.purchases import ANY_REGION
from app.catalog.queries.params import OfferParams, PriceDayParams, QueryParams
from app.db.functions import is_listed
from app.db.statements import ALL_ROWS

SIZE, GPU, OFFER, SERIES = table_of(Size), table_of(Gpu), table_of(Offer), table_of(Series)
size, gpu = SIZE.c, GPU.c
TODAY = bindparam("today", type_=Date)
KEYS = bindparam("keys", type_=String)
"""The keys of sizes as a JSON array, as `key_parameters` gives them."""
PRICED_ON = bindparam("priced_on", type_=Date)
"""The day of a past scope, as `price_parameters` gives it."""
_OFFER_KEY = ("region", "os", "size_key")
PRICE_KEY = ("size_key", "region", "os", "purchase", "valid_from", "source_id", "known_from")


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceScopeKey:
    """What of an offer scope is written into a statement: the OS, the purchase model and the number of regions.

    With `past` prices are computed from the price history, with `known` as they were known on a day, and by `rules`,
    which today's offers follow already. The regions themselves and the days are parameters, so that one compiled
    statement serves all of them.
    """

    os: str
    purchase: str
    regions: int
    past: bool = False
    known: bool = False
    rules: Rules = ()

    @staticmethod
    def of(params: OfferParams, rules: Rules) -> "PriceScopeKey":
        """Take the key from the parameters of a request, and the rules of the catalog."""
        days = named_days(params)
        return PriceScopeKey(
            os=params.os,
            purchase=params.purchase,
            regions=len(params.region),
            past=days is not None,
            known=days is not None and days.known_at is not None,
            rules=rules if days is not None else (),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceScope:
    """Which offers (region, OS, purchase model) a size query joins: one row of `offers` a size, where `has_offer`.

    `cheapest` are the keys of the offers that count, where they must be searched among several regions. `all_offers`
    are the offers of every region; those of a past day have only the columns that lists read. The regions and days of
    the scope are the parameters of `price_parameters`.
    """

    os: str
    purchase: str
    offers: FromClause
    has_offer: ColumnElement[bool]
    cheapest: FromClause | None = None
    all_offers: FromClause = OFFER

    @staticmethod
    def of(params: OfferParams, rules: Rules = ()) -> "PriceScope":
        """Return the scope of today's offers, or of the prices of the days that the parameters name, by the rules."""
        return PriceScope.of_key(PriceScopeKey.of(params, rules))

    @staticmethod
    @lru_cache(maxsize=64)
    def of_key(key: PriceScopeKey) -> "PriceScope":
        """Return the scope of a key."""
        return _past_scope(key) if key.past else _current_scope(key)

    @staticmethod
    def for_keys(key: PriceScopeKey) -> "PriceScope":
        """Return the scope of the sizes of KEYS: prices, and the cheapest region, are searched among these alone."""
        sizes = select(size.key).where(is_listed(size.key, KEYS))
        return _past_scope(key, sizes) if key.past else _current_scope(key, OFFER.c.size_key.in_(sizes))

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
        joined = query.join(self.cheapest, self.cheapest.c.size_key == size.key, isouter=True)
        return joined.join(self.offers, _same_offer(self.cheapest, self.offers), isouter=True)

    @property
    def offer(self) -> Any:
        """Return the columns of the offer."""
        return self.offers.c

    @property
    def key(self) -> ColumnElement[str]:
        """Return the column of the size's key, which is its name without regard to case."""
        key: ColumnElement[str] = size.key if self.offers is SIZE else self.offers.c.size_key
        return key

    @property
    def rank(self) -> ColumnElement[float]:
        """Return the price an hour by this purchase model, infinity where it is unknown."""
        return rank_usd(self.offer, self.purchase)

    def column(self, name: str) -> ColumnElement[Any]:
        """Return a column of the size, taken from the offer where that has a copy of it, which saves a join."""
        column: ColumnElement[Any] = self.offer[name] if name in self.offer else size[name]
        return column


def key_parameters(keys: Sequence[str]) -> dict[str, Any]:
    """Return the parameter of a statement of some sizes."""
    return {"keys": orjson.dumps(keys).decode()}


def region_parameters(params: OfferParams) -> dict[str, Any]:
    """Return the parameters `region_0`, … of a statement."""
    regions = params.region or (ANY_REGION[params.purchase],)
    return {f"region_{index}": code for index, code in enumerate(regions)}


def named_days(params: QueryParams) -> PriceDayParams | None:
    """Return the parameters where they name a day of prices."""
    return params if isinstance(params, PriceDayParams) and params.names_a_day else None


def price_parameters(params: OfferParams, today: date) -> dict[str, Any]:
    """Return all parameters of a scope: `today`, its regions, and of a past one its two days."""
    values: dict[str, Any] = {"today": today.isoformat()}
    days = named_days(params)
    if days is None:
        return values | region_parameters(params)
    day = days.as_of or today
    bounds = {"priced_on": day, "spot_since": earliest_spot_day(day)}
    if days.known_at is not None:
        bounds["known_on"] = days.known_at
    values |= {name: bound.isoformat() for name, bound in bounds.items()}
    return values | region_parameters(params) if params.region else values


def region_binds(count: int) -> list[BindParameter[str]]:
    """Return the binds of `region_parameters`."""
    return [bindparam(f"region_{index}", type_=OFFER.c.region.type) for index in range(count)]


def price_days(*, dated: bool) -> tuple[ColumnElement[date], KnownDay, ColumnElement[date]]:
    """Return the days of a past scope that `is_in_force` takes, as `price_parameters` gives them."""
    return PRICED_ON, bindparam("known_on", type_=Date) if dated else None, bindparam("spot_since", type_=Date)


def _current_scope(key: PriceScopeKey, *of_sizes: ColumnElement[bool]) -> PriceScope:
    """Build a scope; `of_sizes` limits the sizes among whose offers the cheapest of several regions is searched."""
    regions = region_binds(max(1, key.regions))
    of_os = OFFER.c.os == literal_text(key.os)
    if key.regions <= 1:
        has_offer = and_(OFFER.c.region == regions[0], of_os)
        return PriceScope(os=key.os, purchase=key.purchase, offers=OFFER, has_offer=has_offer)
    several = (OFFER.c.region.in_(regions), of_os, *of_sizes)
    best = cheapest_offers(OFFER, key.purchase, ("size_key",), *several, columns=_OFFER_KEY)
    return PriceScope(os=key.os, purchase=key.purchase, offers=OFFER, has_offer=true(), cheapest=best)


def _same_offer(left: FromClause, right: FromClause) -> ColumnElement[bool]:
    return and_(*(left.c[name] == right.c[name] for name in _OFFER_KEY))


def _past_scope(key: PriceScopeKey, sizes: Select[Any] | None = None) -> PriceScope:
    """Build the scope of a past day, of all sizes or of a few; without regions sizes without any price are in it."""
    prices = side_by_side(_past_prices_that_count(key, sizes), adjusted=bool(key.rules)).subquery()
    columns: dict[str, ColumnElement[Any]] = {
        "size_key": size.key,
        "priced_in": prices.c.region,
        **{name: prices.c[name] for name in PRICE_COLUMNS},
        **{name: func.coalesce(prices.c[name], UNRANKED) for name in RANK_COLUMNS},
        **{name: size[name] for name in COPIED_SIZE_COLUMNS},
    }
    offers = select(*(column.label(name) for name, column in columns.items())).select_from(
        SIZE.join(prices, prices.c.size_key == size.key, isouter=not key.regions)
    )
    if sizes is not None:
        offers = offers.where(size.key.in_(sizes))
    return PriceScope(
        os=key.os,
        purchase=key.purchase,
        offers=offers.subquery("past_offer"),
        has_offer=true(),
        all_offers=_past_prices(key),
    )


def _past_prices_that_count(key: PriceScopeKey, sizes: Select[Any] | None) -> Select[Any]:
    """Select the prices of a past day in the region that counts for each of all sizes, or of a few.

    The keys of the sizes are named in any case: the table of prices begins with them, and is not read as a whole.
    """
    keys = sizes if sizes is not None else select(size.key)
    meant = [PRICE.c.os == literal_text(key.os)]
    if key.regions == 1:
        meant += [PRICE.c.size_key.in_(keys), PRICE.c.region.in_(region_binds(1))]
    else:
        chosen = _cheapest_regions(key, keys)
        meant += [PRICE.c.size_key == chosen.c.size_key, PRICE.c.region == chosen.c.region]
        meant += [PRICE.c.size_key.in_(keys)] if sizes is not None else []
    return prices_in_force(*price_days(dated=key.known), *meant, rules=key.rules)


def past_prices_by_size(key: PriceScopeKey, purchase: str) -> Select[Any]:
    """Select the price by a purchase model on a past day of all sizes that have any price there; null without that.

    It is what lists are chosen and sorted by, without the columns of an offer.
    """
    prices = _past_prices_that_count(key, None).subquery().c
    usd = func.max(cast(prices.usd_per_hour, Double)).filter(prices.purchase == literal_text(purchase))
    return select(prices.size_key.label("key"), usd.label("usd")).group_by(prices.size_key)


def scope_of_sizes(key: PriceScopeKey) -> PriceScope:
    """Return the scope of all sizes without a join to their offers, which filters of sizes are judged in."""
    return PriceScope(
        os=key.os,
        purchase=key.purchase,
        offers=SIZE,
        has_offer=true(),
        all_offers=_past_prices(key) if key.past else OFFER,
    )


def _cheapest_regions(key: PriceScopeKey, sizes: Select[Any]) -> FromClause:
    """Select the region where each size was cheapest, of several or of all; null for a size without any price.

    The prices of a size are sorted, the cheapest by list price first. By rules another region may be cheaper, or as
    cheap: `_dearest_rivals` says up to which list price.

    A size that has no price by the purchase model of the scope is in the region where it was cheapest on demand, or in
    the first where it has any price.
    """
    these = _dearest_rivals(key, sizes) if key.rules else _keys_of(sizes)
    run = PRICE.alias().c
    by_purchase = [run.purchase == literal_text(key.purchase), *_is_usual(run, key)]
    order: list[ColumnElement[Any]] = [run.nano_usd_per_hour]
    if key.rules:
        uneven = UnevenRules.of(key.rules, key.os, key.purchase)
        by_purchase.append(or_(run.nano_usd_per_hour <= these.c.most_nano_usd, *uneven.names(run.region)))
        order = [adjusted_nano_usd(run, PRICED_ON, key.rules)]
    cheapest = _first_in_force(run.region, run, key, these, *by_purchase, order=[*order, run.region])
    other, listed = PRICE.alias().c, PRICE.alias().c
    on_demand = [listed.purchase == literal_text("on_demand"), *_is_usual(listed, key)]
    price = adjusted_nano_usd(listed, PRICED_ON, key.rules) if key.rules else listed.nano_usd_per_hour
    region = func.coalesce(
        cheapest,
        _first_in_force(listed.region, listed, key, these, *on_demand, order=[price, listed.region]),
        _first_in_force(other.region, other, key, these, order=[other.region]),
    )
    # Materialized, because the databases would otherwise compute the prices of all regions and throw most of them away.
    regions = select(these.c.size_key, region.label("region")).cte("cheapest")
    return regions.prefix_with("materialized")


def _dearest_rivals(key: PriceScopeKey, sizes: Select[Any]) -> FromClause:
    """Select the list price up to which a region may be the cheapest of a size, where no rule names the region."""
    these, run = _keys_of(sizes), PRICE.alias().c
    uneven = UnevenRules.of(key.rules, key.os, key.purchase)
    even = [run.purchase == literal_text(key.purchase), *_is_usual(run, key)]
    even += [~named for named in uneven.names(run.region)]
    least = _first_in_force(run.nano_usd_per_hour, run, key, these, *even, order=[run.nano_usd_per_hour])
    bounded = least + literal_column(str(uneven.tie_nano_usd), BigInteger)
    if uneven.levelling:
        bounded = case((uneven.levels(these.c, PRICED_ON), literal_column(str(2**63 - 1), BigInteger)), else_=bounded)
    # Materialized, because both databases would otherwise compute the bound again for each price.
    return select(these.c.size_key, bounded.label("most_nano_usd")).cte("rival").prefix_with("materialized")


def _is_usual(run: Any, key: PriceScopeKey) -> list[ColumnElement[bool]]:
    """Return the condition that a price may be the cheapest: an unusual one is, only in a region that is asked for."""
    return [] if key.regions else [run.median_nano_usd.is_(None)]


def _first_in_force(
    column: ColumnElement[Any],
    run: Any,
    key: PriceScopeKey,
    these: FromClause,
    *conditions: ColumnElement[bool],
    order: Sequence[ColumnElement[Any]],
) -> ColumnElement[Any]:
    """Select a column of the first price in force of each of some sizes, for the system and regions of a scope.

    The few prices of a size that have begun are sorted first, with no more columns than `is_in_force` compares, so that
    no more of them than the first in force are compared with others.
    The limit keeps both databases from merging the two queries, and a condition leaves the rows in their order; a join
    might not, so `is_in_force` has none. To sort them again takes SQLite four times as long.
    """
    day, known_day, spot_since = price_days(dated=key.known)
    compared = dict.fromkeys((*PRICE_KEY, "seen_until", "approximate_date", "listed_until", "ends_on", column.name))
    ordered = (
        select(*(run[name] for name in compared))
        .where(
            run.size_key == these.c.size_key,
            run.os == literal_text(key.os),
            known_on(run, day, known_day),
            *conditions,
            *([run.region.in_(region_binds(key.regions))] if key.regions else []),
        )
        .order_by(*order)
        .limit(literal_column(str(ALL_ROWS), BigInteger))
        .correlate(these)
        .subquery()
    )
    first = select(ordered.c[column.name]).where(is_in_force(ordered.c, day, known_day, spot_since))
    return first.limit(literal_column("1", Integer)).correlate(these).scalar_subquery()


def _keys_of(sizes: Select[Any]) -> FromClause:
    (key,) = sizes.subquery().c
    return select(key.label("size_key")).subquery("these")


def _past_prices(key: PriceScopeKey) -> FromClause:
    """Select prices by the purchase model of a scope, with the columns that `priced_in_all` reads of an offer."""
    of_this = (PRICE.c.os == literal_text(key.os), PRICE.c.purchase == literal_text(key.purchase))
    prices = prices_in_force(*price_days(dated=key.known), *of_this, rules=key.rules).subquery().c
    rank = cast(prices.usd_per_hour, Double).label(f"{key.purchase}_rank_usd")
    return select(prices.size_key, prices.region, prices.os, rank).subquery()


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


def literal_text(text: str) -> ColumnElement[str]:
    """Write a constant into the statement; only letters and underscores, so that no text of a client gets here."""
    if not text.isidentifier():
        raise ValueError(f"{text!r} is not an identifier")
    return literal_column(f"'{text}'", String)


def local_disk_gib() -> ColumnElement[float]:
    """Return the size of temporary and NVMe disks together, GiB; unknown only where both are.

    Where both have the same size they are one: pages call local NVMe disks temporary, and other sources NVMe.
    """
    some = func.coalesce(size.temp_disk_gib, 0.0) + func.coalesce(size.nvme_disk_gib, 0.0)
    has_disk = or_(size.temp_disk_gib.is_not(None), size.nvme_disk_gib.is_not(None))
    return case((size.temp_disk_gib == size.nvme_disk_gib, size.nvme_disk_gib), (has_disk, some))


def zones_there() -> ColumnElement[int]:
    """Return in how many zones of the region `region_0` the newest list has a size; unknown where none lists it."""
    there, source = table_of(Availability).c, table_of(Source).c
    newest = select(count_zones(there)).where(there.size_key == size.key, there.region == region_binds(1)[0])
    newest = newest.where(source.id == there.source_id).order_by(source.published_on.desc().nulls_last(), source.id)
    return newest.limit(literal_column("1", Integer)).correlate(SIZE).scalar_subquery()


def count_zones(there: Any) -> ColumnElement[int]:
    """Return how many zones a row of availability names; unknown where its source names none."""
    spaces = func.length(there.zones) - func.length(
        func.replace(there.zones, literal_column("' '"), literal_column("''"))
    )
    unknown = there.zones == literal_column(f"'{UNKNOWN_ZONES}'", String)
    return cast(case((unknown, None), (there.zones == literal_column("''", String), 0), else_=1 + spaces), Integer)


def gpu_memory_gib_on_one_gpu() -> ColumnElement[float]:
    """Return the memory that one GPU gives the VM, GiB: its slice for a fraction of a GPU; unknown without a count."""
    whole, a_slice = size.gpu_count >= 1, size.gpu_count < 1
    return case((a_slice, size.gpu_memory_gib), (whole, size.gpu_memory_gib_per_gpu))


def gpu_slice_gib() -> ColumnElement[float]:
    """Return the figure that `min_gpu_mem_per_gpu` is compared with: the slice of a GPU; null without a GPU."""
    return case((size.gpu_count > 0, gpu_memory_gib_on_one_gpu()))


def whole_gpu_gib() -> ColumnElement[float]:
    """Return the figure that `max_gpu_mem_per_gpu` is compared with: the whole GPU; null without a GPU."""
    return case((size.gpu_count > 0, size.gpu_memory_gib_per_gpu))
