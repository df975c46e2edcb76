"""Speculative decoding: a draft proposes tokens, and the model verifies them in one step.

A step of a sequence with k proposed tokens, of which a are accepted on average, computes k + 1 tokens and yields 1 + a.
Nothing says how many a draft gets accepted but measuring it on the text in question: a is what the request states, and
all figures of speed rest on it. Sources: Leviathan et al., arXiv 2211.17192, section 3; multi-token prediction:
DeepSeek-V3, arXiv 2412.19437, section 2.2.
"""

from dataclasses import replace
from math import ceil

from app.fit.estimator.model import Model
from app.fit.estimator.weights import Draft, Weights
from app.fit.estimator.workload import InferenceWorkload, Speculation
from app.fit.formulas.architecture import Architecture, typical_shape
from app.fit.formulas.assumptions import Assumptions, InvalidWorkload
from app.fit.formulas.quantities import GIB
from app.fit.formulas.serving_speed import StepWork

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


def check_speculation(workload: InferenceWorkload) -> None:
    """Raise InvalidWorkload where more tokens are accepted than proposed, or several drafts are given."""
    given = workload.speculative
    if given is None:
        return
    if given.accepted_tokens_per_step > proposed(given):
        accepted = f"accepted_tokens_per_step, {given.accepted_tokens_per_step:g}"
        detail = f"{accepted}, is more than draft_tokens, {given.draft_tokens}"
        raise InvalidWorkload("inference.speculative", detail)
    if sum(one is not None for one in drafts(given)) > 1:
        raise InvalidWorkload("inference.speculative", "has draft_params, draft_weight_gib or mtp_layers: give one")


def with_own_draft(workload: InferenceWorkload, shape: Architecture, assumptions: Assumptions) -> InferenceWorkload:
    """Return the workload with the model's own layers of multi-token prediction as its draft, where it names none."""
    given = workload.speculative
    if given is None or shape.mtp_layers is None or any(one is not None for one in drafts(given)):
        return workload
    why = "the model's own layers of multi-token prediction; draft_weight_gib 0 is a draft without weights"
    layers = assumptions.record("inference.speculative.mtp_layers", shape.mtp_layers, why)
    return replace(workload, speculative=replace(given, mtp_layers=layers))


def drafts(speculation: Speculation) -> tuple[float | None, ...]:
    """Return what says which draft proposes; of these, a request gives one or none."""
    return speculation.draft_params, speculation.draft_weight_gib, speculation.mtp_layers


def find_draft(model: Model, weights: Weights, speculation: Speculation) -> Draft:
    """Return the draft; raises InvalidWorkload where the model's own layers cannot be counted.

    A layer of multi-token prediction has the content of the model's largest layer, one with experts where there are
    any, and a projection of 2 h x h; in the checkpoints of some types also an embedding and an output layer. The last
    three are in 16 bits. DeepSeek-V3: 15.4 GB for one, so that 673 GB are 689.
    """
    if speculation.mtp_layers is not None:
        return _mtp_draft(model, weights, speculation.mtp_layers)
    if speculation.draft_params is not None:
        layers = typical_shape(Architecture(params=speculation.draft_params)).layers or HEADLESS_LAYERS
        return Draft(bytes=float(DRAFT_BYTES_PER_PARAM * speculation.draft_params), expert_bytes=0.0, layers=layers)
    return Draft(bytes=(speculation.draft_weight_gib or 0.0) * GIB, expert_bytes=0.0, layers=HEADLESS_LAYERS)


def _mtp_draft(model: Model, weights: Weights, layers: int) -> Draft:
    shape, count = model.shape, model.count
    if count is None or not count.largest_layer or shape.hidden is None:
        raise InvalidWorkload("inference.speculative", "mtp_layers: the layers of the model cannot be counted")
    total = weights.bytes.mid
    in_layers = total * (1 - weights.embeddings) / (count.total - count.embeddings)
    own_embeddings = count.embeddings if shape.mtp_embeddings else 0
    layer = count.largest_layer * in_layers + 2 * (2 * shape.hidden**2 + own_embeddings)
    routed = total * weights.experts / shape.layers_with_experts if shape.layers_with_experts else 0.0
    return Draft(bytes=layers * layer, expert_bytes=layers * routed, layers=layers)


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
