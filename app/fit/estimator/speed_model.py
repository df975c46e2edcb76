"""What the speed of serving depends on beside GPUs: the lengths of a request, and bytes and FLOPs of a model."""

from dataclasses import dataclass, replace
from typing import NamedTuple

from app.fit.estimator.model import Model
from app.fit.estimator.serving import ServingSetup
from app.fit.estimator.workload import InferenceWorkload
from app.fit.formulas.architecture import Architecture, ParameterCount, missing_for_count, typical_shape
from app.fit.formulas.quantities import Range

DEQUANTIZED_BITS = 14
"""Fewer average bits a weight than this are quantized: 16 less what stays in 16 bits."""
TYPICAL_EXPERTS = (128, 8)
"""Experts of a layer and of a token where only the active parameters are known: Qwen3, gpt-oss (128 and 4)."""


class Lengths(NamedTuple):
    """Tokens of a request: of its prompt and its output, and how many it keeps on average while it generates.

    The first `cached` tokens of the prompt were read for an earlier request, and are not read again.
    """

    prompt: int
    output: int
    kept: float
    cached: int = 0

    @property
    def read(self) -> int:
        """Tokens of the prompt that are computed."""
        return self.prompt - self.cached


def request_lengths(workload: InferenceWorkload) -> Lengths | None:
    """Return the lengths of a request; None where none is given.

    Without prompt and output there are as many tokens out as in, and the context is the average of what is kept: a
    prompt of two thirds of it. Without an output it is as long as the prompt.
    """
    context, prompt, output = workload.context_tokens, workload.prompt_tokens, workload.output_tokens
    if prompt is None:
        if context is None:
            return None
        prompt = max(1, round(context * 2 / 3) if output is None else context - output // 2)
    output = prompt if output is None else output
    given = workload.prompt_tokens is not None and workload.output_tokens is not None
    average = prompt + output / 2
    kept = average if context is None or (given and average < context) else float(context)
    cached = min(prompt - 1, round(prompt * (workload.prefix_cache_hit or 0.0)))
    return Lengths(prompt, output, kept, cached)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeedModel:
    """What the speed of a model depends on, the same on all GPUs: bytes of weights, FLOPs of a token, layers, experts.

    `dense_bytes` are read for every token, without the input embedding; of `expert_bytes` only the experts that are
    chosen; `expert_flops` of `token_flops` are theirs. `of_typical_shape`: layers and widths are those of a usual model
    with that many parameters.
    """

    dense_bytes: float
    expert_bytes: float
    experts: int
    experts_per_token: int
    quantized: bool
    token_flops: float
    expert_flops: float
    layers: int
    latent_layers: int
    routed: int
    hidden: int
    of_typical_shape: bool

    @property
    def expert_layers(self) -> int:
        """Layers with experts."""
        return self.routed // self.experts_per_token if self.experts else 0


def speed_model(setup: ServingSetup, weights: Range) -> SpeedModel:
    """Return what the speed of a model depends on."""
    model, shares = setup.model, setup.weights
    shape, known = _complete_shape(model, weights)
    experts, experts_per_token, expert_share = expert_shares(setup)
    embeddings = shares.embeddings if shares is not None else 0.0
    input_share = 0.0 if shape.tied_embeddings else embeddings / 2
    count = model.count
    input_params = 0.0 if count is None or shape.tied_embeddings else count.embeddings / 2
    params = count.total if count is not None else weights.mid / 2
    layers, hidden = shape.require("layers", "hidden")
    moe_layers = (shape.layers_with_experts if shape.experts is not None else layers) if experts else 0
    return SpeedModel(
        dense_bytes=weights.mid * (1 - expert_share - input_share),
        expert_bytes=weights.mid * expert_share,
        experts=experts,
        experts_per_token=experts_per_token,
        quantized=weights.mid * 8 / params < DEQUANTIZED_BITS,
        token_flops=2 * (count.active - input_params) if count is not None else weights.mid,
        expert_flops=_expert_flops(count, experts_per_token / experts, expert_share) if count and experts else 0.0,
        layers=layers,
        latent_layers=layers if shape.kv_lora_rank is not None else 0,
        routed=moe_layers * experts_per_token,
        hidden=hidden,
        of_typical_shape=not known,
    )


def _expert_flops(count: ParameterCount, used: float, share: float) -> float:
    """Return the FLOPs of a token in its routed experts; of experts that cannot be counted by their share of bytes."""
    return 2 * used * (count.experts or count.total * share)


def _complete_shape(model: Model, weights: Range) -> tuple[Architecture, bool]:
    """Return the architecture with layers and width, and whether they are known: else a usual model's."""
    shape = model.shape
    if not shape.missing_fields("layers", "hidden"):
        return shape, True
    params = model.count.total if model.count is not None else max(1, int(weights.mid / 2))
    return typical_shape(replace(shape, params=params)), False


def expert_shares(setup: ServingSetup) -> tuple[int, int, float]:
    """Return the experts of a layer and of a token, and the experts' share of the bytes; 0, 0, 0 without experts.

    Where the experts cannot be counted, they follow from the active parameters: N - N_act = N_experts (1 - e / E).
    """
    shape, count = setup.model.shape, setup.model.count
    share = setup.weights.experts if setup.weights is not None else 0.0
    if shape.experts and shape.experts_per_token and share:
        return shape.experts, shape.experts_per_token, share
    if count is None or count.active >= count.total or not (shape.experts or missing_for_count(shape)):
        return 0, 0, 0.0
    experts, per_token = shape.experts or TYPICAL_EXPERTS[0], shape.experts_per_token or TYPICAL_EXPERTS[1]
    if experts <= per_token:
        return 0, 0, 0.0
    return experts, per_token, min(0.98, (1 - count.active / count.total) / (1 - per_token / experts))
