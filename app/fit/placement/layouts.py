"""How a model can be partitioned over VMs of one size: tensor ranks, pipeline stages, replicas."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from math import ceil, inf
from typing import NamedTuple

from app.fit.formulas.architecture import Architecture, missing_for_count
from app.fit.formulas.memory import Parallelism
from app.fit.formulas.quantities import Range
from app.fit.formulas.quantization import Quantization, fp8_blocks
from app.fit.formulas.weight_matrices import MatrixFormats, weight_matrices
from app.fit.placement.machine import Machine
from app.fit.placement.service_level import ServiceLoad


class BlockedWidth(NamedTuple):
    """A matrix width split over tensor ranks, the size of its quantization blocks, and the least share of a rank."""

    width: int
    block: int
    min_share: int = 0

    def misalignment(self, tensor: int) -> str | None:
        """Return why `tensor` ranks cannot split it into whole blocks; None where they can."""
        each = max(self.width // tensor, self.min_share)
        if tensor == 1 or each % self.block == 0:
            return None
        return f"{tensor} tensor ranks get {each} of a width of {self.width}, and its blocks are of {self.block}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionLimits:
    """What a partition must divide (heads, KV heads, layers, widths), and the ranks and stages that are requested.

    None is unknown or not requested. The latent KV cache of MLA has no KV heads to split.
    """

    heads: int | None = None
    kv_heads: int | None = None
    mlp_widths: tuple[int, ...] = ()
    blocked_widths: tuple[BlockedWidth, ...] = ()
    layers: int | None = None
    tensor: int | None = None
    pipeline: int | None = None

    @property
    def requested(self) -> Parallelism:
        """The requested parallelism; 1 where unset."""
        return Parallelism(tensor=self.tensor or 1, pipeline=self.pipeline or 1)


_ROW_PARALLEL = ("down_proj", "o_proj")
"""Matrices whose input columns are split over the ranks; of the others the output rows are."""
_UNALIGNED = ("q_a_proj", "kv_a_proj_with_mqa", "lm_head")
"""Matrices that every rank holds whole, and the output layer, which is padded."""


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

    Source: vLLM, validate_fp8_block_shape and Fp8MoEMethod.create_weights.
    """
    if quantization is None or quantization.block is None or missing_for_count(shape):
        return ()
    formats, found = MatrixFormats(quantization), set()
    for matrix in weight_matrices(shape):
        suffix = matrix.name.rpartition(".")[2]
        for coding, _ in () if suffix in _UNALIGNED else formats.formats(matrix):
            if coding is None or min(coding.block) <= 1:
                continue
            least = shape.head_dim or 0 if suffix in {"k_proj", "v_proj"} else 0
            inward = suffix in _ROW_PARALLEL
            found.add(BlockedWidth(matrix.columns if inward else matrix.rows, coding.block[1 if inward else 0], least))
    return tuple(sorted(found))


def partition_error(partition: PartitionLimits, tensor: int) -> str | None:
    """Return why a layer cannot be split over `tensor` ranks; None where it can.

    Heads are assigned whole, KV heads assigned or replicated whole, and MLP widths divided evenly.
    Source: vLLM rejects anything else, vllm/config/model.py and vllm/distributed/utils.py.
    """
    if partition.heads is not None and partition.heads % tensor:
        return f"{tensor} tensor ranks do not divide {partition.heads} heads"
    if partition.kv_heads is not None and partition.kv_heads % tensor and tensor % partition.kv_heads:
        return f"{partition.kv_heads} KV heads can neither be dealt out to nor replicated on {tensor} tensor ranks"
    for width in partition.mlp_widths:
        if width % tensor:
            return f"{tensor} tensor ranks do not divide the MLP's width {width}"
    return None


def block_error(partition: PartitionLimits, tensor: int) -> str | None:
    """Return why `tensor` ranks cannot get whole quantization blocks; None where they can."""
    return next((why for one in partition.blocked_widths if (why := one.misalignment(tensor)) is not None), None)


def can_partition(partition: PartitionLimits, tensor: int) -> bool:
    """Whether a layer can be split over `tensor` ranks."""
    return partition_error(partition, tensor) is None and block_error(partition, tensor) is None


