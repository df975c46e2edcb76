"""Search prices: those in force on a day, or all up to it, of one size or of many; and merge them into lines.

Every statement reads the table in the order of its primary key, so that neither a page nor an export sorts anything,
but for the prices of one size in the order of the prices.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from itertools import chain, groupby
from operator import itemgetter
from typing import Annotated, Any, Literal, TypeVar

import orjson
from pydantic import AfterValidator, Field

from app.catalog.fields import FieldKind
from app.catalog.in_force import Rules, adjustment_json, is_in_force, known_on, last_observed, usd_per_hour
from app.catalog.names import region_key
from app.catalog.price_notes import price_note
from app.catalog.purchases import Purchase
from app.catalog.queries.exchange_rates import CurrencyRate, exchange_rate_json, find_exchange_rate
from app.catalog.queries.filters import FILTERS, ActiveFilter, Filter, active_filters, any_of, conditions_by, equals
from app.catalog.queries.lookups import (
    check_regions,
    check_regions_of_sizes,
    get_size_keys,
    place_regions,
    resolve_gpus,
    resolve_series,
)
from app.catalog.queries.pagination import Listing, SortKey, after_position, read_page, read_position
from app.catalog.queries.params import (
    KNOWN_AT,
    PRICED_OS,
    CurrencyParams,
    Day,
    GpuSet,
    JsonBool,
    LowerTextSet,
    Os,
    PageParams,
    PlaceParams,
    PlainText,
    ProviderSet,
    RegionSet,
    check_days,
    optional,
    several,
)
from app.catalog.queries.price_scope import PRICE_KEY, PriceScope
from app.catalog.queries.sizes import age_days
from app.catalog.queries.snapshot import Catalog
from app.catalog.statements import RAW, Statement, cached_statement
from app.db.dialects import Dialect, all_of
from app.db.statements import BoundStatement, Row, Rows
from app.errors import BadQuery, NotFound

PRICE_COLUMNS: Mapping[str, FieldKind] = {
    "size": "text",
    "region": "text",
    "os": "text",
    "purchase": "text",
    "valid_from": "date",
    "seen_until": "date",
    "usd_per_hour": "number",
    "approximate_date": "boolean",
    "source_id": "text",
    "known_from": "date",
    "price_age_days": "integer",
    "unusual": "boolean",
    "median_usd_per_hour": "number",
    "disputed": "boolean",
}
"""The columns of a price in the order of the list, each with its kind; its age is computed from `seen_until`."""

_COMPUTED = ("price_age_days", "unusual")
"""The columns that are computed from `seen_until` and `median_usd_per_hour`."""
PRICE_ROW_COLUMNS = (*(name for name in PRICE_COLUMNS if name not in _COMPUTED), "adjustment")
"""The columns of a row as the database returns it; the adjustment is JSON, or null where no rule applies."""


def _of_sizes(which: Filter) -> Filter:
    """Return the filter of the prices of the sizes that a filter of sizes finds; the database looks for these first."""

    def is_of_size(scope: PriceScope, value: Any) -> str:
        sizes = f"select size.key from size left join gpu on gpu.id = size.gpu_id where {which.sql(scope, value)}"
        return scope.sql.is_among("price.size_key", sizes)

    return Filter(is_of_size, which.values)


PRICE_FILTERS: dict[str, Filter] = {
    "size": any_of("price.size_key"),
    "series": _of_sizes(FILTERS["series"]),
    "gpu": _of_sizes(FILTERS["gpu"]),
    "region": any_of("price.region"),
    "os": equals("price.os"),
    "purchase": equals("price.purchase"),
}
"""Every filter of prices by its name, except the two days and `history`."""

TOTAL_FILTERS: Mapping[str, Filter] = {
    "region": any_of("price_total.region"),
    "os": equals("price_total.os"),
    "purchase": equals("price_total.purchase"),
}
"""The filters of prices by which totals are kept."""

PriceSort = Literal["region", "usd_per_hour"]


PRICE_ORDER = [
    SortKey(
        name=name,
        expression=f"price.{name}",
        kind=date if name in ("valid_from", "known_from") else str,
        nullable=False,
    )
    for name in PRICE_KEY
]


def _order(sort: PriceSort, usd: str = "usd_per_hour") -> list[SortKey]:
    """Return the order of a list: that of the table, or by price, which is given as SQL, and then that of the table."""
    by_price = SortKey(name="usd_per_hour", expression=usd, kind=float, nullable=False)
    return PRICE_ORDER if sort == "region" else [by_price, *PRICE_ORDER]


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceStatementKey:
    """All of a price search but its values: what its statement is cached under; `after` for a page after a cursor.

    With `known` prices are those known on a day. A history has list prices, so it has no rules.
    """

    filters: tuple[ActiveFilter, ...]
    history: bool
    rules: Rules = ()
    known: bool = False
    since: bool = False
    sort: PriceSort = "region"
    after: bool = False


@cached_statement(64, kinds=RAW)
def price_page_statement(sql: Dialect, key: PriceStatementKey) -> str:
    """Write the statement of a page; rows are PRICE_ROW_COLUMNS, then the key of the size."""
    return f"{_rows(sql, key, (*PRICE_ROW_COLUMNS, 'size_key'))} limit :limit"


@cached_statement(64, kinds=RAW)
def price_list_statement(sql: Dialect, key: PriceStatementKey, names: tuple[str, ...]) -> str:
    """Write the statement of a whole list; its rows have some of PRICE_ROW_COLUMNS."""
    return _rows(sql, key, names)


@cached_statement(64)
def price_count_statement(sql: Dialect, key: PriceStatementKey) -> str:
    """Write the statement that counts a list."""
    listed = all_of(*conditions_by(sql, PRICE_FILTERS, key.filters), _is_listed(sql, key))
    return f"select count(*) as total from price where {listed}"


@cached_statement(64)
def price_total_statement(sql: Dialect, key: PriceStatementKey) -> str:
    """Write the statement that takes the length of a list from the table of totals.

    The filters are among those of TOTAL_FILTERS, and nothing but the day says what was known.
    """
    day, number = sql.day("day"), "begun" if key.history else "in_force"
    of_day = (f"since <= {day}", f"until is null or until > {day}")
    return f"""
        select cast(coalesce(sum({number}), 0) as integer) as total from price_total
        where {all_of(*of_day, *conditions_by(sql, TOTAL_FILTERS, key.filters))}
    """


def _rows(sql: Dialect, key: PriceStatementKey, names: Sequence[str]) -> str:
    """Write the query of some columns of prices, in the order of a list.

    Booleans are left as the driver returns them: to convert each row takes longer than to make an item of it.
    """
    day, known_at = _days(sql, key)
    usd = f"cast({usd_per_hour(sql, 'price', day, key.rules)} as double precision)"
    columns = {
        "size": "size.name",
        "valid_from": "cast(price.valid_from as text)",
        "seen_until": f"cast({last_observed('price', day, known_at)} as text)",
        "usd_per_hour": usd,
        "known_from": "cast(price.known_from as text)",
        "median_usd_per_hour": f"cast({sql.usd_of('price.median_nano_usd')} as double precision)",
        "adjustment": adjustment_json(sql, "price", day, key.rules),
    }
    order, filters = _order(key.sort, usd), {condition.name for condition in key.filters}
    conditions = [
        # SQLite evaluates them in this order: what is not asked for is left out before others are looked for.
        _has_prices(sql, key),
        *conditions_by(sql, PRICE_FILTERS, key.filters),
        _is_listed(sql, key),
        *([after_position(order)] if key.after else []),
    ]
    # Every price has a size. An outer join keeps SQLite from reading all sizes first, and sorting the prices.
    return f"""
        select {", ".join(f"{columns.get(name, f'price.{name}')} as {name}" for name in names)}
        from price {"" if filters & {"series", "gpu"} else "left"} join size on size.key = price.size_key
        where {all_of(*conditions)}
        order by {", ".join(sort_key.order_by for sort_key in order)}"""


def _days(sql: Dialect, key: PriceStatementKey) -> tuple[str, str | None]:
    return sql.day("day"), sql.day("known") if key.known else None


def _is_listed(sql: Dialect, key: PriceStatementKey) -> str:
    days = _days(sql, key)
    if not key.history:
        return is_in_force("price", *days)
    begun = known_on("price", *days)
    return f"{begun} and {last_observed('price', *days)} >= {sql.day('since')}" if key.since else begun


def _has_prices(sql: Dialect, key: PriceStatementKey) -> str:
    """Write the condition that any price of the list's regions, system and purchase model has begun by its day.

    The prices themselves are in the order of sizes: all would be read before it is known that there are none.
    """
    of_group = (condition for condition in key.filters if condition.name in TOTAL_FILTERS)
    begun = all_of(f"since <= {sql.day('day')}", *conditions_by(sql, TOTAL_FILTERS, of_group))
    return f"exists (select 1 from price_total where {begun})"


class PriceFilter(PlaceParams):
    """Which prices, of whatever size."""

    region: RegionSet = several("In this region; in any of several.", "eastus")
    os: Os | None = optional(PRICED_OS)
    purchase: Purchase | None = optional("Of this purchase model.")
    as_of: Day | None = optional("In force on this day; default: today.", "2026-07-01")
    known_at: Day | None = optional(KNOWN_AT, "2026-09-01")
    history: JsonBool = Field(
        default=False, description="Every price up to that day, not only the one in force.", examples=[False]
    )


class PriceListSearch(PriceFilter, CurrencyParams, PageParams):
    """A page of prices, in which currency."""


class PriceSearch(PriceListSearch):
    """Which prices of a size, and in which order."""

    sort: PriceSort = Field(
        default="region",
        description="By region, system, purchase model and day, or by price, the lowest first.",
        examples=["usd_per_hour"],
    )


class PriceHistorySearch(PageParams):
    """Which prices of a size over time: those of one region, operating system and purchase model."""

    region: Annotated[PlainText, AfterValidator(region_key)] = Field(
        description="In this region.", examples=["westeurope"]
    )
    os: Os = Field(default="linux", description=PRICED_OS)
    purchase: Purchase = Field(default="on_demand", description="Of this purchase model.")
    since: Day | None = optional("Last observed on this day or later, by `until`; default: all.", "2024-01-01")
    until: Day | None = optional("First observed on this day or before; default: today.", "2026-09-01")
    known_at: Day | None = optional(KNOWN_AT, "2026-09-01")


class AllPricesFilter(PriceFilter):
    """Which prices, and of which sizes."""

    size: LowerTextSet = several("Of this size, by any of its names; of any of several.", "nd40rs_v2")
    series: LowerTextSet = several("Of the sizes of a series, by its id or name; of any of several.", "ndv2")
    provider: ProviderSet = ()
    gpu: GpuSet = several("Of sizes with this GPU: a name or a glob, as GET /sizes takes it.", "A100")


QUICK_ROWS = 100
"""In a small catalog, this many prices of a region are found within 2 ms."""

_QUICK = {"region", "os", "history", "currency", "limit", "fields"}
"""The parameters of pages whose totals are kept, which begin where the list does, and which most regions have.

