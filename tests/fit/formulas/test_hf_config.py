"""Configurations of released models, and the parameters of their checkpoints."""

import csv
from typing import Any

import pytest

from app.fit.formulas.architecture import Architecture, count_parameters
from app.fit.formulas.hf_config import read_config
from app.fit.formulas.hf_families import FAMILIES
from app.fit.formulas.memory import build_kv_cache
from app.fit.formulas.quantities import Assumptions, InvalidWorkload
from app.settings import PROJECT
from tests.fit.formulas.test_hf_hybrids import MODELS, PUBLISHED

LLAMA: dict[str, Any] = {
    "model_type": "llama", "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32,
    "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256, "tie_word_embeddings": False,
}  # fmt: skip
QWEN: dict[str, Any] = {
    "num_hidden_layers": 28, "hidden_size": 3584, "num_attention_heads": 28, "num_key_value_heads": 4,
    "intermediate_size": 18944, "vocab_size": 152064, "tie_word_embeddings": False, "use_sliding_window": False,
    "sliding_window": 131072, "max_window_layers": 28,
}  # fmt: skip
GEMMA2: dict[str, Any] = {
    "num_hidden_layers": 42, "hidden_size": 3584, "num_attention_heads": 16, "num_key_value_heads": 8,
    "head_dim": 256, "intermediate_size": 14336, "vocab_size": 256000, "sliding_window": 4096,
}  # fmt: skip
DEEPSEEK: dict[str, Any] = {
    "model_type": "deepseek_v3", "num_hidden_layers": 61, "hidden_size": 7168, "num_attention_heads": 128,
    "num_key_value_heads": 128, "intermediate_size": 18432, "moe_intermediate_size": 2048, "n_routed_experts": 256,
    "n_shared_experts": 1, "num_experts_per_tok": 8, "first_k_dense_replace": 3, "q_lora_rank": 1536,
    "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "vocab_size": 129280,
    "topk_method": "noaux_tc", "moe_layer_freq": 1, "tie_word_embeddings": False,
}  # fmt: skip

LFM2: dict[str, Any] = {
    "num_hidden_layers": 16, "hidden_size": 2048, "num_attention_heads": 32, "num_key_value_heads": 8,
    "conv_L_cache": 3, "vocab_size": 65536,
}  # fmt: skip
MLA: dict[str, Any] = {
    "num_attention_heads": 64, "num_key_value_heads": 64, "kv_lora_rank": 512, "qk_nope_head_dim": 64,
    "qk_rope_head_dim": 64, "v_head_dim": 128, "tie_word_embeddings": False,
}  # fmt: skip

