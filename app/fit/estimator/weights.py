"""The type of a served model's weights, where it comes from, how many bytes they take, and the draft beside them.

A step of a sequence with k proposed tokens, of which a are accepted on average, computes k + 1 tokens and yields 1 + a.
Nothing says how many a draft gets accepted but measuring it on the text in question: a is what the request states, and
all figures of speed rest on it. Sources: Leviathan et al., arXiv 2211.17192, section 3; multi-token prediction:
DeepSeek-V3, arXiv 2412.19437, section 2.2.
"""

from dataclasses import dataclass, replace
from math import ceil

from app.fit.estimator.model import Model
from app.fit.estimator.workload import InferenceWorkload, Speculation
from app.fit.formulas.architecture import Architecture, ParameterCount, missing_for_count, typical_shape
from app.fit.formulas.quantities import DEFAULTS, GIB, Assumptions, InvalidWorkload, Range, plus_minus, single_value
from app.fit.formulas.quantization import (
    BITS,
    EXPERT_PARTS,
    FILE_BITS,
    FULL_BITS,
    LAYER_PARTS,
    QUANTIZED_BITS,
    Quantization,
    QuantizationGroup,
    WeightFormat,
)
from app.fit.formulas.serving_speed import StepWork
from app.fit.formulas.weight_matrices import (
    StoredBytes,
    first_and_last_layer,
    quantized_bytes,
    uniform_bytes,
    weight_matrices,
)
from app.fit.results import WeightsType

FILE_SPREAD = 0.02
"""Relative spread of a quantized model around the bits that were measured on another one."""
UNQUANTIZED_SHARE = 0.05
"""Share of the parameters that may stay in 16 bits where the architecture is incomplete."""
MAX_INT4_BITS = 4.5
"""Bits of a 4-bit weight with a 16-bit scale for each 32: compressed-tensors, as Kimi K2 Thinking is released."""

