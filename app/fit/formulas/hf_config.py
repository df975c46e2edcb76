"""Reads a Hugging Face `config.json` into an Architecture."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from app.fit.formulas.architecture import Architecture, count_parameters, missing_for_count
from app.fit.formulas.assumptions import Assumptions, InvalidWorkload
from app.fit.formulas.hf_diffusion import read_diffusion
from app.fit.formulas.hf_encoders import ENCODERS, reads_only
from app.fit.formulas.hf_families import FAMILIES
from app.fit.formulas.hf_fields import ArchitectureFields, ConfigReader, longest_context
from app.fit.formulas.hf_quantization import read_released_weights
from app.fit.formulas.hf_standard import standard_decoder
from app.fit.formulas.hf_vision import vision_parameters
from app.fit.formulas.weight_matrices import MatrixFormats, weight_matrices

_WINDOWED_KINDS = {"sliding_attention", "chunked_attention"}
_UNCACHED_KINDS = {"linear_attention", "mamba", "recurrent"}


def read_config(raw: Mapping[str, Any], assumptions: Assumptions) -> Architecture:
    """Read a `config.json`; raise InvalidWorkload naming the field that is missing or not understood.

    Of a multimodal model, `text_config` is read, and the vision tower is counted where its type is known. Defaults of
    the family that are used are recorded.
    """
    if "_class_name" in raw:
        return _read_diffusion(raw, assumptions)
    outer, text = raw, raw.get("text_config")
    if isinstance(text, Mapping):
        inherited = {name: raw[name] for name in ("model_type", "tie_word_embeddings") if raw.get(name) is not None}
        raw = inherited | {name: value for name, value in text.items() if name != "model_type" or value is not None}
    config = ConfigReader(raw, assumptions)
    name = _family_name(config)
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


def _read_diffusion(raw: Mapping[str, Any], assumptions: Assumptions) -> Architecture:
    def count_model(config: Mapping[str, Any]) -> int:
        return count_parameters(read_config(config, Assumptions())).total

    return Architecture(**read_diffusion(raw, assumptions, count_model))


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


def _family_name(config: ConfigReader) -> str:
    name = config.raw.get("model_type")
    if name is None:
        raise InvalidWorkload("config.model_type", "is missing; it says how the other fields are to be read")
    if not isinstance(name, str):
        raise InvalidWorkload("config.model_type", f"{str(name)[:80]} is no text")
    return name


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
