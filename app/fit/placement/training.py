"""A model that is trained, laid on VMs: the fewest that hold it, or that are done in time, and how long they take."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import ceil, inf
from typing import NamedTuple

from app.fit.estimator.training_memory import Training, whole_need
from app.fit.estimator.training_time import flops_per_token, gpu_hours
from app.fit.formulas.compute import MFU, MFU_MI300X, MFU_PCIE, seconds
from app.fit.formulas.memory import Split
from app.fit.formulas.optimizer import Loading, loaded_host_bytes, offloaded_host_bytes
from app.fit.formulas.quantities import Range
from app.fit.formulas.training import SHARDS_WEIGHTS, Trained, training_need
from app.fit.placement.layouts import Attempt, Cut, Limits, Speed, Way, found_ways
from app.fit.placement.machine import Machine, generation, peak

HOUR = 3600
NVLINK_TRAINERS = 8.0
"""From this compute capability on GPUs reach the share of their peak that is usual with NVLink; V100 and T4 do not."""


class _Cutting(NamedTuple):
    """A ZeRO stage, a split, and among how many GPUs states are sharded."""

    stage: int
    split: Split
    shards: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingJob:
    """A workload that is trained, made once for all sizes; `stages` has the model under each ZeRO stage to try."""

    asked: Training
    stages: Mapping[int, Trained]
    utilization: float
    cut: Cut
    kind: str
    params: float
    most_copies: int | None = None
    checkpoint_bytes: float = 0.0
    max_hours: float | None = None
    loading: Loading = "sharded"
    _needs: dict[_Cutting, Range] = field(default_factory=dict, compare=False)

    use = "training"

    @property
    def copies(self) -> int:
        """Copies that are asked for; else as many as the VMs hold."""
        return self.asked.job.data_parallel or 1

    @property
    def kinds(self) -> tuple[tuple[str, str], ...]:
        """The types that a GPU must compute with, by the field that asks for it."""
        return (("recipe", self.kind),)

    def need(self, cutting: _Cutting) -> Range:
        """What the fullest GPU needs, bytes; the same for every size."""
        known = self._needs.get(cutting)
        if known is None:
            job = self.stages[cutting.stage]
            known = whole_need(self.asked, training_need(job, cutting.split, cutting.shards))
            self._needs[cutting] = known
        return known

    def attempt(self, machine: Machine, limits: Limits) -> Attempt | None:
        """Find the best way on VMs of one kind, or the nearest miss; None where the model cannot be cut at all.

        Fewest VMs, then fewest tensor ranks, then the lowest ZeRO stage: what need not be cut is not cut.
        """
        if machine.usable_bytes is None:
            return None
        found = found_ways(self.cut, machine, limits)
        tried = (self._try(stage, way, machine, limits) for stage in self.stages for way in found)
        return min((one for one in tried if one is not None), key=lambda one: one.key, default=None)

    def _try(self, stage: int, way: Way, machine: Machine, limits: Limits) -> Attempt | None:
        """Shards only ever make a GPU and a VM need less: the fewest VMs that hold the model are found by halving.

        Where no number of them has the memory to load it, those that hold it on their GPUs.
        """
        split, budget, most = way.split, self.budget(machine), limits.nodes_of(machine)
        host = inf if machine.memory_bytes is None else machine.memory_bytes
        fixed = self.asked.job.data_parallel
        least = ceil((fixed or 1) / way.copies)
        if least * way.nodes > most:
            return None
        top = least if fixed else most // way.nodes
        least = max(least, min(top, ceil(limits.min_nodes / way.nodes)))
        fits = self._need(stage, way, top) <= budget
        loads = fits and self._host(machine, stage, split, self._copies(way, top)) <= host

        def holds(blocks: int) -> bool:
            held = self._need(stage, way, blocks) <= budget
            return held and (not loads or self._host(machine, stage, split, self._copies(way, blocks)) <= host)

        blocks = _fewest(holds, least, top) if fits else top
        if fits and fixed is None:
            blocks = min(top, max(blocks, self._in_time(way, machine)))
        nodes, need = max(limits.min_nodes, blocks * way.nodes), self._need(stage, way, blocks)
        over_pcie = split.tensor > machine.domain_gpus
        key = (1 - loads, nodes, over_pcie, split.pipeline, split.tensor, stage) if fits else (2, need)
        return Attempt(key, fits, loads, split, self._copies(way, blocks), nodes, need, budget, stage)

    def _need(self, stage: int, way: Way, blocks: int) -> float:
        return self.need(self._cutting(stage, way.split, self._copies(way, blocks))).mid

    def _cutting(self, stage: int, split: Split, copies: int) -> _Cutting:
        return _Cutting(stage, split, min(copies, self.asked.job.shard_group or copies))

    def most_need(self, attempt: Attempt) -> float:
        """What the fullest GPU may need at most, bytes."""
        return self.need(self._cutting(attempt.stage or 0, attempt.split, attempt.copies)).high

    def _copies(self, way: Way, blocks: int) -> int:
        copies = self.asked.job.data_parallel or way.copies * blocks
        return copies if self.most_copies is None else min(copies, self.most_copies)

    def _in_time(self, way: Way, machine: Machine) -> int:
        """How many times the VMs of a way there must be for the job to be done in time; 1 where nobody knows."""
        work = self.gpu_hours(machine, way.split.gpus) if self.max_hours is not None else None
        if work is None or not self.max_hours:
            return 1
        return ceil(work.mid / self.max_hours / way.split.gpus / way.copies)

    def budget(self, machine: Machine) -> float:
        """What may be used of one GPU, bytes."""
        return (machine.usable_bytes or 0.0) * self.utilization

    def gpu_hours(self, machine: Machine, gpus: int) -> Range | None:
        """Say how many GPU-hours the job takes on so many GPUs: as given or measured, else 6 N D / (peak x MFU)."""
        known = gpu_hours(self.asked)
        tokens, per_token, fastest = self.asked.job.tokens, flops_per_token(self.asked), peak(machine, self.kind)
        if known is not None or tokens is None or per_token is None or fastest is None:
            return known
        return seconds(per_token * tokens, 1, fastest, mfu(machine, gpus)).times(1 / HOUR)

    def host_bytes(self, machine: Machine, attempt: Attempt) -> float:
        """What memory a VM needs to load its part of the weights, or to keep what is offloaded; bytes."""
        return self._host(machine, attempt.stage or 0, attempt.split, attempt.copies)

    def _host(self, machine: Machine, stage: int, split: Split, copies: int) -> float:
        job = self.stages[stage]
        shards = self._cutting(stage, split, copies).shards if stage >= SHARDS_WEIGHTS else 1
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
        per_token, fastest = flops_per_token(self.asked), peak(machine, self.kind)
        work = self.gpu_hours(machine, attempt.gpus)
        hours = work.times(1 / attempt.gpus) if work is not None else None
        if hours is not None and hours.low > 0 and self.asked.job.tokens:
            return Speed(tokens_per_s=hours.times(HOUR).dividing(self.asked.job.tokens), hours=hours)
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
    old = machine.capability is not None and generation(machine) < NVLINK_TRAINERS
    return MFU_PCIE if old or together > machine.domain_gpus else MFU
