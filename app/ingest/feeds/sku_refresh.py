"""Runs a refresh of sizes from the Resource SKUs API: fetch or open, map, compare, write."""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path

from sqlalchemy import Engine

from app.catalog.readings import Progress, Reading, no_progress
from app.catalog.store.facts import load_subject_keys
from app.catalog.store.newest_lists import load_places, load_region_codes, load_stated_sizes
from app.db.engines import read_session
from app.errors import BadData
from app.ingest.feeds.gate import DEFAULT_LIMITS, GateLimits
from app.ingest.feeds.resource_skus import SOURCE_ID, Entry, SkuMapper
from app.ingest.feeds.resource_skus_client import SkuApi, digest_of, fetch_answers, read_entries
from app.ingest.files import describe_json
from app.ingest.run import IngestOutcome, ingest


@dataclass(frozen=True, slots=True, kw_only=True)
class SkuRefresh:
    """What a refresh of sizes found; `refused` says why nothing of it was taken, if it was not."""

    entries: int
    sizes: int
    facts: int
    refused: str | None


def run_sku_refresh(
    engine: Engine,
    origin: Path | SkuApi,
    *,
    cache: Path,
    day: date,
    now: datetime,
    accept: bool = False,
    strict: bool = False,
    dry_run: bool = False,
    limits: GateLimits = DEFAULT_LIMITS,
    progress: Progress = no_progress,
) -> tuple[SkuRefresh, IngestOutcome | None]:
    """Write what the API says of sizes on a day, from saved answers or fetched ones, which are kept in `cache`.

    Returns the outcome of the ingest, None where too many of the sizes or of their regions are gone. Raises BadData for
    files that cannot be read, FetchError for what cannot be fetched.
    """
    if isinstance(origin, SkuApi):
        progress("fetching sizes", None)
        fetch_answers(origin, cache / SOURCE_ID)
    path = cache / SOURCE_ID if isinstance(origin, SkuApi) else origin
    with read_session(engine) as session:
        regions, identify = load_region_codes(session), load_subject_keys(session, Reading()).size_key
        sizes, places = load_stated_sizes(session, SOURCE_ID), load_places(session, SOURCE_ID)
    mapper = SkuMapper(regions=frozenset(regions), identify=identify)
    entry: Entry = {}
    for entry in read_entries(path, progress=progress):
        mapper.add(entry)
    if not mapper.sizes:
        raise BadData(describe_json(entry) or "no entry is a size; give the JSON of `az vm list-skus`", file=str(path))
    reading, refused = mapper.finish(day=day, sha256=digest_of(path)), None
    if not accept:
        refused = _find_loss("sizes", sizes, mapper.sizes, limits)
        refused = refused or _find_loss("regions of sizes", places, mapper.places, limits)
    refresh = SkuRefresh(entries=mapper.entries, sizes=len(mapper.sizes), facts=len(reading.facts), refused=refused)
    if refused:
        return refresh, None
    return refresh, ingest(engine, reading, now=now, strict=strict, dry_run=dry_run, progress=progress)


def _find_loss(what: str, before: AbstractSet[object], now: AbstractSet[object], limits: GateLimits) -> str | None:
    gone = len(before - now)
    return f"{gone} of {len(before)} {what} are gone" if gone > limits.lost_in_region * len(before) else None
