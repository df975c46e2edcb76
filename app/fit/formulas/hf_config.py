"""Reads a Hugging Face `config.json` into an Architecture: by its family, or of an unknown type as a standard decoder.

Most models that are released differ from Llama, Mixtral or DeepSeek-V3 in small parts only, and keep the names of their
fields. What the reading as a standard decoder gives is an estimate, and says so.
"""

from collections.abc import Mapping
from dataclasses import replace
from math import ceil
from typing import Any

from app.fit.formulas.architecture import Architecture, count_parameters, missing_for_count
from app.fit.formulas.hf_encoders import ENCODERS, read_diffusion, reads_only, vision_parameters
from app.fit.formulas.hf_families import DEFAULTS, FAMILIES
from app.fit.formulas.hf_hybrids import LATENT
from app.fit.formulas.hf_layers import (
    MTP_LAYERS,
    OTHER_DRAFT_LAYERS,
    ArchitectureFields,
    ConfigReader,
    Experts,
    after,
    check_heads,
    count,
    kinds_of_layers,
    longest_context,
    read_fields,
)
from app.fit.formulas.hf_quantization import read_released_weights
from app.fit.formulas.quantities import MAX_SHOWN, Assumptions, InvalidWorkload, shown
from app.fit.formulas.weight_matrices import MAX_UNMATCHED, MatrixFormats, unmatched_names, weight_matrices
from app.nearest import closest_spellings, did_you_mean

_WINDOWED_KINDS = ("sliding_attention", "chunked_attention")
_UNCACHED_KINDS = ("linear_attention", "mamba", "recurrent")


def read_config(raw: Mapping[str, Any], assumptions: Assumptions) -> Architecture:
    """Read a `config.json`; raise InvalidWorkload naming the field that is missing or not understood.

    Of a multimodal model, `text_config` is read, and the vision tower is counted where its type is known. Defaults of
    the family that are used are recorded.
    """
    if "_class_name" in raw:

        def count_model(config: Mapping[str, Any]) -> int:
            return count_parameters(read_config(config, Assumptions())).total

        return Architecture(**read_diffusion(raw, assumptions, count_model))
    outer, config = raw, ConfigReader(raw, assumptions)
    text, path = raw.get("text_config"), "config"
    if isinstance(text, Mapping):
        inherited = {name: raw[name] for name in ("model_type", "tie_word_embeddings") if raw.get(name) is not None}
        around = {name for name in inherited if text.get(name) is None}
        raw = inherited | {name: value for name, value in text.items() if name not in around}
        path = "config.text_config"
        config = ConfigReader(raw, assumptions, path, around=around)
    elif text is not None:
        config.refuse("text_config", f"{shown(text)} is not an object")
    name = config.raw.get("model_type")
    if name is None:
        raise InvalidWorkload("config.model_type", "is missing; it says how the other fields are to be read")
    if not isinstance(name, str):
        config.refuse("model_type", f"{shown(name)} is not text")
    if name in ENCODERS:
        return Architecture(
            **ENCODERS[name](config), released=read_released_weights(outer, raw, assumptions, path, experts=False)
        )
    config = config.with_defaults(DEFAULTS.get(name, {}))
    own = FAMILIES.get(name, standard_decoder)(config)
    fields = _common_fields(config) | own
    if not fields.get("groups"):
        if fields.get("kv_lora_rank") is None:
            check_heads(config, fields["heads"], fields["kv_heads"])
            if "kv_heads" not in own and not config.has("num_key_value_heads"):
                config.note("num_key_value_heads", fields["kv_heads"], "as many as heads (MHA)")
        fields |= _fields_of_layer_types(config)
    if reads_only(whole := ConfigReader(outer, assumptions)):
        why = "none of them generates: read as an encoder, without an output layer"
        whole.note("architectures", outer["architectures"], why)
        fields |= {"kind": "encoder", "tied_embeddings": True, "may_be_tied": False}
    fields["outside"] = fields.get("outside", 0) + vision_parameters(outer, fields["hidden"], assumptions)
    released = read_released_weights(outer, raw, assumptions, path, experts=fields.get("experts") is not None)
    shape = Architecture(**fields, **_mtp_fields(config), released=released)
    _note_unmatched(shape, config.draft_layers(), assumptions)
    return _name_by_most_weights(shape)


