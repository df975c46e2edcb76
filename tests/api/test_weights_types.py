"""The default data type of a model's weights, and the longest context of a model."""

from typing import Any

import httpx
import pytest

from tests.api.bodies import Body, fit

pytestmark = pytest.mark.one_database  # the queries are those of other fits, which are asked of each kind

SIXTEEN_USERS = {"context_tokens": 8192, "concurrency": 16}
CONFIG: Body = {
    "model_type": "llama", "num_hidden_layers": 80, "hidden_size": 8192, "num_attention_heads": 64,
    "num_key_value_heads": 8, "intermediate_size": 28672, "vocab_size": 128256, "tie_word_embeddings": False,
    "max_position_embeddings": 131072,
}  # fmt: skip


def estimate(client: httpx.Client, **body: Any) -> Body:
    response = client.post("/estimate", json=body)
    assert response.status_code == 200, response.text
    answer: Body = response.json()
    return answer


def get_error(client: httpx.Client, path: str, **body: Any) -> tuple[str, str]:
    response = client.post(path, json=body)
    assert response.status_code == 422, response.text
    (error,) = response.json()["errors"]
    return error["pointer"], error["detail"]


def test_gpt_oss_120b_is_served_by_one_a100(client: httpx.Client) -> None:
    answer = fit(client, {"model": "gpt-oss-120b", "inference": SIXTEEN_USERS | {"concurrency": 4}})
    first = answer["items"][0]
    assert (first["size"], first["nodes"]) == ("Standard_NC24ads_A100_v4", 1)
    assert first["cost"]["on_demand"]["usd_per_hour"] == 3.673
    weights = first["per_gpu"]["weights"]
    assert (weights["class"], weights["low"]) == ("estimate", pytest.approx(60.768, abs=0.001))
    assert weights["mid"] == pytest.approx(65.9651, rel=0.002)  # as vLLM loaded them: its GitHub, 23278
    assert (answer["weights_type"]["dtype"], answer["weights_type"]["source"]) == ("mxfp4", "preset")
    assert "mxfp4 weights as released" in first["explanation"]


def test_gpt_oss_120b_does_not_hold_its_longest_context_on_one_h100(client: httpx.Client) -> None:
    """As reported: 4.54 GiB of KV cache were needed, 1.71 left (vLLM's GitHub, 27508)."""
    hardware = {"gpu": "H100-SXM-80GB", "gpus": 1}
    longest = {"context_tokens": 131_072, "concurrency": 1}
    answer = fit(client, {"model": "gpt-oss-120b", "inference": longest, "hardware": hardware})
    assert not answer["fits"]
    assert fit(client, {"model": "gpt-oss-120b", "inference": {"context_tokens": 8192}, "hardware": hardware})["fits"]


def test_deepseek_r1_is_served_by_eight_h200_and_kimi_k2_by_some_size(client: httpx.Client) -> None:
    fitting = fit(client, {"model": "deepseek-r1", "inference": SIXTEEN_USERS, "limit": 500})
    assert "Standard_ND96isr_H200_v5" in {item["size"] for item in fitting["items"]}
    kimi = fit(client, {"model": "kimi-k2", "inference": {"context_tokens": 8192}})
    assert kimi["total"] > 0
    assert kimi["weights_type"]["dtype"] == "fp8"


FP8 = {"quantization_config": {"quant_method": "fp8"}}
TYPES: list[tuple[Body, str | None, str, str]] = [
    ({"model": "llama-2-7b", "inference": {}}, "fp16", "preset", "exact"),
    ({"model": "gpt-oss-20b", "inference": {"dtype": "mxfp4"}}, "mxfp4", "request", "exact"),
    ({"model": "gpt-oss-20b", "inference": {"dtype": "bf16"}}, "bf16", "request", "exact"),
    ({"model": "llama-3.1-8b", "inference": {"dtype": "fp8"}}, "fp8", "request", "estimate"),
    ({"model": "llama-3.1-8b", "inference": {"bits_per_weight": 5}}, None, "request", "exact"),
    ({"config": CONFIG, "inference": {}}, "bf16", "default", "exact"),
    ({"config": CONFIG | {"torch_dtype": "float16"}, "inference": {}}, "fp16", "torch_dtype", "exact"),
    ({"config": CONFIG | FP8, "inference": {}}, "fp8", "quantization_config", "exact"),
    ({"architecture": {"params": 8_000_000_000}, "inference": {}}, "bf16", "default", "exact"),
]


@pytest.mark.parametrize(("body", "dtype", "source", "certainty"), TYPES)
def test_the_response_has_the_type_and_its_source(
    client: httpx.Client, body: Body, dtype: str | None, source: str, certainty: str
) -> None:
    answer = estimate(client, **body)
    assert (answer["weights_type"]["dtype"], answer["weights_type"]["source"]) == (dtype, source)
    assert answer["inference"]["weights"]["class"] == certainty
    assumed = {one["field"]: one["value"] for one in answer["assumptions"]}
    assert assumed.get("inference.dtype") == (None if source == "request" else dtype)


