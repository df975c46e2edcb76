"""Probes, metrics, explanations of problem types, and receipts; none of these is in the OpenAPI document."""

import asyncio
import os
import time
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from difflib import get_close_matches
from itertools import accumulate
from pathlib import Path
from platform import python_version
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Body, HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import Field, ValidationError
from starlette.datastructures import State

from app.api.deps import Executor, StaleAfterDays
from app.api.executor import QueryExecutor
from app.catalog.queries.exports import select_columns
from app.catalog.queries.params import PlainText, QueryParams
from app.catalog.queries.snapshot import Catalog
from app.db.errors import DatabaseError
from app.db.executors import ReadingThreads
from app.errors import BadQuery, BadWorkload, NotFound, NotReady
from app.http.canonical import item_columns
from app.http.headers import HOLDER
from app.http.observer import BUCKETS, Measurements, Metric
from app.http.problems import (
    CONTRADICTION,
    DOMAIN_PROBLEMS,
    EXPLANATIONS,
    STATUS_PROBLEMS,
    ProblemType,
    status_problem,
    type_url,
)
from app.questions import ENDPOINTS, answer, parse_question
from app.schemas.bodies import In, check_json_types

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric as Family

router = APIRouter(include_in_schema=False)

TEXT_FORMAT = "text/plain; version=0.0.4; charset=utf-8"
"""The media type of Prometheus' text format."""


@router.get("/metrics")
async def metrics(request: Request, executor: Executor, stale_after_days: StaleAfterDays) -> Response:
    """Return what all workers have counted, and the state of the catalog, for Prometheus."""
    catalog = await catalog_values(executor, stale_after_days)
    state = request.app.state

    def scrape() -> bytes:
        return render(state.observer.measure(), catalog, version=request.app.version, database=state.database.kind)

    # A page of text takes some milliseconds to write, which no other request should wait for.
    return Response(await asyncio.to_thread(scrape), media_type=TEXT_FORMAT)


@router.get("/healthz")
async def healthz() -> dict[str, str]:
    """Return 200 while the process runs; uses no thread and no database, so it does not queue behind requests."""
    return {"status": "ok"}


@router.get("/readyz")
async def readyz(executor: Executor, stale_after_days: StaleAfterDays) -> dict[str, Any]:
    """Return the revision of the catalog and the age of its prices, or 503 with what to do next if there is none.

    A stale catalog is ready: old prices are better than none.
    """
    revision, freshness, _, refreshes, replication = await executor.health()
    return {
        "status": "ready",
        "revision": revision["number"],
        "digest": revision["digest"],
        "stale": freshness.is_stale(stale_after_days),
        "stale_after_days": stale_after_days,
        "newest_prices_as_of": freshness.newest_prices_as_of,
        "prices_age_days": freshness.prices_age_days,
        "newest_exchange_rates_as_of": freshness.newest_exchange_rates_as_of,
        "exchange_rates_age_days": freshness.exchange_rates_age_days,
        "refreshes": {
            run.feed: {"ended_at": run.ended_at, "succeeded_at": run.succeeded_at, "failed": run.has_failed}
            for run in refreshes
        },
        "database_is_replica": replication.is_replica,
        "database_is_receiving": replication.is_receiving,
        "database_replay_age_seconds": replication.replay_age_seconds,
    }


@router.get("/problems")
async def problems(request: Request) -> dict[str, Any]:
    """List the problem types."""
    return {"items": [_describe_problem(request, problem_type) for problem_type in problem_types().values()]}


@router.get("/problems/{slug}")
async def problem(slug: str, request: Request) -> dict[str, Any]:
    """Explain a problem type: what it means, what to do, and a request that causes it."""
    types = problem_types()
    if slug not in types:
        raise NotFound("type of problem", slug, suggestions=tuple(get_close_matches(slug, types, 2)))
    return _describe_problem(request, types[slug])


def problem_types() -> dict[str, ProblemType]:
    """Return every problem type by its slug, ordered by status."""
    types = {*DOMAIN_PROBLEMS.values(), CONTRADICTION, *map(status_problem, STATUS_PROBLEMS)}
    return {kind[1]: kind for kind in sorted(types)}


def _describe_problem(request: Request, problem_type: ProblemType) -> dict[str, Any]:
    status, slug, title = problem_type
    described = {"type": type_url(request, slug), "title": title, "status": status}
    explanation = EXPLANATIONS.get(slug)
    if explanation is None:
        return described
    example = {"request": explanation.request, "detail": explanation.detail}
    return described | {"meaning": explanation.meaning, "remedy": explanation.remedy, "example": example}


