"""The text that Prometheus scrapes: what all workers have counted, and the state of the catalog."""

import os
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate
from pathlib import Path
from platform import python_version
from typing import TYPE_CHECKING

from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import QueuePool
from starlette.datastructures import State

from app.api.executor import QueryExecutor
from app.db.executors import SessionThreads
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
    dropped = "Log lines that were dropped because they were not read in time."
    return {
        Metric("vmsizes_db_queries", "Queries that were sent to the database's driver."): lambda: (
            state.executor.query_count
        ),
        Metric("vmsizes_log_records_dropped", dropped): lambda: state.logs.dropped if state.logs else 0,
        Metric("process_cpu_seconds", "CPU time of all workers, those that ended too."): time.process_time,
    }


def worker_gauges(state: State) -> Read:
    """Return what a worker tells of its state; the gauges of all workers are added up."""
    cache, limit, executor = "vmsizes_response_cache", state.cache_bytes, state.executor
    gauges: Read = {
        Metric(f"{cache}_entries", "Responses in the cache."): lambda: len(state.cache.responses),
        Metric(f"{cache}_bytes", "Bytes of the responses in the cache."): lambda: state.cache.responses.size_bytes,
        Metric(f"{cache}_limit_bytes", "Bytes that the cache may have."): lambda: limit,
        Metric("vmsizes_exports_running", "Exports that are being written."): lambda: len(state.streams.running),
        Metric("vmsizes_export_files_bytes", "Bytes of the Parquet files that are kept."): lambda: (
            state.files.size_bytes
        ),
        Metric("process_resident_memory_bytes", "Memory of all workers."): _resident_bytes,
        Metric("process_open_fds", "Open files and connections of all workers."): _open_files,
        Metric("process_max_fds", "Files and connections that all workers may have."): _max_files,
    }
    for threads in executor.queues:
        gauges |= _queue_gauges(threads)
    pool = state.engine.pool if isinstance(state.engine.pool, QueuePool) else None
    on_loop = executor.loop_connection
    name, text = "vmsizes_db_connections", "Connections to the database."
    return gauges | {
        Metric(name, text, (("state", "in_use"),)): lambda: pool.checkedout() if pool else 0,
        Metric(name, text, (("state", "idle"),)): lambda: (
            (pool.checkedin() if pool else 0) + (on_loop is not None and on_loop.is_open)
        ),
    }


def _queue_gauges(threads: SessionThreads) -> Read:
    name, text, queue = "vmsizes_queue_requests", "Requests that run in threads, or wait for one.", threads.name
    return {
        Metric(name, text, (("queue", queue), ("state", "running"))): lambda: min(
            threads.unfinished, threads.max_threads
        ),
        Metric(name, text, (("queue", queue), ("state", "waiting"))): lambda: max(
            threads.unfinished - threads.max_threads, 0
        ),
    }


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


async def catalog_values(executor: QueryExecutor, stale_after_days: int) -> list[tuple[Metric, float | None]]:
    """Return the state of the catalog, unknown figures as None; without a database only that it is not ready.

    A scrape tells of the workers also while the database cannot be reached.
    """
    ready = Metric("vmsizes_catalog_ready", "Whether there is a catalog that can be read.")
    try:
        revision, freshness, last_ingests, feed_refreshes, replication = await executor.health()
    except (NotReady, DBAPIError):
        return [(ready, 0)]
    values: list[tuple[Metric, float | None]] = [(ready, 1)]

    def add(name: str, text: str, value: float | None, **labels: str) -> None:
        values.append((Metric(name, text, tuple(labels.items())), value))

    add("vmsizes_catalog_revision", "The number of the catalog's revision.", revision["number"])
    written_at = revision["created_at"].timestamp()
    add("vmsizes_catalog_revision_timestamp_seconds", "When the catalog's revision was written.", written_at)
    for table, rows in sorted(revision["counts"].items()):
        add("vmsizes_catalog_rows", "Rows of the catalog's tables.", rows, table=table)
    for source, moment in last_ingests.items():
        changed = "When an ingest of a source last changed the catalog."
        add("vmsizes_last_ingest_timestamp_seconds", changed, moment.timestamp(), source=source)
    for refresh in feed_refreshes:
        feed, well = refresh.feed, refresh.succeeded_at
        ended_at = refresh.ended_at.timestamp()
        add("vmsizes_refresh_timestamp_seconds", "When the last refresh of a feed ended.", ended_at, feed=feed)
        ended_well = "When a refresh of a feed last ended well."
        add("vmsizes_refresh_success_timestamp_seconds", ended_well, well.timestamp() if well else None, feed=feed)
        failed = "Whether the last refresh of a feed failed, in part at least."
        add("vmsizes_refresh_failed", failed, int(refresh.has_failed), feed=feed)
    add("vmsizes_prices_age_days", "Days since the newest prices.", freshness.prices_age_days)
    rates_age = freshness.exchange_rates_age_days
    add("vmsizes_exchange_rates_age_days", "Days since the newest exchange rates.", rates_age)
    stale = "Whether prices or exchange rates are older than VMSIZES_STALE_AFTER_DAYS."
    add("vmsizes_catalog_stale", stale, int(freshness.is_stale(stale_after_days)))
    is_replica, is_receiving = int(replication.is_replica), replication.is_receiving
    add("vmsizes_database_is_replica", "Whether the database is a replica of another server.", is_replica)
    receiving = "Whether a replica is connected to the server that it follows."
    add("vmsizes_database_is_receiving", receiving, None if is_receiving is None else int(is_receiving))
    replayed = "Seconds since the last transaction that a replica replayed."
    add("vmsizes_database_replay_age_seconds", replayed, replication.replay_age_seconds)
    return values


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
    for latency in measured.latencies:
        buckets = list(zip(_BOUNDS, accumulate(latency.counts), strict=True))
        latencies.add_metric([latency.method, latency.route, latency.cache, latency.status], buckets, latency.seconds)
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
    return sum(sum(latency.counts) for latency in latencies if latency.cache == cache and latency.status == "2xx")
