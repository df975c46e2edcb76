"""Reads configurations of models that read without generating, and of speech: BERT, ModernBERT, Whisper.

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
    "whisper": whisper,
}
"""The function that reads a configuration, by its `model_type`."""

READS_ONLY = ("Model", "ForSequenceClassification", "ForTokenClassification", "ForTextEmbedding")
"""How the names of architectures end that have no output layer: embedding models, rerankers, classifiers."""


def reads_only(config: ConfigReader) -> bool:
    """Whether a decoder is used as an encoder: none of its `architectures` generates."""
    named = [str(name) for name in config.get_list("architectures")]
    return bool(named) and all(name.endswith(READS_ONLY) for name in named)