A rare purchase model takes some milliseconds: the prices of all sizes are read.
"""


class AllPricesSearch(AllPricesFilter, PriceListSearch):
    """A page of prices."""

    @property
    def is_quick(self) -> bool:
        """Whether a page of a small catalog takes the database too little time to be handed to a thread."""
        return bool(self.region) and self.limit <= QUICK_ROWS and self.model_fields_set <= _QUICK


FilterT = TypeVar("FilterT", bound=AllPricesFilter)


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceListing(Listing):
    """A page of prices, with the exchange rate of a page that has them in another currency, too."""

    exchange_rate: CurrencyRate | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceHistoryListing(Listing):
    """A page of the prices of an offer over time, with the last day on which the vendor sold it if that is over."""

    sold_until: date | None


def find_prices(catalog: Catalog, name: str, search: PriceSearch) -> PriceListing:
    """Find one page of a size's prices; raises NotFound for the size, or BadQuery for a region or a day."""
    check_days(search, catalog.today)
    keys = get_size_keys(catalog, (name,), catalog.snapshot.series)
    check_regions_of_sizes(catalog, catalog.snapshot.regions, keys, search.region)
    search = place_regions(search, catalog.snapshot.regions)
    given = search.model_fields_set | {"size"}
    of_size = AllPricesSearch.model_construct(given, **dict(search), size=keys)
    return _find_page(catalog, of_size, sort=search.sort).without("size")


