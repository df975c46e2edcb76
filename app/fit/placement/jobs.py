"""Serving and training placed on VMs of one size: the fewest VMs that do it, and how fast they are."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import ceil, floor, inf, isfinite
from typing import NamedTuple

from app.fit.estimator.model import Model
from app.fit.estimator.service_level import (
    MAX_SEQUENCES,
    CopySpeed,
    ReplicaLimit,
    ServiceLoad,
    at_peak,
    copy_speed,
    fewest,
    find_replica_limit,
    fleet_for,
    share_of_target,
)
from app.fit.estimator.serving import ServingSetup
from app.fit.estimator.serving_speed import TIMED_KINDS, ServingSpeed, Speed, speed_of_kind
from app.fit.estimator.training_memory import TrainingSetup, has_most_adapters, total_need
from app.fit.estimator.training_time import RATE_FAMILY, SECONDS_PER_HOUR, domain, gpu_hours, rate_of, run_overhead
from app.fit.estimator.workload import Deployment, Gpus, ServiceLevel
from app.fit.formulas.compute import network_hop
from app.fit.formulas.memory import (
    Parallelism,
    ServedModel,
    ServingLoad,
    cache_of_sequence,
    inference_need,
    overhead_by_memory,
    serving_overhead,
)
from app.fit.formulas.optimizer import Loading, loaded_host_bytes, offloaded_host_bytes
from app.fit.formulas.quantities import Range, single_value
from app.fit.formulas.training_memory import WEIGHT_SHARDING_STAGE, TrainedModel, activations_of, training_need
from app.fit.formulas.training_speed import (
    USUAL_BYTES_PER_FLOP,
    Accelerator,
    SpotTerms,
    TokenWork,
    seconds_per_token,
)
from app.fit.placement.layouts import (
    Attempt,
    Layout,
    PartitionLimits,
    SearchLimits,
    find_group_layouts,
    find_layouts,
)
from app.fit.placement.machine import KERNEL_CAPABILITY, Machine, compute_dtype, generation, is_weight_only, peak_flops

MemoryShares = tuple[float, float, float]
"""Bytes on the fullest GPU: everything but the KV cache, its upper bound, and the KV cache of one sequence."""
Room = tuple[Parallelism, int, float]
"""What VMs leave to sequences in one layout: how many groups of GPUs hold some, and the bytes that each GPU has."""


class _SearchBounds(NamedTuple):
    """What bounds every layout on VMs of one size: bytes of a GPU, the engine's by its memory, number of VMs, the VM.

    What its memory is compared with is added to `compared`.
    """

    budget_bytes: float
    by_memory_bytes: float
    min_nodes: int
    max_nodes: int
    machine: Machine
    compared: list[float] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingJob:
    """A serving workload, prepared once for all sizes; `serving_on` sets the GPUs of an option in `serving`.

    `assumed` says in words which context and which draft are assumed, if any are.
    """

    serving: ServingSetup
    weights: Range
    served: ServedModel
    load: ServingLoad
    concurrency: int
    utilization: float
    partition: PartitionLimits
    dtype: str | None
    kv_dtype: str | None
    level: ServiceLevel | None = None
    assumed: str = ""
    _shares: dict[Parallelism, MemoryShares] = field(default_factory=dict, compare=False)
    _copies: dict[tuple[Gpus, Parallelism], CopySpeed] = field(default_factory=dict, compare=False)
    _limits: dict[tuple[Gpus, Parallelism, int], ReplicaLimit] = field(default_factory=dict, compare=False)

    workload_kind = "inference"
    min_replicas = 1
    """Replicas that are requested; more are added as concurrency needs them."""

    def sharing(self, other: "ServingJob") -> "ServingJob":
        """Return this job with what is computed for another one that serves the same requests by the same model."""
        return replace(self, _shares=other._shares, _copies=other._copies)  # noqa: SLF001  # of its own class

    def with_level(self, level: ServiceLevel, *, same_targets: bool) -> "ServingJob":
        """Return this job at another load level of the same requests, keeping what was computed."""
        return replace(self, level=level, _limits=self._limits if same_targets else {})

    @property
    def model(self) -> Model:
        """The model that is served."""
        return self.serving.model

    @property
    def required_dtypes(self) -> tuple[tuple[str, str], ...]:
        """The types a GPU must compute in, each with the request field that sets it."""
        weights = self.dtype if self.dtype in KERNEL_CAPABILITY else compute_dtype(self.dtype)
        cache = compute_dtype(self.kv_dtype)
        # A KV cache in 16 bits needs nothing that the weights do not; narrower ones need their own kernels.
        return (("dtype", weights), ("kv_dtype", cache)) if cache in {"fp8", "fp4"} else (("dtype", weights),)

    def is_weight_only(self, machine: Machine) -> bool:
        """Whether the weights are dequantized to 16 bits because the GPU does not compute in their type."""
        return is_weight_only(machine, compute_dtype(self.dtype))

    def memory_shares(self, parallelism: Parallelism, usable_bytes: float) -> MemoryShares:
        """Return what the fullest GPU holds. Whatever does not depend on its memory is computed once."""
        fixed, most, sequence = self._shares_of_any_gpu(parallelism)
        by_memory = overhead_by_memory(usable_bytes, self.utilization)
        return fixed + by_memory.mid, most + by_memory.high, sequence

    def _shares_of_any_gpu(self, parallelism: Parallelism) -> MemoryShares:
        if (shares := self._shares.get(parallelism)) is None:
            overhead = serving_overhead(parallelism, utilization=self.utilization)
            required = inference_need(self.served, replace(self.load, sequences=0), parallelism, overhead)
            share = required.weights / self.weights.mid if self.weights.mid else 0.0
            most = required.total.high + self.weights.spread.high * share
            shares = required.total.mid, most, self._sequence(parallelism, self.load.context_tokens)
            self._shares[parallelism] = shares
        return shares

    def _sequence(self, parallelism: Parallelism, context_tokens: int) -> float:
        of_pass = self.served.pass_bytes.mid / parallelism.group_gpus
        return of_pass + cache_of_sequence(self.served, context_tokens, parallelism)

    def find_attempt(
        self, machine: Machine, limits: SearchLimits, compared: list[float] | None = None
    ) -> Attempt | None:
        """Find the best layout on VMs of one size, or the nearest miss; None where no partition is possible.

        What the memory of a VM is compared with is added to `compared`.

        Fewest VMs, then fewest stages. Layers are split over as many GPUs as share NVLink, since each then reads less;
        over PCIe only where they must be, and then over as few as possible. Experts are distributed where ranks cannot
        cut them, and attention is data-parallel where that takes fewer VMs. Of a service it has the load of each
        replica at the peak.
        """
        if machine.usable_bytes is None or self.lacks_speed(machine):
            return None
        budget, most = self.budget_bytes(machine), limits.usable_nodes(machine)
        by_memory = overhead_by_memory(self._usable_bytes(budget), self.utilization).mid
        bounds = _SearchBounds(budget, by_memory, limits.min_nodes, most, machine, compared)
        best = self._best_of(self._layouts(machine, limits, budget), bounds, None)
        grouped = self._best_of(find_group_layouts(self.partition, machine, limits), bounds, best)
        if grouped is not None and (best is None or self._beats(machine, grouped, best)):
            best = grouped
        if best is None or best.load is None or not best.fits:
            return best
        fixed, _, sequence = self.memory_shares(best.parallelism, self._usable_bytes(budget))
        replicas, load = at_peak(best.load, best.replicas)
        required = fixed + ceil(load.sequences / best.parallelism.data) * sequence
        return best._replace(replicas=replicas, required_bytes=required, load=load)

    def _best_of(self, layouts: Iterable[Layout], bounds: _SearchBounds, earlier: Attempt | None) -> Attempt | None:
        """Return the best attempt of layouts, leaving out those that cannot beat the best or a known one."""
        best: Attempt | None = None
        for layout in layouts:
            first = best if best is not None and best.fits else earlier
            if first is not None and first.fits and first.loadable and _cannot_beat(layout, first, bounds.min_nodes):
                continue
            fewest = max(bounds.min_nodes, layout.nodes)
            domain = bounds.machine.domain_gpus
            if best is not None and best.sort_key < _order_key(layout.parallelism, fewest, domain, loadable=True):
                continue
            if self.level is None:
                attempt = self._attempt(layout, bounds)
            else:
                attempt = self._service_attempt(self.level, layout, bounds)
            best = attempt if best is None or attempt.sort_key < best.sort_key else best
        return best

    def _beats(self, machine: Machine, grouped: Attempt, best: Attempt) -> bool:
        """Whether data-parallel attention is better: it takes fewer VMs, or as many, is faster, and saves stages."""
        if grouped.sort_key[:2] != best.sort_key[:2] or not (grouped.fits and best.fits) or self.level is not None:
            return grouped.sort_key < best.sort_key
        if grouped.parallelism.pipeline >= best.parallelism.pipeline:
            return False
        speed, other = self.speed(machine, grouped), self.speed(machine, best)
        return speed is not None and other is not None and speed.time < other.time

    def _layouts(self, machine: Machine, limits: SearchLimits, budget: float) -> Iterator[Layout]:
        """Yield the layouts to try: of a service those with up to twice the fewest stages that hold a sequence.

        More stages answer no faster. What is left out depends on no target: a stricter one never finds more.
        """
        deepest = inf
        for layout in find_layouts(self.partition, machine, limits):
            parallelism = layout.parallelism
            if parallelism.pipeline > deepest:
                return
            if self.level is not None and deepest == inf:
                fixed, _, sequence = self.memory_shares(parallelism, self._usable_bytes(budget))
                deepest = 2 * parallelism.pipeline if fixed + sequence <= budget else inf
            yield layout

    def _attempt(self, layout: Layout, bounds: _SearchBounds) -> Attempt:
        parallelism, (budget, by_memory, least, most, machine, compared) = layout.parallelism, bounds
        fixed, _, sequence = self._shares_of_any_gpu(parallelism)
        fixed += by_memory
        free = budget - fixed
        held = parallelism.data * max(0, floor(free / sequence)) if sequence else self.concurrency * (free >= 0)
        per_replica = min(self.concurrency, held)
        units = ceil(ceil(self.concurrency / per_replica) / layout.replicas) if per_replica else 0
        fits = 0 < units * layout.nodes <= most
        nodes = max(least, units * layout.nodes) if fits else most
        # All VMs share the sequences, so each GPU may hold fewer than it could; a replica without a sequence is idle.
        replicas = min(nodes // layout.nodes * layout.replicas, self.concurrency)
        required = fixed + ceil(self.concurrency / (replicas * parallelism.data)) * sequence
        if not fits:
            return Attempt((2, required), False, False, parallelism, replicas, nodes, required, budget)
        loadable = machine.holds(self.host_bytes(machine, layout), compared)
        key = _order_key(parallelism, nodes, machine.domain_gpus, loadable=loadable)
        return Attempt(key, True, loadable, parallelism, replicas, nodes, required, budget)

    def _service_attempt(self, level: ServiceLevel, layout: Layout, bounds: _SearchBounds) -> Attempt:
        """Return a layout with the fewest VMs that sustain the peak; it misses for memory, for a target, or for VMs."""
        parallelism, (budget, by_memory, least, most, machine, compared) = layout.parallelism, bounds
        fixed, _, sequence = self._shares_of_any_gpu(parallelism)
        fixed += by_memory
        free = budget - fixed
        if free < sequence:
            need = fixed + sequence
            return Attempt((2, 2, need), False, False, parallelism, layout.replicas, most, need, budget)
        in_memory = min(MAX_SEQUENCES, floor(free / sequence)) if sequence else MAX_SEQUENCES
        copy, replica = self._replica(machine, level, parallelism, in_memory * parallelism.data)
        required = fixed + ceil(max(1, replica.sequences) / parallelism.data) * sequence
        load = ServiceLoad(copy, replica, level)
        if not replica.sequences:
            key: tuple[float, ...] = (2, 1, share_of_target(replica.times, level))
            return Attempt(key, False, False, parallelism, layout.replicas, most, required, budget, load=load)
        nodes_at_peak, nodes_at_mean = (
            max(least, ceil(fleet_for(level, replica, peak=peak).replicas / layout.replicas) * layout.nodes)
            for peak in (True, False)
        )
        nodes, fits = min(nodes_at_peak, most), nodes_at_peak <= most
        replicas = nodes // layout.nodes * layout.replicas
        load = load._replace(needed_nodes=nodes_at_peak, mean_nodes=nodes_at_mean)
        loadable = fits and machine.holds(self.host_bytes(machine, layout), compared)
        key = (2, 0, nodes_at_peak)
        if fits:
            key = _order_key(parallelism, nodes, machine.domain_gpus, loadable=loadable)
        return Attempt(key, fits, loadable, parallelism, replicas, nodes, required, budget, load=load)

    def _replica(
        self, machine: Machine, level: ServiceLevel, parallelism: Parallelism, in_memory: int
    ) -> tuple[CopySpeed, ReplicaLimit]:
        """Return the times of a replica and its limit. Sizes with the same GPUs share them, so they are kept."""
        gpus = self._gpus_on(machine, parallelism, replicas=1)
        if (copy := self._copies.get((gpus, parallelism))) is None:
            alone = replace(self.serving, gpus=gpus, deployment=Deployment(parallelism=parallelism, copies=1))
            copy = self._copies[gpus, parallelism] = copy_speed(alone, self.weights, self.served.cache)
        if (limit := self._limits.get((gpus, parallelism, in_memory))) is None:
            limit = self._limits[gpus, parallelism, in_memory] = find_replica_limit(copy, level, in_memory)
        return copy, limit

    def max_required_bytes(self, attempt: Attempt) -> float:
        """Return the upper bound of what the fullest GPU needs, bytes."""
        fixed, at_most, _ = self.memory_shares(attempt.parallelism, self._usable_bytes(attempt.budget_bytes))
        per_sequence = self.served.pass_bytes.spread.high / attempt.parallelism.gpus
        sequences = ceil(self.concurrency / attempt.replicas) if per_sequence else 0
        return attempt.required_bytes - fixed + at_most + sequences * per_sequence

    def budget_bytes(self, machine: Machine) -> float:
        """Return what may be used of one GPU, bytes."""
        return (machine.usable_bytes or 0.0) * self.utilization

    def _usable_bytes(self, budget: float) -> float:
        """Return the memory of a GPU by its budget; 0 where it is not known and not limited."""
        return budget / self.utilization if isfinite(budget) else 0.0

    def max_sequences(self, machine: Machine, limits: SearchLimits, *, groups: bool = True) -> int:
        """Return how many sequences all allowed VMs hold in the layout that holds most, with `groups` or without."""
        return self._most_sequences(self.rooms(machine, limits, groups=groups), self.load.context_tokens)

    def longest_context(self, machine: Machine, limits: SearchLimits, *, step: int) -> int:
        """Return the longest context, in steps of `step` tokens, with which all allowed VMs hold all sequences.

        It is found by binary search up to the context of the workload; 0 where there is none.
        """
        rooms = self.rooms(machine, limits, groups=True)

        def is_too_long(steps: int) -> bool:
            return self._most_sequences(rooms, step * steps) < self.concurrency

        return step * (fewest(is_too_long, 1, self.load.context_tokens // step + 1) - 1)

    def rooms(self, machine: Machine, limits: SearchLimits, *, groups: bool) -> list[Room]:
        """Return what the layouts that have room beside the weights leave to sequences; it depends on no context."""
        nodes, rooms = limits.usable_nodes(machine), list[Room]()
        others = find_group_layouts(self.partition, machine, limits) if groups else ()
        for layout in (*find_layouts(self.partition, machine, limits), *others):
            parallelism = layout.parallelism
            fixed, _, _ = self.memory_shares(parallelism, machine.usable_bytes or 0.0)
            free = self.budget_bytes(machine) - fixed
            if free >= 0:
                rooms.append((parallelism, nodes // layout.nodes * layout.replicas * parallelism.data, free))
        return rooms

    def _most_sequences(self, rooms: Iterable[Room], context_tokens: int) -> int:
        held = ((groups, free, self._sequence(parallelism, context_tokens)) for parallelism, groups, free in rooms)
        return max((groups * floor(free / sequence) for groups, free, sequence in held if sequence), default=0)

    def host_bytes(self, machine: Machine, placed: Attempt | Layout) -> float:
        """Return the VM memory needed to load its part of the weights, bytes."""
        return self.weights.mid * min(1.0, machine.ranks / placed.parallelism.gpus)

    @property
    def disk_bytes(self) -> float:
        """The local disk each VM needs, bytes: it stores all weights."""
        return self.weights.mid

    def speed(self, machine: Machine, attempt: Attempt) -> ServingSpeed | None:
        """Compute how fast all replicas generate; None where the bandwidth, a network or the bytes read are unknown."""
        if attempt.parallelism.gpus > machine.joined_gpus and machine.network_gbps is None:
            return None
        return speed_of_kind(self.serving_on(machine, attempt), self.weights, self.served.cache)

    def serving_on(self, machine: Machine, attempt: Attempt) -> ServingSetup:
        """Return the workload on the GPUs of an option, as the estimator takes it."""
        gpus, load = self._gpus_on(machine, attempt.parallelism, attempt.replicas), attempt.load
        copies = attempt.replicas - (load.prefill_replicas if load is not None else 0)
        deployment = Deployment(parallelism=attempt.parallelism, copies=copies)
        workload = self.serving.workload
        if load is not None:
            workload = replace(workload, concurrency=load.sequences * copies, prefill_busy=load.prefill_busy)
        return replace(self.serving, gpus=gpus, deployment=deployment, workload=workload)

    def _gpus_on(self, machine: Machine, parallelism: Parallelism, replicas: int) -> Gpus:
        tflops, narrow = self._peak_flops(machine), peak_flops(machine, "fp16")
        in_nvlink = linked_gpus(machine, parallelism) <= machine.domain_gpus
        # The cache of a prompt moves between VMs; stages and groups on one VM use none of its network.
        moved = self.serving.workload.prefill_busy is not None and parallelism.gpus == parallelism.tensor
        between_vms = moved or parallelism.gpus > machine.joined_gpus
        return Gpus(
            count=parallelism.gpus * replicas,
            gpu_id=machine.gpu_id,
            usable_gib=machine.usable_bytes / 2**30 if machine.usable_bytes is not None else None,
            bandwidth_gb_per_s=machine.bandwidth / 1e9 if machine.bandwidth is not None else None,
            peak_tflops=tflops / 1e12 if tflops is not None else None,
            peak_16_bits_tflops=narrow / 1e12 if narrow is not None else None,
            link="nvlink" if in_nvlink else "pcie",
            link_gb_per_s=machine.link_gb_per_s if in_nvlink else None,
            network=machine.network if between_vms else None,
            network_gbps=machine.network_gbps if between_vms else None,
        )

    def _peak_flops(self, machine: Machine) -> float | None:
        return peak_flops(machine, "bf16" if self.is_weight_only(machine) else compute_dtype(self.dtype))

    def lacks_peak(self, machine: Machine) -> bool:
        """Return whether no source states the GPU's peak in the type computed in, which the time of a prompt needs."""
        return self.model.shape.kind in TIMED_KINDS and self._peak_flops(machine) is None

    def lacks_speed(self, machine: Machine) -> bool:
        """Return whether figures that a service level needs are missing: of the GPU, or of the network of a cache."""
        if self.level is None:
            return False
        unknown = machine.bandwidth is None or self._peak_flops(machine) is None
        return unknown or (self.level.disaggregated and machine.network_gbps is None)


