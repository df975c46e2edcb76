"""Families of serving: the time per output token of measured runs."""

from collections.abc import Callable, Iterator

from benchmarks.accuracy.estimates import estimate, figure_range
from benchmarks.accuracy.points import Family, Point
from benchmarks.accuracy.runs import ServingRun, data_parallel_runs, serving_runs

SOURCE = "ai-dynamo/aiconfigurator 095f58a, silicon_sample.csv: runs of SemiAnalysis InferenceX and NVIDIA"
LICENSE = "Apache-2.0"


def labels(run: ServingRun) -> dict[str, str | int | float]:
    """Return what tables of runs are broken down by: a batch by its power of two, models of one shape together."""
    return {
        "model": run.model.partition("/")[2],
        "shape": "DeepSeek-V3" if "DeepSeek" in run.model else run.model.partition("/")[2],
        "gpu": run.gpu,
        "engine": run.engine,
        "dtype": run.dtype,
        "tensor_parallel": run.tensor_parallel,
        "batch": 1 << max(0, run.batch - 1).bit_length(),
    }


def _points(path: str, measured_ms: Callable[[ServingRun], float]) -> Callable[[], Iterator[Point]]:
    def points() -> Iterator[Point]:
        for run, _ in serving_runs():
            low, mid, high = figure_range(estimate(run.body()), path)
            yield Point(measured=measured_ms(run), low=low, mid=mid, high=high, labels=labels(run))

    return points


def _decode_left_out() -> tuple[float, str]:
    from benchmarks.calibrate import decode_left_out  # needs numpy and scipy

    return decode_left_out(), "model"


def _ttft_left_out() -> tuple[float, str]:
    from benchmarks.calibrate import ttft_left_out  # needs numpy and scipy

    return ttft_left_out(), "model"


def _data_parallel_points() -> Iterator[Point]:
    for run in data_parallel_runs():
        low, mid, high = figure_range(estimate(run.body()), "inference.decode.expected_step")
        names = labels(run) | {"data_parallel": run.data_parallel}
        yield Point(measured=run.tpot_s * 1e3, low=low, mid=mid, high=high, labels=names)


DECODE_STEP = Family(
    id="decode_step",
    title="Time per output token",
    figure="inference.decode.expected_step",
    unit="ms",
    source=SOURCE,
    license=LICENSE,
    points=_points("inference.decode.expected_step", lambda run: run.tpot_s * 1e3),
    leave_one_out=_decode_left_out,
)
DECODE_STEP_DATA_PARALLEL = Family(
    id="decode_step_data_parallel",
    title="Time per output token with data-parallel attention",
    figure="inference.decode.expected_step",
    unit="ms",
    source=SOURCE,
    license=LICENSE,
    points=_data_parallel_points,
)
TTFT = Family(
    id="ttft",
    title="Time to the first token",
    figure="inference.ttft",
    unit="ms",
    source=SOURCE,
    license=LICENSE,
    points=_points("inference.ttft", lambda run: run.ttft_s * 1e3),
    leave_one_out=_ttft_left_out,
)
