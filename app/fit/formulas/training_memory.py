"""Memory that training needs on each GPU, for any parallelism and number of data-parallel shards.

Activations are what training stores of the forward pass for the backward pass, per layer and in total.
"""

from dataclasses import dataclass, replace
from typing import Literal

from app.fit.formulas.memory import Parallelism, largest_gpu_share
from app.fit.formulas.optimizer import ModelStates, Offload, Recipe, model_states
from app.fit.formulas.quantities import GIB, ZERO, Range, single_value
from app.fit.formulas.training_speed import Precision

Recompute = Literal["none", "selective", "full"]
Formula = Literal["korthikanti", "modern", "zero"]

EAGER_HIDDEN_STATES = 28
"""Hidden states that one layer of Llama-3.1-8B stores in eager code: Bekman, Machine Learning Engineering."""

EAGER_SPREAD = 1.4
"""How many times that other models store: the same book measured 24 to 48 copies."""

FUSED_SHARE = 0.8
"""What compiled code that fuses element-wise operations stores at least, as a share of the formula."""

SELECTIVE_SHARE = Range(low=0.4, mid=0.5, high=0.8)
"""What selective recomputation keeps of a modern layer: half, as torchtitan measured with FSDP2 and compile.

Llama 3.1 8B, two sequences of 8,192 tokens, 77.0 GiB on 8 and 62.0 GiB on 128 H100 (benchmarks/llama3_h100_202412).
"""

QUANTIZED_INPUT_BYTES = Range(low=0.0, mid=4.0, high=6.0)
"""Bytes of each input of a 4-bit or 8-bit matrix of a frozen base, beside what a layer of 16-bit matrices stores.

bitsandbytes stores the input in 16 bits for the backward pass (MatMul4Bit), and PEFT computes norms, whose outputs most
of them are, in 32 (prepare_model_for_kbit_training); torchtune's NF4 stores neither.
"""

INPUT_BYTES = {"bf16": 2.0, "fp8": 1.0, "fp8_block": 1.0, "mxfp8": 33 / 32, "nvfp4": 9 / 16}
"""Bytes that a stored input of a matrix product takes by precision, with its scales: Transformer Engine stores it
quantized for the backward pass.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerWidths:
    """The widths of a layer: hidden h, heads a, KV heads x head_dim, MLP intermediate f."""

    hidden: int
    heads: int
    kv_width: int
    intermediate: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MicroBatch:
    """One micro-batch: b sequences of s tokens."""

    sequence_tokens: int
    micro_batch: int = 1

    @property
    def tokens(self) -> int:
        """Tokens of the micro-batch."""
        return self.sequence_tokens * self.micro_batch


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivationPolicy:
    """Which activations are stored or recomputed, split over t tensor ranks and p pipeline stages of m chunks.

    FlashAttention stores what `selective` stores. `hidden_state_copies` overrides the formula where the number of
    hidden states that a layer stores is known. With a `quantized_base` the inputs of its matrices are stored, too.
    """

    formula: Formula = "modern"
    recompute: Recompute = "none"
    tensor: int = 1
    sequence_parallel: bool = False
    pipeline: int = 1
    chunks: int = 1
    micro_batches: int | None = None
    value_bytes: int = 2
    precision: Precision = "bf16"
    hidden_state_copies: float | None = None
    quantized_base: bool = False

    @property
    def sequence_ranks(self) -> int:
        """Ranks that share the activations tensor parallelism does not split: t with sequence parallelism, else 1."""
        return self.tensor if self.sequence_parallel else 1


def hidden_state_bytes(hidden: int, batch: MicroBatch, value_bytes: int = 2) -> float:
    """Return the bytes of one hidden state: s b h c; exact. c bytes a value."""
    return float(batch.tokens) * hidden * value_bytes


def checkpoint_bytes(hidden: int, layers: int, batch: MicroBatch, policy: ActivationPolicy) -> float:
    """Return the bytes of the inputs of all layers: s b h c L, over t with sequence parallelism; exact.

    Source: Korthikanti et al., arXiv 2205.05198, table 2 (full recomputation).
    """
    return hidden_state_bytes(hidden, batch, policy.value_bytes) * layers / policy.sequence_ranks


def logits_bytes(vocab: int, batch: MicroBatch, tensor: int = 1) -> float:
    """Return the bytes of the logits in 32 bits: 4 s b V / t; exact. In practice a 16-bit copy is stored, too."""
    return 4.0 * batch.tokens * vocab / tensor


CrossEntropy = Literal["full", "chunked", "fused"]

LOGIT_BYTES: dict[str, Range] = {
    "full": Range(low=6.0, mid=12.0, high=16.0),
    "chunked": Range(low=0.5, mid=2.0, high=4.0),
}
"""Bytes for each logit while the loss is computed.

