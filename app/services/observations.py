"""Observations of capacity: what vendors reported to the holder of one API key, who alone sees it until it expires.

A list, feed, file or comparison of the catalog has nothing of them, and no figure is computed from them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from app.catalog.names import size_key
from app.catalog.providers import ProviderId
from app.catalog.queries.lookups import get_size_keys
from app.catalog.queries.snapshot import Catalog
from app.catalog.statements import Statement
from app.db.statements import BoundStatement, Reader, fetch, to_dicts
from app.schemas.catalog import ObservationOut, ObservationsOut
from app.services.retirements import Names, load_sizes

if TYPE_CHECKING:
    from sqlalchemy.orm import Session

PLACEMENT_SCORE, EVICTION_RATE = "spot_placement_score", "spot_eviction_rate"
OBTAINABILITY, ESTIMATED_UPTIME = "obtainability", "estimated_uptime"
MAX_OBSERVATIONS = 100_000
"""The most of one file."""
MAX_SHOWN = 1_000


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of observation: what its value means by the vendor's own words, and for how many hours it counts.

    Vendors give scores for the moment they are asked; for how long those count is a choice made here.
    """

    meaning: str
    hours: int


KINDS: Mapping[str, Kind] = {
    PLACEMENT_SCORE: Kind(
        "how likely a request for spot VMs is to be fulfilled: High, Medium, Low (Azure), 1 to 10 (AWS)", 24
    ),
    EVICTION_RATE: Kind("percent of spot VMs that are evicted in an hour, over the last 28 days (Azure)", 7 * 24),
    OBTAINABILITY: Kind("how likely the VMs are to be obtained, 0 to 1 (Google Cloud)", 24),
    ESTIMATED_UPTIME: Kind("how long most of the spot VMs will run before they are preempted (Google Cloud)", 24),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class NewObservation:
    """What a vendor reported about a size in a place."""

    provider: ProviderId
    size: str
    region: str
    kind: str
    value: str
    zone: str | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedObservations:
    """When each observation expires, and the names of sizes and regions that the catalog lacks."""

    expires_at: Sequence[datetime]
    has_known_size: bool
    unknown_sizes: Sequence[str]
    unknown_regions: Sequence[str]


def save_observations(
    session: "Session",
    catalog: Catalog,
    observations: Sequence[NewObservation],
    *,
    scope: str,
    source: str,
    observed_at: datetime,
    hours: int | None = None,
) -> SavedObservations:
    """Save what a holder's file says, in place of what it said before.

    `hours` is for how long it counts, by default that of each kind.
    """
    from sqlalchemy import insert

    from app.catalog.column_types import table_of
    from app.catalog.models.observations import Observation

    names = Names.of(catalog, load_sizes(catalog))
    keys = {(entry.provider, entry.size): names.find_key(f"{entry.provider}:{entry.size}") for entry in observations}
    rows = [
        {
            **{name: value for name, value in asdict(entry).items() if name not in ("provider", "size")},
            "scope": scope,
            "source": source,
            "position": position,
            "size_key": keys[entry.provider, entry.size] or size_key(entry.size),
            "observed_at": observed_at,
            "expires_at": observed_at + timedelta(hours=hours or KINDS[entry.kind].hours),
        }
        for position, entry in enumerate(observations)
    ]
    forget_observations(session, scope, source)
    session.execute(insert(table_of(Observation)), rows)
    return SavedObservations(
        expires_at=[row["expires_at"] for row in rows],
        has_known_size=any(keys.values()),
        unknown_sizes=sorted({f"{size} of {provider}" for (provider, size), key in keys.items() if key is None}),
        unknown_regions=sorted({entry.region for entry in observations} - names.regions.keys()),
    )


def forget_observations(session: "Session", scope: str, source: str | None) -> int:
    """Remove what a holder took in, of one source or of all; return how many observations that were."""
    from sqlalchemy import delete, func, select

    from app.catalog.column_types import table_of
    from app.catalog.models.observations import Observation

    table = table_of(Observation)
    whose = (table.c.scope == scope, *([table.c.source == source] if source is not None else []))
    count: int = session.execute(select(func.count()).select_from(table).where(*whose)).scalar_one()
    session.execute(delete(table).where(*whose))
    return count


def list_observation_sources(reader: Reader, scope: str | None) -> list[dict[str, Any]]:
    """Return what was taken in, by holder and source: how many, of when, and until when the last of them counts."""
    query = BoundStatement(_SOURCES, {"scope": scope})
    return to_dicts(query, fetch(reader, query))


_SOURCES = Statement("""
        select scope, source, count(*) as observations, max(observed_at) as observed_at, max(expires_at) as expires_at
        from observation
        where scope = coalesce(cast(:scope as text), scope)
        group by scope, source
        order by scope, source""")


def find_observations(catalog: Catalog, name: str, scope: str, now: datetime) -> ObservationsOut:
    """Find what a holder observed of a size and still counts; raises NotFound for the size."""
    (key,) = get_size_keys(catalog, (name,), catalog.snapshot.series)
    ((full_name,),) = catalog.fetch(BoundStatement(_NAME, {"key": key}))
    at = f"{now.astimezone(UTC):%Y-%m-%d %H:%M:%S.%f}"
    query = BoundStatement(_OBSERVATIONS, {"scope": scope, "key": key, "now": at})
    return ObservationsOut(size=full_name, items=[_to_out(row, now) for row in to_dicts(query, catalog.fetch(query))])


_NAME = Statement("select name from size where key = :key")
_OBSERVATIONS = Statement(
    lambda sql: (
        f"""
        select kind, value, region, zone, note, source, observed_at, expires_at from observation
        where scope = :scope and size_key = :key and expires_at > {sql.time("now")}
        order by kind, region, zone, observed_at desc, source, position
        limit {MAX_SHOWN}"""
    )
)


def _to_out(row: Mapping[str, Any], now: datetime) -> ObservationOut:
    shown = {name: row[name] for name in ("kind", "value", "region", "zone", "note", "source")}
    age = max(0, int((now - row["observed_at"]).total_seconds() // 3600))
    times = {"observed_at": row["observed_at"], "expires_at": row["expires_at"]}
    return ObservationOut(**shown, **times, meaning=KINDS[row["kind"]].meaning, age_hours=age)
