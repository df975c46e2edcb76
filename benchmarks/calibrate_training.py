"""`python -m benchmarks.calibrate_training`: fits the constants of the time of training, and prints their errors.

The constants are those of `SpeedConstants`, fitted to the published rates of NVIDIA's Megatron-Bridge by the least sum
of |log(estimate / rate)|. Each model, then each GPU is left out in turn. The range is the 10th to the 90th percentile
of rate / estimate with the model left out. The overhead of whole runs is published GPU-hours over those of their steps.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass, fields
from math import exp, log
from statistics import median

from app.catalog.queries.lookups import get_model_row
from app.fit.formulas.architecture import count_parameters
from app.fit.formulas.compute import FLOPS_PER_PARAM
from app.fit.formulas.training_speed import (
    Accelerator,
    KnownGpu,
    SpeedConstants,
    TokenWork,
    seconds_per_token,
    token_work,
)
from app.services.fit import to_architecture
from benchmarks.accuracy.estimates import estimate, figure_range, presets
from benchmarks.accuracy.training import GPUS, TrainingRate, read_runs, training_rates

START = SpeedConstants(
    matrix_share=0.5, fp4_share=0.3, passes=10.0, moe_passes=40.0, exchange_share=0.3, hopper=1.0, ultra=1.0
)
ROUNDS, STEPS = 4, 900
"""Searches, each from the end of the one before, and steps of each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedRate:
    """A published rate with what a token takes and the GPU."""

    rate: TrainingRate
    work: TokenWork
    gpu: Accelerator

    def log_error(self, constants: SpeedConstants) -> float:
        """Return log(estimated rate / published rate)."""
        seconds = seconds_per_token(self.work, self.gpu, self.rate.gpus, constants)
        return -log(seconds * self.rate.tokens_per_s_per_gpu)


def fitted_rates() -> tuple[FittedRate, ...]:
    """Return the rates that the constants are fitted to."""
    return tuple(
        FittedRate(rate=rate, work=_work(rate), gpu=_gpu(GPUS[rate.gpu], rate))
        for rate in training_rates()
        if rate.fitted
    )


def _work(rate: TrainingRate) -> TokenWork:
    shape = to_architecture(get_model_row(presets(), rate.model))
    return token_work(
        shape,
        count_parameters(shape),
        sequence_tokens=rate.sequence_tokens or 0,
        flops_per_param=FLOPS_PER_PARAM["lora" if rate.task == "lora" else "full"],
    )


def _gpu(gpu: KnownGpu, rate: TrainingRate) -> Accelerator:
    return gpu.accelerator(rate.precision)


def fit(rates: Sequence[FittedRate]) -> SpeedConstants:
    """Return the constants with the least sum of |log(estimate / rate)|; a generation without rates keeps pace 1."""
    seen = {capability for one in rates for capability in one.gpu.capabilities}
    fixed = {"hopper": "9.0" in seen, "ultra": "10.3" in seen}
    names = [field.name for field in fields(SpeedConstants) if fixed.get(field.name, True)]

    def constants(point: Sequence[float]) -> SpeedConstants:
        free = {name: exp(value) for name, value in zip(names, point, strict=True)}
        return SpeedConstants(**{name: free.get(name, getattr(START, name)) for name in _NAMES})

    def loss(point: Sequence[float]) -> float:
        chosen = constants(point)
        return sum(abs(one.log_error(chosen)) for one in rates)

    point = [log(getattr(START, name)) for name in names]
    for _ in range(ROUNDS):
        point = minimize(loss, point)
    return constants(point)


_NAMES = [field.name for field in fields(SpeedConstants)]


