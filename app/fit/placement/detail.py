"""The figures of one option, as the breakdown of its workload on its GPUs gives them: memory, sequences, costs."""

from dataclasses import dataclass, replace
from decimal import Decimal
from math import isfinite

from app.fit.estimator.parallelism import Placing
from app.fit.estimator.serving import memory_figures
from app.fit.estimator.training_memory import need_of, training_memory
from app.fit.estimator.workload import Gpus
from app.fit.formulas.quantities import Figure, Range, bound, estimate, exact, exact_gib
from app.fit.placement.layouts import Attempt
from app.fit.placement.option import Placed, overhead, per_million
from app.fit.placement.prepare import Job
from app.fit.placement.serving import ServingJob
from app.fit.placement.training import TrainingJob
from app.fit.verdict import Cost


@dataclass(frozen=True, slots=True, kw_only=True)
class PerGpu:
    """What the fullest GPU needs by component; None is not of this use."""

    weights: Figure | None = None
    kv_cache: Figure | None = None
    states: Figure | None = None
    activations: Figure | None = None
    buffers: Figure | None = None
    overhead: Figure
    need: Figure
    budget: Figure | None
    max_concurrency: Figure | None = None


def per_gpu(job: Job, option: Placed) -> PerGpu | None:
    """Take apart what the fullest GPU of an option needs; None where only the cut was asked about."""
    if not isfinite(option.attempt.budget):
        return None
    if isinstance(job, ServingJob):
        return _serving(job, option)
    return _training(job, option.attempt)


def _serving(job: ServingJob, option: Placed) -> PerGpu:
    memory = memory_figures(job.on(option.machine, option.attempt), job.weights, job.served.cache)
    return PerGpu(
        weights=memory.weights,
        kv_cache=memory.kv_cache,
        activations=memory.activations,
        overhead=memory.overhead,
        need=memory.need,
        budget=memory.budget,
        max_concurrency=memory.max_concurrency,
    )


def _training(job: TrainingJob, attempt: Attempt) -> PerGpu:
    base = job.stages[attempt.stage or 0]
    asked = replace(
        job.asked, gpus=Gpus(count=attempt.gpus), placing=Placing(split=attempt.split, copies=attempt.copies)
    )
    memory = training_memory(asked, base, need_of(asked, base))
    return PerGpu(
        states=memory.states,
        activations=memory.activations,
        buffers=memory.buffers,
        overhead=memory.overhead,
        need=memory.need,
        budget=exact_gib(attempt.budget),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedFigures:
    """How fast an option is."""

    step: Figure | None
    expected_step: Figure | None
    tokens_per_s: Figure | None
    expected_tokens_per_s: Figure
    hours: Figure | None


def speed_figures(option: Placed) -> SpeedFigures | None:
    """Tag what is known of an option's speed; None where nothing is."""
    speed = option.speed
    if speed is None:
        return None
    most, least = speed.most_tokens_per_s, speed.least_step_s
    return SpeedFigures(
        step=bound(least * 1e3, "ms") if least is not None else None,
        expected_step=estimate(speed.step_s.times(1e3), "ms") if speed.step_s is not None else None,
        tokens_per_s=bound(most, "tokens/s") if most is not None else None,
        expected_tokens_per_s=estimate(speed.tokens_per_s, "tokens/s"),
        hours=estimate(speed.hours, "hours") if speed.hours is not None else None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CostFigures:
    """What an option costs under one purchase model."""

    cost: Cost
    per_job: Figure | None
    per_million_tokens: Figure | None


def cost_figures(option: Placed, purchase: str) -> CostFigures:
    """Price the job and a million tokens: exact where hours are given, else as uncertain as the time."""
    cost, speed = option.costs[purchase], option.speed
    hourly = cost.usd_per_hour
    job = exact(cost.usd_per_job, "USD") if cost.usd_per_job is not None else None
    if hourly is None or speed is None:
        return CostFigures(cost=cost, per_job=job, per_million_tokens=None)
    if job is None and speed.hours is not None:
        factor = hourly * (1 + overhead(purchase, option.pricing))
        job = estimate(speed.hours.times(float(factor)), "USD")
    return CostFigures(cost=cost, per_job=job, per_million_tokens=_per_million(hourly, speed.tokens_per_s))


def _per_million(usd_per_hour: Decimal, rate: Range) -> Figure:
    """The fastest rate makes the cheapest tokens."""
    low, mid, high = (float(per_million(usd_per_hour, one)) for one in (rate.high, rate.mid, rate.low))
    return estimate(Range(low=low, mid=mid, high=high), "USD")