RELEASED: list[tuple[str, dict[str, Any], int]] = [
    ("Llama-3.1-8B", LLAMA, 8_030_261_248),
    ("Mistral-7B-v0.1", LLAMA | {"model_type": "mistral", "vocab_size": 32000, "sliding_window": 4096}, 7_241_732_096),
    ("Mixtral-8x7B", LLAMA | {
        "model_type": "mixtral", "vocab_size": 32000, "num_local_experts": 8, "num_experts_per_tok": 2,
    }, 46_702_792_704),
    ("Qwen2.5-7B", QWEN | {"model_type": "qwen2"}, 7_615_616_512),
    ("Qwen2.5-0.5B", QWEN | {
        "model_type": "qwen2", "num_hidden_layers": 24, "hidden_size": 896, "num_attention_heads": 14,
        "num_key_value_heads": 2, "intermediate_size": 4864, "vocab_size": 151936, "tie_word_embeddings": True,
    }, 494_032_768),
    ("Qwen1.5-MoE-A2.7B", {
        "model_type": "qwen2_moe", "num_hidden_layers": 24, "hidden_size": 2048, "num_attention_heads": 16,
        "num_key_value_heads": 16, "intermediate_size": 5632, "moe_intermediate_size": 1408,
        "shared_expert_intermediate_size": 5632, "num_experts": 60, "num_experts_per_tok": 4, "vocab_size": 151936,
        "tie_word_embeddings": False,
    }, 14_315_784_192),
    ("Qwen3-8B", QWEN | {
        "model_type": "qwen3", "num_hidden_layers": 36, "hidden_size": 4096, "num_attention_heads": 32,
        "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 12288, "vocab_size": 151936,
        "attention_bias": False,
    }, 8_190_735_360),
    ("Qwen3-30B-A3B", QWEN | {
        "model_type": "qwen3_moe", "num_hidden_layers": 48, "hidden_size": 2048, "num_attention_heads": 32,
        "num_key_value_heads": 4, "head_dim": 128, "intermediate_size": 6144, "moe_intermediate_size": 768,
        "num_experts": 128, "num_experts_per_tok": 8, "vocab_size": 151936, "mlp_only_layers": [],
        "decoder_sparse_step": 1,
    }, 30_532_122_624),
    ("gemma-2b", {
        "model_type": "gemma", "num_hidden_layers": 18, "hidden_size": 2048, "num_attention_heads": 8,
        "num_key_value_heads": 1, "head_dim": 256, "intermediate_size": 16384, "vocab_size": 256000,
    }, 2_506_172_416),
    ("gemma-2-9b", GEMMA2 | {"model_type": "gemma2"}, 9_241_705_984),
    ("gemma-3-1b", {
        "model_type": "gemma3_text", "num_hidden_layers": 26, "hidden_size": 1152, "num_attention_heads": 4,
        "num_key_value_heads": 1, "head_dim": 256, "intermediate_size": 6912, "vocab_size": 262144,
        "sliding_window": 512, "sliding_window_pattern": 6,
    }, 999_885_952),
    ("Phi-3-mini", {
        "model_type": "phi3", "num_hidden_layers": 32, "hidden_size": 3072, "num_attention_heads": 32,
        "num_key_value_heads": 32, "intermediate_size": 8192, "vocab_size": 32064, "sliding_window": 2047,
        "tie_word_embeddings": False,
    }, 3_821_079_552),
    ("phi-2", {
        "model_type": "phi", "num_hidden_layers": 32, "hidden_size": 2560, "num_attention_heads": 32,
        "intermediate_size": 10240, "vocab_size": 51200, "tie_word_embeddings": False,
    }, 2_779_683_840),
    ("OLMo-2-7B", {
        "model_type": "olmo2", "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32,
        "num_key_value_heads": 32, "intermediate_size": 11008, "vocab_size": 100352, "tie_word_embeddings": False,
    }, 7_298_617_344),
    ("Qwen2.5-VL-7B, as released", QWEN | {
        "model_type": "qwen2_5_vl", "rope_scaling": {"type": "mrope", "mrope_section": [16, 24, 24]}, "vision_config": {
            "depth": 32, "hidden_size": 1280, "intermediate_size": 3420, "num_heads": 16, "in_chans": 3,
            "out_hidden_size": 3584, "patch_size": 14, "spatial_merge_size": 2, "temporal_patch_size": 2,
        },
    }, 8_292_166_656),
    ("Cohere 2, the default", {
        "model_type": "cohere2", "num_hidden_layers": 40, "hidden_size": 8192, "num_attention_heads": 64,
        "num_key_value_heads": 64, "intermediate_size": 22528, "vocab_size": 256000,
    }, 34_980_831_232),
    ("Command-R", {
        "model_type": "cohere", "num_hidden_layers": 40, "hidden_size": 8192, "num_attention_heads": 64,
        "num_key_value_heads": 64, "intermediate_size": 22528, "vocab_size": 256000,
    }, 34_980_831_232),
    ("gpt2", {
        "model_type": "gpt2", "n_layer": 12, "n_embd": 768, "n_head": 12, "n_positions": 1024, "vocab_size": 50257,
    }, 124_439_808),
    ("gpt-neox-20b", {
        "model_type": "gpt_neox", "num_hidden_layers": 44, "hidden_size": 6144, "num_attention_heads": 64,
        "intermediate_size": 24576, "vocab_size": 50432, "tie_word_embeddings": False,
    }, 20_554_567_680),
    ("gpt-j-6b", {
        "model_type": "gptj", "n_layer": 28, "n_embd": 4096, "n_head": 16, "n_positions": 2048, "vocab_size": 50400,
        "n_inner": None, "tie_word_embeddings": False,
    }, 6_050_882_784),
    ("opt-13b", {
        "model_type": "opt", "num_hidden_layers": 40, "hidden_size": 5120, "num_attention_heads": 40,
        "ffn_dim": 20480, "max_position_embeddings": 2048, "vocab_size": 50272, "word_embed_proj_dim": 5120,
    }, 12_853_473_280),
    ("bloom", {
        "model_type": "bloom", "n_layer": 70, "hidden_size": 14336, "num_attention_heads": 112, "vocab_size": 250880,
    }, 176_247_271_424),
    ("falcon-7b", {
        "model_type": "falcon", "num_hidden_layers": 32, "hidden_size": 4544, "num_attention_heads": 71,
        "multi_query": True, "parallel_attn": True, "bias": False, "vocab_size": 65024,
    }, 6_921_720_704),
    ("falcon-40b", {
        "model_type": "falcon", "num_hidden_layers": 60, "hidden_size": 8192, "num_attention_heads": 128,
        "num_kv_heads": 8, "new_decoder_architecture": True, "bias": False, "vocab_size": 65024,
    }, 41_303_293_952),
    ("starcoder", {
        "model_type": "gpt_bigcode", "n_layer": 40, "n_embd": 6144, "n_head": 48, "n_inner": 24576,
        "n_positions": 8192, "multi_query": True, "vocab_size": 49152,
    }, 15_517_456_384),
    ("starcoder2-7b", {
        "model_type": "starcoder2", "num_hidden_layers": 32, "hidden_size": 4608, "num_attention_heads": 36,
        "num_key_value_heads": 4, "intermediate_size": 18432, "vocab_size": 49152, "use_bias": True,
        "sliding_window": 4096,
    }, 7_173_923_840),
    ("DeepSeek-V3", DEEPSEEK, 671_026_419_200),
    ("DeepSeek-V2-Lite", DEEPSEEK | {
        "model_type": "deepseek_v2", "num_hidden_layers": 27, "hidden_size": 2048, "num_attention_heads": 16,
        "intermediate_size": 10944, "moe_intermediate_size": 1408, "n_routed_experts": 64, "n_shared_experts": 2,
        "num_experts_per_tok": 6, "first_k_dense_replace": 1, "q_lora_rank": None, "vocab_size": 102400,
        "topk_method": "greedy",
    }, 15_706_484_224),
    ("gpt-oss-20b", {
        "model_type": "gpt_oss", "num_hidden_layers": 24, "hidden_size": 2880, "num_attention_heads": 64,
        "num_key_value_heads": 8, "head_dim": 64, "intermediate_size": 2880, "num_local_experts": 32,
        "num_experts_per_tok": 4, "vocab_size": 201088, "sliding_window": 128, "attention_bias": True,
        "tie_word_embeddings": False,
    }, 20_914_757_184),
    ("LFM2-1.2B", LFM2 | {
        "model_type": "lfm2", "intermediate_size": 12288, "block_auto_adjust_ff_dim": True, "block_multiple_of": 256,
        "full_attn_idxs": [2, 5, 8, 10, 12, 14],
    }, 1_170_340_608),
    ("LFM2-8B-A1B", LFM2 | {
        "model_type": "lfm2_moe", "num_hidden_layers": 24, "intermediate_size": 7168, "moe_intermediate_size": 1792,
        "num_experts": 32, "num_experts_per_tok": 4, "num_dense_layers": 2,
        "layer_types": ["full_attention" if i in (2, 6, 10, 14, 18, 21) else "conv" for i in range(24)],
    }, 8_339_929_856 + 22 * 32),
    ("Seed-OSS, the default", LLAMA | {
        "model_type": "seed_oss", "num_hidden_layers": 64, "num_attention_heads": 80, "head_dim": 128,
        "intermediate_size": 27648, "vocab_size": 155136, "hidden_size": 4096, "attention_bias": True,
    }, 28_921_040_896),
    ("ERNIE 4.5, the default", LLAMA | {
        "model_type": "ernie4_5", "num_hidden_layers": 18, "hidden_size": 1024, "num_attention_heads": 16,
        "num_key_value_heads": 2, "head_dim": 128, "intermediate_size": 3072, "vocab_size": 103424,
        "tie_word_embeddings": True,
    }, 360_748_032),
    ("MiniMax-M3 by transformers' names", {
        "model_type": "minimax_m3_vl_text", "num_hidden_layers": 60, "hidden_size": 6144, "num_attention_heads": 64,
        "num_key_value_heads": 4, "head_dim": 128, "intermediate_size": 3072, "dense_intermediate_size": 12288,
        "shared_intermediate_size": 3072, "num_local_experts": 128, "num_experts_per_tok": 4, "vocab_size": 200064,
        "index_n_heads": 4, "index_head_dim": 128, "tie_word_embeddings": False,
        "layer_types": ["full_attention"] * 3 + ["minimax_m3_sparse"] * 57,
        "mlp_layer_types": ["dense"] * 3 + ["sparse"] * 57,
    }, 426_174_565_632 + 57 * 128),
    ("Mistral Large 4, the default", MLA | {
        "model_type": "mistral_large4_text", "num_hidden_layers": 72, "hidden_size": 6144, "vocab_size": 204800,
        "intermediate_size": 24576, "moe_intermediate_size": 6144, "n_routed_experts": 128, "n_shared_experts": 1,
        "num_experts_per_tok": 4, "first_k_dense_replace": 1, "index_n_heads": 32, "index_head_dim": 128,
    }, 1_048_859_911_680 + 204800 * 6144),
]  # fmt: skip
"""Parameters of released checkpoints, and of default configurations as transformers 5.23 counts them.

To its counts are added the biases of routers, which it keeps as buffers, and an output layer where it has none.
"""


