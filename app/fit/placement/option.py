"""A size that fits: how it is used, its headroom, warnings, speed, service and cost, each figure with its exactness."""

from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from math import inf, isfinite
from typing import Any

from app.fit.costs import format_amount
from app.fit.estimator.estimate import cost_of_rate
from app.fit.estimator.service_level import ServiceLoad, load_figures, rate_range, request_seconds
from app.fit.estimator.serving import check_context_length, has_no_context, memory_figures
from app.fit.estimator.serving_speed import TIMED_KINDS, Speed, first_token_evidence, speed_evidence
from app.fit.estimator.training_memory import compute_need, training_memory
from app.fit.estimator.training_time import HOURS_FAMILY
from app.fit.estimator.workload import Deployment, Gpus, ServiceLevel
from app.fit.formulas.quantities import GIB, Evidence, Figure, Range, bound, estimate, exact, exact_gib
from app.fit.formulas.training_speed import Interruptions, interruptions
from app.fit.placement.jobs import ServingJob, TrainingJob, linked_gpus
from app.fit.placement.layouts import Attempt
from app.fit.placement.machine import Machine
from app.fit.placement.prepare import Job, PreparedRequest
from app.fit.results import PerGpuMemory, ServiceFigures, SpeedFigures, evidence_of
from app.fit.verdict import Cost, Failure, Headroom, OptionCost, Vm, compute_cost, price_place, warning_codes


def _service_text(load: ServiceLoad, speed: Speed) -> str:
    replica, seconds = load.replica, _times(load.level, speed)[0]
    first = speed.first_token_s.mid * 1e3 if speed.first_token_s is not None else 0.0
    step = speed.step_s.mid * 1e3 if speed.step_s is not None else 0.0
    read = f", whose prompts {load.prefill_replicas} other copies read" if load.prefill_replicas else ""
    requests = "1 request" if load.sequences == 1 else f"{load.sequences} requests"
    return (
        f"{requests} at a time on each copy at the peak{read}, at most {replica.sequences} (limit: "
        f"{replica.limit}), with {first:.0f} ms to the first token, {step:.1f} ms a token and {seconds.mid:.1f} s a "
        "request"
    )


def _times(level: ServiceLevel, speed: Speed) -> tuple[Range, Range]:
    """Return the times of a request and of a step, s; raises ValueError where either is unknown."""
    if speed.first_token_s is None or speed.step_s is None:
        raise ValueError("a service needs the times of its option")
    return request_seconds(level, speed.first_token_s, speed.step_s), speed.step_s


VCPUS_PER_GPU = 4
"""Rule of thumb: fewer vCPUs per GPU starve it of data."""


BLOCKING = {"GPU_COUNT", "GPU_UNKNOWN"}
"""Codes of failures after which no further check is made: so little is known."""


class Placed:
    """A job on the GPUs of a machine: the best attempt, and what it fails whatever else the machine has.

    The attempt is None where no partition is possible. `host_bytes` is what it needs of the memory of a VM, 0 where
    that is not checked.
    """

    def __init__(self, job: Job, machine: Machine, attempt: Attempt | None, failures: tuple[Failure, ...]) -> None:
        self._job, self._machine = job, machine
        self.attempt, self.failures = attempt, failures
        self.blocked = any(failure.code in BLOCKING for failure in failures)
        self.host_bytes = 0.0 if attempt is None or self.blocked else job.host_bytes(machine, attempt)

    @cached_property
    def speed(self) -> Speed | None:
        """How fast it is; None where that is unknown."""
        return self._job.speed(self._machine, self.attempt) if self.attempt is not None else None


