"""Reads configurations of what does not generate text: BERT and its kin, Whisper, diffusion, towers of vision.

Those of diffusion are in the form of diffusers, with their text encoders. Source: the modelling code of transformers
5.23 and diffusers 0.42, with whose counts the tests compare these; for the tower of Kimi K3 that of SGLang 0.5.23.
"""

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

from app.fit.formulas.architecture import LayerCache, LayerMatrix, LayerPart, group_layers
from app.fit.formulas.hf_layers import MAX_COUNT, ArchitectureFields, ConfigReader
from app.fit.formulas.quantities import Assumptions, InvalidWorkload, shown

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
    return _encoder(config, hidden, heads, outside) | {
        "intermediate": config.count("intermediate_size"),
        "max_positions": positions - 2 if padding else positions,
        "mlp": "plain",
        "qkv_bias": True,
        "output_bias": True,
        "mlp_bias": True,
        "learned_positions": positions,
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
        values = {name: config.raw.get(name) for name in (*names, "max_relative_positions")}
        given = [name for name, value in values.items() if type(value) is int and value > 0]
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
    return _encoder(config, hidden, heads, outside) | {
        "intermediate": config.count("intermediate_size"),
        "max_positions": positions,
        "mlp": "plain",
        "output_bias": True,
        "mlp_bias": True,
        "learned_positions": positions if config.raw.get("position_biased_input", True) else 0,
    }


def nomic_bert(config: ConfigReader) -> ArchitectureFields:
    """Read Nomic Embed, whose fields have the names of GPT-2: rotary positions, a gated MLP, no biases."""
    hidden, heads = config.count("n_embd"), config.count("n_head")
    if hidden % heads:
        config.refuse("n_head", f"{heads} does not divide n_embd, {hidden}")
    for name in ("qkv_proj_bias", "mlp_fc1_bias", "mlp_fc2_bias"):
        config.require_one_of(name, False)
    config.require_one_of("activation_function", "swiglu")
    config.require_one_of("num_experts", 0)
    return _encoder(config, hidden, heads, config.number("type_vocab_size") * hidden) | {
        "intermediate": config.count("n_inner"),
        "max_positions": config.optional_count("n_positions"),
    }


def gte(config: ConfigReader) -> ArchitectureFields:
    """Read GTE v1.5 and multilingual (`model_type` new): rotary positions, a gated MLP with a bias of its output."""
    hidden, heads = _width(config)
    config.require_one_of("position_embedding_type", "rope")
    outside = (config.number("type_vocab_size") + config.layers()) * hidden
    return _encoder(config, hidden, heads, outside) | {
        "intermediate": config.count("intermediate_size"),
        "max_positions": config.count("max_position_embeddings"),
        "qkv_bias": True,
        "output_bias": True,
    }


def modern_bert(config: ConfigReader) -> ArchitectureFields:
    """Read ModernBERT: a gated MLP, no biases, windows in two of three layers, no norm before the first attention."""
    hidden, heads = _width(config)
    config.require_one_of("attention_bias", False)
    config.require_one_of("mlp_bias", False)
    # The first layer has one norm less than the others.
    return _encoder(config, hidden, heads, -hidden) | {
        "intermediate": config.count("intermediate_size"),
        "max_positions": config.count("max_position_embeddings"),
        "norm_bias": False,
        "final_norm": True,
    }


def _width(config: ConfigReader) -> tuple[int, int]:
    hidden, heads = config.count("hidden_size"), config.count("num_attention_heads")
    if hidden % heads:
        config.refuse("num_attention_heads", f"{heads} does not divide hidden_size, {hidden}")
    return hidden, heads


def _encoder(config: ConfigReader, hidden: int, heads: int, outside: int) -> ArchitectureFields:
    """Return the fields of an encoder like BERT, with norms behind the parts of a layer."""
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
        "norm_bias": True,
        "embedding_norm": True,
        "final_norm": False,
        "outside": outside,
        "outside_active": outside,
    }


def whisper(config: ConfigReader) -> ArchitectureFields:
    """Read Whisper: an encoder of audio, and a decoder that attends to it; keys have no bias.

    The decoder keeps keys and values of the text, and of the 1,500 positions of an audio of 30 s.
    """
    hidden, heads = config.count("d_model"), config.count("decoder_attention_heads")
    if hidden % heads:
        config.refuse("decoder_attention_heads", f"{heads} does not divide d_model, {hidden}")
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
    **dict.fromkeys(("bert", "roberta", "xlm-roberta", "camembert"), bert),
    "modernbert": modern_bert,
    "electra": electra,
    **dict.fromkeys(("deberta", "deberta-v2"), deberta),
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