def shape(config: dict[str, Any]) -> Architecture:
    return read_config(config, Assumptions())


@pytest.mark.parametrize(("config", "params"), [row[1:] for row in RELEASED], ids=[row[0] for row in RELEASED])
def test_the_parameters_of_a_configuration_are_those_of_its_checkpoint(config: dict[str, Any], params: int) -> None:
    assert count_parameters(shape(config)).total == params


def test_every_family_is_compared_with_a_checkpoint_or_is_one_that_is() -> None:
    same_as_another = {
        "granite", "smollm3", "gemma3", "qwen2_vl", "qwen2_vl_text", "qwen2_5_vl_text", "qwen3_next", "ministral3",
        "mistral4", "glm4_moe", "glm4_moe_lite", "deepseek_ref", "step3p5",
    }  # fmt: skip
    configs = [*(config for _, config, _ in RELEASED), *(model["config"] for model in MODELS.values())]
    configs += [config for config, _, _ in PUBLISHED]
    assert set(FAMILIES) - {config.get("text_config", config)["model_type"] for config in configs} == same_as_another


@pytest.mark.parametrize(
    ("config", "active"),
    [(DEEPSEEK, 37_552_297_472), (dict(RELEASED[2][1]), 12_879_925_248)],
    ids=["DeepSeek-V3", "Mixtral-8x7B"],
)
def test_a_token_passes_through_the_chosen_experts_only(config: dict[str, Any], active: int) -> None:
    assert count_parameters(shape(config)).active == active


