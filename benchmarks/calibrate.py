"""`python -m benchmarks.calibrate`: fits the constants of serving speed to the measured runs; `--write` records them.

Prints the error by model, GPU, engine, type, tensor ranks and batch, and with each model (all of one shape), GPU and
engine left out of the fit. Needs numpy and scipy. The fit is by least squares of the logarithm of estimate /
measurement, with a loss that is linear for what is far off (runs with speculative decoding, or of another version than
the rest). Runs of a configuration that was measured several times, and of a model that has many, count less.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from math import ceil, nan
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares  # type: ignore[import-untyped]  # SciPy has no stubs of its own

from app.fit.estimator.serving import ServingSetup
from app.fit.estimator.serving_speed import first_token_work, model_key, request_work
from app.fit.formulas.serving_speed import (
    FIRST_TOKEN,
    FIRST_TOKEN_SPREAD,
    STEP,
    STEP_SPREAD,
    FirstTokenConstants,
    StepConstants,
    StepWork,
    first_token_time,
    step_time,
)
from app.settings import PROJECT
from benchmarks.accuracy.estimates import setup_of
from benchmarks.accuracy.points import LeftOut
from benchmarks.accuracy.reported import ReportedRun, reported_runs
from benchmarks.accuracy.runs import ServingRun, serving_runs
from benchmarks.accuracy.serving import labels

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

MODULE = PROJECT / "app" / "fit" / "formulas" / "serving_speed.py"
BEGIN, END = "# Fitted, by `python -m benchmarks.calibrate --write`.\n", "# End of what is fitted.\n"

STEP_LIMITS: Mapping[str, tuple[float, float]] = {
    "dense_read": (1.0, 3.0), "layer_us": (0.0, 200.0), "latent_us": (0.0, 100.0), "expert_us": (0.0, 30.0),
    "doubling_us": (0.0, 50.0), "collective": (1.0, 20.0), "sequence_us": (0.0, 100.0), "prefill_dense": (1.0, 6.0),
    "prefill_experts": (1.0, 9.0), "sglang_layer_us": (0.0, 5000.0), "vllm": (-0.3, 0.6),
}  # fmt: skip
"""Least and greatest value of each constant: nothing is faster than at the rated speed."""
HOST_LIMITS: Mapping[str, tuple[float, float]] = {"host_ms": (0.0, 20.0)}
"""Of the constant that is fitted to reported runs on NVIDIA's GPUs, after those above."""
AMD_LIMITS: Mapping[str, tuple[float, float]] = {"amd": (0.0, 3.0), "amd_latent": (0.0, 3.0)}
"""Of the constants of AMD's GPUs, which are fitted to their runs alone, after all others."""
FIRST_TOKEN_LIMITS: Mapping[str, tuple[float, float]] = {
    "trtllm_ms": (0.0, 300.0), "doubling_ms": (0.0, 3.0), "waiting": (0.0, 1.0), "sglang_waiting": (0.0, 3.0),
}  # fmt: skip
LOSS_SCALE = {"step": 0.15, "first_token": 0.2}
"""The error (of the logarithm) from which on the loss is linear."""
EVEN = 300
"""Runs of a model beyond which each counts less, by the fourth root."""
REPORTED_EVEN = 10
"""The same of reported runs, of which there are few of a model."""
BURST_WEIGHT = 0.07
"""Weight of a run of a burst in the fit of the first token: few runs that are reported have all that is not of it."""
SEEN = 20
"""With this many runs a model's own range is known; of others it is that of models left out."""


class Runs(NamedTuple):
    """The measured runs: their work as arrays, measured times in seconds, the weight of each and its labels.

    A time that a run does not report is NaN.
    """

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
    """Return all measured runs: those that start together, and those that are reported."""
    together, reported = serving_runs(), reported_runs()
    setups = [setup for _, setup in together] + [setup_of(run.body) for run in reported]
    named = [{**labels(run), "source": "InferenceX"} for run, _ in together]
    named += [_reported_labels(run, setup) for run, setup in zip(reported, setups[len(together) :], strict=True)]
    columns = {name: np.array([one[name] for one in named]) for name in named[0]}
    experts = ["experts" if setup.model.shape.experts else "dense" for setup in setups]
    keys = [model_key(setup) for setup in setups]
    times = [(run.tpot_s, run.ttft_s) for run, _ in together]
    for run in reported:
        measured_s = run.measured_ms / 1e3
        times.append((measured_s, nan) if run.figure == "tpot" else (nan, measured_s))
    models = Counter(run.labels["model"] for run in reported)
    return Runs(
        _stack([request_work(setup) for setup in setups]),
        _stack([first_token_work(setup) for setup in setups]),
        np.array([tpot for tpot, _ in times]),
        np.array([ttft for _, ttft in times]),
        np.concatenate((
            _weights([run for run, _ in together]),
            np.array([(REPORTED_EVEN / models[run.labels["model"]]) ** 0.25 for run in reported]),
        )),
        {**columns, "kind": np.array(experts), "key": np.array([" ".join(map(str, key)) for key in keys])},
    )  # fmt: skip