@dataclass(kw_only=True, eq=False)
class PlacementOption:
    """A size that fits, with its best attempt; what not every order needs is computed when it is read."""

    vm: Vm
    machine: Machine
    attempt: Attempt
    placed: Placed
    prepared: PreparedRequest
    pareto_optimal: bool | None = None

    @property
    def speed(self) -> Speed | None:
        """How fast it is; None where that is unknown."""
        return self.placed.speed

    @cached_property
    def costs(self) -> dict[str, Cost]:
        """What all VMs cost, by purchase model."""
        terms, purchases = self.prepared.size_constraints, self.prepared.request.pricing.purchases
        return {name: compute_cost(self.vm, name, self.attempt.nodes, terms) for name in purchases}

    @cached_property
    def interruptions(self) -> Interruptions | None:
        """What evictions of spot VMs do to a training; None where a share was given instead."""
        job, hours = self.prepared.job, self.speed.hours if self.speed is not None else None
        if not isinstance(job, TrainingJob) or job.spot is None:
            return None
        return interruptions(job.spot, job.disk_bytes, self.attempt.nodes, hours.mid if hours is not None else None)

    @cached_property
    def headrooms(self) -> tuple[Headroom, ...]:
        """What is left of the memory of the fullest GPU, and of the memory and local disk of a VM."""
        job, machine, attempt = self.prepared.job, self.machine, self.attempt
        resources = (
            ("gpu_memory", attempt.required_bytes, attempt.budget_bytes),
            ("memory", job.host_bytes(machine, attempt), machine.memory_bytes),
            ("local_disk", job.disk_bytes, machine.disk_bytes),
        )
        return tuple(
            Headroom(resource=name, unit="GiB", required=required / GIB, available=available / GIB)
            for name, required, available in resources
            if available is not None and isfinite(available) and required <= available
        )

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """The codes of its warnings: about the placement, what its figures rest on, targets, the size and its price."""
        level = self.attempt.load.level if self.attempt.load is not None else None
        return (
            *_placement_warnings(self.prepared.job, self.machine, self.attempt),
            *(() if _is_measured(self.prepared.job, self.speed) else ("UNMEASURED",)),
            *(_target_warnings(level, self.speed) if level is not None and self.speed is not None else ()),
            *warning_codes(self.vm, self.prepared.size_constraints),
        )

    @property
    def limiting(self) -> Headroom | None:
        """The resource with the least headroom; None where none is measured."""
        return min(self.headrooms, key=lambda headroom: headroom.percent, default=None)

    @property
    def usd_per_hour(self) -> Decimal | None:
        """USD per hour by the ranking purchase model; None where the price is unknown."""
        price = self.vm.usd_per_hour[self.prepared.size_constraints.purchase]
        return None if price is None else self.attempt.nodes * price

    @property
    def usd_per_job(self) -> float | None:
        """USD for the job by the ranking purchase model, with what spot interruptions add; None where it is unknown."""
        if self.usd_per_hour is None:
            return None
        terms = self.prepared.size_constraints
        if terms.hours is not None:
            return float(self.usd_per_hour * terms.hours)
        hours = self.speed.hours if self.speed is not None else None
        if hours is None:
            return None
        cost = _interrupted_cost(self, terms.purchase, float(self.usd_per_hour), hours.mid)
        return cost if isfinite(cost) else None

    @property
    def usd_per_million_tokens(self) -> float | None:
        """USD for a million tokens at the expected rate, of a service of its load; None where unknown."""
        load = self.attempt.load
        if self.usd_per_hour is None or self.speed is None:
            return None
        rate = self.speed.tokens_per_s.mid if load is None else load.mean_requests_per_s * load.level.output_tokens
        return float(self.usd_per_hour) / rate / 3600 * 1e6

    @property
    def cost(self) -> float | None:
        """What the Pareto comparison takes as cost: USD for the job, else per hour."""
        job, hourly = self.usd_per_job, self.usd_per_hour
        return job if job is not None or hourly is None else float(hourly)

    @property
    def time(self) -> float:
        """Hours of the job, else seconds of a step; infinity where unknown."""
        return self.speed.time if self.speed is not None else inf


def _interrupted_cost(option: PlacementOption, purchase: str, usd_per_hour: float, hours: float) -> float:
    """Return the USD of hours of work with what evictions add: spot VMs are evicted, others are not."""
    if purchase != "spot":
        return usd_per_hour * hours
    if option.interruptions is not None:
        return option.interruptions.cost(usd_per_hour, hours)
    return usd_per_hour * hours * float(1 + (option.prepared.request.pricing.spot_overhead or 0))


