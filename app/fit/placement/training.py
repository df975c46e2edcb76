"""A model that is trained, laid on VMs: the fewest that hold it, or that are done in time, and how long they take."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import ceil, inf
from typing import NamedTuple

from app.fit.estimator.model import Model
from app.fit.estimator.training_memory import TrainingSetup, total_need
from app.fit.estimator.training_time import flops_per_token, gpu_hours
from app.fit.formulas.compute import MFU, MFU_MI300X, MFU_PCIE, seconds
from app.fit.formulas.memory import Parallelism
from app.fit.formulas.optimizer import Loading, loaded_host_bytes, offloaded_host_bytes
from app.fit.formulas.quantities import Range
from app.fit.formulas.training import WEIGHT_SHARDING_STAGE, TrainedModel, training_need
from app.fit.placement.layouts import Attempt, Layout, PartitionLimits, SearchLimits, Speed, find_layouts
from app.fit.placement.machine import Machine, generation, peak_flops

HOUR = 3600
MIN_CAPABILITY_NVLINK_MFU = 8.0
"""From this compute capability on GPUs reach the share of their peak that is usual with NVLink; V100 and T4 do not."""


class _Sharding(NamedTuple):
    """A ZeRO stage, a split, and among how many GPUs states are sharded."""

    stage: int
    parallelism: Parallelism
    shards: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingJob:
    """A workload that is trained, made once for all sizes; `stages` has the model under each ZeRO stage to try."""

    training: TrainingSetup
    states_by_stage: Mapping[int, TrainedModel]
    utilization: float
    partition: PartitionLimits
    compute_dtype: str
    params: float
    max_replicas: int | None = None
    checkpoint_bytes: float = 0.0
    max_hours: float | None = None
    loading: Loading = "sharded"
    _needs: dict[_Sharding, Range] = field(default_factory=dict, compare=False)

    workload_kind = "training"

    @property
    def model(self) -> Model:
        """The model that is trained."""
        return self.training.model

    @property
    def min_replicas(self) -> int:
        """Copies that are asked for; else as many as the VMs hold."""
        return self.training.workload.data_parallel or 1

    @property
    def required_dtypes(self) -> tuple[tuple[str, str], ...]:
        """The types that a GPU must compute with, by the field that asks for it."""
        return (("recipe", self.compute_dtype),)

    def required_bytes(self, cutting: _Sharding) -> Range:
        """What the fullest GPU needs, bytes; the same for every size."""
        known = self._needs.get(cutting)
        if known is None:
            job = self.states_by_stage[cutting.stage]
            known = total_need(self.training, training_need(job, cutting.parallelism, cutting.shards))
            self._needs[cutting] = known
        return known

    def find_attempt(self, machine: Machine, limits: SearchLimits) -> Attempt | None:
        """Find the best way on VMs of one kind, or the nearest miss; None where the model cannot be cut at all.

        Fewest VMs, then fewest tensor ranks, then the lowest ZeRO stage: what need not be cut is not cut.
        """
        if machine.usable_bytes is None:
            return None
        found = find_layouts(self.partition, machine, limits)
        tried = (self._attempt(stage, way, machine, limits) for stage in self.states_by_stage for way in found)
        return min((one for one in tried if one is not None), key=lambda one: one.sort_key, default=None)

    def _attempt(self, stage: int, way: Layout, machine: Machine, limits: SearchLimits) -> Attempt | None:
        """Shards only ever make a GPU and a VM need less: the fewest VMs that hold the model are found by halving.

        Where no number of them has the memory to load it, those that hold it on their GPUs.
        """
        split, budget, most = way.parallelism, self.budget_bytes(machine), limits.usable_nodes(machine)
        host = inf if machine.memory_bytes is None else machine.memory_bytes
        fixed = self.training.workload.data_parallel
        least = ceil((fixed or 1) / way.replicas)
        if least * way.nodes > most:
            return None
        top = least if fixed else most // way.nodes
        least = max(least, min(top, ceil(limits.min_nodes / way.nodes)))
        fits = self._required_mid(stage, way, top) <= budget
        loads = fits and self._host_bytes(machine, stage, split, self._replicas(way, top)) <= host

        def holds(blocks: int) -> bool:
            held = self._required_mid(stage, way, blocks) <= budget
            return held and (not loads or self._host_bytes(machine, stage, split, self._replicas(way, blocks)) <= host)

        blocks = _fewest(holds, least, top) if fits else top
        if fits and fixed is None:
            blocks = min(top, max(blocks, self._groups_in_time(way, machine)))
        nodes, need = max(limits.min_nodes, blocks * way.nodes), self._required_mid(stage, way, blocks)
        over_pcie = split.tensor > machine.domain_gpus
        key = (1 - loads, nodes, over_pcie, split.pipeline, split.tensor, stage) if fits else (2, need)
        return Attempt(key, fits, loads, split, self._replicas(way, blocks), nodes, need, budget, stage)

    def _required_mid(self, stage: int, way: Layout, blocks: int) -> float:
        return self.required_bytes(self._sharding(stage, way.parallelism, self._replicas(way, blocks))).mid

    def _sharding(self, stage: int, split: Parallelism, copies: int) -> _Sharding:
        return _Sharding(stage, split, min(copies, self.training.workload.shard_group or copies))

    def max_required_bytes(self, attempt: Attempt) -> float:
        """What the fullest GPU may need at most, bytes."""
        return self.required_bytes(self._sharding(attempt.zero_stage or 0, attempt.parallelism, attempt.replicas)).high

    def _replicas(self, way: Layout, blocks: int) -> int:
        copies = self.training.workload.data_parallel or way.replicas * blocks
        return copies if self.max_replicas is None else min(copies, self.max_replicas)

    def _groups_in_time(self, way: Layout, machine: Machine) -> int:
        """How many times the VMs of a way there must be for the job to be done in time; 1 where nobody knows."""
        work = self.gpu_hours(machine, way.parallelism.gpus) if self.max_hours is not None else None
        if work is None or not self.max_hours:
            return 1
        return ceil(work.mid / self.max_hours / way.parallelism.gpus / way.replicas)

    def budget_bytes(self, machine: Machine) -> float:
        """What may be used of one GPU, bytes."""
        return (machine.usable_bytes or 0.0) * self.utilization

    def gpu_hours(self, machine: Machine, gpus: int) -> Range | None:
        """Say how many GPU-hours the job takes on so many GPUs: as given or measured, else 6 N D / (peak x MFU)."""
        known = gpu_hours(self.training)
        tokens, per_token, fastest = (
            self.training.workload.tokens,
            flops_per_token(self.training),
            peak_flops(machine, self.compute_dtype),
        )
        if known is not None or tokens is None or per_token is None or fastest is None:
            return known
        return seconds(per_token * tokens, 1, fastest, mfu(machine, gpus)).times(1 / HOUR)

    def host_bytes(self, machine: Machine, attempt: Attempt) -> float:
        """What memory a VM needs to load its part of the weights, or to keep what is offloaded; bytes."""
        return self._host_bytes(machine, attempt.zero_stage or 0, attempt.parallelism, attempt.replicas)

    def _host_bytes(self, machine: Machine, stage: int, split: Parallelism, copies: int) -> float:
        job = self.states_by_stage[stage]
        shards = self._sharding(stage, split, copies).shards if stage >= WEIGHT_SHARDING_STAGE else 1
        part = min(1.0, machine.ranks / (split.gpus * shards))
        loaded = loaded_host_bytes(job.frozen_bytes or self.params * 2, self.loading, part)
        if job.offload == "none":
            return loaded
        return max(loaded, offloaded_host_bytes(job.params, machine.ranks).mid)

    @property
    def disk_bytes(self) -> float:
        """What disk a VM needs for a checkpoint, which lies there whole, bytes."""
        return self.checkpoint_bytes

    def speed(self, machine: Machine, attempt: Attempt) -> Speed | None:
        """Say how fast the model is trained; None where the peak is unknown and nothing was measured."""
        per_token, fastest = flops_per_token(self.training), peak_flops(machine, self.compute_dtype)
        work = self.gpu_hours(machine, attempt.gpus)
        hours = work.times(1 / attempt.gpus) if work is not None else None
        if hours is not None and hours.low > 0 and self.training.workload.tokens:
            return Speed(tokens_per_s=hours.times(HOUR).divide(self.training.workload.tokens), hours=hours)
        if per_token is None or fastest is None:
            return None
        return Speed(tokens_per_s=mfu(machine, attempt.gpus).times(fastest * attempt.gpus / per_token), hours=hours)


def _fewest(holds: Callable[[int], bool], least: int, top: int) -> int:
    """The least number from `least` to `top` that holds, where each above one that holds does, too."""
    low, high = least, top
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return high


def mfu(machine: Machine, gpus: int) -> Range:
    """Choose the share of the dense peak that training reaches: less on MI300X, over PCIe, and before Ampere."""
    if machine.capability == "gfx942":
        return MFU_MI300X
    together = min(gpus, machine.ranks)
    old = machine.capability is not None and generation(machine) < MIN_CAPABILITY_NVLINK_MFU
    return MFU_PCIE if old or together > machine.domain_gpus else MFU