def test_fewer_bits_never_take_more_since_all_types_keep_the_same_in_16_bits(client: httpx.Client) -> None:
    """A small model has a large vocabulary: its embeddings were 8 bits in int8 and 16 in the types of 4 bits."""
    small = {"layers": 16, "hidden": 1024, "heads": 8, "kv_heads": 8, "intermediate": 2048, "vocab": 256_000}
    sizes = {}
    for dtype in ("fp4", "int4", "awq_int4", "nvfp4", "int8", "fp8", "bf16"):
        weights = estimate(client, architecture=small, inference={"dtype": dtype})["inference"]["weights"]
        sizes[dtype] = weights["mid"] if weights["value"] is None else weights["value"]
    assert sizes["int4"] == sizes["fp4"] < sizes["awq_int4"] < sizes["nvfp4"] < sizes["int8"] == sizes["fp8"]
    assert sizes["fp8"] < sizes["bf16"]


def test_fp8_of_a_16_bit_model_is_what_a_server_measured(client: httpx.Client) -> None:
    """Llama 3.1 70B with `--quantization fp8`: 67.70 GiB in vLLM's log."""
    weights = estimate(client, model="llama-3.1-70b", inference={"dtype": "fp8"})["inference"]["weights"]
    assert weights["mid"] == pytest.approx(67.6979, rel=0.002)
    assert weights["low"] < weights["mid"] < weights["high"]


@pytest.mark.parametrize("path", ["/estimate", "/fit"])
def test_an_unknown_quantization_is_rejected_by_its_field(client: httpx.Client, path: str) -> None:
    config = CONFIG | {"quantization_config": {"quant_method": "aqlm"}}
    pointer, detail = get_error(client, path, config=config, inference={})
    assert pointer == "/body/config/quantization_config/quant_method"
    assert "'aqlm'" in detail
    assert "compressed-tensors" in detail


@pytest.mark.parametrize("path", ["/estimate", "/fit"])
@pytest.mark.parametrize(
    ("model", "most"),
    [
        ({"model": "llama-3.3-70b"}, 131072),
        ({"model": "mistral-large-123b"}, 131072),
        ({"config": CONFIG}, 131072),
        ({"config": CONFIG | {"rope_scaling": {"rope_type": "yarn", "factor": 2.0}}}, 262144),
    ],
)
def test_a_context_longer_than_the_model_is_made_for_is_rejected_with_the_maximum(
    client: httpx.Client, path: str, model: Body, most: int
) -> None:
    assert client.post(path, json=model | {"inference": {"context_tokens": most}}).status_code == 200
    pointer, detail = get_error(client, path, **model, inference={"context_tokens": most + 1})
    assert pointer == "/body/inference/context_tokens"
    assert str(most) in detail
    assert str(most + 1) in detail
    assert "allow_longer_context" in detail


def test_a_longer_context_can_be_allowed_with_a_warning(client: httpx.Client) -> None:
    asked = {"context_tokens": 200_000, "allow_longer_context": True}
    answer = fit(client, {"model": "llama-3.1-8b", "inference": asked, "include": ["assumptions"]})
    assert all("LONG_CONTEXT" in item["warnings"] for item in answer["items"])
    said = {one["field"]: one["why"] for one in answer["assumptions"]}
    assert "131072" in said["inference.context_tokens"]
    shorter = fit(
        client, {"model": "llama-3.1-8b", "inference": {"context_tokens": 8192, "allow_longer_context": True}}
    )
    assert not any("LONG_CONTEXT" in item["warnings"] for item in shorter["items"])


def test_every_option_warns_if_no_context_is_given(client: httpx.Client) -> None:
    without = fit(client, {"model": "llama-3.3-70b", "inference": {}})
    assert without["items"]
    for item in without["items"]:
        assert "NO_KV_CACHE" in item["warnings"]
        assert "no KV cache is counted" in item["explanation"]
    kept = fit(client, {"model": "llama-3.3-70b", "inference": {"context_tokens": 8192}})
    given = fit(client, {"model": "llama-3.3-70b", "inference": {"kv_bytes_per_sequence": 10**9}})
    assert not any("NO_KV_CACHE" in item["warnings"] for item in kept["items"] + given["items"])


@pytest.mark.parametrize(("model", "assumed"), [("llama-3.3-70b", 8192), ("gpt-2-1.5b", 1024)])
def test_sequences_without_a_context_have_a_usual_one_and_take_its_memory(
    client: httpx.Client, model: str, assumed: int
) -> None:
    asked = {"model": model, "include": ["assumptions"]}
    usual = fit(client, asked | {"inference": {"concurrency": 64}})
    stated = fit(client, asked | {"inference": {"concurrency": 64, "context_tokens": assumed}})
    recorded = {assumption["field"]: assumption["value"] for assumption in usual["assumptions"]}
    assert recorded["inference.context_tokens"] == assumed
    assert all(f"assuming a context of {assumed:,} tokens" in item["explanation"] for item in usual["items"])
    same = ("size", "nodes", "per_gpu", "cost", "warnings")
    assert [[item[name] for name in same] for item in usual["items"]] == [
        [item[name] for name in same] for item in stated["items"]
    ]


