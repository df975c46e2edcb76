"""Read announced retirements, each with the source of its date, and the successors that are named for sizes."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Date, FromClause, Select, and_, bindparam, case, cast, func, select

from app.catalog.column_types import UsdColumn, table_of
from app.catalog.models import Fact, SizeAlias, Source
from app.catalog.projections import is_priced, usd_by
from app.catalog.purchases import ANY_REGION
from app.catalog.queries.filters import FILTERS, ActiveFilter, Filter, active_filters, conditions_by
from app.catalog.queries.lookups import check_regions, resolve_gpus, resolve_series
from app.catalog.queries.pagination import Listing, ListStatements, read_list
from app.catalog.queries.params import (
    Day,
    GpuSet,
    JsonBool,
    LowerTextSet,
    OfferParams,
    Os,
    PageParams,
    QueryParams,
    RegionSet,
    optional,
    several,
)
from app.catalog.queries.price_scope import (
    GPU,
    OFFER,
    SERIES,
    SIZE,
    TODAY,
    PriceScope,
    PriceScopeKey,
    gpu_memory_gib_on_one_gpu,
    literal_text,
    local_disk_gib,
    region_binds,
    region_parameters,
    size,
    status_of,
)
from app.catalog.queries.provenance import about
from app.catalog.queries.snapshot import Catalog, CatalogSnapshot
from app.db.statements import BoundStatement, Reader, Statement, cached_statement, fetch, to_dicts
from app.errors import BadQuery

_FIELD = "retirement_date"


class RetirementFilter(QueryParams):
    """Which retirements."""

    series: LowerTextSet = several("Of the sizes of a series, by its id or name; of any of several.", "nvv3")
    gpu: GpuSet = several("Of sizes with this GPU: a name or a glob, as GET /sizes takes it.", "M60")
    region: RegionSet = several("Of sizes that have a price in this region; in any of several.", "eastus")
    after: Day | None = optional("Later than this day.", "2026-06-30")
    before: Day | None = optional("Earlier than this day.", "2027-01-01")
    past: JsonBool | None = optional("Only those that have passed, or only those that are to come; default: both.")


class RetirementSearch(RetirementFilter, PageParams):
    """A page of retirements."""


def _has_price(_scope: PriceScope, regions: Sequence[Any]) -> ColumnElement[bool]:
    codes = [bindparam(region.key, type_=OFFER.c.region.type) for region in regions]
    return size.key.in_(select(OFFER.c.size_key).where(OFFER.c.region.in_(codes)))


def _to_text(day: date) -> Sequence[str]:
    return (day.isoformat(),)


RETIREMENT_FILTERS: Mapping[str, Filter] = {
    "series": FILTERS["series"],
    "gpu": FILTERS["gpu"],
    "region": Filter(_has_price, tuple),
    "after": Filter(lambda _scope, days: size.retirement_date > bindparam(days[0].key, type_=Date), _to_text),
    "before": Filter(lambda _scope, days: size.retirement_date < bindparam(days[0].key, type_=Date), _to_text),
    "past": Filter(lambda _scope, past: size.retirement_date <= TODAY if past else size.retirement_date > TODAY),
}
"""Every filter of retirements by its name."""

_PAST: ColumnElement[int] = case((size.retirement_date > TODAY, 0), else_=1)


@lru_cache(maxsize=32)
def _listed(filters: tuple[ActiveFilter, ...]) -> ListStatements:
    """Return the list of the retirements that meet some filters."""

    def build() -> Select[Any]:
        columns = [
            *(size.name.label("size"), size.key, size.series_id.label("series"), SERIES.c.name.label("series_name")),
            *(size.provider, size.verified, size.vcpus, size.memory_gib, size.gpu_model),
            *(size.gpu_count_numerator, size.gpu_count_denominator, _PAST.label("past")),
        ]
        query = with_retirement(select(*columns)).join(GPU, GPU.c.id == size.gpu_id, isouter=True)
        query = query.join(SERIES, SERIES.c.id == size.series_id, isouter=True)
        return query.where(size.retirement_date.is_not(None), *conditions_by(RETIREMENT_FILTERS, filters))

    return ListStatements(build, ("past", _FIELD, "key"))


def with_retirement(query: Select[Any]) -> Select[Any]:
    """Add status and retirement date of a size, and the accepted fact of it or else of its series, with the source."""
    of_size, of_series = _accepted("of_size"), _accepted("of_series")
    source = table_of(Source)
    joined = query.add_columns(
        status_of(size).label("status"),
        size.retirement_date,
        *(func.coalesce(of_size.c[name], of_series.c[name]).label(name) for name in ("file", "line", "source_id")),
        *about(source),
    ).select_from(SIZE)
    joined = joined.join(of_size, and_(of_size.c.kind == "size", of_size.c.subject == size.key), isouter=True)
    joined = joined.join(
        of_series, and_(of_series.c.kind == "series", of_series.c.subject == size.series_id), isouter=True
    )
    return joined.join(source, source.c.id == func.coalesce(of_size.c.source_id, of_series.c.source_id), isouter=True)


def _accepted(name: str) -> FromClause:
    """Select the accepted facts on retirement dates."""
    fact = table_of(Fact).c
    shown = (fact[column] for column in ("kind", "subject", "file", "line", "source_id"))
    return select(*shown).where(fact.field == _FIELD, fact.verdict == "accepted").subquery(name)


FilterT = TypeVar("FilterT", bound=RetirementFilter)


def find_retirements(catalog: Catalog, search: RetirementSearch) -> Listing:
    """Find one page of retirements, those to come first, by date; raises BadQuery for a wrong filter."""
    search = _normalize(search, catalog.snapshot)
    filters, values = active_filters(search, RETIREMENT_FILTERS, RETIREMENT_FILTERS)
    identity = f"retirements {search.model_dump_json(exclude=search.page_param_names())} {catalog.today}"
    values["today"] = catalog.today.isoformat()
    listing = read_list(catalog, _listed(filters), values, search, identity=identity)
    return replace(listing, items=[_to_item(row, catalog.today) for row in listing.items])


def find_all_retirements(catalog: Catalog, filters: RetirementFilter) -> Sequence[Mapping[str, Any]]:
    """Return all retirements in the order of the list; raises as `find_retirements`."""
    active, values = active_filters(_normalize(filters, catalog.snapshot), RETIREMENT_FILTERS, RETIREMENT_FILTERS)
    query = BoundStatement(_listed(active).whole, values | {"today": catalog.today.isoformat()})
    return [_to_item(row, catalog.today) for row in to_dicts(query, catalog.fetch(query))]


def find_usual_region(reader: Reader, os: Os) -> str | None:
    """Return the region in which most sizes that retire are cheapest on demand; None where none has a price."""
    rows = fetch(reader, BoundStatement(_usual_region_statement(), {"os": os, "any": ANY_REGION["on_demand"]}))
    return next((region for (region,) in rows), None)


@cached_statement(1)
def _usual_region_statement() -> Select[Any]:
    offer, number = OFFER.c, func.count()
    of_any = and_(
        offer.region == bindparam("any", type_=offer.region.type), offer.os == bindparam("os", type_=offer.os.type)
    )
    query = select(offer.priced_in).where(of_any, offer.retirement_date.is_not(None), offer.priced_in.is_not(None))
    return query.group_by(offer.priced_in).order_by(number.desc(), offer.priced_in).limit(1)


def _normalize(filters: FilterT, snapshot: CatalogSnapshot) -> FilterT:
    if filters.after is not None and filters.before is not None and filters.after >= filters.before:
        raise BadQuery("after", filters.after, f"must be earlier than before={filters.before}")
    check_regions(snapshot.regions, "region", filters.region)
    series = resolve_series(snapshot.series, filters.series)
    return filters.model_copy(update={"series": series, "gpu": resolve_gpus(snapshot.gpus, filters.gpu)})


def _to_item(row: Mapping[str, Any], today: date) -> dict[str, Any]:
    item = {name: value for name, value in row.items() if name not in _NOT_SHOWN}
    denominator = row["gpu_count_denominator"]
    gpus = Fraction(row["gpu_count_numerator"], denominator) if denominator else None
    return item | {
        "gpu_count": round(float(gpus), 4) if gpus is not None else None,
        "gpu_fraction": str(gpus) if gpus is not None and gpus.denominator > 1 else None,
        "days_left": (row[_FIELD] - today).days,
    }


_NOT_SHOWN = ("key", "past", "gpu_count_numerator", "gpu_count_denominator")


_FIGURES = (
    *("vcpus", "memory_gib", "gpu_memory_gib", "gpu_count", "gpu_vendor", "gpu_model", "arch", "max_data_disks"),
    *("cpu_vendor", "cpu_model", "coremark", "local_nvme", "disk_controller", "encryption_at_host", "trusted_launch"),
    *("uncached_disk_iops", "uncached_disk_mbps", "max_nics", "network_mbps", "infiniband_gbps"),
    *("infiniband", "nvlink"),
    *("premium_storage", "accelerated_networking", "ephemeral_os_disk", "generation_1", "generation_2"),
    *("premium_storage_caching", "ultra_disk", "nested_virtualization", "hibernation", "live_migration"),
    *("memory_preserving_updates", "gpudirect_rdma", "gpu_count_numerator", "gpu_count_denominator"),
    *("quota_family", "parent_size"),
)


def planned_sizes_query(today: date) -> BoundStatement:
    """Return the query of every size: its figures, status, retirement with its source, and family of its series."""
    return BoundStatement(_sizes_statement(), {"today": today.isoformat()})


@cached_statement(1)
def _sizes_statement() -> Select[Any]:
    columns = [
        *(size.key, size.name, size.provider, size.series_id.label("series"), size.verified),
        *(SERIES.c.family, SERIES.c.category),
        *(size[name] for name in _FIGURES),
        local_disk_gib().label("local_disk_gib"),
        gpu_memory_gib_on_one_gpu().label("gpu_memory_gib_per_gpu"),
    ]
    query = with_retirement(select(*columns)).join(SERIES, SERIES.c.id == size.series_id, isouter=True)
    return query.order_by(size.key)


ALIASES = BoundStatement(Statement(lambda: select(*table_of(SizeAlias).c["alias_key", "size_key"])), {})
"""The query of every other name of a size: the key of the name, and the key of the size."""


def prices_query(params: OfferParams) -> BoundStatement:
    """Return the query of the prices in force in each region of `params`.

    Its rows: region, key of the size, USD/h, its day, and JSON of what rules did to it, else null.
    """
    return BoundStatement(_prices_statement(PriceScopeKey.of(params, ())), region_parameters(params))


@cached_statement(64)
def _prices_statement(key: PriceScopeKey) -> Select[Any]:
    offer = OFFER.c
    query = select(
        offer.region,
        offer.size_key,
        cast(usd_by(offer, key.purchase), UsdColumn).label("usd_per_hour"),
        offer[f"{key.purchase}_as_of"],
        offer[f"{key.purchase}_adjustment"],
    )
    there = (offer.region.in_(region_binds(key.regions)), offer.os == literal_text(key.os))
    return query.where(*there, is_priced(offer, key.purchase))
