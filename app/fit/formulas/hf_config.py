"""Reads a Hugging Face `config.json` into an Architecture."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from app.fit.formulas.architecture import Architecture
from app.fit.formulas.assumptions import Assumptions, InvalidWorkload
from app.fit.formulas.hf_families import FAMILIES
from app.fit.formulas.hf_fields import ConfigReader, longest_context
from app.fit.formulas.hf_quantization import read_released_weights

_WINDOWED_KINDS = {"sliding_attention", "chunked_attention"}
_UNCACHED_KINDS = {"linear_attention", "mamba", "recurrent"}


def read_config(raw: Mapping[str, Any], assumptions: Assumptions) -> Architecture:
    """Read a `config.json`; raise InvalidWorkload naming the field that is missing or not understood.

    Only the language model of a multimodal model is read (`text_config`). Defaults of the family that are used are
    recorded.
    """
    outer, text = raw, raw.get("text_config")
    if isinstance(text, Mapping):
        assumptions.record("config.text_config", "alone", "of a multimodal model only the language model is counted")
        raw = {"model_type": raw.get("model_type"), **text}
    config = ConfigReader(raw, assumptions)
    family = FAMILIES[_family_name(config)]
    fields = _common_fields(config) | family(config) | _fields_of_layer_types(config)
    released = read_released_weights(outer, raw, assumptions, experts=fields.get("experts") is not None)
    return Architecture(**fields, released=released)


def _family_name(config: ConfigReader) -> str:
    name = config.raw.get("model_type")
    if name is None:
        raise InvalidWorkload("config.model_type", "is missing; it says how the other fields are to be read")
    if name not in FAMILIES:
        near = get_close_matches(str(name), FAMILIES, 1)
        hint = f"did you mean {near[0]}? " if near else ""
        known = ", ".join(FAMILIES)
        raise InvalidWorkload(
            "config.model_type", f"{name!r} is not understood; {hint}known are {known}; or give architecture"
        )
    return str(name)


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
