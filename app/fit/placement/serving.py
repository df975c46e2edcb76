"""A model that is served, laid on VMs: the fewest that hold all sequences, and how fast they generate."""

from dataclasses import dataclass, field, replace
from math import ceil, floor
from typing import NamedTuple

from app.fit.estimator.model import Model
from app.fit.estimator.parallelism import Deployment
from app.fit.estimator.serving import ServingSetup, decode_speed
from app.fit.estimator.workload import Gpus
from app.fit.formulas.inference import ServedModel, ServingLoad, inference_need
from app.fit.formulas.memory import Parallelism, kv_bytes_per_sequence
from app.fit.formulas.quantities import Range
from app.fit.placement.layouts import Attempt, Layout, PartitionLimits, SearchLimits, Speed, find_layouts
from app.fit.placement.machine import Machine, compute_dtype, compute_dtype_on, is_weight_only, peak_flops


class MemoryShares(NamedTuple):
    """What a split puts on the fullest GPU, bytes: all but the cache, the same at most, and the cache of a sequence."""

    fixed_bytes: float
    max_fixed_bytes: float
    sequence_bytes: float


class _SearchBounds(NamedTuple):
    """What bounds every way on one kind of VM: bytes of a GPU, how many VMs, GPUs that share NVLink."""

    budget_bytes: float
    min_nodes: int
    max_nodes: int
    domain_gpus: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingJob:
    """A workload that is served, made once for all sizes; `asked` has the model, and gets the GPUs of each option."""

    serving: ServingSetup
    weights: Range
    served: ServedModel
    load: ServingLoad
    sequence_bytes: float | None
    concurrency: int
    utilization: float
    partition: PartitionLimits
    dtype: str | None
    kv_dtype: str | None
    _shares: dict[Parallelism, MemoryShares] = field(default_factory=dict, compare=False)

    workload_kind = "inference"
    min_replicas = 1
    """Copies that are asked for; more are made as they are needed."""

    @property
    def model(self) -> Model:
        """The model that is served."""
        return self.serving.model

    @property
    def required_dtypes(self) -> tuple[tuple[str, str], ...]:
        """The types that a GPU must compute with, by the field that asks for it."""
        kept = compute_dtype(self.kv_dtype)
        own = ("dtype", compute_dtype(self.dtype))
        return (own, ("kv_dtype", kept)) if kept in {"fp8", "fp4"} else (own,)

    def is_weight_only(self, machine: Machine) -> bool:
        """Whether the weights are computed in 16 bits because the GPU does not compute in their type."""
        return is_weight_only(machine, compute_dtype(self.dtype))

    def memory_shares(self, split: Parallelism) -> MemoryShares:
        """What a split puts on the fullest GPU; the same for every size."""
        known = self._shares.get(split)
        if known is None:
            need = inference_need(self.served, replace(self.load, sequences=0), split)
            share = need.weights / self.weights.mid if self.weights.mid else 0.0
            most = need.total.high + self.weights.spread.high * share
            known = MemoryShares(need.total.mid, most, self._sequence(split))
            self._shares[split] = known
        return known

    def _sequence(self, split: Parallelism) -> float:
        if self.sequence_bytes is not None:
            return self.sequence_bytes / split.gpus
        cache = self.served.cache
        return kv_bytes_per_sequence(cache, self.load.context_tokens, split) if cache else 0.0

    def find_attempt(self, machine: Machine, limits: SearchLimits) -> Attempt | None:
        """Find the best way on VMs of one kind, or the nearest miss; None where the model cannot be cut at all.

        Fewest VMs, then fewest stages; layers are cut over as many GPUs as NVLink joins, since each then reads less;
        over PCIe only where they must be, and over as few as can be.
        """
        if machine.usable_bytes is None:
            return None
        best: Attempt | None = None
        within = _SearchBounds(
            self.budget_bytes(machine), limits.min_nodes, limits.usable_nodes(machine), machine.domain_gpus
        )
        for way in find_layouts(self.partition, machine, limits):
            if best is not None and best.fits and best.loadable and _cannot_beat(way, best, limits.min_nodes):
                continue
            tried = self._attempt(way, within, self._is_loadable(machine, way.parallelism))
            best = tried if best is None or tried.sort_key < best.sort_key else best
        return best

    def _is_loadable(self, machine: Machine, split: Parallelism) -> bool:
        """Whether a VM has the memory to load its part of the weights; one of unknown memory is taken to."""
        return machine.memory_bytes is None or self._host_bytes(machine, split) <= machine.memory_bytes

    def _attempt(self, way: Layout, within: "_SearchBounds", loads: bool) -> Attempt:
        split, (budget, least, most, domain) = way.parallelism, within
        beside, _, sequence = self.memory_shares(split)
        held = self._sequences_per_replica(budget - beside, sequence)
        blocks = ceil(ceil(self.concurrency / held) / way.replicas) if held else 0
        fits = 0 < blocks * way.nodes <= most
        nodes = max(least, blocks * way.nodes) if fits else most
        copies = min(nodes // way.nodes * way.replicas, self.concurrency)
        need = beside + ceil(self.concurrency / copies) * sequence
        if not fits:
            return Attempt((2, need), fits, loads, split, copies, nodes, need, budget)
        over_pcie = split.tensor > domain
        key = (1 - loads, nodes, split.pipeline, over_pcie, split.tensor if over_pcie else -split.tensor)
        return Attempt(key, fits, loads, split, copies, nodes, need, budget)

    def _sequences_per_replica(self, room: float, sequence: float) -> int:
        """How many of the sequences one copy holds."""
        if room < 0:
            return 0
        return min(self.concurrency, floor(room / sequence)) if sequence else self.concurrency

    def max_required_bytes(self, attempt: Attempt) -> float:
        """What the fullest GPU may need at most, bytes."""
        beside, at_most, _ = self.memory_shares(attempt.parallelism)
        return attempt.required_bytes - beside + at_most

    def budget_bytes(self, machine: Machine) -> float:
        """What may be used of one GPU, bytes."""
        return (machine.usable_bytes or 0.0) * self.utilization

    def max_sequences(self, machine: Machine, limits: SearchLimits) -> int:
        """Say how many sequences all VMs that are allowed hold, cut in the way that holds most."""
        most, nodes = 0, limits.usable_nodes(machine)
        for way in find_layouts(self.partition, machine, limits):
            beside, _, sequence = self.memory_shares(way.parallelism)
            room = self.budget_bytes(machine) - beside
            if room >= 0 and sequence:
                most = max(most, nodes // way.nodes * way.replicas * floor(room / sequence))
        return most

    def host_bytes(self, machine: Machine, attempt: Attempt) -> float:
        """What memory a VM needs to load its part of the weights, bytes."""
        return self._host_bytes(machine, attempt.parallelism)

    def _host_bytes(self, machine: Machine, split: Parallelism) -> float:
        return self.weights.mid * min(1.0, machine.ranks / split.gpus)

    @property
    def disk_bytes(self) -> float:
        """What disk a VM needs for the weights, which lie there whole, bytes."""
        return self.weights.mid

    def speed(self, machine: Machine, attempt: Attempt) -> Speed | None:
        """Say how fast all copies generate; None where the bandwidth is unknown, or what a step reads."""
        pace = decode_speed(self.serving_on(machine, attempt), self.weights, self.served.cache)
        if pace is None or pace.least_s <= 0 or pace.expected_s.low <= 0:
            return None
        return Speed(
            tokens_per_s=pace.expected_s.divide(pace.tokens_per_step),
            min_step_s=pace.least_s,
            step_s=pace.expected_s,
            max_tokens_per_s=pace.tokens_per_step / pace.least_s,
        )

    def serving_on(self, machine: Machine, attempt: Attempt) -> ServingSetup:
        """The workload on the GPUs of an option, as the breakdown takes it."""
        tflops = peak_flops(machine, compute_dtype_on(machine, self.dtype))
        gpus = Gpus(
            count=attempt.gpus,
            usable_gib=machine.usable_bytes / 2**30 if machine.usable_bytes is not None else None,
            bandwidth_gb_per_s=machine.bandwidth / 1e9 if machine.bandwidth is not None else None,
            peak_tflops=tflops / 1e12 if tflops is not None else None,
        )
        return replace(
            self.serving, gpus=gpus, deployment=Deployment(parallelism=attempt.parallelism, copies=attempt.replicas)
        )


def _cannot_beat(way: Layout, best: Attempt, least: int) -> bool:
    """Whether a way cannot beat one that fits: it takes more VMs, or as many as there must be, with more stages."""
    deeper = way.parallelism.pipeline > best.parallelism.pipeline
    return way.nodes > best.nodes or (deeper and best.nodes == least)
