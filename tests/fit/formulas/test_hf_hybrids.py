"""Configurations of models whose layers differ, against counts of the same models by other programs.

`benchmarks/accuracy/released_models.json` has the fields that are read of each released `config.json` (as collected by
ai-dynamo/aiconfigurator at 095f58a, Apache-2.0). `params` is the number of parameters that transformers 5.23 makes of
it (`AutoModel` on the meta device), with the biases of routers, which it keeps as buffers; `published` is the vendor's
rounded number where transformers has no such model.
"""

import json
from itertools import repeat
from typing import Any

import pytest

from app.fit.formulas.architecture import Architecture, count_parameters
from app.fit.formulas.hf_config import read_config
from app.fit.formulas.memory import Parallelism, build_kv_cache, kv_bytes_per_sequence
from app.fit.formulas.quantities import Assumptions, InvalidWorkload
from app.fit.formulas.weight_matrices import quantized_bytes
from app.settings import PROJECT

MODELS: dict[str, dict[str, Any]] = {
    model["name"]: model
    for model in json.loads((PROJECT / "benchmarks" / "accuracy" / "released_models.json").read_text())
}
CONTEXT = 131_072


def shape(name: str, **changes: Any) -> Architecture:
    return read_config(MODELS[name]["config"] | changes, Assumptions())


def sequence_bytes(name: str, tokens: int, parallelism: Parallelism | None = None, **cache: Any) -> float:
    return kv_bytes_per_sequence(build_kv_cache(shape(name), **cache), tokens, parallelism or Parallelism())


@pytest.mark.parametrize("name", [name for name, model in MODELS.items() if "params" in model])
def test_the_parameters_are_those_that_transformers_counts(name: str) -> None:
    assert count_parameters(shape(name)).total == MODELS[name]["params"]


@pytest.mark.parametrize("name", [name for name, model in MODELS.items() if "published" in model])
def test_the_parameters_are_those_that_are_published(name: str) -> None:
    assert count_parameters(shape(name)).total == pytest.approx(MODELS[name]["published"], rel=0.01)


@pytest.mark.parametrize(
    ("name", "published"),
    [
        ("Qwen3.5-397B-A17B", 17e9), ("Qwen3-VL-30B-A3B", 3.3e9), ("Llama-4-Scout", 17e9), ("Llama-4-Maverick", 17e9),
        ("gemma-4-26B-A4B", 3.8e9), ("DeepSeek-V3.2", 37e9), ("DeepSeek-V4-Flash", 13e9), ("DeepSeek-V4-Pro", 49e9),
        ("GLM-5", 40e9), ("Kimi-K2.5", 32e9), ("MiniMax-M2.7", 10e9), ("MiMo-V2-Flash", 15e9), ("Step-3.7-Flash", 11e9),
        ("Nemotron-3-Super", 12e9), ("Nemotron-3-Ultra", 55e9), ("Nemotron-3-Nano", 3.6e9),
    ],
)  # fmt: skip
def test_active_parameters_are_near_the_published_ones(name: str, published: float) -> None:
    assert count_parameters(shape(name)).active == pytest.approx(published, rel=0.11)


@pytest.mark.parametrize("name", MODELS)
def test_the_cache_of_a_sequence_stays_what_it_was(name: str) -> None:
    assert sequence_bytes(name, CONTEXT) == MODELS[name]["kv_bytes"]


def test_linear_attention_keeps_a_state_that_does_not_grow() -> None:
    """Qwen3.5-397B: 15 of 60 layers keep 2 heads of 256; 45 keep 64 x 128 x 128 in FP32 and 3 columns of 12,288."""
    state = 45 * (64 * 128 * 128 * 4 + 12_288 * 3 * 2)
    assert sequence_bytes("Qwen3.5-397B-A17B", 1) == state + 15 * 2 * 2 * 256 * 2
    assert sequence_bytes("Qwen3.5-397B-A17B", CONTEXT) == state + 15 * 2 * 2 * 256 * 2 * CONTEXT