@pytest.mark.parametrize(
    ("config", "full", "windowed"),
    [
        (LLAMA, 32, 0),
        (LLAMA | {"model_type": "mistral", "sliding_window": 4096}, 0, 32),
        (LLAMA | {"model_type": "mistral", "sliding_window": None}, 32, 0),
        (QWEN | {"model_type": "qwen2"}, 28, 0),
        (QWEN | {"model_type": "qwen2", "use_sliding_window": True, "max_window_layers": 20}, 20, 8),
        (GEMMA2 | {"model_type": "gemma2"}, 21, 21),
        (GEMMA2 | {"model_type": "gemma3_text", "num_hidden_layers": 26}, 4, 22),
        (LLAMA | {"model_type": "cohere2", "sliding_window": 4096}, 8, 24),
        (LLAMA | {"model_type": "novel", "sliding_window": 4096, "sliding_window_pattern": 4}, 8, 24),
        (LLAMA | {"model_type": "exaone4", "sliding_window": 4096, "sliding_window_pattern": "LLLG"}, 8, 24),
        (LLAMA | {"model_type": "exaone4", "sliding_window": 4096, "sliding_window_pattern": "LLLLLG"}, 6, 26),
        (LLAMA | {"model_type": "exaone4", "sliding_window": None, "sliding_window_pattern": "LLLG"}, 32, 0),
        (LLAMA | {"layer_types": ["linear_attention", "full_attention"] * 16}, 16, 0),
        (GEMMA2 | {"model_type": "gemma2", "layer_types": ["sliding_attention"] * 40 + ["full_attention"] * 2}, 2, 40),
    ],
)
def test_layers_with_a_window_are_counted_apart(config: dict[str, Any], full: int, windowed: int) -> None:
    cache = build_kv_cache(shape(config))
    assert sum(count for kept, count in cache.kinds if kept.window is None) == full
    assert sum(count for kept, count in cache.kinds if kept.window is not None) == windowed