MAX_BLOCKS = 16
"""More than an autoencoder has; rejects absurd input before it is computed with."""
TIMESTEP_WIDTH = 256
"""Width of the sinusoids of a timestep, before they are embedded."""

_COMPONENTS = ("transformer", "transformer_2", "text_encoder", "text_encoder_2", "text_encoder_3")
_OTHER_COMPONENTS = ("vae", "image_encoder")


def read_diffusion(
    raw: Mapping[str, Any], assumptions: Assumptions, count_model: Callable[[Mapping[str, Any]], int]
) -> ArchitectureFields:
    """Read a transformer, or a pipeline whose components are given as their `config.json`, by their parameters.

    `count_model` counts a text encoder that is a language model. What is not counted is recorded; raises
    InvalidWorkload where there is no transformer that is known.
    """
    name = str(raw.get("_class_name"))
    parts = {"transformer": raw} if name in TRANSFORMERS else {part: raw.get(part) for part in _COMPONENTS}
    given = {part: config for part, config in parts.items() if isinstance(config, Mapping)}
    if "transformer" not in given:
        detail = f"{name[:80]!r} is not understood without transformer, its config.json in an object; known are "
        raise InvalidWorkload("config._class_name", detail + ", ".join(TRANSFORMERS))
    params = {part: _count(part, config, assumptions, count_model) for part, config in given.items()}
    autoencoder = raw.get("vae")
    if isinstance(autoencoder, Mapping) and autoencoder.get("_class_name") == "AutoencoderKL":
        params["vae"] = _autoencoder(ConfigReader(autoencoder, assumptions, "config.vae"))
    _record_parts(raw, params, assumptions)
    main = ConfigReader(given["transformer"], assumptions, "config.transformer")
    heads, width = main.count("num_attention_heads"), main.count("attention_head_dim")
    total = sum(params.values())
    return {
        "kind": "diffusion",
        "makes_video": str(main.raw.get("_class_name")) in VIDEO,
        "params": total,
        "active_params": params["transformer"],
        "layers": main.layers() + main.number("num_single_layers"),
        "hidden": heads * width,
        "heads": heads,
        "kv_heads": heads,
        "head_dim": width,
        "kv_layers": 0,
        "mlp": "plain",
    }


def _record_parts(raw: Mapping[str, Any], params: Mapping[str, int], assumptions: Assumptions) -> None:
    for part, count in params.items():
        assumptions.record(f"config.{part}", count, "parameters, all of them in the memory of the GPU")
    named = [part for part in (*_COMPONENTS, *_OTHER_COMPONENTS) if part not in params and part in raw]
    absent = [] if any("text" in part for part in (*params, *named)) else ["text_encoder"]
    absent += [] if {"vae"} & {*params, *named} else ["vae"]
    for part in (*named, *absent):
        recognized = part in _COMPONENTS or (part == "vae" and not isinstance(raw.get(part), Mapping))
        why = "send its config.json as an object" if recognized else "of a kind that is not known"
        assumptions.record(f"config.{part}", None, f"not counted: {why}")


def _count(
    part: str, raw: Mapping[str, Any], assumptions: Assumptions, count_model: Callable[[Mapping[str, Any]], int]
) -> int:
    config = ConfigReader(raw, assumptions, f"config.{part}")
    if part.startswith("transformer"):
        count = TRANSFORMERS.get(str(raw.get("_class_name")))
        if count is None:
            classes = ", ".join(TRANSFORMERS)
            raise InvalidWorkload(f"config.{part}._class_name", f"is not understood; known are {classes}")
        return count(config)
    encoder = TEXT_ENCODERS.get(str(raw.get("model_type")))
    return encoder(config) if encoder is not None else count_model(raw)


def _linear(outputs: int, inputs: int) -> int:
    return outputs * inputs + outputs


def _embedding(width: int, inputs: int) -> int:
    """Count two layers that embed a timestep, a guidance or a pooled text."""
    return _linear(width, inputs) + _linear(width, width)


def _joint_block(width: int, head: int) -> int:
    """Count a block of two streams, image and text, that attend to each other: 12 matrices of the width, two MLPs."""
    mlp = _linear(4 * width, width) + _linear(width, 4 * width)
    return 2 * (_linear(6 * width, width) + 4 * _linear(width, width) + 2 * head + mlp)


def _heads_width(config: ConfigReader) -> tuple[int, int]:
    head = config.count("attention_head_dim")
    return config.count("num_attention_heads") * head, head


