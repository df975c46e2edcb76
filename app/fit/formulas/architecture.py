"""The shape of a language model: a decoder-only transformer as its configuration describes it."""

from dataclasses import dataclass
from typing import Literal

from app.fit.formulas.quantization import Released

AttentionKind = Literal["mha", "gqa", "mqa", "mla"]
QkNorm = Literal["per_head", "all_heads"]
Mlp = Literal["gated", "plain"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """What a model's configuration says; None is unknown, and a figure that needs it is then left out.

    `head_dim` is of queries and keys and need not be hidden / heads. `kv_layers` are the layers that keep a KV cache
    (None: all), `sliding_layers` those of them that see `sliding_window` tokens only (None: all, if there is a
    window). `intermediate` is the width of a dense MLP, `moe_intermediate` of one expert (None: the same),
    `shared_intermediate` of all shared experts together. `moe_layers` layers have `experts` (None: all, if there are
    any), the others a dense MLP. `norms_per_layer` are those over the whole width. `released` is the type that the
    weights are released in, `fp8_block` the rows and columns that share a scale in the vendor's FP8 checkpoint.
    """

    params: int | None = None
    active_params: int | None = None
    layers: int | None = None
    hidden: int | None = None
    heads: int | None = None
    kv_heads: int | None = None
    head_dim: int | None = None
    intermediate: int | None = None
    vocab: int | None = None
    max_positions: int | None = None
    mlp: Mlp = "gated"
    tied_embeddings: bool = False

    kv_layers: int | None = None
    sliding_window: int | None = None
    sliding_layers: int | None = None

    q_lora_rank: int | None = None
    kv_lora_rank: int | None = None
    qk_nope_head_dim: int | None = None
    qk_rope_head_dim: int | None = None
    v_head_dim: int | None = None

    experts: int | None = None
    experts_per_token: int | None = None
    moe_intermediate: int | None = None
    shared_intermediate: int = 0
    shared_expert_gate: bool = False
    moe_layers: int | None = None
    router_bias: bool = False

    qkv_bias: bool = False
    output_bias: bool = False
    mlp_bias: bool = False
    norm_bias: bool = False
    lm_head_bias: bool = False
    qk_norm: QkNorm | None = None
    attention_sinks: bool = False
    norms_per_layer: int = 2
    embedding_norm: bool = False
    learned_positions: int = 0

    released: Released | None = None
    fp8_block: int | None = None

    def known(self, *names: str) -> tuple[int, ...]:
        """Give the values of numeric fields that must be known; raises ValueError naming those that are not."""
        missing = self.missing(*names)
        if missing:
            raise ValueError(f"unknown: {', '.join(missing)}")
        return tuple(getattr(self, name) for name in names)

    def missing(self, *names: str) -> tuple[str, ...]:
        """Name those of the fields that are unknown."""
        return tuple(name for name in dict.fromkeys(names) if getattr(self, name) is None)

    @property
    def gated(self) -> bool:
        """Whether an MLP has three matrices (SwiGLU, GeGLU), not two."""
        return self.mlp == "gated"

    @property
    def layers_with_experts(self) -> int:
        """How many layers have experts; the others have a dense MLP."""
        if self.experts is None:
            return 0
        return self.known("layers")[0] if self.moe_layers is None else self.moe_layers

    @property
    def expert_width(self) -> int | None:
        """The width of the MLP of one expert."""
        return self.intermediate if self.moe_intermediate is None else self.moe_intermediate

    @property
    def attention(self) -> AttentionKind | None:
        """How keys and values are shared: `mla` has a latent, `mqa` one head, `gqa` fewer heads than queries."""
        if self.kv_lora_rank is not None:
            return "mla"
        if self.kv_heads == 1:
            return "mqa"
        if self.kv_heads is None or self.heads is None:
            return None
        return "gqa" if self.kv_heads < self.heads else "mha"
