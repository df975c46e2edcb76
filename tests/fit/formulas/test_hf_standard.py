"""Configurations whose type is not known, read as standard decoders."""

from typing import Any

import pytest

from app.fit.estimator.estimate import estimate_serving
from app.fit.estimator.workload import Gpus, InferenceWorkload
from app.fit.formulas.architecture import Architecture, count_parameters
from app.fit.formulas.hf_config import read_config
from app.fit.formulas.memory import Parallelism, build_kv_cache, kv_bytes_per_sequence
from app.fit.formulas.quantities import Assumptions, InvalidWorkload
from app.fit.results import Estimate
from app.schemas.fit_request import ModelIn
from app.services.fit import resolve_architecture
from tests.fit.formulas.test_hf_config import DEEPSEEK, LLAMA, RELEASED
from tests.fit.formulas.test_hf_hybrids import HUNYUAN_A13B

UNKNOWN = LLAMA | {"model_type": "novel"}


def shape(config: dict[str, Any]) -> Architecture:
    return read_config(config, Assumptions())


def no_preset(name: str) -> dict[str, Any]:
    raise KeyError(name)


def served(config: dict[str, Any], safetensors: dict[str, Any] | None = None) -> Estimate:
    assumptions = Assumptions()
    architecture = resolve_architecture(ModelIn(config=config, safetensors=safetensors), no_preset, assumptions)
    return estimate_serving(architecture, InferenceWorkload(context_tokens=8192), Gpus(), assumptions)


@pytest.mark.parametrize("name", ["Llama-3.1-8B", "Mixtral-8x7B", "Qwen3-30B-A3B", "DeepSeek-V3", "Mistral-7B-v0.1"])
def test_the_usual_fields_give_nearly_the_parameters_that_the_type_would(name: str) -> None:
    config, params = next((config, params) for one, config, params in RELEASED if one == name)
    read = shape(config | {"model_type": "novel"})
    assert read.unknown_type
    assert count_parameters(read).total == pytest.approx(params, rel=1e-4)


def test_what_is_assumed_is_recorded_with_the_type_that_may_be_meant() -> None:
    ledger = Assumptions()
    read_config(LLAMA | {"model_type": "lama"}, ledger)
    note = next(note for note in ledger.recorded if note.field == "config.model_type")
    assert note.value == "standard decoder"
    assert note.why.startswith("'lama' (did you mean llama?) is not known: read as layers of attention with grouped")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("lama", "llama"), ("Mixtrall", "mixtral"), ("deepsek_v3", "deepseek_v3"), ("qwne3_moe", "qwen3_moe"),
        *((other, None) for other in ("jamba", "llava", "mpt", "qwen4", "llama5", "mistral5", "glm5_moe", "mamba")),
    ],
)  # fmt: skip
def test_only_a_typo_of_a_type_is_answered_with_that_type(name: str, meant: str | None) -> None:
    with pytest.raises(InvalidWorkload) as refused:
        shape({"model_type": name})
    hint = f" (did you mean {meant}?)" if meant else ""
    assert refused.value.detail.startswith(f"{name!r}{hint} is not known, and cannot be read")


def test_figures_of_an_unknown_type_are_estimates_around_those_of_a_standard_decoder() -> None:
    unknown, known = served(UNKNOWN), served(LLAMA)
    assert unknown.parameters is not None
    assert known.parameters is not None
    assert (unknown.parameters.total.certainty, unknown.parameters.total.mid) == (
        "estimate", known.parameters.total.value,
    )  # fmt: skip
    assert unknown.parameters.total.evidence is not None
    assert unknown.parameters.total.evidence.n > 70
    assert unknown.inference is not None
    assert known.inference is not None
    for path in (
        "weights",
        "kv_cache.per_token",
        "kv_cache.total",
        "memory_per_gpu.weights",
        "memory_per_gpu.kv_cache",
    ):
        ours: Any = unknown.inference
        theirs: Any = known.inference
        for name in path.split("."):
            ours, theirs = getattr(ours, name), getattr(theirs, name)
        assert (ours.certainty, ours.mid) == ("estimate", theirs.value), path
        assert ours.low < ours.mid < ours.high


