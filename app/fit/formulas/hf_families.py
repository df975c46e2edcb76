"""Model families of Hugging Face transformers: a function for each reads its configuration into architecture fields.

There are families with a gated MLP (like Llama), families with experts (like Mixtral), and families with a plain MLP
(like GPT-2). Source: the modelling code of transformers. A configuration of an unknown type is read as a standard
decoder: most models that are released differ from Llama, Mixtral or DeepSeek-V3 in small parts only, and keep the names
of their fields. What such a reading gives is an estimate, and says so.
"""

from collections.abc import Callable
from difflib import get_close_matches
from functools import partial
from math import ceil
from typing import Any

from app.fit.formulas.assumptions import InvalidWorkload
from app.fit.formulas.hf_fields import ArchitectureFields, ConfigReader
from app.fit.formulas.hf_hybrids import (
    deepseek_v4,
    gemma4,
    kimi_linear,
    lfm2,
    llama4,
    mimo_v2,
    minimax_m3,
    minimax_m3_text,
    mistral_large4,
    nemotron_h,
    nemotron_nas,
    qwen_hybrid,
    sparse_mla,
    step3,
)


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


Reader = Callable[[ConfigReader], ArchitectureFields]


def _all_of(*parts: Reader, **fields: Any) -> Reader:
    """Return the reader of a family whose fields are those of each part, of which later ones take precedence."""
    return lambda config: {name: value for part in parts for name, value in part(config).items()} | fields


def _flags(field: str, *names: str) -> Reader:
    """Return the reader of biases that a file has where one of its fields is set."""
    return lambda config: dict.fromkeys(names, bool(config.raw.get(field)))


def _every_second_window(config: ConfigReader) -> ArchitectureFields:
    return sliding_window(config, layers=ceil(config.layers() / 2))


def _wide_heads(config: ConfigReader) -> ArchitectureFields:
    return {"head_dim": config.count_or_default("head_dim", 256)}


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