def test_a_state_is_divided_over_tensor_ranks_and_a_latent_is_not() -> None:
    one, eight = sequence_bytes("Nemotron-H-56B", 1), sequence_bytes("Nemotron-H-56B", 1, Parallelism(tensor=8))
    assert eight == one / 8
    assert sequence_bytes("DeepSeek-V3.2", 100, Parallelism(tensor=8)) == sequence_bytes("DeepSeek-V3.2", 100)


def test_an_indexer_caches_a_key_of_132_bytes_in_each_layer_that_selects() -> None:
    """DeepSeek-V3.2 has one in all 61 layers; of the 78 of GLM-5.2, 57 share the selection of an earlier one."""
    assert sequence_bytes("DeepSeek-V3.2", 1) == 61 * (576 * 2 + 132)
    assert sequence_bytes("GLM-5.2", 1) == 78 * 576 * 2 + 21 * 132


def test_a_sparse_latent_in_fp8_takes_656_bytes() -> None:
    assert sequence_bytes("DeepSeek-V3.2", 1, value_bytes=1) == 61 * (656 + 132)


def test_compressed_attention_keeps_a_window_and_an_entry_for_several_tokens() -> None:
    """DeepSeek-V4-Flash: 43 windows of 128; 21 layers compress 4 tokens and index them, 20 layers compress 128."""
    tokens = 4096
    expected = 43 * 128 * 584 + 21 * tokens / 4 * (584 + 132) + 20 * tokens / 128 * 584
    assert sequence_bytes("DeepSeek-V4-Flash", tokens) == expected


def test_layers_with_a_window_and_wide_layers_are_cached_apart() -> None:
    """gemma-4-26B: 25 layers of 8 heads of 256 and a window of 1,024; 5 layers of 2 heads of 512."""
    assert sequence_bytes("gemma-4-26B-A4B", 4096) == 25 * 1024 * 2 * 8 * 256 * 2 + 5 * 4096 * 2 * 2 * 512 * 2


def test_reused_keys_are_not_cached_again() -> None:
    """Gemma 4 E4B: the last 18 of 42 layers use the keys and values of earlier ones; it has embeddings per layer."""
    text = MODELS["gemma-4-31B"]["config"]["text_config"] | {
        "hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 42, "num_attention_heads": 8,
        "num_key_value_heads": 2, "num_global_key_value_heads": None, "attention_k_eq_v": False,
        "num_kv_shared_layers": 18, "hidden_size_per_layer_input": 256, "sliding_window": 512,
    }  # fmt: skip
    small = read_config({"model_type": "gemma4", "text_config": text}, Assumptions())
    assert count_parameters(small).total == 7_632_344_064 - 169_330_688  # transformers 5.23, without its vision tower
    assert kv_bytes_per_sequence(build_kv_cache(small), 1) == 2 * 2 * (20 * 2 * 256 + 4 * 2 * 512)


def test_routed_experts_may_have_a_type_of_their_own() -> None:
    """DeepSeek-V4-Flash is released with experts in MXFP4 and FP8 in blocks for the rest: 149 GiB with draft layers."""
    quantized = {"quant_method": "fp8", "weight_block_size": [128, 128]}
    mixed = shape("DeepSeek-V4-Flash", quantization_config=quantized, expert_dtype="fp4")
    assert mixed.released is not None
    assert mixed.released.quantization is not None
    assert mixed.released.dtype == "mxfp4"
    stored = quantized_bytes(mixed, count_parameters(mixed), mixed.released.quantization)
    experts = 43 * 256 * 3 * 4096 * 2048
    assert stored.experts == experts * 4.25 / 8
    assert stored.total == pytest.approx(145e9 * 1.0737, rel=0.01)


