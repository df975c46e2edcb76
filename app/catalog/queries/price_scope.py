"""Which offers (region, OS, purchase model) a size query joins, and expressions over the columns of a size."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import orjson

from app.catalog.in_force import (
    Rules,
    UnevenRules,
    adjusted_nano_usd,
    earliest_spot_day,
    is_in_force,
    known_on,
    prices_in_force,
)
from app.catalog.names import UNKNOWN_ZONES
from app.catalog.projections import (
    COPIED_SIZE_COLUMNS,
    PRICE_COLUMNS,
    RANK_COLUMNS,
    cheapest_offers,
    rank_usd,
    side_by_side,
)
from app.catalog.purchases import ANY_REGION
from app.catalog.queries.params import OfferParams, PriceDayParams, QueryParams
from app.db.dialects import Dialect, any_of, columns_of, parameters
from app.db.statements import ALL_ROWS

KEYS = "keys"
"""The parameter of the keys of sizes as a JSON array, as `key_parameters` gives them."""
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
    """Which offers (region, OS, purchase model) a size query joins: one row of `offer` a size, where `has_offer`.

    `offer` is the name of the table of offers, `offers` how it is selected from. `cheapest` is a query of the keys of
    the offers that count, where they must be searched among several regions. `all_offers` are the offers of every
    region; those of a past day have only the columns that lists read. The regions and days of the scope are the
    parameters of `price_parameters`.
    """

    sql: Dialect
    os: str
    purchase: str
    offer: str = "offer"
    offers: str = "offer"
    has_offer: str = "true"
    cheapest: str = ""
    all_offers: str = "offer"

    @staticmethod
    def of_key(sql: Dialect, key: PriceScopeKey, sizes: str = "") -> "PriceScope":
        """Return the scope of a key; `sizes` is a query of the keys of the sizes that it is limited to.

        Prices, and the cheapest region, are then searched among these alone.
        """
        if key.past:
            return _past_scope(sql, key, sizes)
        of_os, regions = f"offer.os = '{_word(key.os)}'", parameters("region", max(1, key.regions))
        if key.regions <= 1:
            return PriceScope(
                sql=sql, os=key.os, purchase=key.purchase, has_offer=f"offer.region = {regions[0]} and {of_os}"
            )
        several = f"offer.region in ({', '.join(regions)}) and {of_os}"
        if sizes:
            several += f" and offer.size_key in ({sizes})"
        return PriceScope(
            sql=sql, os=key.os, purchase=key.purchase, cheapest=cheapest_offers(sql, key.purchase, several)
        )

    @staticmethod
    def for_keys(sql: Dialect, key: PriceScopeKey) -> "PriceScope":
        """Return the scope of the sizes of KEYS."""
        return PriceScope.of_key(sql, key, f"select key from size where {sql.is_listed('key', KEYS)}")

    @property
    def source(self) -> str:
        """Return what a query of offers selects from."""
        return f"({self.cheapest}) as cheapest join {self.offers} on {_SAME_OFFER}" if self.cheapest else self.offers

    def join_to_sizes(self) -> str:
        """Write the join of the offers to `size`; the columns of the offer are null for a size without one."""
        if self.cheapest:
            return f"""left join ({self.cheapest}) as cheapest on cheapest.size_key = size.key
                left join {self.offers} on {_SAME_OFFER}"""
        return f"left join {self.offers} on {self.key} = size.key and {self.has_offer}"

    @property
    def key(self) -> str:
        """Return the column of the size's key, which is its name without regard to case."""
        return "size.key" if self.offer == "size" else f"{self.offer}.size_key"

    @property
    def rank(self) -> str:
        """Return the price an hour by this purchase model, infinity where it is unknown."""
        return rank_usd(self.sql, self.offer, self.purchase)

    def column(self, name: str) -> str:
        """Return a column of the size, taken from the offer where that has a copy of it, which saves a join."""
        return f"{self.offer}.{name}" if name in COPIED_SIZE_COLUMNS else f"size.{name}"


_SAME_OFFER = "cheapest.region = offer.region and cheapest.os = offer.os and cheapest.size_key = offer.size_key"


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


def price_days(sql: Dialect, *, dated: bool) -> tuple[str, str | None, str]:
    """Write the days of a past scope that `is_in_force` takes, as `price_parameters` gives them."""
    return sql.day("priced_on"), sql.day("known_on") if dated else None, sql.day("spot_since")


