"""Models that are no decoders: the fields of a workload that they take, the memory of a pass, the speed of encoders."""

from dataclasses import replace

from app.fit.estimator.serving import ServingSetup
from app.fit.estimator.serving_speed import ServingSpeed, serving_speed
from app.fit.estimator.workload import InferenceWorkload
from app.fit.formulas.architecture import Architecture, ModelKind
from app.fit.formulas.assumptions import Assumptions, InvalidWorkload
from app.fit.formulas.memory import KvCache
from app.fit.formulas.quantities import Range

_OF_OUTPUT = (
    "inference.kv_dtype",
    "inference.kv_bytes_per_value",
    "inference.kv_bytes_per_sequence",
    "inference.kv_budget_gib",
    "inference.block_tokens",
    "inference.output_tokens",
    "inference.max_batched_tokens",
    "inference.engine",
    "inference.expert_parallel",
    "inference.data_parallel_attention",
)
REFUSED: dict[ModelKind, tuple[str, ...]] = {
    "encoder": _OF_OUTPUT,
    "diffusion": (*_OF_OUTPUT, "inference.context_tokens", "inference.prompt_tokens"),
}
"""Fields of a workload that do not apply to a kind of model."""

PASSAGE_TOKENS = 512
"""Tokens of a sequence that an encoder reads, where a request does not say."""

ENCODER_SHARE = Range(low=0.05, mid=0.3, high=0.7)
"""Share of the peak that an encoder reaches. An assumption, as no run was compared: short batches launch more than they
compute, long ones reach what decoders do in reading prompts (0.5 to 0.7).
"""

ENCODER_FAMILY = "encoder_rate"
"""What an encoder's speed would be compared with: no measurement yet, so its evidence has n = 0."""

_NO_SPEED = {
    "speech": "no speed is estimated, as none was compared; memory has the audio of each sequence",
    "diffusion": "no speed is estimated, as none was compared; memory has a range for the images in the making",
    "encoder": "read only: no KV cache, no output; the speed is an assumption that no run was compared with",
}


def workload_of_kind(shape: Architecture, workload: InferenceWorkload, assumptions: Assumptions) -> InferenceWorkload:
    """Return the workload as the kind of model takes it; raises InvalidWorkload for a field that does not apply.

    Models other than decoders have one copy on each GPU unless the request says otherwise.
    """
    kind = shape.kind
    if kind == "decoder":
        return workload
    for field in REFUSED.get(kind, ()):
        if getattr(workload, field.removeprefix("inference.")) is not None:
            raise InvalidWorkload(field, f"does not apply: the model is of kind {kind}")
    assumptions.record("architecture.kind", kind, _NO_SPEED[kind])
    if kind == "encoder":
        workload = _with_passage(shape, workload, assumptions)
    if kind == "speech" and workload.context_tokens is None and workload.kv_bytes_per_sequence is None:
        why = "the longest text of an audio"
        longest = assumptions.record("inference.context_tokens", shape.max_positions, why)
        workload = replace(workload, context_tokens=longest)
    return replace(
        workload,
        tensor_parallel=workload.tensor_parallel or 1,
        pipeline_parallel=workload.pipeline_parallel or 1,
    )


def _with_passage(shape: Architecture, workload: InferenceWorkload, assumptions: Assumptions) -> InferenceWorkload:
    """Return the workload of an encoder with the tokens of a sequence as its context."""
    tokens = workload.context_tokens or workload.prompt_tokens
    if tokens is None:
        usual = min(PASSAGE_TOKENS, shape.max_positions or PASSAGE_TOKENS)
        tokens = assumptions.record("inference.context_tokens", usual, "tokens of a sequence that is read: a passage")
    return replace(workload, context_tokens=tokens, prompt_tokens=None)


def refuse_other_kinds(shape: Architecture, field: str) -> None:
    """Raise InvalidWorkload for what is asked of decoders only: a service level, a training."""
    if shape.kind != "decoder":
        raise InvalidWorkload(field, f"is of models that generate text, and this one is of kind {shape.kind}")


def speed_of_kind(setup: ServingSetup, weights: Range | None, cache: KvCache | None) -> ServingSpeed | None:
    """Return the speed of a workload; None where it is unknown, and of kinds whose speed is not estimated."""
    kind = setup.model.shape.kind
    if kind == "decoder":
        return serving_speed(setup, weights, cache)
    return encoder_speed(setup, weights) if kind == "encoder" and weights is not None else None


def encoder_speed(setup: ServingSetup, weights: Range) -> ServingSpeed | None:
    """Return the time of one batch of all copies, B sequences of S tokens; None where the peak is unknown.

    2 (N_act - N_embeddings) + 4 L S w FLOPs a token, over the peak; at least the time to read the weights. L layers,
    w width of all heads. The expected time is that over ENCODER_SHARE.
    """
    gpus, shape, count = setup.gpus, setup.model.shape, setup.model.count
    if gpus.peak_tflops is None or count is None or shape.missing_fields("layers", "heads", "head_dim"):
        return None
    layers, heads, head_dim = shape.require("layers", "heads", "head_dim")
    tokens = setup.workload.context_tokens or PASSAGE_TOKENS
    flops = 2 * (count.active - count.embeddings) + 4.0 * layers * tokens * heads * head_dim
    ranks = setup.deployment.parallelism.gpus
    least = flops * tokens * setup.sequences / (gpus.peak_tflops * 1e12 * ranks)
    if gpus.bandwidth_gb_per_s is not None:
        least = max(least, weights.mid / (gpus.bandwidth_gb_per_s * 1e9 * ranks))
    return ServingSpeed(
        least_s=least,
        expected_s=ENCODER_SHARE.divide(least),
        tokens_per_step=float(tokens * setup.concurrency),
        first_token_s=None,
        departures=(),
        family=ENCODER_FAMILY,
    )