full: the logits in 16 bits, in 32, their logarithms and their gradient; torchtitan measured 10 (compiled) to 16 on
Llama 3.1 8B.  chunked: in 16 bits at most, and one of eight chunks in 32: torchtune, CEWithChunkedOutputLoss.
"""

FUSED_BYTES = 8.0
"""Bytes for each value of a hidden state with a fused loss: a chunk of logits as large as a hidden state in 32 and 16
bits, and its gradient. Source: Liger Kernel, arXiv 2410.10989, section 3.2, on FusedLinearCrossEntropy.
"""


def loss_bytes(hidden: int, vocab: int, batch: MicroBatch, tensor: int, kind: CrossEntropy) -> Range:
    """Return the bytes that the logits of the loss take on one tensor rank; an estimate.

    s b V / t logits of 12 bytes (full) or 2 (chunked), or 8 s b h (fused), never more than in chunks.
    """
    logits = batch.tokens * vocab / tensor
    chunked = LOGIT_BYTES["chunked"].times(logits)
    if kind != "fused":
        return LOGIT_BYTES[kind].times(logits)
    fused = FUSED_BYTES * batch.tokens * hidden
    return Range(low=0.0, mid=min(fused, chunked.mid), high=min(2 * fused, chunked.high))


def korthikanti_layer_bytes(layer: LayerWidths, batch: MicroBatch, policy: ActivationPolicy) -> float:
    """Return the bytes that a GPT layer stores: s b h (10 + 24 / t + 5 a s / (h t)), over t with sequence parallelism.

    34 is 18 + 4 f / h where f is not 4h; selective recomputation drops 5 a s / h; in 32 bits the sum is 66 + 9 a s / h,
    as dropout masks stay one byte.  Exact for MHA, GELU, dropout and LayerNorm.
    Source: Korthikanti et al., arXiv 2205.05198, table 2; f: Megatron-LM, theoretical_memory_usage.py.
    """
    width = policy.value_bytes
    unsplit = 4 * width + 2
    split = (4 + 2 * layer.intermediate / layer.hidden) * width
    scores = (2 * width + 1) * layer.heads * batch.sequence_tokens / layer.hidden
    if policy.recompute != "none":
        scores = 0.0
    return batch.tokens * layer.hidden * (unsplit / policy.sequence_ranks + (split + scores) / policy.tensor)


def modern_layer_bytes(layer: LayerWidths, batch: MicroBatch, policy: ActivationPolicy) -> Range:
    """Return the bytes that a layer with gated MLP, FlashAttention and no dropout stores; an estimate.

    s b (12 h + 4 k d + 8 f) in 16 bits; compiled code stores down to 80 % of it, eager code up to 1.4 x 28 hidden
    states. Of these, 3 h + f values are inputs of matrices, stored in the precision. Selective recomputation keeps
    half. 10 of 34 parts are not split by tensor parallelism, as in a GPT layer.
    Derived here; 28 was measured on Llama-3.1-8B (Bekman, Machine Learning Engineering, training/performance).
    """
    narrower = 2.0 - INPUT_BYTES[policy.precision]
    values: float = 12 * layer.hidden + 4 * layer.kv_width + 8 * layer.intermediate
    values -= narrower * (3 * layer.hidden + layer.intermediate)
    eager = max(values, 2 * EAGER_HIDDEN_STATES * layer.hidden)
    scale = batch.tokens * policy.value_bytes / 2 * (10 / 34 / policy.sequence_ranks + 24 / 34 / policy.tensor)
    stored = Range(low=FUSED_SHARE * values, mid=values, high=EAGER_SPREAD * eager).times(scale)
    return SELECTIVE_SHARE.times(stored.mid) if policy.recompute == "selective" else stored


def zero_layer_bytes(layer: LayerWidths, batch: MicroBatch, policy: ActivationPolicy) -> float:
    """Return the bytes that a layer stores by the ZeRO paper: 12 s b h values; an estimate for GPT-2.

    Source: Rajbhandari et al., arXiv 1910.02054, section 3.2.
    """
    return 12 * hidden_state_bytes(layer.hidden, batch, policy.value_bytes) / policy.tensor


def layer_bytes(layer: LayerWidths, batch: MicroBatch, policy: ActivationPolicy) -> Range:
    """Return the bytes that one layer stores, by the policy's formula or its known number of copies; an estimate."""
    if policy.hidden_state_copies is not None:
        whole = policy.hidden_state_copies * hidden_state_bytes(layer.hidden, batch, policy.value_bytes)
        return single_value(whole / policy.tensor)
    if policy.formula == "modern":
        stored = modern_layer_bytes(layer, batch, policy)
    else:
        by_formula = korthikanti_layer_bytes if policy.formula == "korthikanti" else zero_layer_bytes
        stored = single_value(by_formula(layer, batch, policy))
    if policy.quantized_base:
        # Inputs of queries, keys and values (h), of the output (h), of gate and up (h), and of down (f).
        values = batch.tokens * (3 * layer.hidden + layer.intermediate) / policy.tensor
        stored += QUANTIZED_INPUT_BYTES.times(values)
    return stored