def _placement_warnings(job: Job, machine: Machine, attempt: Attempt) -> tuple[str, ...]:
    tensor, kv_heads = attempt.parallelism.tensor, job.partition.kv_heads
    # GPUs of several VMs exchange data at every step of a training; of what serves, those of one replica alone do.
    exchanging = attempt.gpus if isinstance(job, TrainingJob) else attempt.parallelism.gpus
    apart = exchanging > machine.joined_gpus
    raised = {
        "TP_OVER_PCIE": linked_gpus(machine, attempt.parallelism) > machine.domain_gpus,
        "TP_KV_REPLICATED": kv_heads is not None and tensor > kv_heads and not isinstance(job, TrainingJob),
        "NODES_WITHOUT_INFINIBAND": machine.infiniband is not True and apart,
        "NETWORK_UNKNOWN": machine.network_gbps is None and apart,
        "PEAK_UNKNOWN": job.lacks_peak(machine),
        "WEIGHT_ONLY": isinstance(job, ServingJob) and job.is_weight_only(machine),
        "NO_KV_CACHE": isinstance(job, ServingJob)
        and isfinite(attempt.budget_bytes)
        and job.model.shape.keeps_cache
        and has_no_context(job.serving.workload),
        "MODEL_ASSUMED": job.model.shape.unknown_type,
        "LONG_CONTEXT": isinstance(job, ServingJob) and check_context_length(job.serving),
        "TIGHT": job.max_required_bytes(attempt) > attempt.budget_bytes,
        "GPU_OF_SERIES": machine.of_series,
        "USABLE_MEMORY_ASSUMED": machine.usable_assumed,
        "FEW_VCPUS": machine.vcpus is not None and machine.vcpus < VCPUS_PER_GPU * machine.ranks,
        "NO_LOCAL_DISK": not (machine.described and machine.disk_bytes is None)
        and (machine.disk_bytes or 0.0) < job.disk_bytes,
    }
    return tuple(code for code, holds in raised.items() if holds)


def _is_measured(job: Job, speed: Speed | None) -> bool:
    """Whether measurements back a speed, where it is known, and the memory of a pass."""
    if not job.model.shape.keeps_cache or speed is None:
        return job.model.shape.keeps_cache
    return speed_evidence(speed).n > 0 and (speed.first_token_s is None or first_token_evidence(speed.departures).n > 0)


def _target_warnings(level: ServiceLevel, speed: Speed) -> tuple[str, ...]:
    """Return the codes of the targets that the middle of a time misses, or its upper end alone."""
    times = (
        ("TPOT_UNLIKELY", "TPOT_UNCERTAIN", speed.step_s, level.tpot_ms),
        ("TTFT_UNLIKELY", "TTFT_UNCERTAIN", speed.first_token_s, level.ttft_ms),
    )
    return tuple(
        unlikely if time.mid * 1e3 > target * (1 + ROUNDING) else uncertain
        for unlikely, uncertain, time, target in times
        if time is not None and target is not None and time.high * 1e3 > target
    )


ROUNDING = 1e-9
"""Relative error of floats by which a time may be above a target that it meets."""


def explain(option: PlacementOption) -> str:
    """Return one sentence: VMs and parallelism, memory of each GPU, what is assumed, speed and price."""
    attempt, parallelism = option.attempt, option.attempt.parallelism
    nodes = f"{attempt.nodes} VMs" if attempt.nodes > 1 else "1 VM"
    need, budget = attempt.required_bytes / GIB, attempt.budget_bytes / GIB
    memory = "the model can be cut that way"
    if isfinite(budget):
        memory = f"needs {need:.1f} of {budget:.1f} GiB on each GPU ({100 * (budget - need) / budget:.0f}% to spare)"
    experts = "the experts are distributed whole" if parallelism.expert > 1 else ""
    if parallelism.data > 1:
        whose = "each GPU" if parallelism.tensor == 1 else f"each group of {parallelism.tensor} GPUs"
        experts = f"{whose} has the attention and the cache of its own sequences, and the experts are distributed"
    parts = [
        f"Fits on {nodes}{_parallelism_text(option)}: {memory}",
        experts,
        _weights_text(option),
        option.prepared.job.assumed,
        _speed_text(option),
        _price_text(option),
    ]
    return "; ".join(part for part in parts if part) + "."