def find_price_history(catalog: Catalog, name: str, search: PriceHistorySearch) -> PriceHistoryListing:
    """Find one page of the prices of a size in a region over time; raises NotFound for the size, or BadQuery."""
    check_days(search, catalog.today)
    last = search.until or catalog.today
    if search.since is not None and search.since > last:
        default = "" if search.until else ", which is today (UTC)"
        raise BadQuery("since", search.since, f"must not be later than until={last}{default}")
    keys = get_size_keys(catalog, (name,), catalog.snapshot.series)
    check_regions_of_sizes(catalog, catalog.snapshot.regions, keys, (search.region,))
    given: dict[str, Any] = {
        "size": keys,
        "region": (search.region,),
        **search.model_dump(include={"os", "purchase", "known_at", "limit", "cursor"}),
        "as_of": search.until,
        "history": True,
    }
    prices = AllPricesSearch.model_construct(set(given), **given)
    page = _find_page(catalog, prices, since=search.since).without("size", "region", "os", "purchase", "price_age_days")
    ended = find_ended_sales(catalog, keys[0], last).get(search.purchase)
    return PriceHistoryListing(items=page.items, next_cursor=page.next_cursor, total=page.total, sold_until=ended)


def find_ended_sales(catalog: Catalog, size_key: str, day: date) -> dict[Purchase, date]:
    """Return the purchase models that the vendor no longer sells a size by on a day, with the last day of each."""
    for values in catalog.fetch(BoundStatement(_LAST_SALES, {"key": size_key})):
        ends: Iterable[tuple[Purchase, date | None]] = zip(("reserved_1y", "reserved_3y"), values, strict=True)
        return {purchase: end for purchase, end in ends if end is not None and end < day}
    return {}


