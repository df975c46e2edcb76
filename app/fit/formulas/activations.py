"""Activations: what training stores of the forward pass for the backward pass, per layer and in total."""

from dataclasses import dataclass
from typing import Literal

from app.fit.formulas.quantities import Range, single_value
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
    if policy.recompute != "selective":
        return stored
    share = SELECTIVE_SHARE
    return Range(low=stored.mid * share.low, mid=stored.mid * share.mid, high=stored.mid * share.high)


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
    return stored + quantized_input_bytes(layer, batch, policy) if policy.quantized_base else stored


def quantized_input_bytes(layer: LayerWidths, batch: MicroBatch, policy: ActivationPolicy) -> Range:
    """Return the bytes of the inputs of a layer's quantized matrices: s b (3 h + f) of 4 bytes / t; an estimate.

    Those of queries, keys and values (h), of the output (h), of gate and up (h), and of down (f).
    """
    values = batch.tokens * (3 * layer.hidden + layer.intermediate) / policy.tensor
    return QUANTIZED_INPUT_BYTES.times(values)


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
    one = layer_bytes(layer, batch, policy)
    if policy.recompute != "full":
        return one.times(in_flight)
    return one + checkpoint_bytes(layer.hidden, 1, batch, policy) * in_flight


def selective_saving(layer: LayerWidths, batch: MicroBatch) -> float:
    """Return the share of a GPT layer's activations that selective recomputation saves; exact.

    5 a s / h of 34 + 5 a s / h.

    Source: Korthikanti et al., arXiv 2205.05198, section 5.
    """
    whole = korthikanti_layer_bytes(layer, batch, ActivationPolicy(formula="korthikanti"))
    return (
        1
        - korthikanti_layer_bytes(layer, batch, ActivationPolicy(formula="korthikanti", recompute="selective")) / whole
    )
