"""The architecture of a language model, its layers where they differ, its number of parameters, and typical shapes."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from app.fit.formulas.quantization import ReleasedWeights, WeightPart


class LayerMatrix(NamedTuple):
    """A weight matrix of a layer, by its name within the layer; `copies` of it, one for each expert."""

    name: str
    part: WeightPart
    rows: int
    columns: int
    copies: int = 1

    @property
    def params(self) -> int:
        """Weights of all copies."""
        return self.rows * self.columns * self.copies


class LayerCache(NamedTuple):
    """What a layer keeps of each token: `values` for each of `heads`.

    `window` is the number of tokens that are kept (None: all), `stride` how many tokens share one entry. A `latent` is
    on every tensor rank, whereas heads are divided. `value_bytes` holds where engines store it in one type only,
    `fp8_bytes` is the size of an entry with scales where the cache is kept in FP8; None follows the cache's type.
    """

    heads: int
    values: int
    window: int | None = None
    stride: int = 1
    latent: bool = False
    value_bytes: float | None = None
    fp8_bytes: int | None = None


class LayerPart(NamedTuple):
    """A part of a layer, or a whole one: its matrices, other parameters, caches, and bytes of state of a sequence.

    `others` are norms, biases, convolutions and routers, `expert_others` the biases of all routed experts. A state does
    not grow with the sequence, and its heads are divided over the tensor ranks.
    """

    matrices: tuple[LayerMatrix, ...] = ()
    others: int = 0
    expert_others: int = 0
    caches: tuple[LayerCache, ...] = ()
    state_bytes: int = 0

    def join(self, *parts: "LayerPart") -> "LayerPart":
        """Return this part together with others."""
        whole = (self, *parts)
        return LayerPart(
            matrices=tuple(matrix for part in whole for matrix in part.matrices),
            others=sum(part.others for part in whole),
            expert_others=sum(part.expert_others for part in whole),
            caches=tuple(cache for part in whole for cache in part.caches),
            state_bytes=sum(part.state_bytes for part in whole),
        )

    @property
    def params(self) -> int:
        """All parameters."""
        return self.others + self.expert_others + sum(matrix.params for matrix in self.matrices)

    @property
    def expert_params(self) -> int:
        """Parameters of all routed experts."""
        return self.expert_others + sum(matrix.params for matrix in self.matrices if matrix.part == "experts")


SELECTED_ENTRIES = 2048
"""Entries of the cache that sparse attention reads for a token: `index_topk` of DeepSeek-V3.2."""


def is_sparse(layer: LayerPart) -> bool:
    """Whether a layer selects what it attends to by an index, which it keeps besides."""
    return sum(cache.window is None for cache in layer.caches) > 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerGroup:
    """Equal layers: their numbers, from 0, and the content of one of them."""

    numbers: Sequence[int]
    content: LayerPart

    @property
    def count(self) -> int:
        """Number of layers."""
        return len(self.numbers)


def group_layers(layers: Sequence[LayerPart]) -> tuple[LayerGroup, ...]:
    """Group layers of equal content, in the order in which each kind first appears."""
    numbers: dict[LayerPart, list[int]] = {}
    for number, content in enumerate(layers):
        numbers.setdefault(content, []).append(number)
    return tuple(LayerGroup(numbers=tuple(members), content=content) for content, members in numbers.items())


def matrix(name: str, rows: int, columns: int) -> LayerMatrix:
    """Return a matrix of the attention, or of what takes its place."""
    return LayerMatrix(name, "attention", rows, columns)


def attention(
    hidden: int,
    *,
    heads: int,
    kv_heads: int,
    head_dim: int,
    v_head_dim: int | None = None,
    window: int | None = None,
    qk_norm: str | None = None,
    bias: bool = False,
    output_gate: str | None = None,
    keys_are_values: bool = False,
    sinks: bool = False,
    shares_cache: bool = False,
) -> LayerPart:
    """Count softmax attention with grouped heads: 2 h a d + 2 h k d; exact.

    a query heads, k KV heads, d head_dim. `output_gate` doubles the queries ("full"), or adds a gate for each head
    ("per_head"). With `keys_are_values` there is no value matrix; with `shares_cache` the keys and values are those of
    an earlier layer.
    """
    values, queries = v_head_dim or head_dim, heads * head_dim
    matrices = [matrix("self_attn.q_proj", queries * (2 if output_gate == "full" else 1), hidden)]
    if not shares_cache:
        matrices.append(matrix("self_attn.k_proj", kv_heads * head_dim, hidden))
    if not shares_cache and not keys_are_values:
        matrices.append(matrix("self_attn.v_proj", kv_heads * values, hidden))
    matrices.append(matrix("self_attn.o_proj", hidden, heads * values))
    if output_gate == "per_head":
        matrices.append(matrix("self_attn.g_proj", heads, hidden))
    scales = {"per_head": (head_dim, head_dim), "all_heads": (queries, kv_heads * head_dim), None: (0, 0)}[qk_norm]
    norms = scales[0] + (0 if shares_cache else scales[1])
    biases = queries + kv_heads * (head_dim + values) if bias else 0
    cache = LayerCache(heads=kv_heads, values=head_dim + values, window=window)
    return LayerPart(
        matrices=tuple(matrices),
        others=norms + biases + (heads if sinks else 0),
        caches=() if shares_cache else (cache,),
    )


def latent_matrices(
    hidden: int, heads: int, latent: int, *, nope: int, rope: int, values: int, rank: int | None
) -> tuple[LayerMatrix, ...]:
    """Return the matrices of MLA, the queries in two where they have a `rank`: arXiv 2405.04434, section 2.1."""
    queries = heads * (nope + rope)
    inward: tuple[LayerMatrix, ...] = (matrix("self_attn.q_proj", queries, hidden),)
    if rank is not None:
        inward = (matrix("self_attn.q_a_proj", rank, hidden), matrix("self_attn.q_b_proj", queries, rank))
    return (
        *inward,
        matrix("self_attn.kv_a_proj_with_mqa", latent + rope, hidden),
        matrix("self_attn.kv_b_proj", heads * (nope + values), latent),
        matrix("self_attn.o_proj", hidden, heads * values),
    )


def dense_mlp(hidden: int, width: int, *, gated: bool = True, bias: bool = False, prefix: str = "mlp") -> LayerPart:
    """Count an MLP that every token uses: 3 h f with a gate (SwiGLU, GeGLU), else 2 h f; exact."""
    biases = _mlp_biases(hidden, width, gated=gated) if bias else 0
    return LayerPart(matrices=_mlp_matrices(prefix, "mlp", hidden, width, gated=gated), others=biases)


def _mlp_biases(hidden: int, width: int, *, gated: bool) -> int:
    return (2 if gated else 1) * width + hidden


def _mlp_matrices(
    path: str, part: WeightPart, hidden: int, width: int, *, gated: bool, copies: int = 1
) -> tuple[LayerMatrix, ...]:
    """Return the matrices of an MLP: gate, up and down."""
    return (
        *(
            LayerMatrix(f"{path}.{name}", part, width, hidden, copies)
            for name in (("gate_proj", "up_proj") if gated else ("up_proj",))
        ),
        LayerMatrix(f"{path}.down_proj", part, hidden, width, copies),
    )


def experts_mlp(
    hidden: int,
    experts: int,
    width: int,
    *,
    shared: int = 0,
    gated: bool = True,
    bias: bool = False,
    router_bias: bool = False,
    shared_gate: bool = False,
    latent: int | None = None,
    prefix: str = "mlp",
) -> LayerPart:
    """Count routed and `shared` experts with their router.

    Where routed experts work in a `latent` width, two more matrices lead to it and back.
    """
    inner = latent or hidden
    matrices = _mlp_matrices(f"{prefix}.experts.{{expert}}", "experts", inner, width, gated=gated, copies=experts)
    others = hidden * experts + (experts if router_bias else 0)
    if shared:
        matrices += _mlp_matrices(f"{prefix}.shared_experts", "shared_experts", hidden, shared, gated=gated)
        others += (hidden if shared_gate else 0) + (_mlp_biases(hidden, shared, gated=gated) if bias else 0)
    if latent is not None:
        matrices += (
            LayerMatrix(f"{prefix}.fc1_latent_proj", "mlp", latent, hidden),
            LayerMatrix(f"{prefix}.fc2_latent_proj", "mlp", hidden, latent),
        )
    biases = experts * _mlp_biases(inner, width, gated=gated) if bias else 0
    return LayerPart(matrices=matrices, others=others, expert_others=biases)


AttentionKind = Literal["mha", "gqa", "mqa", "mla"]
QkNorm = Literal["per_head", "all_heads"]
Mlp = Literal["gated", "plain"]
ModelKind = Literal["decoder", "encoder", "speech", "diffusion"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """A model's configuration; None is unknown, and figures that need an unknown field are left out.

    `head_dim` is of queries and keys and need not be hidden / heads. `kv_layers` are the layers that keep a KV cache
    (None: all), `sliding_layers` those of them that attend to `sliding_window` tokens only (None: all, if there is a
    window). `intermediate` is the width of a dense MLP, `moe_intermediate` of one expert (None: the same),
    `shared_intermediate` of all shared experts together. `moe_layers` layers have `experts` (None: all, if there are
    any), the others a dense MLP. `norms_per_layer` counts norms over the hidden width. `released` is the type that the
    weights are published in, `fp8_block` the rows and columns that share a scale in the vendor's FP8 checkpoint.

    A model whose layers differ by more than that has `groups`, and its parameters and KV cache are those of the groups;
    the other fields then describe it in outline. `outside` are parameters beside layers, embeddings and the final norm,
    in 16 bits: those of a vision tower, for example; `outside_active` of them are used by each token. `mtp_layers` are
    those of multi-token prediction, which `params` does not have; where they do not have `mtp_embeddings`, they use the
    embedding and the output layer of the model.

    `kind` is what a model does: a decoder generates text, an encoder reads it only, speech is an encoder of audio and a
    decoder, diffusion makes images, or video where it `makes_video`.

    `unknown_type` is a model whose type is not known: it was read as a standard decoder, and its figures are estimates.
    It `may_be_tied` where the file does not say whether it has an output layer of its own, which is then counted.
    """

    kind: ModelKind = "decoder"
    makes_video: bool = False
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
    final_norm: bool = True
    learned_positions: int = 0

    groups: tuple[LayerGroup, ...] = ()
    outside: int = 0
    outside_active: int = 0
    mtp_layers: int | None = None
    mtp_embeddings: bool = True

    unknown_type: bool = False
    may_be_tied: bool = False
    released: ReleasedWeights | None = None
    fp8_block: int | None = None

    def require(self, *names: str) -> tuple[int, ...]:
        """Return the values of numeric fields; raise ValueError naming those that are unknown."""
        missing = self.missing_fields(*names)
        if missing:
            raise ValueError(f"unknown: {', '.join(missing)}")
        return tuple(getattr(self, name) for name in names)

    def missing_fields(self, *names: str) -> tuple[str, ...]:
        """Return the names of those fields that are unknown."""
        return tuple(name for name in dict.fromkeys(names) if getattr(self, name) is None)

    @property
    def keeps_cache(self) -> bool:
        """Whether it generates text, and keeps keys and values meanwhile."""
        return self.kind in {"decoder", "speech"}

    @property
    def layers_with_experts(self) -> int:
        """Number of layers with experts; the others have a dense MLP."""
        if self.experts is None:
            return 0
        return self.require("layers")[0] if self.moe_layers is None else self.moe_layers

    @property
    def expert_width(self) -> int | None:
        """Intermediate width of one expert."""
        return self.intermediate if self.moe_intermediate is None else self.moe_intermediate

    @property
    def attention(self) -> AttentionKind | None:
        """Kind of attention: `mla` caches a latent, `mqa` has one KV head, `gqa` fewer KV heads than heads."""
        if self.kv_lora_rank is not None:
            return "mla"
        if self.kv_heads == 1:
            return "mqa"
        if self.kv_heads is None or self.heads is None:
            return None
        return "gqa" if self.kv_heads < self.heads else "mha"


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterCount:
    """Numbers of parameters: all, active per token, of the embeddings, routed experts and the largest layer."""

    total: int
    active: int
    embeddings: int = 0
    experts: int = 0
    largest_layer: int = 0


def missing_for_count(shape: Architecture) -> tuple[str, ...]:
    """Return the names of the unknown fields that counting parameters needs."""
    if shape.groups:
        return ()
    own: tuple[str, ...] = ("kv_heads", "head_dim")
    if shape.kv_lora_rank is not None:
        own = ("qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim")
    missing = shape.missing_fields("layers", "hidden", "heads", "vocab", *own)
    if shape.experts is None:
        return (*missing, *shape.missing_fields("intermediate"))
    dense = shape.layers is not None and shape.layers_with_experts < shape.layers
    missing += shape.missing_fields("experts_per_token", *(("intermediate",) if dense else ()))
    return missing if shape.expert_width is not None else (*missing, "moe_intermediate")


def count_parameters(shape: Architecture) -> ParameterCount:
    """Count the parameters of a complete shape (one for which missing_for_count is empty).

    N = L (attention + MLP + norms) + V h (1 if tied, else 2) + final norm; N_act has e in place of E experts.
    Exact: equal to the sum of the tensors of released checkpoints (Hugging Face `safetensors.total`), without rotary
    buffers and multi-token prediction layers. V vocabulary, h hidden, L layers, E experts, e of them per token.
    """
    groups, (hidden, vocab) = layer_groups(shape), shape.require("hidden", "vocab")
    embeddings = vocab * hidden * (1 if shape.tied_embeddings else 2)
    # Before and after the layers are positions, norms and the output layer's bias, too.
    ends = embeddings + shape.learned_positions * hidden + (vocab if shape.lm_head_bias else 0)
    ends += hidden * (2 if shape.norm_bias else 1) * (shape.embedding_norm + shape.final_norm)
    total = ends + sum(group.count * group.content.params for group in groups)
    experts = sum(group.count * group.content.expert_params for group in groups)
    used = experts * (shape.experts_per_token or 0) // shape.experts if shape.experts else 0
    return ParameterCount(
        total=total + shape.outside,
        active=total + shape.outside_active - experts + used,
        embeddings=embeddings,
        experts=experts,
        largest_layer=max(group.content.params for group in groups),
    )


def layer_groups(shape: Architecture) -> tuple[LayerGroup, ...]:
    """Return the layers of a complete shape by their content, without caches where the shape itself has no groups.

    Layers with experts come after the dense ones.
    """
    if shape.groups:
        return shape.groups
    layers, hidden = shape.require("layers", "hidden")
    dense, gated, bias = layers - shape.layers_with_experts, shape.mlp == "gated", shape.mlp_bias
    norms = shape.norms_per_layer * hidden * (2 if shape.norm_bias else 1)
    beside = _attention_of(shape).join(LayerPart(others=norms))
    groups = []
    if dense:
        part = dense_mlp(hidden, shape.require("intermediate")[0], gated=gated, bias=bias)
        groups.append(LayerGroup(numbers=range(dense), content=beside.join(part)))
    if dense < layers and shape.experts is not None and shape.expert_width is not None:
        part = experts_mlp(
            hidden,
            shape.experts,
            shape.expert_width,
            shared=shape.shared_intermediate,
            gated=gated,
            bias=bias,
            router_bias=shape.router_bias,
            shared_gate=shape.shared_expert_gate,
        )
        groups.append(LayerGroup(numbers=range(dense, layers), content=beside.join(part)))
    return tuple(groups)


def _attention_of(shape: Architecture) -> LayerPart:
    hidden, heads = shape.require("hidden", "heads")
    if shape.kv_lora_rank is not None:
        nope, rope, values = shape.require("qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim")
        latent, rank = shape.kv_lora_rank, shape.q_lora_rank
        matrices = latent_matrices(hidden, heads, latent, nope=nope, rope=rope, values=values, rank=rank)
        return LayerPart(matrices=matrices, others=latent + (rank or 0))
    kv_heads, head_dim = shape.require("kv_heads", "head_dim")
    part = attention(
        hidden,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        qk_norm=shape.qk_norm,
        bias=shape.qkv_bias,
        sinks=shape.attention_sinks,
    )
    return part._replace(others=part.others + (hidden if shape.output_bias else 0), caches=())


WIDTH_PER_LAYER = 100
"""Hidden width divided by layers: GPT-2 XL 33, Llama 65B 102, Llama 3.1 405B 130, GPT-3 128, BLOOM 205."""
TYPICAL_HEAD_DIM = 128


def typical_shape(shape: Architecture) -> Architecture:
    """Estimate unknown layers and widths from the number of parameters: N = 12 L h^2, h = 100 L.

    Good for quantities that grow with L h = (N / 12)^(2/3) / 100^(1/3): activations and adapters of the models above
    come out within a third. Not good for a KV cache, which depends on how many heads share keys. Derived here from
    Kaplan et al., arXiv 2001.08361, section 2.1.
    """
    (params,) = shape.require("params")
    layers = max(1, round((params / (12 * WIDTH_PER_LAYER**2)) ** (1 / 3))) if shape.layers is None else shape.layers
    width = (params / (12 * layers)) ** 0.5 if shape.hidden is None else shape.hidden
    heads = max(1, round(width / TYPICAL_HEAD_DIM)) if shape.heads is None else shape.heads
    hidden = heads * TYPICAL_HEAD_DIM if shape.hidden is None else shape.hidden
    return replace(
        shape,
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=heads if shape.kv_heads is None else shape.kv_heads,
        head_dim=max(1, hidden // heads) if shape.head_dim is None else shape.head_dim,
        intermediate=hidden * 8 // 3 if shape.intermediate is None else shape.intermediate,
    )