def test_only_the_language_model_of_a_multimodal_model_is_read_and_that_is_recorded() -> None:
    ledger = Assumptions()
    text = {name: value for name, value in LLAMA.items() if name != "model_type"}
    read = read_config({"model_type": "llama", "text_config": text}, ledger)
    assert count_parameters(read).total == 8_030_261_248
    assert [note.field for note in ledger.recorded] == ["config.text_config"]


def test_defaults_of_a_family_are_recorded() -> None:
    ledger = Assumptions()
    config = {name: value for name, value in LLAMA.items() if name != "tie_word_embeddings"}
    read_config(config, ledger)
    assert [(note.field, note.value) for note in ledger.recorded] == [("config.tie_word_embeddings", False)]


TIED = (
    *("bloom", "cohere", "cohere2", "ernie4_5", "falcon", "gemma", "gemma2", "gemma3_text", "gemma4_text", "gpt2"),
    *("gpt_bigcode", "lfm2", "lfm2_moe", "opt", "smollm3", "starcoder2"),
)
"""Types whose class has `tie_word_embeddings` true in transformers 5.24; that of all other families is false."""


def test_a_family_whose_file_does_not_say_so_is_tied_where_its_class_in_transformers_is() -> None:
    configs = [config for _, config, _ in RELEASED] + [model["config"] for model in MODELS.values()]
    configs += [config for config, _, _ in PUBLISHED]
    configs += [LLAMA | {"model_type": kind} for kind in ("granite", "smollm3", "ministral3")]
    tied = {}
    for config in configs:
        text = {**config.get("text_config", config), "tie_word_embeddings": None}
        kind = text.get("model_type", config["model_type"])
        tied[kind] = shape({"model_type": kind} | text).tied_embeddings
    assert {kind for kind, is_tied in tied.items() if is_tied} == set(TIED)
    assert len(tied) > 50