def _reported_labels(run: ReportedRun, setup: ServingSetup) -> dict[str, str | int | float]:
    """Return the labels of a reported run, with those that runs of bursts have."""
    shape = "DeepSeek-V3" if "deepseek" in str(run.labels["model"]).lower() else run.labels["model"]
    dtype, tensor = setup.weights.type.dtype if setup.weights else None, setup.deployment.parallelism.tensor
    batch = 1 << max(0, setup.concurrency - 1).bit_length()
    return {**run.labels, "shape": shape, "dtype": str(dtype), "tensor_parallel": tensor, "batch": batch}


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


def is_burst(runs: Runs) -> Mask:
    """Return which runs start together."""
    return np.asarray(runs.step.burst) > 0


def is_on_amd(runs: Runs) -> Mask:
    """Return which runs are on GPUs of AMD."""
    return np.asarray(runs.step.amd) > 0


def fit(runs: Runs, start: Fit | None = None) -> Fit:
    """Fit the constants: of a step to bursts, of the host to reported runs, of AMD's GPUs, and of the first token.

    Of reported steps on NVIDIA's GPUs only the host's part is fitted.
    """
    found = start or Fit(step=STEP, first_token=FIRST_TOKEN)
    burst, amd, has_step = is_burst(runs), is_on_amd(runs), ~np.isnan(runs.tpot_s)
    step = _fit_step(runs.where(burst), found.step, STEP_LIMITS)
    step = _fit_step(runs.where(~burst & ~amd & has_step), step, HOST_LIMITS)
    step = _fit_step(runs.where(amd & has_step), step, AMD_LIMITS)
    return _fit_first_token(runs.where(~np.isnan(runs.ttft_s)), replace(found, step=step))


def _fit_first_token(runs: Runs, before: Fit) -> Fit:
    """Fit the constants of the first token."""
    weights = runs.weights * np.where(is_burst(runs), BURST_WEIGHT, 1.0)

    def constants(values: Array) -> Fit:
        named = dict(zip(FIRST_TOKEN_LIMITS, map(float, values), strict=True))
        return Fit(step=before.step, first_token=FirstTokenConstants(**named))

    def residuals(values: Array) -> Array:
        return weights * constants(values).first_token_errors(runs)

    return constants(_solve(residuals, asdict(before.first_token), FIRST_TOKEN_LIMITS, LOSS_SCALE["first_token"]))


def _fit_step(runs: Runs, before: StepConstants, limits: Mapping[str, tuple[float, float]]) -> StepConstants:
    """Fit those constants of a step that have limits, with all others as before; 0 without any run."""
    if not len(runs.tpot_s):
        return replace(before, **dict.fromkeys(limits, 0.0))

    def constants(values: Array) -> StepConstants:
        return replace(before, **dict(zip(limits, map(float, values), strict=True)))

    def residuals(values: Array) -> Array:
        return runs.weights * Fit(step=constants(values), first_token=FIRST_TOKEN).step_errors(runs)

    return constants(_solve(residuals, asdict(before), limits, LOSS_SCALE["step"]))


def _solve(
    residuals: Any, start: Mapping[str, float], limits: Mapping[str, tuple[float, float]], scale: float
) -> Array:
    """Return the fitted values; 0 of what no run shows, as of an engine that is left out: nothing is known of it."""
    low, high = (np.array([ends[end] for ends in limits.values()]) for end in (0, 1))
    given = np.array([start[name] for name in limits])
    margin = (high - low) * 1e-6
    solved = least_squares(
        residuals, np.clip(given, low + margin, high - margin), bounds=(low, high), loss="soft_l1", f_scale=scale,
        x_scale=np.maximum(np.abs(given), 0.05), xtol=1e-7, ftol=1e-7,
    )  # fmt: skip
    values: Array = np.where(np.any(solved.jac != 0, axis=0), solved.x, 0.0)
    return values