def linked_gpus(machine: Machine, parallelism: Parallelism) -> int:
    """Return how many GPUs of a stage a link joins: all, or those of one group where the stage is on several VMs."""
    stage = parallelism.stage_gpus
    return stage if stage <= machine.joined_gpus else parallelism.tensor


def _order_key(parallelism: Parallelism, nodes: int, domain_gpus: int, *, loadable: bool) -> tuple[float, ...]:
    """Return the sort key of an attempt that fits."""
    tensor = parallelism.tensor
    over_pcie = tensor > domain_gpus
    spread = parallelism.expert > 1
    grouped = parallelism.data > 1
    return (1 - loadable, nodes, grouped, parallelism.pipeline, spread, over_pcie, tensor if over_pcie else -tensor)


def _cannot_beat(layout: Layout, best: Attempt, least: int) -> bool:
    """Whether a layout cannot beat one that fits.

    It takes more VMs, or more stages where no fewer VMs are allowed. Of two with as many VMs data-parallel attention
    may only beat one with several stages.
    """
    if layout.parallelism.data > best.parallelism.data == 1 and best.parallelism.pipeline == 1:
        return layout.nodes >= best.nodes
    deeper = layout.parallelism.pipeline > best.parallelism.pipeline
    return layout.nodes > best.nodes or (deeper and best.nodes == least)


