"""Reads configurations of models that read without generating, and of speech: BERT and its kin, Whisper.

Source: the modelling code of transformers 5.23, with whose counts the tests compare these.
"""

from collections.abc import Callable

from app.fit.formulas.assumptions import InvalidWorkload
from app.fit.formulas.hf_fields import ArchitectureFields, ConfigReader
from app.fit.formulas.layers import LayerCache, LayerMatrix, LayerPart, group_layers

CACHE_BYTES = 2
"""Bytes of a value of what a decoder keeps of the audio."""


def bert(config: ConfigReader) -> ArchitectureFields:
    """Read BERT and RoBERTa: norms after each part, a plain MLP, biases, learned positions, and a pooler."""
    hidden, heads = _width(config)
    config.require_one_of("position_embedding_type", "absolute")
    types = config.optional_count("type_vocab_size") or 0
    outside = types * hidden + hidden * hidden + hidden
    positions = config.count("max_position_embeddings")
    padding = config.raw.get("model_type") in {"roberta", "xlm-roberta", "camembert"}
    return _encoder(config, hidden, heads) | {
        "intermediate": config.count("intermediate_size"),
        "max_positions": positions - 2 if padding else positions,
        "mlp": "plain",
        "qkv_bias": True,
        "output_bias": True,
        "mlp_bias": True,
        "norm_bias": True,
        "embedding_norm": True,
        "final_norm": False,
        "learned_positions": positions,
        "outside": outside,
        "outside_active": outside,
    }


def electra(config: ConfigReader) -> ArchitectureFields:
    """Read ELECTRA: BERT without a pooler, whose embeddings may be narrower than its layers."""
    fields, hidden = bert(config), config.count("hidden_size")
    width, rows = config.count_or_default("embedding_size", hidden), config.count("vocab_size")
    positions, types = config.count("max_position_embeddings"), config.number("type_vocab_size")
    outside = types * width
    if width != hidden:
        # The embeddings of the width of the layers are counted elsewhere: these are narrower, and projected.
        outside += (rows + positions) * (width - hidden) + 2 * (width - hidden) + width * hidden + hidden
    return fields | {"outside": outside, "outside_active": outside}


def deberta(config: ConfigReader) -> ArchitectureFields:
    """Read DeBERTa: relative positions, in the first version with matrices of their own in every layer."""
    (hidden, heads), layers = _width(config), config.layers()
    second = config.raw.get("model_type") == "deberta-v2"
    outside = config.number("type_vocab_size") * hidden
    if config.raw.get("relative_attention", False):
        names = ("position_buckets",) if second else ()
        given = [name for name in (*names, "max_relative_positions") if _positive(config, name)]
        outside += 2 * config.count(*given, "max_position_embeddings") * hidden
        outside += 2 * hidden if second and "layer_norm" in str(config.raw.get("norm_rel_ebd")) else 0
    if second:
        biases = 3 * hidden
        own = 0 if config.raw.get("share_att_key") else 2 * (hidden * hidden + hidden)
        kernel = config.number("conv_kernel_size")
        outside += kernel * hidden * hidden + 3 * hidden if kernel else 0
    else:
        biases, kinds = 2 * hidden, str(config.raw.get("pos_att_type", ""))
        own = (hidden * hidden if "c2p" in kinds else 0) + (hidden * hidden + hidden if "p2c" in kinds else 0)
    outside += layers * (biases + own)
    positions = config.count("max_position_embeddings")
    return _encoder(config, hidden, heads) | {
        "intermediate": config.count("intermediate_size"),
        "max_positions": positions,
        "mlp": "plain",
        "output_bias": True,
        "mlp_bias": True,
        "norm_bias": True,
        "embedding_norm": True,
        "final_norm": False,
        "learned_positions": positions if config.raw.get("position_biased_input", True) else 0,
        "outside": outside,
        "outside_active": outside,
    }


def _positive(config: ConfigReader, name: str) -> bool:
    value = config.raw.get(name)
    return type(value) is int and value > 0


def nomic_bert(config: ConfigReader) -> ArchitectureFields:
    """Read Nomic Embed, whose fields have the names of GPT-2: rotary positions, a gated MLP, no biases."""
    hidden, heads = config.count("n_embd"), config.count("n_head")
    if hidden % heads:
        raise InvalidWorkload("config.n_head", f"{heads} does not divide n_embd, {hidden}")
    for name in ("qkv_proj_bias", "mlp_fc1_bias", "mlp_fc2_bias"):
        config.require_one_of(name, False)
    config.require_one_of("activation_function", "swiglu")
    config.require_one_of("num_experts", 0)
    types = config.number("type_vocab_size") * hidden
    return _encoder(config, hidden, heads) | {
        "intermediate": config.count("n_inner"),
        "max_positions": config.optional_count("n_positions"),
        "norm_bias": True,
        "embedding_norm": True,
        "final_norm": False,
        "outside": types,
        "outside_active": types,
    }


