"""The text that Prometheus scrapes: what all workers have counted, and the state of the catalog."""

import os
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate
from pathlib import Path
from platform import python_version
from typing import TYPE_CHECKING

from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import QueuePool
from starlette.datastructures import State

from app.api.executor import QueryExecutor
from app.catalog.queries.freshness import Freshness
from app.catalog.queries.ingests import FeedRefresh
from app.db.executors import SessionThreads
from app.db.replication import Replication
from app.errors import NotReady
from app.http.observer import BUCKETS, Latencies, Measurements, Metric

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric as Family

Values = Iterable[tuple[Metric, float | None]]
Read = dict[Metric, Callable[[], float]]

_OPEN_FILES = Path("/proc/self/fd")
_PAGES = Path("/proc/self/statm")
_LIMITS = Path("/proc/self/limits")


def worker_counters(state: State) -> Read:
    """Return what a worker counts besides requests."""
    return {
        Metric("vmsizes_db_queries", "Queries that were sent to the database's driver."): (
            lambda: state.plan_executor.query_count
        ),
        Metric("vmsizes_log_records_dropped", "Log lines that were dropped because they were not read in time."): (
            lambda: state.logs.dropped if state.logs else 0
        ),
        Metric("process_cpu_seconds", "CPU time of all workers, those that ended too."): time.process_time,
    }


def worker_gauges(state: State) -> Read:
    """Return what a worker tells of its state; the gauges of all workers are added up."""
    gauges: Read = {
        Metric("vmsizes_response_cache_entries", "Responses in the cache."): lambda: state.cache.cached_responses,
        Metric("vmsizes_response_cache_bytes", "Bytes of the responses in the cache."): lambda: (
            state.cache.cached_bytes
        ),
        Metric("vmsizes_response_cache_limit_bytes", "Bytes that the cache may have."): lambda: state.cache_bytes,
        Metric("vmsizes_exports_running", "Exports that are being written."): lambda: len(state.streams.running),
        Metric("vmsizes_export_files_bytes", "Bytes of the Parquet files that are kept."): (
            lambda: state.files.size_bytes
        ),
        Metric("process_resident_memory_bytes", "Memory of all workers."): _resident_bytes,
        Metric("process_open_fds", "Open files and connections of all workers."): _open_files,
        Metric("process_max_fds", "Files and connections that all workers may have."): _max_files,
    }
    for threads in state.executor.queues:
        gauges |= _queue_gauges(threads)
    return gauges | _connection_gauges(state.engine, state.executor)


def _queue_gauges(threads: SessionThreads) -> Read:
    def of(state: str) -> Metric:
        labels = (("queue", threads.name), ("state", state))
        return Metric("vmsizes_queue_requests", "Requests that run in threads, or wait for one.", labels)

    return {
        of("running"): lambda: min(threads.unfinished, threads.max_threads),
        of("waiting"): lambda: max(threads.unfinished - threads.max_threads, 0),
    }


def _connection_gauges(engine: Engine, executor: QueryExecutor) -> Read:
    def of(state: str) -> Metric:
        return Metric("vmsizes_db_connections", "Connections to the database.", (("state", state),))

    def in_use() -> int:
        return (engine.pool.checkedout() if isinstance(engine.pool, QueuePool) else 0) + (
            executor.plan_executor.connections[0]
        )

    def idle() -> int:
        used, opened, _ = executor.plan_executor.connections
        return (engine.pool.checkedin() if isinstance(engine.pool, QueuePool) else 0) + opened - used

    waiting = Metric("vmsizes_db_connection_waiters", "Queries that wait for a connection to the database.")
    return {of("in_use"): in_use, of("idle"): idle, waiting: lambda: executor.plan_executor.connections[2]}


