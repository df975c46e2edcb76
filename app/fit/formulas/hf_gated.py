"""Families like Llama: RMSNorm and a gated MLP; from their configurations to the shape's fields."""

from collections.abc import Callable
from math import ceil

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
