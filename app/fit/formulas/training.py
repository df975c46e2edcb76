"""Memory that training needs on each GPU, for any parallelism and number of data-parallel shards."""

from dataclasses import dataclass, replace

from app.fit.formulas.activations import (
    ActivationPolicy,
    CrossEntropy,
    LayerWidths,
    MicroBatch,
    activation_bytes,
    loss_bytes,
)
from app.fit.formulas.inference import runtime_overhead
from app.fit.formulas.memory import Parallelism, largest_gpu_share
from app.fit.formulas.optimizer import ModelStates, Offload, Recipe, model_states
from app.fit.formulas.quantities import ZERO, Range

BUCKET_ELEMENTS = 5e8
"""Elements of a reduction bucket: DeepSpeed's default."""
MAX_LIVE_PARAMS = 1e9
"""Most parameters that ZeRO-3 keeps gathered: DeepSpeed's default."""
LEAST_OVERHEAD = 0.05 * 2**30
"""Bytes beside PyTorch's allocator at the least: published peaks are those of `torch.cuda.max_memory_reserved`."""
FRAGMENTATION = 1.1
"""How much more of activations an allocator reserves than is in use, at most. A GPU that is nearly full has less of it.

ZeRO, arXiv 1910.02054, section 6.3, saw up to 30 % without expandable segments.
"""
UNQUANTIZED_BYTES = 2.0
"""Bytes a weight from which on it can have a gradient."""
WEIGHT_SHARDING_STAGE = 3
"""The first ZeRO stage that shards weights, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardPass:
    """One training step: widths and number of the layers, the micro-batch, and which activations are stored.

    `cross_entropy` is how the loss is computed, as `cross_entropy_given` or as usual.
    """

    layer: LayerWidths
    layers: int
    batch: MicroBatch
    policy: ActivationPolicy
    vocab: int | None = None
    cross_entropy: CrossEntropy = "full"
    cross_entropy_given: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainedModel:
    """A model as it is trained, the same on every candidate of a placement.

    `params` are trained, `frozen_bytes` is the base that is not (LoRA), `gathered_params` are all parameters including
    the base's, `output_params` those of the output layer. `quantized_copies` are the bytes of the copies in the
    precision that each of these but the embeddings has; adapters themselves are computed in 16 bits. `dequantized` are
    the bytes in 16 bits of the matrix of a quantized base that is computed with. `embeddings` is their share of
    `gathered_params`, 0 to 1; `static_bytes` is what every GPU holds besides, whatever is sharded.
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
    output_params: float = 0.0
    quantized_copies: float = 0.0
    dequantized: Range = ZERO
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


def training_need(
    model: TrainedModel, parallelism: Parallelism, shards: int, activations: Range | None = None
) -> TrainingNeed:
    """Return what the fullest of t p D GPUs needs: states + frozen base + activations + buffers + overhead.

    States are exact for p = 1, else a bound; the rest are estimates. t, p by the parallelism, D shards. `activations`
    are those of `activations_of`, where they are known already.
    Sources: those of `optimizer.model_states`, `activations`, and of the constants above.
    """
    share = largest_gpu_share(parallelism, layers=model.layers, embeddings=model.embeddings)
    overhead = runtime_overhead(parallelism.gpus * shards)
    return TrainingNeed(
        states=model_states(
            model.params * share, model.recipe, stage=model.stage, shards=shards, offload=model.offload
        ),
        frozen=model.frozen_bytes * share / (shards if model.stage >= WEIGHT_SHARDING_STAGE else 1),
        static=model.static_bytes,
        activations=activations_of(model, parallelism) if activations is None else activations,
        buffers=(sharding_buffers(model, parallelism, shards) if shards > 1 else ZERO)
        + quantized_copies(model, parallelism, share, shards)
        + model.dequantized.times(1 / parallelism.tensor),
        overhead=replace(overhead, low=min(LEAST_OVERHEAD, overhead.low)),
    )


def activations_of(model: TrainedModel, parallelism: Parallelism) -> Range:
    """Return the bytes that activations take on the fullest GPU, however states are sharded; an estimate."""
    return activation_peak(model.forward_pass, parallelism) if model.forward_pass else ZERO