def _parallelism_text(option: PlacementOption) -> str:
    parallelism, stage = option.attempt.parallelism, option.attempt.zero_stage
    over = " over PCIe" if linked_gpus(option.machine, parallelism) > option.machine.domain_gpus else ""
    parts = {
        f"TP={parallelism.tensor}{over}": parallelism.tensor > 1,
        f"PP={parallelism.pipeline}": parallelism.pipeline > 1,
        f"EP={parallelism.expert}": parallelism.expert > 1,
        f"DP attention={parallelism.data}": parallelism.data > 1,
        f"DP={option.attempt.replicas}": option.attempt.replicas > 1,
        f"ZeRO-{stage}": bool(stage) and option.attempt.replicas > 1,
    }
    shown = [part for part, applies in parts.items() if applies]
    return f" with {', '.join(shown)}" if shown else ""


WEIGHTS_SOURCE_TEXTS = {
    "request": "as asked",
    "preset": "as released",
    "quantization_config": "by the config's quantization_config",
    "dtype": "by the config's dtype",
    "torch_dtype": "by the config's torch_dtype",
    "default": "by default",
}
"""How the explanation names the source of the weights' type."""


def _weights_text(option: PlacementOption) -> str:
    """Return the type of the weights and its source, and a note where no KV cache is counted for lack of a context."""
    job, parts = option.prepared.job, []
    stored = job.serving.weights if isinstance(job, ServingJob) else None
    weights = stored.type if stored is not None else None
    if weights is not None and weights.dtype is not None:
        parts.append(f"{weights.dtype} weights {WEIGHTS_SOURCE_TEXTS[weights.source]}")
    if "NO_KV_CACHE" in option.warnings:
        parts.append("no KV cache is counted, as no context is given")
    return "; ".join(parts)


def rounded(amount: float | Decimal, *, digits: int = 3) -> str:
    """Return an amount with some significant digits, and never as 3.35e+03."""
    return f"{float(f'{amount:.{digits}g}'):,.15g}"


def _range_text(low: float | Decimal, high: float | Decimal) -> str:
    """Return both ends of a range, or one where they are the same as they are written."""
    return " to ".join(dict.fromkeys((rounded(low), rounded(high))))


def _speed_text(option: PlacementOption) -> str:
    speed = option.speed
    if speed is None and (kind := option.prepared.job.model.shape.kind) not in TIMED_KINDS:
        return f"no speed, as none is estimated for {kind} models"
    if speed is None:
        return "no speed, as no source states its peak" if "PEAK_UNKNOWN" in option.warnings else ""
    if speed.hours is not None:
        return f"takes {_range_text(speed.hours.low, speed.hours.high)} hours"
    if option.attempt.load is not None:
        return _service_text(option.attempt.load, speed)
    least, most = speed.tokens_per_s.low, speed.tokens_per_s.high
    bound = f" (at most {speed.max_tokens_per_s:.0f})" if speed.max_tokens_per_s is not None else ""
    return f"{least:.0f} to {most:.0f} tokens/s{bound}"


def _price_text(option: PlacementOption) -> str:
    usd, purchase = option.usd_per_hour, option.prepared.size_constraints.purchase
    model = purchase.replace("_", "-")
    if usd is None:
        return f"its {model} price is unknown"
    hourly = f"{format_amount(usd)} USD an hour {model}{price_place(option.vm, purchase)}"
    job = cost_figures(option, purchase).per_job
    if job is None:
        return hourly
    if job.low is None or job.high is None:
        return f"{hourly}, {job.value:,.2f} USD for the job"
    return f"{hourly}, {_range_text(job.low, job.high)} USD for the job"


def per_gpu_memory(option: PlacementOption) -> tuple[PerGpuMemory | None, Figure | None]:
    """Return what the fullest GPU of an option needs, by component, and the sequences that all copies of a server hold.

    Both are None where memory was not checked.
    """
    job, attempt = option.prepared.job, option.attempt
    absent: dict[str, Any] = dict.fromkeys(("weights", "kv_cache", "states", "activations", "buffers"))
    if not isfinite(attempt.budget_bytes):
        return None, None
    if isinstance(job, ServingJob):
        served = memory_figures(job.serving_on(option.machine, attempt), job.weights, job.served.cache)
        names = ("weights", "kv_cache", "activations", "overhead", "need", "budget")
        return PerGpuMemory(**absent | {name: getattr(served, name) for name in names}), served.max_concurrency
    base = job.states_by_stage[attempt.zero_stage or 0]
    training = replace(
        job.training,
        gpus=Gpus(count=attempt.gpus),
        deployment=Deployment(parallelism=attempt.parallelism, copies=attempt.replicas),
    )
    memory = training_memory(training, base, compute_need(training, base))
    parts = {name: getattr(memory, name) for name in ("states", "activations", "buffers", "overhead", "need")}
    return PerGpuMemory(**absent | parts, budget=exact_gib(attempt.budget_bytes)), None


