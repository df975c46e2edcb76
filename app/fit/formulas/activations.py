"""Activations: what training keeps of the forward pass for the backward pass, per layer and in all."""

from dataclasses import dataclass
from typing import Literal

from app.fit.formulas.quantities import Range, plus_minus, single_value

Recompute = Literal["none", "selective", "full"]
Formula = Literal["korthikanti", "modern", "zero"]

HIDDEN_STATE_COPIES = 28
"""Hidden states that one layer of Llama-3.1-8B keeps in eager code: Bekman, Machine Learning Engineering."""

HIDDEN_STATE_SPREAD = 0.4
"""The same book measured 24 to 48 copies on other models."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerWidths:
    """The widths of a layer: hidden h, heads a, KV heads x head_dim, MLP intermediate f."""

    hidden: int
    heads: int
    kv_width: int
    intermediate: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MicroBatch:
    """What passes through at a time: b sequences of s tokens."""

    sequence_tokens: int
    micro_batch: int = 1

    @property
    def tokens(self) -> int:
        """Tokens of the micro-batch."""
        return self.sequence_tokens * self.micro_batch


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivationPolicy:
    """How activations are kept: which are computed anew, cut over t ranks, over p stages of m chunks.

    FlashAttention keeps what `selective` keeps. `copies` says how many hidden states a layer keeps, if that is known.
    """

    formula: Formula = "modern"
    recompute: Recompute = "none"
    tensor: int = 1
    sequence_parallel: bool = False
    pipeline: int = 1
    chunks: int = 1
    micro_batches: int | None = None
    value_bytes: int = 2
    hidden_state_copies: float | None = None

    @property
    def sequence_ranks(self) -> int:
        """Over how many ranks what tensor parallelism does not cut is cut: t with sequence parallelism, else 1."""
        return self.tensor if self.sequence_parallel else 1


def hidden_state_bytes(hidden: int, batch: MicroBatch, value_bytes: int = 2) -> float:
    """Say what one hidden state takes, bytes: s b h c; exact. c bytes a value."""
    return float(batch.tokens) * hidden * value_bytes


def checkpoint_bytes(hidden: int, layers: int, batch: MicroBatch, policy: ActivationPolicy) -> float:
    """Say what the inputs of all layers take, bytes: s b h c L, over t with sequence parallelism; exact.

    Source: Korthikanti et al., arXiv 2205.05198, table 2 (full recomputation).
    """
    return hidden_state_bytes(hidden, batch, policy.value_bytes) * layers / policy.sequence_ranks


def logits_bytes(vocab: int, batch: MicroBatch, tensor: int = 1) -> float:
    """Say what the logits take in 32 bits, bytes: 4 s b V / t; exact. In practice a 16-bit copy is kept, too."""
    return 4.0 * batch.tokens * vocab / tensor


def korthikanti_layer_bytes(layer: LayerWidths, batch: MicroBatch, policy: ActivationPolicy) -> float:
    """Say what a GPT layer keeps, bytes: s b h (10 + 24 / t + 5 a s / (h t)), over t with sequence parallelism.

    34 is 18 + 4 f / h where f is not 4h; selective recomputation drops 5 a s / h; in 32 bits the sum is 66 + 9 a s / h,
    as dropout masks stay one byte.  Exact for MHA, GELU, dropout and LayerNorm.
    Source: Korthikanti et al., arXiv 2205.05198, table 2; f: Megatron-LM, theoretical_memory_usage.py.
    """
    width = policy.value_bytes
    always = 4 * width + 2
    cut = (4 + 2 * layer.intermediate / layer.hidden) * width
    scores = (2 * width + 1) * layer.heads * batch.sequence_tokens / layer.hidden
    if policy.recompute != "none":
        scores = 0.0
    return batch.tokens * layer.hidden * (always / policy.sequence_ranks + (cut + scores) / policy.tensor)


def modern_layer_bytes(layer: LayerWidths, batch: MicroBatch, policy: ActivationPolicy) -> Range:
    """Say what a layer with a gated MLP, FlashAttention and no dropout keeps, bytes; an estimate of +- 40 %.

    The larger of s b (12 h + 4 k d + 8 f) and 28 hidden states, in 16 bits; 10 of 34 parts are not cut by tensor
    parallelism, as in a GPT layer.  Derived here; 28 was measured on Llama-3.1-8B (Bekman, Machine Learning
    Engineering, training/performance).
    """
    values = 12 * layer.hidden + 4 * layer.kv_width + 8 * layer.intermediate
    whole = batch.tokens * max(values, 2 * HIDDEN_STATE_COPIES * layer.hidden) * policy.value_bytes / 2
    return plus_minus(whole * (10 / 34 / policy.sequence_ranks + 24 / 34 / policy.tensor), HIDDEN_STATE_SPREAD)


def zero_layer_bytes(layer: LayerWidths, batch: MicroBatch, policy: ActivationPolicy) -> float:
    """Say what a layer keeps by the count of the ZeRO paper, bytes: 12 s b h values; an estimate for GPT-2.

    Source: Rajbhandari et al., arXiv 1910.02054, section 3.2.
    """
    return 12 * hidden_state_bytes(layer.hidden, batch, policy.value_bytes) / policy.tensor


def layer_bytes(layer: LayerWidths, batch: MicroBatch, policy: ActivationPolicy) -> Range:
    """Say what one layer keeps by the chosen formula, or by the number of copies that is known; bytes, an estimate."""
    if policy.hidden_state_copies is not None:
        whole = policy.hidden_state_copies * hidden_state_bytes(layer.hidden, batch, policy.value_bytes)
        return single_value(whole / policy.tensor)
    if policy.formula == "modern":
        return modern_layer_bytes(layer, batch, policy)
    by_formula = korthikanti_layer_bytes if policy.formula == "korthikanti" else zero_layer_bytes
    return single_value(by_formula(layer, batch, policy))


def layers_in_flight(layers: int, policy: ActivationPolicy) -> float:
    """Say how many layers' activations the first pipeline stage holds: L, since p micro-batches are in flight.

    x (1 + (p - 1) / (p m)) with m interleaved chunks; x min(1, n / p) with n micro-batches and no interleaving.
    Exact.  Source: Korthikanti et al., arXiv 2205.05198, section 4.2.3 and appendix C.
    """
    stages = policy.pipeline
    if policy.chunks > 1:
        return layers * (1 + (stages - 1) / (stages * policy.chunks))
    in_flight = stages if policy.micro_batches is None else min(stages, policy.micro_batches)
    return layers * in_flight / stages


def activation_bytes(layer: LayerWidths, layers: int, batch: MicroBatch, policy: ActivationPolicy) -> Range:
    """Say what all layers keep on the first stage, bytes, without logits; an estimate.

    Full recomputation keeps the layers' inputs, and the working set of the one layer that is computed anew.
    """
    flying = layers_in_flight(layers, policy)
    one = layer_bytes(layer, batch, policy)
    if policy.recompute != "full":
        return one.times(flying)
    return one + checkpoint_bytes(layer.hidden, 1, batch, policy) * flying


def selective_saving(layer: LayerWidths, batch: MicroBatch) -> float:
    """Say which share of a GPT layer's activations selective recomputation saves: 5 a s / h of 34 + 5 a s / h; exact.

    Source: Korthikanti et al., arXiv 2205.05198, section 5.
    """
    whole = korthikanti_layer_bytes(layer, batch, ActivationPolicy(formula="korthikanti"))
    return (
        1
        - korthikanti_layer_bytes(layer, batch, ActivationPolicy(formula="korthikanti", recompute="selective")) / whole
    )