def test_an_output_layer_that_the_file_does_not_tell_of_is_counted_and_not_in_the_low_end() -> None:
    config = {name: value for name, value in UNKNOWN.items() if name != "tie_word_embeddings"}
    ledger = Assumptions()
    read_config(config, ledger)
    (note,) = [note for note in ledger.recorded if note.field == "config.tie_word_embeddings"]
    assert note.value is False
    assert "an assumption" in note.why
    assert "family" not in note.why
    parameters = served(config).parameters
    assert parameters is not None
    assert parameters.total.mid == 8_030_261_248
    assert parameters.total.low == pytest.approx(0.95 * (8_030_261_248 - 128_256 * 4096))
    experts = config | {"num_experts": 8, "num_experts_per_tok": 1}
    counted, mixed = count_parameters(shape(experts)), served(experts).parameters
    assert mixed is not None
    assert mixed.active.low == pytest.approx(0.95 * (counted.active - 128_256 * 4096))


def test_the_parameters_that_a_checkpoint_states_take_precedence() -> None:
    """An index of safetensors says them where transformers wrote it."""
    index = {"metadata": {"total_size": 17_000_000_000, "total_parameters": 8_500_000_000}, "weight_map": {}}
    read = served(UNKNOWN, index)
    assert read.parameters is not None
    assert read.inference is not None
    assert read.inference.weights is not None
    assert (read.parameters.total.certainty, read.parameters.total.value) == ("exact", 8_500_000_000)
    assert (read.inference.weights.certainty, read.inference.weights.value) == ("exact", 17_000_000_000 / 2**30)


def test_a_stated_number_of_parameters_that_the_bytes_do_not_bear_is_not_believed() -> None:
    read = served(UNKNOWN, {"metadata": {"total_size": 16_060_522_496, "total_parameters": 569_856}, "weight_map": {}})
    assert read.parameters is not None
    assert read.parameters.total.certainty == "estimate"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"num_key_value_heads": None}, "since num_key_value_heads is missing"),
        ({"intermediate_size": None, "vocab_size": None}, "since vocab_size, intermediate_size are missing"),
        ({"num_experts": 8}, "since num_experts_per_tok is missing"),
        ({"num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 64, "intermediate_size": None,
          "num_dense_layers": 1}, "since intermediate_size is missing"),
        ({"kv_lora_rank": 512}, "since qk_nope_head_dim, qk_rope_head_dim, v_head_dim are missing"),
        ({"mamba_d_state": 128, "ssm_cfg": 1}, "since mamba_d_state, ssm_cfg describe parts that it does not have"),
        ({"mamba_d_state": 128}, "since mamba_d_state describes parts that it does not have"),
        ({"hidden_size_per_layer_input": 256}, "since hidden_size_per_layer_input describes parts"),
        ({"compress_ratios": [0, 4] * 16}, "since compress_ratios describes parts"),
        ({"architectures": ["NovelForMaskedLM"]}, "since it is NovelForMaskedLM"),
        ({"is_encoder_decoder": True}, "since it is an encoder and a decoder"),
        ({"layer_types": ["telepathy"] * 32}, "config.layer_types: telepathy is not understood"),
    ],
)  # fmt: skip
def test_what_is_no_standard_decoder_is_refused_with_the_reason(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidWorkload) as refused:
        shape(UNKNOWN | change)
    assert message in str(refused.value)


def test_experts_are_read_by_their_usual_names() -> None:
    ernie = UNKNOWN | {
        "moe_num_experts": 64, "moe_k": 6, "moe_intermediate_size": 1536, "moe_num_shared_experts": 2,
        "moe_layer_start_index": 1, "moe_layer_interval": 1,
    }  # fmt: skip
    read = shape(ernie)
    assert (read.experts, read.experts_per_token, read.moe_layers, read.shared_intermediate) == (64, 6, 31, 3072)
    latent = shape(DEEPSEEK | {"model_type": "novel"})
    assert (latent.attention, latent.experts, latent.moe_layers) == ("mla", 256, 58)