def test_pruned_layers_are_counted_one_by_one() -> None:
    """Llama-3.3-Nemotron-Super-49B has 49.9B parameters and attention in 49 of 80 layers."""
    pruned = shape("Llama-3.3-Nemotron-Super-49B")
    assert pruned.kv_layers == 49
    assert sequence_bytes("Llama-3.3-Nemotron-Super-49B", 1) == 49 * 2 * 8 * 128 * 2


def test_the_quantization_of_modelopt_may_be_sent_beside_the_configuration() -> None:
    plain = shape("GLM-5", quantization={"quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8"})
    assert plain.released is not None
    assert plain.released.dtype == "nvfp4"


@pytest.mark.parametrize(
    ("name", "wrong", "field"),
    [
        ("DeepSeek-V4-Flash", {"compress_ratios": [4]}, "config.compress_ratios"),
        ("GLM-5.2", {"indexer_types": ["full", "none"]}, "config.indexer_types"),
        ("MiMo-V2-Flash", {"hybrid_layer_pattern": [0]}, "config.hybrid_layer_pattern"),
        ("Nemotron-3-Nano", {"hybrid_override_pattern": "MX"}, "config.hybrid_override_pattern"),
        ("MiniMax-M3", {"sparse_attention_config": 3}, "config.sparse_attention_config"),
        ("DeepSeek-V4-Flash", {"expert_dtype": "int2", "quantization_config": {"quant_method": "fp8"}},
         "config.expert_dtype"),
        ("Llama-3.3-Nemotron-Super-49B", {"block_configs": list(repeat({"ffn": {"ffn_mult": -1}}, 80))},
         "config.block_configs.0.attention.n_heads_in_group"),
    ],
)  # fmt: skip
def test_a_field_that_is_not_understood_is_named(name: str, wrong: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidWorkload) as caught:
        shape(name, **wrong)
    assert caught.value.field == field


QWEN3_30B = {
    "model_type": "qwen3_moe", "num_hidden_layers": 48, "hidden_size": 2048, "num_attention_heads": 32,
    "num_key_value_heads": 4, "head_dim": 128, "intermediate_size": 6144, "moe_intermediate_size": 768,
    "num_experts": 128, "num_experts_per_tok": 8, "vocab_size": 151936,
}  # fmt: skip
LFM2_1B = {
    "model_type": "lfm2", "num_hidden_layers": 16, "hidden_size": 2048, "num_attention_heads": 32,
    "num_key_value_heads": 8, "vocab_size": 65536, "intermediate_size": 12288,
}  # fmt: skip
HUNYUAN_A13B = {
    "model_type": "hunyuan_v1_moe", "hidden_size": 4096, "intermediate_size": 3072, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 128167, "use_qk_norm": True,
    "num_experts": 64, "moe_topk": [8] * 32, "moe_intermediate_size": [3072] * 32, "num_shared_expert": [1] * 32,
    "tie_word_embeddings": True, "max_position_embeddings": 32768,
}  # fmt: skip
HUNYUAN_7B = {
    "model_type": "hunyuan_v1_dense", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 128167, "use_qk_norm": True,
    "tie_word_embeddings": True, "attention_bias": False, "mlp_bias": False, "max_position_embeddings": 262144,
}  # fmt: skip
LONGCAT_FLASH = {
    "model_type": "longcat_flash", "hidden_size": 6144, "ffn_hidden_size": 12288, "expert_ffn_hidden_size": 2048,
    "num_layers": 28, "num_attention_heads": 64, "kv_lora_rank": 512, "q_lora_rank": 1536, "qk_rope_head_dim": 64,
    "qk_nope_head_dim": 128, "v_head_dim": 128, "n_routed_experts": 512, "zero_expert_num": 256, "moe_topk": 12,
    "vocab_size": 131072, "tie_word_embeddings": False,
}  # fmt: skip
GRANITE_H_SMALL = {
    "model_type": "granitemoehybrid", "hidden_size": 4096, "num_hidden_layers": 40, "num_attention_heads": 32,
    "num_key_value_heads": 8, "num_local_experts": 72, "num_experts_per_tok": 10, "shared_intermediate_size": 1536,
    "intermediate_size": 768, "mamba_d_state": 128, "mamba_d_conv": 4, "mamba_expand": 2, "mamba_n_heads": 128,
    "mamba_d_head": 64, "mamba_n_groups": 1, "tie_word_embeddings": True, "vocab_size": 100352,
    "layer_types": [["mamba", "attention"][number in {5, 15, 25, 35}] for number in range(40)],
}  # fmt: skip
FALCON_H1_34B = {
    "model_type": "falcon_h1", "hidden_size": 5120, "intermediate_size": 21504, "num_hidden_layers": 72,
    "num_attention_heads": 20, "num_key_value_heads": 4, "head_dim": 128, "mamba_d_ssm": 4096, "mamba_n_heads": 32,
    "mamba_d_head": 128, "mamba_d_state": 256, "mamba_n_groups": 2, "mamba_d_conv": 4, "mamba_rms_norm": False,
    "vocab_size": 261120, "tie_word_embeddings": False,
}  # fmt: skip


