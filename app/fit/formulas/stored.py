"""How many bytes a model's weights take as they are stored: matrix by matrix, with scales, and what keeps 16 bits."""

from dataclasses import dataclass

from app.fit.formulas.architecture import Architecture
from app.fit.formulas.matrices import weight_matrices
from app.fit.formulas.parameters import ParameterCount, count_parameters, missing_for_count
from app.fit.formulas.quantization import Coding, Part, Quantization
from app.fit.formulas.weight_matrices import Stores


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """Bytes of all weights, and of the routed experts', the embeddings' and the attention's among them."""

    total: float
    experts: float = 0.0
    embeddings: float = 0.0
    attention: float = 0.0


def stored_evenly(count: ParameterCount, bits: float) -> Stored:
    """Every weight in the same bits: N bits / 8; exact."""
    size = bits / 8
    return Stored(total=count.total * size, experts=count.experts * size, embeddings=count.embeddings * size)


def stored_bytes(shape: Architecture, count: ParameterCount, quantization: Quantization) -> Stored:
    """Say what weights take: 2 N bytes, less 2 for each weight of a quantized matrix, more what that matrix takes.

    Exact for what quantizes the matrices of a layer and keeps all else in 16 bits. Where the shape does not say how
    wide they are, all but the embeddings is taken to be quantized. A number of parameters that was stated scales the
    parts. N parameters.
    """
    if missing_for_count(shape):
        return _without_matrices(count, quantization)
    counted = count_parameters(shape)
    share = count.total / counted.total
    parts: dict[Part, float] = {}
    params: dict[Part, int] = {}
    stores = Stores(quantization)
    for matrix in weight_matrices(shape):
        params[matrix.part] = params.get(matrix.part, 0) + matrix.params * matrix.count
        sizes = (_size(coding, matrix.rows, matrix.columns) * many for coding, many in stores.codings(matrix))
        parts[matrix.part] = parts.get(matrix.part, 0.0) + sum(sizes)
    beside = 2 * (counted.total - sum(params.values()))
    outside = 2 * (counted.embeddings - params.get("lm_head", 0)) + parts.get("lm_head", 0.0)
    return Stored(
        total=(beside + sum(parts.values())) * share,
        experts=parts.get("experts", 0.0) * share,
        embeddings=outside * share,
        attention=parts.get("attention", 0.0) * share,
    )


def _size(coding: Coding | None, rows: int, columns: int) -> float:
    return 2.0 * rows * columns if coding is None else coding.stored_bytes(rows, columns)


def _without_matrices(count: ParameterCount, quantization: Quantization) -> Stored:
    coding = next((group for group in quantization.groups if not group.targets), quantization.groups[0]).coding
    down, across = coding.block
    bits = coding.bits + (coding.scale_bits / (down * across) if down and across else 0.0)
    kept = 2.0 * count.embeddings
    return Stored(
        total=(count.total - count.embeddings) * bits / 8 + kept,
        experts=count.experts * bits / 8,
        embeddings=kept,
    )