def minimize(loss: Callable[[Sequence[float]], float], start: Sequence[float], size: float = 0.4) -> list[float]:
    """Return the point of least loss that the method of Nelder and Mead finds (Computer Journal 7, 1965)."""
    corners = [list(start), *([*start[:i], start[i] + size, *start[i + 1 :]] for i in range(len(start)))]
    simplex = sorted((loss(corner), corner) for corner in corners)
    for _ in range(STEPS):
        worst, corner = simplex[-1]
        centre = [sum(point[i] for _, point in simplex[:-1]) / len(start) for i in range(len(start))]

        def along(
            share: float, centre: list[float] = centre, corner: list[float] = corner
        ) -> tuple[float, list[float]]:
            point = [c + share * (c - x) for c, x in zip(centre, corner, strict=True)]
            return loss(point), point

        reflected = along(1.0)
        if reflected[0] < simplex[0][0]:
            simplex[-1] = min(reflected, along(2.0))
        elif reflected[0] < simplex[-2][0]:
            simplex[-1] = reflected
        elif (inside := along(-0.5 if reflected[0] >= worst else 0.5))[0] < min(worst, reflected[0]):
            simplex[-1] = inside
        else:
            best = simplex[0][1]
            shrunk = ([b + 0.5 * (x - b) for b, x in zip(best, point, strict=True)] for _, point in simplex[1:])
            simplex[1:] = [(loss(point), point) for point in shrunk]
        simplex.sort()
    return simplex[0][1]


def leave_one_out(label: str) -> list[tuple[FittedRate, float]]:
    """Return each rate with log(estimate / rate) by constants fitted without its `label`: model or gpu."""
    rates = fitted_rates()
    found = []
    for value in sorted({getattr(one.rate, label) for one in rates}):
        constants = fit([one for one in rates if getattr(one.rate, label) != value])
        left_out = [one for one in rates if getattr(one.rate, label) == value]
        found += [(one, one.log_error(constants)) for one in left_out]
    return found


def median_error(errors: Sequence[tuple[FittedRate, float]]) -> float:
    """Return the median of |estimate / rate - 1|."""
    return median(abs(exp(error) - 1) for _, error in errors)


def quantile(values: Sequence[float], share: float) -> float:
    """Return the value below which a share of the values is, 0 to 1."""
    ordered = sorted(values)
    at = share * (len(ordered) - 1)
    below = ordered[int(at)]
    return below + (at - int(at)) * (ordered[min(int(at) + 1, len(ordered) - 1)] - below)


def overheads() -> list[float]:
    """Return published GPU-hours over those of the steps, for each whole run."""
    ratios = []
    for run in read_runs():
        body = json.loads(run["request"])
        body["training"]["run_overhead"] = 0
        ratios.append(float(run["measured"]) / figure_range(estimate(body), "training.compute.gpu_hours")[1])
    return ratios


def _line(name: str, errors: Sequence[float]) -> str:
    middle = median(abs(exp(error) - 1) for error in errors)
    low, high = exp(quantile(errors, 0.1)), exp(quantile(errors, 0.9))
    return (
        f"{name:28} n {len(errors):4}  error {middle:6.1%}  ratio {exp(median(errors)):5.2f} ({low:.2f} to {high:.2f})"
    )


def main() -> None:
    """Fit, and print constants, errors and ranges."""
    rates = fitted_rates()
    constants = fit(rates)
    for name, value in zip(_NAMES, astuple(constants), strict=True):
        print(f"{name:16} {value:.4g}")
    print(_line("all", [one.log_error(constants) for one in rates]))
    for label in ("model", "gpu", "precision", "task"):
        for value in sorted({getattr(one.rate, label) for one in rates}):
            group = [one.log_error(constants) for one in rates if getattr(one.rate, label) == value]
            print(_line(f"  {label} {value}", group))
    for label in ("model", "gpu"):
        left_out = leave_one_out(label)
        print(_line(f"without the {label}", [error for _, error in left_out]))
        for value in sorted({getattr(one.rate, label) for one, _ in left_out}):
            print(_line(f"  {value}", [error for one, error in left_out if getattr(one.rate, label) == value]))
        if label == "model":
            ratios = [exp(-error) for _, error in left_out]
            print(f"RATE_SPREAD {quantile(ratios, 0.1):.2f} to {quantile(ratios, 0.9):.2f}")
    runs = overheads()
    print(f"RUN_OVERHEAD {quantile(runs, 0.1) - 1:.2f}, {median(runs) - 1:.2f}, {quantile(runs, 0.9) - 1:.2f}", end=" ")
    print(*(f"{one:.2f}" for one in sorted(runs)))


if __name__ == "__main__":
    main()
