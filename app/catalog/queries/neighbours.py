"""Find the neighbours of a size: sizes with about its GPU memory and about its price."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import reduce
from itertools import islice
from math import frexp
from operator import or_
from typing import Any

from sqlalchemy import FromClause, Select, bindparam, cast, select

from app.catalog.adjustments import Rules
from app.catalog.column_types import UsdColumn
from app.catalog.projections import usd_by
from app.catalog.queries.params import SimilarSearch
from app.catalog.queries.price_scope import (
    GPU,
    KEYS,
    SIZE,
    PriceScope,
    PriceScopeKey,
    gpu,
    key_parameters,
    local_disk_gib,
    price_parameters,
    size,
    status_of,
)
from app.catalog.queries.size_sets import IS_SET, SizeQuestion
from app.db.functions import is_listed
from app.db.statements import BoundStatement, Row, Statement, cached_statement

MEMORY_STEPS = range(-3, 4)
"""Powers of two that the GPU memory and the price are multiplied by: from an eighth to eight times."""

SIZES_PER_SCAN = 25
"""How many sizes of each step are candidates: the nearest in price among those that cost more, and as many that cost
less."""

_SIZE_COLUMNS = (
    *("name", "verified", "series_id", "gpu_id", "gpu_vendor", "gpu_model", "gpu_count", "gpu_count_numerator"),
    *("gpu_count_denominator", "gpu_memory_gib", "arch", "vcpus", "memory_gib", "provider"),
    *("cpu_vendor", "cpu_model", "uncached_disk_iops", "network_mbps"),
)
NEIGHBOUR_COLUMNS = (
    "key",
    "status",
    "gpu_family",
    "region",
    "usd_per_hour",
    "adjustment",
    "local_disk_gib",
    *_SIZE_COLUMNS,
)
"""The columns of a row: what a similarity is computed from, and JSON of what rules did to the price, else null."""


def to_neighbour(row: Row) -> Mapping[str, Any]:
    """Return a row by the names of its columns."""
    return dict(zip(NEIGHBOUR_COLUMNS, row, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceSize:
    """The size whose neighbours are searched: its memories, GiB (None: unknown), and a price, USD an hour."""

    key: str
    gpu_memory_gib: float | None
    vcpus: int | None
    memory_gib: float | None
    usd_per_hour: float


def reference_query(key: str, params: SimilarSearch, today: date, rules: Rules) -> BoundStatement:
    """Return the query of one size with its offer; the columns of the offer are null where there is none."""
    values = {"key": key, **price_parameters(params, today)}
    return BoundStatement(_reference_statement(PriceScopeKey.of(params, rules)), values)


def shown_query(keys: Sequence[str], params: SimilarSearch, today: date, rules: Rules) -> BoundStatement:
    """Return the query of sizes that are chosen already, each with its offer, in the order of their keys."""
    values = key_parameters(keys) | price_parameters(params, today)
    return BoundStatement(_shown_statement(PriceScopeKey.of(params, rules)), values)


def find_neighbours(question: SizeQuestion, reference: ReferenceSize, *, by_provider: bool) -> list[int]:
    """Find the places of the sizes around a reference that can be ordered.

    `by_provider` says that only sizes of the providers in the question count: then those with as many vCPUs and the
    same memory do, too, whatever they cost.
    """
    sets, prices = question.sets, question.prices()
    ordered = question.order(("usd_per_hour", "name"))
    may = question.offered() & question.orderable()
    may &= ~(1 << sets.place_of(reference.key))
    if by_provider:
        may &= question.meets("provider")
    by_memory = question.catalog.keep("memory buckets", lambda: _sets_by_memory(question))
    neighbours: set[int] = set()
    if by_provider:
        vcpus, memory = question.values("vcpus"), question.values("memory_gib")
        wanted = (reference.vcpus, reference.memory_gib)
        alike = sets.places_in(may & _alike(by_memory, reference.gpu_memory_gib, 0))
        neighbours.update(place for place in alike if (vcpus[place], memory[place]) == wanted)
    for step in MEMORY_STEPS:
        price = reference.usd_per_hour * 2.0**step
        flags = sets.flags(may & _alike(by_memory, reference.gpu_memory_gib, step))
        begin = bisect_left(ordered, price, key=prices.usd.__getitem__)
        for places in (islice(ordered, begin, None), reversed(ordered[:begin])):
            neighbours.update(islice((place for place in places if flags[place] == IS_SET), SIZES_PER_SCAN))
    return sorted(neighbours)


_NO_MEMORY, _UNKNOWN_MEMORY = -100, -200
"""The buckets of sizes without GPU memory, and of unknown: no step from a bucket leads there."""


def _sets_by_memory(question: SizeQuestion) -> Mapping[int, int]:
    """Return the sizes in each bucket of GPU memory."""
    places = defaultdict[int, list[int]](list)
    for place, memory in enumerate(question.values("gpu_memory_gib")):
        bucket = _memory_bucket(memory) if memory else _NO_MEMORY if memory == 0 else _UNKNOWN_MEMORY
        places[bucket].append(place)
    return {bucket: question.sets.set_of(of_bucket) for bucket, of_bucket in places.items()}


_MAX_BUCKET = 15
"""The bucket of 32 TiB and more."""


def _memory_bucket(gpu_memory_gib: float) -> int:
    """Return the bucket of a GPU memory above zero: log2 of the GiB, rounded down, 0 to _MAX_BUCKET."""
    return min(max(frexp(gpu_memory_gib)[1] - 1, 0), _MAX_BUCKET)


def _alike(by_memory: Mapping[int, int], memory: float | None, step: int) -> int:
    """Return the sizes of about a GPU memory; one of unknown memory is compared with all that may have some."""
    if memory:
        return by_memory.get(_memory_bucket(memory) + step, 0)
    if memory == 0:
        return by_memory.get(_NO_MEMORY, 0)
    return reduce(or_, (alike for bucket, alike in by_memory.items() if bucket != _NO_MEMORY), 0)


@cached_statement(32)
def _reference_statement(scope_key: PriceScopeKey) -> Statement:
    keys = select(size.key.label("size_key")).where(size.key == bindparam("key", type_=size.key.type))
    return Statement(_with_columns(keys.cte("these"), PriceScope.for_sizes(scope_key, keys)), short=not scope_key.past)


@cached_statement(32)
def _shown_statement(scope_key: PriceScopeKey) -> Statement:
    keys = select(size.key.label("size_key")).where(is_listed(size.key, KEYS))
    return Statement(_with_columns(keys.cte("these"), PriceScope.for_keys(scope_key)))


def _with_columns(these: FromClause, scope: PriceScope) -> Select[Any]:
    """Select the NEIGHBOUR_COLUMNS of the sizes with these keys."""
    columns = {
        "key": size.key,
        "status": status_of(size),
        "gpu_family": gpu.family,
        "region": scope.offer.priced_in,
        "usd_per_hour": cast(usd_by(scope.offer, scope.purchase), UsdColumn),
        "adjustment": scope.offer[f"{scope.purchase}_adjustment"],
        "local_disk_gib": local_disk_gib(),
        **{name: size[name] for name in _SIZE_COLUMNS},
    }
    shown = (columns[name].label(name) for name in NEIGHBOUR_COLUMNS)
    return (
        scope.join_to_sizes(select(*shown).join_from(these, SIZE, size.key == these.c.size_key))
        .join(GPU, gpu.id == size.gpu_id, isouter=True)
        .order_by(size.key)
    )
