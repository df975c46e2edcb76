"""Read announced retirements, each with the source of its date, and the successors that are named for sizes."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeVar

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
    GPU_MEMORY_GIB_ON_ONE_GPU,
    LOCAL_DISK_GIB,
    PriceScope,
    PriceScopeKey,
    region_parameters,
    status_of,
)
from app.catalog.queries.provenance import about
from app.catalog.queries.snapshot import Catalog, CatalogSnapshot
from app.catalog.statements import Statement, cached_statement, exact
from app.db.dialects import Dialect, all_of, columns_of, parameters, quote
from app.db.statements import BoundStatement, Reader, fetch, to_dicts
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


def _has_price(_scope: PriceScope, codes: Sequence[str]) -> str:
    return f"size.key in (select size_key from offer where region in ({', '.join(codes)}))"


def _to_text(day: date) -> Sequence[str]:
    return (day.isoformat(),)


RETIREMENT_FILTERS: Mapping[str, Filter] = {
    "series": FILTERS["series"],
    "gpu": FILTERS["gpu"],
    "region": Filter(_has_price, tuple),
    "after": Filter(lambda _scope, days: f"size.retirement_date > {days[0]}", _to_text),
    "before": Filter(lambda _scope, days: f"size.retirement_date < {days[0]}", _to_text),
    "past": Filter(lambda scope, past: f"size.retirement_date {'<=' if past else '>'} {scope.sql.day('today')}"),
}
"""Every filter of retirements by its name."""


@lru_cache(maxsize=32)
def _listed(filters: tuple[ActiveFilter, ...]) -> ListStatements:
    """Return the list of the retirements that meet some filters."""

    def build(sql: Dialect) -> str:
        return f"""
            select size.name as size, size.key, size.series_id as series, series.name as series_name, size.provider,
                size.verified, size.vcpus, size.memory_gib, size.gpu_model,
                size.gpu_count_numerator, size.gpu_count_denominator,
                case when size.retirement_date > {sql.day("today")} then 0 else 1 end as past,
                {_retirement(sql)}
            from size {_RETIREMENT_JOINS}
            left join gpu on gpu.id = size.gpu_id
            left join series on series.id = size.series_id
            where {all_of("size.retirement_date is not null", *conditions_by(sql, RETIREMENT_FILTERS, filters))}
        """

    return ListStatements(build, {"past": int, _FIELD: date, "key": str})


def _retirement(sql: Dialect) -> str:
    """Write status and retirement date of a size, and where _RETIREMENT_JOINS have the date from."""
    stated = (f"coalesce(of_size.{name}, of_series.{name}) as {name}" for name in ("file", "line", "source_id"))
    return f"{status_of(sql, 'size')} as status, size.retirement_date, {', '.join(stated)}, {about('source')}"


def _join_accepted(name: str, kind: str, subject: str) -> str:
    return f"""
        left join fact as {name} on {name}.kind = '{kind}' and {name}.subject = {subject}
            and {name}.field = '{_FIELD}' and {name}.verdict = 'accepted'"""


_RETIREMENT_JOINS = f"""{_join_accepted("of_size", "size", "size.key")}
    {_join_accepted("of_series", "series", "size.series_id")}
    left join source on source.id = coalesce(of_size.source_id, of_series.source_id)
"""
"""The accepted fact on the retirement of a size, or else of its series, with the source."""


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
    rows = fetch(reader, BoundStatement(_USUAL_REGION, {"os": os, "any": ANY_REGION["on_demand"]}))
    return next((region for (region,) in rows), None)


_USUAL_REGION = Statement("""
        select priced_in from offer
        where region = :any and os = :os and retirement_date is not null and priced_in is not null
        group by priced_in
        order by count(*) desc, priced_in
        limit 1
    """)


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
    return BoundStatement(_PLANNED_SIZES, {"today": today.isoformat()})


_PLANNED_SIZES = Statement(
    lambda sql: (
        f"""
        select size.key, size.name, size.provider, size.series_id as series, size.verified,
            series.family, series.category, {columns_of("size", _FIGURES)},
            {LOCAL_DISK_GIB} as local_disk_gib, {GPU_MEMORY_GIB_ON_ONE_GPU} as gpu_memory_gib_per_gpu,
            {_retirement(sql)}
        from size {_RETIREMENT_JOINS}
        left join series on series.id = size.series_id
        order by size.key
    """
    )
)

ALIASES = BoundStatement(Statement("select alias_key, size_key from size_alias"), {})
"""The query of every other name of a size: the key of the name, and the key of the size."""


def prices_query(params: OfferParams) -> BoundStatement:
    """Return the query of the prices in force in each region of `params`.

    Its rows: region, key of the size, USD/h, its day, and JSON of what rules did to it, else null.
    """
    return BoundStatement(_prices_statement(PriceScopeKey.of(params, ())), region_parameters(params))


@cached_statement(64, kinds=exact("usd_per_hour"))
def _prices_statement(sql: Dialect, key: PriceScopeKey) -> str:
    return f"""
        select region, size_key, {usd_by(sql, "offer", key.purchase)} as usd_per_hour,
            {key.purchase}_as_of, {key.purchase}_adjustment
        from offer
        where region in ({", ".join(parameters("region", key.regions))}) and os = {quote(key.os)}
            and {is_priced(sql, "offer", key.purchase)}
    """
