"""Training placed on VMs of one size: the fewest VMs that hold it or finish in time, and how long they take."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import ceil
from typing import NamedTuple

from app.fit.estimator.model import Model
from app.fit.estimator.training_memory import TrainingSetup, total_need
from app.fit.estimator.training_time import domain, gpu_hours, rate_on, run_overhead, with_overhead
from app.fit.formulas.interruptions import Interruptions, SpotTerms, interruptions
from app.fit.formulas.memory import Parallelism
from app.fit.formulas.optimizer import Loading, loaded_host_bytes, offloaded_host_bytes
from app.fit.formulas.quantities import Range, single_value
from app.fit.formulas.training import WEIGHT_SHARDING_STAGE, TrainedModel, activations_of, training_need
from app.fit.formulas.training_speed import USUAL_BYTES_PER_FLOP, Accelerator, TokenWork
from app.fit.placement.layouts import Attempt, Layout, PartitionLimits, SearchLimits, Speed, find_layouts
from app.fit.placement.machine import Machine, generation, peak_flops

SECONDS_PER_HOUR = 3600
MIN_CAPABILITY_USUAL_SPEED = 8.0
"""From this compute capability on, GPUs reach the usual share of their peak; V100 and T4 do not."""

SLOWDOWN_PCIE = 1.6
"""Time over PCIe, or on V100 and T4, relative to NVLink: trainings reach about 25 % of the peak there, not 40 %."""

SLOWDOWN_MI300X = 1.6
"""Time on MI300X relative to other GPUs of its peak: its best matrix product reaches 51 % of it, theirs 80 to 87 %.