def layers_in_flight(layers: int, policy: ActivationPolicy) -> float:
    """Return how many layers' activations the first pipeline stage holds: L, since p micro-batches are in flight.

    x (1 + (p - 1) / (p m)) with m interleaved chunks; x min(1, n / p) with n micro-batches and no interleaving.
    Exact.  Source: Korthikanti et al., arXiv 2205.05198, section 4.2.3 and appendix C.
    """
    stages = policy.pipeline
    if policy.chunks > 1:
        return layers * (1 + (stages - 1) / (stages * policy.chunks))
    in_flight = stages if policy.micro_batches is None else min(stages, policy.micro_batches)
    return layers * in_flight / stages


def activation_bytes(layer: LayerWidths, layers: int, batch: MicroBatch, policy: ActivationPolicy) -> Range:
    """Return the bytes that all layers store on the first stage, without logits; an estimate.

    Full recomputation stores the inputs of the layers, and the working set of the one layer being recomputed.
    """
    in_flight = layers_in_flight(layers, policy)
    single_layer = layer_bytes(layer, batch, policy)
    if policy.recompute != "full":
        return single_layer.times(in_flight)
    return single_layer + checkpoint_bytes(layer.hidden, 1, batch, policy) * in_flight


def selective_saving(layer: LayerWidths, batch: MicroBatch) -> float:
    """Return the share of a GPT layer's activations that selective recomputation saves; exact.

    5 a s / h of 34 + 5 a s / h.

    Source: Korthikanti et al., arXiv 2205.05198, section 5.
    """
    whole = korthikanti_layer_bytes(layer, batch, ActivationPolicy(formula="korthikanti"))
    kept = korthikanti_layer_bytes(layer, batch, ActivationPolicy(formula="korthikanti", recompute="selective"))
    return 1 - kept / whole


CUDA_CONTEXT = Range(low=0.5 * GIB, mid=0.75 * GIB, high=1.0 * GIB)
"""CUDA context and kernels on each GPU: Bekman, Machine Learning Engineering, measured 0.47 to 0.92 GiB."""
NCCL_BUFFERS = Range(low=1.0 * GIB, mid=1.25 * GIB, high=1.5 * GIB)
"""NCCL's buffers on each GPU of several: the same book."""
BUCKET_ELEMENTS = 5e8
"""Elements of a reduction bucket: DeepSpeed's default."""
MAX_LIVE_PARAMS = 1e9
"""Most parameters that ZeRO-3 keeps gathered: DeepSpeed's default."""
LEAST_OVERHEAD = 0.05 * GIB
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
    params, stage = model.params * share, model.stage
    states = model_states(params, model.recipe, stage=stage, shards=shards, offload=model.offload)
    overhead = CUDA_CONTEXT + (NCCL_BUFFERS if parallelism.gpus * shards > 1 else ZERO)
    return TrainingNeed(
        states=states,
        frozen=model.frozen_bytes * share / (shards if model.stage >= WEIGHT_SHARDING_STAGE else 1),
        static=model.static_bytes,
        activations=activations_of(model, parallelism) if activations is None else activations,
        buffers=(sharding_buffers(model, parallelism, shards) if shards > 1 else ZERO)
        + quantized_copies(model, parallelism, share, shards)
        + model.dequantized.times(1 / parallelism.tensor),
        overhead=replace(overhead, low=min(LEAST_OVERHEAD, overhead.low)),
    )


def activations_of(model: TrainedModel, parallelism: Parallelism) -> Range:
    """Return the most bytes that activations take on any GPU: on the first stage, or on the last with its logits.

    An estimate, however states are sharded. Where it is not said how the loss is computed, the range is from fused to
    full.
    """
    step = model.forward_pass
    if step is None:
        return ZERO
    policy = replace(step.policy, tensor=parallelism.tensor, pipeline=parallelism.pipeline)
    kept = activation_bytes(step.layer, step.layers, step.batch, policy)
    logits = _loss_bytes(step, parallelism.tensor)
    if parallelism.pipeline == 1:
        most = kept + logits
    else:
        # The last stage has only one micro-batch in flight, but computes the logits.
        last_policy = replace(policy, pipeline=1, chunks=1)
        last = activation_bytes(step.layer, -(-step.layers // parallelism.pipeline), step.batch, last_policy) + logits
        most = Range(low=max(kept.low, last.low), mid=max(kept.mid, last.mid), high=max(kept.high, last.high))
    return replace(most, high=FRAGMENTATION * most.high)


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
