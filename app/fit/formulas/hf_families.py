"""Model families of Hugging Face transformers: a function for each reads its configuration into architecture fields.

There are families with a gated MLP (like Llama), families with experts (like Mixtral), and families with a plain MLP
(like GPT-2). Source: the modelling code of transformers.
"""

from collections.abc import Callable
from math import ceil

from app.fit.formulas.assumptions import InvalidWorkload
from app.fit.formulas.hf_fields import ArchitectureFields, ConfigReader
from app.fit.formulas.hf_hybrids import (
    deepseek_v4,
    gemma4,
    kimi_linear,
    llama4,
    mistral_large4,
    nemotron_h,
    qwen_hybrid,
    sparse_mla,
)
from app.fit.formulas.hf_mixed import lfm2, mimo_v2, minimax_m3, minimax_m3_text, nemotron_nas, step3


def gated_mlp(config: ConfigReader, *, tied: bool = False, bias: bool = False) -> ArchitectureFields:
    """Read a family like Llama: RMSNorm, a gated MLP, no biases unless the file says so."""
    attention_bias = config.flag("attention_bias", default=bias) if config.has("attention_bias") or bias else False
    return {
        "intermediate": config.count("intermediate_size"),
        "tied_embeddings": config.flag("tie_word_embeddings", default=tied),
        "qkv_bias": attention_bias,
        "output_bias": attention_bias,
        "mlp_bias": config.flag("mlp_bias", default=False) if config.has("mlp_bias") else False,
    }


def sliding_window(config: ConfigReader, *, layers: int | None = None) -> ArchitectureFields:
    """Read the sliding window, used by all layers or by `layers` of them."""
    window = config.optional_count("sliding_window")
    return {} if window is None else {"sliding_window": window, "sliding_layers": layers}


def _llama(config: ConfigReader) -> ArchitectureFields:
    return gated_mlp(config)


def _mistral(config: ConfigReader) -> ArchitectureFields:
    return gated_mlp(config) | sliding_window(config)


def qwen2(config: ConfigReader) -> ArchitectureFields:
    """Read Qwen2: biases on queries, keys and values; optionally a window from some layer on."""
    shape = gated_mlp(config) | {"qkv_bias": True}
    if not config.has("use_sliding_window") or not config.flag("use_sliding_window", default=False):
        return shape
    layers = config.layers()
    return shape | sliding_window(config, layers=max(0, layers - config.count_or_default("max_window_layers", layers)))


def qwen3(config: ConfigReader) -> ArchitectureFields:
    """Read Qwen3: norms on queries and keys instead of biases."""
    return qwen2(config) | {"qkv_bias": gated_mlp(config)["qkv_bias"], "qk_norm": "per_head"}


def _seed_oss(config: ConfigReader) -> ArchitectureFields:
    return gated_mlp(config, bias=True) | {"output_bias": bool(config.raw.get("attention_out_bias"))}


def _ernie4_5(config: ConfigReader) -> ArchitectureFields:
    bias = bool(config.raw.get("use_bias"))
    return gated_mlp(config, tied=True) | {"qkv_bias": bias, "output_bias": bias, "mlp_bias": bias}


def _gemma(config: ConfigReader) -> ArchitectureFields:
    return gated_mlp(config, tied=True) | {"head_dim": config.count_or_default("head_dim", 256)}


def _gemma2(config: ConfigReader) -> ArchitectureFields:
    windowed = ceil(config.layers() / 2)
    return _gemma(config) | {"norms_per_layer": 4} | sliding_window(config, layers=windowed)