def _past_scope(sql: Dialect, key: PriceScopeKey, sizes: str) -> PriceScope:
    """Return the scope of a past day, of all sizes or of a few; without regions sizes without any price are in it."""
    prices = side_by_side(sql, _past_prices_that_count(sql, key, sizes), adjusted=bool(key.rules))
    columns = [
        f"coalesce({name}, {sql.infinity}) as {name}" if name in RANK_COLUMNS else name for name in PRICE_COLUMNS
    ]
    offers = f"""(
        select size.key as size_key, prices.region as priced_in, {", ".join(columns)},
        {columns_of("size", COPIED_SIZE_COLUMNS)}
        from size {"" if key.regions else "left "}join ({prices}) as prices on prices.size_key = size.key
        {sizes and f"where size.key in ({sizes})"}
    ) as past_offer"""
    all_offers = _past_prices(sql, key)
    return PriceScope(
        sql=sql, os=key.os, purchase=key.purchase, offer="past_offer", offers=offers, all_offers=all_offers
    )


def _past_prices_that_count(sql: Dialect, key: PriceScopeKey, sizes: str) -> str:
    """Write a query of the prices of a past day in the region that counts for each of all sizes, or of a few.

    The keys of the sizes are named in any case: the table of prices begins with them, and is not read as a whole.
    """
    keys = sizes or "select key from size"
    meant, days = [f"price.os = '{_word(key.os)}'"], price_days(sql, dated=key.known)
    if key.regions == 1:
        meant += [f"price.size_key in ({keys})", "price.region = :region_0"]
        return prices_in_force(sql, *days, *meant, rules=key.rules)
    meant += ["price.size_key = cheapest.size_key", "price.region = cheapest.region"]
    meant += [f"price.size_key in ({keys})"] if sizes else []
    prices = prices_in_force(sql, *days, *meant, rules=key.rules, beside="cheapest")
    return f"with {_cheapest_regions(sql, key, keys)} {prices}"


def past_prices_by_size(sql: Dialect, key: PriceScopeKey, purchase: str) -> str:
    """Write a query of the price by a purchase model on a past day of all sizes that have any price there.

    It is null without that model. Lists are chosen and sorted by it, without the columns of an offer.
    """
    return f"""select size_key as key,
        max(cast(usd_per_hour as double precision)) filter (where purchase = '{_word(purchase)}') as usd
        from ({_past_prices_that_count(sql, key, "")}) as price group by size_key"""


def scope_of_sizes(sql: Dialect, key: PriceScopeKey) -> PriceScope:
    """Return the scope of all sizes without a join to their offers, which filters of sizes are judged in."""
    all_offers = _past_prices(sql, key) if key.past else "offer"
    return PriceScope(sql=sql, os=key.os, purchase=key.purchase, offer="size", offers="size", all_offers=all_offers)


def _cheapest_regions(sql: Dialect, key: PriceScopeKey, sizes: str) -> str:
    """Write the table `cheapest`: where each size was cheapest, of several regions or of all; null without any price.

    The prices of a size are sorted, the cheapest by list price first. By rules another region may be cheaper, or as
    cheap: `_dearest_rivals` says up to which list price.

    A size that has no price by the purchase model of the scope is in the region where it was cheapest on demand, or in
    the first where it has any price. The tables are materialized, because the databases would otherwise compute the
    prices of all regions and throw most of them away.
    """
    day, tables, these = (
        price_days(sql, dated=False)[0],
        "",
        f"({sizes.replace('select key', 'select key as size_key')}) as these",
    )
    paid = adjusted_nano_usd(sql, "run", day, key.rules)
    bought = [f"run.purchase = '{_word(key.purchase)}'", *_is_usual(key)]
    if key.rules:
        tables, these = f"rival as materialized ({_dearest_rivals(sql, key, these)}), ", "rival as these"
        uneven = UnevenRules.of(key.rules, key.os, key.purchase)
        bought.append(any_of("run.nano_usd_per_hour <= these.most_nano_usd", *uneven.names("run.region")))
    cheapest = _first_in_force(sql, "region", key, *bought, order=f"{paid}, run.region")
    on_demand = ("run.purchase = 'on_demand'", *_is_usual(key))
    listed = _first_in_force(sql, "region", key, *on_demand, order=f"{paid}, run.region")
    any_price = _first_in_force(sql, "region", key, order="run.region")
    return f"""{tables}cheapest as materialized (
        select these.size_key, coalesce(({cheapest}), ({listed}), ({any_price})) as region from {these}
    )"""


def _dearest_rivals(sql: Dialect, key: PriceScopeKey, these: str) -> str:
    """Write a query of the list price up to which a region may be the cheapest of a size, if no rule names it."""
    uneven = UnevenRules.of(key.rules, key.os, key.purchase)
    even = [f"run.purchase = '{_word(key.purchase)}'", *_is_usual(key)]
    even += [f"not {named}" for named in uneven.names("run.region")]
    least = _first_in_force(sql, "nano_usd_per_hour", key, *even, order="run.nano_usd_per_hour")
    bounded = f"({least}) + {uneven.tie_nano_usd}"
    if uneven.levelling:
        levels = uneven.levels("these", price_days(sql, dated=False)[0])
        bounded = f"case when {levels} then {2**63 - 1} else {bounded} end"
    return f"select these.size_key, {bounded} as most_nano_usd from {these}"


