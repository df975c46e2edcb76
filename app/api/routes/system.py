"""Probes, and what the types of problems mean; none of it is part of the contract."""

from collections.abc import Iterator
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Request, Response

from app.api.deps import Executor, Files, ResponseCache, Streams
from app.errors import NotFound
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
async def metrics(cache: ResponseCache, executor: Executor, streams: Streams, files: Files) -> Response:
    """Return the counters of this worker, and the memory and time that its process takes, for Prometheus."""
    from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, generate_latest  # only this needs it
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
    from prometheus_client.registry import Collector, CollectorRegistry

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
            }.items():
                yield GaugeMetricFamily(name, text, value=value)

    registry = CollectorRegistry()
    registry.register(WorkerCollector())
    body = generate_latest(registry) + generate_latest(REGISTRY)
    return Response(body, media_type=CONTENT_TYPE_LATEST)


@router.get("/healthz")
async def healthz() -> dict[str, str]:
    """Say that the process answers: it waits for no thread and no database."""
    return {"status": "ok"}


@router.get("/readyz")
async def readyz(executor: Executor) -> dict[str, Any]:
    """Say that the catalog is there, and which revision of it; 503 with what to do next otherwise."""
    revision = await executor.revision()
    return {"status": "ready", "revision": revision["number"], "digest": revision["digest"]}


@router.get("/problems")
async def problems(request: Request) -> dict[str, Any]:
    """List the types of problems."""
    return {"items": [_describe_problem(request, kind) for kind in _problem_types().values()]}


@router.get("/problems/{slug}")
async def problem(slug: str, request: Request) -> dict[str, Any]:
    """Explain a type of problem: what it means, what to do, and a request that is refused so."""
    kinds = _problem_types()
    if slug not in kinds:
        raise NotFound("type of problem", slug, suggestions=tuple(get_close_matches(slug, kinds, 2)))
    return _describe_problem(request, kinds[slug])


def _problem_types() -> dict[str, ProblemType]:
    """Every kind of problem by its name, in the order of their statuses."""
    kinds = {*DOMAIN_PROBLEMS.values(), CONTRADICTION, *map(status_problem, STATUS_PROBLEMS)}
    return {kind[1]: kind for kind in sorted(kinds)}


def _describe_problem(request: Request, kind: ProblemType) -> dict[str, Any]:
    status, slug, title = kind
    told = {"type": type_url(request, slug), "title": title, "status": status}
    explained = EXPLANATIONS.get(slug)
    if explained is None:
        return told
    example = {"request": explained.request, "detail": explained.detail}
    return told | {"meaning": explained.meaning, "remedy": explained.remedy, "example": example}
