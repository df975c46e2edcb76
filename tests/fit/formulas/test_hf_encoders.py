"""Encoders, speech and diffusion models against the counts of transformers 5.23 and diffusers 0.42 (meta device)."""

from typing import Any

import pytest

from app.fit.formulas.architecture import count_parameters, missing_for_count
from app.fit.formulas.hf_config import read_config
from app.fit.formulas.memory import build_kv_cache, kv_bytes_per_sequence
from app.fit.formulas.quantities import Assumptions, InvalidWorkload

BERT: dict[str, Any] = {
    "model_type": "bert", "num_hidden_layers": 12, "hidden_size": 768, "num_attention_heads": 12,
    "intermediate_size": 3072, "vocab_size": 30522, "max_position_embeddings": 512, "type_vocab_size": 2,
}  # fmt: skip
BGE_M3 = BERT | {
    "model_type": "xlm-roberta", "num_hidden_layers": 24, "hidden_size": 1024, "num_attention_heads": 16,
    "intermediate_size": 4096, "vocab_size": 250002, "max_position_embeddings": 8194, "type_vocab_size": 1,
}  # fmt: skip
MODERN = {
    "model_type": "modernbert", "num_hidden_layers": 22, "hidden_size": 768, "num_attention_heads": 12,
    "intermediate_size": 1152, "vocab_size": 50368, "max_position_embeddings": 8192,
}  # fmt: skip
WHISPER = {
    "model_type": "whisper", "d_model": 1280, "encoder_layers": 32, "decoder_layers": 32,
    "encoder_attention_heads": 20, "decoder_attention_heads": 20, "encoder_ffn_dim": 5120, "decoder_ffn_dim": 5120,
    "vocab_size": 51866, "num_mel_bins": 128, "max_source_positions": 1500, "max_target_positions": 448,
}  # fmt: skip
QWEN3: dict[str, Any] = {
    "model_type": "qwen3", "num_hidden_layers": 36, "hidden_size": 4096, "num_attention_heads": 32,
    "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 12288, "vocab_size": 151665,
    "tie_word_embeddings": False,
}  # fmt: skip
ELECTRA: dict[str, Any] = BERT | {"model_type": "electra", "embedding_size": 768}
DEBERTA: dict[str, Any] = {
    "model_type": "deberta", "vocab_size": 50265, "hidden_size": 768, "num_hidden_layers": 12,
    "num_attention_heads": 12, "intermediate_size": 3072, "max_position_embeddings": 512, "type_vocab_size": 0,
    "relative_attention": True, "max_relative_positions": -1, "position_biased_input": False,
    "pos_att_type": ["c2p", "p2c"],
}  # fmt: skip
DEBERTA_V3 = DEBERTA | {
    "model_type": "deberta-v2", "vocab_size": 128100, "position_buckets": 256, "share_att_key": True,
    "norm_rel_ebd": "layer_norm",
}  # fmt: skip
NOMIC: dict[str, Any] = {
    "model_type": "nomic_bert", "vocab_size": 30528, "n_embd": 768, "n_head": 12, "n_layer": 12, "n_inner": 3072,
    "n_positions": 8192, "type_vocab_size": 2, "activation_function": "swiglu", "qkv_proj_bias": False,
    "mlp_fc1_bias": False, "mlp_fc2_bias": False,
}  # fmt: skip
GTE: dict[str, Any] = {
    "model_type": "new", "vocab_size": 250048, "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
    "intermediate_size": 3072, "max_position_embeddings": 8192, "type_vocab_size": 1,
    "position_embedding_type": "rope",
}  # fmt: skip
FLUX = {
    "_class_name": "FluxTransformer2DModel", "guidance_embeds": True, "num_attention_heads": 24,
    "attention_head_dim": 128, "num_layers": 19, "num_single_layers": 38, "joint_attention_dim": 4096,
    "pooled_projection_dim": 768, "in_channels": 64, "patch_size": 1,
}  # fmt: skip
QWEN_IMAGE = {
    "_class_name": "QwenImageTransformer2DModel", "num_attention_heads": 24, "attention_head_dim": 128,
    "num_layers": 60, "joint_attention_dim": 3584, "in_channels": 64, "out_channels": 16, "patch_size": 2,
}  # fmt: skip
WAN = {
    "_class_name": "WanTransformer3DModel", "num_attention_heads": 40, "attention_head_dim": 128, "num_layers": 40,
    "ffn_dim": 13824, "text_dim": 4096, "in_channels": 16, "out_channels": 16, "freq_dim": 256,
    "patch_size": [1, 2, 2],
}  # fmt: skip
T5 = {
    "model_type": "t5", "d_model": 4096, "d_kv": 64, "d_ff": 10240, "num_heads": 64, "num_layers": 24,
    "vocab_size": 32128, "feed_forward_proj": "gated-gelu",
}  # fmt: skip
CLIP = {
    "model_type": "clip_text_model", "vocab_size": 49408, "hidden_size": 768, "intermediate_size": 3072,
    "num_hidden_layers": 12, "max_position_embeddings": 77,
}  # fmt: skip


def parameters(config: dict[str, Any]) -> int:
    shape = read_config(config, Assumptions())
    return shape.params if shape.params is not None else count_parameters(shape).total


