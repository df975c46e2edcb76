"""Families with experts: Mixtral, Qwen, DeepSeek, gpt-oss; from their configurations to the shape's fields."""

from collections.abc import Callable
from math import ceil

from app.fit.formulas.assumptions import Impossible
from app.fit.formulas.hf_fields import Config, Shape


def gated(config: Config, *, tied: bool = False, bias: bool = False) -> Shape:
    """Llama and its kin: RMSNorm, a gated MLP, no biases unless the file says so."""
    attention_bias = config.flag("attention_bias", default=bias) if config.has("attention_bias") or bias else False
    return {
        "intermediate": config.count("intermediate_size"),
        "tied_embeddings": config.flag("tie_word_embeddings", default=tied),
        "qkv_bias": attention_bias,
        "output_bias": attention_bias,
        "mlp_bias": config.flag("mlp_bias", default=False) if config.has("mlp_bias") else False,
    }


def window(config: Config, *, layers: int | None = None) -> Shape:
    """The window of all layers, or of so many."""
    window = config.maybe("sliding_window")
    return {} if window is None else {"sliding_window": window, "sliding_layers": layers}


def _llama(config: Config) -> Shape:
    return gated(config)


def _mistral(config: Config) -> Shape:
    return gated(config) | window(config)


def qwen2(config: Config) -> Shape:
    """Read Qwen2: biases on queries, keys and values; a window from a layer on, if it is used."""
    shape = gated(config) | {"qkv_bias": True}
    if not config.has("use_sliding_window") or not config.flag("use_sliding_window", default=False):
        return shape
    layers = config.layers()
    return shape | window(config, layers=max(0, layers - config.default("max_window_layers", layers)))


def qwen3(config: Config) -> Shape:
    """Read Qwen3: norms of queries and keys in place of the biases."""
    return qwen2(config) | {"qkv_bias": gated(config)["qkv_bias"], "qk_norm": "per_head"}


def _gemma(config: Config) -> Shape:
    return gated(config, tied=True) | {"head_dim": config.default("head_dim", 256)}


def _gemma2(config: Config) -> Shape:
    windowed = ceil(config.layers() / 2)
    return _gemma(config) | {"norms_per_layer": 4} | window(config, layers=windowed)