DTYPE_FIELD = "inference.dtype"


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A draft as the speed of a step depends on it: bytes, of them those of routed experts, and layers."""

    bytes: float
    expert_bytes: float
    layers: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """Bytes of one copy's weights, their type, and the shares in the bytes of parts of them.

    The parts are the routed experts, the embeddings, and what every tensor rank holds whole. The bytes of a `draft` for
    speculative decoding are among them.
    """

    bytes: Range
    type: WeightsType
    experts: float = 0.0
    embeddings: float = 0.0
    replicated: float = 0.0
    draft: Draft | None = None


def weights_type(model: Model, workload: InferenceWorkload, assumptions: Assumptions) -> WeightsType:
    """Return the type of the weights: as requested, else as released, else 16 bits; the latter two are recorded."""
    if workload.weight_bytes is not None:
        return WeightsType(dtype=None, source="request", detail="inference.weight_bytes")
    if workload.bits_per_weight is not None:
        return WeightsType(dtype=None, source="request", detail=f"{workload.bits_per_weight:g} bits a weight")
    if workload.dtype is not None:
        return WeightsType(dtype=workload.dtype, source="request", detail=DTYPE_FIELD)
    released = model.shape.released
    if released is not None:
        if released.dtype is not None:
            assumptions.record(DTYPE_FIELD, released.dtype, released.why)
        return WeightsType(dtype=released.dtype, source=released.source, detail=released.why)
    dtype, why = DEFAULTS[DTYPE_FIELD]
    assumptions.record(DTYPE_FIELD, dtype, why)
    return WeightsType(dtype=dtype, source="default", detail=why)


def count_weights(model: Model, workload: InferenceWorkload, assumptions: Assumptions) -> Weights | None:
    """Return the bytes of the weights: as stated, as of the checkpoint, or counted by bits or type.

    None where the model is unknown, which is recorded.
    """
    kind, count, released = weights_type(model, workload, assumptions), model.count, model.shape.released
    given: float | None = workload.weight_bytes
    if given is None and released is not None and kind.source == "safetensors":
        given = released.size
    if count is None:
        if given is not None:
            return Weights(bytes=single_value(given), type=kind)
        assumptions.mark_missing("inference.weights", ("architecture.params",))
        return None
    stored = uniform_bytes(count, workload.bits_per_weight or 8.0)
    size = single_value(stored.total)
    if kind.dtype is not None:
        stored, size = weights_in_dtype(model, count, kind.dtype)
    is_counted_by_type = given is None and kind.dtype is not None
    return Weights(
        bytes=size.within(model.counted_within(count.total)) if given is None else single_value(given),
        type=kind,
        experts=stored.experts / stored.total,
        embeddings=stored.embeddings / stored.total,
        replicated=_replicated(model.shape, count, stored if is_counted_by_type else None),
    )


def _replicated(shape: Architecture, count: ParameterCount, stored: StoredBytes | None) -> float:
    """Return the share of the bytes that every tensor rank holds whole: weights of attention.

    Without `stored` bytes these are as wide as all weights are on average.
    """
    if missing_for_count(shape):
        return 0.0
    matrices, width = weight_matrices(shape), 1.0
    if stored is not None:
        attention = sum(matrix.params * matrix.count for matrix in matrices if matrix.part == "attention")
        average = stored.total / count.total
        of_attention = stored.attention / attention if stored.attention and attention else average
        width = of_attention * count.total / stored.total
    whole = sum(matrix.params * matrix.count for matrix in matrices if matrix.on_every_rank)
    return min(1.0, whole * width / count.total)


def weights_in_dtype(model: Model, count: ParameterCount, dtype: str) -> tuple[StoredBytes, Range]:
    """Return the bytes of a model in a type: as released where that is its type, else as the type is usually stored."""
    released = model.shape.released
    if released is not None and released.dtype == dtype and released.quantization is not None:
        stored, counted = quantized_bytes(model.shape, count, released.quantization), not missing_for_count(model.shape)
        is_exact, spread = counted and released.quantization.exact_size, FILE_SPREAD if counted else UNQUANTIZED_SHARE
        return stored, single_value(stored.total) if is_exact else plus_minus(stored.total, spread)
    if dtype in FULL_BITS and FULL_BITS[dtype] >= FULL_BITS["bf16"]:
        stored = uniform_bytes(count, FULL_BITS[dtype])
        return stored, single_value(stored.total)
    if dtype in FILE_BITS:
        stored = uniform_bytes(count, FILE_BITS[dtype])
        return stored, plus_minus(stored.total, FILE_SPREAD)
    stored = quantized_bytes(model.shape, count, typical_quantization(model, dtype))
    return stored, _range_of_requantized(model, count, dtype, stored)


def typical_quantization(model: Model, dtype: str) -> Quantization:
    """Return how a model is usually stored in a type that it was not released in.

    All matrices of its layers are quantized; MXFP4 and INT4 apply to the routed experts only, where there are any: so
    gpt-oss and Kimi K2 Thinking are released, the latter with a 16-bit scale for each 32 weights.
    """
    experts_only = dtype in {"mxfp4", "int4"} and model.shape.experts is not None
    bits = MAX_INT4_BITS if experts_only and dtype == "int4" else BITS[dtype]
    return Quantization(
        groups=(QuantizationGroup(format=WeightFormat(dtype=dtype, bits=bits)),),
        parts=EXPERT_PARTS if experts_only else LAYER_PARTS,
    )


def _range_of_requantized(model: Model, count: ParameterCount, dtype: str, stored: StoredBytes) -> Range:
    """Return the range of a requantized model: from embeddings quantized, too, to more that is left in 16 bits.

    Attention, and the first and the last layer: so Llama-3.1-405B-FP8 and Gemma-4-31B-NVFP4 are released.
    """
    low = count.total * BITS[dtype] / 8 * (1 - FILE_SPREAD if dtype in QUANTIZED_BITS else 1)
    if missing_for_count(model.shape):
        more = max(UNQUANTIZED_SHARE * count.total - count.embeddings, 0.0)
        return Range(low=low, mid=stored.total, high=stored.total + more * (16 - BITS[dtype]) / 8)
    most = stored.total * (1 + FILE_SPREAD)
    if dtype in {"fp8", "int8", "nvfp4"} or (model.shape.experts is not None and dtype != "mxfp4"):
        bits = MAX_INT4_BITS if dtype in {"int4", "fp4"} else BITS[dtype]
        group = QuantizationGroup(format=WeightFormat(dtype=dtype, bits=bits))
        ends = first_and_last_layer(model.shape)
        others = Quantization(groups=(group,), parts=LAYER_PARTS - {"attention"}, unquantized=ends)
        most = max(most, quantized_bytes(model.shape, count, others).total)
    elif dtype in {"int4", "fp4"}:
        most += (count.total - count.embeddings) * (MAX_INT4_BITS - BITS[dtype]) / 8
    return Range(low=min(low, stored.total), mid=stored.total, high=most)


DRAFT_BYTES_PER_PARAM = 2
"""A draft model is served in 16 bits."""
HEADLESS_LAYERS = 1
"""Layers of a draft of which only the bytes are known: EAGLE's and Medusa's heads have one."""


def proposed(speculation: Speculation | None) -> int:
    """Return the tokens that are proposed for a sequence in a step: as given, else as few as can be accepted."""
    if speculation is None:
        return 0
    return speculation.draft_tokens or max(1, ceil(speculation.accepted_tokens_per_step))


def yielded(speculation: Speculation | None) -> float:
    """Return the tokens of a sequence that a step yields on average: the accepted ones, and one of the model's own."""
    return 1 + (speculation.accepted_tokens_per_step if speculation is not None else 0.0)


