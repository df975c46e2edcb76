"""The same page as tutorials teach it: FastAPI, SQLModel entities, a response model per row."""

import math
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from fractions import Fraction
from typing import Annotated, Any

from fastapi import Depends, FastAPI
from sqlmodel import Session, col, create_engine, func, or_, select

from app.catalog.fields import SIZE_FLAGS
from app.catalog.models import Offer, Size, Source
from app.catalog.purchases import PURCHASE_MODELS
from app.db.functions import ratio
from app.schemas.sizes import SizeOut, SizePage


def app() -> FastAPI:
    """Build the application for the SQLite catalog named by BENCH_DATABASE."""
    made = FastAPI()
    engine = create_engine(os.environ["BENCH_DATABASE"], connect_args={"check_same_thread": False})

    def get_session() -> Iterator[Session]:
        with Session(engine) as session:
            yield session

    @made.get("/sizes", response_model=SizePage)
    def list_sizes(
        session: Annotated[Session, Depends(get_session)], region: str, min_gpu_mem: float, limit: int = 50
    ) -> SizePage:
        today = datetime.now(UTC).date()
        query = select(Size, Offer, Source).join(Offer, col(Offer.size_key) == Size.key)
        query = query.join(Source, col(Source.id) == Size.source_id, isouter=True)
        query = query.where(Offer.region == region, Offer.os == "linux")
        query = query.where(col(Size.gpu_memory_gib) >= min_gpu_mem)
        query = query.where(or_(col(Size.retirement_date).is_(None), col(Size.retirement_date) > today))
        total = session.exec(select(func.count()).select_from(query.subquery())).one()
        page = session.exec(query.order_by(col(Offer.on_demand_rank_usd), col(Size.key)).limit(limit)).all()
        items = [to_out(size, offer, source) for size, offer, source in page]
        return SizePage(items=items, next_cursor=None, total=total, unknown={})

    return made


def to_out(size: Size, offer: Offer, source: Source | None) -> SizeOut:
    """Map the entities to an item of the response."""
    known: dict[str, Any] = {name: value for name, value in size.model_dump().items() if name in SizeOut.model_fields}
    usd = {purchase: _usd(getattr(offer, f"{purchase}_rank_usd")) for purchase in PURCHASE_MODELS}
    known |= {
        "series": size.series_id,
        "status": "retiring" if size.retirement_date else "preview" if size.preview else "current",
        "disputed_fields": [name for name in size.disputed_fields.split("; ") if name],
        "gpu_count": round(size.gpu_count, 4) if size.gpu_count else None,
        "gpu_fraction": _fraction(size),
        "flags": [name for name in SIZE_FLAGS if known[name]],
        "source_url": source.url if source else None,
        "region": offer.priced_in,
        "usd_per_hour": usd["on_demand"],
        "on_demand_as_of": offer.on_demand_as_of,
        "spot_as_of": offer.spot_as_of,
        "on_demand_approximate_date": offer.on_demand_approximate_date,
        "spot_approximate_date": offer.spot_approximate_date,
        "price_unusual": offer.on_demand_median_usd is not None,
        "median_usd_per_hour": offer.on_demand_median_usd,
        "price_disputed": bool(offer.on_demand_disputed),
        "price_as_of": offer.on_demand_as_of,
        "price_age_days": (datetime.now(UTC).date() - offer.on_demand_as_of).days if offer.on_demand_as_of else None,
        "usd_per_vcpu_hour": ratio(usd["on_demand"], 1, size.vcpus),
        "usd_per_1000_coremark_hour": ratio(usd["on_demand"], 1000, size.coremark),
        "usd_per_memory_gib_hour": ratio(usd["on_demand"], 1, size.memory_gib),
        "usd_per_gpu_hour": ratio(usd["on_demand"], size.gpu_count_denominator, size.gpu_count_numerator),
        "usd_per_gpu_gib_hour": ratio(usd["on_demand"], 1, size.gpu_memory_gib),
        **{f"{purchase}_usd_per_hour": price for purchase, price in usd.items()},
    }
    return SizeOut(**known)


def _usd(rank: float | None) -> float | None:
    return rank if rank is not None and math.isfinite(rank) else None


def _fraction(size: Size) -> str | None:
    if size.gpu_count_numerator is None or not size.gpu_count_denominator or size.gpu_count_denominator == 1:
        return None
    return str(Fraction(size.gpu_count_numerator, size.gpu_count_denominator))
