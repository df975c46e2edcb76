"""What a model can be divided into, and how it can be laid out on VMs of one size: ranks, groups, stages, replicas."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from math import ceil
from typing import NamedTuple

from app.fit.estimator.service_level import ServiceLoad
from app.fit.formulas.architecture import Architecture, missing_for_count
from app.fit.formulas.memory import Parallelism
from app.fit.formulas.quantization import Quantization, fp8_blocks
from app.fit.formulas.weight_matrices import MatrixFormats, weight_matrices
from app.fit.placement.machine import Machine


class BlockedWidth(NamedTuple):
    """A matrix width split over GPUs, the size of its blocks, the least share, and whether it is of an expert."""

    width: int
    block: int
    min_share: int = 0
    of_expert: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionLimits:
    """What a partition must divide (heads, KV heads, layers, widths), and the parallelism that is requested.

    None is unknown or not requested. The latent KV cache of MLA has no KV heads to split. `expert_widths` are those of
    routed experts; `experts` is how many of them can be distributed over GPUs, None where none can.
    """

    heads: int | None = None
    kv_heads: int | None = None
    mlp_widths: tuple[int, ...] = ()
    expert_widths: tuple[int, ...] = ()
    blocked_widths: tuple[BlockedWidth, ...] = ()
    layers: int | None = None
    experts: int | None = None
    tensor: int | None = None
    pipeline: int | None = None
    expert: int | None = None
    data: int | None = None

    @property
    def requested(self) -> Parallelism:
        """The requested parallelism, 1 where unset; of data groups at least as many as the experts' GPUs need."""
        tensor = self.tensor or 1
        groups = self.data or max(1, (self.expert or 1) // tensor)
        expert = self.expert or (tensor * groups if groups > 1 else 1)
        return Parallelism(tensor=tensor, pipeline=self.pipeline or 1, expert=expert, data=groups)


_ROW_PARALLEL = ("down_proj", "o_proj", "out_proj")
"""Matrices whose input columns are split over the ranks; of the others the output rows are."""


def checkpoint_quantization(shape: Architecture, dtype: str | None) -> Quantization | None:
    """Return how weights of a type are stored: as released, or as in the vendor's FP8 checkpoint; else None.

    FP8 that an engine converts from 16-bit weights on loading has one scale for each matrix and no blocks.
    """
    released = shape.released
    if dtype is not None and released is not None and released.dtype == dtype:
        return released.quantization
    return fp8_blocks(shape.fp8_block) if dtype == "fp8" and shape.fp8_block is not None else None


def blocked_widths(shape: Architecture, quantization: Quantization | None) -> tuple[BlockedWidth, ...]:
    """Return the widths that must be split into whole blocks; none where there are no blocks or fields are missing.

    Matrices that every rank holds whole are not split, and the output layer is padded.
    Source: vLLM, validate_fp8_block_shape and Fp8MoEMethod.create_weights.
    """
    if quantization is None or quantization.block is None or missing_for_count(shape):
        return ()
    formats, widths = MatrixFormats(quantization), set()
    for matrix in weight_matrices(shape):
        unaligned = matrix.on_every_rank or matrix.part == "lm_head"
        for coding, _ in () if unaligned else formats.formats(matrix):
            if coding is None or min(coding.block) <= 1:
                continue
            least = shape.head_dim or 0 if matrix.suffix in {"k_proj", "v_proj"} else 0
            inward = matrix.suffix in _ROW_PARALLEL
            width, block = matrix.columns if inward else matrix.rows, coding.block[1 if inward else 0]
            widths.add(BlockedWidth(width, block, least, matrix.part == "experts"))
    return tuple(sorted(widths))


def partition_error(partition: PartitionLimits, tensor: int, expert_parts: int | None = None) -> str | None:
    """Return why a layer cannot be split over `tensor` ranks; None where it can.

    Heads are assigned whole, KV heads assigned or replicated whole, and MLP widths divided evenly. Each routed expert
    is cut into `expert_parts`, where these are not as many as the ranks.
    Source: vLLM rejects anything else, vllm/config/model.py and vllm/distributed/utils.py.
    """
    if partition.heads is not None and partition.heads % tensor:
        return f"{tensor} tensor ranks do not divide {partition.heads} heads"
    if partition.kv_heads is not None and partition.kv_heads % tensor and tensor % partition.kv_heads:
        return f"{partition.kv_heads} KV heads can neither be distributed to nor replicated on {tensor} tensor ranks"
    parts = tensor if expert_parts is None else expert_parts
    for widths, pieces in ((partition.mlp_widths, tensor), (partition.expert_widths, parts)):
        for width in widths:
            if width % pieces:
                return f"{pieces} tensor ranks do not divide the MLP's width {width}"
    return None


def block_error(partition: PartitionLimits, tensor: int, expert_parts: int | None = None) -> str | None:
    """Return why `tensor` ranks cannot get whole quantization blocks; None where they can."""
    for width, block, min_share, of_expert in partition.blocked_widths:
        ranks = tensor if expert_parts is None or not of_expert else expert_parts
        share = max(width // ranks, min_share)
        if ranks > 1 and share % block:
            return f"{ranks} tensor ranks get {share} of a width of {width}, and its blocks are of {block}"
    return None


def can_partition(partition: PartitionLimits, tensor: int, expert_parts: int | None = None) -> bool:
    """Whether a layer can be split over `tensor` ranks."""
    return (
        partition_error(partition, tensor, expert_parts) is None
        and block_error(partition, tensor, expert_parts) is None
    )


PIPELINE_STAGES = (*range(1, 17), 20, 24, 28, 32, 40, 48, 56, 64)
"""Numbers of pipeline stages to try."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchLimits:
    """How many VMs may be used, whether a layer must stay in one NVLink domain, and whether VMs need InfiniBand.

    Replicas that train exchange gradients; those that serve do not, so only the VMs of one replica need InfiniBand.
    `timed`: a replica has targets, so that the speed of the network between its VMs must be known.
    """

    min_nodes: int = 1
    max_nodes: int = 1
    tp_in_nvlink: bool = False
    require_infiniband: bool = False
    replicas_exchange_data: bool = False
    timed: bool = False

    def replica_nodes(self, machine: Machine) -> int:
        """Return over how many VMs of this size a replica may be: those of a rack, where their network is not known."""
        alone = self._lacks_infiniband(machine) or (self.timed and machine.network_gbps is None)
        return min(machine.domain_vms, self.max_nodes) if alone else self.max_nodes

    def usable_nodes(self, machine: Machine) -> int:
        """Return how many VMs of this size can be used for all replicas."""
        return self.replica_nodes(machine) if self.replicas_exchange_data else self.max_nodes

    def relaxed(self, machine: Machine, code: str) -> "SearchLimits | None":
        """Return these limits without the one behind a failure code; None where that does not restrict this machine."""
        if code == "NVLINK_DOMAIN" and self.tp_in_nvlink and machine.domain_gpus < machine.ranks:
            return replace(self, tp_in_nvlink=False)
        apart = "NO_INFINIBAND" if self._lacks_infiniband(machine) else "NETWORK_UNKNOWN"
        if code == apart and self.replica_nodes(machine) < self.max_nodes:
            return replace(self, require_infiniband=False, timed=False)
        return None

    def _lacks_infiniband(self, machine: Machine) -> bool:
        return machine.infiniband is not True and self.require_infiniband


class Layout(NamedTuple):
    """A unit to repeat: `replicas` of this parallelism on `nodes` VMs."""

    parallelism: Parallelism
    replicas: int
    nodes: int


def find_layouts(partition: PartitionLimits, machine: Machine, limits: SearchLimits) -> tuple[Layout, ...]:
    """Return the layouts that VMs of this size allow. A replica on a fraction of a GPU has just that one."""
    nodes = limits.replica_nodes(machine)
    reach = machine.max_tensor_ranks(nodes, tp_in_nvlink=limits.tp_in_nvlink)
    return enumerate_layouts(partition, machine.ranks, reach, 1 if machine.fractional else nodes)


@lru_cache(maxsize=1024)
def enumerate_layouts(partition: PartitionLimits, gpus: int, reach: int, nodes: int) -> tuple[Layout, ...]:
    """Return the layouts on up to `nodes` VMs with `gpus` GPUs each: fewest stages first, then most tensor ranks.

    `reach` is over how many GPUs a layer can be split. Experts are distributed where that is requested, or where those
    ranks cannot cut them. Cached, because many sizes have the same GPU count.
    """
    if (partition.data or 1) > 1:
        return ()
    ranks = list(_tensor_ranks(partition, gpus, reach))
    return tuple(
        layout
        for p in _stages(partition)
        for t, ep in ranks
        if (layout := lay_out(Parallelism(tensor=t, pipeline=p, expert=ep), gpus)).nodes <= nodes
    )


def _stages(partition: PartitionLimits) -> list[int]:
    stages = PIPELINE_STAGES if partition.pipeline is None else (partition.pipeline,)
    return [p for p in stages if partition.layers is None or p <= partition.layers]


def _tensor_ranks(partition: PartitionLimits, gpus: int, reach: int) -> Iterator[tuple[int, int]]:
    """Yield numbers of tensor ranks that a layer can be split over, each with the ranks of experts.

    These are as requested, else one, else all, if all get as many.
    """
    for t in _tensor_candidates(partition, gpus, reach):
        expert_ranks: tuple[int, ...] = (1,)
        if partition.expert is not None:
            expert_ranks = (partition.expert,) if t % partition.expert == 0 else ()
        elif t > 1 and partition.experts is not None and partition.tensor is None and partition.experts % t == 0:
            expert_ranks = (1, t)
        for ep in expert_ranks:
            if can_partition(partition, t, t // ep):
                yield t, ep
                break


def _tensor_candidates(partition: PartitionLimits, gpus: int, reach: int) -> list[int]:
    if partition.tensor is not None:
        return [partition.tensor] if partition.tensor <= reach else []
    whole = partition.heads if partition.heads is not None else max(gpus, reach)
    return [t for t in range(reach, 0, -1) if whole % t == 0]


def find_group_layouts(partition: PartitionLimits, machine: Machine, limits: SearchLimits) -> tuple[Layout, ...]:
    """Return the layouts with data-parallel attention that VMs of this size allow.

    All GPUs of a stage share NVLink, or are whole VMs of several GPUs each, with NVLink, that InfiniBand joins. Where
    the number of groups is requested, they may be joined by anything that the limits allow.
    """
    if machine.fractional or partition.experts is None or (partition.data or 2) < 2:  # noqa: PLR2004  # no groups
        return ()
    nodes = limits.replica_nodes(machine)
    reach = machine.max_tensor_ranks(nodes, tp_in_nvlink=limits.tp_in_nvlink)
    joined = machine.infiniband is True and machine.domain_gpus >= machine.ranks > 1
    near = reach if partition.data is not None else min(reach, machine.domain_gpus)
    return enumerate_group_layouts(partition, machine.ranks, near, nodes, joined or partition.data is not None)


@lru_cache(maxsize=1024)
def enumerate_group_layouts(
    partition: PartitionLimits, gpus: int, reach: int, nodes: int, joined: bool
) -> tuple[Layout, ...]:
    """Return the layouts with data-parallel attention on up to `nodes` VMs: fewest stages, then fewest GPUs of a copy.

    `reach` is how many GPUs a link joins; beyond that whole VMs are taken, where they are `joined`. A stage is on a
    part of a VM that divides it, on all of it, or on 2, 4, 8 … VMs: more VMs only add to what is tried. The experts are
    distributed over all GPUs of a stage, each as many, unless another number is requested. Stages are one unless
    requested.
    """
    most = max(nodes * gpus if joined and reach >= gpus else 0, reach)
    parts = [size for size in range(2, gpus + 1) if gpus % size == 0]
    sizes = {size for size in (*parts, *(gpus << k for k in range(1, 8))) if size <= most}
    if partition.data is not None:
        sizes = {partition.data * t for t in _tensor_candidates(partition, gpus, reach)} - {1}
    layouts = (
        lay_out(parallelism, gpus)
        for p in (_stages(partition) if partition.data is not None else (partition.pipeline or 1,))
        for size in sorted(sizes)
        for parallelism in _groups(partition, size, p, reach)
    )
    return tuple(layout for layout in layouts if layout.nodes <= nodes)


def _groups(partition: PartitionLimits, size: int, stages: int, reach: int) -> Iterator[Parallelism]:
    """Yield the splits of a stage on `size` GPUs into groups of tensor ranks: of one GPU first."""
    for tensor in (t for t in range(1, min(size // 2, reach) + 1) if size % t == 0):
        groups, ep = size // tensor, partition.expert or size
        wanted = partition.tensor in {None, tensor} and partition.data in {None, groups}
        even = (partition.experts or 0) % ep == 0 or partition.expert is not None
        if wanted and even and size % ep == 0 and can_partition(partition, tensor, size // ep):
            yield Parallelism(tensor=tensor, pipeline=stages, expert=ep, data=groups)


def lay_out(parallelism: Parallelism, gpus: int) -> Layout:
    """Place replicas on VMs with `gpus` GPUs each: several per VM, or one across VMs.

    A pipeline stage never spans two VMs unless it is larger than one; GPUs left over on a VM stay idle.
    """
    if parallelism.gpus <= gpus:
        return Layout(parallelism, gpus // parallelism.gpus, 1)
    if parallelism.stage_gpus <= gpus:
        return Layout(parallelism, 1, ceil(parallelism.pipeline / (gpus // parallelism.stage_gpus)))
    return Layout(parallelism, 1, parallelism.pipeline * ceil(parallelism.stage_gpus / gpus))


class Attempt(NamedTuple):
    """One parallelism on a number of VMs, and what the fullest GPU needs and may use, in bytes.

    The least `sort_key` is the best: attempts that fit come first, among them those that the VM's own memory can load;
    then fewer VMs, or of those that do not fit, which count as not `loadable`, the least need. `zero_stage` is None for
    serving, `load` unless a service level is asked for.
    """

    sort_key: tuple[float, ...]
    fits: bool
    loadable: bool
    parallelism: Parallelism
    replicas: int
    nodes: int
    required_bytes: float
    budget_bytes: float
    zero_stage: int | None = None
    load: ServiceLoad | None = None

    @property
    def lacks_memory(self) -> bool:
        """Whether memory is why it does not fit; a service may also miss its targets, or need more VMs."""
        return not self.fits and self.load is None

    @property
    def gpus(self) -> int:
        """The number of GPUs in use."""
        return self.parallelism.gpus * self.replicas