@pytest.mark.parametrize(
    ("config", "detail"),
    [
        (MODELS["GLM-5.2"]["config"] | {"indexer_types": ["full"] * 79}, "indexer_types: has 79 entries, and there"),
        (MODELS["GLM-5.2"]["config"] | {"mlp_layer_types": ["dense"]}, "mlp_layer_types: has 1 entry, and there are"),
        (MODELS["DeepSeek-V4-Flash"]["config"] | {"compress_ratios": [4] * 45}, "compress_ratios: has 45 entries"),
        (MODELS["MiMo-V2-Flash"]["config"] | {"hybrid_layer_pattern": None}, "hybrid_layer_pattern: is missing"),
        (MODELS["MiniMax-M3"]["config"] | {"moe_layer_freq": [1] * 61}, "moe_layer_freq: has 61 entries, and there"),
        (MODELS["Nemotron-3-Nano"]["config"] | {"hybrid_override_pattern": "M*E"},
         "hybrid_override_pattern: has 3 entries, and there are 52 layers"),
        (MODELS["Llama-3.3-Nemotron-Super-49B"]["config"] | {"block_configs": [{}] * 81},
         "block_configs: has 81 entries, and there are 80 layers"),
        (MODELS["Llama-3.3-Nemotron-Super-49B"]["config"] | {"block_configs": [7] * 80},
         "block_configs.0: 7 is not an object"),
        (GRANITE_H_SMALL | {"layer_types": ["attention"] * 41}, "layer_types: has 41 entries, and there are 40 layers"),
        (HUNYUAN_A13B | {"moe_topk": [8] * 31}, "moe_topk: has 31 entries, and there are 32 layers"),
        (QWEN3_30B | {"mlp_only_layers": [48]},
         "mlp_only_layers: 48 is not the number of a layer, from 0 to 47"),
        (LFM2_1B | {"full_attn_idxs": [2, 16]}, "full_attn_idxs: 16 is not the number of a layer, from 0 to 15"),
    ],
)  # fmt: skip
def test_a_list_that_is_not_of_the_layers_is_refused(config: dict[str, Any], detail: str) -> None:
    with pytest.raises(InvalidWorkload) as refused:
        read_config(config, Assumptions())
    assert str(refused.value).startswith(f"config.{detail}")


