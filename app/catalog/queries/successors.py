"""Read what a plan for retirements needs of the whole catalog: sizes, their other names, and prices of some regions."""

from datetime import date

from sqlalchemy import cast, select

from app.catalog.column_types import UsdColumn, table_of
from app.catalog.models import SizeAlias
from app.catalog.projections import is_priced, usd_by
from app.catalog.queries.params import OfferParams
from app.catalog.queries.price_scope import (
    OFFER,
    SERIES,
    PriceScopeKey,
    gpu_slice_gib,
    local_disk_gib,
    matches_offer,
    region_binds,
    region_parameters,
    size,
)
from app.catalog.queries.retirements import with_retirement
from app.db.statements import BoundStatement, Statement, cached_statement

_FIGURES = (
    *("vcpus", "memory_gib", "gpu_memory_gib", "gpu_count", "gpu_vendor", "gpu_model", "arch", "max_data_disks"),
    *(
        "uncached_disk_iops",
        "uncached_disk_mbps",
        "max_nics",
        "network_mbps",
        "infiniband_gbps",
        "infiniband",
        "nvlink",
    ),
    *("premium_storage", "accelerated_networking", "ephemeral_os_disk", "generation_1", "generation_2"),
    *("premium_storage_caching", "ultra_disk", "nested_virtualization", "hibernation", "live_migration"),
    *("memory_preserving_updates", "gpudirect_rdma", "gpu_count_numerator", "gpu_count_denominator"),
    *("quota_family", "parent_size"),
)


def planned_sizes_query(today: date) -> BoundStatement:
    """Return the query of every size: its figures, status, retirement with its source, and family of its series."""
    return BoundStatement(_sizes_statement(), {"today": today.isoformat()})


@cached_statement(1)
def _sizes_statement() -> Statement:
    columns = [
        *(size.key, size.name, size.provider, size.series_id.label("series"), size.verified),
        *(SERIES.c.family, SERIES.c.category),
        *(size[name] for name in _FIGURES),
        local_disk_gib().label("local_disk_gib"),
        gpu_slice_gib().label("gpu_memory_gib_per_gpu"),
    ]
    query = with_retirement(select(*columns)).join(SERIES, SERIES.c.id == size.series_id, isouter=True)
    return Statement(query.order_by(size.key))


def aliases_query() -> BoundStatement:
    """Return the query of every other name of a size: the key of the name, and the key of the size."""
    return BoundStatement(_aliases_statement(), {})


@cached_statement(1)
def _aliases_statement() -> Statement:
    alias = table_of(SizeAlias).c
    return Statement(select(alias.alias_key, alias.size_key))


def prices_query(params: OfferParams) -> BoundStatement:
    """Return the query of the prices in force in each region of `params`.

    Its rows: region, key of the size, USD/h, its day, and JSON of what rules did to it, else null.
    """
    return BoundStatement(_prices_statement(PriceScopeKey.of(params, ())), region_parameters(params))


@cached_statement(64)
def _prices_statement(key: PriceScopeKey) -> Statement:
    offer = OFFER.c
    query = select(
        offer.region,
        offer.size_key,
        cast(usd_by(offer, key.purchase), UsdColumn).label("usd_per_hour"),
        offer[f"{key.purchase}_as_of"],
        offer[f"{key.purchase}_adjustment"],
    )
    there = (offer.region.in_(region_binds(key.regions)), matches_offer(offer, key), is_priced(offer, key.purchase))
    return Statement(query.where(*there))
