"""The neighbours of a size: what has about its GPU memory and costs about as much, by one query along an index."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Double,
    Integer,
    Select,
    and_,
    bindparam,
    exists,
    literal,
    literal_column,
    select,
    union_all,
)

from app.catalog.projections import ANY_REGION, memory_bucket
from app.catalog.queries.params import OfferParams
from app.catalog.queries.price_scope import (
    GPU,
    OFFER,
    SIZE,
    PriceScope,
    PriceScopeKey,
    gpu,
    is_orderable,
    literal_text,
    region_parameters,
    size,
    status_of,
)
from app.db.statements import BoundStatement, Row, Statement, cached_statement

MEMORY_STEPS = range(-3, 4)
"""How many times the GPU memory is doubled, with the price: from an eighth to eight times."""

SIZES_PER_WALK = 25
"""So many sizes are taken of each step, the nearest in price: those that cost more, and as many that cost less."""

_SIZE_COLUMNS = (
    *("name", "verified", "series_id", "gpu_id", "gpu_vendor", "gpu_model", "gpu_count", "gpu_count_numerator"),
    *("gpu_count_denominator", "gpu_memory_gib", "vcpus", "memory_gib"),
)
NEIGHBOUR_COLUMNS = ("key", "status", "gpu_family", "region", "usd_per_hour", *_SIZE_COLUMNS)
"""What is known of a size that is measured, in this order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceSize:
    """Where neighbours are looked for: around a size, by its GPU memory, GiB (None for none), and a price, USD/h."""

    key: str
    gpu_memory_gib: float | None
    usd_per_hour: float


def to_neighbour(row: Row) -> Mapping[str, Any]:
    """A row of a size that is measured, by the names of its columns."""
    return dict(zip(NEIGHBOUR_COLUMNS, row, strict=True))


def reference_query(key: str, scope: OfferParams, today: date) -> BoundStatement:
    """One size, with its offer in the asked place; what the offer says is null where there is none."""
    return BoundStatement(
        _one(PriceScopeKey.of(scope)), {"key": key, "today": today.isoformat(), **region_parameters(scope)}
    )


def neighbours_query(centre: ReferenceSize, scope: OfferParams, today: date) -> BoundStatement:
    """The sizes around a centre that can be ordered in the asked place, in the order of their names."""
    memory = centre.gpu_memory_gib
    walked = scope.region[0] if len(scope.region) == 1 else ANY_REGION
    values: dict[str, Any] = {
        "key": centre.key,
        "today": today.isoformat(),
        "walked": walked,
        **region_parameters(scope),
    }
    values |= {f"usd_{index}": centre.usd_per_hour * 2.0**step for index, step in enumerate(MEMORY_STEPS)}
    if memory:
        values |= {f"octave_{index}": memory_bucket(memory) + step for index, step in enumerate(MEMORY_STEPS)}
    return BoundStatement(_around(PriceScopeKey.of(scope), with_gpu=bool(memory)), values)


@cached_statement(32)
def _one(place: PriceScopeKey) -> Statement:
    asked = select(size.key.label("size_key")).where(size.key == bindparam("key", type_=size.key.type))
    return Statement(_measured(asked, place), short=True)


@cached_statement(32)
def _around(place: PriceScopeKey, *, with_gpu: bool) -> Statement:
    """Walk up and down the prices of each octave; sizes without a GPU lie in no octave, but at a price all the same."""
    walks = [
        select(_walk(place, index, upwards=upwards, with_gpu=with_gpu).subquery())
        for index in range(len(MEMORY_STEPS))
        for upwards in (True, False)
    ]
    found = union_all(*walks).cte("found")
    return Statement(_measured(select(found.c.size_key).distinct(), place), short=with_gpu and place.regions <= 1)


def _walk(place: PriceScopeKey, index: int, *, upwards: bool, with_gpu: bool) -> Select[Any]:
    """The offers of one octave of GPU memory from a price on; of several regions those with an offer in any."""
    offer, usd = OFFER.c, bindparam(f"usd_{index}", type_=Double)
    octave = bindparam(f"octave_{index}", type_=Integer)
    walk = select(offer.size_key).where(
        offer.region == bindparam("walked", type_=offer.region.type),
        *_meant(offer, place),
        offer.gpu_octave == octave if with_gpu else offer.gpu_octave.is_(None),
        offer.rank_usd >= usd if upwards else offer.rank_usd < usd,
        offer.size_key != bindparam("key", type_=offer.size_key.type),
        is_orderable(offer.retirement_date, offer.withdrawn),
    )
    if place.regions > 1:
        walk = walk.where(_offered(place))
    order = [key if upwards else key.desc() for key in (offer.rank_usd, offer.size_key)]
    hinted = walk.with_hint(OFFER, "indexed by ix_offer_gpu", "sqlite") if with_gpu else walk
    return hinted.order_by(*order).limit(literal_column(str(SIZES_PER_WALK), Integer))


def _offered(place: PriceScopeKey) -> ColumnElement[bool]:
    """Whether the size has an offer in any of the regions."""
    there = OFFER.alias("there").c
    regions = [bindparam(f"region_{index}", type_=there.region.type) for index in range(place.regions)]
    same = and_(there.region.in_(regions), *_meant(there, place), there.size_key == OFFER.c.size_key)
    return exists(select(literal(1)).where(same))


def _meant(offer: Any, place: PriceScopeKey) -> tuple[ColumnElement[bool], ...]:
    return offer.os == literal_text(place.os), offer.purchase == literal_text(place.purchase)


def _measured(keys: Select[Any], place: PriceScopeKey) -> Select[Any]:
    """What is measured of these sizes."""
    these = keys.cte("these")
    ground = PriceScope.for_sizes(place, select(these.c.size_key))
    columns = {
        "key": size.key,
        "status": status_of(size),
        "gpu_family": gpu.family,
        "region": ground.offer.priced_in,
        "usd_per_hour": ground.offer[f"{place.purchase}_usd_per_hour"],
    }
    return (
        select(*(columns[name].label(name) if name in columns else size[name] for name in NEIGHBOUR_COLUMNS))
        .join_from(these, SIZE, size.key == these.c.size_key)
        .join(ground.offers, and_(ground.key == size.key, ground.has_offer), isouter=True)
        .join(GPU, gpu.id == size.gpu_id, isouter=True)
        .order_by(size.key)
    )
