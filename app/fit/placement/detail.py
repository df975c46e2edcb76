"""Figures of one option for the response: memory by component, speed and cost, each with its exactness."""

from dataclasses import dataclass, replace
from decimal import Decimal
from math import isfinite

from app.fit.estimator.parallelism import Deployment
from app.fit.estimator.serving import memory_figures
from app.fit.estimator.training_memory import compute_need, training_memory
from app.fit.estimator.workload import Gpus
from app.fit.formulas.quantities import Figure, Range, bound, estimate, exact, exact_gib
from app.fit.placement.layouts import Attempt
from app.fit.placement.option import PlacementOption, interruption_overhead, usd_per_million_tokens
from app.fit.placement.prepare import Job
from app.fit.placement.serving import ServingJob
from app.fit.placement.training import TrainingJob
from app.fit.verdict import Cost


@dataclass(frozen=True, slots=True, kw_only=True)
class PerGpuMemory:
    """What the fullest GPU needs by component; None does not apply to this kind of workload."""

    weights: Figure | None = None
    kv_cache: Figure | None = None
    states: Figure | None = None
    activations: Figure | None = None
    buffers: Figure | None = None
    overhead: Figure
    need: Figure
    budget: Figure | None
    max_concurrency: Figure | None = None


def per_gpu_memory(job: Job, option: PlacementOption) -> PerGpuMemory | None:
    """Return what the fullest GPU of an option needs, by component; None where memory was not checked."""
    if not isfinite(option.attempt.budget_bytes):
        return None
    if isinstance(job, ServingJob):
        return _serving_memory(job, option)
    return _training_memory(job, option.attempt)


def _serving_memory(job: ServingJob, option: PlacementOption) -> PerGpuMemory:
    memory = memory_figures(job.serving_on(option.machine, option.attempt), job.weights, job.served.cache)
    return PerGpuMemory(
        weights=memory.weights,
        kv_cache=memory.kv_cache,
        activations=memory.activations,
        overhead=memory.overhead,
        need=memory.need,
        budget=memory.budget,
        max_concurrency=memory.max_concurrency,
    )


def _training_memory(job: TrainingJob, attempt: Attempt) -> PerGpuMemory:
    base = job.states_by_stage[attempt.zero_stage or 0]
    training = replace(
        job.training,
        gpus=Gpus(count=attempt.gpus),
        deployment=Deployment(parallelism=attempt.parallelism, copies=attempt.replicas),
    )
    memory = training_memory(training, base, compute_need(training, base))
    return PerGpuMemory(
        states=memory.states,
        activations=memory.activations,
        buffers=memory.buffers,
        overhead=memory.overhead,
        need=memory.need,
        budget=exact_gib(attempt.budget_bytes),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedFigures:
    """How fast an option is; None is unknown."""

    step: Figure | None
    expected_step: Figure | None
    tokens_per_s: Figure | None
    expected_tokens_per_s: Figure
    hours: Figure | None


def speed_figures(option: PlacementOption) -> SpeedFigures | None:
    """Return the speed of an option as figures with exactness; None where it is unknown."""
    speed = option.speed
    if speed is None:
        return None
    most, least = speed.max_tokens_per_s, speed.min_step_s
    return SpeedFigures(
        step=bound(least * 1e3, "ms") if least is not None else None,
        expected_step=estimate(speed.step_s.times(1e3), "ms") if speed.step_s is not None else None,
        tokens_per_s=bound(most, "tokens/s") if most is not None else None,
        expected_tokens_per_s=estimate(speed.tokens_per_s, "tokens/s"),
        hours=estimate(speed.hours, "hours") if speed.hours is not None else None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CostFigures:
    """What an option costs by one purchase model."""

    cost: Cost
    per_job: Figure | None
    per_million_tokens: Figure | None


def cost_figures(option: PlacementOption, purchase: str) -> CostFigures:
    """Compute the cost of the job and of a million tokens: exact where hours are given, else ranges like the time."""
    cost, speed = option.costs[purchase], option.speed
    hourly = cost.usd_per_hour
    job = exact(cost.usd_per_job, "USD") if cost.usd_per_job is not None else None
    if hourly is None or speed is None:
        return CostFigures(cost=cost, per_job=job, per_million_tokens=None)
    if job is None and speed.hours is not None:
        factor = hourly * (1 + interruption_overhead(purchase, option.pricing))
        job = estimate(speed.hours.times(float(factor)), "USD")
    return CostFigures(cost=cost, per_job=job, per_million_tokens=_per_million(hourly, speed.tokens_per_s))


def _per_million(usd_per_hour: Decimal, rate: Range) -> Figure:
    """Return the cost range of a million tokens; the highest rate gives the lowest cost."""
    low, mid, high = (float(usd_per_million_tokens(usd_per_hour, one)) for one in (rate.high, rate.mid, rate.low))
    return estimate(Range(low=low, mid=mid, high=high), "USD")
