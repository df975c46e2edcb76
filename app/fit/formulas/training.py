"""Memory that training needs on each GPU, for any parallelism and number of data-parallel shards."""

from dataclasses import dataclass, replace

from app.fit.formulas.activations import ActivationPolicy, LayerWidths, MicroBatch, activation_bytes, logits_bytes
from app.fit.formulas.inference import runtime_overhead
from app.fit.formulas.memory import Parallelism, largest_gpu_share
from app.fit.formulas.optimizer import ModelStates, Offload, Recipe, model_states
from app.fit.formulas.quantities import ZERO, Range

BUCKET_ELEMENTS = 5e8
"""Elements of a reduction bucket: DeepSpeed's default."""
MAX_LIVE_PARAMS = 1e9
"""Most parameters that ZeRO-3 keeps gathered: DeepSpeed's default."""
WEIGHT_SHARDING_STAGE = 3
"""The first ZeRO stage that shards weights, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardPass:
    """One training step: widths and number of the layers, the micro-batch, and which activations are stored."""

    layer: LayerWidths
    layers: int
    batch: MicroBatch
    policy: ActivationPolicy
    vocab: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainedModel:
    """A model as it is trained, the same on every candidate of a placement.

    `params` are trained, `frozen_bytes` is the base that is not (LoRA), `gathered_params` are all parameters including
    the base's. `embeddings` is their share of the parameters, 0 to 1; `static_bytes` is what every GPU holds besides,
    whatever is sharded.
    """

    params: float
    recipe: Recipe
    stage: int = 0
    offload: Offload = "none"
    frozen_bytes: float = 0.0
    static_bytes: float = 0.0
    layers: int | None = None
    embeddings: float = 0.0
    largest_layer: float = 0.0
    gathered_params: float = 0.0
    forward_pass: ForwardPass | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingNeed:
    """Memory that the fullest GPU needs, bytes."""

    states: ModelStates
    frozen: float
    static: float
    activations: Range
    buffers: Range
    overhead: Range

    @property
    def total(self) -> Range:
        """Sum of all parts."""
        return self.activations + self.buffers + self.overhead + (self.states.total + self.frozen + self.static)


def training_need(model: TrainedModel, parallelism: Parallelism, shards: int) -> TrainingNeed:
    """Return what the fullest of t p D GPUs needs: states + frozen base + activations + buffers + overhead.

    States are exact for p = 1, else a bound; the rest are estimates. t, p by the parallelism, D shards.
    Sources: those of `optimizer.model_states`, `activations`, and of the constants above.
    """
    share = largest_gpu_share(parallelism, layers=model.layers, embeddings=model.embeddings)
    return TrainingNeed(
        states=model_states(
            model.params * share, model.recipe, stage=model.stage, shards=shards, offload=model.offload
        ),
        frozen=model.frozen_bytes * share / (shards if model.stage >= WEIGHT_SHARDING_STAGE else 1),
        static=model.static_bytes,
        activations=activation_peak(model.forward_pass, parallelism) if model.forward_pass else ZERO,
        buffers=sharding_buffers(model, parallelism) if shards > 1 else ZERO,
        overhead=runtime_overhead(parallelism.gpus * shards),
    )


def activation_peak(step: ForwardPass, parallelism: Parallelism) -> Range:
    """Return the most bytes that activations take on any GPU: on the first stage, or on the last with its logits.

    The logits take 4 bytes a value (32 bits), usually 6 (a 16-bit copy), at most 10 (their gradient).  An estimate.
    """
    policy = replace(step.policy, tensor=parallelism.tensor, pipeline=parallelism.pipeline)
    kept = activation_bytes(step.layer, step.layers, step.batch, policy)
    in_32_bits = logits_bytes(step.vocab, step.batch, parallelism.tensor) if step.vocab else 0.0
    logits = Range(low=in_32_bits, mid=in_32_bits * 1.5, high=in_32_bits * 2.5)
    if parallelism.pipeline == 1:
        return kept + logits
    # The last stage has only one micro-batch in flight, but computes the logits.
    last_policy = replace(policy, pipeline=1, chunks=1)
    last = activation_bytes(step.layer, -(-step.layers // parallelism.pipeline), step.batch, last_policy) + logits
    return Range(low=max(kept.low, last.low), mid=max(kept.mid, last.mid), high=max(kept.high, last.high))


def sharding_buffers(model: TrainedModel, parallelism: Parallelism) -> Range:
    """Return the bytes of sharding's transient buffers: a bucket of gradients, in stage 3 also gathered weights.

    Gathered are from two layers up to 10^9 parameters.  An estimate. Sources: DeepSpeed's defaults (5e8 elements a
    bucket, 1e9 live parameters); FSDP gathers the next layer while one is computed.
    """
    if model.stage == 0:
        return ZERO
    bucket = 2 * min(BUCKET_ELEMENTS, model.params / parallelism.gpus)
    if model.stage < WEIGHT_SHARDING_STAGE:
        return Range(low=0.0, mid=bucket, high=bucket)
    params = max(model.gathered_params, model.params) / parallelism.gpus
    two_layers = min(4 * model.largest_layer / parallelism.tensor, 2 * params)
    return Range(
        low=two_layers, mid=bucket + two_layers, high=bucket + max(2 * min(MAX_LIVE_PARAMS, params), two_layers)
    )
