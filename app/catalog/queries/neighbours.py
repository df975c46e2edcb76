"""Find the neighbours of a size: sizes with about its GPU memory and about its price, read along one index."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from sqlalchemy import (
    Double,
    Integer,
    Select,
    and_,
    bindparam,
    cast,
    exists,
    literal,
    literal_column,
    select,
    union_all,
)
from sqlalchemy.sql import ColumnElement

from app.catalog.column_types import UsdColumn
from app.catalog.projections import memory_bucket
from app.catalog.purchases import ANY_REGION
from app.catalog.queries.params import OfferParams
from app.catalog.queries.price_scope import (
    GPU,
    OFFER,
    SIZE,
    PriceScope,
    PriceScopeKey,
    gpu,
    is_orderable,
    matches_offer,
    region_binds,
    region_parameters,
    size,
    status_of,
    use_memory_index,
)
from app.db.statements import BoundStatement, Row, Statement, cached_statement

MEMORY_STEPS = range(-3, 4)
"""Powers of two that the GPU memory and the price are multiplied by: from an eighth to eight times."""

SIZES_PER_SCAN = 25
"""So many sizes are read of each step, the nearest in price: those that cost more, and as many that cost less."""

_SIZE_COLUMNS = (
    *("name", "verified", "series_id", "gpu_id", "gpu_vendor", "gpu_model", "gpu_count", "gpu_count_numerator"),
    *("gpu_count_denominator", "gpu_memory_gib", "vcpus", "memory_gib"),
)
NEIGHBOUR_COLUMNS = ("key", "status", "gpu_family", "region", "usd_per_hour", *_SIZE_COLUMNS)
"""The columns of a row: what a similarity is computed from."""


def to_neighbour(row: Row) -> Mapping[str, Any]:
    """Return a row by the names of its columns."""
    return dict(zip(NEIGHBOUR_COLUMNS, row, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceSize:
    """The size whose neighbours are searched: its GPU memory, GiB (None without a GPU), and a price, USD an hour."""

    key: str
    gpu_memory_gib: float | None
    usd_per_hour: float


def reference_query(key: str, params: OfferParams, today: date) -> BoundStatement:
    """Return the query of one size with its offer; the columns of the offer are null where there is none."""
    values = {"key": key, "today": today.isoformat(), **region_parameters(params)}
    return BoundStatement(_reference_statement(PriceScopeKey.of(params, ())), values)


def neighbours_query(reference: ReferenceSize, params: OfferParams, today: date) -> BoundStatement:
    """Return the query of the sizes around a reference that can be ordered, in the order of their names."""
    memory = reference.gpu_memory_gib
    values: dict[str, Any] = {
        "key": reference.key,
        "today": today.isoformat(),
        "scanned_region": params.region[0] if len(params.region) == 1 else ANY_REGION[params.purchase],
        **region_parameters(params),
    }
    values |= {f"usd_{index}": reference.usd_per_hour * 2.0**step for index, step in enumerate(MEMORY_STEPS)}
    if memory:
        values |= {f"bucket_{index}": memory_bucket(memory) + step for index, step in enumerate(MEMORY_STEPS)}
    return BoundStatement(_neighbours_statement(PriceScopeKey.of(params, ()), with_gpu=bool(memory)), values)


@cached_statement(32)
def _reference_statement(scope_key: PriceScopeKey) -> Statement:
    keys = select(size.key.label("size_key")).where(size.key == bindparam("key", type_=size.key.type))
    return Statement(_with_columns(keys, scope_key), short=True)


@cached_statement(32)
def _neighbours_statement(scope_key: PriceScopeKey, *, with_gpu: bool) -> Statement:
    """Build the statement: an index scan up and one down the prices of each memory bucket.

    Sizes without a GPU are in no bucket; for them the scans begin at each of the prices all the same.
    """
    scans = [
        select(_scan(scope_key, index, upwards=upwards, with_gpu=with_gpu).subquery())
        for index in range(len(MEMORY_STEPS))
        for upwards in (True, False)
    ]
    found = union_all(*scans).cte("found")
    keys = select(found.c.size_key).distinct()
    return Statement(_with_columns(keys, scope_key), short=with_gpu and scope_key.regions <= 1)


def _scan(scope_key: PriceScopeKey, index: int, *, upwards: bool, with_gpu: bool) -> Select[Any]:
    """Select the offers of one memory bucket from a price on; of several regions those with an offer in any."""
    offer, usd = OFFER.c, bindparam(f"usd_{index}", type_=Double)
    rank = offer[f"{scope_key.purchase}_rank_usd"]
    bucket = bindparam(f"bucket_{index}", type_=Integer)
    scan = select(offer.size_key).where(
        offer.region == bindparam("scanned_region", type_=offer.region.type),
        matches_offer(offer, scope_key),
        offer.gpu_octave == bucket if with_gpu else offer.gpu_octave.is_(None),
        rank >= usd if upwards else rank < usd,
        offer.size_key != bindparam("key", type_=offer.size_key.type),
        is_orderable(offer.retirement_date, offer.withdrawn),
    )
    if scope_key.regions > 1:
        scan = scan.where(_has_offer_in_regions(scope_key))
    order = [key if upwards else key.desc() for key in (rank, offer.size_key)]
    hinted = use_memory_index(scan, OFFER, scope_key.purchase) if with_gpu else scan
    return hinted.order_by(*order).limit(literal_column(str(SIZES_PER_SCAN), Integer))


def _has_offer_in_regions(scope_key: PriceScopeKey) -> ColumnElement[bool]:
    """Return the condition that the size has an offer in any of the regions."""
    there = OFFER.alias("there").c
    in_region = there.region.in_(region_binds(scope_key.regions))
    same = and_(in_region, matches_offer(there, scope_key), there.size_key == OFFER.c.size_key)
    return exists(select(literal(1)).where(same))


def _with_columns(keys: Select[Any], scope_key: PriceScopeKey) -> Select[Any]:
    """Select the NEIGHBOUR_COLUMNS of the sizes with these keys."""
    these = keys.cte("these")
    scope = PriceScope.for_sizes(scope_key, select(these.c.size_key))
    columns = {
        "key": size.key,
        "status": status_of(size),
        "gpu_family": gpu.family,
        "region": scope.offer.priced_in,
        "usd_per_hour": cast(scope.usd, UsdColumn),
        **{name: size[name] for name in _SIZE_COLUMNS},
    }
    shown = (columns[name].label(name) for name in NEIGHBOUR_COLUMNS)
    return (
        scope.join_to_sizes(select(*shown).join_from(these, SIZE, size.key == these.c.size_key))
        .join(GPU, gpu.id == size.gpu_id, isouter=True)
        .order_by(size.key)
    )