Source: Bekman, Machine Learning Engineering, on the maximum achievable matmul FLOPS.
"""


class _Sharding(NamedTuple):
    """A ZeRO stage, a parallelism, and over how many replicas states are sharded."""

    stage: int
    parallelism: Parallelism
    shards: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingJob:
    """A training workload, prepared once for all sizes; `states_by_stage` has the model for each ZeRO stage to try."""

    training: TrainingSetup
    states_by_stage: Mapping[int, TrainedModel]
    utilization: float
    partition: PartitionLimits
    compute_dtype: str
    params: float
    work: TokenWork | None = None
    max_replicas: int | None = None
    checkpoint_bytes: float = 0.0
    spot: SpotTerms | None = None
    max_hours: float | None = None
    loading: Loading = "sharded"
    _needs: dict[_Sharding, Range] = field(default_factory=dict, compare=False)
    _activations: dict[Parallelism, Range] = field(default_factory=dict, compare=False)
    """They do not depend on how states are sharded."""

    workload_kind = "training"

    @property
    def model(self) -> Model:
        """The model that is trained."""
        return self.training.model

    @property
    def min_replicas(self) -> int:
        """The requested data-parallel replicas; where unset, as many as the VMs hold, and at least one."""
        return self.training.workload.data_parallel or 1

    @property
    def required_dtypes(self) -> tuple[tuple[str, str], ...]:
        """The types a GPU must compute in, each with the request field that sets it."""
        field = "recipe" if self.training.workload.precision is None else "precision"
        return ((field, self.compute_dtype),)

    @property
    def assumed(self) -> str:
        """What is assumed about the activations, in words; empty where everything is given."""
        training, workload = self.training, self.training.workload
        parts = {
            f"sequences of {training.sequence_tokens:,} tokens": workload.sequence_tokens is None,
            f"recompute={training.recompute}": workload.recompute is None,
        }
        shown = [part for part, is_assumed in parts.items() if is_assumed]
        return f"assuming {' and '.join(shown)}" if shown else ""

    def required_bytes(self, sharding: _Sharding) -> Range:
        """Return what the fullest GPU needs, bytes. It is the same for every size, so it is computed once."""
        known = self._needs.get(sharding)
        if known is None:
            job, parallelism = self.states_by_stage[sharding.stage], sharding.parallelism
            activations = self._activations.get(parallelism)
            if activations is None:
                activations = self._activations[parallelism] = activations_of(job, parallelism)
            known = total_need(self.training, training_need(job, parallelism, sharding.shards, activations))
            self._needs[sharding] = known
        return known

    def find_attempt(
        self, machine: Machine, limits: SearchLimits, compared: list[float] | None = None
    ) -> Attempt | None:
        """Find the best layout on VMs of one size, or the nearest miss; None where no partition is possible.

        What the memory of a VM is compared with is added to `compared`.

        Fewest VMs, then fewest stages and tensor ranks, then the lowest ZeRO stage: nothing is split without need.
        """
        if machine.usable_bytes is None:
            return None
        best: Attempt | None = None
        layouts = find_layouts(self.partition, machine, limits)
        for stage in self.states_by_stage:
            for layout in layouts:
                if best is not None and best.sort_key < self._best_key(stage, layout, machine, limits):
                    continue
                attempt = self._attempt(stage, layout, machine, limits, compared)
                if attempt is not None and (best is None or attempt.sort_key < best.sort_key):
                    best = attempt
        return best

    def _best_key(self, stage: int, layout: Layout, machine: Machine, limits: SearchLimits) -> tuple[float, ...]:
        """Return a sort key that no attempt of a layout is below: that of one that fits on the fewest VMs."""
        parallelism, least = layout.parallelism, ceil((self.training.workload.data_parallel or 1) / layout.replicas)
        nodes = max(limits.min_nodes, least * layout.nodes)
        return (0, nodes, parallelism.tensor > machine.domain_gpus, parallelism.pipeline, parallelism.tensor, stage)

    def _attempt(
        self, stage: int, layout: Layout, machine: Machine, limits: SearchLimits, compared: list[float] | None
    ) -> Attempt | None:
        """Find the fewest repetitions of a layout that hold the model; None where the VMs allow none.

        More shards never need more memory, so a binary search finds them. Where no number of VMs has the host memory
        to load the model, only the GPUs count.
        """
        parallelism, budget, most = layout.parallelism, self.budget_bytes(machine), limits.usable_nodes(machine)
        fixed = self.training.workload.data_parallel
        least = ceil((fixed or 1) / layout.replicas)
        if least * layout.nodes > most:
            return None
        most_units = least if fixed else most // layout.nodes
        least = max(least, min(most_units, ceil(limits.min_nodes / layout.nodes)))
        fits = self._required_mid(stage, layout, most_units) <= budget
        most_replicas = self._replicas(layout, most_units)
        loadable = fits and machine.holds(self._host_bytes(machine, stage, parallelism, most_replicas), compared)

        def holds(units: int) -> bool:
            if self._required_mid(stage, layout, units) > budget:
                return False
            replicas = self._replicas(layout, units)
            return not loadable or machine.holds(self._host_bytes(machine, stage, parallelism, replicas), compared)

        units = _fewest(holds, least, most_units) if fits else most_units
        if fits and fixed is None:
            units = _fewest(lambda count: self._is_in_time(layout, machine, count), units, most_units)
        nodes, required = max(limits.min_nodes, units * layout.nodes), self._required_mid(stage, layout, units)
        over_pcie = parallelism.tensor > machine.domain_gpus
        key = (1 - loadable, nodes, over_pcie, parallelism.pipeline, parallelism.tensor, stage)
        return Attempt(
            sort_key=key if fits else (2, required),
            fits=fits,
            loadable=loadable,
            parallelism=parallelism,
            replicas=self._replicas(layout, units),
            nodes=nodes,
            required_bytes=required,
            budget_bytes=budget,
            zero_stage=stage,
        )

    def _required_mid(self, stage: int, layout: Layout, units: int) -> float:
        return self.required_bytes(self._sharding(stage, layout.parallelism, self._replicas(layout, units))).mid

    def _sharding(self, stage: int, parallelism: Parallelism, replicas: int) -> _Sharding:
        return _Sharding(stage, parallelism, min(replicas, self.training.workload.shard_group or replicas))

    def max_required_bytes(self, attempt: Attempt) -> float:
        """Return the upper bound of what the fullest GPU needs, bytes."""
        return self.required_bytes(self._sharding(attempt.zero_stage or 0, attempt.parallelism, attempt.replicas)).high

    def _replicas(self, layout: Layout, units: int) -> int:
        replicas = self.training.workload.data_parallel or layout.replicas * units
        return replicas if self.max_replicas is None else min(replicas, self.max_replicas)

    def _is_in_time(self, layout: Layout, machine: Machine, units: int) -> bool:
        """Return whether repetitions of a layout finish the job within `max_hours`; true where the time is unknown."""
        gpus = layout.parallelism.gpus * layout.replicas * units
        work = self.gpu_hours(machine, gpus) if self.max_hours else None
        return work is None or not self.max_hours or work.mid / gpus <= self.max_hours

    def budget_bytes(self, machine: Machine) -> float:
        """Return what may be used of one GPU, bytes."""
        return (machine.usable_bytes or 0.0) * self.utilization

    def gpu_hours(self, machine: Machine, gpus: int) -> Range | None:
        """Compute the GPU-hours of the job on `gpus` GPUs: as given or measured, else by the rate and the overhead."""
        known, tokens = gpu_hours(self.training), self.training.workload.tokens
        if known is not None or tokens is None:
            return known
        rate = self.rate(machine, gpus)
        if rate is None:
            return None
        return with_overhead(rate.divide(tokens).times(1 / SECONDS_PER_HOUR), run_overhead(self.training, stated=False))

    def rate(self, machine: Machine, gpus: int) -> Range | None:
        """Return the tokens/s of one of `gpus` GPUs: as measured, else by its peaks; None where these are unknown."""
        measured = self.training.workload.tokens_per_s_per_gpu
        if measured is not None:
            return single_value(measured)
        accelerator = to_accelerator(machine, self.compute_dtype, gpus)
        if self.work is None or accelerator is None:
            return None
        return rate_on(self.training, self.work, accelerator, gpus)

    def host_bytes(self, machine: Machine, attempt: Attempt) -> float:
        """Return the VM memory needed to load its part of the weights or to hold what is offloaded, bytes."""
        return self._host_bytes(machine, attempt.zero_stage or 0, attempt.parallelism, attempt.replicas)

    def _host_bytes(self, machine: Machine, stage: int, parallelism: Parallelism, replicas: int) -> float:
        job = self.states_by_stage[stage]
        shards = self._sharding(stage, parallelism, replicas).shards if stage >= WEIGHT_SHARDING_STAGE else 1
        part = min(1.0, machine.ranks / (parallelism.gpus * shards))
        loaded = loaded_host_bytes(job.frozen_bytes or self.params * 2, self.loading, part)
        if job.offload == "none":
            return loaded
        return max(loaded, offloaded_host_bytes(job.params, machine.ranks).mid)

    @property
    def disk_bytes(self) -> float:
        """The local disk each VM needs, bytes: it stores a whole checkpoint."""
        return self.checkpoint_bytes

    def speed(self, machine: Machine, attempt: Attempt) -> Speed | None:
        """Compute how fast the model is trained; None where the peak is unknown and no measured speed is given."""
        rate, work = self.rate(machine, attempt.gpus), self.gpu_hours(machine, attempt.gpus)
        hours = work.times(1 / attempt.gpus) if work is not None else None
        measured = self.training.workload.gpu_hours is not None and hours is not None and hours.low > 0
        if measured and hours is not None and self.training.workload.tokens:
            return Speed(tokens_per_s=hours.times(SECONDS_PER_HOUR).divide(self.training.workload.tokens), hours=hours)
        if rate is None:
            return None
        accelerator = to_accelerator(machine, self.compute_dtype, attempt.gpus)
        outside = domain(self.training, accelerator, attempt.gpus).outside if accelerator is not None else ()
        return Speed(tokens_per_s=rate.times(attempt.gpus), hours=hours, departures=outside)

    def interruptions(self, nodes: int, hours: float | None) -> Interruptions | None:
        """Return what evictions of spot VMs do to the job; None where a share was given instead."""
        return interruptions(self.spot, self.checkpoint_bytes, nodes, hours) if self.spot is not None else None


def _fewest(holds: Callable[[int], bool], least: int, top: int) -> int:
    """Return the least number from `least` to `top` that holds, by binary search: all above it hold, too."""
    low, high = least, top
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return high


def to_accelerator(machine: Machine, dtype: str, gpus: int) -> Accelerator | None:
    """Return what counts for the speed of training on VMs of one size; None where a peak is unknown."""
    peak, peak_16_bits = peak_flops(machine, dtype), peak_flops(machine, "bf16")
    if peak is None:
        return None
    peak_16_bits = peak if peak_16_bits is None else peak_16_bits
    return Accelerator(
        matrix_peak=peak,
        peak_16_bits=peak_16_bits,
        bandwidth=machine.bandwidth or peak_16_bits * USUAL_BYTES_PER_FLOP,
        domain_gpus=machine.domain_gpus if machine.domain_vms > 1 else max(1, machine.ranks),
        four_bits=dtype == "fp4",
        capabilities=(machine.capability,) if machine.capability is not None else (),
        known=machine.capability is not None,
        slowdown=slowdown(machine, gpus),
    )


def slowdown(machine: Machine, gpus: int) -> float:
    """Return the time relative to what the peaks say: more on MI300X, over PCIe, and before Ampere."""
    if machine.capability == "gfx942":
        return SLOWDOWN_MI300X
    old = machine.capability is not None and generation(machine) < MIN_CAPABILITY_USUAL_SPEED
    return SLOWDOWN_PCIE if old or min(gpus, machine.ranks) > machine.domain_gpus else 1.0