def _gemma3(config: ConfigReader) -> ArchitectureFields:
    layers = config.layers()
    every = config.count_or_default("sliding_window_pattern", 6)
    shape = gated_mlp(config, tied=True) | _wide_heads(config) | {"norms_per_layer": 4, "qk_norm": "per_head"}
    return shape | sliding_window(config, layers=layers - layers // every)


def _cohere(config: ConfigReader) -> ArchitectureFields:
    qk_norm = config.has("use_qk_norm") and config.flag("use_qk_norm", default=False)
    return gated_mlp(config, tied=True) | {"norms_per_layer": 1, "qk_norm": "all_heads" if qk_norm else None}


def _local_experts(config: ConfigReader) -> ArchitectureFields:
    return {
        "experts": config.count("num_local_experts"),
        "experts_per_token": config.count("num_experts_per_tok"),
        "moe_intermediate": config.count("intermediate_size"),
    }


def _qwen_shared_expert(config: ConfigReader) -> ArchitectureFields:
    return {"shared_intermediate": config.count("shared_expert_intermediate_size"), "shared_expert_gate": True}


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


def _plain_mlp(config: ConfigReader, *, tied: bool, width: str) -> ArchitectureFields:
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


def _gpt2(config: ConfigReader) -> ArchitectureFields:
    return _plain_mlp(config, tied=True, width="n_inner") | {"learned_positions": config.count("n_positions", "n_ctx")}


def _one_kv_head(config: ConfigReader) -> ArchitectureFields:
    return {"kv_heads": 1} if config.flag("multi_query", default=True) else {}


def _neox_biases(config: ConfigReader) -> ArchitectureFields:
    bias = config.flag("attention_bias", default=True) if config.has("attention_bias") else True
    return {"qkv_bias": bias, "output_bias": bias}


def _starcoder2(config: ConfigReader) -> ArchitectureFields:
    biases = dict.fromkeys(("qkv_bias", "output_bias", "mlp_bias"), config.flag("use_bias", default=True))
    return _plain_mlp(config, tied=True, width="intermediate_size") | biases | sliding_window(config)


def _opt(config: ConfigReader) -> ArchitectureFields:
    config.require_one_of("word_embed_proj_dim", config.count("hidden_size"))
    config.require_one_of("enable_bias", True)
    positions = config.count("max_position_embeddings") + 2
    return _plain_mlp(config, tied=True, width="ffn_dim") | {"learned_positions": positions}


def _falcon(config: ConfigReader) -> ArchitectureFields:
    bias = config.flag("bias", default=False)
    grouped = config.flag("new_decoder_architecture", default=False)
    heads = config.count("num_attention_heads", "n_head")
    one = not grouped and config.flag("multi_query", default=True)
    norms = 1 if not grouped and config.flag("parallel_attn", default=True) else 2
    return _plain_mlp(config, tied=True, width="ffn_hidden_size") | {
        "kv_heads": 1 if one else (config.optional_count("num_kv_heads", "n_head_kv") or heads) if grouped else heads,
        "qkv_bias": bias,
        "output_bias": bias,
        "mlp_bias": bias,
        "norms_per_layer": (config.optional_count("num_ln_in_parallel_attn") or 2) if grouped else norms,
    }


_tied_mlp = partial(gated_mlp, tied=True)
_qwen3_moe = _all_of(qwen3, _qwen_experts)

FAMILIES: dict[str, Reader] = {
    "llama": gated_mlp,
    "granite": gated_mlp,
    "smollm3": gated_mlp,
    "mistral": _all_of(gated_mlp, sliding_window),
    "ministral3": _all_of(gated_mlp, sliding_window),
    "phi3": _all_of(gated_mlp, sliding_window),
    "olmo2": _all_of(gated_mlp, qk_norm="all_heads"),
    "seed_oss": _all_of(partial(gated_mlp, bias=True), _flags("attention_out_bias", "output_bias")),
    "ernie4_5": _all_of(_tied_mlp, _flags("use_bias", "qkv_bias", "output_bias", "mlp_bias")),
    "cohere": _cohere,
    "qwen2": qwen2,
    "qwen2_vl_text": qwen2,
    "qwen2_5_vl_text": qwen2,
    "mimo": qwen2,
    "qwen3": qwen3,
    "qwen3_vl_text": qwen3,
    "gemma": _all_of(_tied_mlp, _wide_heads),
    "gemma2": _all_of(_tied_mlp, _wide_heads, _every_second_window, norms_per_layer=4),
    "gemma3": _gemma3,
    "gemma3_text": _gemma3,
    "mixtral": _all_of(gated_mlp, _local_experts, sliding_window),
    "qwen2_moe": _all_of(_qwen_shared_expert, qwen2, _qwen_experts),
    "qwen3_moe": _qwen3_moe,
    "qwen3_vl_moe_text": _qwen3_moe,
    "deepseek_v2": _deepseek,
    "deepseek_v3": _deepseek,
    "kimi_k2": _deepseek,
    "mistral4": _all_of(_deepseek, router_bias=False),
    "glm4_moe": _glm4_moe,
    "glm4_moe_lite": _all_of(_deepseek, router_bias=True),
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
    "mistral_large4_text": mistral_large4,
    "mimo_v2_flash": mimo_v2,
    "step3p5": step3,
    "step3p7": step3,
    "gpt2": _gpt2,
    "gpt_bigcode": _all_of(_gpt2, _one_kv_head),
    "gpt_neox": _all_of(partial(_plain_mlp, tied=False, width="intermediate_size"), _neox_biases),
    "gptj": _all_of(
        partial(_plain_mlp, tied=False, width="n_inner"),
        qkv_bias=False,
        output_bias=False,
        norms_per_layer=1,
        lm_head_bias=True,
    ),
    "opt": _opt,
    "bloom": _all_of(partial(_plain_mlp, tied=True, width="n_inner"), embedding_norm=True),
    "falcon": _falcon,
    "starcoder2": _starcoder2,
    "phi": _all_of(partial(_plain_mlp, tied=False, width="intermediate_size"), norms_per_layer=1, lm_head_bias=True),
}
"""The function that reads a configuration, by its `model_type`.

The tests compare the resulting numbers of parameters with released checkpoints.
"""


EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts", "num_routed_experts")
EXPERTS_PER_TOKEN = ("num_experts_per_tok", "num_experts_per_token", "moe_k", "moe_topk", "moe_top_k", "top_k_experts")
EXPERT_WIDTH = ("moe_intermediate_size", "expert_intermediate_size", "moe_ffn_hidden_size")
SHARED_WIDTH = ("shared_expert_intermediate_size", "shared_intermediate_size")
SHARED_EXPERTS = ("n_shared_experts", "num_shared_experts", "moe_num_shared_experts")
DENSE_LAYERS = ("first_k_dense_replace", "num_dense_layers", "moe_layer_start_index")
LATENT_WIDTHS = ("qk_nope_head_dim", "qk_rope_head_dim", "v_head_dim")

_REQUIRED = (
    ("num_hidden_layers", "n_layer", "n_layers", "num_layers"),
    ("hidden_size", "n_embd", "d_model"),
    ("num_attention_heads", "n_head", "n_heads"),
    ("num_key_value_heads",),
    ("vocab_size",),
)
"""Fields without which nothing is read, each under its usual names."""

_NO_ATTENTION = ("mamba", "ssm_", "linear_", "conv_", "rwkv", "lru_", "rglru", "state_size", "time_step", "xlstm")
"""How names of fields begin that describe layers which are not attention."""

_OTHER_PARTS = (
    "hidden_size_per_layer_input",
    "block_configs",
    "per_layer_config",
    "num_keys",
    "block_auto_adjust_ff_dim",
)
"""Fields of parts that change a model by far more than the range of such a reading."""

_LISTS_OF_LAYERS = frozenset({"layer_types", "mlp_layer_types", "moe_layer_freq", "no_rope_layers", "indexer_types"})
"""Fields with an entry for every layer that are read, or that change neither parameters nor cache by much."""

_PLAIN_ACTIVATIONS = ("relu2", "relu", "xielu", "gelu_new", "gelu_fast")
"""Activations that stand in MLPs of two matrices."""

_GENERATES = ("ForCausalLM", "ForConditionalGeneration", "LMHeadModel")


def standard_decoder(config: ConfigReader) -> ArchitectureFields:
    """Read the fields of a standard decoder; raises InvalidWorkload naming those that are missing or say otherwise.

    What is assumed is recorded.
    """
    _refuse_other_kinds(config)
    experts = 0 if config.raw.get("is_moe") is False else config.number(*EXPERTS)
    has_experts, latent = experts > 1, config.has("kv_lora_rank")
    missing = _missing_fields(config, has_experts=has_experts, latent=latent)
    if missing:
        raise _unreadable(config, f"{', '.join(missing)} is missing")
    activation = config.raw.get("hidden_act") or config.raw.get("hidden_activation")
    plain = activation in _PLAIN_ACTIVATIONS
    _record(config, plain=plain, has_experts=has_experts, latent=latent)
    return {
        "unknown_type": True,
        "mlp": "plain" if plain else "gated",
        "intermediate": config.optional_count("intermediate_size"),
        "tied_embeddings": config.flag("tie_word_embeddings", default=False),
        "qk_norm": "per_head" if config.raw.get("use_qk_norm") else None,
        **(_latent(config) if latent else {}),
        **(_experts(config, experts) if has_experts else {}),
    }


def _missing_fields(config: ConfigReader, *, has_experts: bool, latent: bool) -> list[str]:
    """Return the usual names of the fields that are needed and missing."""
    needed: list[tuple[str, ...]] = [*_REQUIRED, *((name,) for name in LATENT_WIDTHS if latent)]
    missing = [names[0] for names in needed if not any(config.has(name) for name in names)]
    if has_experts and not any(config.has(name) for name in EXPERTS_PER_TOKEN):
        missing.append(EXPERTS_PER_TOKEN[0])
    if has_experts and not any(config.has(name) for name in (*EXPERT_WIDTH, "intermediate_size")):
        missing.append(EXPERT_WIDTH[0])
    dense = not has_experts or ("num_hidden_layers" not in missing and _sparse_layers(config) < config.layers())
    return [*missing, *(["intermediate_size"] if dense and not config.has("intermediate_size") else [])]


def _unreadable(config: ConfigReader, why: str) -> InvalidWorkload:
    detail = f"{_type_of(config)} is not known, and cannot be read as a standard decoder, since {why}"
    return InvalidWorkload("config.model_type", f"{detail}; give architecture, or safetensors alone")


def _type_of(config: ConfigReader) -> str:
    """Return the type, with the known one of nearly that name."""
    name = str(config.raw.get("model_type"))[:80]
    near = get_close_matches(name, FAMILIES, 1)
    return f"{name!r} (did you mean {near[0]}?)" if near else repr(name)


def _refuse_other_kinds(config: ConfigReader) -> None:
    """Raise InvalidWorkload where the fields are those of another kind of model."""
    named = [str(name) for name in config.get_list("architectures")]
    paired = config.raw.get("is_encoder_decoder") is True
    if paired or (named and not any(name.endswith(_GENERATES) for name in named)):
        raise _unreadable(config, f"it is {', '.join(named)[:80] or 'an encoder and a decoder'}")
    given = [name for name in map(str, config.raw) if config.raw.get(name) not in (None, 0, False)]
    parts = {name for name in given if name in _OTHER_PARTS}
    parts |= {name for name in given if name not in _LISTS_OF_LAYERS and _has_an_entry_for_each_layer(config, name)}
    if not config.has("layer_types"):
        parts |= {name for name in given if name.startswith(_NO_ATTENTION)}
    if parts:
        raise _unreadable(config, f"{', '.join(sorted(parts)[:4])} is of parts that it does not have")


def _has_an_entry_for_each_layer(config: ConfigReader, name: str) -> bool:
    listed, layers = config.raw[name], config.raw.get("num_hidden_layers")
    return isinstance(listed, list) and type(layers) is int and len(listed) >= layers > 1


def _record(config: ConfigReader, *, plain: bool, has_experts: bool, latent: bool) -> None:
    mlp = f"a {'plain' if plain else 'gated'} MLP{' and experts' if has_experts else ''}"
    attention = "latent heads" if latent else "grouped heads"
    why = f"{_type_of(config)} is not known: read as layers of attention with {attention} and {mlp}, and nothing else"
    config.note("model_type", "standard decoder", why)


def _latent(config: ConfigReader) -> ArchitectureFields:
    ranks = {name: config.count(name) for name in ("kv_lora_rank", *LATENT_WIDTHS)}
    head_dim = ranks["qk_nope_head_dim"] + ranks["qk_rope_head_dim"]
    return {**ranks, "q_lora_rank": config.optional_count("q_lora_rank"), "head_dim": head_dim}


def _experts(config: ConfigReader, experts: int) -> ArchitectureFields:
    width = config.count(*EXPERT_WIDTH, "intermediate_size")
    shared = config.number(*SHARED_WIDTH) or config.number(*SHARED_EXPERTS) * width
    return {
        "experts": experts,
        "experts_per_token": config.count(*EXPERTS_PER_TOKEN),
        "moe_intermediate": width,
        "shared_intermediate": shared,
        "moe_layers": _sparse_layers(config),
    }


def _sparse_layers(config: ConfigReader) -> int:
    """Return how many layers have experts: by a list of their kinds, else all but the first, or every n-th."""
    layers = config.layers()
    kinds = config.get_list("mlp_layer_types")
    if kinds:
        return layers - min(layers, kinds.count("dense"))
    listed = config.raw.get("moe_layer_freq")
    if isinstance(listed, list):
        return min(layers, sum(bool(one) for one in listed))
    dense = min(layers, config.number(*DENSE_LAYERS))
    named = len(config.get_list("mlp_only_layers"))
    step = config.number("decoder_sparse_step", "moe_layer_interval", "interleave_moe_layer_step") or 1
    return max(1, (layers - dense) // step - min(named, layers - dense))
