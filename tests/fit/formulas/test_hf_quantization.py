"""What a checkpoint's `quantization_config` says of its size: as released checkpoints have it, and what is refused."""

from typing import Any

import pytest

from app.fit.estimator.model import resolve_model
from app.fit.estimator.weights import Weights, count_weights
from app.fit.estimator.workload import InferenceWorkload
from app.fit.formulas.architecture import Architecture, count_parameters
from app.fit.formulas.hf_config import read_config
from app.fit.formulas.quantities import Assumptions, InvalidWorkload
from app.fit.formulas.quantization import Quantization
from app.fit.formulas.weight_matrices import weight_matrices
from tests.fit.formulas.test_hf_hybrids import MODELS

QWEN_14B: dict[str, Any] = {
    "model_type": "qwen3", "num_hidden_layers": 40, "hidden_size": 5120, "num_attention_heads": 40,
    "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 17408, "vocab_size": 151936,
    "tie_word_embeddings": False, "attention_bias": False, "use_sliding_window": False,
}  # fmt: skip
QWEN_MOE = QWEN_14B | {
    "model_type": "qwen3_moe", "num_hidden_layers": 94, "hidden_size": 4096, "num_attention_heads": 64,
    "num_key_value_heads": 4, "intermediate_size": 12288, "moe_intermediate_size": 1536, "num_experts": 128,
    "num_experts_per_tok": 8, "mlp_only_layers": [], "decoder_sparse_step": 1,
}  # fmt: skip
KIMI: dict[str, Any] = {
    "model_type": "kimi_k2", "num_hidden_layers": 61, "hidden_size": 7168, "num_attention_heads": 64,
    "num_key_value_heads": 64, "intermediate_size": 18432, "moe_intermediate_size": 2048, "n_routed_experts": 384,
    "n_shared_experts": 1, "num_experts_per_tok": 8, "first_k_dense_replace": 1, "q_lora_rank": 1536,
    "kv_lora_rank": 512, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "vocab_size": 163840,
    "topk_method": "noaux_tc", "moe_layer_freq": 1, "tie_word_embeddings": False,
}  # fmt: skip
GPT_OSS: dict[str, Any] = {
    "model_type": "gpt_oss", "num_hidden_layers": 36, "hidden_size": 2880, "num_attention_heads": 64,
    "num_key_value_heads": 8, "head_dim": 64, "intermediate_size": 2880, "vocab_size": 201088,
    "num_local_experts": 128, "num_experts_per_tok": 4, "sliding_window": 128, "tie_word_embeddings": False,
    "attention_bias": True,
}  # fmt: skip
BLOCKS = {"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic", "weight_block_size": [128, 128]}


def group(**weights: Any) -> dict[str, Any]:
    return {"config_groups": {"group_0": {"targets": ["Linear"], "weights": weights}}}


INT4 = {"quant_method": "compressed-tensors", "format": "pack-quantized"} | group(
    num_bits=4, type="int", strategy="group", group_size=32, symmetric=True
)


def weights(config: dict[str, Any], **quantization: Any) -> Weights:
    shape = read_config(config | {"quantization_config": quantization}, Assumptions())
    found = count_weights(resolve_model(shape, Assumptions()), InferenceWorkload(), Assumptions())
    assert found is not None
    return found


