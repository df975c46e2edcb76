"""The sizes of a revision in memory, and what was asked about them: which meet a condition, their prices, their orders.

SQL judges every condition. It is asked once for each revision, and its answer is kept as a set of bits: an integer
whose bit `n` is set if the size at place `n` meets it. Bounds alone are compared here, with the figures and prices that
SQL gave. Places are those of the keys, ascending. Lists, totals and facets are then intersections (`&`), counts
(`int.bit_count`) and walks in an order. A set of 1,600 sizes takes 200 bytes. Only exports read a whole list by one
statement.

"""

import re
from array import array
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from fractions import Fraction
from functools import lru_cache, partial, reduce
from itertools import compress
from operator import ge, le, or_
from typing import Any, NamedTuple

from app.catalog.fields import APPLIES_WITH, SHOWN_FIELDS
from app.catalog.in_force import Rules, prices_in_force
from app.catalog.projections import SPOT_SAVING, UNIT_PRICES, offer_json, rank_usd
from app.catalog.queries.filters import (
    FILTERS,
    PRICE_FILTERS,
    SCOPE_FILTERS,
    ActiveFilter,
    active_filters,
    active_names,
    check_sort,
    filter_condition,
    to_sort_keys,
)
from app.catalog.queries.params import (
    FACET_OF_PARAM,
    PRICE_SORT_KEYS,
    SIZE_COLUMNS,
    OfferParams,
    SizeList,
    SizeSelection,
)
from app.catalog.queries.price_scope import (
    GPU_MEMORY_GIB_ON_ONE_GPU,
    GPU_SLICE_GIB,
    KEYS,
    LOCAL_DISK_GIB,
    WHOLE_GPU_GIB,
    ZONES,
    PriceScope,
    PriceScopeKey,
    count_zones,
    key_parameters,
    named_days,
    past_prices_by_size,
    price_days,
    price_parameters,
    scope_of_sizes,
    status_of,
)
from app.catalog.queries.snapshot import Catalog
from app.catalog.statements import DAYS, Statement, cached_statement
from app.db.dialects import Dialect
from app.db.functions import ratio
from app.db.statements import BoundStatement, Rows
from app.errors import CatalogChanged


def list_query(search: SizeList, today: date, rules: Rules) -> BoundStatement:
    """Return the query of a whole normalized list in its order; raises BadQuery for its sort."""
    check_sort(search.sort)
    filters, values = active_filters(search, FILTERS)
    statement = _list_statement(PriceScopeKey.of(search, rules), filters, search.sort)
    return BoundStatement(statement, values | price_parameters(search, today))


@cached_statement(64)
def _list_statement(
    sql: Dialect, scope_key: PriceScopeKey, filters: tuple[ActiveFilter, ...], sort: tuple[str, ...]
) -> str:
    """Write the statement of a whole list; rows begin as those of a page."""
    scope = PriceScope.of_key(sql, scope_key)
    conditions = [filter_condition(active, scope) for active in filters if active.name not in SCOPE_FILTERS]
    order = ", ".join(sort_key.order_by for sort_key in to_sort_keys(sort, scope))
    return f"""select size_doc.doc, {_row_columns(scope)} from {scope.source}
        {_joins(scope, " ".join((*conditions, order)))} join size_doc on size_doc.size_key = {scope.key}
        where {" and ".join((scope.has_offer, *conditions))} order by {order}"""


@lru_cache(maxsize=64)
def rows_statement(scope_key: PriceScopeKey, *, short: bool = False) -> Statement:
    """Return the statement of the sizes of KEYS: their keys, and then what rows of pages have; `short` for one size."""
    return Statement(lambda sql: _select_rows(sql, scope_key), short=short)


def _select_rows(sql: Dialect, scope_key: PriceScopeKey) -> str:
    scope = PriceScope.for_keys(sql, scope_key)
    return f"""select {scope.key} as key, size_doc.doc, {_row_columns(scope)} from {scope.source}
        join size_doc on size_doc.size_key = {scope.key}
        where {scope.has_offer} and {sql.is_listed(scope.key, KEYS)}"""