PIPELINE_STAGES = (*range(1, 17), 20, 24, 28, 32, 40, 48, 56, 64)
"""Numbers of pipeline stages to try."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchLimits:
    """How many VMs may be used, whether a layer must stay in one NVLink domain, and whether VMs need InfiniBand."""

    min_nodes: int = 1
    max_nodes: int = 1
    tp_in_nvlink: bool = False
    require_infiniband: bool = False

    def usable_nodes(self, machine: Machine) -> int:
        """Return how many VMs of this size can work together: one, where InfiniBand is required and not known."""
        alone = machine.infiniband is not True and self.require_infiniband
        return 1 if alone else self.max_nodes

    def max_tensor_ranks(self, machine: Machine) -> int:
        """Return over how many GPUs one layer can be split."""
        return machine.max_tensor_ranks(self.usable_nodes(machine), tp_in_nvlink=self.tp_in_nvlink)

    def relaxed(self, machine: Machine) -> Iterator[tuple[str, "SearchLimits"]]:
        """Yield these limits with one lifted that restricts this machine, each with the failure code it would cause."""
        if self.tp_in_nvlink and machine.domain_gpus < machine.ranks:
            yield "NVLINK_DOMAIN", replace(self, tp_in_nvlink=False)
        if self.usable_nodes(machine) < self.max_nodes:
            yield "NO_INFINIBAND", replace(self, require_infiniband=False)


class Layout(NamedTuple):
    """A unit to repeat: so many replicas of this parallelism on so many VMs."""

    parallelism: Parallelism
    replicas: int
    nodes: int


def find_layouts(partition: PartitionLimits, machine: Machine, limits: SearchLimits) -> tuple[Layout, ...]:
    """Return the layouts that VMs of this size allow. A replica on a fraction of a GPU has just that one."""
    nodes = 1 if machine.fractional else limits.usable_nodes(machine)
    return enumerate_layouts(partition, machine.ranks, limits.max_tensor_ranks(machine), nodes)


@lru_cache(maxsize=1024)
def enumerate_layouts(partition: PartitionLimits, gpus: int, reach: int, nodes: int) -> tuple[Layout, ...]:
    """Return the layouts on up to `nodes` VMs with `gpus` GPUs each: fewest stages first, then most tensor ranks.

    `reach` is over how many GPUs a layer can be split. Cached, because many sizes have the same GPU count.
    """
    ranks = _tensor_ranks(partition, gpus, reach)
    stages = PIPELINE_STAGES if partition.pipeline is None else (partition.pipeline,)
    pipelines = [p for p in stages if partition.layers is None or p <= partition.layers]
    return tuple(
        layout
        for p in pipelines
        for t in ranks
        if (layout := lay_out(Parallelism(tensor=t, pipeline=p), gpus)).nodes <= nodes
    )


def _tensor_ranks(partition: PartitionLimits, gpus: int, reach: int) -> list[int]:
    if partition.tensor is not None:
        return [partition.tensor] if partition.tensor <= reach and can_partition(partition, partition.tensor) else []
    whole = partition.heads if partition.heads is not None else max(gpus, reach)
    return [t for t in range(reach, 0, -1) if whole % t == 0 and can_partition(partition, t)]


def lay_out(parallelism: Parallelism, gpus: int) -> Layout:
    """Place replicas on VMs with `gpus` GPUs each: several per VM, or one across VMs.

    A pipeline stage never spans two VMs unless it is larger than one; GPUs left over on a VM stay idle.
    """
    if parallelism.gpus <= gpus:
        return Layout(parallelism, gpus // parallelism.gpus, 1)
    if parallelism.tensor <= gpus:
        return Layout(parallelism, 1, ceil(parallelism.pipeline / (gpus // parallelism.tensor)))
    return Layout(parallelism, 1, parallelism.pipeline * ceil(parallelism.tensor / gpus))


class Attempt(NamedTuple):
    """One parallelism on a number of VMs, and what the fullest GPU needs and may use, in bytes.

    The least `sort_key` is the best: attempts that fit come first, among them those that the VM's own memory can load;
    then fewer VMs, or of those that do not fit the least need. `zero_stage` is None for serving, `load` unless a
    service level is asked for.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """How fast an option is; None is unknown. A step is one token of every sequence; `hours` are of the whole job.

    `departures` are what no measurement covers.
    """

    tokens_per_s: Range
    min_step_s: float | None = None
    step_s: Range | None = None
    max_tokens_per_s: float | None = None
    first_token_s: Range | None = None
    departures: tuple[str, ...] = ()
    hours: Range | None = None

    @property
    def time(self) -> float:
        """The sort key of options: hours of the job, else seconds of a step; infinity where unknown."""
        known = self.hours or self.step_s
        return known.mid if known is not None else inf
