"""`python -m benchmarks.calibrate`: fits the constants of serving speed to the measured runs; `--write` records them.

Prints the error by model, GPU, engine, type, tensor ranks and batch, and with each model (all of one shape), GPU and
engine left out of the fit. Needs numpy and scipy. The fit is by least squares of the logarithm of estimate /
measurement, with a loss that is linear for what is far off (runs with speculative decoding, or of another version than
the rest). Runs of a configuration that was measured several times, and of a model that has many, count less.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares  # type: ignore[import-untyped]  # SciPy has no stubs of its own

from app.fit.estimator.serving_speed import first_token_work, request_work
from app.fit.formulas import serving_constants
from app.fit.formulas.serving_constants import FIRST_TOKEN, STEP, Spread
from app.fit.formulas.serving_speed import (
    FirstTokenConstants,
    StepConstants,
    StepWork,
    first_token_time,
    step_time,
)
from app.settings import PROJECT
from benchmarks.accuracy.runs import ServingRun, serving_runs
from benchmarks.accuracy.serving import labels

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

MODULE = PROJECT / "app" / "fit" / "formulas" / "serving_constants.py"
BEGIN, END = "# Fitted, by `python -m benchmarks.calibrate --write`.\n", "# End of what is fitted.\n"

STEP_LIMITS: Mapping[str, tuple[float, float]] = {
    "dense_read": (1.0, 3.0), "expert_read": (1.0, 3.0), "dequantize": (0.0, 3.0), "kv_read": (1.0, 3.0),
    "compute": (1.0, 6.0), "layer_us": (0.0, 200.0), "latent_us": (0.0, 100.0), "expert_us": (0.0, 30.0),
    "doubling_us": (0.0, 50.0), "collective": (1.0, 20.0), "sequence_us": (0.0, 100.0), "prefill_dense": (1.0, 6.0),
    "prefill_experts": (1.0, 9.0), "sglang": (-0.3, 0.6), "vllm": (-0.3, 0.6),
}  # fmt: skip
"""Least and greatest value of each constant: nothing is faster than at the rated speed."""
FIRST_TOKEN_LIMITS: Mapping[str, tuple[float, float]] = {
    "base_ms": (0.0, 300.0), "layer_ms": (0.0, 5.0), "latent_ms": (0.0, 10.0), "waiting": (0.0, 1.0),
    "steps": (0.0, 20.0), "sglang": (-0.5, 4.0), "vllm": (-0.6, 2.0),
}  # fmt: skip
LOSS_SCALE = {"step": 0.15, "first_token": 0.2}
"""The error (of the logarithm) from which on the loss is linear."""
EVEN = 300
"""Runs of a model beyond which each counts less, by the fourth root."""


class Runs(NamedTuple):
    """The measured runs: their work as arrays, measured times in seconds, the weight of each and its labels."""

    step: StepWork
    first: StepWork
    tpot_s: Array
    ttft_s: Array
    weights: Array
    labels: Mapping[str, NDArray[Any]]

    def where(self, mask: Mask) -> "Runs":
        """Return the runs of a mask."""
        return Runs(
            _take(self.step, mask),
            _take(self.first, mask),
            self.tpot_s[mask],
            self.ttft_s[mask],
            self.weights[mask],
            {name: values[mask] for name, values in self.labels.items()},
        )


def _stack(works: list[StepWork]) -> StepWork:
    columns: dict[str, Any] = {name: np.array([getattr(work, name) for work in works]) for name in StepWork._fields}
    return StepWork(**columns)


def _take(work: StepWork, mask: Mask) -> StepWork:
    return StepWork(**{name: getattr(work, name)[mask] for name in StepWork._fields})


@lru_cache(maxsize=1)
def read_runs() -> Runs:
    """Return all measured runs."""
    found = serving_runs()
    runs = [run for run, _ in found]
    named = [labels(run) for run in runs]
    experts = ["experts" if setup.model.shape.experts else "dense" for _, setup in found]
    columns = {name: np.array([one[name] for one in named]) for name in named[0]}
    return Runs(
        _stack([request_work(setup) for _, setup in found]),
        _stack([first_token_work(setup) for _, setup in found]),
        np.array([run.tpot_s for run in runs]),
        np.array([run.ttft_s for run in runs]),
        _weights(runs),
        {**columns, "kind": np.array(experts)},
    )


def _weights(runs: list[ServingRun]) -> Array:
    keys = [
        (run.model, run.gpu, run.engine, run.dtype, run.tensor_parallel, run.expert_parallel, run.batch,
         run.input_tokens, run.output_tokens)
        for run in runs
    ]  # fmt: skip
    times, models = Counter(keys), Counter(run.model for run in runs)
    each = [times[key] ** -0.5 * (EVEN / models[run.model]) ** 0.25 for key, run in zip(keys, runs, strict=True)]
    return np.array(each)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """The fitted constants."""

    step: StepConstants
    first_token: FirstTokenConstants

    def step_errors(self, runs: Runs) -> Array:
        """Return the logarithm of estimate / measurement of the time per output token."""
        return np.log(np.asarray(step_time(runs.step, self.step)) / runs.tpot_s)

    def first_token_errors(self, runs: Runs) -> Array:
        """Return the logarithm of estimate / measurement of the time to the first token."""
        steps = step_time(runs.step, self.step)
        return np.log(np.asarray(first_token_time(runs.first, steps, self.step, self.first_token)) / runs.ttft_s)


def fit(runs: Runs, start: Fit | None = None) -> Fit:
    """Fit the constants to runs: first those of a step, then with these those of the first token."""
    before = start or Fit(step=STEP, first_token=FIRST_TOKEN)

    def step_residuals(values: Array) -> Array:
        return runs.weights * Fit(step=_step(values), first_token=before.first_token).step_errors(runs)

    step = _step(_solve(step_residuals, asdict(before.step), STEP_LIMITS, LOSS_SCALE["step"]))

    def first_residuals(values: Array) -> Array:
        return runs.weights * Fit(step=step, first_token=_first_token(values)).first_token_errors(runs)

    first = _solve(first_residuals, asdict(before.first_token), FIRST_TOKEN_LIMITS, LOSS_SCALE["first_token"])
    return Fit(step=step, first_token=_first_token(first))


def _step(values: Array) -> StepConstants:
    return StepConstants(**dict(zip(STEP_LIMITS, map(float, values), strict=True)))


def _first_token(values: Array) -> FirstTokenConstants:
    return FirstTokenConstants(**dict(zip(FIRST_TOKEN_LIMITS, map(float, values), strict=True)))


def _solve(
    residuals: Any, start: Mapping[str, float], limits: Mapping[str, tuple[float, float]], scale: float
) -> Array:
    low, high = (np.array([ends[end] for ends in limits.values()]) for end in (0, 1))
    given = np.array([start[name] for name in limits])
    margin = (high - low) * 1e-6
    solved = least_squares(
        residuals, np.clip(given, low + margin, high - margin), bounds=(low, high), loss="soft_l1", f_scale=scale,
        x_scale=np.maximum(np.abs(given), 0.05), xtol=1e-7, ftol=1e-7,
    )  # fmt: skip
    values: Array = solved.x
    return values


def left_out_errors(label: str, start: Fit) -> tuple[Array, Array]:
    """Return the errors of steps and of first tokens where the runs with the same label were left out of the fit."""
    runs = read_runs()
    steps, firsts = np.empty(len(runs.tpot_s)), np.empty(len(runs.tpot_s))
    for value in np.unique(runs.labels[label]):
        left = runs.labels[label] == value
        known, asked = fit(runs.where(~left), start), runs.where(left)
        steps[left], firsts[left] = known.step_errors(asked), known.first_token_errors(asked)
    return steps, firsts


@lru_cache(maxsize=4)
def _left_out(label: str) -> tuple[Array, Array]:
    return left_out_errors(label, Fit(step=STEP, first_token=FIRST_TOKEN))


def median_error(errors: Array) -> float:
    """Return the median of |estimate / measurement - 1|."""
    return float(np.median(np.abs(np.exp(errors) - 1)))


def decode_left_out() -> float:
    """Return the median error of a step with its model left out of the fit."""
    return median_error(_left_out("shape")[0])


def ttft_left_out() -> float:
    """Return the median error of the first token with its model left out of the fit."""
    return median_error(_left_out("shape")[1])


def spreads(by_shape: Array, by_gpu: Array) -> dict[str, Spread]:
    """Return measured / estimated at a tenth and at nine tenths of the runs of each kind of model.

    With the model, or the GPU, left out of the fit, whichever is further.
    """
    found = {}
    for kind in ("dense", "experts"):
        mask = read_runs().labels["kind"] == kind
        ends = [np.exp(np.quantile(-errors[mask], (0.1, 0.9))) for errors in (by_shape, by_gpu)]
        found[kind] = Spread(float(min(end[0] for end in ends)), float(max(end[1] for end in ends)))
    return found


def report(name: str, errors: Array) -> None:
    """Print the statistics of errors."""
    low, high = np.exp(np.quantile(errors, (0.1, 0.9)))
    print(
        f"{name:36} n {len(errors):5}  median error {median_error(errors):6.1%}"
        f"  ratio {np.exp(np.median(errors)):.2f} ({low:.2f} to {high:.2f})"
    )


def main() -> int:
    """Fit, print and, with `--write`, record."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.calibrate", description=__doc__)
    parser.add_argument("--write", action="store_true", help="record the constants in app/fit/formulas")
    options = parser.parse_args()
    runs, found = read_runs(), fit(read_runs())
    print(found)
    spread: dict[str, dict[str, Spread]] = {}
    left_out = {label: left_out_errors(label, found) for label in ("shape", "gpu", "engine")}
    for index, (title, errors) in enumerate(
        {"step": found.step_errors(runs), "first_token": found.first_token_errors(runs)}.items()
    ):
        print(f"\n{title}")
        report("all", errors)
        for label in ("model", "gpu", "engine", "dtype", "tensor_parallel", "batch", "kind"):
            for value in np.unique(runs.labels[label]):
                report(f"  {label} {value}", errors[runs.labels[label] == value])
        for label, both in left_out.items():
            report(f"without the {label}", both[index])
            for value in np.unique(runs.labels[label]):
                report(f"  without {value}", both[index][runs.labels[label] == value])
        spread[title] = spreads(left_out["shape"][index], left_out["gpu"][index])
    print(spread)
    if options.write:
        write(found, spread)
    return 0