def left_out_errors(label: str, start: Fit) -> tuple[Array, Array]:
    """Return the errors of steps and of first tokens where the runs with the same label were left out of the fit.

    They are NaN where all bursts would be left out: nothing else shows what most of a step takes.
    """
    runs = read_runs()
    steps, firsts = np.full(len(runs.tpot_s), nan), np.full(len(runs.tpot_s), nan)
    for value in np.unique(runs.labels[label]):
        left = runs.labels[label] == value
        if np.all(left[is_burst(runs)]):
            continue
        known, asked = fit(runs.where(~left), start), runs.where(left)
        steps[left], firsts[left] = known.step_errors(asked), known.first_token_errors(asked)
    return steps, firsts


@lru_cache(maxsize=8)
def _left_out(label: str) -> tuple[Array, Array]:
    return left_out_errors(label, Fit(step=STEP, first_token=FIRST_TOKEN))


def median_error(errors: Array) -> float:
    """Return the median of |estimate / measurement - 1|."""
    return float(np.nanmedian(np.abs(np.exp(errors) - 1)))


def left_out_of(figure: int, which: str) -> LeftOut:
    """Compare steps (0) or first tokens (1) of some runs with their model left out of the fit, and of the range."""
    runs, errors = read_runs(), _left_out("shape")[figure]
    burst, amd = is_burst(runs), is_on_amd(runs)
    chosen = {"burst": burst, "steady": ~burst, "reported": ~burst & ~amd, "amd": amd}[which] & ~np.isnan(errors)
    name, kind = ("first_token", which) if figure else ("step", "unseen")
    width, inside = (FIRST_TOKEN_SPREAD if figure else STEP_SPREAD)[kind] ** 2, 0
    for value in np.unique(runs.labels["shape"][chosen]):
        own = runs.labels["shape"] == value
        others = {label: tuple(np.where(own, nan, both) for both in _left_out(label)) for label in LABELS}
        inside += int(np.sum(np.abs(errors[own & chosen]) <= np.log(spreads(others)[name][kind])))
    return LeftOut(median_error(errors[chosen]), "model", int(chosen.sum()), inside / int(chosen.sum()), width)


LABELS = ("shape", "gpu", "engine", "source")
"""What is left out of the fit as a whole: all models of a shape, a GPU, an engine or a source."""
SHARE, FIRST_TOKEN_SHARE = 0.8, 0.76
"""Of the runs of a kind that are new, how many are within the range of a step, and of the first token."""


def _factor(*errors: Array, share: float = SHARE) -> float:
    """Return by how much a range goes to either side of the middle: of several errors the largest.

    Of n errors that is the ceil(share (n + 1))-th by size, with which the range has at least that share of what comes
    from where they do (split conformal prediction: Lei et al., arXiv 1604.04173, section 2.2).
    """
    sizes = [np.sort(np.abs(one[~np.isnan(one)])) for one in errors]
    return float(np.exp(max(size[min(len(size), ceil(share * (len(size) + 1))) - 1] for size in sizes)))


def spreads(by: Mapping[str, tuple[Array, ...]]) -> dict[str, dict[str, float]]:
    """Return how far ranges of steps and first tokens go, by what is left out of the fit: model, GPU, engine, source.

    Of a measured model the range is that of its kind. That of others, and of other GPUs, is of what is left out as a
    whole: an engine or a GPU, and all reported runs of NVIDIA's GPUs, to which no step is fitted.
    """
    runs = read_runs()
    steps, firsts = by["shape"]
    burst, amd, kinds = is_burst(runs), is_on_amd(runs), runs.labels["kind"]
    measured = {kind: _factor(steps[burst & (kinds == kind)]) for kind in KINDS}
    unseen = _factor(steps[~burst & ~amd], steps[amd], by["engine"][0][burst], by["gpu"][0][burst])
    return {
        "step": {**measured, "unseen": unseen},
        "first_token": {
            "steady": _factor(firsts[~burst], share=FIRST_TOKEN_SHARE),
            "burst": _factor(firsts[burst], share=FIRST_TOKEN_SHARE),
        },
    }


