"""How fast a model trains on GPUs for which no rate is stated, within what range, and what a whole run adds."""

from dataclasses import dataclass, replace
from math import sqrt
from typing import NamedTuple

from app.fit.estimator.training_memory import TrainingSetup
from app.fit.formulas.accelerators import accelerator_of, neighbours, precision_of
from app.fit.formulas.architecture import ParameterCount, missing_for_count, typical_shape
from app.fit.formulas.compute import FLOPS_PER_PARAM
from app.fit.formulas.quantities import ZERO, Range, single_value
from app.fit.formulas.training_speed import (
    FITTED,
    RATE_SPREAD,
    RUN_OVERHEAD,
    Accelerator,
    Precision,
    TokenWork,
    seconds_per_token,
    token_work,
)

PRECISION = "training.precision"
RATE_FAMILY, HOURS_FAMILY = "training_rate", "training_gpu_hours"
"""The families of measurements that the figures are compared with."""

CALIBRATED_PARAMS = (3e9, 1.1e12)
CALIBRATED_GPUS = (8, 1024)
CALIBRATED_SEQUENCE = (2048, 8192)
CALIBRATED_CAPABILITIES = frozenset({"9.0", "10.0", "10.3"})
"""What the published rates cover: parameters of a model, GPUs, tokens of a sequence, and CUDA compute capabilities."""


def precision(setup: TrainingSetup) -> Precision:
    """Return the precision of matrix products: as given, else that whose peak is given, else 16 bits."""
    given = setup.workload.precision
    if given is not None:
        return given
    peak = setup.gpus.peak_tflops
    found = precision_of(peak) if peak is not None else None
    if found is not None:
        return setup.assumptions.record(PRECISION, found[0], f"the peak is that of {found[1].name} in this precision")
    return setup.assumptions.record(PRECISION, "bf16", "matrix products are computed in 16 bits")


