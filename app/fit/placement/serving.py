"""Serving placed on VMs of one size: the fewest VMs that hold all sequences, and how fast they generate."""

from dataclasses import dataclass, field, replace
from math import ceil, floor, isfinite
from typing import NamedTuple

from app.fit.estimator.model import Model
from app.fit.estimator.parallelism import Deployment
from app.fit.estimator.serving import ServingSetup
from app.fit.estimator.serving_speed import serving_speed
from app.fit.estimator.workload import Gpus
from app.fit.formulas.inference import SERVING_RUNTIME_SHARE, ServedModel, ServingLoad, inference_need, serving_overhead
from app.fit.formulas.memory import Parallelism, kv_bytes_per_sequence
from app.fit.formulas.quantities import Range
from app.fit.placement.layouts import Attempt, Layout, PartitionLimits, SearchLimits, Speed, find_layouts
from app.fit.placement.machine import Machine, compute_dtype, compute_dtype_on, is_weight_only, peak_flops


class MemoryShares(NamedTuple):
    """Bytes on the fullest GPU: everything but the KV cache, its upper bound, and the KV cache of one sequence."""

    fixed_bytes: float
    max_fixed_bytes: float
    sequence_bytes: float


class _SearchBounds(NamedTuple):
    """What bounds every layout on VMs of one size: bytes of a GPU, number of VMs, GPUs in an NVLink domain."""

    budget_bytes: float
    min_nodes: int
    max_nodes: int
    domain_gpus: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingJob:
    """A serving workload, prepared once for all sizes; `serving_on` sets the GPUs of an option in `serving`."""

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
    """Replicas that are requested; more are added as concurrency needs them."""

    @property
    def model(self) -> Model:
        """The model that is served."""
        return self.serving.model

    @property
    def required_dtypes(self) -> tuple[tuple[str, str], ...]:
        """The types a GPU must compute in, each with the request field that sets it."""
        weights, cache = compute_dtype(self.dtype), compute_dtype(self.kv_dtype)
        # A KV cache in 16 bits needs nothing that the weights do not; narrower ones need their own kernels.
        return (("dtype", weights), ("kv_dtype", cache)) if cache in {"fp8", "fp4"} else (("dtype", weights),)

    def is_weight_only(self, machine: Machine) -> bool:
        """Whether the weights are dequantized to 16 bits because the GPU does not compute in their type."""
        return is_weight_only(machine, compute_dtype(self.dtype))

    def memory_shares(self, parallelism: Parallelism, usable_bytes: float) -> MemoryShares:
        """Return what the fullest GPU holds. All but the runtime's share of its memory is computed once."""
        fixed, most, sequence = self._shares_of_any_gpu(parallelism)
        share = SERVING_RUNTIME_SHARE
        return MemoryShares(fixed + share.mid * usable_bytes, most + share.high * usable_bytes, sequence)

    def _shares_of_any_gpu(self, parallelism: Parallelism) -> MemoryShares:
        known = self._shares.get(parallelism)
        if known is None:
            overhead = serving_overhead(parallelism, utilization=self.utilization)
            required = inference_need(self.served, replace(self.load, sequences=0), parallelism, overhead)
            share = required.weights / self.weights.mid if self.weights.mid else 0.0
            most = required.total.high + self.weights.spread.high * share
            known = MemoryShares(required.total.mid, most, self._sequence(parallelism))
            self._shares[parallelism] = known
        return known

    def _sequence(self, parallelism: Parallelism) -> float:
        if self.sequence_bytes is not None:
            return self.sequence_bytes / parallelism.gpus
        cache = self.served.cache
        return kv_bytes_per_sequence(cache, self.load.context_tokens, parallelism) if cache else 0.0

    def find_attempt(self, machine: Machine, limits: SearchLimits) -> Attempt | None:
        """Find the best layout on VMs of one size, or the nearest miss; None where no partition is possible.

        Fewest VMs, then fewest stages. Layers are split over as many GPUs as share NVLink, since each then reads less;
        over PCIe only where they must be, and then over as few as possible.
        """
        if machine.usable_bytes is None:
            return None
        best: Attempt | None = None
        bounds = _SearchBounds(
            self.budget_bytes(machine), limits.min_nodes, limits.usable_nodes(machine), machine.domain_gpus
        )
        for layout in find_layouts(self.partition, machine, limits):
            if best is not None and best.fits and best.loadable and _cannot_beat(layout, best, limits.min_nodes):
                continue
            attempt = self._attempt(layout, bounds, self._is_loadable(machine, layout.parallelism))
            best = attempt if best is None or attempt.sort_key < best.sort_key else best
        return best

    def _is_loadable(self, machine: Machine, parallelism: Parallelism) -> bool:
        """Whether a VM has the memory to load its part of the weights; assumed where its memory is unknown."""
        return machine.memory_bytes is None or self._host_bytes(machine, parallelism) <= machine.memory_bytes

    def _attempt(self, layout: Layout, bounds: _SearchBounds, loadable: bool) -> Attempt:
        parallelism, (budget, least, most, domain) = layout.parallelism, bounds
        fixed, _, sequence = self.memory_shares(parallelism, self._usable_bytes(budget))
        per_replica = self._sequences_per_replica(budget - fixed, sequence)
        units = ceil(ceil(self.concurrency / per_replica) / layout.replicas) if per_replica else 0
        fits = 0 < units * layout.nodes <= most
        nodes = max(least, units * layout.nodes) if fits else most
        # All VMs share the sequences, so each GPU may hold fewer than it could; a replica without a sequence is idle.
        replicas = min(nodes // layout.nodes * layout.replicas, self.concurrency)
        required = fixed + ceil(self.concurrency / replicas) * sequence
        if not fits:
            return Attempt((2, required), fits, loadable, parallelism, replicas, nodes, required, budget)
        tensor = parallelism.tensor
        over_pcie = tensor > domain
        key = (1 - loadable, nodes, parallelism.pipeline, over_pcie, tensor if over_pcie else -tensor)
        return Attempt(key, fits, loadable, parallelism, replicas, nodes, required, budget)

    def _sequences_per_replica(self, free: float, sequence: float) -> int:
        """Return how many of the sequences one replica holds in the free bytes of its fullest GPU."""
        if free < 0:
            return 0
        return min(self.concurrency, floor(free / sequence)) if sequence else self.concurrency

    def max_required_bytes(self, attempt: Attempt) -> float:
        """Return the upper bound of what the fullest GPU needs, bytes."""
        fixed, at_most, _ = self.memory_shares(attempt.parallelism, self._usable_bytes(attempt.budget_bytes))
        return attempt.required_bytes - fixed + at_most

    def budget_bytes(self, machine: Machine) -> float:
        """Return what may be used of one GPU, bytes."""
        return (machine.usable_bytes or 0.0) * self.utilization

    def _usable_bytes(self, budget: float) -> float:
        """Return the memory of a GPU by its budget; 0 where it is not known and not limited."""
        return budget / self.utilization if isfinite(budget) else 0.0

    def max_sequences(self, machine: Machine, limits: SearchLimits) -> int:
        """Return how many sequences all allowed VMs hold in the layout that holds most."""
        most, nodes = 0, limits.usable_nodes(machine)
        for layout in find_layouts(self.partition, machine, limits):
            fixed, _, sequence = self.memory_shares(layout.parallelism, machine.usable_bytes or 0.0)
            free = self.budget_bytes(machine) - fixed
            if free >= 0 and sequence:
                most = max(most, nodes // layout.nodes * layout.replicas * floor(free / sequence))
        return most

    def host_bytes(self, machine: Machine, attempt: Attempt) -> float:
        """Return the VM memory needed to load its part of the weights, bytes."""
        return self._host_bytes(machine, attempt.parallelism)

    def _host_bytes(self, machine: Machine, parallelism: Parallelism) -> float:
        return self.weights.mid * min(1.0, machine.ranks / parallelism.gpus)

    @property
    def disk_bytes(self) -> float:
        """The local disk each VM needs, bytes: it stores all weights."""
        return self.weights.mid

    def speed(self, machine: Machine, attempt: Attempt) -> Speed | None:
        """Compute how fast all replicas generate; None where the bandwidth or the bytes read in a step are unknown."""
        speed = serving_speed(self.serving_on(machine, attempt), self.weights, self.served.cache)
        if speed is None or speed.least_s <= 0 or speed.expected_s.low <= 0:
            return None
        return Speed(
            tokens_per_s=speed.expected_s.divide(speed.tokens_per_step),
            min_step_s=speed.least_s,
            step_s=speed.expected_s,
            max_tokens_per_s=speed.tokens_per_step / speed.least_s,
            first_token_s=speed.first_token_s,
            departures=speed.departures,
        )

    def serving_on(self, machine: Machine, attempt: Attempt) -> ServingSetup:
        """Return the workload on the GPUs of an option, as the estimator takes it."""
        tflops, narrow = peak_flops(machine, compute_dtype_on(machine, self.dtype)), peak_flops(machine, "fp16")
        parallelism = attempt.parallelism
        gpus = Gpus(
            count=attempt.gpus,
            usable_gib=machine.usable_bytes / 2**30 if machine.usable_bytes is not None else None,
            bandwidth_gb_per_s=machine.bandwidth / 1e9 if machine.bandwidth is not None else None,
            peak_tflops=tflops / 1e12 if tflops is not None else None,
            peak_16_bits_tflops=narrow / 1e12 if narrow is not None else None,
            link="nvlink" if parallelism.tensor <= machine.domain_gpus else "pcie",
            link_gb_per_s=machine.link_gb_per_s if parallelism.tensor <= machine.domain_gpus else None,
            network=machine.network if parallelism.gpus > machine.joined_gpus else None,
        )
        return replace(self.serving, gpus=gpus, deployment=Deployment(parallelism=parallelism, copies=attempt.replicas))


def _cannot_beat(layout: Layout, best: Attempt, least: int) -> bool:
    """Whether a layout cannot beat one that fits: it takes more VMs, or more stages where no fewer VMs are allowed."""
    deeper = layout.parallelism.pipeline > best.parallelism.pipeline
    return layout.nodes > best.nodes or (deeper and best.nodes == least)