RELEASED: list[tuple[str, dict[str, Any], dict[str, Any], str, int]] = [
    ("gpt-oss-120b", GPT_OSS, {
        "quant_method": "mxfp4",
        "modules_to_not_convert": [
            "model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head",
        ],
    }, "mxfp4", 65_248_815_744),
    ("Kimi-K2-Instruct", KIMI, BLOCKS, "fp8", 1_029_000_000_000),
    ("Kimi-K2-Thinking", KIMI, INT4 | {"ignore": [
        "lm_head", "re:.*self_attn.*", "re:.*shared_experts.*", r"re:.*mlp\.(gate|up|gate_up|down)_proj.*",
    ]}, "int4", 594_000_000_000),
    ("Qwen2.5-32B-AWQ", QWEN_14B | {
        "model_type": "qwen2", "num_hidden_layers": 64, "intermediate_size": 27648, "vocab_size": 152064,
    }, {"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True, "version": "gemm"}, "awq_int4",
     19_338_000_000),
]  # fmt: skip
"""Checkpoints, and what they are published to take; the last two rounded: 594 GB, and 18.01 GiB in a server's log."""


@pytest.mark.parametrize(
    ("config", "quantization", "dtype", "released"), [row[1:] for row in RELEASED], ids=[row[0] for row in RELEASED]
)
def test_a_checkpoint_takes_what_is_published(
    config: dict[str, Any], quantization: dict[str, Any], dtype: str, released: int
) -> None:
    found = weights(config, **quantization)
    assert (found.type.dtype, found.type.source) == (dtype, "quantization_config")
    assert found.bytes.mid == pytest.approx(released, rel=0.002)


def bits(config: dict[str, Any], **quantization: Any) -> float:
    """The mean of bits of a weight of the matrices in the layers."""
    shape = read_config(config, Assumptions())
    total = count_parameters(shape).total
    quantized = sum(one.params * one.count for one in weight_matrices(shape) if one.part != "lm_head")
    return (weights(config, **quantization).bytes.mid - 2 * (total - quantized)) * 8 / quantized


@pytest.mark.parametrize(
    ("quantization", "expected"),
    [
        ({"quant_method": "fp8"}, 8),
        (BLOCKS, 8 + 32 / 128**2),
        ({"quant_method": "awq", "bits": 4, "group_size": 128, "zero_point": True}, 4 + 20 / 128),
        ({"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": True}, 4 + 20 / 128),
        ({"quant_method": "gptq", "bits": 8, "group_size": 32}, 8 + 24 / 32),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4"}, 4.5),
        (
            {
                "load_in_4bit": True,
                "quant_method": "bitsandbytes",
                "bnb_4bit_quant_type": "nf4",
                "bnb_4bit_use_double_quant": True,
            },
            4.127,
        ),
        ({"quant_method": "bitsandbytes", "load_in_8bit": True}, 8),
        ({"quant_method": "mxfp4"}, 4.25),
        ({"quant_method": "modelopt", "quant_algo": "FP8", "ignore": ["lm_head"]}, 8),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4", "ignore": ["lm_head"]}, 4.5),
        ({"quant_method": "compressed-tensors", "ignore": ["lm_head"]} | group(num_bits=8, type="int"), 8),
        (
            {"quant_method": "compressed-tensors", "ignore": ["lm_head"]}
            | group(num_bits=4, type="float", group_size=16, strategy="tensor_group"),
            4.5,
        ),
        (INT4 | {"ignore": ["lm_head"]}, 4.5),
    ],
)
def test_weights_of_a_layer_have_their_bits_and_their_scales(quantization: dict[str, Any], expected: float) -> None:
    assert bits(QWEN_14B, **quantization) == pytest.approx(expected, rel=0.002)


NAMES = [
    ["model.layers.0.self_attn.q_proj", "model.layers.1.self_attn.q_proj"],
    ["re:.*layers\\.[01]\\.self_attn\\.q_proj$"],
    ["re:model\\.layers\\.(0|1)\\.self_attn\\.q_.*"],
    ["model.language_model.layers.0.self_attn.q*", "layers.1.attn.q_proj"],
    ["*.0.self_attn.q_proj", "language_model.model.layers.1.self_attn.q_proj"],
]


@pytest.mark.parametrize("names", NAMES)
@pytest.mark.parametrize("field", ["ignore", "modules_to_not_convert"])
def test_what_is_ignored_keeps_16_bits_however_it_is_named(field: str, names: list[str]) -> None:
    all_of_them, rest = (
        weights(QWEN_14B, quant_method="fp8"),
        weights(QWEN_14B, **{"quant_method": "fp8", field: names}),
    )
    assert rest.bytes.mid - all_of_them.bytes.mid == pytest.approx(2 * 5120 * 5120, rel=1e-6)


def test_a_name_is_matched_by_its_parts_and_not_by_letters() -> None:
    """`gate` is the router of a layer, not `gate_proj`; layer 1 is not layer 10."""
    plain = weights(QWEN_14B, quant_method="fp8").bytes.mid
    assert weights(QWEN_14B, quant_method="fp8", modules_to_not_convert=["gate"]).bytes.mid == plain
    one = weights(QWEN_14B, quant_method="fp8", modules_to_not_convert=["model.layers.1"]).bytes.mid
    layer = (2 * 5120 * 5120 + 2 * 5120 * 1024) + 3 * 5120 * 17408
    assert one - plain == pytest.approx(layer, rel=1e-6)


def test_experts_that_are_named_by_number_are_counted_one_by_one() -> None:
    plain = weights(QWEN_MOE, quant_method="fp8").bytes.mid
    names = ["model.layers.0.mlp.experts.5", "re:.*layers.3.mlp.experts.7.up_proj"]
    kept = weights(QWEN_MOE, quant_method="fp8", modules_to_not_convert=names).bytes.mid
    assert kept - plain == pytest.approx(4 * 4096 * 1536, rel=1e-6)


def test_layers_of_several_algorithms_have_each_its_own() -> None:
    layers = {f"model.layers.{n}.mlp": {"quant_algo": "NVFP4", "group_size": 16} for n in range(40)}
    layers |= {"model.layers.*.self_attn": {"quant_algo": "FP8"}}
    found = weights(QWEN_14B, quant_method="modelopt", quant_algo="MIXED_PRECISION", quantized_layers=layers)
    attention, mlp = 40 * (2 * 5120 * 5120 + 2 * 5120 * 1024), 40 * 3 * 5120 * 17408
    rest = 14_768_307_200 - attention - mlp
    assert found.bytes.mid == pytest.approx(attention + mlp * 4.5 / 8 + 2 * rest, rel=1e-6)


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    ({"quant_method": "hqq"}, "quantization_config.quant_method", "compressed-tensors"),
    ({"bits": 4}, "quantization_config.quant_method", "bitsandbytes"),
    ({"quant_method": "awq", "bits": 3}, "quantization_config.bits", "4"),
    ({"quant_method": "gptq", "bits": 3}, "quantization_config.bits", "4, 8"),
    ({"quant_method": "gptq", "bits": 4, "group_size": 0}, "quantization_config.group_size", "-1"),
    ({"quant_method": "gptq", "bits": 4, "dynamic": {"+:.*mlp.*": {"bits": 8}}}, "quantization_config.dynamic", "-:"),
    ({"quant_method": "bitsandbytes"}, "quantization_config.load_in_4bit", "true"),
    ({"quant_method": "fp8", "weight_block_size": [128]}, "quantization_config.weight_block_size", "[128, 128]"),
    ({"quant_method": "fp8", "modules_to_not_convert": 3}, "modules_to_not_convert", "list of names"),
    ({"quant_method": "modelopt", "quant_algo": "W3A16"}, "quantization_config.quant_algo", "NVFP4"),
    ({"quant_method": "modelopt"}, "quantization_config.quant_algo", "NVFP4"),
    ({"quant_method": "compressed-tensors"}, "quantization_config.config_groups", "groups"),
    ({"quant_method": "compressed-tensors"} | group(num_bits=3, type="int"), "weights.num_bits", "8 and 4"),
    ({"quant_method": "compressed-tensors"} | group(num_bits=8, type="int", strategy="x"), "strategy", "channel"),
    ({"quant_method": "compressed-tensors", "format": "marlin-24"} | group(num_bits=4, type="int"), "format", "pack"),
    ({"quant_method": "fp8", "ignore": ["re:(.*)*x"]}, "quantization_config", "repeated group"),
    ({"quant_method": "fp8", "ignore": [f"re:{'.*a' * 12}"]}, "quantization_config", "more"),
    ({"quant_method": "fp8", "ignore": [f"re:{'(a|l)?' * 30}x"]}, "quantization_config", "more"),
    ({"quant_method": "fp8", "ignore": [f"re:{'[a-z]?' * 40}!"]}, "quantization_config", "not understood"),
    ({"quant_method": "fp8", "ignore": [f"re:{'[a-z]?' * 40}x"]}, "quantization_config", "more"),
    ({"quant_method": "fp8", "ignore": [f"model.layers.{n}*" for n in range(3000)]}, "quantization_config", "letters"),
]


