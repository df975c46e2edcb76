"""Encoders, speech and diffusion models over HTTP: what an answer has, and what is refused."""

from typing import Any

import httpx
import pytest

from tests.api.bodies import Body, fit
from tests.fit.formulas.test_hf_encoders import BGE_M3, CLIP, FLUX, QWEN3, T5, WHISPER

pytestmark = pytest.mark.one_database  # the queries are those of other fits, which are asked of each kind

T4 = {"usable_gib": 14.56, "bandwidth_gb_per_s": 320, "peak_tflops": 65}
PIPELINE = {"_class_name": "FluxPipeline", "transformer": FLUX, "text_encoder": CLIP, "text_encoder_2": T5}


def estimated(client: httpx.Client, **body: Any) -> Body:
    answer = client.post("/estimate", json={"gpus": T4} | body)
    assert answer.status_code == 200, answer.text
    found: Body = answer.json()
    return found


def test_an_encoder_has_a_batch_of_sequences_and_no_cache(client: httpx.Client) -> None:
    one, many = (
        estimated(client, config=BGE_M3, inference={"context_tokens": 512, "concurrency": batch})["inference"]
        for batch in (1, 32)
    )
    memory = many["memory_per_gpu"]
    assert memory["kv_cache"]["value"] == 0
    assert memory["activations"]["mid"] == pytest.approx(32 * one["memory_per_gpu"]["activations"]["mid"])
    assert {"kv_cache", "decode", "prefill", "ttft"} - many.keys() | {
        name for name in ("kv_cache", "decode", "prefill", "ttft") if many.get(name) is None
    } == {"kv_cache", "decode", "prefill", "ttft"}
    rate = many["encode"]["expected_tokens_per_s"]
    assert (rate["evidence"]["family"], rate["evidence"]["n"]) == ("encoder_rate", 0)
    assert rate["high"] <= many["encode"]["tokens_per_s"]["value"]
    assert rate["high"] >= 10 * rate["low"]


def test_a_decoder_without_an_output_layer_is_an_encoder(client: httpx.Client) -> None:
    answer = estimated(
        client, config=QWEN3 | {"architectures": ["Qwen3ForSequenceClassification"]}, inference={"concurrency": 4}
    )
    assert answer["architecture"]["kind"] == "encoder"
    assert {"config.architectures", "inference.context_tokens"} <= {note["field"] for note in answer["assumptions"]}


def test_speech_and_images_have_memory_and_no_speed(client: httpx.Client) -> None:
    speech = estimated(client, model="whisper-large-v3", inference={"concurrency": 8})
    assert speech["inference"]["kv_cache"]["per_sequence"]["value"] == pytest.approx(0.2972412109375)
    images = estimated(client, config=PIPELINE, inference={"concurrency": 2})
    assert images["inference"]["memory_per_gpu"]["activations"] == {
        "class": "estimate", "unit": "GiB", "value": None, "low": 2.0, "mid": 6.0, "high": 16.0,
        "evidence": {"family": "pass_memory", "n": 0, "outside": []},
    }  # fmt: skip
    for answer, kind in ((speech, "speech"), (images, "diffusion")):
        (why,) = [note["why"] for note in answer["assumptions"] if note["field"] == "architecture.kind"]
        assert why.startswith("no speed is estimated")
        assert answer["architecture"]["kind"] == kind
        assert not any(answer["inference"].get(name) for name in ("decode", "encode", "prefill", "ttft"))


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"config": BGE_M3, "inference": {"kv_dtype": "fp8"}}, "/body/inference/kv_dtype"),
        ({"config": BGE_M3, "inference": {"output_tokens": 9}}, "/body/inference/output_tokens"),
        ({"config": BGE_M3, "inference": {"context_tokens": 9000}}, "/body/inference/context_tokens"),
        ({"config": FLUX, "inference": {"context_tokens": 9}}, "/body/inference/context_tokens"),
        ({"config": WHISPER, "inference": {"context_tokens": 449}}, "/body/inference/context_tokens"),
        ({"config": BGE_M3, "training": {"sequence_tokens": 512}}, "/body/training"),
        ({"model": "bge-m3", "training": {"tokens": 1e9}}, "/body/training"),
    ],
)
def test_what_does_not_apply_is_refused_with_its_field(client: httpx.Client, body: Body, pointer: str) -> None:
    answer = client.post("/estimate", json=body)
    assert answer.status_code == 422
    assert [error["pointer"] for error in answer.json()["errors"]] == [pointer]


def test_other_kinds_are_placed_a_copy_on_each_gpu(client: httpx.Client) -> None:
    encoder = fit(client, {"model": "bge-m3", "inference": {"concurrency": 64}}, limit=500)
    assert encoder["fits"]
    assert {item["parallelism"]["tensor"] for item in encoder["items"]} == {1}
    first = encoder["items"][0]
    assert first["speed"]["expected_tokens_per_s"]["evidence"] == {"family": "encoder_rate", "n": 0, "outside": []}
    assert "NO_KV_CACHE" not in first["warnings"]
    assert "UNMEASURED" in first["warnings"]
    images = fit(client, {"config": PIPELINE, "inference": {}}, limit=500)
    assert images["fits"]
    assert all(item["per_gpu"]["weights"]["value"] == pytest.approx(31.2678, abs=1e-3) for item in images["items"])
    assert all(item["per_gpu"]["budget"]["value"] >= item["per_gpu"]["need"]["mid"] for item in images["items"])
    assert all(item.get("speed") is None and "UNMEASURED" in item["warnings"] for item in images["items"])
    speech = fit(client, {"model": "whisper-large-v3", "inference": {"concurrency": 16}}, limit=500)
    assert speech["fits"]
    # It is released in fp16, which a T4 computes in; bf16, which it does not, was assumed.
    assert "Standard_NC4as_T4_v3" in {item["size"] for item in speech["items"]}
    for answer, kind in ((images, "diffusion"), (speech, "speech")):
        assert all(f"no speed, as none is estimated for {kind} models" in it["explanation"] for it in answer["items"])
        assert all("PEAK_UNKNOWN" not in item["warnings"] for item in answer["items"])


@pytest.mark.parametrize(
    ("model", "lengths", "said"),
    [
        ("bge-m3", {}, ["assuming a context of 512 tokens"]),
        ("bge-m3", {"context_tokens": 512}, []),
        ("bge-m3", {"prompt_tokens": 300}, []),
        ("whisper-large-v3", {}, ["assuming a context of 448 tokens"]),
    ],
)
def test_the_explanation_names_the_sequences_that_are_assumed(
    client: httpx.Client, model: str, lengths: Body, said: list[str]
) -> None:
    placed = fit(client, {"model": model, "inference": {"concurrency": 8} | lengths}, limit=3)["items"]
    assert placed
    for item in placed:
        assert [part for part in item["explanation"].split("; ") if part.startswith("assuming")] == said


def test_a_service_level_is_of_decoders(client: httpx.Client) -> None:
    serving = {"input_tokens": 100, "output_tokens": 1, "requests_per_second": 1}
    answer = client.post("/fit", json={"model": "bge-m3", "serving": serving})
    assert answer.status_code == 422
    assert [error["pointer"] for error in answer.json()["errors"]] == ["/body/serving"]