_LAST_SALES = Statement(
    """
        select reserved_1y_until, reserved_3y_until from size join series on series.id = size.series_id
        where size.key = :key
    """,
    short=True,
)


def why_none_in_force(history: Mapping[str, Any]) -> str:
    """Return in words why no price of a history is in force."""
    ended = history["sold_until"]
    return f"the vendor sold it until {ended}" if ended else "newer lists lack it"


def find_all_prices(catalog: Catalog, search: AllPricesSearch) -> PriceListing:
    """Find one page of prices; raises BadQuery for a size, series, GPU or region that the catalog lacks, or a day."""
    check_days(search, catalog.today)
    return _find_page(catalog, normalize_prices(catalog, search))


def render_prices(listing: PriceListing) -> str:
    """Render a page of prices as JSON."""
    page: dict[str, Any] = {"items": listing.items, "next_cursor": listing.next_cursor, "total": listing.total}
    text = orjson.dumps(page, default=float).decode()
    if listing.exchange_rate is None:
        return text
    return f'{text[:-1]},"exchange_rate":{exchange_rate_json(listing.exchange_rate)}}}'


def normalize_prices(catalog: Catalog, filters: FilterT) -> FilterT:
    """Replace names of sizes, series and GPUs by those of the catalog; raises BadQuery for one that it lacks."""
    check_regions(catalog.snapshot.regions, "region", filters.region)
    named = filters.region
    filters = place_regions(filters, catalog.snapshot.regions, by_provider=True)
    if not (filters.size or filters.series or filters.gpu):
        return filters
    try:
        keys = get_size_keys(catalog, filters.size, catalog.snapshot.series) if filters.size else ()
    except NotFound as unknown:
        raise BadQuery("size", unknown.name, unknown.of_value("GET /sizes lists them")) from None
    check_regions_of_sizes(catalog, catalog.snapshot.regions, keys, named)
    gpus = resolve_gpus(catalog.snapshot.gpus, filters.gpu)
    series = resolve_series(catalog.snapshot.series, filters.series)
    return filters.model_copy(update={"size": keys, "series": series, "gpu": gpus})


