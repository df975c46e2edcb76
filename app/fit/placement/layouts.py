"""Into how many parts a model can be cut on VMs of one kind: tensor ranks, pipeline stages, copies."""

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


class BlockedWidth(NamedTuple):
    """A width that tensor ranks share, the block that divides it, and the least that a rank gets of it."""

    width: int
    block: int
    min_share: int = 0

    def misalignment(self, tensor: int) -> str | None:
        """Say why so many ranks cannot share it; None where they can."""
        each = max(self.width // tensor, self.min_share)
        if tensor == 1 or each % self.block == 0:
            return None
        return f"{tensor} tensor ranks get {each} of a width of {self.width}, and its blocks are of {self.block}"


_ROW_PARALLEL = ("down_proj", "o_proj")
"""Matrices whose columns are dealt out to the ranks; of the others the rows are."""
_UNALIGNED = ("q_a_proj", "kv_a_proj_with_mqa", "lm_head")
"""Matrices that every rank has whole, and the output layer, which is padded."""


def checkpoint_quantization(shape: Architecture, dtype: str | None) -> Quantization | None:
    """How the weights are stored in a type: as released, or as in the vendor's FP8 checkpoint; else None.

    FP8 that an engine makes of 16-bit weights when it loads them has a scale for each matrix, and no blocks.
    """
    released = shape.released
    if dtype is not None and released is not None and released.dtype == dtype:
        return released.quantization
    return fp8_blocks(shape.fp8_block) if dtype == "fp8" and shape.fp8_block is not None else None


def blocked_widths(shape: Architecture, quantization: Quantization | None) -> tuple[BlockedWidth, ...]:
    """List the widths that must be cut into whole blocks; none where none has, or the shape is unknown.

    Source: vLLM, validate_fp8_block_shape and Fp8MoEMethod.create_weights.
    """
    if quantization is None or quantization.block is None or missing_for_count(shape):
        return ()
    stores, found = MatrixFormats(quantization), set()
    for matrix in weight_matrices(shape):
        short = matrix.name.rpartition(".")[2]
        for coding, _ in () if short in _UNALIGNED else stores.formats(matrix):
            if coding is None or min(coding.block) <= 1:
                continue
            least = shape.head_dim or 0 if short in {"k_proj", "v_proj"} else 0
            inward = short in _ROW_PARALLEL
            found.add(BlockedWidth(matrix.columns if inward else matrix.rows, coding.block[1 if inward else 0], least))
    return tuple(sorted(found))


PIPELINE_STAGES = (*range(1, 17), 20, 24, 28, 32, 40, 48, 56, 64)
"""Numbers of pipeline stages that are tried; more than 64 are not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionLimits:
    """What a cut must respect: heads, KV heads, layers, widths of MLPs and of blocks; and the parts that are asked for.

    None is unknown, or not asked for. A latent of MLA has no KV heads to be cut.
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
        """The split that is asked for; 1 where nothing is."""
        return Parallelism(tensor=self.tensor or 1, pipeline=self.pipeline or 1)


class Layout(NamedTuple):
    """A split, and how it lies on VMs: so many copies on so many VMs, and again on as many more."""

    parallelism: Parallelism
    replicas: int
    nodes: int


def partition_error(partition: PartitionLimits, tensor: int) -> str | None:
    """Say why a layer cannot be cut over so many ranks; None where it can.

    Heads are dealt out whole, KV heads dealt out or replicated whole, and the MLP cut evenly.
    Source: vLLM refuses the rest, vllm/config/model.py and vllm/distributed/utils.py.
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
    """Say why quantized blocks cannot be dealt out whole to so many ranks; None where they can."""
    return next((why for one in partition.blocked_widths if (why := one.misalignment(tensor)) is not None), None)


def can_partition(partition: PartitionLimits, tensor: int) -> bool:
    """Whether a layer can be cut over so many ranks."""
    return partition_error(partition, tensor) is None and block_error(partition, tensor) is None


@lru_cache(maxsize=1024)
def enumerate_layouts(partition: PartitionLimits, gpus: int, reach: int, nodes: int) -> tuple[Layout, ...]:
    """List the splits that VMs of so many GPUs allow, on up to so many VMs: fewest stages first, then most ranks."""
    ranks = _tensor_ranks(partition, gpus, reach)
    stages = PIPELINE_STAGES if partition.pipeline is None else (partition.pipeline,)
    tried = [p for p in stages if partition.layers is None or p <= partition.layers]
    return tuple(
        way for p in tried for t in ranks if (way := lay_out(Parallelism(tensor=t, pipeline=p), gpus)).nodes <= nodes
    )


def _tensor_ranks(partition: PartitionLimits, gpus: int, reach: int) -> list[int]:
    if partition.tensor is not None:
        return [partition.tensor] if partition.tensor <= reach and can_partition(partition, partition.tensor) else []
    whole = partition.heads if partition.heads is not None else max(gpus, reach)
    return [t for t in range(reach, 0, -1) if whole % t == 0 and can_partition(partition, t)]


def lay_out(parallelism: Parallelism, gpus: int) -> Layout:
    """Lay copies on VMs of so many GPUs: several on one, or one on several, whose stages never share a VM's rest."""
    if parallelism.gpus <= gpus:
        return Layout(parallelism, gpus // parallelism.gpus, 1)
    if parallelism.tensor <= gpus:
        return Layout(parallelism, 1, ceil(parallelism.pipeline / (gpus // parallelism.tensor)))
    return Layout(parallelism, 1, parallelism.pipeline * ceil(parallelism.tensor / gpus))


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchLimits:
    """How many VMs there may be, and whether layers must stay in an NVLink domain, VMs be joined by InfiniBand."""

    min_nodes: int = 1
    max_nodes: int = 1
    tp_in_nvlink: bool = False
    require_infiniband: bool = False

    def usable_nodes(self, machine: Machine) -> int:
        """How many VMs of a kind can work together: one without InfiniBand, where that is needed."""
        alone = machine.infiniband is not True and self.require_infiniband
        return 1 if alone else self.max_nodes

    def max_tensor_ranks(self, machine: Machine) -> int:
        """Over how many GPUs one layer can be cut."""
        return machine.max_tensor_ranks(self.usable_nodes(machine), tp_in_nvlink=self.tp_in_nvlink)

    def relaxed(self, machine: Machine) -> Iterator[tuple[str, "SearchLimits"]]:
        """These limits without one that binds a machine, by the code of what is lifted."""
        if self.tp_in_nvlink and machine.domain_gpus < machine.ranks:
            yield "NVLINK_DOMAIN", replace(self, tp_in_nvlink=False)
        if self.usable_nodes(machine) < self.max_nodes:
            yield "NO_INFINIBAND", replace(self, require_infiniband=False)


def find_layouts(partition: PartitionLimits, machine: Machine, limits: SearchLimits) -> tuple[Layout, ...]:
    """List the splits that VMs of a kind allow; a part of a GPU works alone, so a copy there has just one."""
    nodes = 1 if machine.fractional else limits.usable_nodes(machine)
    return enumerate_layouts(partition, machine.ranks, limits.max_tensor_ranks(machine), nodes)


class Attempt(NamedTuple):
    """A split on so many VMs, with so many copies, and what the fullest GPU needs and may use, bytes.

    The attempt of the least key is the best: what fits before what does not, and of that what a VM's own memory can
    load before what it cannot; then fewer VMs, or the least need. `stage` is ZeRO's, None where nothing is trained.
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

    @property
    def gpus(self) -> int:
        """How many GPUs work."""
        return self.parallelism.gpus * self.replicas


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """How fast an option is; None is unknown. A step is one token of every sequence; hours are the job's."""

    tokens_per_s: Range
    min_step_s: float | None = None
    step_s: Range | None = None
    max_tokens_per_s: float | None = None
    hours: Range | None = None

    @property
    def time(self) -> float:
        """What options are ordered by: the hours of the job, else the seconds of a step; infinity where unknown."""
        known = self.hours or self.step_s
        return known.mid if known is not None else inf