def _is_usual(key: PriceScopeKey) -> list[str]:
    """Write the condition that a price may be the cheapest: an unusual one is, only in a region that is asked for."""
    return [] if key.regions else ["run.median_nano_usd is null"]


def _first_in_force(sql: Dialect, column: str, key: PriceScopeKey, *conditions: str, order: str) -> str:
    """Write a query of a column of the first price in force of a size of `these`, in the regions of a scope.

    The few prices of a size that have begun are sorted first, with no more columns than `is_in_force` compares, so that
    no more of them than the first in force are compared with others.
    The limit keeps both databases from merging the two queries, and a condition leaves the rows in their order; a join
    might not, so `is_in_force` has none. To sort them again takes SQLite four times as long.
    """
    day, known_day, spot_since = price_days(sql, dated=key.known)
    compared = dict.fromkeys((*PRICE_KEY, "seen_until", "approximate_date", "listed_until", "ends_on", column))
    of_regions = [f"run.region in ({', '.join(parameters('region', key.regions))})"] if key.regions else []
    begun = ("run.size_key = these.size_key", f"run.os = '{_word(key.os)}'", known_on("run", day, known_day))
    return f"""select first.{column} from (
            select {columns_of("run", compared)} from price as run
            where {" and ".join((*begun, *conditions, *of_regions))} order by {order} limit {ALL_ROWS}
        ) as first where {is_in_force("first", day, known_day, spot_since)} limit 1"""


def _past_prices(sql: Dialect, key: PriceScopeKey) -> str:
    """Write a query of prices by the purchase model of a scope, with the columns that `priced_in_all` reads."""
    of_this = (f"price.os = '{_word(key.os)}'", f"price.purchase = '{_word(key.purchase)}'")
    prices = prices_in_force(sql, *price_days(sql, dated=key.known), *of_this, rules=key.rules)
    rank = f"cast(usd_per_hour as double precision) as {key.purchase}_rank_usd"
    return f"(select size_key, region, os, {rank} from ({prices}) as price)"


def status_of(sql: Dialect, table: str) -> str:
    """Write the status of a size, or of its offer, on the day `today`: retired from its date on, retiring before it.

    A size that was withdrawn without a date stays withdrawn, whatever else is announced.
    """
    return f"""case when {table}.retirement_date <= {sql.day("today")} then 'retired'
        when {table}.withdrawn is true then 'withdrawn' when {table}.retirement_date is not null then 'retiring'
        when {table}.preview is true then 'preview' else 'current' end"""


def _word(text: str) -> str:
    """Check a word that is written into a statement: only letters and underscores, and so no text of a client."""
    if not text.isidentifier():
        raise ValueError(f"{text!r} is not an identifier")
    return text


LOCAL_DISK_GIB = """case when size.temp_disk_gib = size.nvme_disk_gib then size.nvme_disk_gib
    when size.temp_disk_gib is not null or size.nvme_disk_gib is not null
    then coalesce(size.temp_disk_gib, 0.0) + coalesce(size.nvme_disk_gib, 0.0) end"""
"""The size of temporary and NVMe disks together, GiB; unknown only where both are.

Where both have the same size they are one: pages call local NVMe disks temporary, and other sources NVMe.
"""


def count_zones(there: str) -> str:
    """Write how many zones a row of availability names; unknown where its source names none."""
    return f"""case when {there}.zones = '{UNKNOWN_ZONES}' then null when {there}.zones = '' then 0
        else 1 + length({there}.zones) - length(replace({there}.zones, ' ', '')) end"""


ZONES = f"""(select {count_zones("there")} from availability as there join source on source.id = there.source_id
    where there.size_key = size.key and there.region = :region_0
    order by source.published_on desc nulls last, source.id limit 1)"""
"""In how many zones of the region `region_0` the newest list has a size; unknown where none lists it."""

GPU_MEMORY_GIB_ON_ONE_GPU = """case when size.gpu_count < 1 then size.gpu_memory_gib
    when size.gpu_count >= 1 then size.gpu_memory_gib_per_gpu end"""
"""The memory that one GPU gives the VM, GiB: its slice for a fraction of a GPU; unknown without a count."""

GPU_SLICE_GIB = f"case when size.gpu_count > 0 then {GPU_MEMORY_GIB_ON_ONE_GPU} end"
"""The figure that `min_gpu_mem_per_gpu` is compared with: the slice of a GPU; null without a GPU."""

WHOLE_GPU_GIB = "case when size.gpu_count > 0 then size.gpu_memory_gib_per_gpu end"
"""The figure that `max_gpu_mem_per_gpu` is compared with: the whole GPU; null without a GPU."""
