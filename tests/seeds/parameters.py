"""How many parameters a configuration has, counted matrix by matrix: what the presets are checked against."""

from math import ceil

from app.catalog.presets import Preset

FP8_BLOCK = 128
"""DeepSeek scales its FP8 weights in square blocks of this width."""


def parameters(preset: Preset, experts: int | None = None) -> int:
    """All parameters, or those of that many routed experts a layer.

    layers x (attention + norms) + the MLPs + embeddings of tokens and positions + output layer + the norms outside.
    """
    p = preset
    layers = p.layers * (attention(p) + p.norms_per_layer * norm(p))
    layers += (p.layers - p.moe_layers) * mlp(p, p.intermediate)
    layers += p.moe_layers * mixture(p, p.experts if experts is None else experts)
    embeddings = p.hidden * (p.vocab * (1 if p.tied_embeddings else 2) + p.learned_positions)
    return layers + embeddings + norm(p) * (1 + p.embedding_norm) + p.vocab * p.lm_head_bias


def attention(p: Preset) -> int:
    """Queries, keys, values and output of one layer, with what biases, norms and sinks they have."""
    normed = {None: 0, "per_head": 2, "all_heads": p.heads + p.kv_heads}[p.qk_norm] * p.head_dim
    matrices = latent_attention(p) if p.attention == "mla" else 2 * p.hidden * (p.heads + p.kv_heads) * p.head_dim
    biases = p.qkv_bias * (p.heads + 2 * p.kv_heads) * p.head_dim + p.output_bias * p.hidden
    return matrices + biases + normed + p.attention_sinks * p.heads


def latent_attention(p: Preset) -> int:
    """Matrices of MLA, each (in, out), and the norms of the two compressed vectors."""
    return sum(rows * columns for rows, columns in latent_matrices(p)) + (p.q_lora_rank or 0) + (p.kv_lora_rank or 0)


def latent_matrices(p: Preset) -> list[tuple[int, int]]:
    assert p.kv_lora_rank is not None
    assert p.qk_nope_head_dim is not None
    assert p.qk_rope_head_dim is not None
    assert p.v_head_dim is not None
    queries = p.heads * p.head_dim
    return [
        *([(p.hidden, queries)] if p.q_lora_rank is None else [(p.hidden, p.q_lora_rank), (p.q_lora_rank, queries)]),
        (p.hidden, p.kv_lora_rank + p.qk_rope_head_dim),
        (p.kv_lora_rank, p.heads * (p.qk_nope_head_dim + p.v_head_dim)),
        (p.heads * p.v_head_dim, p.hidden),
    ]


def mlp(p: Preset, width: int | None) -> int:
    """One MLP: up (twice where it is gated) and down."""
    ups = 2 if p.mlp == "gated" else 1
    return (ups + 1) * p.hidden * (width or 0) + p.mlp_bias * (ups * (width or 0) + p.hidden)


def mixture(p: Preset, experts: int) -> int:
    """The experts of one layer and the router that chooses among all of them."""
    return (experts + p.shared_experts) * mlp(p, p.moe_intermediate) + p.experts * (p.hidden + p.router_bias)


def norm(p: Preset) -> int:
    return p.hidden * (1 + p.norm_bias)


def rotary_frequencies(p: Preset) -> int:
    """The buffers of old checkpoints: half a head's width in each layer."""
    return p.layers * p.head_dim // 2


def vision_tower(p: Preset) -> int:
    """SigLIP 400M of Gemma 3 (27 layers, width 1152, MLP 4304, patches of 14, 4096 positions) and the projector."""
    wide, mlp_wide, patch, positions = 1152, 4304, 3 * 14 * 14, 4096
    layer = 4 * wide * (wide + 1) + 2 * wide * mlp_wide + wide + mlp_wide + 4 * wide
    return 27 * layer + wide * (patch + 1 + positions) + 2 * wide + wide * (p.hidden + 1)


def prediction_module(p: Preset) -> int:
    """DeepSeek's multi-token prediction: a layer with experts, both embeddings, two widths joined into one, 3 norms."""
    layer = attention(p) + mixture(p, p.experts) + p.norms_per_layer * norm(p)
    return layer + 2 * p.hidden * (p.vocab + p.hidden) + 3 * norm(p)


def fp8_scales(p: Preset) -> int:
    """One scale for each block of each FP8 matrix, in all layers and in the prediction module's."""

    def blocks(rows: int, columns: int) -> int:
        return ceil(rows / FP8_BLOCK) * ceil(columns / FP8_BLOCK)

    queries_and_keys = sum(blocks(*matrix) for matrix in latent_matrices(p))
    dense = (p.layers - p.moe_layers) * 3 * blocks(p.hidden, p.intermediate or 0)
    routed = (p.moe_layers + 1) * (p.experts + p.shared_experts) * 3 * blocks(p.hidden, p.moe_intermediate or 0)
    return (p.layers + 1) * queries_and_keys + dense + routed