def _gemma3(config: ConfigReader) -> ArchitectureFields:
    layers = config.layers()
    every = config.count_or_default("sliding_window_pattern", 6)
    shape = _gemma(config) | {"norms_per_layer": 4, "qk_norm": "per_head"}
    return shape | sliding_window(config, layers=layers - layers // every)


def _phi3(config: ConfigReader) -> ArchitectureFields:
    return gated_mlp(config) | sliding_window(config)


def _olmo2(config: ConfigReader) -> ArchitectureFields:
    return gated_mlp(config) | {"qk_norm": "all_heads"}


def _cohere(config: ConfigReader) -> ArchitectureFields:
    qk_norm = config.has("use_qk_norm") and config.flag("use_qk_norm", default=False)
    return gated_mlp(config, tied=True) | {"norms_per_layer": 1, "qk_norm": "all_heads" if qk_norm else None}


def _mixtral(config: ConfigReader) -> ArchitectureFields:
    experts = {
        "experts": config.count("num_local_experts"),
        "experts_per_token": config.count("num_experts_per_tok"),
        "moe_intermediate": config.count("intermediate_size"),
    }
    return gated_mlp(config) | experts | sliding_window(config)


def _qwen2_moe(config: ConfigReader) -> ArchitectureFields:
    shared = {"shared_intermediate": config.count("shared_expert_intermediate_size"), "shared_expert_gate": True}
    return qwen2(config) | _qwen_experts(config) | shared


def _qwen3_moe(config: ConfigReader) -> ArchitectureFields:
    return qwen3(config) | _qwen_experts(config)


def _qwen_experts(config: ConfigReader) -> ArchitectureFields:
    layers, step = config.layers(), config.optional_count("decoder_sparse_step") or 1
    dense = {number for number in config.get_list("mlp_only_layers") if isinstance(number, int)}
    sparse = [number for number in range(layers) if (number + 1) % step == 0 and number not in dense]
    return {
        "experts": config.count("num_experts"),
        "experts_per_token": config.count("num_experts_per_tok"),
        "moe_intermediate": config.count("moe_intermediate_size"),
        "moe_layers": len(sparse),
    }


def _deepseek(config: ConfigReader) -> ArchitectureFields:
    """Read DeepSeek V2 and V3: MLA, shared and routed experts; multi-token prediction layers are not counted."""
    config.require_one_of("moe_layer_freq", 1)
    layers, width = config.layers(), config.count("moe_intermediate_size")
    kinds = config.get_list("mlp_layer_types")
    dense = kinds.count("dense") if kinds else config.raw.get("first_k_dense_replace", 0)
    if isinstance(dense, bool) or not isinstance(dense, int) or not 0 <= dense <= layers:
        raise InvalidWorkload("config.first_k_dense_replace", f"{dense!r} is no number of layers")
    ranks = ("qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim", "kv_lora_rank")
    return (
        gated_mlp(config)
        | {name: config.count(name) for name in ranks}
        | {
            "q_lora_rank": config.optional_count("q_lora_rank"),
            "head_dim": config.count("qk_nope_head_dim") + config.count("qk_rope_head_dim"),
            "experts": config.count("n_routed_experts"),
            "experts_per_token": config.count("num_experts_per_tok"),
            "moe_intermediate": width,
            "shared_intermediate": config.number("n_shared_experts") * width,
            "moe_layers": layers - dense,
            "router_bias": config.raw.get("topk_method") == "noaux_tc",
        }
    )


def _minimax_m2(config: ConfigReader) -> ArchitectureFields:
    width = config.count("intermediate_size")
    return {
        "intermediate": width,
        "tied_embeddings": config.flag("tie_word_embeddings", default=False),
        "qk_norm": "all_heads" if config.raw.get("use_qk_norm", True) else None,
        "experts": config.count("num_local_experts"),
        "experts_per_token": config.count("num_experts_per_tok"),
        "moe_intermediate": width,
        "shared_intermediate": config.number("shared_intermediate_size"),
        "router_bias": bool(config.raw.get("use_routing_bias", True)),
    }


def _glm4_moe(config: ConfigReader) -> ArchitectureFields:
    layers, width = config.layers(), config.count("moe_intermediate_size")
    return gated_mlp(config) | {
        "output_bias": False,
        "qk_norm": "per_head" if config.raw.get("use_qk_norm") else None,
        "experts": config.count("n_routed_experts"),
        "experts_per_token": config.count("num_experts_per_tok"),
        "moe_intermediate": width,
        "shared_intermediate": config.number("n_shared_experts") * width,
        "moe_layers": layers - config.number("first_k_dense_replace"),
        "router_bias": True,
    }


def _mistral4(config: ConfigReader) -> ArchitectureFields:
    return _deepseek(config) | {"router_bias": False}


def _glm4_moe_lite(config: ConfigReader) -> ArchitectureFields:
    return _deepseek(config) | {"router_bias": True}


def _gpt_oss(config: ConfigReader) -> ArchitectureFields:
    width = config.count("intermediate_size")
    return (
        gated_mlp(config, bias=True)
        | {
            "mlp_bias": True,
            "attention_sinks": True,
            "router_bias": True,
            "experts": config.count("num_local_experts"),
            "experts_per_token": config.count("num_experts_per_tok", "experts_per_token"),
            "moe_intermediate": width,
        }
        | sliding_window(config, layers=ceil(config.layers() / 2))
    )


def _gpt2_like(config: ConfigReader, *, tied: bool, width: str) -> ArchitectureFields:
    """Read a family like GPT-2: LayerNorm, a plain MLP of 4h unless the file has its width, biases everywhere."""
    hidden = config.count("hidden_size", "n_embd", "d_model")
    return {
        "mlp": "plain",
        "intermediate": config.optional_count(width) or 4 * hidden,
        "tied_embeddings": config.flag("tie_word_embeddings", default=tied),
        "qkv_bias": True,
        "output_bias": True,
        "mlp_bias": True,
        "norm_bias": True,
    }


def _phi(config: ConfigReader) -> ArchitectureFields:
    return _gpt2_like(config, tied=False, width="intermediate_size") | {"norms_per_layer": 1, "lm_head_bias": True}


def _gpt2(config: ConfigReader) -> ArchitectureFields:
    return _gpt2_like(config, tied=True, width="n_inner") | {"learned_positions": config.count("n_positions", "n_ctx")}


def _gpt_bigcode(config: ConfigReader) -> ArchitectureFields:
    heads = {"kv_heads": 1} if config.flag("multi_query", default=True) else {}
    return _gpt2(config) | heads


def _gpt_neox(config: ConfigReader) -> ArchitectureFields:
    bias = config.flag("attention_bias", default=True) if config.has("attention_bias") else True
    return _gpt2_like(config, tied=False, width="intermediate_size") | {"qkv_bias": bias, "output_bias": bias}


def _gptj(config: ConfigReader) -> ArchitectureFields:
    differences = {"qkv_bias": False, "output_bias": False, "norms_per_layer": 1, "lm_head_bias": True}
    return _gpt2_like(config, tied=False, width="n_inner") | differences


def _opt(config: ConfigReader) -> ArchitectureFields:
    config.require_one_of("word_embed_proj_dim", config.count("hidden_size"))
    config.require_one_of("enable_bias", True)
    positions = config.count("max_position_embeddings") + 2
    return _gpt2_like(config, tied=True, width="ffn_dim") | {"learned_positions": positions}


def _bloom(config: ConfigReader) -> ArchitectureFields:
    return _gpt2_like(config, tied=True, width="n_inner") | {"embedding_norm": True}


def _falcon(config: ConfigReader) -> ArchitectureFields:
    bias = config.flag("bias", default=False)
    grouped = config.flag("new_decoder_architecture", default=False)
    heads = config.count("num_attention_heads", "n_head")
    one = not grouped and config.flag("multi_query", default=True)
    norms = 1 if not grouped and config.flag("parallel_attn", default=True) else 2
    return _gpt2_like(config, tied=True, width="ffn_hidden_size") | {
        "kv_heads": 1 if one else (config.optional_count("num_kv_heads", "n_head_kv") or heads) if grouped else heads,
        "qkv_bias": bias,
        "output_bias": bias,
        "mlp_bias": bias,
        "norms_per_layer": (config.optional_count("num_ln_in_parallel_attn") or 2) if grouped else norms,
    }


def _starcoder2(config: ConfigReader) -> ArchitectureFields:
    bias = config.flag("use_bias", default=True)
    biases = {"qkv_bias": bias, "output_bias": bias, "mlp_bias": bias}
    return _gpt2_like(config, tied=True, width="intermediate_size") | biases | sliding_window(config)


FAMILIES: dict[str, Callable[[ConfigReader], ArchitectureFields]] = {
    "llama": _llama,
    "granite": _llama,
    "smollm3": _llama,
    "mistral": _mistral,
    "qwen2": qwen2,
    "qwen2_vl_text": qwen2,
    "qwen2_5_vl_text": qwen2,
    "qwen3": qwen3,
    "qwen3_vl_text": qwen3,
    "mimo": qwen2,
    "ministral3": _mistral,
    "gemma": _gemma,
    "gemma2": _gemma2,
    "gemma3": _gemma3,
    "gemma3_text": _gemma3,
    "phi3": _phi3,
    "olmo2": _olmo2,
    "cohere": _cohere,
    "mixtral": _mixtral,
    "qwen2_moe": _qwen2_moe,
    "qwen3_moe": _qwen3_moe,
    "qwen3_vl_moe_text": _qwen3_moe,
    "deepseek_v2": _deepseek,
    "deepseek_v3": _deepseek,
    "kimi_k2": _deepseek,
    "mistral4": _mistral4,
    "glm4_moe": _glm4_moe,
    "glm4_moe_lite": _glm4_moe_lite,
    "gpt_oss": _gpt_oss,
    "minimax_m2": _minimax_m2,
    "qwen3_next": qwen_hybrid,
    "qwen3_5_text": qwen_hybrid,
    "qwen3_5_moe_text": qwen_hybrid,
    "llama4_text": llama4,
    "gemma4_text": gemma4,
    "deepseek_v32": sparse_mla,
    "glm_moe_dsa": sparse_mla,
    "deepseek_v4": deepseek_v4,
    "deepseek_ref": deepseek_v4,
    "kimi_linear": kimi_linear,
    "nemotron_h": nemotron_h,
    "nemotron-nas": nemotron_nas,
    "minimax_m3": minimax_m3,
    "minimax_m3_vl_text": minimax_m3_text,
    "lfm2": lfm2,
    "lfm2_moe": lfm2,
    "seed_oss": _seed_oss,
    "ernie4_5": _ernie4_5,
    "mistral_large4_text": mistral_large4,
    "mimo_v2_flash": mimo_v2,
    "step3p5": step3,
    "step3p7": step3,
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
"""The function that reads a configuration, by its `model_type`.

The tests compare the resulting numbers of parameters with released checkpoints.
"""
