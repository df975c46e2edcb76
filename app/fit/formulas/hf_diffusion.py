"""Reads the configurations of diffusion transformers in the form of diffusers, with their text encoders.

Source: the modelling code of diffusers 0.42 and transformers 5.23, with whose counts the tests compare these.
"""

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

from app.fit.formulas.assumptions import Assumptions, InvalidWorkload
from app.fit.formulas.hf_fields import MAX_COUNT, ArchitectureFields, ConfigReader

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
        known = ", ".join(TRANSFORMERS)
        detail = f"{name[:80]!r} is not understood without transformer, its config.json in an object; known are {known}"
        raise InvalidWorkload("config._class_name", detail)
    params = {part: _count(part, config, assumptions, count_model) for part, config in given.items()}
    autoencoder = raw.get("vae")
    if isinstance(autoencoder, Mapping) and str(autoencoder.get("_class_name")) in AUTOENCODERS:
        count = AUTOENCODERS[str(autoencoder["_class_name"])]
        params["vae"] = count(ConfigReader(autoencoder, assumptions, "config.vae"))
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
        known = part in _COMPONENTS or (part == "vae" and not isinstance(raw.get(part), Mapping))
        why = "not counted: send its config.json as an object" if known else "not counted: of a kind that is not known"
        assumptions.record(f"config.{part}", None, why)


def _count(
    part: str,
    raw: Mapping[str, Any],
    assumptions: Assumptions,
    count_model: Callable[[Mapping[str, Any]], int],
) -> int:
    config = ConfigReader(raw, assumptions, f"config.{part}")
    if part.startswith("transformer"):
        count = TRANSFORMERS.get(str(raw.get("_class_name")))
        if count is None:
            known = ", ".join(TRANSFORMERS)
            raise InvalidWorkload(f"config.{part}._class_name", f"is not understood; known are {known}")
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


def _width(config: ConfigReader) -> tuple[int, int]:
    head = config.count("attention_head_dim")
    return config.count("num_attention_heads") * head, head


def _flux(config: ConfigReader) -> int:
    """Count FLUX.1: joint blocks, then single ones of both streams together."""
    (width, head), channels = _width(config), config.count("in_channels")
    single = _linear(7 * width, width) + _linear(width, 5 * width) + 3 * _linear(width, width) + 2 * head
    guidance = _embedding(width, TIMESTEP_WIDTH) if config.raw.get("guidance_embeds") else 0
    ends = _embedding(width, TIMESTEP_WIDTH) + guidance + _embedding(width, config.count("pooled_projection_dim"))
    ends += _linear(width, config.count("joint_attention_dim")) + _linear(width, channels)
    out = config.count_or_default("patch_size", 1) ** 2 * (config.optional_count("out_channels") or channels)
    ends += _linear(2 * width, width) + _linear(out, width)
    return ends + config.count("num_layers") * _joint_block(width, head) + config.count("num_single_layers") * single


def _qwen_image(config: ConfigReader) -> int:
    """Count Qwen-Image: joint blocks alone."""
    (width, head), text = _width(config), config.count("joint_attention_dim")
    channels = config.count("in_channels")
    out = config.count_or_default("patch_size", 2) ** 2 * (config.optional_count("out_channels") or channels)
    ends = _embedding(width, TIMESTEP_WIDTH) + text + _linear(width, channels) + _linear(width, text)
    ends += _linear(2 * width, width) + _linear(out, width)
    return ends + config.count("num_layers") * _joint_block(width, head)


def _wan(config: ConfigReader) -> int:
    """Count Wan: attention to the video, attention to the text, and a plain MLP in each block."""
    (width, _), mlp = _width(config), config.count("ffn_dim")
    patch = 1
    for size in config.get_list("patch_size") or (1, 2, 2):
        if type(size) is not int or not 0 < size <= 64:  # noqa: PLR2004  # of released models 1 or 2
            raise InvalidWorkload("config.transformer.patch_size", f"{size!r} is no size of a patch")
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
    if not widths or len(widths) > MAX_BLOCKS or not all(type(one) is int and 0 < one <= MAX_COUNT for one in widths):
        raise InvalidWorkload("config.vae.block_out_channels", f"{str(widths)[:80]} is no list of widths")
    blocks, latent = config.count_or_default("layers_per_block", 1), config.count_or_default("latent_channels", 4)
    first, last = widths[0], widths[-1]
    attention = 2 * last + 4 * _linear(last, last) if config.raw.get("mid_block_add_attention", True) else 0
    middle = 2 * _residual(last, last) + attention
    resized = sum(_convolution(width, width) for width in widths)
    inner = [(blocks - 1) * _residual(width, width) for width in widths]
    down = (
        sum(_residual(*pair) for pair in pairwise((first, *widths))) + sum(inner) + resized - _convolution(last, last)
    )
    up = sum(_residual(*pair) for pair in pairwise((last, *reversed(widths)))) + resized - _convolution(first, first)
    up += blocks * sum(_residual(width, width) for width in widths)
    ends = _convolution(first, config.count_or_default("in_channels", 3)) + 2 * last + _convolution(2 * latent, last)
    ends += _convolution(last, latent) + 2 * first + _convolution(config.count_or_default("out_channels", 3), first)
    if config.raw.get("use_quant_conv", True):
        ends += _convolution(2 * latent, 2 * latent, 1)
    if config.raw.get("use_post_quant_conv", True):
        ends += _convolution(latent, latent, 1)
    return down + up + 2 * middle + ends


AUTOENCODERS: dict[str, Callable[[ConfigReader], int]] = {"AutoencoderKL": _autoencoder}
"""The function that counts what makes pixels of latents, by its `_class_name`."""