@pytest.mark.parametrize(("quantization", "field", "allowed"), REFUSED)
def test_an_unsupported_value_is_rejected_with_its_field_and_what_is_allowed(
    quantization: dict[str, Any], field: str, allowed: str
) -> None:
    with pytest.raises(InvalidWorkload) as refused:
        weights(QWEN_14B, **quantization)
    assert field in refused.value.field
    assert allowed in refused.value.detail


METHODS = "fp8, fbgemm_fp8, compressed-tensors, modelopt, awq, gptq, bitsandbytes, mxfp4"


@pytest.mark.parametrize(
    ("quantization", "message"),
    [
        ({"quant_method": "awq", "bits": "4"}, "bits: '4' is text where a number is expected; allowed are 4; or"),
        ({"quant_method": "awq", "bits": 3}, "bits: 3 is not understood; allowed are 4; or leave it out and give"),
        ({"quant_method": "gptq", "bits": 4, "group_size": "x"}, "group_size: 'x' is text where a number is expected"),
        ({"quant_method": "gptq", "bits": True}, "bits: true is not understood; allowed are 4, 8; or"),
        ({"quant_method": "gptq", "lm_head": "true"}, "lm_head: 'true' is text where true or false is expected"),
        ({}, f"quant_method: is missing; allowed are {METHODS}; or leave config.quantization_config out and give"),
        ({"quant_method": 4}, f"quant_method: 4 is not understood; allowed are {METHODS}; or leave it out"),
        ({"quant_method": "modelopt"}, "quant_algo: is missing; allowed are FP8, "),
        ({"quant_method": "modelopt", "quantized_layers": {"a": {}}}, "quantized_layers.a.quant_algo: is missing"),
        ({"quant_method": "bitsandbytes", "load_in_4bit": False}, "load_in_4bit: false is not understood; allowed are"),
        ({"quant_method": "compressed-tensors"} | group(num_bits="4", type="int"),
         "config_groups.group_0.weights.num_bits: '4' is text where a number is expected; allowed are 8 and 4 of"),
        ({"quant_method": "compressed-tensors"} | group(num_bits=4.0, type="int"),
         "config_groups.group_0.weights.num_bits: 4.0 is not understood"),
        ({"quant_method": "compressed-tensors"} | group(num_bits=4, type=["int"]),
         "config_groups.group_0.weights.type: [\"int\"] is not understood"),
    ],
)  # fmt: skip
def test_a_refused_value_is_quoted_so_that_its_type_is_seen(quantization: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidWorkload) as refused:
        weights(QWEN_14B, **quantization)
    assert str(refused.value).startswith(f"config.quantization_config.{message}")


