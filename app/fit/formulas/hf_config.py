"""A Hugging Face `config.json` read as a model's shape: the names of its fields, and what it leaves to its family."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from app.fit.formulas.architecture import Architecture
from app.fit.formulas.assumptions import Impossible, Ledger
from app.fit.formulas.hf_families import EXPERTS, GATED, PLAIN
from app.fit.formulas.hf_fields import Config, longest_context
from app.fit.formulas.hf_quantization import read_released

FAMILIES = GATED | EXPERTS | PLAIN
"""What reads a configuration, by its `model_type`.

Source: the modelling code of Hugging Face transformers; the counts of parameters that follow are compared with released
checkpoints in the tests.
"""

_WINDOWED = {"sliding_attention", "chunked_attention"}
_WITHOUT_CACHE = {"linear_attention", "mamba", "recurrent"}


def read_config(raw: Mapping[str, Any], ledger: Ledger) -> Architecture:
    """Read a `config.json`; raises Impossible naming the field that is missing or not understood.

    Of a model of several modalities the language model alone is read (`text_config`). What the file leaves to the
    defaults of its family is noted.
    """
    outer, text = raw, raw.get("text_config")
    if isinstance(text, Mapping):
        ledger.note("config.text_config", "alone", "of a multimodal model only the language model is counted")
        raw = {"model_type": raw.get("model_type"), **text}
    config = Config(raw, ledger)
    family = FAMILIES[_family(config)]
    fields = _common(config) | family(config) | _layer_types(config)
    released = read_released(outer, raw, ledger, experts=fields.get("experts") is not None)
    return Architecture(**fields, released=released)


def _family(config: Config) -> str:
    name = config.raw.get("model_type")
    if name is None:
        raise Impossible("config.model_type", "is missing; it says how the other fields are to be read")
    if name not in FAMILIES:
        near = get_close_matches(str(name), FAMILIES, 1)
        hint = f"did you mean {near[0]}? " if near else ""
        known = ", ".join(FAMILIES)
        raise Impossible(
            "config.model_type", f"{name!r} is not understood; {hint}known are {known}; or give architecture"
        )
    return str(name)


def _common(config: Config) -> dict[str, Any]:
    """What every family calls by one of a few names."""
    hidden = config.count("hidden_size", "n_embd", "d_model")
    heads = config.count("num_attention_heads", "n_head", "n_heads")
    if not config.has("head_dim") and not config.has("qk_rope_head_dim") and hidden % heads:
        raise Impossible("config.head_dim", f"is missing, and hidden {hidden} is no multiple of {heads} heads")
    return {
        "layers": config.layers(),
        "hidden": hidden,
        "heads": heads,
        "kv_heads": config.maybe("num_key_value_heads") or heads,
        "head_dim": config.maybe("head_dim") or hidden // heads,
        "vocab": config.count("vocab_size"),
        "max_positions": longest_context(config),
    }


def _layer_types(config: Config) -> dict[str, Any]:
    """Newer files say of every layer how it attends."""
    kinds = config.raw.get("layer_types")
    if not isinstance(kinds, list):
        return {}
    unknown = {str(kind) for kind in kinds} - {"full_attention", *_WINDOWED, *_WITHOUT_CACHE}
    if unknown:
        raise Impossible("config.layer_types", f"{', '.join(sorted(unknown))} is not understood")
    windowed = sum(kind in _WINDOWED for kind in kinds)
    window = config.maybe("sliding_window", "attention_chunk_size") if windowed else None
    return {
        "kv_layers": sum(kind not in _WITHOUT_CACHE for kind in kinds),
        "sliding_window": window,
        "sliding_layers": windowed if window is not None else None,
    }