GROK_2: dict[str, Any] = {
    "model_type": "git", "architectures": ["Grok1ForCausalLM"], "num_hidden_layers": 64, "hidden_size": 8192,
    "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 32768,
    "moe_intermediate_size": 16384, "num_local_experts": 8, "num_experts_per_tok": 2, "residual_moe": True,
    "vocab_size": 131072, "tie_word_embeddings": False,
}  # fmt: skip
ARCTIC: dict[str, Any] = {
    "model_type": "arctic", "num_hidden_layers": 35, "hidden_size": 7168, "num_attention_heads": 56,
    "num_key_value_heads": 8, "intermediate_size": 4864, "num_local_experts": 128, "num_experts_per_tok": 2,
    "moe_layer_frequency": 1, "use_residual": True, "parallel_attn_mlp_res": True, "vocab_size": 32000,
}  # fmt: skip
HUNYUAN_LARGE: dict[str, Any] = {
    "model_type": "hunyuan", "num_hidden_layers": 64, "hidden_size": 6400, "num_attention_heads": 80,
    "num_key_value_heads": 8, "intermediate_size": 18304, "num_experts": 16, "moe_topk": 1, "num_shared_expert": 1,
    "use_cla": True, "cla_share_factor": 2, "vocab_size": 128512, "tie_word_embeddings": True,
}  # fmt: skip


def test_a_dense_mlp_beside_the_experts_is_counted() -> None:
    """Grok-2 is published with 269.5 billion parameters, of which a token uses 115."""
    counted = count_parameters(shape(GROK_2))
    experts, dense = 64 * 8 * 3 * 8192 * 16384, 64 * 3 * 8192 * 32768
    attention, embeddings = 64 * (2 * 8192 * 8192 + 2 * 8192 * 1024), 2 * 131072 * 8192
    assert counted.total == experts + dense + attention + embeddings + 64 * (8 * 8192 + 2 * 8192) + 8192
    assert counted.total == pytest.approx(269.5e9, rel=0.001)
    assert counted.active == pytest.approx(115e9, rel=0.01)


def test_a_shared_expert_and_shared_caches_of_an_unknown_type_are_counted() -> None:
    """Hunyuan-Large is published with 389 billion parameters, of which a token uses 52."""
    ledger = Assumptions()
    read = read_config(HUNYUAN_LARGE, ledger)
    assert (read.shared_intermediate, read.kv_layers) == (18304, 32)
    assert ("config.use_cla", 32) in {(note.field, note.value) for note in ledger.recorded}
    assert count_parameters(read).total == pytest.approx(389e9, rel=0.01)
    assert count_parameters(read).active == pytest.approx(52e9, rel=0.05)
    assert kv_bytes_per_sequence(build_kv_cache(read), 100, Parallelism()) == 100 * 32 * 2 * 8 * 80 * 2
    assert shape(HUNYUAN_LARGE | {"use_cla": False}).kv_layers is None


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (ARCTIC, "since parallel_attn_mlp_res, use_residual describe parts that it does not have"),
        (GROK_2 | {"intermediate_size": None}, "since intermediate_size is missing"),
        (HUNYUAN_LARGE | {"cla_share_factor": None}, "config.cla_share_factor: is missing"),
        (HUNYUAN_A13B | {"use_cla": True}, "config.use_cla: true is not understood, only false; give architecture"),
    ],
)
def test_parts_that_are_not_counted_are_refused(config: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidWorkload) as refused:
        shape(config)
    assert message in str(refused.value)


def test_every_second_layer_has_experts_where_the_frequency_is_two() -> None:
    sparse = UNKNOWN | {"num_experts": 8, "num_experts_per_tok": 2, "moe_intermediate_size": 1024}
    assert [shape(sparse | {"moe_layer_freq": every}).moe_layers for every in (1, 2, [1] * 8 + [0] * 24)] == [32, 16, 8]


def test_parts_beside_the_language_model_are_recorded_as_not_counted() -> None:
    """Phi-4-multimodal has 5.57 billion parameters; its language model alone has 3.84."""
    ledger = Assumptions()
    phi: dict[str, Any] = {
        "model_type": "phi4mm", "num_hidden_layers": 32, "hidden_size": 3072, "num_attention_heads": 24,
        "num_key_value_heads": 8, "intermediate_size": 8192, "vocab_size": 200064, "tie_word_embeddings": True,
        "embd_layer": {"embedding_cls": "image_audio"}, "audio_processor": {"name": "cascades"}, "img_processor": None,
        "vision_lora": {"r": 256, "lora_alpha": 512}, "speech_lora": {"r": 320, "lora_alpha": 640},
    }  # fmt: skip
    assert count_parameters(read_config(phi, ledger)).total == pytest.approx(3.84e9, rel=0.01)
    not_counted = {note.field for note in ledger.recorded if "is not counted" in note.why}
    assert not_counted == {f"config.{name}" for name in ("embd_layer", "audio_processor", "vision_lora", "speech_lora")}