def test_smollm3_has_the_parameters_of_its_release_where_the_file_leaves_out_that_it_is_tied() -> None:
    smollm3: dict[str, Any] = {
        "model_type": "smollm3", "num_hidden_layers": 36, "hidden_size": 2048, "num_attention_heads": 16,
        "num_key_value_heads": 4, "intermediate_size": 11008, "vocab_size": 128256,
    }  # fmt: skip
    layer = 2048 * (2048 + 512) * 2 + 3 * 2048 * 11008 + 2 * 2048
    assert count_parameters(shape(smollm3)).total == 36 * layer + 128256 * 2048 + 2048 == 3_075_098_624


def test_as_many_kv_heads_as_heads_are_recorded_where_the_file_has_none() -> None:
    ledger = Assumptions()
    assert read_config(LLAMA | {"num_key_value_heads": None}, ledger).kv_heads == 32
    assert [(note.field, note.value) for note in ledger.recorded] == [("config.num_key_value_heads", 32)]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model_type": None}, "config.model_type: is missing"),
        ({"model_type": 5}, "config.model_type: 5 is not text"),
        ({"model_type": "lama", "vocab_size": None}, "did you mean llama?"),
        ({"hidden_size": None}, "config.hidden_size: is missing (or n_embd, d_model)"),
        ({"vocab_size": 32000.5}, "config.vocab_size: 32000.5 is not a whole number from 1 to 1,000,000,000"),
        ({"vocab_size": 10**12}, "config.vocab_size"),
        ({"num_hidden_layers": 10**8}, "config.num_hidden_layers: 100000000 is more than"),
        ({"num_attention_heads": 33}, "config.head_dim: is missing"),
        ({"tie_word_embeddings": "no"}, "config.tie_word_embeddings: 'no' is neither true nor false"),
        ({"layer_types": ["telepathy"] * 32}, "config.layer_types: telepathy is not understood"),
        (
            {"layer_types": ["full_attention"] * 3},
            "config.layer_types: has 3 entries, and there are 32 layers",
        ),
        ({"layer_types": ["full_attention"] * 40}, "config.layer_types: has 40 entries, and there are 32 layers"),
        ({"layer_types": []}, "config.layer_types: has 0 entries, and there are 32 layers"),
        ({"layer_types": "full_attention"}, "config.layer_types: 'full_attention' is not a list"),
        (
            {"layer_types": ["full_attention"] * 33, "num_nextn_predict_layers": 2},
            "config.layer_types: has 33 entries, and there are 32 layers besides 2 that draft tokens",
        ),
        *(
            (
                {"model_type": kind, "num_nextn_predict_layers": wrong},
                f"config.num_nextn_predict_layers: {shown} is not a whole number from 0 to 1,000,000,000",
            )
            for kind in ("llama", "novel")
            for wrong, shown in ((-1, "-1"), ("1", "'1'"), (True, "true"), (1.5, "1.5"))
        ),
        (
            {"mtp_num_hidden_layers": 33},
            "config.mtp_num_hidden_layers: 33 is more than the number of layers, 32",
        ),
        ({"num_mtp_modules": "x", "layer_types": ["full_attention"] * 32}, "config.num_mtp_modules: 'x' is not a"),
        ({"model_type": "mixtral"}, "config.num_local_experts: is missing"),
        ({"num_key_value_heads": 64}, "config.num_key_value_heads: 64 is more than num_attention_heads, 32"),
        ({"num_key_value_heads": 7}, "config.num_key_value_heads: 7 does not divide num_attention_heads, 32"),
        (
            {"model_type": "novel", "num_key_value_heads": 7},
            "config.num_key_value_heads: 7 does not divide num_attention_heads, 32",
        ),
        (
            {"model_type": "falcon", "new_decoder_architecture": True, "num_kv_heads": 64},
            "config.num_kv_heads: 64 is more than num_attention_heads, 32",
        ),
        (
            {"model_type": "mixtral", "num_local_experts": 8, "num_experts_per_tok": 9},
            "config.num_experts_per_tok: 9 is more than num_local_experts, 8",
        ),
        (
            {"model_type": "qwen3_moe", "moe_intermediate_size": 768, "num_experts": 128, "num_experts_per_tok": 200},
            "config.num_experts_per_tok: 200 is more than num_experts, 128",
        ),
        (
            {"model_type": "novel", "moe_num_experts": 8, "moe_k": 9, "moe_intermediate_size": 768},
            "config.moe_k: 9 is more than moe_num_experts, 8",
        ),
        (
            {"model_type": "deepseek_v3", "moe_layer_freq": 2, "moe_intermediate_size": 1},
            "config.moe_layer_freq: 2 is not",
        ),
        ({"model_type": "qwen3_moe", "mlp_only_layers": 3}, "config.mlp_only_layers: 3 is not a list"),
        *(
            (
                DEEPSEEK | {"model_type": kind, "first_k_dense_replace": 62},
                "config.first_k_dense_replace: 62 is more than",
            )
            for kind in ("deepseek_v3", "glm4_moe", "novel")
        ),
        (
            LFM2
            | {
                "model_type": "lfm2_moe",
                "num_experts": 32,
                "num_experts_per_tok": 4,
                "moe_intermediate_size": 1792,
                "num_dense_layers": 17,
                "layer_types": ["conv"] * 16,
                "num_hidden_layers": 16,
            },
            "config.num_dense_layers: 17 is more than the number of layers, 16",
        ),
        (DEEPSEEK | {"first_k_dense_replace": -1}, "config.first_k_dense_replace: -1 is not a whole number from 0 to"),
        ({"sliding_window_pattern": 0}, "config.sliding_window_pattern: 0 is not a whole number from 1 to"),
        ({"sliding_window_pattern": "LLX"}, "config.sliding_window_pattern: 'LLX' is neither a number of layers nor"),
        ({"rope_scaling": "x"}, "config.rope_scaling: 'x' is not an object"),
        ({"rope_scaling": {"type": "yarn", "factor": "4"}}, "config.rope_scaling.factor: '4' is not a factor from 1"),
        ({"rope_scaling": {"type": "yarn", "factor": -4}}, "config.rope_scaling.factor: -4 is not a factor from 1"),
        ({"rope_parameters": {"factor": 1e9}}, "config.rope_parameters.factor: 1000000000.0 is not a factor from 1"),
    ],
)
def test_an_unsupported_configuration_is_rejected_with_its_field(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidWorkload) as refused:
        shape(LLAMA | change)
    assert message in str(refused.value)