MIN_CAPABILITY_USUAL_SPEED = 8.0
"""From this compute capability on, GPUs reach the usual share of their peak; V100 and T4 do not."""

SLOWDOWN_PCIE = 1.6
"""Time over PCIe, or on V100 and T4, relative to NVLink: trainings reach about 25 % of the peak there, not 40 %."""

SLOWDOWN_MI300X = 1.6
"""Time on MI300X relative to other GPUs of its peak: its best matrix product reaches 51 % of it, theirs 80 to 87 %.

Source: Bekman, Machine Learning Engineering, on the maximum achievable matmul FLOPS.
"""


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
    disk_bytes: float = 0.0
    """The local disk each VM needs, bytes: it stores a whole checkpoint."""
    spot: SpotTerms | None = None
    max_hours: float | None = None
    loading: Loading = "sharded"
    _needs: dict[tuple[int, Parallelism, int], Range] = field(default_factory=dict, compare=False)
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
        """What is assumed about activations and adapters, in words; empty where everything is given."""
        training, workload = self.training, self.training.workload
        parts = {
            f"sequences of {training.sequence_tokens:,} tokens": workload.sequence_tokens is None,
            f"recompute={training.recompute}": workload.recompute is None,
            "adapters on every matrix of the layers": has_most_adapters(training),
        }
        shown = [part for part, is_assumed in parts.items() if is_assumed]
        return f"assuming {' and '.join(filter(None, (', '.join(shown[:-1]), *shown[-1:])))}" if shown else ""

    def required_bytes(self, stage: int, parallelism: Parallelism, replicas: int) -> Range:
        """Return what the fullest GPU needs, bytes. It is the same for every size, so it is computed once."""
        key = stage, parallelism, self._shards(replicas)
        if (required := self._needs.get(key)) is None:
            job = self.states_by_stage[stage]
            if (activations := self._activations.get(parallelism)) is None:
                activations = self._activations[parallelism] = activations_of(job, parallelism)
            need = training_need(job, parallelism, self._shards(replicas), activations)
            required = self._needs[key] = total_need(self.training, need)
        return required

    def _shards(self, replicas: int) -> int:
        """Return over how many replicas states are sharded: all, or those of a shard group."""
        return min(replicas, self.training.workload.shard_group or replicas)

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
        parallelism, least = layout.parallelism, ceil(self.min_replicas / layout.replicas)
        nodes = max(limits.min_nodes, least * layout.nodes)
        return (0, 0, nodes, parallelism.tensor > machine.domain_gpus, parallelism.pipeline, parallelism.tensor, stage)

    def _attempt(
        self, stage: int, layout: Layout, machine: Machine, limits: SearchLimits, compared: list[float] | None
    ) -> Attempt | None:
        """Find the fewest replicas of a layout that hold the model and meet the deadline; None if the VMs allow none.

        From two replicas on, more shards never need more memory, so a binary search finds them. A replica alone has no
        buffers for others: it may hold what several do not. Where no number of VMs has the host memory to load the
        model, only the GPUs count.
        """
        parallelism, budget, most = layout.parallelism, self.budget_bytes(machine), limits.usable_nodes(machine)
        fixed = self.training.workload.data_parallel
        least = ceil(self.min_replicas / layout.replicas)
        if least * layout.nodes > most:
            return None
        most_units = least if fixed else most // layout.nodes
        least = max(least, min(most_units, ceil(limits.min_nodes / layout.nodes)))
        largest = most_units
        alone = least < most_units and self._replicas(layout, least) == 1
        if alone and (needs := self._required_mid(stage, layout, most_units)) > budget:
            largest = least if self._required_mid(stage, layout, least) < needs else most_units
        fits = self._required_mid(stage, layout, largest) <= budget
        loadable = fits and self._is_loadable(stage, layout, machine, largest, compared)

        def holds(units: int) -> bool:
            if self._required_mid(stage, layout, units) > budget:
                return False
            return not loadable or self._is_loadable(stage, layout, machine, units, compared)

        def is_in_time(units: int) -> bool:
            return fixed is not None or self._is_in_time(stage, layout, machine, units)

        units = largest
        if fits and alone and holds(least) and is_in_time(least):
            units = least
        elif fits:
            units = fewest(holds, min(least + alone, largest), largest)
            units = fewest(is_in_time, units, largest)
        late = fits and not is_in_time(units)
        nodes, required = max(limits.min_nodes, units * layout.nodes), self._required_mid(stage, layout, units)
        over_pcie = parallelism.tensor > machine.domain_gpus
        key: tuple[float, ...] = (1 - loadable, late, nodes, over_pcie, parallelism.pipeline, parallelism.tensor, stage)
        key, replicas = key if fits else (2, required), self._replicas(layout, units)
        return Attempt(key, fits, loadable, parallelism, replicas, nodes, required, budget, stage)

    def _is_loadable(
        self, stage: int, layout: Layout, machine: Machine, units: int, compared: list[float] | None
    ) -> bool:
        """Return whether VMs with replicas of a layout have the RAM for what is loaded or offloaded."""
        replicas = self._replicas(layout, units)
        return machine.holds(self._host_bytes(machine, stage, layout.parallelism, replicas), compared)

    def _required_mid(self, stage: int, layout: Layout, units: int) -> float:
        return self.required_bytes(stage, layout.parallelism, self._replicas(layout, units)).mid

    def max_required_bytes(self, attempt: Attempt) -> float:
        """Return the upper bound of what the fullest GPU needs, bytes."""
        return self.required_bytes(attempt.zero_stage or 0, attempt.parallelism, attempt.replicas).high

    def _replicas(self, layout: Layout, units: int) -> int:
        replicas = self.training.workload.data_parallel or layout.replicas * units
        return replicas if self.max_replicas is None else min(replicas, self.max_replicas)

    def _is_in_time(self, stage: int, layout: Layout, machine: Machine, units: int) -> bool:
        """Return whether repetitions of a layout finish the job within `max_hours`; true where the time is unknown."""
        deployment = Deployment(parallelism=layout.parallelism, copies=layout.replicas * units)
        work = self.gpu_hours(machine, deployment, stage) if self.max_hours else None
        return work is None or not self.max_hours or work.mid / deployment.gpus <= self.max_hours

    def budget_bytes(self, machine: Machine) -> float:
        """Return what may be used of one GPU, bytes."""
        return (machine.usable_bytes or 0.0) * self.utilization

    def lacks_peak(self, machine: Machine) -> bool:
        """Return whether no source states the GPU's peak in the type computed in, and no measured speed is given."""
        workload = self.training.workload
        is_given = workload.tokens_per_s_per_gpu is not None or workload.gpu_hours is not None
        return not is_given and peak_flops(machine, self.compute_dtype) is None

    def gpu_hours(self, machine: Machine, deployment: Deployment, stage: int) -> Range | None:
        """Compute the GPU-hours of the job: as given or measured, else by the rate and the overhead."""
        hours, tokens = gpu_hours(self.training), self.training.workload.tokens
        if hours is not None or tokens is None:
            return hours
        rate = self.rate(machine, deployment, stage)
        if rate is None:
            return None
        steps = rate.divide(tokens).times(1 / SECONDS_PER_HOUR)
        return steps.within(run_overhead(self.training, stated=False) + 1)

    def rate(self, machine: Machine, deployment: Deployment, stage: int) -> Range | None:
        """Return the tokens/s of one GPU of a deployment: as measured, else by its peaks; None where unknown."""
        measured = self.training.workload.tokens_per_s_per_gpu
        if measured is not None:
            return single_value(measured)
        accelerator = to_accelerator(machine, self.compute_dtype, deployment.gpus)
        if self.work is None or accelerator is None:
            return None
        workload = replace(self.training.workload, zero_stage=stage, gpus_per_node=machine.ranks)
        training = replace(self.training, workload=workload, deployment=deployment)
        return rate_of(training, self.work, seconds_per_token(self.work, accelerator, deployment.gpus), accelerator)

    def host_bytes(self, machine: Machine, attempt: Attempt) -> float:
        """Return the VM memory needed to load its part of the weights or to hold what is offloaded, bytes."""
        return self._host_bytes(machine, attempt.zero_stage or 0, attempt.parallelism, attempt.replicas)

    def _host_bytes(self, machine: Machine, stage: int, parallelism: Parallelism, replicas: int) -> float:
        job = self.states_by_stage[stage]
        shards = self._shards(replicas) if stage >= WEIGHT_SHARDING_STAGE else 1
        part = min(1.0, machine.ranks / (parallelism.gpus * shards))
        loaded = loaded_host_bytes(job.frozen_bytes or self.params * 2, self.loading, part)
        if job.offload == "none":
            return loaded
        return max(loaded, offloaded_host_bytes(job.params, machine.ranks).mid)

    def speed(self, machine: Machine, attempt: Attempt) -> Speed | None:
        """Compute how fast the model is trained; None where the peak is unknown and no measured speed is given."""
        deployment = Deployment(parallelism=attempt.parallelism, copies=attempt.replicas)
        stage = attempt.zero_stage or 0
        rate, work = self.rate(machine, deployment, stage), self.gpu_hours(machine, deployment, stage)
        hours = work.times(1 / attempt.gpus) if work is not None else None
        workload = self.training.workload
        if workload.gpu_hours is not None and workload.tokens and hours is not None and hours.low > 0:
            measured_rate = hours.times(SECONDS_PER_HOUR).divide(workload.tokens)
            return Speed(tokens_per_s=measured_rate, hours=hours, family=RATE_FAMILY)
        if rate is None:
            return None
        accelerator = to_accelerator(machine, self.compute_dtype, attempt.gpus)
        outside = domain(self.training, accelerator, attempt.gpus).outside if accelerator is not None else ()
        rate = rate.times(attempt.gpus)
        return Speed(tokens_per_s=rate, hours=hours, departures=outside, family=RATE_FAMILY)


def to_accelerator(machine: Machine, dtype: str, gpus: int) -> Accelerator | None:
    """Return what counts for the speed of training on VMs of one size; None where a peak or a network is unknown."""
    peak, peak_16_bits = peak_flops(machine, dtype), peak_flops(machine, "bf16")
    if peak is None or (gpus > machine.joined_gpus and machine.network_gbps is None):
        return None
    peak_16_bits = peak if peak_16_bits is None else peak_16_bits
    return Accelerator(
        matrix_peak=peak,
        peak_16_bits=peak_16_bits,
        bandwidth=machine.bandwidth or peak_16_bits * USUAL_BYTES_PER_FLOP,
        domain_gpus=max(1, machine.joined_gpus),
        network_bytes_per_s=network_hop(machine.network, machine.network_gbps).bytes_per_s,
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
