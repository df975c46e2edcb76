"""Reads a Hugging Face `config.json` into an Architecture, with the parameters of a vision tower.

Each vision tower is counted by the modelling code of transformers 5.23, with which the tests compare the counts; Kimi
K3's by that of SGLang 0.5.23.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from app.fit.formulas.architecture import Architecture, count_parameters, missing_for_count
from app.fit.formulas.assumptions import Assumptions, InvalidWorkload
from app.fit.formulas.hf_encoders import ENCODERS, read_diffusion, reads_only
from app.fit.formulas.hf_families import FAMILIES, standard_decoder
from app.fit.formulas.hf_fields import ArchitectureFields, ConfigReader, longest_context
from app.fit.formulas.hf_quantization import read_released_weights
from app.fit.formulas.weight_matrices import MatrixFormats, weight_matrices

_WINDOWED_KINDS = {"sliding_attention", "chunked_attention"}
_UNCACHED_KINDS = {"linear_attention", "mamba", "recurrent"}


def read_config(raw: Mapping[str, Any], assumptions: Assumptions) -> Architecture:
    """Read a `config.json`; raise InvalidWorkload naming the field that is missing or not understood.

    Of a multimodal model, `text_config` is read, and the vision tower is counted where its type is known. Defaults of
    the family that are used are recorded.
    """
    if "_class_name" in raw:

        def count_model(config: Mapping[str, Any]) -> int:
            return count_parameters(read_config(config, Assumptions())).total

        return Architecture(**read_diffusion(raw, assumptions, count_model))
    outer, text = raw, raw.get("text_config")
    if isinstance(text, Mapping):
        inherited = {name: raw[name] for name in ("model_type", "tie_word_embeddings") if raw.get(name) is not None}
        raw = inherited | {name: value for name, value in text.items() if name != "model_type" or value is not None}
    config = ConfigReader(raw, assumptions)
    name = config.raw.get("model_type")
    if name is None:
        raise InvalidWorkload("config.model_type", "is missing; it says how the other fields are to be read")
    if not isinstance(name, str):
        raise InvalidWorkload("config.model_type", f"{str(name)[:80]} is no text")
    if name in ENCODERS:
        return Architecture(
            **ENCODERS[name](config), released=read_released_weights(outer, raw, assumptions, experts=False)
        )
    own = FAMILIES.get(name, standard_decoder)(config)
    fields = _common_fields(config) | own
    if not fields.get("groups"):
        fields |= _fields_of_layer_types(config)
    if reads_only(ConfigReader(outer, assumptions)):
        why = "none of them generates: read as an encoder, without an output layer"
        config.note("architectures", outer["architectures"], why)
        fields |= {"kind": "encoder", "tied_embeddings": True}
    fields["outside"] = fields.get("outside", 0) + vision_parameters(outer, fields["hidden"], assumptions)
    released = read_released_weights(outer, raw, assumptions, experts=fields.get("experts") is not None)
    return _name_by_most_weights(Architecture(**fields, **_mtp_fields(config), released=released))


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
    names = (*_MTP_LAYERS, *_OTHER_DRAFT_LAYERS)
    name = next((name for name in names if type(config.raw.get(name)) is int and config.raw[name] > 0), None)
    if name is None:
        return {}
    kind = str(config.raw.get("model_type"))
    if name in _OTHER_DRAFT_LAYERS or kind in _WITH_OTHER_MTP_LAYERS:
        config.note(name, 0, "layers that draft further tokens are not counted: the file does not describe them")
        return {}
    config.note(name, 0, "layers of multi-token prediction are counted only where inference.speculative uses them")
    return {"mtp_layers": config.count(name), "mtp_embeddings": kind in _WITH_MTP_EMBEDDINGS}


_MTP_LAYERS = ("num_nextn_predict_layers", "mtp_num_hidden_layers")
"""Fields with the number of layers that are as those of the model: of DeepSeek, GLM and Nemotron, and of Qwen3.5."""
_OTHER_DRAFT_LAYERS = ("num_mtp_modules", "num_mtp_layers")
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
        raise InvalidWorkload("config.head_dim", f"is missing, and hidden {hidden} is no multiple of {heads} heads")
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
    """Read `layer_types`, which newer files have: the kind of attention of every layer."""
    kinds = config.raw.get("layer_types")
    if not isinstance(kinds, list):
        return {}
    unknown = {str(kind) for kind in kinds} - {"full_attention", *_WINDOWED_KINDS, *_UNCACHED_KINDS}
    if unknown:
        raise InvalidWorkload("config.layer_types", f"{', '.join(sorted(unknown))} is not understood")
    windowed = sum(kind in _WINDOWED_KINDS for kind in kinds)
    window = config.optional_count("sliding_window", "attention_chunk_size") if windowed else None
    return {
        "kv_layers": sum(kind not in _UNCACHED_KINDS for kind in kinds),
        "sliding_window": window,
        "sliding_layers": windowed if window is not None else None,
    }


def vision_parameters(outer: Mapping[str, Any], hidden: int, assumptions: Assumptions) -> int:
    """Return the parameters of the vision tower and its projection to `hidden`; 0 where there is none.

    A tower of an unknown type is not counted, which is recorded, as are audio towers.
    """
    if isinstance(outer.get("audio_config"), Mapping):
        assumptions.record("config.audio_config", 0, "the audio tower is not counted")
    raw = outer.get("vision_config")
    if not isinstance(raw, Mapping):
        if isinstance(outer.get("text_config"), Mapping):
            assumptions.record("config.text_config", "alone", "only the language model is counted")
        return 0
    count = TOWERS.get(str(outer.get("model_type")))
    if count is None:
        why = "the type of its vision tower is not known: only the language model is counted"
        assumptions.record("config.text_config", "alone", why)
        return 0
    params = count(ConfigReader(raw, assumptions, "config.vision_config"), outer, hidden)
    why = "parameters of the vision tower, in 16 bits; images take further memory while they are encoded"
    return assumptions.record("config.vision_config", params, why)


def _transformer(width: int, mlp: int, *, biases: bool = True, gated: bool = False, inner: int | None = None) -> int:
    """Count the matrices and biases of one layer: four of attention, two or three of the MLP; without norms."""
    attention, matrices = 4 * width * (inner or width), (3 if gated else 2) * width * mlp
    return attention + matrices + (5 * width + mlp if biases else 0)


def _layer_norm(width: int) -> int:
    return 2 * width


def _qwen(config: ConfigReader, _outer: Mapping[str, Any], _hidden: int) -> int:
    """Count the tower of Qwen3-VL and Qwen3.5: learned positions, and mergers at the end and of the deep stack."""
    width, mlp, out = config.count("hidden_size"), config.count("intermediate_size"), config.count("out_hidden_size")
    patch = config.count("in_channels") * config.count("temporal_patch_size") * config.count("patch_size") ** 2
    merged = width * config.count("spatial_merge_size") ** 2
    layer = _transformer(width, mlp) + 2 * _layer_norm(width)
    merger = merged * merged + merged + merged * out + out
    deep = len(config.get_list("deepstack_visual_indexes")) * (merger + _layer_norm(merged))
    ends = patch * width + width + config.count("num_position_embeddings") * width
    return ends + config.count("depth") * layer + merger + _layer_norm(width) + deep


def _gemma4(config: ConfigReader, _outer: Mapping[str, Any], hidden: int) -> int:
    """Count the tower of Gemma 4: a gated MLP, norms before and after each part, a norm for each head's width."""
    width, mlp, heads = config.count("hidden_size"), config.count("intermediate_size"), config.count("head_dim")
    layer = _transformer(width, mlp, biases=False, gated=True) + 4 * width + 2 * heads
    patch = 3 * config.count("patch_size") ** 2 * width
    positions = 2 * config.count("position_embedding_size") * width
    return config.count("num_hidden_layers") * layer + patch + positions + hidden * width


