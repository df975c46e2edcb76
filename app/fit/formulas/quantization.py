"""Quantized checkpoints: the format of each group of weight matrices with its scales, and what stays in 16 bits."""

from dataclasses import dataclass
from math import ceil
from typing import Literal

WeightPart = Literal["attention", "mlp", "shared_experts", "experts", "lm_head"]
"""The part of a model that a weight matrix belongs to; embeddings, norms, routers, biases and sinks are in none."""

DtypeSource = Literal["request", "preset", "quantization_config", "torch_dtype", "default"]
"""Where the type of the weights comes from: the request, the preset, a field of the configuration, or a default."""

LAYER_PARTS: frozenset[WeightPart] = frozenset({"attention", "mlp", "shared_experts", "experts"})
ALL_PARTS: frozenset[WeightPart] = LAYER_PARTS | {"lm_head"}
EXPERT_PARTS: frozenset[WeightPart] = frozenset({"experts"})


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightFormat:
    """How a matrix is stored: bits per weight, and bits of the scale (with its zero point) that each block shares.

    `block` is the rows and columns of a block; 0 is all of them: (1, 0) is a scale for each row, (0, 0) one for the
    matrix, (1, 128) one for 128 weights of a row.
    """

    dtype: str
    bits: float
    scale_bits: float = 0.0
    block: tuple[int, int] = (0, 0)

    def stored_bytes(self, rows: int, columns: int) -> float:
        """Return the bytes of a matrix: (r c bits + ceil(r / b_r) ceil(c / b_c) scale bits) / 8; exact."""
        down, across = self.block
        scales = (ceil(rows / down) if down else 1) * (ceil(columns / across) if across else 1)
        return (rows * columns * self.bits + scales * self.scale_bits) / 8


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantizationGroup:
    """Matrices stored in one format; `targets` names them; without targets, all that no other group names."""

    format: WeightFormat
    targets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantization:
    """How a checkpoint stores its weights: a matrix of `parts` has the format of the first group that names it.

    Matrices that `unquantized` names, and everything outside of `parts` (embeddings, norms, routers, biases, sinks),
    are in 16 bits. `exact_size` is false where engines repack the weights, so that their size in memory is an estimate.
    """

    method: str
    groups: tuple[QuantizationGroup, ...]
    parts: frozenset[WeightPart] = LAYER_PARTS
    unquantized: tuple[str, ...] = ()
    exact_size: bool = True

    @property
    def dtype(self) -> str:
        """Type of most weights: that of the group without targets, else of the first group."""
        return next((group for group in self.groups if not group.targets), self.groups[0]).format.dtype

    @property
    def block(self) -> tuple[int, int] | None:
        """Rows and columns of the blocks that share a scale; None where a block is a row, or part of one.

        A tensor rank must get whole blocks: vLLM rejects a width that is not a multiple of the block.
        """
        blocks = (group.format.block for group in self.groups)
        return next((block for block in blocks if block[0] > 1 and block[1] > 1), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasedWeights:
    """The type that a model's weights are published in, where that is stated, and their quantization (None: none)."""

    dtype: str
    source: DtypeSource
    quantization: Quantization | None = None
    why: str = "the type it is released in"


FP8_SCALE_BITS = 32


def fp8_blocks(block: int) -> Quantization:
    """Return FP8 weights with a 32-bit scale for each square block, as DeepSeek-V3 stores them (arXiv 2412.19437)."""
    coding = WeightFormat(dtype="fp8", bits=8, scale_bits=FP8_SCALE_BITS, block=(block, block))
    return Quantization(method="fp8", groups=(QuantizationGroup(format=coding),))


def fp8_tensors() -> Quantization:
    """Return FP8 weights with one scale for each matrix, whose size is negligible."""
    return Quantization(method="fp8", groups=(QuantizationGroup(format=WeightFormat(dtype="fp8", bits=8)),))


MXFP4 = WeightFormat(dtype="mxfp4", bits=4, scale_bits=8, block=(1, 32))
"""Blocks of 32 with an 8-bit scale: OCP Microscaling Formats 1.0."""
NVFP4 = WeightFormat(dtype="nvfp4", bits=4, scale_bits=8, block=(1, 16))
"""Blocks of 16 with an 8-bit scale; the additional scale of the matrix is negligible."""


def mxfp4_experts() -> Quantization:
    """Return routed experts in MXFP4 and everything else in 16 bits, as gpt-oss is released (arXiv 2508.10925)."""
    return Quantization(method="mxfp4", groups=(QuantizationGroup(format=MXFP4),), parts=EXPERT_PARTS)
