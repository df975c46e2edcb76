"""How released weights are stored: the type of each matrix with its scales, and what keeps 16 bits."""

from dataclasses import dataclass
from math import ceil
from typing import Literal

WeightPart = Literal["attention", "mlp", "shared_experts", "experts", "lm_head"]
"""What a weight matrix belongs to; embeddings, norms, routers, biases and sinks are no such matrices."""

DtypeSource = Literal["request", "preset", "quantization_config", "torch_dtype", "default"]
"""Who says in which type the weights are: the request, the preset, a field of the configuration, or nobody."""

LAYER_PARTS: frozenset[WeightPart] = frozenset({"attention", "mlp", "shared_experts", "experts"})
ALL_PARTS: frozenset[WeightPart] = LAYER_PARTS | {"lm_head"}
EXPERT_PARTS: frozenset[WeightPart] = frozenset({"experts"})


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightFormat:
    """How a matrix is stored: bits of a weight, and of the scale (with its zero point) that a block of weights shares.

    `block` are the rows and columns of a block; 0 is all of them: (1, 0) is a scale for each row, (0, 0) one for the
    matrix, (1, 128) one for 128 weights of a row.
    """

    dtype: str
    bits: float
    scale_bits: float = 0.0
    block: tuple[int, int] = (0, 0)

    def stored_bytes(self, rows: int, columns: int) -> float:
        """Say how many bytes a matrix takes: (r c bits + ceil(r / b_r) ceil(c / b_c) scale bits) / 8; exact."""
        down, across = self.block
        scales = (ceil(rows / down) if down else 1) * (ceil(columns / across) if across else 1)
        return (rows * columns * self.bits + scales * self.scale_bits) / 8


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantizationGroup:
    """Matrices that are stored alike; `targets` names them, and where it is empty they are all that have no other."""

    format: WeightFormat
    targets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantization:
    """How a checkpoint stores its weights in fewer bits: the first group that names a matrix of `parts` stores it.

    What `unquantized` names, and all that is no matrix of these parts (embeddings, norms, routers, biases, sinks), is
    in 16 bits. `exact_size` is false where engines repack what is stored, so that its size in memory is an estimate.
    """

    method: str
    groups: tuple[QuantizationGroup, ...]
    parts: frozenset[WeightPart] = LAYER_PARTS
    unquantized: tuple[str, ...] = ()
    exact_size: bool = True

    @property
    def dtype(self) -> str:
        """The type of most weights: that of the group that takes what no other names, else of the first."""
        return next((group for group in self.groups if not group.targets), self.groups[0]).format.dtype

    @property
    def block(self) -> tuple[int, int] | None:
        """Rows and columns of the blocks of weights that share a scale; None where a block is a row, or part of one.

        A tensor rank must get whole blocks: vLLM refuses a width that a block does not divide.
        """
        blocks = (group.format.block for group in self.groups)
        return next((block for block in blocks if block[0] > 1 and block[1] > 1), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleasedWeights:
    """The type that a model's weights are released in, who says so, and how they are quantized; None: they are not."""

    dtype: str
    source: DtypeSource
    quantization: Quantization | None = None
    why: str = "the type it is released in"


FP8_SCALE_BITS = 32


def fp8_blocks(block: int) -> Quantization:
    """Weights in FP8 with a 32-bit scale for each square block, as DeepSeek-V3 stores them (arXiv 2412.19437)."""
    coding = WeightFormat(dtype="fp8", bits=8, scale_bits=FP8_SCALE_BITS, block=(block, block))
    return Quantization(method="fp8", groups=(QuantizationGroup(format=coding),))


def fp8_tensors() -> Quantization:
    """Weights in FP8 with one scale for each matrix, which is nothing."""
    return Quantization(method="fp8", groups=(QuantizationGroup(format=WeightFormat(dtype="fp8", bits=8)),))


MXFP4 = WeightFormat(dtype="mxfp4", bits=4, scale_bits=8, block=(1, 32))
"""Blocks of 32 with an 8-bit scale: OCP Microscaling Formats 1.0."""
NVFP4 = WeightFormat(dtype="nvfp4", bits=4, scale_bits=8, block=(1, 16))
"""Blocks of 16 with an 8-bit scale; and a scale of the matrix, which is nothing."""


def mxfp4_experts() -> Quantization:
    """Routed experts in MXFP4 and all else in 16 bits, as gpt-oss is released (arXiv 2508.10925)."""
    return Quantization(method="mxfp4", groups=(QuantizationGroup(format=MXFP4),), parts=EXPERT_PARTS)