@pytest.mark.parametrize(
    ("config", "detail"),
    [
        (MODELS["MiMo-V2-Flash"]["config"] | {"swa_num_key_value_heads": 7},
         "swa_num_key_value_heads: 7 does not divide num_attention_heads, 64"),
        (MODELS["Nemotron-3-Nano"]["config"] | {"num_key_value_heads": 64},
         "num_key_value_heads: 64 is more than num_attention_heads, 32"),
        (MODELS["gemma-4-31B"]["config"]["text_config"] | {"num_global_key_value_heads": 5},
         "num_global_key_value_heads: 5 does not divide num_attention_heads, 32"),
        (MODELS["Llama-3.3-Nemotron-Super-49B"]["config"]
         | {"block_configs": [{"attention": {"n_heads_in_group": 7}}] * 80},
         "block_configs.0.attention.n_heads_in_group: 7 does not divide num_attention_heads, 64"),
        (LONGCAT_FLASH | {"moe_topk": 513}, "moe_topk: 513 is more than n_routed_experts, 512"),
    ],
)  # fmt: skip
def test_heads_and_experts_that_no_model_has_are_refused(config: dict[str, Any], detail: str) -> None:
    with pytest.raises(InvalidWorkload) as refused:
        read_config(config, Assumptions())
    assert str(refused.value) == f"config.{detail}"


PUBLISHED: list[tuple[dict[str, Any], float, float | None]] = [
    (HUNYUAN_A13B, 80e9, 13e9), (HUNYUAN_7B, 7.5e9, None), (LONGCAT_FLASH, 560e9, 27e9),
    (GRANITE_H_SMALL, 32e9, 9e9), (FALCON_H1_34B, 33.6e9, None),
]  # fmt: skip
"""Configurations with the rounded parameters that are published, all and active.

The released files were not at hand for every field: what is tested is that the family adds up, not that the fields are
those of the release."""


@pytest.mark.parametrize(("config", "published", "active"), PUBLISHED)
def test_the_parameters_of_newer_families_are_those_that_are_published(
    config: dict[str, Any], published: float, active: float | None
) -> None:
    counted = count_parameters(read_config(config, Assumptions()))
    assert counted.total == pytest.approx(published, rel=0.01)
    assert counted.active == pytest.approx(active or counted.total, rel=0.05)


def test_experts_that_compute_nothing_are_left_out_of_what_a_token_uses() -> None:
    assumptions = Assumptions()
    model = read_config(LONGCAT_FLASH, assumptions)
    assert (model.experts, model.experts_per_token) == (512, 8)
    assert next(one.value for one in assumptions.recorded if one.field == "config.moe_topk") == 8
    assert kv_bytes_per_sequence(build_kv_cache(model), 1, Parallelism()) == 56 * 576 * 2


def test_attention_and_state_are_side_by_side_in_every_layer_of_falcon_h1() -> None:
    """A token takes 2 x 4 heads of 128 in 72 layers; the state is 32 x 128 x 256 in FP32 and 3 columns of 5,120."""
    state = 72 * (32 * 128 * 256 * 4 + (4096 + 2 * 2 * 256) * 3 * 2)
    cache = build_kv_cache(read_config(FALCON_H1_34B, Assumptions()))
    assert kv_bytes_per_sequence(cache, 100, Parallelism()) == state + 100 * 72 * 2 * 4 * 128 * 2


def test_a_granite_without_experts_has_the_shared_mlp_alone() -> None:
    dense = read_config(GRANITE_H_SMALL | {"num_local_experts": 0, "shared_intermediate_size": 8192}, Assumptions())
    assert (dense.experts, dense.intermediate) == (None, 8192)
    mlps = [matrix for group in dense.groups for matrix in group.content.matrices if matrix.part == "mlp"]
    assert {matrix.rows * matrix.columns for matrix in mlps} == {4096 * 8192}


def test_a_field_of_hunyuan_that_differs_between_layers_is_rejected() -> None:
    with pytest.raises(InvalidWorkload, match=r"config\.moe_topk"):
        read_config(HUNYUAN_A13B | {"moe_topk": [8] * 31 + [4]}, Assumptions())


def test_a_number_of_experts_that_is_none_is_rejected_in_a_dense_hybrid_too() -> None:
    config = MODELS["Qwen3.5-27B"]["config"]
    with pytest.raises(InvalidWorkload, match=r"config\.num_experts"):
        read_config(config | {"text_config": config["text_config"] | {"num_experts": "x"}}, Assumptions())