def _flux(config: ConfigReader) -> int:
    """Count FLUX.1: joint blocks, then single ones of both streams together."""
    (width, head), channels = _heads_width(config), config.count("in_channels")
    single = _linear(7 * width, width) + _linear(width, 5 * width) + 3 * _linear(width, width) + 2 * head
    guidance = _embedding(width, TIMESTEP_WIDTH) if config.raw.get("guidance_embeds") else 0
    ends = _embedding(width, TIMESTEP_WIDTH) + guidance + _embedding(width, config.count("pooled_projection_dim"))
    ends += _linear(width, config.count("joint_attention_dim")) + _linear(width, channels)
    out = config.count_or_default("patch_size", 1) ** 2 * (config.optional_count("out_channels") or channels)
    ends += _linear(2 * width, width) + _linear(out, width)
    return ends + config.count("num_layers") * _joint_block(width, head) + config.count("num_single_layers") * single


def _qwen_image(config: ConfigReader) -> int:
    """Count Qwen-Image: joint blocks alone."""
    (width, head), text = _heads_width(config), config.count("joint_attention_dim")
    channels = config.count("in_channels")
    out = config.count_or_default("patch_size", 2) ** 2 * (config.optional_count("out_channels") or channels)
    ends = _embedding(width, TIMESTEP_WIDTH) + text + _linear(width, channels) + _linear(width, text)
    ends += _linear(2 * width, width) + _linear(out, width)
    return ends + config.count("num_layers") * _joint_block(width, head)


def _wan(config: ConfigReader) -> int:
    """Count Wan: attention to the video, attention to the text, and a plain MLP in each block."""
    (width, _), mlp = _heads_width(config), config.count("ffn_dim")
    patch = 1
    for size in config.get_list("patch_size") or (1, 2, 2):
        if type(size) is not int or not 0 < size <= 64:  # noqa: PLR2004  # of released models 1 or 2
            config.refuse("patch_size", f"{shown(size)} is not a size of a patch from 1 to 64")
        patch *= size
    added = config.optional_count("added_kv_proj_dim")
    image = 2 * _linear(width, added) + width if added else 0
    block = 8 * _linear(width, width) + 4 * width + 2 * width + 6 * width + image
    block += _linear(mlp, width) + _linear(width, mlp)
    ends = 2 * width + width * config.count("in_channels") * patch + width
    ends += _embedding(width, config.count_or_default("freq_dim", TIMESTEP_WIDTH)) + _linear(6 * width, width)
    ends += _embedding(width, config.count("text_dim")) + _linear(config.count("out_channels") * patch, width)
    if config.has("image_dim"):
        config.note("image_dim", 0, "what embeds an image is not counted")
    return ends + config.count("num_layers") * block


TRANSFORMERS: dict[str, Callable[[ConfigReader], int]] = {
    "FluxTransformer2DModel": _flux,
    "QwenImageTransformer2DModel": _qwen_image,
    "WanTransformer3DModel": _wan,
}
"""The function that counts a transformer, by its `_class_name`."""

VIDEO = frozenset({"WanTransformer3DModel"})


def _t5(config: ConfigReader) -> int:
    """Count the encoder of T5, or of UMT5, whose layers have biases of positions of their own."""
    hidden, mlp, heads = config.count("d_model"), config.count("d_ff"), config.count("num_heads")
    layers, inner = config.count("num_layers"), heads * config.count("d_kv")
    gated = str(config.raw.get("feed_forward_proj", "relu")).startswith("gated")
    layer = 4 * hidden * inner + (3 if gated else 2) * hidden * mlp + 2 * hidden
    buckets = config.count_or_default("relative_attention_num_buckets", 32) * heads
    positions = buckets * (layers if config.raw.get("model_type") == "umt5" else 1)
    return config.count("vocab_size") * hidden + layers * layer + positions + hidden


def _clip(config: ConfigReader) -> int:
    hidden, mlp = config.count("hidden_size"), config.count("intermediate_size")
    layer = 4 * _linear(hidden, hidden) + _linear(mlp, hidden) + _linear(hidden, mlp) + 4 * hidden
    rows = config.count("vocab_size") + config.count_or_default("max_position_embeddings", 77)
    projected = "CLIPTextModelWithProjection" in config.get_list("architectures")
    projection = config.count("projection_dim") * hidden if projected else 0
    return rows * hidden + config.layers() * layer + 2 * hidden + projection


