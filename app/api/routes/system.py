"""Probes, and what the types of problems mean; none of it is part of the contract."""

from collections.abc import Callable, Iterator
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Request, Response

from app.api.deps import Executor
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

COUNTERS: dict[str, tuple[str, Callable[[Any], int]]] = {
    "vmsizes_response_cache_hits": ("Answers that were kept, and given again.", lambda state: state.cache.hits),
    "vmsizes_response_cache_misses": ("Answers that had to be made.", lambda state: state.cache.misses),
    "vmsizes_db_queries": (
        "Questions that went to the database's driver.",
        lambda state: state.plan_executor.query_count,
    ),
}
GAUGES: dict[str, tuple[str, Callable[[Any], int]]] = {
    "vmsizes_response_cache_entries": ("Answers that are kept now.", lambda state: state.cache.cached_responses),
    "vmsizes_exports_running": ("Exports that are being written now.", lambda state: len(state.streams.running)),
    "vmsizes_export_files_bytes": ("Bytes of the Parquet files that are kept.", lambda state: state.files.size_bytes),
    "vmsizes_response_cache_bytes": ("Bytes that the kept answers take up.", lambda state: state.cache.cached_bytes),
}


@router.get("/metrics")
async def metrics(request: Request) -> Response:
    """Tell the counters of this worker, and the memory and time that its process takes."""
    from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, generate_latest  # only this needs it
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
    from prometheus_client.registry import Collector, CollectorRegistry

    state = request.app.state

    class WorkerCollector(Collector):
        def collect(self) -> Iterator["Metric"]:
            yield from (CounterMetricFamily(name, told, value=of(state)) for name, (told, of) in COUNTERS.items())
            yield from (GaugeMetricFamily(name, told, value=of(state)) for name, (told, of) in GAUGES.items())

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