def gte(config: ConfigReader) -> ArchitectureFields:
    """Read GTE v1.5 and multilingual (`model_type` new): rotary positions, a gated MLP with a bias of its output."""
    hidden, heads = _width(config)
    config.require_one_of("position_embedding_type", "rope")
    outside = (config.number("type_vocab_size") + config.layers()) * hidden
    return _encoder(config, hidden, heads) | {
        "intermediate": config.count("intermediate_size"),
        "max_positions": config.count("max_position_embeddings"),
        "qkv_bias": True,
        "output_bias": True,
        "norm_bias": True,
        "embedding_norm": True,
        "final_norm": False,
        "outside": outside,
        "outside_active": outside,
    }


def modern_bert(config: ConfigReader) -> ArchitectureFields:
    """Read ModernBERT: a gated MLP, no biases, windows in two of three layers, no norm before the first attention."""
    hidden, heads = _width(config)
    config.require_one_of("attention_bias", False)
    config.require_one_of("mlp_bias", False)
    return _encoder(config, hidden, heads) | {
        "intermediate": config.count("intermediate_size"),
        "max_positions": config.count("max_position_embeddings"),
        "embedding_norm": True,
        # The first layer has one norm less than the others.
        "outside": -hidden,
        "outside_active": -hidden,
    }


def _width(config: ConfigReader) -> tuple[int, int]:
    hidden, heads = config.count("hidden_size"), config.count("num_attention_heads")
    if hidden % heads:
        raise InvalidWorkload("config.num_attention_heads", f"{heads} does not divide hidden_size, {hidden}")
    return hidden, heads


def _encoder(config: ConfigReader, hidden: int, heads: int) -> ArchitectureFields:
    return {
        "kind": "encoder",
        "layers": config.layers(),
        "hidden": hidden,
        "heads": heads,
        "kv_heads": heads,
        "head_dim": hidden // heads,
        "vocab": config.count("vocab_size"),
        "tied_embeddings": True,
        "kv_layers": 0,
    }


def whisper(config: ConfigReader) -> ArchitectureFields:
    """Read Whisper: an encoder of audio, and a decoder that attends to it; keys have no bias.

    The decoder keeps keys and values of the text, and of the 1,500 positions of an audio of 30 s.
    """
    hidden, heads = config.count("d_model"), config.count("decoder_attention_heads")
    if hidden % heads:
        raise InvalidWorkload("config.decoder_attention_heads", f"{heads} does not divide d_model, {hidden}")
    frames, tokens = config.count("max_source_positions"), config.count("max_target_positions")
    inward, outward = config.count("encoder_layers"), config.count("decoder_layers")
    encoder = _speech_layer(hidden, config.count("encoder_ffn_dim"), "encoder", ("self_attn",))
    decoder = _speech_layer(hidden, config.count("decoder_ffn_dim"), "decoder", ("self_attn", "encoder_attn"))
    decoder = decoder._replace(
        caches=(LayerCache(heads=heads, values=2 * (hidden // heads)),),
        state_bytes=2 * frames * hidden * CACHE_BYTES,
    )
    convolutions = 3 * config.count("num_mel_bins") * hidden + 3 * hidden * hidden + 2 * hidden
    outside = convolutions + (frames + tokens) * hidden + 2 * hidden
    config.note("max_source_positions", frames, "positions of an audio of 30 s, of which each sequence is one")
    return {
        "kind": "speech",
        "groups": group_layers([encoder] * inward + [decoder] * outward),
        "layers": inward + outward,
        "hidden": hidden,
        "heads": heads,
        "kv_heads": heads,
        "head_dim": hidden // heads,
        "intermediate": config.count("decoder_ffn_dim"),
        "vocab": config.count("vocab_size"),
        "max_positions": tokens,
        "kv_layers": outward,
        "mlp": "plain",
        "tied_embeddings": True,
        "norm_bias": True,
        "outside": outside,
        "outside_active": outside,
    }


def _speech_layer(hidden: int, width: int, side: str, attentions: tuple[str, ...]) -> LayerPart:
    matrices = [
        LayerMatrix(f"{side}.{attention}.{name}_proj", "attention", hidden, hidden)
        for attention in attentions
        for name in ("q", "k", "v", "out")
    ]
    matrices += [
        LayerMatrix(f"{side}.fc1", "mlp", width, hidden),
        LayerMatrix(f"{side}.fc2", "mlp", hidden, width),
    ]
    biases = 3 * hidden * len(attentions) + width + hidden
    norms = 2 * hidden * (len(attentions) + 1)
    return LayerPart(matrices=tuple(matrices), others=biases + norms)


ENCODERS: dict[str, Callable[[ConfigReader], ArchitectureFields]] = {
    "bert": bert,
    "roberta": bert,
    "xlm-roberta": bert,
    "camembert": bert,
    "modernbert": modern_bert,
    "electra": electra,
    "deberta": deberta,
    "deberta-v2": deberta,
    "nomic_bert": nomic_bert,
    "new": gte,
    "whisper": whisper,
}
"""The function that reads a configuration, by its `model_type`."""

READS_ONLY = ("Model", "ForSequenceClassification", "ForTokenClassification", "ForTextEmbedding")
"""How the names of architectures end that have no output layer: embedding models, rerankers, classifiers."""


def reads_only(config: ConfigReader) -> bool:
    """Whether a decoder is used as an encoder: none of its `architectures` generates."""
    named = [str(name) for name in config.get_list("architectures")]
    return bool(named) and all(name.endswith(READS_ONLY) for name in named)