def _gemma3(config: Config) -> Shape:
    layers = config.layers()
    every = config.default("sliding_window_pattern", 6)
    shape = _gemma(config) | {"norms_per_layer": 4, "qk_norm": "per_head"}
    return shape | window(config, layers=layers - layers // every)


def _phi3(config: Config) -> Shape:
    return gated(config) | window(config)


def _olmo2(config: Config) -> Shape:
    return gated(config) | {"qk_norm": "all_heads"}


def _cohere(config: Config) -> Shape:
    normed = config.has("use_qk_norm") and config.flag("use_qk_norm", default=False)
    return gated(config, tied=True) | {"norms_per_layer": 1, "qk_norm": "all_heads" if normed else None}


GATED: dict[str, Callable[[Config], Shape]] = {
    "llama": _llama,
    "granite": _llama,
    "smollm3": _llama,
    "mistral": _mistral,
    "qwen2": qwen2,
    "qwen3": qwen3,
    "gemma": _gemma,
    "gemma2": _gemma2,
    "gemma3": _gemma3,
    "gemma3_text": _gemma3,
    "phi3": _phi3,
    "olmo2": _olmo2,
    "cohere": _cohere,
}


def _mixtral(config: Config) -> Shape:
    experts = {
        "experts": config.count("num_local_experts"),
        "experts_per_token": config.count("num_experts_per_tok"),
        "moe_intermediate": config.count("intermediate_size"),
    }
    return gated(config) | experts | window(config)


def _qwen2_moe(config: Config) -> Shape:
    shared = {"shared_intermediate": config.count("shared_expert_intermediate_size"), "shared_expert_gate": True}
    return qwen2(config) | _qwen_experts(config) | shared


def _qwen3_moe(config: Config) -> Shape:
    return qwen3(config) | _qwen_experts(config)


def _qwen_experts(config: Config) -> Shape:
    layers, step = config.layers(), config.maybe("decoder_sparse_step") or 1
    dense = {number for number in config.listed("mlp_only_layers") if isinstance(number, int)}
    sparse = [number for number in range(layers) if (number + 1) % step == 0 and number not in dense]
    return {
        "experts": config.count("num_experts"),
        "experts_per_token": config.count("num_experts_per_tok"),
        "moe_intermediate": config.count("moe_intermediate_size"),
        "moe_layers": len(sparse),
    }


def _deepseek(config: Config) -> Shape:
    """DeepSeek V2 and V3: MLA, shared and routed experts; the layers that predict further tokens are not counted."""
    config.refuse_unless("moe_layer_freq", 1)
    layers, width = config.layers(), config.count("moe_intermediate_size")
    dense = config.raw.get("first_k_dense_replace", 0)
    if isinstance(dense, bool) or not isinstance(dense, int) or not 0 <= dense <= layers:
        raise Impossible("config.first_k_dense_replace", f"{dense!r} is no number of layers")
    ranks = ("qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim", "kv_lora_rank")
    return (
        gated(config)
        | {name: config.count(name) for name in ranks}
        | {
            "q_lora_rank": config.maybe("q_lora_rank"),
            "head_dim": config.count("qk_nope_head_dim") + config.count("qk_rope_head_dim"),
            "experts": config.count("n_routed_experts"),
            "experts_per_token": config.count("num_experts_per_tok"),
            "moe_intermediate": width,
            "shared_intermediate": (config.maybe("n_shared_experts") or 0) * width,
            "moe_layers": layers - dense,
            "router_bias": config.raw.get("topk_method") == "noaux_tc",
        }
    )


def _gpt_oss(config: Config) -> Shape:
    width = config.count("intermediate_size")
    return (
        gated(config, bias=True)
        | {
            "mlp_bias": True,
            "attention_sinks": True,
            "router_bias": True,
            "experts": config.count("num_local_experts"),
            "experts_per_token": config.count("num_experts_per_tok", "experts_per_token"),
            "moe_intermediate": width,
        }
        | window(config, layers=ceil(config.layers() / 2))
    )


EXPERTS: dict[str, Callable[[Config], Shape]] = {
    "mixtral": _mixtral,
    "qwen2_moe": _qwen2_moe,
    "qwen3_moe": _qwen3_moe,
    "deepseek_v2": _deepseek,
    "deepseek_v3": _deepseek,
    "kimi_k2": _deepseek,
    "gpt_oss": _gpt_oss,
}


def _biased(config: Config, *, tied: bool, width: str) -> Shape:
    """GPT-2 and its kin: LayerNorm, a plain MLP of 4h unless the file says more, biases everywhere."""
    hidden = config.count("hidden_size", "n_embd", "d_model")
    return {
        "mlp": "plain",
        "intermediate": config.maybe(width) or 4 * hidden,
        "tied_embeddings": config.flag("tie_word_embeddings", default=tied),
        "qkv_bias": True,
        "output_bias": True,
        "mlp_bias": True,
        "norm_bias": True,
    }


def _phi(config: Config) -> Shape:
    return _biased(config, tied=False, width="intermediate_size") | {"norms_per_layer": 1, "lm_head_bias": True}


def _gpt2(config: Config) -> Shape:
    return _biased(config, tied=True, width="n_inner") | {"learned_positions": config.count("n_positions", "n_ctx")}


def _gpt_bigcode(config: Config) -> Shape:
    heads = {"kv_heads": 1} if config.flag("multi_query", default=True) else {}
    return _gpt2(config) | heads


def _gpt_neox(config: Config) -> Shape:
    bias = config.flag("attention_bias", default=True) if config.has("attention_bias") else True
    return _biased(config, tied=False, width="intermediate_size") | {"qkv_bias": bias, "output_bias": bias}


def _gptj(config: Config) -> Shape:
    unlike = {"qkv_bias": False, "output_bias": False, "norms_per_layer": 1, "lm_head_bias": True}
    return _biased(config, tied=False, width="n_inner") | unlike


def _opt(config: Config) -> Shape:
    config.refuse_unless("word_embed_proj_dim", config.count("hidden_size"))
    config.refuse_unless("enable_bias", True)
    positions = config.count("max_position_embeddings") + 2
    return _biased(config, tied=True, width="ffn_dim") | {"learned_positions": positions}


def _bloom(config: Config) -> Shape:
    return _biased(config, tied=True, width="n_inner") | {"embedding_norm": True}


def _falcon(config: Config) -> Shape:
    bias = config.flag("bias", default=False)
    grouped = config.flag("new_decoder_architecture", default=False)
    heads = config.count("num_attention_heads", "n_head")
    one = not grouped and config.flag("multi_query", default=True)
    norms = 1 if not grouped and config.flag("parallel_attn", default=True) else 2
    return _biased(config, tied=True, width="ffn_hidden_size") | {
        "kv_heads": 1 if one else (config.maybe("num_kv_heads", "n_head_kv") or heads) if grouped else heads,
        "qkv_bias": bias,
        "output_bias": bias,
        "mlp_bias": bias,
        "norms_per_layer": (config.maybe("num_ln_in_parallel_attn") or 2) if grouped else norms,
    }


def _starcoder2(config: Config) -> Shape:
    bias = config.flag("use_bias", default=True)
    biases = {"qkv_bias": bias, "output_bias": bias, "mlp_bias": bias}
    return _biased(config, tied=True, width="intermediate_size") | biases | window(config)


PLAIN: dict[str, Callable[[Config], Shape]] = {
    "gpt2": _gpt2,
    "gpt_bigcode": _gpt_bigcode,
    "gpt_neox": _gpt_neox,
    "gptj": _gptj,
    "opt": _opt,
    "bloom": _bloom,
    "falcon": _falcon,
    "starcoder2": _starcoder2,
    "phi": _phi,
}
