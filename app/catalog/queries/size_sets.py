"""The sizes of a revision in memory, and what was asked about them: which meet a condition, their prices, their orders.

SQL judges every condition. It is asked once for each revision, and its answer is kept as a set of bits: an integer
whose bit `n` is set if the size at place `n` meets it. Places are those of the keys, ascending. Lists, totals and
facets are then intersections (`&`), counts (`int.bit_count`) and walks in an order. A set of 1,600 sizes takes 200
bytes.

What is read while an ingest commits may be of two revisions. So the revision is read after all else, and where it has
moved CatalogChanged is raised: the question is to be asked again, of the new revision.
"""

from array import array
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from fractions import Fraction
from itertools import compress
from threading import Lock
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import Boolean, ColumnElement, Double, Integer, bindparam, cast, func, select, type_coerce

from app.catalog.adjustments import Rules
from app.catalog.in_force import PRICE, prices_in_force
from app.catalog.projections import UNIT_PRICE_FIELDS
from app.catalog.purchases import ANY_REGION
from app.catalog.queries.filters import (
    FILTERS,
    PRICE_FILTERS,
    SCOPE_FILTERS,
    ActiveFilter,
    active_filters,
    active_names,
    filter_condition,
)
from app.catalog.queries.pagination import current_revision
from app.catalog.queries.params import PRICE_SORT_KEYS, SIZE_COLUMNS, OfferParams
from app.catalog.queries.price_scope import (
    GPU,
    OFFER,
    SIZE,
    PriceScope,
    PriceScopeKey,
    gpu_slice_gib,
    literal_text,
    local_disk_gib,
    named_days,
    price_days,
    price_parameters,
    sizes_with_offers,
    status_of,
)
from app.catalog.queries.size_statements import join_tables, rows_statement
from app.catalog.queries.snapshot import CatalogSnapshot
from app.db.functions import ratio
from app.db.statements import BoundStatement, QueryPlan, Rows, Statement, cached_statement, pad_keys
from app.errors import CatalogChanged

T = TypeVar("T")

UNKNOWN = float("inf")
"""Stands for an unknown price, and sorts after every known one."""
_SIZES = 500
"""How many sizes' past prices are read at a time, to bound the rows in memory."""
IS_SET = ord("1")
MAX_ANSWER_BYTES = 24 * 2**20
"""The most memory that the answers of a revision take; then the oldest are dropped. A set of 1,600 sizes takes 200
bytes, prices of a region 13 kB, and those of all regions on one day 0.8 MB."""
_ANSWER_BYTES = 300
"""What an answer takes besides its own: its key, and its place among the others."""
_DIVIDED_BY = {
    "usd_per_vcpu_hour": "vcpus",
    "usd_per_memory_gib_hour": "memory_gib",
    "usd_per_gpu_hour": "gpu_count_numerator",
    "usd_per_gpu_gib_hour": "gpu_memory_gib",
}


class Prices(NamedTuple):
    """The sizes that have an offer, and their prices by place, USD an hour; UNKNOWN also for one without an offer."""

    offered: int
    usd: "array[float]"


class _Scope(NamedTuple):
    """Which prices a question asks for: those of today's offers unless it names a day."""

    os: str
    purchase: str
    regions: tuple[str, ...]
    as_of: date | None
    known_at: date | None


@dataclass(frozen=True, slots=True)
class SortColumn:
    """The values of a sort key by place. None and unknown prices come last in either direction."""

    values: Sequence[Any]
    descending: bool

    def sort(self, places: list[int]) -> list[int]:
        """Sort places stably."""
        values = self.values
        known = [place for place in places if values[place] is not None]
        known.sort(key=values.__getitem__, reverse=self.descending)
        return known if len(known) == len(places) else known + [place for place in places if values[place] is None]

    def is_after(self, place: int, value: Any) -> bool | None:
        """Return whether a size sorts after a value; None if it has that value."""
        own = self.values[place]
        if own == value:
            return None
        if own is None or value is None:
            return own is None
        return bool(own < value) if self.descending else bool(own > value)