TEXT_ENCODERS: dict[str, Callable[[ConfigReader], int]] = {"t5": _t5, "umt5": _t5, "clip_text_model": _clip}
"""The function that counts a text encoder, by its `model_type`; others are language models."""


def _convolution(outputs: int, inputs: int, size: int = 3) -> int:
    return outputs * inputs * size**2 + outputs


def _residual(inputs: int, outputs: int) -> int:
    """Count two convolutions, each after a norm, and where the width changes one that fits what is added."""
    shortcut = _convolution(outputs, inputs, 1) if inputs != outputs else 0
    return 2 * inputs + _convolution(outputs, inputs) + 2 * outputs + _convolution(outputs, outputs) + shortcut


def _autoencoder(config: ConfigReader) -> int:
    """Count AutoencoderKL, of Stable Diffusion and FLUX.1: an encoder and a decoder of residual blocks."""
    widths: list[int] = config.get_list("block_out_channels")
    are_widths = all(type(size) is int and 0 < size <= MAX_COUNT for size in widths)
    if not 0 < len(widths) <= MAX_BLOCKS or not are_widths:
        config.refuse("block_out_channels", f"{shown(widths)} is not a list of 1 to {MAX_BLOCKS} widths")
    blocks, latent = config.count_or_default("layers_per_block", 1), config.count_or_default("latent_channels", 4)
    first, last = widths[0], widths[-1]
    attention = 2 * last + 4 * _linear(last, last) if config.raw.get("mid_block_add_attention", True) else 0
    middle = 2 * _residual(last, last) + attention
    resized = sum(_convolution(width, width) for width in widths)
    same = sum(_residual(width, width) for width in widths)
    down = sum(_residual(*pair) for pair in pairwise((first, *widths))) + resized - _convolution(last, last)
    up = sum(_residual(*pair) for pair in pairwise((last, *reversed(widths)))) + resized - _convolution(first, first)
    ends = _convolution(first, config.count_or_default("in_channels", 3)) + 2 * last + _convolution(2 * latent, last)
    ends += _convolution(last, latent) + 2 * first + _convolution(config.count_or_default("out_channels", 3), first)
    if config.raw.get("use_quant_conv", True):
        ends += _convolution(2 * latent, 2 * latent, 1)
    if config.raw.get("use_post_quant_conv", True):
        ends += _convolution(latent, latent, 1)
    return down + up + (2 * blocks - 1) * same + 2 * middle + ends


_OTHER_PARTS = (
    *("audio_processor", "img_processor", "embd_layer", "vision_lora", "speech_lora"),  # Phi-4-multimodal
    *("visual", "visual_config", "vit_config", "vision_tower", "mm_vision_tower", "vision_encoder", "image_encoder"),
    *("speech_config", "speech_encoder", "audio_encoder", "audio_encoder_config", "talker_config", "token2wav_config"),
)
"""Fields with the parts of a multimodal model beside the language model, where they are not `vision_config`."""


def vision_parameters(outer: Mapping[str, Any], hidden: int, assumptions: Assumptions) -> int:
    """Return the parameters of the vision tower and its projection to `hidden`; 0 where there is none.

    A tower of an unknown type is not counted, which is recorded, as are audio towers and what other fields describe:
    adapters for images and speech, for example.
    """
    if isinstance(outer.get("audio_config"), Mapping):
        assumptions.record("config.audio_config", 0, "the audio tower is not counted")
    for name in _OTHER_PARTS:
        if isinstance(outer.get(name), Mapping | str):
            assumptions.record(f"config.{name}", 0, "a part beside the language model is not counted")
    raw = outer.get("vision_config")
    if not isinstance(raw, Mapping):
        if isinstance(outer.get("text_config"), Mapping):
            assumptions.record("config.text_config", "alone", "only the language model is counted")
        return 0
    count = TOWERS.get(str(outer.get("model_type")))
    if count is None:
        why = "the type of the vision tower is not known: only the language model is counted"
        return assumptions.record("config.vision_config", 0, why)
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
    patch = 3 * config.count("patch_size") ** 2 * width
    return config.count("vt_num_hidden_layers") * layer + grid + patch + width + projector


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
    **dict.fromkeys(("qwen3_vl", "qwen3_vl_moe", "qwen3_5", "qwen3_5_moe"), _qwen),
    "qwen2_5_vl": _qwen2_5,
    "gemma3": _siglip,
    "gemma4": _gemma4,
    "llama4": _llama4,
    "kimi_k25": _moonvit,
    "kimi_k3": _moonvit_k3,
    "mistral3": _pixtral,
}
"""The function that counts a vision tower, by the `model_type` of the whole configuration."""
