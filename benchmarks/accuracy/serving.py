"""Families of serving: the time per output token of measured runs."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

from app.fit.estimator.serving import kv_cache_of, weights_range
from app.fit.estimator.serving_speed import serving_speed
from benchmarks.accuracy.estimates import estimate, setup_of, to_point
from benchmarks.accuracy.points import Family, LeftOut, Point
from benchmarks.accuracy.runs import ServingRun, data_parallel_runs, disaggregated_runs, serving_runs

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
            yield to_point(estimate(run.body()), path, measured_ms(run), labels(run))

    return points


def left_out(figure: int, which: str) -> Callable[[], LeftOut]:
    """Return what compares runs whose model is left out of the fit: burst, steady, reported or amd."""

    def compute() -> LeftOut:
        from benchmarks.calibrate import left_out_of  # needs numpy and scipy

        return left_out_of(figure, which)

    return compute


def _data_parallel_points(path: str, measured_ms: Callable[[ServingRun], float]) -> Callable[[], Iterator[Point]]:
    def points() -> Iterator[Point]:
        for run in data_parallel_runs():
            names = labels(run) | {"data_parallel": run.data_parallel}
            yield to_point(estimate(run.body()), path, measured_ms(run), names)

    return points


def _disaggregated_points() -> Iterator[Point]:
    """Yield the steps of replicas that only generate, which a body asks for by a service level alone."""
    for run in disaggregated_runs():
        setup = setup_of(run.body())
        setup = replace(setup, workload=replace(setup.workload, prefill_busy=0.0))
        speed = serving_speed(setup, weights_range(setup), kv_cache_of(setup))
        if speed is None:
            raise ValueError(f"no speed of {run}")
        step = speed.step_s.times(1e3)
        yield Point(
            measured=run.tpot_s * 1e3,
            low=step.low,
            mid=step.mid,
            high=step.high,
            labels=labels(run),
            outside=speed.departures,
        )


_in_milliseconds = partial(Family, unit="ms", source=SOURCE, license=LICENSE)

DECODE_STEP = _in_milliseconds(
    id="decode_step",
    title="Time per output token",
    figure="inference.decode.expected_step",
    points=_points("inference.decode.expected_step", lambda run: run.tpot_s * 1e3),
    leave_one_out=left_out(0, "burst"),
)
DECODE_STEP_DATA_PARALLEL = _in_milliseconds(
    id="decode_step_data_parallel",
    title="Time per output token with data-parallel attention",
    figure="inference.decode.expected_step",
    points=_data_parallel_points("inference.decode.expected_step", lambda run: run.tpot_s * 1e3),
)
TTFT_BURST = _in_milliseconds(
    id="ttft_burst",
    title="Time to the first token where requests start together",
    figure="inference.ttft",
    points=_points("inference.ttft", lambda run: run.ttft_s * 1e3),
    leave_one_out=left_out(1, "burst"),
)
TTFT_DATA_PARALLEL = _in_milliseconds(
    id="ttft_data_parallel",
    title="Time to the first token with data-parallel attention",
    figure="inference.ttft",
    points=_data_parallel_points("inference.ttft", lambda run: run.ttft_s * 1e3),
)
DECODE_STEP_DISAGGREGATED = _in_milliseconds(
    id="decode_step_disaggregated",
    title="Time per output token of replicas that only generate",
    figure="inference.decode.expected_step",
    points=_disaggregated_points,
)
