"""Families like GPT-2: LayerNorm and a plain MLP; from their configurations to the shape's fields."""

from collections.abc import Callable

from app.fit.formulas.hf_fields import Config, Shape
from app.fit.formulas.hf_gated import window


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