def activation_peak(step: ForwardPass, parallelism: Parallelism) -> Range:
    """Return the most bytes that activations take on any GPU: on the first stage, or on the last with its logits.

    An estimate. Where it is not said how the loss is computed, the range is from fused to full.
    """
    policy = replace(step.policy, tensor=parallelism.tensor, pipeline=parallelism.pipeline)
    kept = activation_bytes(step.layer, step.layers, step.batch, policy)
    logits = _loss_bytes(step, parallelism.tensor)
    if parallelism.pipeline == 1:
        return _fragmented(kept + logits)
    # The last stage has only one micro-batch in flight, but computes the logits.
    last_policy = replace(policy, pipeline=1, chunks=1)
    last = activation_bytes(step.layer, -(-step.layers // parallelism.pipeline), step.batch, last_policy) + logits
    most = Range(low=max(kept.low, last.low), mid=max(kept.mid, last.mid), high=max(kept.high, last.high))
    return _fragmented(most)


def _fragmented(size: Range) -> Range:
    return Range(low=size.low, mid=size.mid, high=FRAGMENTATION * size.high)


def _loss_bytes(step: ForwardPass, tensor: int) -> Range:
    if not step.vocab:
        return ZERO
    hidden, vocab, batch = step.layer.hidden, step.vocab, step.batch
    usual = loss_bytes(hidden, vocab, batch, tensor, step.cross_entropy)
    if step.cross_entropy_given:
        return usual
    least, most = (loss_bytes(hidden, vocab, batch, tensor, kind) for kind in ("fused", "full"))
    return Range(low=least.low, mid=usual.mid, high=most.high)


def sharding_buffers(model: TrainedModel, parallelism: Parallelism, shards: int) -> Range:
    """Return the bytes of sharding's transient buffers: a bucket of gradients, in stage 3 also gathered weights.

    Gathered are one layer (nothing is prefetched), usually two, and up to 10^9 parameters; a frozen base in its own
    type, and with it the output layer in 16 bits, at most all embeddings: FSDP gathers them together as the root where
    only layers are wrapped (accelerate's default). At most gradients of a 16-bit base are held as if it were not frozen
    (PyTorch's notes on FSDP, on units with adapters and frozen weights).
    An estimate. Sources: DeepSpeed's defaults (5e8 elements a bucket, 1e9 live parameters); FSDP gathers the next layer
    while one is computed.
    """
    if model.stage == 0:
        return ZERO
    bucket = 2 * min(BUCKET_ELEMENTS, model.params / parallelism.gpus)
    if model.stage < WEIGHT_SHARDING_STAGE:
        return Range(low=0.0, mid=bucket, high=bucket)
    params = max(model.gathered_params, model.params) / parallelism.gpus
    width = model.frozen_bytes / model.gathered_params if model.frozen_bytes and model.gathered_params else 2.0
    two_layers = min(2 * width * model.largest_layer / parallelism.tensor, width * params)
    if not model.frozen_bytes:
        most = max(width * min(MAX_LIVE_PARAMS, params), two_layers)
        return Range(low=two_layers / 2, mid=bucket + two_layers, high=bucket + most)
    most = max(width * min(MAX_LIVE_PARAMS, params), two_layers + 2 * model.embeddings * params)
    unfrozen = 2 * params / shards if width >= UNQUANTIZED_BYTES else 0.0
    output = 2 * model.output_params / parallelism.tensor
    return Range(low=two_layers / 2, mid=bucket + two_layers + output, high=bucket + most + unfrozen)


def quantized_copies(model: TrainedModel, parallelism: Parallelism, share: float, shards: int) -> Range:
    """Return the bytes of the weights' copies in the precision, for both directions of a matrix product.

    Of all weights of a GPU, a frozen base's included, or of two layers where weights are sharded; none where 16-bit
    weights are quantized at each use. An estimate. Source: Transformer Engine's documentation on FP8 and MXFP8.
    """
    if not model.quantized_copies:
        return ZERO
    params = model.gathered_params * share * (1 - model.embeddings)
    if model.stage >= WEIGHT_SHARDING_STAGE and shards > 1:
        params = min(params, 2 * model.largest_layer / parallelism.tensor)
    copies = model.quantized_copies * params
    return Range(low=0.0, mid=copies, high=copies)