def write(found: Fit, spread: Mapping[str, Mapping[str, Spread]]) -> None:
    """Write the constants into their module, with four digits."""
    text = MODULE.read_text(encoding="utf-8")
    lines = [
        f"STEP = {_literal(found.step)}",
        f"FIRST_TOKEN = {_literal(found.first_token)}",
        f"STEP_SPREAD: Mapping[str, Spread] = {_spread_literal(spread['step'])}",
        f"FIRST_TOKEN_SPREAD: Mapping[str, Spread] = {_spread_literal(spread['first_token'])}",
    ]
    before, after = text.split(BEGIN)[0], text.split(END)[1]
    MODULE.write_text(before + BEGIN + "\n".join(lines) + "\n" + END + after, encoding="utf-8")
    print(f"wrote {serving_constants.__name__}; format it with make fix")


def _literal(constants: StepConstants | FirstTokenConstants) -> str:
    values = ", ".join(f"{name}={value:.4g}" for name, value in asdict(constants).items())
    return f"{type(constants).__name__}({values})"


def _spread_literal(spread: Mapping[str, Spread]) -> str:
    kinds = ", ".join(f'"{kind}": Spread({one.low:.3g}, {one.high:.3g})' for kind, one in spread.items())
    return f"{{{kinds}}}"


if __name__ == "__main__":
    sys.exit(main())
