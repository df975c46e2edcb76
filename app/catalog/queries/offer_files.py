"""The files of a whole provider in the shapes that other programs read: its sizes with today's prices by region."""

from datetime import date
from functools import lru_cache
from typing import Any

from sqlalchemy import Date, String, and_, bindparam, cast, func, or_, select

from app.catalog.column_types import table_of
from app.catalog.fields import FieldKind
from app.catalog.models import Gpu, Offer, Region, Size
from app.catalog.projections import usd_by
from app.catalog.providers import ProviderId
from app.catalog.purchases import ANY_REGION, PURCHASE_MODELS
from app.catalog.queries.exports import Export
from app.db.statements import BoundStatement, Rows, Statement


def export_offers(provider: ProviderId, today: date) -> Export:
    """Return the export of the sizes that a provider sells today: a row for each size, region and operating system.

    Those of a size come together, and of these those of a region. A size without any price has a row without a region.
    """
    statement = _statement()
    values = {"provider": provider, "today": today}
    columns: dict[str, FieldKind] = dict.fromkeys(statement.names, "text")
    return Export(query=BoundStatement(statement, values), columns=columns, values=_by_column)


def _by_column(rows: Rows) -> list[tuple[Any, ...]]:
    return list(zip(*rows, strict=True))


@lru_cache
def _statement() -> Statement:
    size, offer, region, gpu = (table_of(model).c for model in (Size, Offer, Region, Gpu))
    other = table_of(Gpu).alias()
    smallest = select(func.min(other.c.memory_gib)).where(other.c.family == gpu.family).scalar_subquery()
    columns = (
        *(size.name, size.provider, size.series_id.label("series"), size.category, size.vcpus, size.memory_gib),
        *(size.arch, size.cpu_model, cast(size.retirement_date, String).label("retirement_date")),
        *(size.gpu_count, size.gpu_vendor, size.gpu_model, size.gpu_memory_gib, size.gpu_memory_gib_per_gpu),
        *(size.gpu_count_numerator, size.gpu_count_denominator),
        *(gpu.family.label("gpu_family"), smallest.label("smallest_gpu_memory_gib")),
        *(size.temp_disk_gib, size.temp_disk_count, size.nvme_disk_gib, size.nvme_disk_count),
        *(size.uncached_disk_iops, size.network_mbps, size.infiniband, size.premium_storage),
        *(size.accelerated_networking, size.trusted_launch, size.hibernation, size.confidential_computing),
        *(offer.region, region.name.label("region_name"), offer.os),
        *(offer[f"{purchase}_as_of"] for purchase in PURCHASE_MODELS),
        *(usd_by(offer, purchase).label(purchase) for purchase in PURCHASE_MODELS),
    )
    sold = or_(size.retirement_date.is_(None), size.retirement_date > bindparam("today", type_=Date))
    # Offers in the cheapest region are of no code of a region.
    of_size = and_(offer.size_key == size.key, *(offer.region != code for code in ANY_REGION.values()))
    tables = table_of(Size).outerjoin(table_of(Offer), of_size).outerjoin(table_of(Region), region.code == offer.region)
    return Statement(
        select(*columns)
        .select_from(tables.outerjoin(table_of(Gpu), gpu.id == size.gpu_id))
        .where(size.provider == bindparam("provider"), size.withdrawn.is_not(True), sold)
        .order_by(size.key, offer.region, offer.os)
    )