RELEASES = [
    ("Qwen/Qwen3-235B-A22B-Instruct-2507-FP8", "qwen3-235b-a22b", "fp8"),
    ("nvidia/Llama-3.1-70B-Instruct-FP8", "llama-3.1-70b", "fp8"),
    ("Qwen/Qwen2.5-72B-Instruct-GPTQ-Int4", "qwen2.5-72b", "gptq_int4"),
    ("llama-3.1-8b-awq", "llama-3.1-8b", "awq_int4"),
    ("nvidia/DeepSeek-R1-NVFP4", "deepseek-r1", "nvfp4"),
]


@pytest.mark.parametrize(("name", "preset", "dtype"), RELEASES)
def test_a_release_of_a_preset_is_known_by_the_ending_of_its_name(
    client: httpx.Client, name: str, preset: str, dtype: str
) -> None:
    served = {"inference": {"context_tokens": 8192}}
    said = client.post("/estimate", json={"model": name, **served})
    assert said.status_code == 200, said.text
    given = client.post("/estimate", json={"model": preset, "inference": {"context_tokens": 8192, "dtype": dtype}})
    kind = said.json()["weights_type"]
    assert (kind["dtype"], kind["source"]) == (dtype, "preset")
    assert kind["detail"].startswith("the name ends in -")
    assert said.json()["inference"]["weights"]["class"] == "estimate"
    if preset != "deepseek-r1":  # its own release is in FP8 blocks
        assert said.json()["inference"]["weights"] == given.json()["inference"]["weights"]


def test_the_context_of_a_dated_release_is_not_that_of_the_model(client: httpx.Client) -> None:
    longer = {"inference": {"context_tokens": 131_072}}
    assert client.post("/estimate", json={"model": "Qwen3-235B-A22B", **longer}).status_code == 422
    assert client.post("/estimate", json={"model": "Qwen3-235B-A22B-Thinking-2507", **longer}).status_code == 200


@pytest.mark.parametrize("name", ["QwQ-32B", "Mistral-Small-Instruct-2409", "acme/llama-3.1-70b", "-fp8", "llama-fp8"])
def test_a_name_whose_model_is_not_told_by_it_stays_unknown(client: httpx.Client, name: str) -> None:
    assert client.post("/estimate", json={"model": name, "inference": {}}).status_code == 422


@pytest.mark.parametrize(("spelling", "dtype"), [("q4_k_m", "gguf_q4_k_m"), ("Q8_0", "gguf_q8_0"), ("float16", "fp16")])
def test_a_type_is_taken_in_its_usual_spellings(client: httpx.Client, spelling: str, dtype: str) -> None:
    body = {"model": "llama-3.1-8b", "inference": {"context_tokens": 8192, "dtype": spelling}}
    said = client.post("/estimate", json=body)
    assert said.status_code == 200, said.text
    assert said.json()["weights_type"]["dtype"] == dtype


def test_modelopts_own_file_is_read_under_either_key(client: httpx.Client) -> None:
    own_file = {
        "producer": {"name": "modelopt", "version": "0.23.0"},
        "quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8", "exclude_modules": ["lm_head"]},
    }
    config = {
        "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32,
        "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256, "torch_dtype": "bfloat16",
    }  # fmt: skip
    merged, nested, alone = (
        client.post("/estimate", json={"config": config | more, "inference": {"context_tokens": 8192}}).json()
        for more in (own_file, {"quantization_config": own_file}, {})
    )
    assert merged["weights_type"]["dtype"] == "fp8"
    assert nested["inference"] == merged["inference"]
    assert alone["weights_type"]["detail"] == "config.torch_dtype: bfloat16, as config states no quantization"


@pytest.mark.parametrize("dtype", ["nf4", "mxfp4", "gguf_q4_k_m", "awq", "tf32"])
def test_a_type_that_no_engine_keeps_a_cache_in_is_refused(client: httpx.Client, dtype: str) -> None:
    response = client.post("/fit", json={"model": "llama-3.1-8b", "inference": {"kv_dtype": dtype}})
    assert response.status_code == 422
    (error,) = response.json()["errors"]
    assert error["pointer"] == "/body/inference/kv_dtype"
    assert "allowed are fp32, fp16, bf16, fp8, int8, int4, fp4, nvfp4, gguf_q8_0, gguf_q4_0" in error["detail"]


@pytest.mark.parametrize(("spelling", "bits"), [("q8_0", 8.5), ("Q4_0", 4.5), ("fp8_e4m3", 8), ("nvfp4", 4.5)])
def test_a_cache_is_kept_in_the_types_of_engines(client: httpx.Client, spelling: str, bits: float) -> None:
    """Llama 3.1 8B: 32 layers of keys and values of 8 heads of 128."""
    body = {"model": "llama-3.1-8b", "inference": {"kv_dtype": spelling, "context_tokens": 8192}}
    cache = client.post("/estimate", json=body).json()["inference"]["kv_cache"]
    assert cache["per_token"]["value"] == 2 * 32 * 8 * 128 * bits / 8