def _note_unmatched(shape: Architecture, drafts: int, assumptions: Assumptions) -> None:
    """Record the entries of the list of modules in 16 bits that name nothing; `drafts` layers are not counted."""
    released = shape.released
    if released is None or released.quantization is None or released.excluded_at is None or missing_for_count(shape):
        return
    unmatched = unmatched_names(shape, released.quantization, drafts=drafts)
    if unmatched:
        value = ", ".join(entry[:MAX_SHOWN] for entry in unmatched[:_MAX_QUOTED])
        if len(unmatched) > _MAX_QUOTED:
            least = "at least " if len(unmatched) == MAX_UNMATCHED else ""
            value += f" and {least}{len(unmatched) - _MAX_QUOTED:,} more"
        why = "entries that name no weight that is counted, and so exclude nothing"
        assumptions.record(released.excluded_at, value, why)


_MAX_QUOTED = 5
"""Entries that an assumption quotes."""


def _name_by_most_weights(shape: Architecture) -> Architecture:
    """Return the architecture with its released type named by the format of most weights, where there are several."""
    released = shape.released
    if released is None or released.quantization is None or len(released.quantization.groups) == 1:
        return shape
    weights: dict[str | None, int] = {}
    formats = MatrixFormats(released.quantization)
    for matrix in () if missing_for_count(shape) else weight_matrices(shape):
        for stored, copies in formats.formats(matrix):
            if stored is not None:
                weights[stored.dtype] = weights.get(stored.dtype, 0) + matrix.params * copies
    most = max(weights, key=lambda dtype: weights[dtype], default=released.dtype)
    return replace(shape, released=replace(released, dtype=most))


def _mtp_fields(config: ConfigReader) -> ArchitectureFields:
    """Read the layers of multi-token prediction, which a checkpoint has beside those of the model."""
    layers = {name: config.some_layers(name) for name in (*MTP_LAYERS, *OTHER_DRAFT_LAYERS)}
    name = next((name for name, stated in layers.items() if stated), None)
    if name is None:
        return {}
    kind = str(config.raw.get("model_type"))
    if name in OTHER_DRAFT_LAYERS or kind in _WITH_OTHER_MTP_LAYERS:
        config.note(name, 0, "layers that draft further tokens are not counted: the file does not describe them")
        return {}
    why = "layers of multi-token prediction, which are counted only where inference.speculative uses them"
    config.note(name, layers[name], why)
    return {"mtp_layers": layers[name], "mtp_embeddings": kind in _WITH_MTP_EMBEDDINGS}


_WITH_OTHER_MTP_LAYERS = frozenset({"step3p5", "step3p7"})
"""Types whose layers of multi-token prediction have a dense MLP, whereas those of the model have experts."""
_WITH_MTP_EMBEDDINGS = frozenset({"deepseek_v3", "deepseek_v32", "glm4_moe", "glm4_moe_lite", "glm_moe_dsa"})
"""Types whose checkpoints have an embedding and an output layer in each layer of multi-token prediction.

Source: the tensors of `model.layers.61` of DeepSeek-V3, which SGLang and vLLM read for all of these types.
"""


def _common_fields(config: ConfigReader) -> dict[str, Any]:
    """Read the fields that every family has under one of a few names."""
    hidden = config.count("hidden_size", "n_embd", "d_model")
    heads = config.count("num_attention_heads", "n_head", "n_heads")
    if not config.has("head_dim") and not config.has("qk_rope_head_dim") and hidden % heads:
        config.refuse("head_dim", f"is missing, and hidden {hidden} is not a multiple of {heads} heads")
    return {
        "layers": config.layers(),
        "hidden": hidden,
        "heads": heads,
        "kv_heads": config.optional_count("num_key_value_heads") or heads,
        "head_dim": config.optional_count("head_dim") or hidden // heads,
        "vocab": config.count("vocab_size"),
        "max_positions": longest_context(config),
    }


def _fields_of_layer_types(config: ConfigReader) -> dict[str, Any]:
    """Read `layer_types`, which newer files have: the kind of attention of every layer; else the pattern of windows."""
    kinds = kinds_of_layers(config, "layer_types", ("full_attention", *_WINDOWED_KINDS, *_UNCACHED_KINDS))
    if kinds is None:
        return _fields_of_pattern(config) if config.has("sliding_window_pattern") else {}
    windowed = sum(kind in _WINDOWED_KINDS for kind in kinds)
    window = config.optional_count("sliding_window", "attention_chunk_size") if windowed else None
    return {
        "kv_layers": sum(kind not in _UNCACHED_KINDS for kind in kinds),
        "sliding_window": window,
        "sliding_layers": windowed if window is not None else None,
    }