def _llama4(config: ConfigReader, _outer: Mapping[str, Any], hidden: int) -> int:
    """Count the tower of Llama 4, with its adapter and projection."""
    width, mlp = config.count_or_default("hidden_size", 1408), config.count_or_default("intermediate_size", 5632)
    patch, size = config.count_or_default("patch_size", 14), config.count_or_default("image_size", 336)
    inner = config.count_or_default("projector_input_dim", 4096)
    out = config.count_or_default("vision_output_dim", 4096)
    layer = _transformer(width, mlp) + 2 * _layer_norm(width)
    ends = 3 * patch**2 * width + width + ((size // patch) ** 2 + 1) * width + 2 * _layer_norm(width)
    adapter = mlp * inner + inner * config.count_or_default("projector_output_dim", 4096) + out * hidden
    return config.count_or_default("num_hidden_layers", 34) * layer + ends + adapter


def _moonvit(config: ConfigReader, _outer: Mapping[str, Any], hidden: int) -> int:
    """Count MoonViT, the tower of Kimi K2.5: positions of a grid, and a merger of four patches."""
    width, mlp = config.count("vt_hidden_size"), config.count("vt_intermediate_size")
    grid = config.count("init_pos_emb_height") * config.count("init_pos_emb_width") * width
    patch = 3 * config.count("patch_size") ** 2 * width
    layer = _transformer(width, mlp) + 2 * _layer_norm(width)
    merged = 4 * width
    projector = _layer_norm(width) + merged * merged + merged + merged * hidden + hidden
    return config.count("vt_num_hidden_layers") * layer + grid + patch + width + _layer_norm(width) + projector


def _moonvit_k3(config: ConfigReader, _outer: Mapping[str, Any], hidden: int) -> int:
    """Count the tower of Kimi K3: RMSNorm, no biases, a wider attention."""
    width, mlp = config.count("vt_hidden_size"), config.count("vt_intermediate_size")
    inner = config.count_or_default("qkv_hidden_size", width)
    grid = config.count("init_pos_emb_height") * config.count("init_pos_emb_width") * width
    layer = _transformer(width, mlp, biases=False, inner=inner) + 2 * width
    merged = 4 * width
    projector = merged * merged + merged * hidden + hidden
    return (
        config.count("vt_num_hidden_layers") * layer
        + grid
        + 3 * config.count("patch_size") ** 2 * width
        + width
        + projector
    )


def _siglip(config: ConfigReader, _outer: Mapping[str, Any], hidden: int) -> int:
    """Count SigLIP, the tower of Gemma 3, with its projection."""
    width, mlp = config.count_or_default("hidden_size", 1152), config.count_or_default("intermediate_size", 4304)
    patch, size = config.count_or_default("patch_size", 14), config.count_or_default("image_size", 896)
    layer = _transformer(width, mlp) + 2 * _layer_norm(width)
    ends = 3 * patch**2 * width + width + (size // patch) ** 2 * width + _layer_norm(width)
    return config.count_or_default("num_hidden_layers", 27) * layer + ends + width * hidden + width


def _pixtral(config: ConfigReader, outer: Mapping[str, Any], hidden: int) -> int:
    """Count Pixtral's tower and the projector of Mistral 3, which merges patches."""
    width, mlp = config.count_or_default("hidden_size", 1024), config.count_or_default("intermediate_size", 4096)
    layer = _transformer(width, mlp, biases=False, gated=True) + 2 * width
    merge = outer.get("spatial_merge_size")
    merged = merge if type(merge) is int and 0 < merge <= 16 else 2  # noqa: PLR2004  # no released model has more
    projector = width + merged**2 * width * width + width * hidden + hidden * hidden
    patch = 3 * config.count_or_default("patch_size", 16) ** 2 * width
    return config.count_or_default("num_hidden_layers", 24) * layer + patch + width + projector


def _qwen2_5(config: ConfigReader, _outer: Mapping[str, Any], hidden: int) -> int:
    """Count the tower of Qwen2.5-VL: RMSNorm, a gated MLP with biases, and a merger of four patches."""
    width, mlp = config.count("hidden_size"), config.count("intermediate_size")
    patch = 3 * config.count_or_default("temporal_patch_size", 2) * config.count_or_default("patch_size", 14) ** 2
    layer = _transformer(width, mlp, gated=True) + mlp + 2 * width
    merged = 4 * width
    out = config.optional_count("out_hidden_size") or hidden
    merger = width + merged * merged + merged + merged * out + out
    return config.count("depth") * layer + patch * width + merger


TOWERS: dict[str, Callable[[ConfigReader, Mapping[str, Any], int], int]] = {
    "qwen3_vl": _qwen,
    "qwen3_vl_moe": _qwen,
    "qwen3_5": _qwen,
    "qwen3_5_moe": _qwen,
    "qwen2_5_vl": _qwen2_5,
    "gemma3": _siglip,
    "gemma4": _gemma4,
    "llama4": _llama4,
    "kimi_k25": _moonvit,
    "kimi_k3": _moonvit_k3,
    "mistral3": _pixtral,
}
"""The function that counts a vision tower, by the `model_type` of the whole configuration."""