def _joins(scope: PriceScope, used: str) -> str:
    """Write the join of the size, and its GPU, to the offers where an expression uses one of their columns."""
    joins = f"join size on size.key = {scope.key} " if "size." in used and scope.offer != "size" else ""
    return joins + ("left join gpu on gpu.id = size.gpu_id" if "gpu." in used else "")


def _row_columns(scope: PriceScope) -> str:
    """Write what a size is rendered from besides its own JSON."""
    offer = offer_json(scope.sql, scope.offer, scope.purchase)
    return f"{status_of(scope.sql, scope.offer)} as status, {offer} as offer"


UNKNOWN = float("inf")
"""Stands for an unknown price, and sorts after every known one."""
_SIZES = 500
"""How many sizes' past prices are read at a time, to bound the rows in memory."""
IS_SET = ord("1")
NATURAL_NAME = "natural_name"
"""The sort key of pages for names, whose numbers it takes as numbers: D2 is before D16."""

_STEP = 64
"""Of how many sizes, by price, a set is kept."""


class SizePrices(NamedTuple):
    """The sizes that have an offer, and their prices by place, USD an hour; UNKNOWN also for one without an offer."""

    offered: int
    usd: "array[float]"


class RegionOffers(NamedTuple):
    """The sizes that have an offer in a region; those with a known price by place, and that price, USD an hour.

    A region has sizes of one provider: prices by place of all sizes would be mostly empty.
    """

    offered: int
    places: "array[int]"
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
        stated = [place for place in places if values[place] is not None]
        stated.sort(key=values.__getitem__, reverse=self.descending)
        return stated if len(stated) == len(places) else stated + [place for place in places if values[place] is None]

    def is_after(self, place: int, value: Any) -> bool | None:
        """Return whether a size sorts after a value; None if it has that value."""
        own = self.values[place]
        if own == value:
            return None
        if own is None or value is None:
            return own is None
        return bool(own < value) if self.descending else bool(own > value)


