"""In which type a model's weights are, who says so, and how many bytes they take."""

from dataclasses import dataclass

from app.fit.estimator.model import Model
from app.fit.estimator.workload import InferenceWorkload
from app.fit.formulas.architecture import ParameterCount, missing_for_count
from app.fit.formulas.assumptions import DEFAULTS, Ledger
from app.fit.formulas.memory import BITS, FILE_BITS, FULL_BITS, QUANTIZED_BITS
from app.fit.formulas.quantities import Range, certain
from app.fit.formulas.quantization import EXPERTS, IN_LAYERS, Coding, Group, Quantization, Source
from app.fit.formulas.weight_matrices import Stored, stored_bytes, stored_evenly

FILE_SPREAD = 0.02
"""How far a quantized model may be from the bits of the measured one."""
KEPT = 0.05
"""Which share of the parameters may stay in 16 bits where the shape does not say."""
WIDEST_INT4 = 4.5
"""Bits of a 4-bit weight with a 16-bit scale for each 32: compressed-tensors, as Kimi K2 Thinking is released."""

FIELD = "inference.dtype"


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightsType:
    """The type that the weights are counted in, who says so, and what that is; None where only bits or bytes are."""

    dtype: str | None
    source: Source
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """Bytes of one copy's weights, their type, and which shares of the bytes routed experts and embeddings have."""

    bytes: Range
    type: WeightsType
    experts: float = 0.0
    embeddings: float = 0.0


def weights_type(model: Model, load: InferenceWorkload, ledger: Ledger) -> WeightsType:
    """Say in which type the weights are: as asked, else as released, else in 16 bits, which is noted."""
    if load.weight_bytes is not None:
        return WeightsType(dtype=None, source="request", detail="inference.weight_bytes")
    if load.bits_per_weight is not None:
        return WeightsType(dtype=None, source="request", detail=f"{load.bits_per_weight:g} bits a weight")
    if load.dtype is not None:
        return WeightsType(dtype=load.dtype, source="request", detail=FIELD)
    released = model.shape.released
    if released is not None:
        ledger.note(FIELD, released.dtype, released.why)
        return WeightsType(dtype=released.dtype, source=released.source, detail=released.why)
    dtype, why = DEFAULTS[FIELD]
    ledger.note(FIELD, dtype, why)
    return WeightsType(dtype=dtype, source="default", detail=why)


def weights_of(model: Model, load: InferenceWorkload, ledger: Ledger) -> Weights | None:
    """Count the bytes of the weights; None where the model is unknown, which is noted."""
    kind, count = weights_type(model, load, ledger), model.count
    if load.weight_bytes is not None:
        return _given(kind, load.weight_bytes, count)
    if count is None:
        ledger.lacks("inference.weights", ("architecture.params",))
        return None
    if kind.dtype is None:
        return _shares(kind, stored_evenly(count, load.bits_per_weight or 0.0))
    return _shares(kind, *stored_in(model, count, kind.dtype))


def _given(kind: WeightsType, size: float, count: ParameterCount | None) -> Weights:
    if count is None:
        return Weights(bytes=certain(size), type=kind)
    return Weights(
        bytes=certain(size),
        type=kind,
        experts=count.experts / count.total,
        embeddings=count.embeddings / count.total,
    )


def _shares(kind: WeightsType, stored: Stored, size: Range | None = None) -> Weights:
    return Weights(
        bytes=size or certain(stored.total),
        type=kind,
        experts=stored.experts / stored.total,
        embeddings=stored.embeddings / stored.total,
    )


def stored_in(model: Model, count: ParameterCount, dtype: str) -> tuple[Stored, Range]:
    """Say what a model takes in a type: as released where that is its type, else as such types are usually stored."""
    released = model.shape.released
    if released is not None and released.dtype == dtype and released.quantization is not None:
        return _as_released(model, count, released.quantization)
    if dtype in FULL_BITS and FULL_BITS[dtype] >= FULL_BITS["bf16"]:
        stored = stored_evenly(count, FULL_BITS[dtype])
        return stored, certain(stored.total)
    if dtype in FILE_BITS:
        stored = stored_evenly(count, FILE_BITS[dtype])
        return stored, Range(
            low=stored.total * (1 - FILE_SPREAD), mid=stored.total, high=stored.total * (1 + FILE_SPREAD)
        )
    stored = stored_bytes(model.shape, count, requantized(model, dtype))
    return stored, _range(model, count, dtype, stored)


def _as_released(model: Model, count: ParameterCount, quantization: Quantization) -> tuple[Stored, Range]:
    stored = stored_bytes(model.shape, count, quantization)
    counted = not missing_for_count(model.shape)
    if counted and quantization.settled:
        return stored, certain(stored.total)
    spread = FILE_SPREAD if counted else KEPT
    return stored, Range(low=stored.total * (1 - spread), mid=stored.total, high=stored.total * (1 + spread))


def requantized(model: Model, dtype: str) -> Quantization:
    """How a model is usually stored in a type that it was not released in.

    All matrices of its layers are quantized; MXFP4 is used of the routed experts only, where there are any.
    """
    experts_only = dtype == "mxfp4" and model.shape.experts is not None
    return Quantization(
        method="requested",
        groups=(Group(coding=Coding(dtype=dtype, bits=BITS[dtype])),),
        parts=EXPERTS if experts_only else IN_LAYERS,
    )


def _range(model: Model, count: ParameterCount, dtype: str, stored: Stored) -> Range:
    """At least, even embeddings are quantized; at most, attention is not, or scales are the finest there are."""
    low = count.total * BITS[dtype] / 8 * (1 - FILE_SPREAD if dtype in QUANTIZED_BITS else 1)
    if missing_for_count(model.shape):
        more = max(KEPT * count.total - count.embeddings, 0.0)
        return Range(low=low, mid=stored.total, high=stored.total + more * (16 - BITS[dtype]) / 8)
    most = stored.total * (1 + FILE_SPREAD)
    if dtype in {"fp8", "int8"} or (model.shape.experts is not None and dtype != "mxfp4"):
        bits = WIDEST_INT4 if dtype in {"int4", "fp4"} else BITS[dtype]
        group = Group(coding=Coding(dtype=dtype, bits=bits))
        others = Quantization(method="requested", groups=(group,), parts=IN_LAYERS - {"attention"})
        most = max(most, stored_bytes(model.shape, count, others).total)
    elif dtype in {"int4", "fp4"}:
        most += (count.total - count.embeddings) * (WIDEST_INT4 - BITS[dtype]) / 8
    return Range(low=min(low, stored.total), mid=stored.total, high=most)