def _of_training(amount: Range, unit: str, evidence: Evidence | None = None) -> Figure:
    """Return a figure of a training: exact where it follows from a stated length or rate, which has no range."""
    return exact(amount.mid, unit) if amount.low == amount.high else estimate(amount, unit, evidence)


def speed_figures(option: PlacementOption) -> SpeedFigures | None:
    """Return the speed of an option as figures with exactness; None where it is unknown."""
    speed = option.speed
    if speed is None:
        return None
    most, least, first, hours = speed.max_tokens_per_s, speed.min_step_s, speed.first_token_s, speed.hours
    rests_on = speed_evidence(speed)
    of_rate = estimate if isinstance(option.prepared.job, ServingJob) else _of_training
    return SpeedFigures(
        step=bound(least * 1e3, "ms") if least is not None else None,
        expected_step=estimate(speed.step_s.times(1e3), "ms", rests_on) if speed.step_s is not None else None,
        tokens_per_s=bound(most, "tokens/s") if most is not None else None,
        expected_tokens_per_s=of_rate(speed.tokens_per_s, "tokens/s", rests_on),
        ttft=estimate(first.times(1e3), "ms", first_token_evidence(speed.departures)) if first is not None else None,
        hours=_of_training(hours, "hours", evidence_of(HOURS_FAMILY, speed.departures)) if hours is not None else None,
    )


def service_figures(option: PlacementOption) -> ServiceFigures | None:
    """Return what an option sustains of a service; None where none is asked for."""
    job, attempt, speed, load = option.prepared.job, option.attempt, option.speed, option.attempt.load
    if not isinstance(job, ServingJob) or load is None or speed is None:
        return None
    most = load.replica.sequences
    at_most = job.speed(option.machine, attempt._replace(load=load._replace(sequences=most)))
    if at_most is None:
        return None
    generating, (request_s, _) = attempt.replicas - load.prefill_replicas, _times(load.level, speed)
    return ServiceFigures(
        replicas=attempt.replicas,
        nodes_at_mean=load.mean_nodes,
        nodes_at_peak=load.needed_nodes,
        concurrency_per_replica=load.sequences,
        max_concurrency_per_replica=most,
        limited_by=load.replica.limit,
        **load_figures(load, generating, request_s, _times(load.level, at_most), speed_evidence(speed)),
    )


def cost_figures(option: PlacementOption, purchase: str) -> OptionCost:
    """Compute the cost of the job and of a million tokens: exact where hours are given, else ranges like the time.

    Of a service a million tokens and a request cost what all VMs do over what they answer on average.
    """
    cost, speed = option.costs[purchase], option.speed
    hourly, evicted = cost.usd_per_hour, option.interruptions if purchase == "spot" else None
    job = exact(cost.usd_per_job, "USD") if cost.usd_per_job is not None else None
    if hourly is None or speed is None:
        return OptionCost(cost=cost, per_job=job, per_million_tokens=None)
    if job is None and speed.hours is not None:
        hours = (speed.hours.low, speed.hours.mid, speed.hours.high)
        low, mid, high = (_interrupted_cost(option, purchase, float(hourly), duration) for duration in hours)
        of_time = _of_training if evicted is None else estimate
        job = of_time(Range(low=low, mid=mid, high=high), "USD") if isfinite(high) else None
    load, answered = option.attempt.load, speed.tokens_per_s
    exactly = isinstance(option.prepared.job, TrainingJob) and answered.low == answered.high
    if load is not None:
        requests = rate_range(load.level, _times(load.level, speed)[0], peak=False)
        exactly = load.level.users is None
        answered = requests.times(load.level.output_tokens)
    return OptionCost(
        cost=cost,
        per_job=job,
        per_million_tokens=cost_of_rate(hourly, answered, exactly=exactly),
        per_request=cost_of_rate(hourly, requests.times(1e6), exactly=exactly) if load is not None else None,
        interruptions=evicted,
    )