def with_own_draft(workload: InferenceWorkload, shape: Architecture, assumptions: Assumptions) -> InferenceWorkload:
    """Return the workload with the model's own layers of multi-token prediction as its draft, where it names none.

    Where the model has none either, the draft is assumed to have no weights.

    Raises InvalidWorkload where more tokens are accepted than proposed, or several drafts are given.
    """
    given = workload.speculative
    if given is None:
        return workload
    if given.accepted_tokens_per_step > proposed(given):
        accepted = f"accepted_tokens_per_step, {given.accepted_tokens_per_step:g}"
        detail = f"{accepted}, is more than draft_tokens, {given.draft_tokens}"
        raise InvalidWorkload("inference.speculative", detail)
    drafts = sum(draft is not None for draft in (given.draft_params, given.draft_weight_gib, given.mtp_layers))
    if drafts > 1:
        raise InvalidWorkload("inference.speculative", "has draft_params, draft_weight_gib or mtp_layers: give one")
    if drafts:
        return workload
    if shape.mtp_layers is None:
        gib = assumptions.get(given.draft_weight_gib, "inference.speculative.draft_weight_gib")
        return replace(workload, speculative=replace(given, draft_weight_gib=gib))
    why = "the model's own layers of multi-token prediction; draft_weight_gib 0 is a draft without weights"
    layers = assumptions.record("inference.speculative.mtp_layers", shape.mtp_layers, why)
    return replace(workload, speculative=replace(given, mtp_layers=layers))


def find_draft(model: Model, weights: Weights, speculation: Speculation) -> Draft:
    """Return the draft; raises InvalidWorkload where the model's own layers cannot be counted.

    A layer of multi-token prediction has the content of the model's largest layer, one with experts where there are
    any, and a projection of 2 h x h; in the checkpoints of some types also an embedding and an output layer. The last
    three are in 16 bits. DeepSeek-V3: 15.4 GB for one, so that 673 GB are 689.
    """
    shape, count, mtp_layers = model.shape, model.count, speculation.mtp_layers
    if mtp_layers is not None:
        if count is None or not count.largest_layer or shape.hidden is None:
            raise InvalidWorkload("inference.speculative", "mtp_layers: the layers of the model cannot be counted")
        total = weights.bytes.mid
        in_layers = total * (1 - weights.embeddings) / (count.total - count.embeddings)
        own_embeddings = count.embeddings if shape.mtp_embeddings else 0
        layer = count.largest_layer * in_layers + 2 * (2 * shape.hidden**2 + own_embeddings)
        routed = total * weights.experts / shape.layers_with_experts if shape.layers_with_experts else 0.0
        return Draft(bytes=mtp_layers * layer, expert_bytes=mtp_layers * routed, layers=mtp_layers)
    if speculation.draft_params is not None:
        layers = typical_shape(Architecture(params=speculation.draft_params)).layers or HEADLESS_LAYERS
        return Draft(bytes=float(DRAFT_BYTES_PER_PARAM * speculation.draft_params), expert_bytes=0.0, layers=layers)
    return Draft(bytes=(speculation.draft_weight_gib or 0.0) * GIB, expert_bytes=0.0, layers=HEADLESS_LAYERS)


def with_draft(weights: Weights, draft: Draft) -> Weights:
    """Return the weights with those of the draft."""
    size = weights.bytes + draft.bytes
    before = weights.bytes.mid / size.mid
    return replace(
        weights,
        bytes=size,
        experts=weights.experts * before + draft.expert_bytes / size.mid,
        embeddings=weights.embeddings * before,
        replicated=weights.replicated * before,
        draft=draft,
    )


def with_draft_passes(work: StepWork, draft: Draft, passes: int, bandwidth: float, touched: float) -> StepWork:
    """Return the work of a step with that of proposing: `passes` passes through the draft, one after the other.

    Of these the first reads the draft with the model's other weights; `touched` is the share of experts that one pass
    reads. `bandwidth` is that of all tensor ranks, bytes a second.
    """
    again = passes - 1
    return work._replace(
        dense_read_s=work.dense_read_s + again * (draft.bytes - draft.expert_bytes) / bandwidth,
        expert_read_s=work.expert_read_s + again * draft.expert_bytes * touched / bandwidth,
        layers=work.layers + passes * draft.layers,
        doublings=work.doublings * (1 + passes * draft.layers / work.layers),
    )
