"""How many parameters a model has, counted from its shape; equal to the published totals to the parameter."""

from dataclasses import dataclass

from app.fit.formulas.architecture import Architecture


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterCount:
    """Parameters: all, those a token passes through, the embeddings', the routed experts', the largest layer's."""

    total: int
    active: int
    embeddings: int = 0
    experts: int = 0
    largest_layer: int = 0


def missing_for_count(shape: Architecture) -> tuple[str, ...]:
    """Name the fields without which the parameters cannot be counted."""
    own: tuple[str, ...] = ("kv_heads", "head_dim")
    if shape.kv_lora_rank is not None:
        own = ("qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim")
    missing = shape.missing("layers", "hidden", "heads", "vocab", *own)
    return (*missing, *_missing_for_mlp(shape))


def _missing_for_mlp(shape: Architecture) -> tuple[str, ...]:
    if shape.experts is None:
        return shape.missing("intermediate")
    dense = shape.layers is not None and shape.layers_with_experts < shape.layers
    missing = shape.missing("experts_per_token", *(("intermediate",) if dense else ()))
    return missing if shape.expert_width is not None else (*missing, "moe_intermediate")


def count_parameters(shape: Architecture) -> ParameterCount:
    """Count the parameters of a shape that misses nothing (missing_for_count is empty).

    N = L (attention + MLP + norms) + V h (1 if tied, else 2) + final norm; N_act has e in place of E experts.
    Exact: equal to the sum of the tensors of released checkpoints (Hugging Face `safetensors.total`), without rotary
    buffers and multi-token prediction layers. V vocabulary, h hidden, L layers, E experts, e of them per token.
    """
    layers, hidden, vocab = shape.known("layers", "hidden", "vocab")
    norm = hidden * (2 if shape.norm_bias else 1)
    beside_mlp = attention_parameters(shape) + shape.norms_per_layer * norm
    embeddings = vocab * hidden * (1 if shape.tied_embeddings else 2)
    ends = embeddings + norm * (2 if shape.embedding_norm else 1) + shape.learned_positions * hidden
    ends += vocab if shape.lm_head_bias else 0
    sparse = shape.layers_with_experts
    dense_mlp = mlp_parameters(shape, shape.known("intermediate")[0]) if sparse < layers else 0
    shared, expert, experts, chosen = _experts(shape)
    without = ends + layers * beside_mlp + (layers - sparse) * dense_mlp + sparse * shared
    return ParameterCount(
        total=without + sparse * experts * expert,
        active=without + sparse * chosen * expert,
        embeddings=embeddings,
        experts=sparse * experts * expert,
        largest_layer=beside_mlp + max(dense_mlp, shared + experts * expert),
    )


def _experts(shape: Architecture) -> tuple[int, int, int, int]:
    """Of a layer with experts: parameters that all tokens use, those of one expert; how many there are, are chosen."""
    if shape.experts is None or shape.expert_width is None:
        return 0, 0, 0, 0
    (hidden, chosen) = shape.known("hidden", "experts_per_token")
    shared = hidden * shape.experts + (shape.experts if shape.router_bias else 0)
    shared += hidden if shape.shared_expert_gate else 0
    shared += mlp_parameters(shape, shape.shared_intermediate) if shape.shared_intermediate else 0
    return shared, mlp_parameters(shape, shape.expert_width), shape.experts, chosen


def attention_parameters(shape: Architecture) -> int:
    """Count one layer's attention: 2 h a d + 2 h k d, or the low-rank matrices of MLA, with biases and norms.

    Exact. a query heads, k KV heads, d head_dim. MLA as in DeepSeek-V2 (arXiv 2405.04434, section 2.1).
    """
    if shape.kv_lora_rank is not None:
        return _mla_parameters(shape)
    hidden, heads, kv_heads, head_dim = shape.known("hidden", "heads", "kv_heads", "head_dim")
    queries, keys = heads * head_dim, kv_heads * head_dim
    count = 2 * hidden * queries + 2 * hidden * keys
    count += (queries + 2 * keys) if shape.qkv_bias else 0
    count += hidden if shape.output_bias else 0
    count += heads if shape.attention_sinks else 0
    return count + {"per_head": 2 * head_dim, "all_heads": queries + keys, None: 0}[shape.qk_norm]


def _mla_parameters(shape: Architecture) -> int:
    hidden, heads, latent = shape.known("hidden", "heads", "kv_lora_rank")
    nope, rope, values = shape.known("qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim")
    rank, queries = shape.q_lora_rank, heads * (nope + rope)
    from_hidden = hidden * queries if rank is None else hidden * rank + rank + rank * queries
    return from_hidden + hidden * (latent + rope) + latent + latent * heads * (nope + values) + heads * values * hidden


def mlp_parameters(shape: Architecture, width: int) -> int:
    """Count one MLP of a width f: 3 h f with a gate (SwiGLU, GeGLU), else 2 h f, with its biases; exact."""
    (hidden,) = shape.known("hidden")
    inward = 2 if shape.gated else 1
    return (inward + 1) * hidden * width + (inward * width + hidden if shape.mlp_bias else 0)
