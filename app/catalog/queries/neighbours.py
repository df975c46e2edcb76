"""Find the neighbours of a size: sizes with about its GPU memory and about its price.

Today's prices are read along one index; those of a past day, or the cheapest of several regions, are computed once for
all sizes with about that memory.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, Literal

from sqlalchemy import (
    ColumnElement,
    Double,
    FromClause,
    Integer,
    Select,
    bindparam,
    cast,
    literal_column,
    or_,
    select,
    true,
    union_all,
)

from app.catalog.adjustments import Rules
from app.catalog.column_types import UsdColumn
from app.catalog.projections import memory_bucket, memory_bucket_sql
from app.catalog.purchases import ANY_REGION
from app.catalog.queries.params import SimilarSearch
from app.catalog.queries.price_scope import (
    GPU,
    OFFER,
    SIZE,
    PriceScope,
    PriceScopeKey,
    gpu,
    is_orderable,
    matches_offer,
    price_parameters,
    size,
    status_of,
    use_memory_index,
)
from app.db.statements import BoundStatement, Row, Statement, cached_statement, pad_keys

MEMORY_STEPS = range(-3, 4)
"""Powers of two that the GPU memory and the price are multiplied by: from an eighth to eight times."""

SIZES_PER_SCAN = 25
"""So many sizes are read of each step, the nearest in price: those that cost more, and as many that cost less."""

_SIZE_COLUMNS = (
    *("name", "verified", "series_id", "gpu_id", "gpu_vendor", "gpu_model", "gpu_count", "gpu_count_numerator"),
    *("gpu_count_denominator", "gpu_memory_gib", "vcpus", "memory_gib"),
)
NEIGHBOUR_COLUMNS = ("key", "status", "gpu_family", "region", "usd_per_hour", "adjustment", *_SIZE_COLUMNS)
"""The columns of a row: what a similarity is computed from, and JSON of what rules did to the price, else null."""


def to_neighbour(row: Row) -> Mapping[str, Any]:
    """Return a row by the names of its columns."""
    return dict(zip(NEIGHBOUR_COLUMNS, row, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceSize:
    """The size whose neighbours are searched: its GPU memory, GiB (None: unknown), and a price, USD an hour."""

    key: str
    gpu_memory_gib: float | None
    usd_per_hour: float


GpuMemory = Literal["some", "none", "unknown"]
"""What is known of the GPU memory of a reference size, which decides the sizes that it is compared with."""


def reference_query(key: str, params: SimilarSearch, today: date, rules: Rules) -> BoundStatement:
    """Return the query of one size with its offer; the columns of the offer are null where there is none."""
    values = {"key": key, **price_parameters(params, today)}
    return BoundStatement(_reference_statement(PriceScopeKey.of(params, rules)), values)


def shown_query(keys: Sequence[str], params: SimilarSearch, today: date, rules: Rules) -> BoundStatement:
    """Return the query of sizes that are chosen already, each with its offer, in the order of their keys."""
    padded = pad_keys(keys)
    values = {f"key_{index}": key for index, key in enumerate(padded)} | price_parameters(params, today)
    return BoundStatement(_shown_statement(PriceScopeKey.of(params, rules), len(padded)), values)


def neighbours_query(reference: ReferenceSize, params: SimilarSearch, today: date, rules: Rules) -> BoundStatement:
    """Return the query of the sizes around a reference that can be ordered, in the order of their names."""
    memory = reference.gpu_memory_gib
    values: dict[str, Any] = {"key": reference.key, **price_parameters(params, today)}
    indexed = params.purchase == "on_demand" and not params.names_a_day and len(params.region) <= 1
    if indexed:
        values["scanned_region"] = params.region[0] if params.region else ANY_REGION[params.purchase]
    values |= {f"usd_{index}": reference.usd_per_hour * 2.0**step for index, step in enumerate(MEMORY_STEPS)}
    if memory:
        values |= {f"bucket_{index}": memory_bucket(memory) + step for index, step in enumerate(MEMORY_STEPS)}
    statement = _indexed_statement if indexed else _computed_statement
    known: GpuMemory = "unknown" if memory is None else "some" if memory else "none"
    return BoundStatement(statement(PriceScopeKey.of(params, rules), known), values)


@cached_statement(32)
def _reference_statement(scope_key: PriceScopeKey) -> Statement:
    keys = select(size.key.label("size_key")).where(size.key == bindparam("key", type_=size.key.type))
    return Statement(_with_columns(keys.cte("these"), PriceScope.for_sizes(scope_key, keys)), short=not scope_key.past)


@cached_statement(32)
def _shown_statement(scope_key: PriceScopeKey, count: int) -> Statement:
    binds = [bindparam(f"key_{index}", type_=size.key.type) for index in range(count)]
    keys = select(size.key.label("size_key")).where(size.key.in_(binds))
    return Statement(_with_columns(keys.cte("these"), PriceScope.for_sizes(scope_key, keys)))


@cached_statement(32)
def _indexed_statement(scope_key: PriceScopeKey, memory: GpuMemory) -> Statement:
    """Build the statement: an index scan up and one down the prices of each memory bucket.

    A size without GPU memory, or of unknown GPU memory, is in no bucket; the scans begin at each of the prices all the
    same.
    """
    scans = [
        select(_scan(scope_key, index, memory, upwards=upwards).subquery())
        for index in range(len(MEMORY_STEPS))
        for upwards in (True, False)
    ]
    found = union_all(*scans).cte("found")
    these = select(found.c.size_key).distinct().cte("these")
    scope = PriceScope.for_sizes(scope_key, select(these.c.size_key))
    return Statement(_with_columns(these, scope), short=memory == "some")


@cached_statement(32)
def _computed_statement(scope_key: PriceScopeKey, memory: GpuMemory) -> Statement:
    """Build the statement where no index has the prices: the same scans of a table of them."""
    buckets = [bindparam(f"bucket_{index}", type_=Integer) for index in range(len(MEMORY_STEPS))]
    candidates = select(size.key).where(
        memory_bucket_sql(size.gpu_memory_gib).in_(buckets)
        if memory == "some"
        else _is_alike(size.gpu_memory_gib, memory),
        size.key != bindparam("key", type_=size.key.type),
        is_orderable(size.retirement_date, size.withdrawn),
    )
    priced = PriceScope.for_sizes(scope_key, candidates)
    prices = (f"{priced.purchase}_{what}" for what in ("rank_usd", "adjustment"))
    columns = (priced.offer[name] for name in ("size_key", "priced_in", "gpu_memory_gib", *prices))
    of_candidates = (priced.has_offer, priced.key.in_(candidates))
    offers = select(*columns).select_from(priced.source).where(*of_candidates).cte("priced")
    scope = replace(priced, offers=offers, has_offer=true(), cheapest=None)
    scans = [
        select(_computed_scan(scope, index, memory, upwards=upwards).subquery())
        for index in range(len(MEMORY_STEPS))
        for upwards in (True, False)
    ]
    found = union_all(*scans).cte("found")
    return Statement(_with_columns(select(found.c.size_key).distinct().cte("these"), scope))


def _is_alike(gpu_memory_gib: ColumnElement[float], memory: GpuMemory) -> ColumnElement[bool]:
    """Return whether a size is compared with one without GPU memory, or of unknown: one that may have some, too."""
    if memory == "none":
        return gpu_memory_gib == 0
    return or_(gpu_memory_gib.is_(None), gpu_memory_gib > 0)


def _computed_scan(scope: PriceScope, index: int, memory: GpuMemory, *, upwards: bool) -> Select[Any]:
    """Select the sizes of one memory bucket from a price on, as `_scan` does."""
    usd = bindparam(f"usd_{index}", type_=Double)
    scan = select(scope.key).where(scope.rank >= usd if upwards else scope.rank < usd)
    if memory == "some":
        bucket = memory_bucket_sql(scope.offer.gpu_memory_gib)
        scan = scan.where(bucket == bindparam(f"bucket_{index}", type_=Integer))
    order = [key if upwards else key.desc() for key in (scope.rank, scope.key)]
    return scan.order_by(*order).limit(literal_column(str(SIZES_PER_SCAN), Integer))


def _scan(scope_key: PriceScopeKey, index: int, memory: GpuMemory, *, upwards: bool) -> Select[Any]:
    """Select the offers of one memory bucket from a price on."""
    offer, usd = OFFER.c, bindparam(f"usd_{index}", type_=Double)
    rank = offer[f"{scope_key.purchase}_rank_usd"]
    bucket = bindparam(f"bucket_{index}", type_=Integer)
    scan = select(offer.size_key).where(
        offer.region == bindparam("scanned_region", type_=offer.region.type),
        matches_offer(offer, scope_key),
        offer.gpu_octave == bucket if memory == "some" else _is_alike(offer.gpu_memory_gib, memory),
        rank >= usd if upwards else rank < usd,
        offer.size_key != bindparam("key", type_=offer.size_key.type),
        is_orderable(offer.retirement_date, offer.withdrawn),
    )
    order = [key if upwards else key.desc() for key in (rank, offer.size_key)]
    hinted = use_memory_index(scan, OFFER) if memory == "some" else scan
    return hinted.order_by(*order).limit(literal_column(str(SIZES_PER_SCAN), Integer))


def _with_columns(these: FromClause, scope: PriceScope) -> Select[Any]:
    """Select the NEIGHBOUR_COLUMNS of the sizes with these keys."""
    columns = {
        "key": size.key,
        "status": status_of(size),
        "gpu_family": gpu.family,
        "region": scope.offer.priced_in,
        "usd_per_hour": cast(scope.usd, UsdColumn),
        "adjustment": scope.offer[f"{scope.purchase}_adjustment"],
        **{name: size[name] for name in _SIZE_COLUMNS},
    }
    shown = (columns[name].label(name) for name in NEIGHBOUR_COLUMNS)
    return (
        scope.join_to_sizes(select(*shown).join_from(these, SIZE, size.key == these.c.size_key))
        .join(GPU, gpu.id == size.gpu_id, isouter=True)
        .order_by(size.key)
    )