@router.get("/sizes/{name}/observations")
async def observations(name: PlainText, request: Request, executor: Executor) -> Response:
    """Show what the holder of the API key observed of a size, as imported; without a key 401. No cache may keep it."""
    from app.services.observations import find_observations

    holder = request.scope.get(HOLDER)
    if holder is None:
        detail = "Observations are those of the holder of an API key, and this service has none: set VMSIZES_API_KEYS."
        raise HTTPException(401, detail, {"WWW-Authenticate": 'Bearer realm="vmsizes"'})
    found = await executor.ask(find_observations, name, holder, datetime.now(UTC))
    return Response(found.model_dump_json(), media_type="application/json", headers={"Cache-Control": "no-store"})


class QuestionIn(In):
    """A question: an endpoint, the name in its path, and its parameters or body."""

    endpoint: PlainText = Field(description="`GET /sizes`, `POST /fit` …")
    name: PlainText | None = Field(default=None, description="The size in the path.")
    params: dict[str, Any] = Field(default={}, description="The parameters of the query, or the body.")


@router.post("/receipts")
async def make_receipt(question: Annotated[QuestionIn, Body()], executor: Executor) -> dict[str, Any]:
    """Return the receipt of the answer to a question: what it rests on, for `vmsizes verify`."""

    def make(catalog: Catalog) -> dict[str, Any]:
        from app import receipts

        endpoint = ENDPOINTS.get(question.endpoint)
        if endpoint is not None and issubclass(endpoint.params, QueryParams):
            check_json_types(endpoint.params, question.params)
        asked = parse_question(question.model_dump())
        try:
            fields = getattr(asked.params, "fields", ())
            if fields and (columns := item_columns(ENDPOINTS[asked.endpoint].model)):
                select_columns(dict.fromkeys(columns), fields, "field")
            answered = answer(catalog, *asked)
        except (BadQuery, BadWorkload) as error:
            error.field = f"params.{error.field}"  # where the body of a receipt has it
            raise
        return receipts.make_receipt(catalog, [(asked, answered)])

    try:
        return await executor.ask(make)
    except ValidationError as error:
        located = [{**fault, "loc": ("body", "params", *fault["loc"])} for fault in error.errors()]
        raise RequestValidationError(located) from None


# The text that Prometheus scrapes

Values = Iterable[tuple[Metric, float | None]]
Read = dict[Metric, Callable[[], float]]

_PROCESS = Path("/proc/self")


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
    """Return what a worker reports of its state; the gauges of all workers are added up."""
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
        Metric("process_open_fds", "Open files and connections of all workers."): lambda: (
            len(os.listdir(files)) if (files := _PROCESS / "fd").exists() else float("nan")  # noqa: PTH208  # counted
        ),
        Metric("process_max_fds", "Files and connections that all workers may have."): _max_files,
    }
    for queue in executor.queues:
        gauges |= _queue_gauges(queue)
    database, on_loop = state.database, executor.loop_connection
    name, text = "vmsizes_db_connections", "Connections to the database."
    return gauges | {
        Metric(name, text, (("state", "in_use"),)): lambda: database.connections[0],
        Metric(name, text, (("state", "idle"),)): lambda: (
            database.connections[1] + (on_loop is not None and on_loop.is_open)
        ),
    }


def _queue_gauges(queue: ReadingThreads) -> Read:
    name, text = "vmsizes_queue_requests", "Requests that run in threads, or wait for one."
    states: dict[str, Callable[[], float]] = {
        "running": lambda: min(queue.unfinished, queue.max_threads),
        "waiting": lambda: max(queue.unfinished - queue.max_threads, 0),
    }
    return {Metric(name, text, (("queue", queue.name), ("state", state))): read for state, read in states.items()}


def _resident_bytes() -> float:
    pages = _PROCESS / "statm"
    return int(pages.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if pages.exists() else float("nan")


def _max_files() -> float:
    limits = _PROCESS / "limits"
    lines = limits.read_text().splitlines() if limits.exists() else ()
    return next((float(line.split()[3]) for line in lines if line.startswith("Max open files")), float("nan"))


async def catalog_values(executor: QueryExecutor, stale_after_days: int) -> list[tuple[Metric, float | None]]:
    """Return the state of the catalog, unknown figures as None; without a database only that it is not ready.

    A scrape covers the workers also while the database cannot be reached.
    """
    ready = Metric("vmsizes_catalog_ready", "Whether there is a catalog that can be read.")
    try:
        revision, freshness, last_ingests, feed_refreshes, replication = await executor.health()
    except (NotReady, DatabaseError):
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
    from prometheus_client import generate_latest  # only a scrape needs it
    from prometheus_client.registry import Collector, CollectorRegistry

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
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

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
    from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily

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
        of_cache = (latency for latency in measured.latencies if (latency.cache, latency.status) == (cache, "2xx"))
        yield CounterMetricFamily(name, text, value=sum(sum(latency.counts) for latency in of_cache))
    problems = CounterMetricFamily(
        "vmsizes_http_problems", "Requests that got a problem, by its type.", labels=["type"]
    )
    for slug, count in measured.problems.items():
        problems.add_metric([slug], count)
    yield problems