@pytest.mark.parametrize(
    ("written", "dtype"), [("float16", "fp16"), ("torch.bfloat16", "bf16"), ("float32", "fp32"), (None, None)]
)
def test_weights_that_are_not_quantized_have_the_type_of_the_configuration(written: str | None, dtype: str) -> None:
    released = read_config(QWEN_14B | {"torch_dtype": written}, Assumptions()).released
    assert (released.dtype if released else None) == dtype


@pytest.mark.parametrize(
    ("fields", "dtype", "source", "recorded"),
    [
        ({"dtype": "float16"}, "fp16", "dtype", []),
        ({"torch_dtype": "float16"}, "fp16", "torch_dtype", []),
        ({"dtype": "bfloat16", "torch_dtype": "bfloat16"}, "bf16", "dtype", []),
        ({"torch_dtype": "torch.float16", "dtype": "float16"}, "fp16", "dtype", []),
        ({"torch_dtype": "float32", "dtype": "bfloat16"}, "bf16", "dtype", [("config.dtype", "bfloat16")]),
        ({"torch_dtype": "float32", "dtype": None}, "fp32", "torch_dtype", []),
        ({"torch_dtype": "float32", "dtype": "auto"}, "fp32", "torch_dtype", []),
    ],
)
def test_the_newer_field_of_the_type_takes_precedence_and_its_name_is_told(
    fields: dict[str, Any], dtype: str, source: str, recorded: list[tuple[str, str]]
) -> None:
    ledger = Assumptions()
    released = read_config(QWEN_14B | fields, ledger).released
    assert released is not None
    assert (released.dtype, released.source) == (dtype, source)
    assert released.why.startswith(f"config.{source}: ")
    assert [(note.field, note.value) for note in ledger.recorded] == recorded


@pytest.mark.parametrize("auto", [{}, {"dtype": "auto"}, {"dtype": None, "torch_dtype": "auto"}])
def test_a_type_that_is_not_stated_is_unknown(auto: dict[str, Any]) -> None:
    assert read_config(QWEN_14B | auto, Assumptions()).released is None


