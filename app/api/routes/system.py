"""Probes, metrics and the explanations of problem types; none of these is in the OpenAPI document."""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Request, Response
from sqlalchemy.exc import DBAPIError

from app.api.deps import Executor, Files, ResponseCache, StaleAfterDays, Streams
from app.api.executor import QueryExecutor
from app.errors import NotFound, NotReady
from app.http.problems import (
    CONTRADICTION,
    DOMAIN_PROBLEMS,
    EXPLANATIONS,
    STATUS_PROBLEMS,
    ProblemType,
    status_problem,
    type_url,
)

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

router = APIRouter(include_in_schema=False)


@router.get("/metrics")
async def metrics(
    cache: ResponseCache, executor: Executor, streams: Streams, files: Files, stale_after_days: StaleAfterDays
) -> Response:
    """Return the counters of this worker, its process's memory and time, and the age of the catalog, for Prometheus."""
    from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, generate_latest  # only this needs it
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
    from prometheus_client.registry import Collector, CollectorRegistry

    ages = await _age_metrics(executor, stale_after_days)

    class WorkerCollector(Collector):
        def collect(self) -> Iterator["Metric"]:
            for name, (text, count) in {
                "vmsizes_response_cache_hits": ("Responses that were served from the cache.", cache.hits),
                "vmsizes_response_cache_misses": ("Responses that were computed.", cache.misses),
                "vmsizes_db_queries": (
                    "Queries that were sent to the database's driver.",
                    executor.plan_executor.query_count,
                ),
            }.items():
                yield CounterMetricFamily(name, text, value=count)
            for name, (text, value) in {
                "vmsizes_response_cache_entries": ("Responses in the cache.", cache.cached_responses),
                "vmsizes_response_cache_bytes": ("Bytes of the responses in the cache.", cache.cached_bytes),
                "vmsizes_exports_running": ("Exports that are being written.", len(streams.running)),
                "vmsizes_export_files_bytes": ("Bytes of the Parquet files that are kept.", files.size_bytes),
                **ages,
            }.items():
                yield GaugeMetricFamily(name, text, value=value)

    registry = CollectorRegistry()
    registry.register(WorkerCollector())
    body = generate_latest(registry) + generate_latest(REGISTRY)
    return Response(body, media_type=CONTENT_TYPE_LATEST)


async def _age_metrics(executor: QueryExecutor, stale_after_days: int) -> Mapping[str, tuple[str, int]]:
    """Return the texts and values of the gauges of the catalog's age; unknown ones, as without a catalog, are left out.

    A scrape tells of the worker also while the database cannot be reached.
    """
    try:
        freshness = await executor.freshness()
    except (NotReady, DBAPIError):
        return {}
    gauges = {
        "vmsizes_prices_age_days": ("Days since the newest prices.", freshness.prices_age_days),
        "vmsizes_exchange_rates_age_days": ("Days since the newest exchange rates.", freshness.exchange_rates_age_days),
        "vmsizes_catalog_stale": (
            "Whether prices or exchange rates are older than VMSIZES_STALE_AFTER_DAYS.",
            int(freshness.is_stale(stale_after_days)),
        ),
    }
    return {name: (text, value) for name, (text, value) in gauges.items() if value is not None}


@router.get("/healthz")
async def healthz() -> dict[str, str]:
    """Return 200 while the process runs; uses no thread and no database, so it does not queue behind requests."""
    return {"status": "ok"}


@router.get("/readyz")
async def readyz(executor: Executor, stale_after_days: StaleAfterDays) -> dict[str, Any]:
    """Return the revision of the catalog and the age of its prices, or 503 with what to do next if there is none.

    A stale catalog is ready: old prices are better than none.
    """
    revision, freshness = await executor.revision(), await executor.freshness()
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
    }


@router.get("/problems")
async def problems(request: Request) -> dict[str, Any]:
    """List the problem types."""
    return {"items": [_describe_problem(request, problem_type) for problem_type in _problem_types().values()]}


@router.get("/problems/{slug}")
async def problem(slug: str, request: Request) -> dict[str, Any]:
    """Explain a problem type: what it means, what to do, and a request that causes it."""
    types = _problem_types()
    if slug not in types:
        raise NotFound("type of problem", slug, suggestions=tuple(get_close_matches(slug, types, 2)))
    return _describe_problem(request, types[slug])


def _problem_types() -> dict[str, ProblemType]:
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