KINDS = ("dense", "experts")


def left_out_lines(label: str) -> Iterator[str]:
    """Yield the error, and the share in the range of what was not measured, where a label's runs are left out."""
    runs, (steps, firsts) = read_runs(), _left_out(label)
    burst, amd = is_burst(runs), is_on_amd(runs)
    groups = (
        ("step, InferenceX", steps, burst, STEP_SPREAD["unseen"]),
        ("step, reported", steps, ~burst & ~amd, STEP_SPREAD["unseen"]),
        ("step, AMD", steps, amd, STEP_SPREAD["unseen"]),
        ("first token, InferenceX", firsts, burst, FIRST_TOKEN_SPREAD["burst"]),
        ("first token, reported", firsts, ~burst, FIRST_TOKEN_SPREAD["steady"]),
    )
    for name, errors, mask, spread in groups:
        for value in ("", *np.unique(runs.labels[label][mask])):
            chosen = errors[mask & ~np.isnan(errors) & ((runs.labels[label] == value) | (value == ""))]
            if not len(chosen):
                continue
            inside = int(np.sum(np.abs(chosen) <= np.log(spread)))
            title = f"  without {value}" if value else f"{name}, without the {label}"
            ratio = np.exp(np.median(chosen))
            yield (
                f"{title:52} n {len(chosen):5}  in range {inside:5} ({inside / len(chosen):4.0%})"
                f"  high/low {spread**2:.2f}  error {median_error(chosen):6.1%}  ratio {ratio:.2f}"
            )


def report(name: str, errors: Array) -> None:
    """Print the statistics of errors."""
    errors = errors[~np.isnan(errors)]
    if not len(errors):
        return
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
    left_out = {label: left_out_errors(label, found) for label in LABELS}
    for index, (title, errors) in enumerate(
        {"step": found.step_errors(runs), "first_token": found.first_token_errors(runs)}.items()
    ):
        for arrivals, mask in {"together": is_burst(runs), "reported": ~is_burst(runs)}.items():
            print(f"\n{title}, {arrivals}")
            report("all", errors[mask])
            for label in ("model", "gpu", "engine", "source", "dtype", "tensor_parallel", "batch", "kind"):
                for value in np.unique(runs.labels[label][mask]):
                    report(f"  {label} {value}", errors[mask & (runs.labels[label] == value)])
            for label, both in left_out.items():
                report(f"without the {label}", both[index][mask])
                for value in np.unique(runs.labels[label][mask]):
                    report(f"  without {value}", both[index][mask & (runs.labels[label] == value)])
    spread = spreads(left_out)
    print(spread)
    if options.write:
        write(found, spread)
    return 0


def measured_models() -> list[tuple[int | str, ...]]:
    """Return what models with a range of their own are recognized by."""
    keys = Counter(read_runs().labels["key"])
    often = (key.split() for key, times in keys.items() if times >= SEEN)
    return sorted((*map(int, numbers), engine) for *numbers, engine in often)


def write(found: Fit, spread: Mapping[str, Mapping[str, float]]) -> None:
    """Write the constants into their module, with four digits."""
    text = MODULE.read_text(encoding="utf-8")
    lines = [
        f"STEP = {_literal(found.step)}",
        f"FIRST_TOKEN = {_literal(found.first_token)}",
        f"STEP_SPREAD: Mapping[str, float] = {_spread_literal(spread['step'])}",
        f"FIRST_TOKEN_SPREAD: Mapping[str, float] = {_spread_literal(spread['first_token'])}",
        f"MEASURED_MODELS = frozenset({measured_models()})",
    ]
    before, after = text.split(BEGIN)[0], text.split(END)[1]
    MODULE.write_text(before + BEGIN + "\n".join(lines) + "\n" + END + after, encoding="utf-8")
    print(f"wrote {MODULE.name}; format it with make fix")


def _literal(constants: StepConstants | FirstTokenConstants) -> str:
    values = ", ".join(f"{name}={value:.4g}" for name, value in asdict(constants).items())
    return f"{type(constants).__name__}({values})"


def _spread_literal(spread: Mapping[str, float]) -> str:
    """Return ranges with three decimals: rounded up, as each ends at a run."""
    return str({kind: ceil(factor * 1000) / 1000 for kind, factor in spread.items()})


if __name__ == "__main__":
    sys.exit(main())