def test_an_unknown_field_is_recorded_and_not_ignored() -> None:
    ledger = Assumptions()
    read_config(QWEN_14B | {"quantization_config": BLOCKS | {"novel_packing": 3}}, ledger)
    noted = {one.field: one.value for one in ledger.recorded}
    assert noted.get("config.quantization_config.novel_packing") == "3"
    assert "config.quantization_config.activation_scheme" not in noted


def test_a_quantization_of_the_language_model_is_named_where_it_stands() -> None:
    ledger, quantized = Assumptions(), {"quantization_config": BLOCKS | {"novel_packing": 3}}
    released = read_config({"model_type": "llava", "text_config": QWEN_14B | quantized}, ledger).released
    assert "config.text_config.quantization_config.novel_packing" in {note.field for note in ledger.recorded}
    assert released is not None
    assert released.why is not None
    assert released.why.startswith("config.text_config.quantization_config: fp8")


def test_an_unknown_type_of_weights_is_rejected() -> None:
    with pytest.raises(InvalidWorkload, match=r"config.torch_dtype: 'int3' is not understood"):
        read_config(QWEN_14B | {"torch_dtype": "int3"}, Assumptions())


def test_only_rectangular_blocks_are_reported_as_the_block_of_a_checkpoint() -> None:
    def stored(**quantization: Any) -> Quantization:
        shape: Architecture = read_config(QWEN_14B | {"quantization_config": quantization}, Assumptions())
        assert shape.released is not None
        assert shape.released.quantization is not None
        return shape.released.quantization

    assert stored(**BLOCKS).block == (128, 128)
    assert stored(quant_method="fp8").block is None
    assert stored(**INT4).block is None


