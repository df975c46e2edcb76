"""What a model can be divided into: heads, KV heads, widths and their quantization blocks, layers, experts."""

from dataclasses import dataclass
from typing import NamedTuple

from app.fit.formulas.architecture import Architecture, missing_for_count
from app.fit.formulas.memory import Parallelism
from app.fit.formulas.quantization import Quantization, fp8_blocks
from app.fit.formulas.weight_matrices import MatrixFormats, weight_matrices


class BlockedWidth(NamedTuple):
    """A matrix width split over GPUs, the size of its blocks, the least share, and whether it is of an expert."""

    width: int
    block: int
    min_share: int = 0
    of_expert: bool = False

    def misalignment(self, tensor: int) -> str | None:
        """Return why `tensor` ranks cannot split it into whole blocks; None where they can."""
        each = max(self.width // tensor, self.min_share)
        if tensor == 1 or each % self.block == 0:
            return None
        return f"{tensor} tensor ranks get {each} of a width of {self.width}, and its blocks are of {self.block}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionLimits:
    """What a partition must divide (heads, KV heads, layers, widths), and the parallelism that is requested.

    None is unknown or not requested. The latent KV cache of MLA has no KV heads to split. `expert_widths` are those of
    routed experts; `experts` is how many of them can be dealt out over GPUs, None where none can.
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


_ROW_PARALLEL = ("down_proj", "o_proj")
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
    formats, found = MatrixFormats(quantization), set()
    for matrix in weight_matrices(shape):
        unaligned = matrix.on_every_rank or matrix.part == "lm_head"
        for coding, _ in () if unaligned else formats.formats(matrix):
            if coding is None or min(coding.block) <= 1:
                continue
            least = shape.head_dim or 0 if matrix.suffix in {"k_proj", "v_proj"} else 0
            inward = matrix.suffix in _ROW_PARALLEL
            width, block = matrix.columns if inward else matrix.rows, coding.block[1 if inward else 0]
            found.add(BlockedWidth(width, block, least, matrix.part == "experts"))
    return tuple(sorted(found))


def partition_error(partition: PartitionLimits, tensor: int, expert_parts: int | None = None) -> str | None:
    """Return why a layer cannot be split over `tensor` ranks; None where it can.

    Heads are assigned whole, KV heads assigned or replicated whole, and MLP widths divided evenly. Each routed expert
    is cut into `expert_parts`, where these are not as many as the ranks.
    Source: vLLM rejects anything else, vllm/config/model.py and vllm/distributed/utils.py.
    """
    if partition.heads is not None and partition.heads % tensor:
        return f"{tensor} tensor ranks do not divide {partition.heads} heads"
    if partition.kv_heads is not None and partition.kv_heads % tensor and tensor % partition.kv_heads:
        return f"{partition.kv_heads} KV heads can neither be dealt out to nor replicated on {tensor} tensor ranks"
    parts = tensor if expert_parts is None else expert_parts
    for widths, pieces in ((partition.mlp_widths, tensor), (partition.expert_widths, parts)):
        for width in widths:
            if width % pieces:
                return f"{pieces} tensor ranks do not divide the MLP's width {width}"
    return None


def block_error(partition: PartitionLimits, tensor: int, expert_parts: int | None = None) -> str | None:
    """Return why `tensor` ranks cannot get whole quantization blocks; None where they can."""
    parts = tensor if expert_parts is None else expert_parts
    errors = (one.misalignment(parts if one.of_expert else tensor) for one in partition.blocked_widths)
    return next((error for error in errors if error is not None), None)


def can_partition(partition: PartitionLimits, tensor: int, expert_parts: int | None = None) -> bool:
    """Whether a layer can be split over `tensor` ranks."""
    return (
        partition_error(partition, tensor, expert_parts) is None
        and block_error(partition, tensor, expert_parts) is None
    )