def _resident_bytes() -> float:
    if not _PAGES.exists():
        return float("nan")
    return int(_PAGES.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _open_files() -> float:
    return sum(1 for _ in _OPEN_FILES.iterdir()) if _OPEN_FILES.exists() else float("nan")


def _max_files() -> float:
    if not _LIMITS.exists():
        return float("nan")
    (line,) = [line for line in _LIMITS.read_text().splitlines() if line.startswith("Max open files")]
    return float(line.split()[3])


# The catalog


async def catalog_values(executor: QueryExecutor, stale_after_days: int) -> list[tuple[Metric, float | None]]:
    """Return the state of the catalog; without a database only that it is not ready.

    A scrape tells of the workers also while the database cannot be reached.
    """
    ready = Metric("vmsizes_catalog_ready", "Whether there is a catalog that can be read.")
    try:
        revision, freshness = await executor.revision(), await executor.freshness()
        last_ingests = await executor.last_ingests()
        feed_refreshes = await executor.feed_refreshes()
        replication = await executor.replication()
    except (NotReady, DBAPIError):
        return [(ready, 0)]
    return [
        (ready, 1),
        (Metric("vmsizes_catalog_revision", "The number of the catalog's revision."), revision["number"]),
        (
            Metric("vmsizes_catalog_revision_timestamp_seconds", "When the catalog's revision was written."),
            revision["created_at"].timestamp(),
        ),
        *(
            (Metric("vmsizes_catalog_rows", "Rows of the catalog's tables.", (("table", name),)), rows)
            for name, rows in sorted(revision["counts"].items())
        ),
        *(
            (
                Metric(
                    "vmsizes_last_ingest_timestamp_seconds",
                    "When an ingest of a source last changed the catalog.",
                    (("source", source_id),),
                ),
                moment.timestamp(),
            )
            for source_id, moment in last_ingests.items()
        ),
        *_refresh_values(feed_refreshes),
        *_age_values(freshness, stale_after_days),
        *_replication_values(replication),
    ]


def _refresh_values(refreshes: Iterable[FeedRefresh]) -> Values:
    for refresh in refreshes:
        labels = (("feed", refresh.feed),)
        yield (
            Metric("vmsizes_refresh_timestamp_seconds", "When the last refresh of a feed ended.", labels),
            refresh.ended_at.timestamp(),
        )
        yield (
            Metric("vmsizes_refresh_success_timestamp_seconds", "When a refresh of a feed last ended well.", labels),
            None if refresh.succeeded_at is None else refresh.succeeded_at.timestamp(),
        )
        yield (
            Metric("vmsizes_refresh_failed", "Whether the last refresh of a feed failed, in part at least.", labels),
            int(refresh.has_failed),
        )


def _age_values(freshness: Freshness, stale_after_days: int) -> Values:
    """Yield the gauges of the catalog's age; unknown ones are None."""
    yield Metric("vmsizes_prices_age_days", "Days since the newest prices."), freshness.prices_age_days
    yield (
        Metric("vmsizes_exchange_rates_age_days", "Days since the newest exchange rates."),
        freshness.exchange_rates_age_days,
    )
    yield (
        Metric("vmsizes_catalog_stale", "Whether prices or exchange rates are older than VMSIZES_STALE_AFTER_DAYS."),
        int(freshness.is_stale(stale_after_days)),
    )


def _replication_values(replication: Replication) -> Values:
    yield (
        Metric("vmsizes_database_is_replica", "Whether the database is a replica of another server."),
        int(replication.is_replica),
    )
    yield (
        Metric("vmsizes_database_is_receiving", "Whether a replica is connected to the server that it follows."),
        None if replication.is_receiving is None else int(replication.is_receiving),
    )
    yield (
        Metric("vmsizes_database_replay_age_seconds", "Seconds since the last transaction that a replica replayed."),
        replication.replay_age_seconds,
    )


# The text


def render(measured: Measurements, catalog: Values, *, version: str, database: str) -> bytes:
    """Return the text of a scrape (Prometheus text format 0.0.4)."""
    from prometheus_client import generate_latest  # noqa: PLC0415  # only a scrape needs it
    from prometheus_client.registry import Collector, CollectorRegistry  # noqa: PLC0415

    labels = (("version", version), ("python", python_version()), ("database", database))
    build = Metric("vmsizes_build_info", "The program's version, Python's, and the kind of database.", labels)
    workers = Metric("vmsizes_workers", "Processes that serve.")

    class Scraped(Collector):
        def collect(self) -> Iterator["Family"]:
            yield from _request_families(measured)
            yield from _families(measured.counters.items(), counters=True)
            yield from _families([(build, 1), (workers, measured.workers), *measured.gauges.items(), *catalog])

    registry = CollectorRegistry()
    registry.register(Scraped())
    return generate_latest(registry)


def _families(values: Values, *, counters: bool = False) -> Iterator["Family"]:
    """Yield a family for the values of each name; those that are not known are left out."""
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily  # noqa: PLC0415

    made: dict[str, Family] = {}
    for metric, value in values:
        if value is None or value != value:  # noqa: PLR0124  # not a number: /proc is missing
            continue
        names = [name for name, _ in metric.labels]
        if metric.name not in made:
            kind = CounterMetricFamily if counters else GaugeMetricFamily
            made[metric.name] = kind(metric.name, metric.text, labels=names)
        made[metric.name].add_metric([of for _, of in metric.labels], value)  # type: ignore[attr-defined]
    yield from made.values()


_BOUNDS = [*map(str, BUCKETS), "+Inf"]


def _request_families(measured: Measurements) -> Iterator["Family"]:
    from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily  # noqa: PLC0415

    latencies = HistogramMetricFamily(
        "vmsizes_http_request_duration_seconds",
        "Time from a request to the end of its response, by route, status, and whether the cache had the response.",
        labels=["method", "route", "cache", "status"],
    )
    for one in measured.latencies:
        buckets = list(zip(_BOUNDS, accumulate(one.counts), strict=True))
        latencies.add_metric([one.method, one.route, one.cache, one.status], buckets, one.seconds)
    yield latencies
    for name, text, cache in (
        ("vmsizes_response_cache_hits", "Responses that were served from the cache.", "hit"),
        ("vmsizes_response_cache_misses", "Responses that were computed.", "miss"),
    ):
        yield CounterMetricFamily(name, text, value=_count(measured.latencies, cache))
    problems = CounterMetricFamily(
        "vmsizes_http_problems", "Requests that got a problem, by its type.", labels=["type"]
    )
    for slug, count in measured.problems.items():
        problems.add_metric([slug], count)
    yield problems


def _count(latencies: Iterable[Latencies], cache: str) -> float:
    return sum(sum(one.counts) for one in latencies if one.cache == cache and one.status == "2xx")