@pytest.mark.parametrize("none", [None, 0])
def test_a_model_without_layers_that_draft_tokens_says_nothing_of_them(none: int | None) -> None:
    ledger = Assumptions()
    assert read_config(LLAMA | {"num_nextn_predict_layers": none}, ledger).mtp_layers is None
    assert ledger.recorded == ()


def test_kinds_of_layers_that_draft_tokens_follow_those_of_the_model() -> None:
    """Step 3.5 has 45 layers, 3 that draft tokens, and 48 entries."""
    kinds = ["full_attention"] * 8 + ["sliding_attention"] * 24
    config = LLAMA | {"sliding_window": 512, "num_nextn_predict_layers": 3, "layer_types": kinds}
    longer = config | {"layer_types": [*kinds, *["sliding_attention"] * 3]}
    assert shape(longer) == shape(config)
    assert (shape(longer).kv_layers, shape(longer).sliding_layers) == (32, 24)


GEMMA3: dict[str, Any] = {
    "model_type": "gemma3", "torch_dtype": "bfloat16", "vision_config": {
        "hidden_size": 1152, "image_size": 896, "intermediate_size": 4304, "num_attention_heads": 16,
        "num_hidden_layers": 27, "patch_size": 14, "model_type": "siglip_vision_model", "vision_use_head": False,
    },
}  # fmt: skip
SCALED = {"rope_scaling": {"factor": 8.0, "rope_type": "linear"}, "sliding_window": 1024, "model_type": "gemma3_text"}


