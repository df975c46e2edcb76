"""Read change events: a page of them by number, or the newest revisions with their first events."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import lru_cache
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, Field

from app.catalog.fields import ChangeKind
from app.catalog.names import size_key
from app.catalog.purchases import Purchase
from app.catalog.queries.filters import (
    FILTERS,
    ActiveFilter,
    Filter,
    active_filters,
    any_of,
    conditions_by,
    equals,
    matches_name,
    name_patterns,
)
from app.catalog.queries.lookups import (
    check_cloud,
    check_regions,
    check_regions_of_sizes,
    get_size_keys,
    resolve_gpus,
    resolve_series,
)
from app.catalog.queries.pagination import Listing, ListStatements, read_list
from app.catalog.queries.params import (
    MAX_VALUES,
    Count,
    GpuSet,
    LowerTextSet,
    Os,
    PageParams,
    PlainText,
    ProviderSet,
    Quantity,
    QueryParams,
    RegionSet,
    as_set,
    not_later_than,
    optional,
    several,
)
from app.catalog.queries.price_scope import PriceScope
from app.catalog.queries.snapshot import Catalog
from app.catalog.statements import COLUMN_KINDS, RAW, Statement, cached_statement
from app.db.dialects import Dialect, all_of, columns_of
from app.db.statements import BoundStatement, ColumnKind, Reader, fetch, to_dicts
from app.errors import BadQuery, NotFound

MAX_ENTRIES = 30
"""How many revisions a feed has at most."""

MAX_LINES = 20
"""How many events of a revision a feed has at most."""


_REVISION_PATTERN = "[0-9]{1,9}"
_DAY_PATTERN = (
    "[12][0-9]{3}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|[12][0-9]))"
)
SINCE_PATTERN = f"^({_REVISION_PATTERN}|{_DAY_PATTERN})$"
"""The number of a revision or a day; of days it lets only a 29th of February pass that the year does not have."""


def _check_since(text: str) -> str:
    """Check that a text is the number of a revision or a day."""
    if re.fullmatch(_REVISION_PATTERN, text):
        return text
    try:
        if re.fullmatch(_DAY_PATTERN, text):
            return date.fromisoformat(text).isoformat()
    except ValueError:
        pass
    raise ValueError("must be the number of a revision, or a date such as 2026-09-01")


Since = Annotated[PlainText, Field(json_schema_extra={"pattern": SINCE_PATTERN}), AfterValidator(_check_since)]


class ChangeFilter(QueryParams):
    """Which events."""

    since: Since | None = optional(
        "After this revision, by its number; or on this day (UTC) and later. Default: all.", "2026-09-01"
    )
    kind: Annotated[tuple[ChangeKind, ...], Field(max_length=MAX_VALUES), AfterValidator(as_set)] = several(
        "Of this kind; of any of several.", "price_up"
    )
    size: LowerTextSet = several(
        "Of this size, by any of its names, or a glob on its name; of any of several.", "Standard_NC*_v5"
    )
    series: LowerTextSet = several("Of the sizes of a series that are in the catalog; of any of several.", "ndv2")
    provider: ProviderSet = ()
    gpu: GpuSet = several("Of sizes in the catalog with this GPU: a name or a glob, as GET /sizes takes it.", "A100")
    revision: Count | None = optional("Of this revision, by its number.", 1)
    region: RegionSet = several("Only of prices in this region; in any of several.", "eastus")
    os: Os | None = optional("Only of prices of this operating system.")
    purchase: Purchase | None = optional("Only of prices of this purchase model.")
    min_percent: Quantity | None = optional(
        "Only prices that rose or fell by at least this percentage of the old price.", 5
    )


class ChangeSearch(ChangeFilter, PageParams):
    """A page of events."""


def _moved_by(_scope: PriceScope, least: Sequence[str]) -> str:
    return f"change.percent >= {least[0]} or change.percent <= -{least[0]}"


CHANGE_FILTERS: Mapping[str, Filter] = {
    "kind": any_of("change.kind"),
    "revision": equals("change.revision"),
    "size": Filter(lambda _scope, patterns: matches_name("change.size_key", "change.size", patterns), name_patterns),
    "provider": FILTERS["provider"],
    "series": FILTERS["series"],
    "gpu": FILTERS["gpu"],
    "region": any_of("change.region"),
    "os": equals("change.os"),
    "purchase": equals("change.purchase"),
    "min_percent": Filter(_moved_by, lambda percent: (float(percent),)),
}
"""Every filter of events by its name, except `since`, which is a revision when the statement runs."""

_COLUMNS = (
    *("id", "revision", "kind", "size", "region", "os", "purchase", "field"),
    *("old", "new", "percent", "valid_from", "source_id"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeListing(Listing):
    """A page of events; `tracked_since` is when the revision was made from which on changes are known."""

    revision: int
    tracked_since: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class RevisionChanges:
    """A revision: how many events match in it, by kind, and the first MAX_LINES of them."""

    number: int
    created_at: datetime
    counts: Mapping[str, int]
    events: Sequence[Mapping[str, Any]]


# Statements


Filters = tuple[ActiveFilter, ...]
"""The filters of a request: what its statements are cached under."""


_EVENT_KINDS: Mapping[str, ColumnKind] = {**COLUMN_KINDS, "at": "time"}
_EVENT = f"{columns_of('change', _COLUMNS)}, revision.created_at as at"


@lru_cache(maxsize=64)
def _listed(filters: Filters) -> ListStatements:
    return ListStatements(lambda sql: f"select {_EVENT} {_from_changes(sql, filters)}", {"id": int}, kinds=_EVENT_KINDS)


@cached_statement(64)
def _entries_statement(sql: Dialect, filters: Filters) -> str:
    """Rows: revision, time, kind, number of events; of the newest revisions with any."""
    changes = _from_changes(sql, filters)
    return f"""
        select change.revision, revision.created_at, change.kind, count(*) as events {changes}
            and change.revision in (
                select distinct change.revision {changes} order by change.revision desc limit :limit
            )
        group by change.revision, revision.created_at, change.kind
        order by change.revision desc, min(change.id)
    """


@cached_statement(64, kinds=_EVENT_KINDS)
def _lines_statement(sql: Dialect, filters: Filters) -> str:
    """Rows: the first events of each revision from one on."""
    return f"""
        select {", ".join(_COLUMNS)}, at
        from (
            select {_EVENT}, row_number() over (partition by change.revision order by change.id) as position
            {_from_changes(sql, filters)}
        ) as numbered
        where position <= :lines
        order by id
    """


def _from_changes(sql: Dialect, filters: Filters) -> str:
    """Write from where events of the revisions after one come; sizes and GPUs are joined only for a filter on them."""
    used = {condition.name for condition in filters}
    joins = "join size on size.key = change.size_key" if used & {"provider", "series", "gpu"} else ""
    joins += " left join gpu on gpu.id = size.gpu_id" if "gpu" in used else ""
    return f"""from change join revision on revision.number = change.revision {joins}
        where {all_of("change.revision > :since", *conditions_by(sql, CHANGE_FILTERS, filters))}"""


_TRACKED = Statement("select created_at from revision where changes is null order by number desc limit 1", short=True)
_NEWEST = Statement("select coalesce(max(id), 0) as id from change", short=True)
_BEFORE = Statement("select coalesce(max(number), 0) as number from revision where created_at < :day", short=True)
_KNOWN = Statement("select exists (select 1 from change where size_key = :key) as known")


# Plans


def find_changes(catalog: Catalog, search: ChangeSearch) -> ChangeListing:
    """Find one page of events, the oldest first.

    Raises BadQuery for an unknown size, series, GPU or region, and for a future revision or day.
    """
    search = normalize(catalog, search)
    filters, values = _active(catalog, search)
    identity = f"changes {search.model_dump_json(exclude=search.page_param_names())}"
    listing = read_list(catalog, _listed(filters), values, search, identity=identity)
    ((tracked_since,),) = catalog.fetch(BoundStatement(_TRACKED))
    return ChangeListing(
        items=listing.items,
        next_cursor=listing.next_cursor,
        total=listing.total,
        revision=catalog.snapshot.revision_number,
        tracked_since=tracked_since,
    )


def find_revision_changes(catalog: Catalog, filters: ChangeFilter) -> list[RevisionChanges]:
    """Find the newest revisions with events that match, the newest first; raises as `find_changes`."""
    active, values = _active(catalog, normalize(catalog, filters))
    entries = catalog.fetch(BoundStatement(_entries_statement(active), values | {"limit": MAX_ENTRIES}))
    if not entries:
        return []
    lines = BoundStatement(_lines_statement(active), values | {"since": entries[-1][0] - 1, "lines": MAX_LINES})
    rows = catalog.fetch(lines)
    events = to_dicts(lines, rows)
    created = {number: created_at for number, created_at, _, _ in entries}
    return [
        RevisionChanges(
            number=number,
            created_at=created_at,
            counts={kind: count for revision, _, kind, count in entries if revision == number},
            events=[event for event in events if event["revision"] == number],
        )
        for number, created_at in created.items()
    ]


def find_next_changes(
    reader: Reader, filters: ChangeFilter, after: int, limit: int
) -> tuple[list[dict[str, Any]], int]:
    """Find the first events after one by its id, the oldest first, and the id of the newest event of all.

    `filters` are normalized, and no name in them is looked up again.
    """
    ((newest,),) = fetch(reader, BoundStatement(_NEWEST))
    active, values = _active(reader, filters)
    page = BoundStatement(_listed(active).later, values | {"at_0": after, "limit": limit})
    rows = fetch(reader, page)
    return to_dicts(page, rows), newest


PAST_DAYS = 365


def find_past_changes(catalog: Catalog) -> Mapping[str, list[dict[str, Any]]]:
    """Find the changes of Linux prices on demand in the last year by the day from which a list has the new price.

    These are of lists that were read at once, so no revision has them as changes. Of a day the greatest come first.
    """
    since = catalog.today - timedelta(days=PAST_DAYS)
    bound = BoundStatement(_PAST, {"since": since.isoformat()})
    by_day: dict[str, list[dict[str, Any]]] = {}
    for event in to_dicts(bound, catalog.fetch(bound)):
        old, new = (Decimal(event[name]).scaleb(-9) for name in ("old", "new"))
        event |= {"old": f"{old.normalize():f}", "new": f"{new.normalize():f}", "percent": float(100 * new / old - 100)}
        event["kind"] = "price_up" if new > old else "price_down"
        by_day.setdefault(event["day"], []).append(event)
    for events in by_day.values():
        events.sort(key=lambda event: -abs(event["percent"]))
    return by_day


_PAST = Statement(
    # After an unusual price the next is no change.
    lambda _sql: (
        """
        select size.name as size, run.region, run.os, run.purchase, run.day, run.old, run.new, run.source_id
        from (
            select size_key, region, source_id, os, purchase,
                cast(valid_from as text) as day,
                nano_usd_per_hour as new,
                lag(nano_usd_per_hour)
                    over (partition by size_key, region, source_id order by valid_from, known_from) as old
            from price
            where os = 'linux' and purchase = 'on_demand' and median_nano_usd is null
        ) as run
        join size on size.key = run.size_key
        where run.new <> run.old and run.old > 0 and run.day >= :since
        order by run.day desc, size.key, run.region
    """
    ),
    kinds=RAW,
)


FilterT = TypeVar("FilterT", bound=ChangeFilter)


def normalize(catalog: Catalog, filters: FilterT) -> FilterT:
    """Replace names of sizes, series and GPUs by those of the catalog; raises BadQuery for one that it lacks.

    Also for a future revision or day: after a database is rebuilt, followers would silently get nothing.
    """
    _check_moments(catalog, filters)
    check_regions(catalog.snapshot.regions, "region", filters.region)
    check_cloud(catalog.snapshot.regions, "region", filters.region, filters.provider)
    sizes, there = [*filters.size], list[str]()
    for index, name in enumerate(sizes):
        if "*" in name or "?" in name:
            continue
        try:
            (key,) = get_size_keys(catalog, (name,), catalog.snapshot.series)
            sizes[index] = key
            there.append(key)
        except NotFound as unknown:
            sizes[index] = size_key(name)  # of a size that is gone
            ((was_there,),) = catalog.fetch(BoundStatement(_KNOWN, {"key": sizes[index]}))
            if not was_there:
                raise BadQuery("size", unknown.name, unknown.of_value("GET /sizes lists them")) from None
    if sizes == there:  # a size that is gone, and those of a glob, may be of any cloud
        check_regions_of_sizes(catalog, catalog.snapshot.regions, there, filters.region)
    return filters.model_copy(
        update={
            "size": tuple(sizes),
            "series": resolve_series(catalog.snapshot.series, filters.series),
            "gpu": resolve_gpus(catalog.snapshot.gpus, filters.gpu),
        }
    )


def _check_moments(catalog: Catalog, filters: ChangeFilter) -> None:
    since = filters.since or "0"
    if not since.isdigit() and date.fromisoformat(since) > catalog.today:
        raise BadQuery("since", since, not_later_than(catalog.today))
    newest = catalog.snapshot.revision_number
    for name, number in (("since", int(since) if since.isdigit() else 0), ("revision", filters.revision or 0)):
        if number > newest:
            raise BadQuery(name, number, f"must not be greater than {newest}, the newest revision")


def _active(reader: Reader, filters: ChangeFilter) -> tuple[Filters, dict[str, Any]]:
    """Return the filters of a request, and the values of its statements."""
    active, values = active_filters(filters, CHANGE_FILTERS, CHANGE_FILTERS)
    since = filters.since or "0"
    if since.isdigit():
        return active, values | {"since": int(since)}
    ((before,),) = fetch(reader, BoundStatement(_BEFORE, {"day": f"{since} 00:00:00+00:00"}))
    return active, values | {"since": before}
