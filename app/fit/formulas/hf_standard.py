"""Reads a configuration of an unknown type as a standard decoder: grouped heads or MLA, a gated MLP or experts.

Most models that are released differ from Llama, Mixtral or DeepSeek-V3 in small parts only, and keep the names of their
fields. What such a reading gives is an estimate, and says so.
"""

from difflib import get_close_matches

from app.fit.formulas.assumptions import InvalidWorkload
from app.fit.formulas.hf_families import FAMILIES
from app.fit.formulas.hf_fields import ArchitectureFields, ConfigReader

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