class SizeSets:
    """The sizes of a revision by place: their keys, ascending; `all` is the set of them all."""

    def __init__(self, keys: Sequence[str]) -> None:
        self.keys = keys
        self.places = {key: place for place, key in enumerate(keys)}
        self.all = (1 << len(keys)) - 1

    def __len__(self) -> int:
        return len(self.keys)

    def set_of(self, places: Iterable[int]) -> int:
        """Return the set of some places."""
        bits = bytearray(len(self.keys) // 8 + 1)
        for place in places:
            bits[place >> 3] |= 1 << (place & 7)
        return int.from_bytes(bits, "little")

    def set_of_keys(self, rows: Rows) -> int:
        """Return the set of the sizes whose keys are in the first column of some rows."""
        return self.set_of(self.places_of([row[0] for row in rows]))

    def place_of(self, key: str) -> int:
        """Return the place of a size; raises CatalogChanged for a key that only a newer revision can have."""
        return self.places_of((key,))[0]

    def places_of(self, keys: Iterable[str]) -> Sequence[int]:
        """Return the places of some sizes, as `place_of` does."""
        try:
            return [*map(self.places.__getitem__, keys)]
        except KeyError:
            raise CatalogChanged from None

    def places_in(self, members: int) -> Iterator[int]:
        """Yield the places of a set, ascending."""
        return compress(range(len(self.keys)), map(IS_SET.__eq__, self.flags(members)))

    def flags(self, members: int) -> bytes:
        """Return one digit per place: IS_SET where the size is in the set."""
        return bin(members | 1 << len(self.keys))[:2:-1].encode()


_FIGURES = {
    name: field
    for name, field in FACET_OF_PARAM.items()
    if name not in SizeSelection.model_fields or SHOWN_FIELDS[field].kind != "text"
}
"""What filters of a VM itself are about; a size of which that is unknown may match."""


class SizeQuestion:
    """A search for sizes: which meet its filters, their prices and their order. Only what is new is asked of SQL.

    `names` are its filters of sizes. The price and the status in a row depend on what it is `priced_by`.
    """

    def __init__(self, catalog: Catalog, search: OfferParams) -> None:
        self.search, self.catalog, self._today = search, catalog, catalog.today
        keys = BoundStatement(_values_statement("key"), {})
        self.sets: SizeSets = catalog.keep("keys", lambda: SizeSets([key for (key,) in catalog.fetch(keys)]))
        self._key = PriceScopeKey.of(search, catalog.snapshot.rules)
        days = named_days(search)
        self._scope = _Scope(
            search.os,
            search.purchase,
            search.region,
            (days.as_of or catalog.today) if days is not None else None,
            days.known_at if days is not None else None,
        )
        self.names = [name for name in active_names(search, FILTERS) if name not in SCOPE_FILTERS]
        self.priced_by = (self._scope, catalog.today)
        self._parameters = price_parameters(search, catalog.today)

    def rows_of(self, keys: Sequence[str]) -> BoundStatement:
        """Return the statement of the keys, JSON, status and offer of some sizes."""
        return BoundStatement(rows_statement(self._key), self._parameters | key_parameters(keys))

    def found(self) -> int:
        """Find the sizes that meet all filters and have an offer."""
        matching = self.offered()
        for name in self.names:
            matching &= self.meets(name)
        return matching

    def meets(self, name: str) -> int:
        """Find the sizes that meet one filter."""
        value = getattr(self.search, name)
        if name in PRICE_FILTERS:
            return self.price_steps().within(name, float(value))
        if figure := FILTERS[name].figure:
            return self._within(name, figure)
        scopes: Mapping[str, Hashable] = {
            "status": self._today,
            "available_in": self._scope._replace(regions=()),
        }

        def ask() -> int:
            (active,), values = active_filters(self.search, [name])
            statement = _condition_statement(active, replace(self._key, regions=0))
            rows = self.catalog.fetch(BoundStatement(statement, {**values, **self._parameters}))
            return self.sets.set_of_keys(rows)

        return self.catalog.keep((name, value, scopes.get(name)), ask)

    def _within(self, name: str, figure: str) -> int:
        """Find the sizes whose figure meets a bound; a figure has few values, and clients ask for any bound."""
        (bound,) = active_filters(self.search, [name])[1].values()
        meets = partial(le if name.startswith("min_") else ge, bound)
        of_values = self.sets_by_value(figure).items()
        return reduce(or_, (sizes for value, sizes in of_values if value is not None and meets(value)), 0)

    def undecided(self) -> Mapping[str, int]:
        """Find the sizes that may match, by the unknown figure of theirs that a filter is on.

        As far as their figures are known, they meet all filters. A figure that does not apply to a size, such as the
        memory of no GPU, is not unknown.
        """
        figures = {name: _FIGURES[name] for name in self.names if name in _FIGURES}
        if not figures:
            return {}
        unknown = {name: self._unknown(field) for name, field in figures.items()}
        if getattr(self.search, "fabric", None) == "infiniband":
            unknown["fabric"] &= ~self.sets_by_value("infiniband").get(0, 0)  # some other fabric, or none
        possible = self.offered()
        for name in self.names:
            possible &= self.meets(name) | unknown.get(name, 0)
        by_field = {field: unknown[name] & possible for name, field in figures.items()}
        return {field: sizes for field, sizes in by_field.items() if sizes}

    def _unknown(self, field: str) -> int:
        if field == "usd_per_hour":
            return self.prices().offered & ~self.price_steps().priced
        return self.sets_by_value(field).get(None, 0) & ~self.inapplicable(field)

    def inapplicable(self, field: str) -> int:
        """Find the sizes that a figure does not apply to, so that null does not mean unknown."""
        return self.sets_by_value(APPLIES_WITH[field]).get(0, 0) if field in APPLIES_WITH else 0

    def orderable(self) -> int:
        """Find the sizes that are neither retired nor withdrawn."""

        def ask() -> int:
            statuses = self.values("status")
            return self.sets.set_of(at for at, status in enumerate(statuses) if status not in {"retired", "withdrawn"})

        return self.catalog.keep(("orderable", self._today), ask)

    def offered(self) -> int:
        """Find the sizes that have an offer in the regions of the search."""
        return self.prices().offered if self._scope.regions else self.sets.all

    def prices(self, purchase: str | None = None) -> SizePrices:
        """Find the prices of those offers by a purchase model; the default is that of the search."""
        purchase = purchase or self._scope.purchase
        return self.catalog.keep(("prices", self._scope, purchase), lambda: self._ask_prices(purchase))

    def region_prices(self) -> Mapping[str, RegionOffers]:
        """Find the prices in each region."""
        key = ("prices by region", self._scope._replace(regions=()))
        return self.catalog.keep(key, self._ask_region_prices)

    def in_zones(self, least: int) -> Mapping[str, int]:
        """Find the sizes that the newest list has in at least that many zones of a region, by region."""

        def ask() -> Mapping[str, int]:
            zones: dict[str, dict[int, int | None]] = defaultdict(dict)
            for region, key, count in self.catalog.fetch(BoundStatement(_zones_statement())):
                zones[region][self.sets.place_of(key)] = count
            return {
                region: self.sets.set_of(
                    place for place, count in sizes.items() if count is not None and count >= least
                )
                for region, sizes in zones.items()
            }

        return self.catalog.keep(("zones by region", least), ask)

    def price_steps(self) -> "PriceSteps":
        """Find the sizes by their prices under the purchase model of the search."""

        def ask() -> PriceSteps:
            prices = self.prices()
            places = self.sets.places_in(prices.offered)
            priced = ((usd, place) for place in places if (usd := prices.usd[place]) != UNKNOWN)
            return PriceSteps(self.sets, priced)

        return self.catalog.keep(("steps", self._scope), ask)

    def region_price_steps(self) -> Mapping[str, "PriceSteps"]:
        """Find the sizes in each region by their prices."""
        key = ("steps by region", self._scope._replace(regions=()))
        prices = self.region_prices()
        return self.catalog.keep(
            key,
            lambda: {code: PriceSteps(self.sets, zip(of.usd, of.places, strict=True)) for code, of in prices.items()},
        )

    def values(self, name: str) -> Sequence[Any]:
        """Return a figure of each size by place: a column, the family of its GPU, its status, its local disks.

        A flag is 0, 1 or None.
        """

        def ask() -> Sequence[Any]:
            return self._read_values((name,), dict(self._depends_on(name)))[0]

        return self.catalog.keep(("values", name, self._depends_on(name)), ask)

    def read_together(self, names: Sequence[str]) -> None:
        """Read some columns of sizes by one statement, in a fifth of the time that one for each takes."""
        if any(self.catalog.kept(("values", name, ())) is None for name in names):
            for name, values in zip(names, self._read_values(names, {}), strict=True):
                self.catalog.keep(("values", name, ()), partial(tuple, values))

    def _read_values(self, names: Sequence[str], parameters: Mapping[str, Any]) -> Sequence[Sequence[Any]]:
        rows = self.catalog.fetch(BoundStatement(_values_statement(*names), parameters))
        if len(rows) != len(self.sets):
            raise CatalogChanged
        # Equal values of a column become the same object: most columns have few, and take a fraction of the memory.
        columns = [tuple(map({}.setdefault, values, values)) for values in zip(*rows, strict=True)]
        return columns or [()] * len(names)

    def _depends_on(self, name: str) -> tuple[tuple[str, str], ...]:
        """Return what a figure depends on besides the size: parameters of its statement."""
        if name == "status":
            return (("today", self._today.isoformat()),)
        regions = self._scope.regions
        return (("region_0", regions[0] if len(regions) == 1 else ""),) if name == "zones" else ()

    def sets_by_value(self, name: str) -> Mapping[Any, int]:
        """Return the sizes that have each value of a figure, ascending; unknown ones come last, under None."""

        def ask() -> Mapping[Any, int]:
            places = defaultdict[Any, list[int]](list)
            for place, value in enumerate(self.values(name)):
                places[value].append(place)
            values = [*sorted(value for value in places if value is not None), *(None for _ in places.keys() & {None})]
            return {value: self.sets.set_of(places[value]) for value in values}

        return self.catalog.keep(("by value", name, self._depends_on(name)), ask)

    def figures(self, name: str) -> Sequence[Any]:
        """Return a figure of each size by place; None where it is unknown, and for a price where there is no offer."""
        if name != "usd_per_hour":
            return self.values(name)
        return [None if usd == UNKNOWN else usd for usd in self.prices().usd]

    def gpu_counts(self) -> Sequence[Fraction | None]:
        """Return the exact number of GPUs of each size by place."""

        def ask() -> Sequence[Fraction | None]:
            above = self.values("gpu_count_numerator")
            below = self.values("gpu_count_denominator")
            exact = {pair: Fraction(*pair) for pair in set(zip(above, below, strict=True)) if None not in pair}
            return [exact.get(pair) for pair in zip(above, below, strict=True)]

        return self.catalog.keep("gpu counts", ask)

    def order(self, names: Sequence[str]) -> Sequence[int]:
        """Sort all sizes by some keys, the last of which is unique."""
        priced = any(is_price(name.removeprefix("-")) for name in names)

        def ask() -> Sequence[int]:
            places = list(range(len(self.sets.keys)))
            for name in reversed(names):
                places = self.sort_column(name).sort(places)
            return array("I", places)

        return self.catalog.keep(("order", tuple(names), self._scope if priced else None), ask)

    def sort_column(self, name: str) -> SortColumn:
        """Return the values of a sort key."""
        descending, name = name.startswith("-"), name.removeprefix("-")
        if name == "name":
            return SortColumn(self.sets.keys, descending)
        if name == NATURAL_NAME:
            keys = (re.split(r"(\d+)", key) for key in self.sets.keys)
            return SortColumn([[int(part) if part.isdecimal() else part for part in key] for key in keys], descending)
        if not is_price(name):
            return SortColumn(self.values(SIZE_COLUMNS[name]), descending)
        if name in PRICE_SORT_KEYS:
            prices = self.prices(PRICE_SORT_KEYS[name])
            return SortColumn(_PricesOrNone(prices.usd) if descending else prices.usd, descending)
        amounts = self._spot_savings() if name == SPOT_SAVING else self._unit_prices(name)
        return SortColumn(_PricesOrNone(amounts), descending)

    def _unit_prices(self, name: str) -> "array[float]":
        """Return prices of a vCPU, a GiB or a GPU, as `app.catalog.projections.unit_price` does in SQL."""

        def ask() -> "array[float]":
            factor, divisor = UNIT_PRICES[name]
            divisors = self.values(divisor)
            factors = self.values(factor) if isinstance(factor, str) else [factor] * len(divisors)
            unit_prices = (
                ratio(usd, factor, divisor) if divisor and usd != UNKNOWN else None
                for usd, factor, divisor in zip(self.prices().usd, factors, divisors, strict=True)
            )
            return array("d", (UNKNOWN if usd is None else usd for usd in unit_prices))

        return self.catalog.keep(("unit prices", name, self._scope), ask)

    def _spot_savings(self) -> "array[float]":
        """Return by how much spot prices are lower, as `app.catalog.projections.spot_saving` does in SQL."""

        def ask() -> "array[float]":
            prices = zip(self.prices("spot").usd, self.prices("on_demand").usd, strict=True)
            return array(
                "d",
                (
                    100 - (ratio(spot, 100, listed) or 0.0) if listed and UNKNOWN not in (spot, listed) else UNKNOWN
                    for spot, listed in prices
                ),
            )

        return self.catalog.keep((SPOT_SAVING, self._scope), ask)

    def _ask_prices(self, purchase: str) -> SizePrices:
        scope = self._scope
        if len(scope.regions) > 1 and scope.as_of is None and purchase == scope.purchase:
            return self._least_prices(scope.regions)
        statement = _prices_statement(self._key, purchase)
        rows = self.catalog.fetch(BoundStatement(statement, self._parameters))
        places = self.sets.places_of([key for key, _ in rows])
        usd = array("d", [UNKNOWN]) * len(self.sets)
        for place, (_, price) in zip(places, rows, strict=True):
            if price is not None:
                usd[place] = price
        return SizePrices(self.sets.set_of(places) if scope.regions else self.sets.all, usd)

    def _least_prices(self, regions: Sequence[str]) -> SizePrices:
        """Take the least price of each size from those of single regions, which other searches ask for too."""
        there = [SizeQuestion(self.catalog, self.search.model_copy(update={"region": (code,)})) for code in regions]
        prices = [question.prices() for question in there]
        usd = array("d", map(min, *(of.usd for of in prices)))
        return SizePrices(reduce(or_, (of.offered for of in prices)), usd)

    def _ask_region_prices(self) -> Mapping[str, RegionOffers]:
        return {region: self._region_offers(rows) for region, rows in self._rows_by_region() if rows}

    def _rows_by_region(self) -> Iterator[tuple[str, Rows]]:
        """Yield each region with the keys and prices of its offers; today's of one region after the other."""
        os, purchase = self._scope.os, self._scope.purchase
        if self._scope.as_of is None:
            statement = _prices_statement(replace(self._key, regions=1), purchase)
            for region in self.catalog.snapshot.regions:
                parameters = self._parameters | {"region_0": region}
                yield region, self.catalog.fetch(BoundStatement(statement, parameters))
            return
        by_region: dict[str, list[tuple[str, float | None]]] = defaultdict(list)
        dated, keys = self._scope.known_at is not None, self.sets.keys
        statement = _past_prices_statement(os, purchase, self.catalog.snapshot.rules, dated=dated)
        for start in range(0, len(keys), _SIZES):
            some = keys[start : start + _SIZES]
            bounds = {"first_key": some[0], "last_key": some[-1]}
            for key, region, usd in self.catalog.fetch(BoundStatement(statement, self._parameters | bounds)):
                by_region[region].append((key, usd))
        yield from by_region.items()

    def _region_offers(self, rows: Rows) -> RegionOffers:
        keys, usd = zip(*rows, strict=True)
        places = self.sets.places_of(keys)
        is_priced = [price is not None and price != UNKNOWN for price in usd]
        priced, prices = array("I", compress(places, is_priced)), array("d", compress(usd, is_priced))
        return RegionOffers(self.sets.set_of(places), priced, prices)


class PriceSteps:
    """The sizes that have known prices, the cheapest first, so that those up to a price are a set that is kept.

    Of each _STEP sizes the set of all up to there is kept; the sizes between are added.
    """

    def __init__(self, sets: SizeSets, prices: Iterable[tuple[float, int]]) -> None:
        self._sets, ordered = sets, sorted(prices)
        self.places = array("I", (place for _, place in ordered))
        self._usd = array("d", (usd for usd, _ in ordered))
        self._up_to = [0]
        for start in range(0, len(self.places), _STEP):
            self._up_to.append(self._up_to[-1] | sets.set_of(self.places[start : start + _STEP]))

    def __len__(self) -> int:
        return 2 * len(self.places)

    @property
    def priced(self) -> int:
        """Return the sizes that have a known price."""
        return self._up_to[-1]

    def ends(self, members: int) -> tuple[float | None, float | None]:
        """Return the least and the greatest price of some sizes; None where none has a known price."""
        flags = self._sets.flags(members & self.priced)
        ends = (range(len(self.places)), range(len(self.places) - 1, -1, -1))
        least, most = (next((at for at in end if flags[self.places[at]] == IS_SET), None) for end in ends)
        return None if least is None else self._usd[least], None if most is None else self._usd[most]

    def within(self, name: str, usd: float) -> int:
        """Return the sizes whose known price meets one of PRICE_FILTERS."""
        if name == "min_usd_per_hour":
            return self.priced & ~self._first(bisect_left(self._usd, usd))
        return self._first(bisect_right(self._usd, usd))

    def _first(self, count: int) -> int:
        steps, more = divmod(count, _STEP)
        return self._up_to[steps] | self._sets.set_of(self.places[count - more : count])


class _PricesOrNone(Sequence[float | None]):
    """Prices by place, None where UNKNOWN: a page needs few of those of all sizes."""

    def __init__(self, prices: "array[float]") -> None:
        self._prices = prices

    def __len__(self) -> int:
        return len(self._prices)

    def __getitem__(self, place: Any) -> Any:
        usd = self._prices[place]
        return None if usd == UNKNOWN else usd


def is_price(name: str) -> bool:
    """Return whether a sort key depends on prices."""
    return name in PRICE_SORT_KEYS or name in UNIT_PRICES or name == SPOT_SAVING


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


FIGURES_OF_THEIR_OWN: Mapping[str, Callable[[Dialect], str]] = {
    "local_disk_gib": lambda _sql: LOCAL_DISK_GIB,
    "status": lambda sql: status_of(sql, "size"),
    "zones": lambda _sql: ZONES,
    "gpu_family": lambda _sql: "gpu.family",
    "gpu_memory_gib_on_one_gpu": lambda _sql: GPU_MEMORY_GIB_ON_ONE_GPU,
    "gpu_slice_gib": lambda _sql: GPU_SLICE_GIB,
    "whole_gpu_gib": lambda _sql: WHOLE_GPU_GIB,
}
"""Figures of a size that are not a column of it."""


@cached_statement(128, kinds=DAYS)
def _values_statement(sql: Dialect, *names: str) -> str:
    own = FIGURES_OF_THEIR_OWN
    shown = ", ".join(f"{own[name](sql) if name in own else f'size.{name}'} as {name}" for name in names)
    gpu = "left join gpu on gpu.id = size.gpu_id" if "gpu_family" in names else ""
    return f"select {shown} from size {gpu} order by size.key"


@cached_statement(1)
def _zones_statement(_sql: Dialect) -> str:
    """Write the statement of the zones of all sizes by region, the newest list last."""
    return f"""select there.region, there.size_key, {count_zones("there")} as zones
        from availability as there join source on source.id = there.source_id
        order by source.published_on nulls first, source.id desc"""


@cached_statement(256)
def _condition_statement(sql: Dialect, active: ActiveFilter, key: PriceScopeKey) -> str:
    scope = scope_of_sizes(sql, key)
    condition = filter_condition(active, scope)
    return f"select size.key from size {_joins(scope, condition)} where {condition}"


@cached_statement(64)
def _prices_statement(sql: Dialect, key: PriceScopeKey, purchase: str) -> str:
    if key.past:
        return past_prices_by_size(sql, key, purchase)
    scope = PriceScope.of_key(sql, key)
    usd = rank_usd(sql, scope.offer, purchase)
    return f"select {scope.key} as key, {usd} as usd from {scope.source} where {scope.has_offer}"


@cached_statement(16)
def _past_prices_statement(sql: Dialect, os: str, purchase: str, rules: Rules, *, dated: bool) -> str:
    """Write the statement of the prices of some sizes by region; null where only other purchase models have one."""
    of_sizes = (f"price.os = '{os}'", "price.size_key >= :first_key", "price.size_key <= :last_key")
    prices = prices_in_force(sql, *price_days(sql, dated=dated), *of_sizes, rules=rules)
    return f"""select size_key, region,
        max(cast(usd_per_hour as double precision)) filter (where purchase = '{purchase}') as usd
        from ({prices}) as price group by size_key, region"""
