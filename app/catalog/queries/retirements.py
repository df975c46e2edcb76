"""Read announced retirements, each with the source of its date, and the successors that are named for sizes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from typing import Any, TypeVar

from pydantic import Field
from sqlalchemy import ColumnElement, Date, FromClause, Integer, Select, and_, bindparam, case, cast, func, select

from app.catalog.column_types import UsdColumn, table_of
from app.catalog.models import Fact, SizeAlias, Source
from app.catalog.projections import is_priced, usd_by
from app.catalog.purchases import ANY_REGION
from app.catalog.queries.filters import FILTERS, ActiveFilter, Filter, active_filters, filter_condition
from app.catalog.queries.lookups import check_regions, resolve_gpus, resolve_series
from app.catalog.queries.pagination import (
    Listing,
    ListQuery,
    SortKey,
    after_cursor,
    cursor_binds,
    read_page,
    read_position,
)
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
)
from app.catalog.queries.price_scope import (
    GPU,
    OFFER,
    SERIES,
    SIZE,
    TODAY,
    PriceScope,
    PriceScopeKey,
    gpu_slice_gib,
    local_disk_gib,
    matches_offer,
    region_binds,
    region_parameters,
    size,
    status_of,
)
from app.catalog.queries.snapshot import Catalog, CatalogSnapshot
from app.db.statements import BoundStatement, Reader, Statement, cached_statement, fetch, to_dicts
from app.errors import BadQuery

_FIELD = "retirement_date"
_SOURCE_FIELDS = ("title", "kind", "url", "published_on")


class RetirementFilter(QueryParams):
    """Which retirements."""

    series: LowerTextSet = Field(
        default=(),
        description="Of the sizes of a series, by its id or name; of any of several.",
        examples=[["nvv3"]],
    )
    gpu: GpuSet = Field(
        default=(),
        description="Of sizes with this GPU: a name or a glob, as GET /sizes takes it.",
        examples=[["M60"]],
    )
    region: RegionSet = Field(
        default=(), description="Of sizes that have a price in this region; in any of several.", examples=[["eastus"]]
    )
    after: Day | None = Field(default=None, description="Later than this day.", examples=["2026-06-30"])
    before: Day | None = Field(default=None, description="Earlier than this day.", examples=["2027-01-01"])
    past: JsonBool | None = Field(
        default=None, description="Only those that have passed, or only those that are to come; default: both."
    )


class RetirementSearch(RetirementFilter, PageParams):
    """A page of retirements."""


def _has_price(_scope: PriceScope, regions: Sequence[Any]) -> ColumnElement[bool]:
    codes = [bindparam(region.key, type_=OFFER.c.region.type) for region in regions]
    return size.key.in_(select(OFFER.c.size_key).where(OFFER.c.region.in_(codes)))


def _compare_date(name: str) -> Filter:
    def condition(_scope: PriceScope, values: Sequence[Any]) -> ColumnElement[bool]:
        day = bindparam(values[0].key, type_=Date)
        later: ColumnElement[bool] = size.retirement_date > day
        earlier: ColumnElement[bool] = size.retirement_date < day
        return later if name == "after" else earlier

    return Filter(condition, lambda day: (day.isoformat(),))


def _has_passed(_scope: PriceScope, past: bool) -> ColumnElement[bool]:
    passed: ColumnElement[bool] = size.retirement_date <= TODAY
    to_come: ColumnElement[bool] = size.retirement_date > TODAY
    return passed if past else to_come


RETIREMENT_FILTERS: Mapping[str, Filter] = {
    "series": FILTERS["series"],
    "gpu": FILTERS["gpu"],
    "region": Filter(_has_price, tuple),
    "after": _compare_date("after"),
    "before": _compare_date("before"),
    "past": Filter(_has_passed),
}
"""Every filter of retirements by its name."""

_PAST: ColumnElement[int] = case((size.retirement_date > TODAY, 0), else_=1)
_ORDER = [
    SortKey(name="past", expression=_PAST, nullable=False),
    SortKey(name=_FIELD, expression=size.retirement_date, nullable=False),
    SortKey(name="key", expression=size.key, nullable=False),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class RetirementStatementKey:
    """All of a list of retirements but its values: what its statement is cached under."""

    filters: tuple[ActiveFilter, ...]
    after: bool = False


@cached_statement(32)
def _page_statement(key: RetirementStatementKey) -> Statement:
    query = _ordered(key).limit(bindparam("limit", type_=Integer))
    if key.after:
        query = query.where(after_cursor(_ORDER, cursor_binds(_ORDER)))
    return Statement(query)


@cached_statement(32)
def _list_statement(key: RetirementStatementKey) -> Statement:
    return Statement(_ordered(key))


@cached_statement(32)
def _count_statement(key: RetirementStatementKey) -> Statement:
    query = select(func.count()).select_from(SIZE).join(GPU, GPU.c.id == size.gpu_id, isouter=True)
    return Statement(query.where(*_conditions(key)))


def _ordered(key: RetirementStatementKey) -> Select[Any]:
    columns = [
        *(size.name.label("size"), size.key, size.series_id.label("series"), SERIES.c.name.label("series_name")),
        *(size.provider, size.verified, size.vcpus, size.memory_gib, size.gpu_model),
        *(size.gpu_count_numerator, size.gpu_count_denominator, _PAST.label("past")),
    ]
    query = with_retirement(select(*columns)).join(GPU, GPU.c.id == size.gpu_id, isouter=True)
    query = query.join(SERIES, SERIES.c.id == size.series_id, isouter=True).where(*_conditions(key))
    return query.order_by(*(clause for sort_key in _ORDER for clause in sort_key.order_by))


def _conditions(key: RetirementStatementKey) -> list[ColumnElement[bool]]:
    scope = PriceScope.of(OfferParams())  # required by filters of sizes; those of retirements do not use it
    return [
        size.retirement_date.is_not(None),
        *(filter_condition(condition, scope, RETIREMENT_FILTERS) for condition in key.filters),
    ]


def with_retirement(query: Select[Any]) -> Select[Any]:
    """Add status and retirement date of a size, and the accepted fact of it or else of its series, with the source."""
    of_size, of_series = _accepted("of_size"), _accepted("of_series")
    source = table_of(Source)
    joined = query.add_columns(
        status_of(size).label("status"),
        size.retirement_date,
        *(func.coalesce(of_size.c[name], of_series.c[name]).label(name) for name in ("file", "line", "source_id")),
        *(source.c[name].label(f"source_{name}") for name in _SOURCE_FIELDS),
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
    key, values = _to_statement_key(search, catalog.today)
    identity = f"retirements {search.model_dump_json(exclude=search.page_param_names())} {catalog.today}"
    position = read_position(search.cursor, identity, _ORDER) if search.cursor else None
    page = BoundStatement(
        _page_statement(RetirementStatementKey(filters=key.filters, after=position is not None)),
        values | {"limit": search.limit + 1} | (position.parameters if position is not None else {}),
    )
    columns = [page.statement.names.index(name) for name in ("past", _FIELD, "key")]
    listing = read_page(
        catalog,
        ListQuery(
            identity=identity,
            page=page,
            count=lambda: BoundStatement(_count_statement(key), values),
            limit=search.limit,
            position=position,
            key_of=lambda row: [row[column] for column in columns],
        ),
    )
    items = [_to_item(row, catalog.today) for row in to_dicts(page, listing.rows)]
    return Listing(items=items, next_cursor=listing.next_cursor, total=listing.total)


def find_all_retirements(catalog: Catalog, filters: RetirementFilter) -> Sequence[Mapping[str, Any]]:
    """Return all retirements in the order of the list; raises as `find_retirements`."""
    key, values = _to_statement_key(_normalize(filters, catalog.snapshot), catalog.today)
    query = BoundStatement(_list_statement(key), values)
    rows = catalog.fetch(query)
    return [_to_item(row, catalog.today) for row in to_dicts(query, rows)]


def find_usual_region(reader: Reader, os: Os) -> str | None:
    """Return the region in which most sizes that retire are cheapest on demand; None where none has a price."""
    query = BoundStatement(_usual_region_statement(), {"os": os, "any": ANY_REGION["on_demand"]})
    rows = fetch(reader, query)
    return next((row[0] for row in rows), None)


@cached_statement(1)
def _usual_region_statement() -> Statement:
    offer, number = OFFER.c, func.count()
    of_any = and_(
        offer.region == bindparam("any", type_=offer.region.type), offer.os == bindparam("os", type_=offer.os.type)
    )
    query = select(offer.priced_in).where(of_any, offer.retirement_date.is_not(None), offer.priced_in.is_not(None))
    return Statement(query.group_by(offer.priced_in).order_by(number.desc(), offer.priced_in).limit(1))


def _normalize(filters: FilterT, snapshot: CatalogSnapshot) -> FilterT:
    if filters.after is not None and filters.before is not None and filters.after >= filters.before:
        raise BadQuery("after", filters.after, f"must be earlier than before={filters.before}")
    check_regions(snapshot.regions, "region", filters.region)
    series = resolve_series(snapshot.series, filters.series)
    return filters.model_copy(update={"series": series, "gpu": resolve_gpus(snapshot.gpus, filters.gpu)})


def _to_statement_key(filters: RetirementFilter, today: date) -> tuple[RetirementStatementKey, dict[str, Any]]:
    active, values = active_filters(filters, RETIREMENT_FILTERS, RETIREMENT_FILTERS)
    return RetirementStatementKey(filters=active), values | {"today": today.isoformat()}


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
