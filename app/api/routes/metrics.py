"""What a worker has done so far, for Prometheus: each worker counts for itself."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Request, Response

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

router = APIRouter(include_in_schema=False)

COUNTERS: dict[str, tuple[str, Callable[[Any], int]]] = {
    "vmsizes_answers_hits": ("Answers that were kept, and given again.", lambda state: state.answers.hits),
    "vmsizes_answers_misses": ("Answers that had to be made.", lambda state: state.answers.misses),
    "vmsizes_questions": ("Questions that went to the database's driver.", lambda state: state.reader.asked),
}
GAUGES: dict[str, tuple[str, Callable[[Any], int]]] = {
    "vmsizes_answers_kept": ("Answers that are kept now.", lambda state: state.answers.kept),
    "vmsizes_exports_running": ("Exports that are being written now.", lambda state: len(state.streams.running)),
    "vmsizes_exports_kept_bytes": ("Bytes of the Parquet files that are kept.", lambda state: state.files.kept_bytes),
    "vmsizes_answers_kept_bytes": ("Bytes that the kept answers take up.", lambda state: state.answers.kept_bytes),
}


@router.get("/metrics")
async def metrics(request: Request) -> Response:
    """Tell the counters of this worker, and the memory and time that its process takes."""
    from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, generate_latest  # only this needs it
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
    from prometheus_client.registry import Collector, CollectorRegistry

    state = request.app.state

    class Ours(Collector):
        def collect(self) -> Iterator["Metric"]:
            yield from (CounterMetricFamily(name, told, value=of(state)) for name, (told, of) in COUNTERS.items())
            yield from (GaugeMetricFamily(name, told, value=of(state)) for name, (told, of) in GAUGES.items())

    registry = CollectorRegistry()
    registry.register(Ours())
    body = generate_latest(registry) + generate_latest(REGISTRY)
    return Response(body, media_type=CONTENT_TYPE_LATEST)