def to_price_statement_key(
    filters: AllPricesFilter, today: date, rules: Rules
) -> tuple[PriceStatementKey, dict[str, Any]]:
    """Return the key of a normalized list's statement, and the statement's parameters."""
    active, values = active_filters(filters, PRICE_FILTERS, PRICE_FILTERS)
    rules, known_day = () if filters.history else rules, filters.known_at
    key = PriceStatementKey(filters=active, history=filters.history, rules=rules, known=known_day is not None)
    days = {"day": filters.as_of or today} | ({"known": known_day} if known_day is not None else {})
    return key, values | {name: day.isoformat() for name, day in days.items()}


def _find_page(
    catalog: Catalog, search: AllPricesSearch, *, since: date | None = None, sort: PriceSort = "region"
) -> PriceListing:
    rate = find_exchange_rate(catalog, search.currency, search.as_of or catalog.today)
    key, values = to_price_statement_key(search, catalog.today, catalog.snapshot.rules)
    identity = f"prices {search.model_dump_json(exclude=search.page_param_names())} {since} {sort} {catalog.today}"
    key = replace(key, sort=sort, since=since is not None)
    values |= {"limit": search.limit + 1} | ({"since": since.isoformat()} if since is not None else {})
    has_total = (
        since is None
        and search.known_at is None
        and TOTAL_FILTERS.keys() >= {condition.name for condition in key.filters}
    )
    count = price_total_statement if has_total else price_count_statement
    position = read_position(search.cursor, identity, _order(sort)) if search.cursor else None
    parameters = values if position is None else values | position.parameters
    page_key = key if position is None else replace(key, after=True)
    page = read_page(
        catalog,
        identity,
        BoundStatement(price_page_statement(page_key), parameters),
        lambda: BoundStatement(count(key), values),
        limit=search.limit,
        position=position,
        key_of=_key_of if sort == "region" else lambda row: [row[6], *_key_of(row)],
        to_items=lambda rows: _to_items(rows, catalog),
        kept=has_total,
    )
    if rate is not None:
        for item in page.items:
            price_per_hour = rate.convert_number(item["usd_per_hour"])
            item["converted"] = {"currency": rate.currency, "price_per_hour": price_per_hour}
    return PriceListing(items=page.items, next_cursor=page.next_cursor, total=page.total, exchange_rate=rate)


def _to_items(rows: Rows, catalog: Catalog) -> list[dict[str, Any]]:
    """Return the items of a page; a dict whose keys are written down is made in a third of the time of others."""
    ages = {day: age_days(day, catalog.today) for day in {row[5] for row in rows}}
    items: list[dict[str, Any]] = []
    for row in rows:
        size, region, os, purchase, valid_from, seen_until, usd, is_approximate, source, known_from = row[:10]
        median, is_disputed, adjustment = row[10:13]
        item = {
            "size": size, "region": region, "os": os, "purchase": purchase, "valid_from": valid_from,
            "seen_until": seen_until, "usd_per_hour": usd, "approximate_date": bool(is_approximate),
            "source_id": source, "known_from": known_from, "price_age_days": ages[seen_until],
            "unusual": median is not None, "median_usd_per_hour": median, "disputed": bool(is_disputed),
        }  # fmt: skip
        listed = usd
        if adjustment is not None:
            item["adjustment"] = orjson.loads(adjustment)
            listed = item["adjustment"]["list_usd_per_hour"]
        if (estimate := catalog.snapshot.explain_computed(source, row[-1], region, listed)) is not None:
            item["estimate"] = estimate
        items.append(item)
    return items