@pytest.mark.parametrize(
    ("scaling", "longest"),
    [
        (None, 40960),
        ({"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}, 131072),
        ({"type": "linear", "factor": 2}, 81920),
        ({"rope_type": "llama3", "factor": 8.0, "original_max_position_embeddings": 8192}, 40960),
        ({"factor": 8.0}, 40960),
        ({"type": "yarn", "factor": None}, 40960),
    ],
)
def test_the_longest_context_counts_what_rotary_positions_are_scaled_by(scaling: Any, longest: int) -> None:
    config = QWEN_14B | {"max_position_embeddings": 40960, "rope_scaling": scaling}
    assert read_config(config, Assumptions()).max_positions == longest


NEXT: dict[str, Any] = {
    "model_type": "qwen3_next", "num_hidden_layers": 48, "hidden_size": 2048, "num_attention_heads": 16,
    "num_key_value_heads": 2, "head_dim": 256, "intermediate_size": 5120, "linear_num_key_heads": 16,
    "linear_num_value_heads": 32, "linear_key_head_dim": 128, "linear_value_head_dim": 128, "num_experts": 512,
    "num_experts_per_tok": 10, "moe_intermediate_size": 512, "shared_expert_intermediate_size": 512,
    "vocab_size": 151936, "tie_word_embeddings": False,
}  # fmt: skip
NEMOTRON_H: dict[str, Any] = {
    "model_type": "nemotron_h", "hidden_size": 4096, "intermediate_size": 21504, "hybrid_override_pattern": "M-*-",
    "num_hidden_layers": 4, "mamba_num_heads": 128, "mamba_head_dim": 64, "ssm_state_size": 128, "n_groups": 8,
    "conv_kernel": 4, "num_attention_heads": 32, "num_key_value_heads": 8, "attention_head_dim": 128,
    "vocab_size": 131072, "tie_word_embeddings": False,
}  # fmt: skip
GRANITE_H: dict[str, Any] = {
    "model_type": "granitemoehybrid", "hidden_size": 4096, "num_hidden_layers": 2, "num_attention_heads": 32,
    "num_key_value_heads": 8, "num_local_experts": 72, "num_experts_per_tok": 10, "shared_intermediate_size": 1536,
    "intermediate_size": 768, "mamba_d_state": 128, "mamba_d_conv": 4, "mamba_expand": 2, "mamba_n_heads": 128,
    "mamba_d_head": 64, "mamba_n_groups": 1, "tie_word_embeddings": True, "vocab_size": 100352,
    "layer_types": ["mamba", "attention"],
}  # fmt: skip
FALCON_H: dict[str, Any] = {
    "model_type": "falcon_h1", "hidden_size": 5120, "intermediate_size": 21504, "num_hidden_layers": 2,
    "num_attention_heads": 20, "num_key_value_heads": 4, "head_dim": 128, "mamba_d_ssm": 4096, "mamba_n_heads": 32,
    "mamba_d_head": 128, "mamba_d_state": 256, "mamba_n_groups": 2, "mamba_d_conv": 4, "vocab_size": 261120,
    "tie_word_embeddings": False,
}  # fmt: skip
LFM2_MOE: dict[str, Any] = {
    "model_type": "lfm2_moe", "hidden_size": 2048, "num_hidden_layers": 3, "num_attention_heads": 32,
    "num_key_value_heads": 8, "intermediate_size": 7168, "moe_intermediate_size": 1792, "num_experts": 32,
    "num_experts_per_tok": 4, "num_dense_layers": 1, "layer_types": ["conv", "conv", "full_attention"],
    "vocab_size": 65536,
}  # fmt: skip
GPT2: dict[str, Any] = {
    "model_type": "gpt2", "n_layer": 12, "n_embd": 768, "n_head": 12, "n_positions": 1024, "vocab_size": 50257,
}  # fmt: skip
MAMBA_GRANITE, MAMBA_FALCON = 4096 * (8192 + 8448 + 128), 5120 * (4096 + 5120 + 32)


@pytest.mark.parametrize(
    ("config", "name", "kept"),
    [
        (NEXT, "model.layers.0.linear_attn.in_proj_ba", 2048 * 64),
        (NEXT, "model.layers.0.linear_attn.in_proj_qkvz", 2048 * (2 * 2048 + 2 * 4096)),
        (NEXT, "re:.*linear_attn.in_proj_qkvz.*", 36 * 2048 * (2 * 2048 + 2 * 4096)),
        (NEXT, "model.layers.0.linear_attn*", 2048 * (64 + 2 * 2048 + 2 * 4096 + 4096)),
        (NEMOTRON_H, "backbone.layers.2.mixer.q_proj", 4096 * 4096),
        (NEMOTRON_H, "backbone.layers.2.mixer.o_proj", 4096 * 4096),
        (NEMOTRON_H, "backbone.layers.2.mixer*", 4096 * (2 * 4096 + 2 * 1024)),
        (NEMOTRON_H, r"re:backbone\.layers\.2\.mixer\.(k|v)_proj", 4096 * 2 * 1024),
        (NEMOTRON_H, "backbone.layers.0.mixer.in_proj", 4096 * (8192 + 8192 + 2 * 8 * 128 + 128)),
        (NEMOTRON_H, "backbone.layers.1.mixer.up_proj", 4096 * 21504),
        (GRANITE_H, "model.layers.0.mamba.in_proj", MAMBA_GRANITE),
        (GRANITE_H, "re:.*mamba.*", MAMBA_GRANITE + 8192 * 4096),
        (GRANITE_H, "model.layers.0.block_sparse_moe.input_linear", 72 * 4096 * 2 * 768),
        (GRANITE_H, "model.layers.0.block_sparse_moe", 72 * 4096 * 3 * 768),
        (GRANITE_H, "model.layers.0.shared_mlp.input_linear", 4096 * 2 * 1536),
        (GRANITE_H | {"num_local_experts": 0}, "model.layers.1.shared_mlp.output_linear", 4096 * 1536),
        (FALCON_H, "model.layers.0.mamba.in_proj", MAMBA_FALCON),
        (FALCON_H, "re:.*mamba.*", 2 * (MAMBA_FALCON + 4096 * 5120)),
        (FALCON_H, "model.layers.0.feed_forward", 3 * 5120 * 21504),
        (LFM2_MOE, "model.layers.0.feed_forward.w1", 2048 * 7168),
        (LFM2_MOE, "model.layers.1.feed_forward.experts.5.w1", 2048 * 1792),
        (LFM2_MOE, r"re:.*feed_forward\.experts\.5\.w2", 2 * 2048 * 1792),
        (LFM2_MOE, "model.layers.2.self_attn.out_proj", 2048 * 2048),
        (MODELS["gemma-4-26B-A4B"]["config"], "model.language_model.layers.0.experts", 128 * 3 * 2816 * 704),
        (GPT2, "transformer.h.0.attn.c_attn", 3 * 768 * 768),
        (GPT2, "h.11.attn.c_proj", 768 * 768),
        (GPT2, r"re:transformer\.h\.\d+\.mlp\.c_fc", 12 * 768 * 3072),
        (QWEN_14B, "model.layers.0.self_attn.qkv_proj", 5120 * (5120 + 2 * 1024)),
    ],
)  # fmt: skip
def test_a_module_is_kept_in_16_bits_by_the_name_that_its_family_has_for_it(
    config: dict[str, Any], name: str, kept: int
) -> None:
    all_quantized = weights(config, quant_method="fp8").bytes.mid
    assert weights(config, quant_method="fp8", modules_to_not_convert=[name]).bytes.mid - all_quantized == kept


def unmatched(config: dict[str, Any], *names: str) -> list[tuple[str, Any]]:
    ledger = Assumptions()
    read_config(config | {"quantization_config": {"quant_method": "fp8", "ignored_layers": list(names)}}, ledger)
    prefix = "config.quantization_config"
    return [(note.field.removeprefix(prefix), note.value) for note in ledger.recorded if note.field.startswith(prefix)]


@pytest.mark.parametrize(
    ("config", "name"),
    [
        (QWEN_14B, "model.layers.40.self_attn.q_proj"),
        (QWEN_14B, "model.layers.0.linear_attn.in_proj_qkvz"),
        (QWEN_14B, "re:.*linear_attn.*"),
        (QWEN_14B, r"re:.*layers\.40\.self_attn.*"),
        (QWEN_14B, "model.layers.4?.mlp*"),
        (QWEN_14B, "mlp.experts.0.up_proj"),
        (QWEN_MOE, "model.layers.0.mlp.experts.128.up_proj"),
        (QWEN_MOE, r"re:.*experts\.128\.up_proj"),
        (NEMOTRON_H, "backbone.layers.0.mixer.q_proj"),
        (GRANITE_H, "model.layers.1.mamba.in_proj"),
    ],
)
def test_an_entry_that_names_no_matrix_is_recorded(config: dict[str, Any], name: str) -> None:
    assert unmatched(config, name) == [(".ignored_layers", name)]


@pytest.mark.parametrize(
    ("config", "names"),
    [
        (QWEN_14B | {"tie_word_embeddings": True}, ("lm_head", "model.embed_tokens", "re:.*lm_head")),
        (QWEN_14B, ("model.norm", "model.layers.0.input_layernorm", "model.layers.3.self_attn.q_norm")),
        (QWEN_MOE, ("model.layers.0.mlp.gate", "re:.*mlp.gate$", "*.router*", "model.layers.5.mlp.shared_expert_gate")),
        (QWEN_14B, ("model.visual.blocks.0.attn.qkv", "re:vision_tower.*", "multi_modal_projector", "merger")),
        (QWEN_14B, ("vision_model.encoder.layers.0", "mlp1", "thinker.audio_tower", "talker", "aligner.layers.0")),
        (QWEN_14B | {"num_nextn_predict_layers": 1}, ("model.layers.40*", "model.layers.40.eh_proj", "mtp.fc")),
        (QWEN_14B, ("model.layers.39.mlp", "model.layers.3*", "re:.*[qk]_proj", "*.self_attn.*", "layers.7")),
        (QWEN_MOE, ("model.layers.0.mlp.experts.127.up_proj", r"re:.*experts\.127\.up_proj", r"re:.*experts\.12\d.*")),
        (NEMOTRON_H, ("backbone.layers.0.mixer.conv1d", "backbone.layers.2.mixer.q_proj", "backbone.embeddings")),
        (GPT2, ("transformer.wte", "transformer.h.11.ln_1", "transformer.h.11.attn")),
    ],
)
def test_entries_that_name_a_matrix_or_what_is_never_quantized_are_not(
    config: dict[str, Any], names: tuple[str, ...]
) -> None:
    assert unmatched(config, *names) == []


def test_only_some_of_many_unmatched_entries_are_quoted() -> None:
    names = [f"model.layers.{number}.mamba" for number in range(7)]
    assert unmatched(QWEN_14B, *names) == [(".ignored_layers", f"{', '.join(names[:5])} and 2 more")]


def test_a_long_list_is_searched_until_a_thousand_entries_are_unmatched() -> None:
    names = [f"model.layers.{number}.mamba" for number in range(200_000)]
    assert unmatched(QWEN_14B, *names) == [(".ignored_layers", f"{', '.join(names[:5])} and at least 995 more")]