def _fields_of_pattern(config: ConfigReader) -> dict[str, Any]:
    """Read `sliding_window_pattern`: every n-th layer has no window, or a letter for each of some layers (EXAONE 4).

    Letters are L, local, and G, global; the last layer is global. Source: transformers, and LG's modelling code.
    """
    window, pattern, layers = (
        config.optional_count("sliding_window"),
        config.raw["sliding_window_pattern"],
        config.layers(),
    )
    if not isinstance(pattern, str):
        windowed = layers - layers // config.count("sliding_window_pattern")
    elif pattern and set(pattern) <= {"L", "G"}:
        windowed = sum(pattern[layer % len(pattern)] == "L" for layer in range(layers - 1))
    else:
        config.refuse(
            "sliding_window_pattern", f"{shown(pattern)} is neither a number of layers nor of letters L and G"
        )
    return {} if window is None else {"sliding_window": window, "sliding_layers": windowed}


EXPERTS = ("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts", "num_routed_experts")
EXPERTS_PER_TOKEN = ("num_experts_per_tok", "num_experts_per_token", "moe_k", "moe_topk", "moe_top_k", "top_k_experts")
EXPERT_WIDTH = ("moe_intermediate_size", "expert_intermediate_size", "moe_ffn_hidden_size")
SHARED_WIDTH = ("shared_expert_intermediate_size", "shared_intermediate_size")
SHARED_EXPERTS = ("n_shared_experts", "num_shared_experts", "moe_num_shared_experts", "num_shared_expert")
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
    "use_residual",
    "parallel_attn_mlp_res",
)
"""Fields of parts that change a model by far more than the range of such a reading."""

_LISTS_OF_LAYERS = frozenset({"layer_types", "mlp_layer_types", "moe_layer_freq", "no_rope_layers", "indexer_types"})
"""Fields with an entry for every layer that are read, or that change neither parameters nor cache by much."""