def _key_of(row: Row) -> list[Any]:
    """Return the PRICE_KEY of a row of a page; the key of its size is its last column."""
    _, region, os, purchase, valid_from, _, _, _, source_id, known_from, *_, key = row
    return [key, region, os, purchase, date.fromisoformat(valid_from), source_id, date.fromisoformat(known_from)]


Run = Mapping[str, Any]
"""A row of `find_price_history`, or one of `find_prices`, of a single offer; its days are ISO texts."""

_PRICE, _KEY = itemgetter("usd_per_hour"), itemgetter("valid_from", "source_id", "known_from")


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceLine:
    """A price with the runs of the lists that have it, the most recently seen last.

    `previous` is the price before: that of the line that was last seen before this one, of those that began earlier.
    """

    runs: tuple[Run, ...]
    previous: float | None
    in_force: bool

    @property
    def usd_per_hour(self) -> float:
        """The price, USD an hour."""
        price: float = _PRICE(self.runs[0])
        return price

    @property
    def change_percent(self) -> Decimal | None:
        """The change from the price before; None where there is none."""
        if self.previous is None:
            return None
        return 100 * (Decimal(str(self.usd_per_hour)) / Decimal(str(self.previous)) - 1)

    @property
    def since(self) -> str:
        """The first day on which a list has the price."""
        return _first_day(self.runs)

    @property
    def approximate_date(self) -> bool:
        """Whether only undated lists have it on that day."""
        return all(run["approximate_date"] for run in self.runs if run["valid_from"] == self.since)

    @property
    def last_seen(self) -> str:
        """The last day on which a list has the price."""
        day: str = self.runs[-1]["seen_until"]
        return day

    @property
    def sources(self) -> list[str]:
        """The ids of the lists, the most recently seen first."""
        return list(dict.fromkeys(run["source_id"] for run in reversed(self.runs)))

    def note(self, shown: Callable[[Any], str] = "{:g}".format) -> str | None:
        """Return the note on the most recently seen run: unusual, disputed, or None."""
        return price_note(self.runs[-1], shown=shown)


def merge_runs(runs: Iterable[Run], in_force: Run | None = None) -> list[PriceLine]:
    """Merge the runs of an offer into lines, in the order in which they were last seen.

    No line has the price of the one before it. `in_force` is the run in force: if it is among the runs, it is in the
    last line.
    """
    ordered = sorted(runs, key=itemgetter("known_from", "valid_from"))
    # As app.catalog.in_force has it: of what was last seen on one day, an exact date and the first source count more.
    ordered.sort(key=itemgetter("source_id"), reverse=True)
    ordered.sort(key=lambda run: (run["seen_until"], not run["approximate_date"]))
    groups = sorted(_find_agreeing(ordered), key=max)
    lines: list[PriceLine] = []
    for price, same in groupby(groups, key=lambda group: _PRICE(ordered[group[0]])):
        merged = tuple(ordered[place] for place in sorted(chain.from_iterable(same)))
        earlier = (line.usd_per_hour for line in reversed(lines) if line.since < _first_day(merged))
        line = PriceLine(
            runs=merged,
            previous=next((other for other in earlier if other != price), None),
            in_force=in_force is not None and _KEY(in_force) in map(_KEY, merged),
        )
        lines.append(line)
    return lines


def _first_day(runs: Sequence[Run]) -> str:
    day: str = min(run["valid_from"] for run in runs)
    return day


def _find_agreeing(runs: Sequence[Run]) -> Iterator[list[int]]:
    """Yield the indexes of runs with the same price that overlap or have no other price in between."""
    by_price = sorted(range(len(runs)), key=lambda place: (_PRICE(runs[place]), runs[place]["valid_from"]))
    for price, places in groupby(by_price, key=lambda place: _PRICE(runs[place])):
        others = [(run["valid_from"], run["seen_until"]) for run in runs if _PRICE(run) != price]
        group: list[int] = []
        last = ""
        for place in places:
            first = runs[place]["valid_from"]
            if last and first > last and any(begin < first and end > last for begin, end in others):
                yield group
                group = []
            group.append(place)
            last = max(last, runs[place]["seen_until"])
        yield group