def work_per_token(setup: TrainingSetup) -> TokenWork | None:
    """Return what a token takes; None where the parameters are unknown.

    Where widths are unknown, they are those of a typical model with as many active parameters.
    """
    shape, count, workload = setup.model.shape, setup.model.count, setup.workload
    if count is None:
        return None
    if missing_for_count(shape):
        typical = typical_shape(replace(shape, params=count.active))
        shape = replace(typical, experts=None, sliding_window=None, kv_lora_rank=None)
        count = ParameterCount(total=count.total, active=count.active)
    given = workload.flops_per_param_token
    return token_work(
        shape,
        count,
        sequence_tokens=setup.sequence_tokens,
        flops_per_param=FLOPS_PER_PARAM[setup.method] if given is None else given,
        recomputed=setup.recompute == "full",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Domain:
    """What the published rates do not cover of a training; empty where they cover it."""

    outside: tuple[str, ...]
    paces: float = 1.0

    @property
    def spread(self) -> Range:
        """The range of rate / estimate: outside of the published rates it is as wide again, to either side.

        `paces` is how far the GPUs that it may be are from their mean, as a factor.
        """
        power = 2 if self.outside else 1
        low, high = RATE_SPREAD.low**power / self.paces, RATE_SPREAD.high**power * self.paces
        return Range(low=low, mid=RATE_SPREAD.mid, high=high)


def domain(setup: TrainingSetup, accelerator: Accelerator, gpus: int) -> Domain:
    """Return in what the model, its sequences or the GPUs depart from the published rates."""
    params = setup.model.count.total if setup.model.count is not None else 0
    checks = {
        "model": _within(params, CALIBRATED_PARAMS),
        "sequence": _within(setup.sequence_tokens, CALIBRATED_SEQUENCE),
        "gpus": _within(gpus, CALIBRATED_GPUS),
        "gpu": accelerator.known and CALIBRATED_CAPABILITIES.issuperset(accelerator.capabilities),
        "link": accelerator.slowdown <= 1,
    }
    paces = [FITTED.pace([one]) for one in accelerator.capabilities] or [1.0]
    outside = tuple(name for name, inside in checks.items() if not inside)
    return Domain(outside=outside, paces=sqrt(max(paces) / min(paces)))


def _within(value: float, bounds: tuple[float, float]) -> bool:
    return bounds[0] <= value <= bounds[1]


def rate_on(setup: TrainingSetup, work: TokenWork, accelerator: Accelerator, gpus: int) -> Range:
    """Return the tokens/s that each of n GPUs trains on, with the bubble of a pipeline of given micro-batches."""
    return _rate_of(setup, seconds_per_token(work, accelerator, gpus), accelerator, gpus)


def _rate_of(setup: TrainingSetup, seconds: float, accelerator: Accelerator, gpus: int) -> Range:
    return domain(setup, accelerator, gpus).spread.times(1 / (seconds * (1 + pipeline_bubble(setup))))


def _seconds_by_peak(setup: TrainingSetup, work: TokenWork, peak: float, accelerator: Accelerator, gpus: int) -> float:
    """Return the time per token of a GPU of which only the peak is known, s: never longer than with a lower peak.

    A GPU that is not known trains as fast as one of the known GPUs next to it at the least, and at the most. Where a
    known one is slower than another with a lower peak, which is of another type or of a larger NVLink domain, the peak
    alone does not tell them apart: the faster counts.
    """
    known = [
        (each, seconds_per_token(work, other, gpus))
        for each, other in neighbours(setup.workload.precision, setup.gpus.bandwidth_gb_per_s)
    ]
    own = min([seconds_per_token(work, accelerator, gpus), *(time for each, time in known if each <= peak)])
    above = [each for each, _ in known if each > peak]
    return max(own, min(time for each, time in known if each <= above[0])) if above else own


def pipeline_bubble(setup: TrainingSetup) -> float:
    """Return the idle time of a pipeline over its working time: (p - 1) / (m v); 0 where m is not given.

    p stages, m micro-batches a step, v chunks a stage. The published rates include the bubbles of their recipes.
    Source: Narayanan et al., arXiv 2104.04473, section 2.2.
    """
    workload = setup.workload
    stages, batches = setup.deployment.parallelism.pipeline, workload.micro_batches
    return (stages - 1) / (batches * (workload.pipeline_chunks or 1)) if batches else 0.0


class EstimatedRate(NamedTuple):
    """The tokens/s of one GPU, and in what the training departs from the published rates."""

    tokens_per_s: Range
    outside: tuple[str, ...]


def estimated_rate(setup: TrainingSetup, flops_per_token: float) -> EstimatedRate | None:
    """Return the tokens/s of one GPU by its peak, recording the MFU; None where the peak or the model is unknown."""
    gpus, peak, work = setup.gpus, setup.gpus.peak_tflops, work_per_token(setup)
    if peak is None or work is None:
        return None
    accelerator = accelerator_of(peak, precision(setup), gpus.bandwidth_gb_per_s)
    seconds = _seconds_by_peak(setup, work, peak, accelerator, setup.deployment.gpus)
    rate = _rate_of(setup, seconds, accelerator, setup.deployment.gpus)
    mfu = rate.times(flops_per_token / (peak * 1e12))
    shares = [round(end, 4) for end in (mfu.low, mfu.mid, mfu.high)]
    setup.assumptions.record("gpus.mfu", shares, "from the time per token that is fitted to published rates")
    return EstimatedRate(rate, domain(setup, accelerator, setup.deployment.gpus).outside)


def run_overhead(setup: TrainingSetup, *, stated: bool) -> Range:
    """Return what a whole run takes beside its steps, as a share: as given; nothing beside a stated rate."""
    given = setup.workload.run_overhead
    if given is not None:
        return single_value(given)
    if stated:
        return ZERO
    low, mid, high = RUN_OVERHEAD.low, RUN_OVERHEAD.mid, RUN_OVERHEAD.high
    why = "restarts, evaluation, checkpoints and slow nodes: published GPU-hours of whole runs over their steps"
    setup.assumptions.record("training.run_overhead", [low, mid, high], why)
    return RUN_OVERHEAD
