"""What a quantization in blocks asks of a cut: each tensor rank must get whole blocks."""

from typing import NamedTuple

from app.fit.formulas.architecture import Architecture
from app.fit.formulas.matrices import weight_matrices
from app.fit.formulas.parameters import missing_for_count
from app.fit.formulas.quantization import Quantization, fp8_blocks
from app.fit.formulas.weight_matrices import Stores


class Blocked(NamedTuple):
    """A width that tensor ranks share, the block that divides it, and the least that a rank gets of it."""

    width: int
    block: int
    least: int = 0

    def why_not(self, tensor: int) -> str | None:
        """Say why so many ranks cannot share it; None where they can."""
        each = max(self.width // tensor, self.least)
        if tensor == 1 or each % self.block == 0:
            return None
        return f"{tensor} tensor ranks get {each} of a width of {self.width}, and its blocks are of {self.block}"


_BY_INPUTS = ("down_proj", "o_proj")
"""Matrices whose columns are dealt out to the ranks; of the others the rows are."""
_ON_ALL = ("q_a_proj", "kv_a_proj_with_mqa", "lm_head")
"""Matrices that every rank has whole, and the output layer, which is padded."""


def quantization_of(shape: Architecture, dtype: str | None) -> Quantization | None:
    """How the weights are stored in a type: as released, or as in the vendor's FP8 checkpoint; else None.

    FP8 that an engine makes of 16-bit weights when it loads them has a scale for each matrix, and no blocks.
    """
    released = shape.released
    if dtype is not None and released is not None and released.dtype == dtype:
        return released.quantization
    return fp8_blocks(shape.fp8_block) if dtype == "fp8" and shape.fp8_block is not None else None


def blocked_widths(shape: Architecture, quantization: Quantization | None) -> tuple[Blocked, ...]:
    """List the widths that must be cut into whole blocks; none where none has, or the shape is unknown.

    Source: vLLM, validate_fp8_block_shape and Fp8MoEMethod.create_weights.
    """
    if quantization is None or quantization.block is None or missing_for_count(shape):
        return ()
    stores, found = Stores(quantization), set()
    for matrix in weight_matrices(shape):
        short = matrix.name.rpartition(".")[2]
        for coding, _ in () if short in _ON_ALL else stores.codings(matrix):
            if coding is None or min(coding.block) <= 1:
                continue
            least = shape.head_dim or 0 if short in {"k_proj", "v_proj"} else 0
            inward = short in _BY_INPUTS
            found.add(Blocked(matrix.columns if inward else matrix.rows, coding.block[1 if inward else 0], least))
    return tuple(sorted(found))