@pytest.mark.parametrize(
    ("config", "kind", "params"),
    [
        (BERT, "encoder", 109_482_240),
        (BERT | {"model_type": "roberta", "vocab_size": 50265, "max_position_embeddings": 514, "type_vocab_size": 1},
         "encoder", 124_645_632),
        (BGE_M3, "encoder", 567_754_752),
        (MODERN, "encoder", 149_014_272),
        # As published: ELECTRA base and small (less the pooler that Keras adds), DeBERTa base and v3 base, Nomic Embed
        # 1.5, GTE multilingual base.
        (ELECTRA, "encoder", 108_891_648),
        (ELECTRA | {"embedding_size": 128, "hidden_size": 256, "num_attention_heads": 4, "intermediate_size": 1024},
         "encoder", 13_483_008),
        (DEBERTA, "encoder", 138_601_728),
        (DEBERTA_V3, "encoder", 183_831_552),
        (NOMIC, "encoder", 136_731_648),
        (GTE, "encoder", 305_368_320),
        (QWEN3 | {"architectures": ["Qwen3Model"]}, "encoder", 7_567_295_488),
        (QWEN3 | {"architectures": ["Qwen3ForCausalLM"]}, "decoder", 7_567_295_488 + 151665 * 4096),
        (WHISPER, "speech", 1_543_490_560),
        (FLUX, "diffusion", 11_901_408_320),
        (QWEN_IMAGE, "diffusion", 20_430_401_088),
        (WAN, "diffusion", 14_288_491_584),
    ],
)  # fmt: skip
def test_the_parameters_are_those_that_the_libraries_count(config: dict[str, Any], kind: str, params: int) -> None:
    assert read_config(config, Assumptions()).kind == kind
    assert parameters(config) == params


def test_a_pipeline_has_the_parameters_of_all_components_that_are_given() -> None:
    ledger = Assumptions()
    pipeline = {
        "_class_name": "FluxPipeline", "transformer": FLUX, "text_encoder": CLIP, "text_encoder_2": T5,
        "vae": {"_class_name": "AutoencoderKLWan"},
    }  # fmt: skip
    shape = read_config(pipeline, ledger)
    assert shape.params == 11_901_408_320 + 123_060_480 + 4_762_310_656
    assert shape.active_params == 11_901_408_320
    notes = {note.field: (note.value, note.why) for note in ledger.recorded}
    assert notes["config.text_encoder_2"][0] == 4_762_310_656
    assert notes["config.vae"] == (None, "not counted: of a kind that is not known")
    umt5 = T5 | {"model_type": "umt5", "vocab_size": 256384}
    assert parameters({"transformer": WAN, "text_encoder": umt5, "_class_name": "WanPipeline"}) == (
        14_288_491_584 + 5_680_910_336
    )
    as_text_encoder = {"transformer": QWEN_IMAGE, "text_encoder": QWEN3, "_class_name": "QwenImagePipeline"}
    assert parameters(as_text_encoder) == 20_430_401_088 + parameters(QWEN3)


def test_components_that_are_only_named_are_said_not_to_be_counted() -> None:
    ledger = Assumptions()
    read_config({"_class_name": "FluxPipeline", "transformer": FLUX, "text_encoder": ["transformers", "X"]}, ledger)
    assert {note.field for note in ledger.recorded} == {"config.transformer", "config.text_encoder", "config.vae"}


@pytest.mark.parametrize(
    ("fields", "params"),
    [
        ({"latent_channels": 4}, 83_653_863),  # Stable Diffusion
        ({"latent_channels": 16, "use_quant_conv": False, "use_post_quant_conv": False}, 83_819_683),  # FLUX.1
    ],
)
def test_an_autoencoder_is_counted(fields: dict[str, Any], params: int) -> None:
    widths = {"layers_per_block": 2, "block_out_channels": [128, 256, 512, 512]}
    pipeline = {
        "_class_name": "FluxPipeline",
        "transformer": FLUX,
        "vae": {"_class_name": "AutoencoderKL", **widths, **fields},
    }
    assert parameters(pipeline) == 11_901_408_320 + params


@pytest.mark.parametrize("widths", [None, [], [128, "256"], [0], [64] * 17, [True]])
def test_an_autoencoder_of_absurd_widths_is_refused(widths: Any) -> None:
    pipeline = {
        "_class_name": "FluxPipeline",
        "transformer": FLUX,
        "vae": {"_class_name": "AutoencoderKL", "block_out_channels": widths},
    }
    with pytest.raises(InvalidWorkload, match=r"config\.vae\.block_out_channels"):
        read_config(pipeline, Assumptions())


def test_the_decoder_of_whisper_keeps_its_text_and_the_audio() -> None:
    cache = build_kv_cache(read_config(WHISPER, Assumptions()))
    audio = 32 * 2 * 1500 * 1280 * 2
    assert kv_bytes_per_sequence(cache, 448) == audio + 32 * 448 * 2 * 1280 * 2


def test_an_encoder_keeps_nothing_and_everything_of_it_can_be_counted() -> None:
    shape = read_config(BGE_M3, Assumptions())
    assert (shape.keeps_cache, shape.kv_layers, shape.max_positions) == (False, 0, 8192)
    assert missing_for_count(shape) == ()


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (BERT | {"position_embedding_type": "relative_key"}, "config.position_embedding_type"),
        (BERT | {"num_attention_heads": 11}, "config.num_attention_heads: 11 does not divide hidden_size, 768"),
        (MODERN | {"attention_bias": True}, "config.attention_bias: true is not understood"),
        (WHISPER | {"decoder_layers": None}, "config.decoder_layers: is missing"),
        ({"_class_name": "FluxPipeline", "transformer": ["diffusers", "X"]}, "config._class_name: 'FluxPipeline'"),
        ({"_class_name": "X", "transformer": {"_class_name": "Y"}}, "config.transformer._class_name: is not"),
        (FLUX | {"in_channels": None}, "config.transformer.in_channels: is missing"),
        (WAN | {"patch_size": [0, 2, 2]}, "config.transformer.patch_size: 0 is not a size"),
    ],
)
def test_a_configuration_that_is_not_understood_is_refused_with_its_field(config: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidWorkload) as refused:
        read_config(config, Assumptions())
    assert message in str(refused.value)