_UNTIED = "an assumption, as the file does not say: an output layer of its own is counted, the low end is without it"

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
        raise _unreadable(config, f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing")
    activation = config.raw.get("hidden_act") or config.raw.get("hidden_activation")
    plain = activation in _PLAIN_ACTIVATIONS
    mlp = f"a {'plain' if plain else 'gated'} MLP{' and experts' if has_experts else ''}"
    attention = "latent heads" if latent else "grouped heads"
    why = f"{_type_of(config)} is not known: read as layers of attention with {attention} and {mlp}, and nothing else"
    config.note("model_type", "standard decoder", why)
    return {
        "unknown_type": True,
        "mlp": "plain" if plain else "gated",
        "intermediate": config.optional_count("intermediate_size"),
        "tied_embeddings": config.flag("tie_word_embeddings", default=False, why=_UNTIED),
        "may_be_tied": not config.has("tie_word_embeddings"),
        "qk_norm": "per_head" if config.raw.get("use_qk_norm") else None,
        **(read_fields(config, LATENT) if latent else {}),
        **(STANDARD_EXPERTS.fields(config) if has_experts else {}),
        **_shared_caches(config),
    }


def _shared_caches(config: ConfigReader) -> ArchitectureFields:
    """Read cross-layer attention (arXiv 2405.12981), in which the first of some layers has the keys and values of all.

    The matrices of keys and values of the other layers are counted, as if they had them. Source: Hunyuan-Large's
    modelling code.
    """
    if not config.has("use_cla") or not config.flag("use_cla", default=False):
        return {}
    own = ceil(config.layers() / config.count("cla_share_factor"))
    config.note("use_cla", own, "layers that keep keys and values: the first of each cla_share_factor")
    return {"kv_layers": own}


def _dense_beside_experts(config: ConfigReader) -> int:
    """Return the width of the dense MLP that a layer with experts has besides: that of Grok-2, by SGLang's code."""
    if not config.has("residual_moe") or not config.flag("residual_moe", default=False):
        return 0
    width = config.count("intermediate_size")
    config.note("residual_moe", width, "the width of a dense MLP beside the experts of a layer")
    return width


def _missing_fields(config: ConfigReader, *, has_experts: bool, latent: bool) -> list[str]:
    """Return the usual names of the fields that are needed and missing."""
    needed: list[tuple[str, ...]] = [*_REQUIRED, *((name,) for name in LATENT_WIDTHS if latent)]
    missing = [names[0] for names in needed if not any(config.has(name) for name in names)]
    if has_experts and not any(config.has(name) for name in EXPERTS_PER_TOKEN):
        missing.append(EXPERTS_PER_TOKEN[0])
    if has_experts and not any(config.has(name) for name in (*EXPERT_WIDTH, "intermediate_size")):
        missing.append(EXPERT_WIDTH[0])
    dense = (
        not has_experts
        or config.raw.get("residual_moe") is True
        or ("num_hidden_layers" not in missing and _sparse_layers(config) < config.layers())
    )
    return [*missing, *(["intermediate_size"] if dense and not config.has("intermediate_size") else [])]


def _unreadable(config: ConfigReader, why: str) -> InvalidWorkload:
    detail = f"{_type_of(config)} is not known, and cannot be read as a standard decoder, since {why}"
    return InvalidWorkload(config.path("model_type"), f"{detail}; give architecture, or safetensors alone")


def _type_of(config: ConfigReader) -> str:
    """Return the type, with the known one that it is a typo of.

    Another letter or number in the same place is another model, not a typo: llava is not llama, nor qwen4 qwen3.
    """
    name = str(config.raw.get("model_type"))[:MAX_SHOWN]
    near = [known for known in closest_spellings(name, FAMILIES, limit=3) if _may_be_typo(name.lower(), known)]
    return f"{name!r} ({did_you_mean(near[:1])})" if near else repr(name)


def _may_be_typo(name: str, known: str) -> bool:
    """Whether a nearly equal name has a letter too many or too few, or letters swapped, and the same digits."""
    letters, others = (sorted(filter(str.isalpha, one)) for one in (name, known))
    digits, wanted = (list(filter(str.isdigit, one)) for one in (name, known))
    return digits == wanted and (letters == others or len(letters) != len(others))


def _refuse_other_kinds(config: ConfigReader) -> None:
    """Raise InvalidWorkload where the fields are those of another kind of model."""
    named = [str(name) for name in config.get_list("architectures")]
    paired = config.raw.get("is_encoder_decoder") is True
    if paired or (named and not any(name.endswith(_GENERATES) for name in named)):
        raise _unreadable(config, f"it is {', '.join(named)[:80] or 'an encoder and a decoder'}")
    given = [name for name in map(str, config.raw) if config.raw.get(name) not in (None, 0, False)]
    parts, layers = {name for name in given if name in _OTHER_PARTS}, config.raw.get("num_hidden_layers")
    # A list with an entry for each layer says that they differ.
    lists = [name for name in given if isinstance(config.raw[name], list) and name not in _LISTS_OF_LAYERS]
    parts |= {name for name in lists if type(layers) is int and len(config.raw[name]) >= layers > 1}
    if not config.has("layer_types"):
        parts |= {name for name in given if name.startswith(_NO_ATTENTION)}
    if parts:
        describe = "describes" if len(parts) == 1 else "describe"
        raise _unreadable(config, f"{', '.join(sorted(parts)[:4])} {describe} parts that it does not have")


def _sparse_layers(config: ConfigReader) -> int:
    """Return how many layers have experts: by a list of their kinds, else all but the first, or every n-th."""
    layers = config.layers()
    if config.has("mlp_layer_types"):
        return layers - config.entries("mlp_layer_types").count("dense")
    if isinstance(config.raw.get("moe_layer_freq"), list):
        return sum(bool(entry) for entry in config.entries("moe_layer_freq"))
    dense = config.some_layers(*DENSE_LAYERS)
    named = len(config.numbers_of_layers("mlp_only_layers"))
    names = ("decoder_sparse_step", "moe_layer_interval", "interleave_moe_layer_step", "moe_layer_freq")
    step = config.number(*names) or 1
    return max(1, (layers - dense) // step - min(named, layers - dense))


STANDARD_EXPERTS = Experts(
    count=EXPERTS,
    per_token=EXPERTS_PER_TOKEN,
    width=count(*EXPERT_WIDTH, "intermediate_size"),
    shared=lambda config, width: (
        _dense_beside_experts(config) + (config.number(*SHARED_WIDTH) or config.number(*SHARED_EXPERTS) * width)
    ),
    sparse=after(lambda config: config.layers() - _sparse_layers(config)),
)