@pytest.mark.parametrize(
    ("id_", "text"),
    [
        ("gemma-3-4b", {"hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 34}),
        ("gemma-3-12b", {
            "hidden_size": 3840, "intermediate_size": 15360, "num_attention_heads": 16, "num_hidden_layers": 48,
            "num_key_value_heads": 8,
        }),
        ("gemma-3-27b", {
            "head_dim": 128, "hidden_size": 5376, "intermediate_size": 21504, "num_attention_heads": 32,
            "num_hidden_layers": 62, "num_key_value_heads": 16, "query_pre_attn_scalar": 168,
        }),
    ],
)  # fmt: skip
def test_the_released_files_of_gemma_3_leave_out_the_defaults_of_its_class(id_: str, text: dict[str, Any]) -> None:
    """They are in the list of models by their model cards, without the vision tower, which is published with them."""
    with (PROJECT / "seeds" / "models.csv").open() as file:
        preset = next(row for row in csv.DictReader(file) if row["id"] == id_)
    ledger = Assumptions()
    read = read_config(GEMMA3 | {"text_config": text | SCALED}, ledger)
    assert count_parameters(read).total == int(preset["published_params"])
    assert count_parameters(read).total - read.outside == int(preset["params"])
    named = {
        "layers": read.layers, "hidden": read.hidden, "vocab": read.vocab, "heads": read.heads,
        "kv_heads": read.kv_heads, "head_dim": read.head_dim, "sliding_window": read.sliding_window,
        "sliding_layers": read.sliding_layers, "intermediate": read.intermediate,
        "max_context_tokens": read.max_positions,
    }  # fmt: skip
    assert {name: str(value) for name, value in named.items()} == {name: preset[name] for name in named}
    noted = {note.field: note.value for note in ledger.recorded if note.why == "the family's default"}
    defaults = {
        "vocab_size": 262_208, "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256,
        "max_position_embeddings": 131_072, "sliding_window_pattern": 6, "tie_word_embeddings": True,
    }  # fmt: skip
    assert noted == {f"config.text_config.{name}": value for name, value in defaults.items() if name not in text}


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"text_config": LLAMA | {"vocab_size": None}}, "config.text_config.vocab_size: is missing"),
        ({"text_config": LLAMA | {"num_key_value_heads": 7}}, "config.text_config.num_key_value_heads: 7 does not"),
        ({"text_config": LLAMA | {"layer_types": ["mamba"]}}, "config.text_config.layer_types: has 1 entry, and"),
        ({"text_config": LLAMA | {"model_type": "telepathy", "num_key_value_heads": None}},
         "config.text_config.model_type: 'telepathy' is not known"),
        ({"model_type": "llava", "text_config": {"vocab_size": 32064}}, "config.model_type: 'llava' is not known"),
        ({"tie_word_embeddings": 0, "text_config": LLAMA | {"tie_word_embeddings": None}},
         "config.tie_word_embeddings: 0 is neither true nor false"),
        ({"text_config": LLAMA | {"torch_dtype": "int3"}}, "config.text_config.torch_dtype: 'int3' is not"),
        ({"dtype": "int3", "text_config": LLAMA}, "config.dtype: 'int3' is not"),
        ({"text_config": LLAMA | {"quantization_config": {"quant_method": "hqq"}}},
         "config.text_config.quantization_config.quant_method: 'hqq' is not"),
        ({"model_type": "llava", "text_config": "x"}, "config.text_config: 'x' is not an object"),
    ],
)  # fmt: skip
def test_a_wrong_field_of_the_language_model_is_named_where_it_stands(config: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidWorkload) as refused:
        shape(config)
    assert str(refused.value).startswith(message)
