"""Families of serving: the time per output token of measured runs."""

from collections.abc import Iterator

from benchmarks.accuracy.estimates import estimate, figure_range
from benchmarks.accuracy.points import Family, Point
from benchmarks.accuracy.runs import ServingRun, serving_runs

SOURCE = "ai-dynamo/aiconfigurator 095f58a, silicon_sample.csv: runs of SemiAnalysis InferenceX and NVIDIA"
LICENSE = "Apache-2.0"


def labels(run: ServingRun) -> dict[str, str | int | float]:
    """Return what tables of runs are broken down by; a batch by its power of two."""
    return {
        "model": run.model.partition("/")[2],
        "gpu": run.gpu,
        "engine": run.engine,
        "dtype": run.dtype,
        "tensor_parallel": run.tensor_parallel,
        "batch": 1 << max(0, run.batch - 1).bit_length(),
    }


def _decode_points() -> Iterator[Point]:
    for run in serving_runs():
        low, mid, high = figure_range(estimate(run.body()), "inference.decode.expected_step")
        yield Point(measured=run.tpot_s * 1e3, low=low, mid=mid, high=high, labels=labels(run))


DECODE_STEP = Family(
    id="decode_step",
    title="Time per output token",
    figure="inference.decode.expected_step",
    unit="ms",
    source=SOURCE,
    license=LICENSE,
    points=_decode_points,
)