class SizeSets:
    """The sizes of a revision by place, and the answers to what was asked about them.

    Answers never change, so that threads may share them: two that ask the same at once keep the same. `nbytes` is what
    the answers take.
    """

    def __init__(self, revision: str, keys: Sequence[str]) -> None:
        self.revision, self.keys = revision, keys
        self.places = {key: place for place, key in enumerate(keys)}
        self.nbytes = 0
        self._kept: dict[Hashable, Any] = {}
        self._adding = Lock()

    @property
    def all(self) -> int:
        """Return the set of all sizes."""
        return (1 << len(self.keys)) - 1

    def set_of(self, places: Iterable[int]) -> int:
        """Return the set of some places."""
        bits = bytearray(len(self.keys) // 8 + 1)
        for place in places:
            bits[place >> 3] |= 1 << (place & 7)
        return int.from_bytes(bits, "little")

    def set_of_keys(self, rows: Rows) -> int:
        """Return the set of the sizes whose keys are in the first column of some rows."""
        return self.set_of([self.place_of(row[0]) for row in rows])

    def place_of(self, key: str) -> int:
        """Return the place of a size; raises CatalogChanged for a key that only a newer revision can have."""
        place = self.places.get(key)
        if place is None:
            raise CatalogChanged
        return place

    def places_in(self, members: int) -> Iterator[int]:
        """Yield the places of a set, ascending."""
        return compress(range(len(self.keys)), map(IS_SET.__eq__, self.flags(members)))

    def flags(self, members: int) -> bytes:
        """Return one digit per place: IS_SET where the size is in the set."""
        return bin(members | 1 << len(self.keys))[:2:-1].encode()

    def keep(self, key: Hashable, ask: Callable[[], QueryPlan[T]]) -> QueryPlan[T]:
        """Return the answer from before, or ask; raises CatalogChanged if an ingest has committed in the meantime."""
        kept: T | None = self._kept.get(key)
        if kept is not None:
            return kept
        answer = yield from ask()
        if (yield from current_revision()) != self.revision:
            raise CatalogChanged
        with self._adding:
            if key not in self._kept:
                self._kept[key] = answer
                self.nbytes += _ANSWER_BYTES + _bytes_of(answer)
            while self.nbytes > MAX_ANSWER_BYTES:
                self.nbytes -= _ANSWER_BYTES + _bytes_of(self._kept.pop(next(iter(self._kept))))
        return answer

    def values(self, name: str, today: date | None = None) -> QueryPlan[Sequence[Any]]:
        """Return a figure of each size by place: a column, the family of its GPU, its status on a day, its local disks.

        A flag is 0, 1 or None.
        """

        def ask() -> QueryPlan[Sequence[Any]]:
            rows = yield BoundStatement(_values_statement(name), {"today": today.isoformat()} if today else {})
            if len(rows) != len(self.keys):
                raise CatalogChanged
            return tuple(row[0] for row in rows)

        return self.keep(("values", name, today if name == "status" else None), ask)


def load_sets(snapshot: CatalogSnapshot) -> QueryPlan[SizeSets]:
    """Load the keys of all sizes, or return the sets that are kept with the snapshot."""
    return snapshot.keep_sets(_read_keys)


def _read_keys(revision: str) -> QueryPlan[SizeSets]:
    rows = yield BoundStatement(_values_statement("key"), {})
    if (yield from current_revision()) != revision:
        raise CatalogChanged
    return SizeSets(revision, tuple(row[0] for row in rows))


def _bytes_of(answer: Any) -> int:
    """Return the memory of an answer, without the texts and numbers that answers share with others."""
    if isinstance(answer, Prices):
        return _bytes_of(answer.offered) + _bytes_of(answer.usd)
    if isinstance(answer, int):
        return answer.bit_length() // 8
    if isinstance(answer, array):
        return len(answer) * answer.itemsize
    return sum(map(_bytes_of, answer.values())) if isinstance(answer, Mapping) else 8 * len(answer)


class SizeQuestion:
    """A search for sizes: which meet its filters, their prices and their order. Only what is new is asked of SQL."""

    def __init__(self, sets: SizeSets, search: OfferParams, snapshot: CatalogSnapshot, today: date) -> None:
        self.sets, self.search, self._rules, self._today = sets, search, snapshot.rules, today
        days = named_days(search)
        self._scope = _Scope(
            search.os,
            search.purchase,
            search.region,
            (days.as_of or today) if days is not None else None,
            days.known_at if days is not None else None,
        )

    @property
    def names(self) -> list[str]:
        """Return which filters of sizes the search has."""
        return [name for name in active_names(self.search, FILTERS) if name not in SCOPE_FILTERS]

    @property
    def priced_by(self) -> Hashable:
        """Return what the price and the status in a row depend on: the key that rows are kept under."""
        return self._scope, self._today

    def rows_of(self, keys: Sequence[str]) -> BoundStatement:
        """Return the statement of the keys, JSON, status and offer of some sizes."""
        padded = pad_keys(keys)
        statement = rows_statement(PriceScopeKey.of(self.search, self._rules), len(padded))
        return BoundStatement(statement, self._parameters() | {f"key_{at}": key for at, key in enumerate(padded)})

    def found(self) -> QueryPlan[int]:
        """Find the sizes that meet all filters and have an offer."""
        found = yield from self.offered()
        for name in self.names:
            found &= yield from self.meets(name)
        return found

    def meets(self, name: str) -> QueryPlan[int]:
        """Find the sizes that meet one filter."""
        value = getattr(self.search, name)
        if name in PRICE_FILTERS:
            prices = yield from self.prices()
            return priced_within(self.sets, prices, name, value)
        scope: Hashable = {"status": self._today, "available_in": self._scope._replace(regions=())}.get(name)
        return (yield from self.sets.keep((name, value, scope), lambda: self._ask(name)))

    def orderable(self) -> QueryPlan[int]:
        """Find the sizes that are neither retired nor withdrawn."""

        def ask() -> QueryPlan[int]:
            statuses = yield from self.sets.values("status", self._today)
            return self.sets.set_of(at for at, status in enumerate(statuses) if status not in {"retired", "withdrawn"})

        return self.sets.keep(("orderable", self._today), ask)

    def offered(self) -> QueryPlan[int]:
        """Find the sizes that have an offer in the regions of the search."""
        if not self._scope.regions:
            return self.sets.all
        if self._scope.as_of is None:
            return (yield from self.prices()).offered
        return (yield from self.sets.keep(("offered", self._scope), self._ask_offered))

    def prices(self, purchase: str | None = None) -> QueryPlan[Prices]:
        """Find the prices of those offers by a purchase model; the default is that of the search."""
        purchase = purchase or self._scope.purchase
        return self.sets.keep(("prices", self._scope, purchase), lambda: self._ask_prices(purchase))

    def region_prices(self) -> QueryPlan[Mapping[str, Prices]]:
        """Find the prices in each region."""
        key = ("prices by region", self._scope._replace(regions=()))
        return self.sets.keep(key, self._ask_region_prices)

    def figures(self, name: str) -> QueryPlan[Sequence[Any]]:
        """Return a figure of each size by place; None where it is unknown, and for a price where there is no offer."""
        if name != "usd_per_hour":
            return (yield from self.sets.values(name, self._today))
        return _without_unknown((yield from self.prices()).usd)

    def gpu_counts(self) -> QueryPlan[Sequence[Fraction | None]]:
        """Return the exact number of GPUs of each size by place."""

        def ask() -> QueryPlan[Sequence[Fraction | None]]:
            above = yield from self.sets.values("gpu_count_numerator")
            below = yield from self.sets.values("gpu_count_denominator")
            exact = {pair: Fraction(*pair) for pair in set(zip(above, below, strict=True)) if None not in pair}
            return [exact.get(pair) for pair in zip(above, below, strict=True)]

        return self.sets.keep("gpu counts", ask)

    def order(self, names: Sequence[str]) -> QueryPlan["Sequence[int]"]:
        """Sort all sizes by some keys, the last of which is unique."""
        priced = any(is_price(name.removeprefix("-")) for name in names)

        def ask() -> QueryPlan[Sequence[int]]:
            places = list(range(len(self.sets.keys)))
            for column in reversed((yield from self.sort_columns(names))):
                places = column.sort(places)
            return array("I", places)

        return self.sets.keep(("order", tuple(names), self._scope if priced else None), ask)

    def sort_columns(self, names: Sequence[str]) -> QueryPlan[list[SortColumn]]:
        """Return the values of each sort key."""
        columns: list[SortColumn] = []
        for name in names:
            column = yield from self._sort_column(name)
            columns.append(column)
        return columns

    def _sort_column(self, name: str) -> QueryPlan[SortColumn]:
        """Return the values of a sort key."""
        descending, name = name.startswith("-"), name.removeprefix("-")
        if name == "name":
            return SortColumn(self.sets.keys, descending)
        if not is_price(name):
            return SortColumn((yield from self.sets.values(SIZE_COLUMNS[name])), descending)
        if name in PRICE_SORT_KEYS:
            prices = yield from self.prices(PRICE_SORT_KEYS[name])
            if not descending:
                return SortColumn(prices.usd, descending)
            return SortColumn(_without_unknown(prices.usd), descending)
        return SortColumn((yield from self._unit_prices(name)), descending)

    def _unit_prices(self, name: str) -> QueryPlan[Sequence[float | None]]:
        """Return prices of a vCPU, a GiB or a GPU, as `app.catalog.projections.unit_price` does in SQL."""
        prices = yield from self.prices()
        divisors = yield from self.sets.values(_DIVIDED_BY[name])
        factors: Iterable[int] = [1] * len(divisors)
        if name == "usd_per_gpu_hour":
            factors = yield from self.sets.values("gpu_count_denominator")
        return [
            ratio(usd, factor, divisor) if divisor and usd != UNKNOWN else None
            for usd, factor, divisor in zip(prices.usd, factors, divisors, strict=True)
        ]

    def _ask(self, name: str) -> QueryPlan[int]:
        (active,), values = active_filters(self.search, [name])
        statement = _condition_statement(active, replace(PriceScopeKey.of(self.search, self._rules), regions=0))
        rows = yield BoundStatement(statement, values | self._parameters())
        return self.sets.set_of_keys(rows)

    def _ask_offered(self) -> QueryPlan[int]:
        statement = _offered_statement(PriceScopeKey.of(self.search, self._rules))
        rows = yield BoundStatement(statement, self._parameters())
        return self.sets.set_of_keys(rows)

    def _ask_prices(self, purchase: str) -> QueryPlan[Prices]:
        statement = _prices_statement(PriceScopeKey.of(self.search, self._rules), purchase)
        rows = yield BoundStatement(statement, self._parameters())
        return self._to_prices(rows)

    def _ask_region_prices(self) -> QueryPlan[Mapping[str, Prices]]:
        os, purchase = self._scope.os, self._scope.purchase
        by_region: dict[str, list[tuple[str, float | None]]] = defaultdict(list)
        if self._scope.as_of is None:
            rows = yield BoundStatement(_region_prices_statement(os, purchase), self._parameters())
            for region, *offer in rows:
                by_region[region].append((offer[0], offer[1]))
        else:
            known = self._scope.known_at is not None
            statement, keys = _past_prices_statement(os, purchase, self._rules, known=known), self.sets.keys
            for start in range(0, len(keys), _SIZES):
                some = keys[start : start + _SIZES]
                bounds = {"first_key": some[0], "last_key": some[-1]}
                rows = yield BoundStatement(statement, self._parameters() | bounds)
                for key, region, usd in rows:
                    by_region[region].append((key, usd))
        return {region: self._to_prices(some) for region, some in by_region.items() if region not in _PSEUDO_REGIONS}

    def _parameters(self) -> dict[str, Any]:
        return price_parameters(self.search, self._today)

    def _to_prices(self, rows: Iterable[Sequence[Any]]) -> Prices:
        usd = array("d", [UNKNOWN]) * len(self.sets.keys)
        places = []
        for key, price in rows:
            place = self.sets.place_of(key)
            places.append(place)
            if price is not None:
                usd[place] = price
        return Prices(self.sets.set_of(places), usd)


_PSEUDO_REGIONS = frozenset(ANY_REGION.values())


def priced_within(sets: SizeSets, prices: Prices, name: str, bound: Any) -> int:
    """Return the sizes whose known price meets one of PRICE_FILTERS."""
    limit = float(bound)
    if name == "min_usd_per_hour":
        return sets.set_of(place for place, usd in enumerate(prices.usd) if limit <= usd < UNKNOWN)
    return sets.set_of(place for place, usd in enumerate(prices.usd) if usd <= limit)


def _without_unknown(prices: Sequence[float]) -> Sequence[float | None]:
    return [None if usd == UNKNOWN else usd for usd in prices]


def is_price(name: str) -> bool:
    """Return whether a sort key depends on prices."""
    return name in PRICE_SORT_KEYS or name in UNIT_PRICE_FIELDS


def place_after(order: Sequence[int], columns: Sequence[SortColumn], position: Sequence[Any]) -> int:
    """Return the index of the first size after a position, which is given by the values of the sort keys."""
    low, high = 0, len(order)
    while low < high:
        middle = (low + high) // 2
        comparisons = (column.is_after(order[middle], at) for column, at in zip(columns, position, strict=True))
        if next((is_after for is_after in comparisons if is_after is not None), False):
            high = middle
        else:
            low = middle + 1
    return low


@cached_statement(128)
def _values_statement(name: str) -> Statement:
    query = select(_figure(name).label("value")).select_from(SIZE)
    if name == "gpu_family":
        query = query.join(GPU, GPU.c.id == SIZE.c.gpu_id, isouter=True)
    return Statement(query.order_by(SIZE.c.key))


def _figure(name: str) -> ColumnElement[Any]:
    if name == "local_disk_gib":
        return local_disk_gib()
    if name == "status":
        return status_of(SIZE.c)
    if name == "gpu_family":
        return GPU.c.family
    if name == "gpu_slice_gib":
        return gpu_slice_gib()
    column: ColumnElement[Any] = SIZE.c[name]
    return type_coerce(column, Integer) if isinstance(column.type, Boolean) else column


@cached_statement(256)
def _condition_statement(active: ActiveFilter, key: PriceScopeKey) -> Statement:
    scope = sizes_with_offers(key)
    condition = filter_condition(active, scope)
    return Statement(join_tables(select(scope.key.label("key")), scope, [condition]).where(condition))


@cached_statement(64)
def _offered_statement(key: PriceScopeKey) -> Statement:
    scope = sizes_with_offers(key)
    return Statement(select(scope.key.label("key")).select_from(scope.source).where(scope.has_offer))


@cached_statement(64)
def _prices_statement(key: PriceScopeKey, purchase: str) -> Statement:
    scope = PriceScope.of_key(key)
    columns: tuple[ColumnElement[Any], ...] = (scope.key.label("key"), scope.rank_of(purchase).label("usd"))
    return Statement(select(*columns).select_from(scope.source).where(scope.has_offer))


@cached_statement(16)
def _region_prices_statement(os: str, purchase: str) -> Statement:
    scope = PriceScope.of_key(PriceScopeKey(os=os, purchase=purchase, regions=1))
    columns: tuple[ColumnElement[Any], ...] = (OFFER.c.region, OFFER.c.size_key, scope.rank.label("usd"))
    return Statement(select(*columns).where(OFFER.c.os == literal_text(os)))


@cached_statement(16)
def _past_prices_statement(os: str, purchase: str, rules: Rules, *, known: bool) -> Statement:
    """Build the statement of the prices of some sizes by region; null where only other purchase models have one."""
    key = PRICE.c.size_key
    of_sizes = (key >= bindparam("first_key", type_=key.type), key <= bindparam("last_key", type_=key.type))
    in_force = (
        prices_in_force(*price_days(known=known), PRICE.c.os == literal_text(os), *of_sizes, rules=rules).subquery().c
    )
    of_this = in_force.purchase == literal_text(purchase)
    usd = func.max(cast(in_force.usd_per_hour, Double)).filter(of_this)
    query = select(in_force.size_key, in_force.region, usd)
    return Statement(query.group_by(in_force.size_key, in_force.region))
