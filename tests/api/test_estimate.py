from typing import Any

import httpx
import pytest

pytestmark = pytest.mark.one_database  # an estimate asks for presets of models alone

LLAMA_70B: dict[str, Any] = {
    "layers": 80, "hidden": 8192, "heads": 64, "kv_heads": 8, "intermediate": 28672, "vocab": 128256,
}  # fmt: skip
MIXTRAL = {
    "layers": 32, "hidden": 4096, "heads": 32, "kv_heads": 8, "intermediate": 14336, "vocab": 32000, "experts": 8,
    "experts_per_token": 2,
}  # fmt: skip
SIXTEEN_BIT_PARAMS = 2 * 128256 * 8192 + 80 * 2 * 8192 + 8192
"""Embeddings, output layer and norms of Llama 3 70B."""


def quantized(bits: float) -> float:
    return (70_553_706_496 - SIXTEEN_BIT_PARAMS) * bits / 8 + 2 * SIXTEEN_BIT_PARAMS


CONFIG: dict[str, Any] = {
    "model_type": "llama", "num_hidden_layers": 80, "hidden_size": 8192, "num_attention_heads": 64,
    "num_key_value_heads": 8, "intermediate_size": 28672, "vocab_size": 128256, "tie_word_embeddings": False,
    "torch_dtype": "bfloat16", "rope_scaling": {"factor": 8.0},
}  # fmt: skip
A100: dict[str, Any] = {"count": 4, "usable_gib": 79.15, "bandwidth_gb_per_s": 1935, "peak_tflops": 312}


def estimate(client: httpx.Client, **body: Any) -> dict[str, Any]:
    response = client.post("/estimate", json=body)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def get_error(client: httpx.Client, **body: Any) -> dict[str, Any]:
    response = client.post("/estimate", json=body)
    assert response.status_code == 422, response.text
    assert response.headers["content-type"] == "application/problem+json"
    problem: dict[str, Any] = response.json()
    return problem


def assumptions(answer: dict[str, Any]) -> dict[str, Any]:
    return {note["field"]: note["value"] for note in answer["assumptions"]}


def test_serving_llama_70b_on_four_gpus(client: httpx.Client) -> None:
    answer = estimate(client, architecture=LLAMA_70B, inference={"context_tokens": 8192, "concurrency": 32}, gpus=A100)
    assert answer["parameters"]["total"]["value"] == 70_553_706_496
    served = answer["inference"]
    weights = {"class": "exact", "unit": "GiB", "value": 70_553_706_496 / 2**29, "low": None, "mid": None, "high": None}
    assert served["weights"] == weights
    assert served["kv_cache"]["per_token"]["value"] == 327_680
    assert served["memory_per_gpu"]["need"]["mid"] == pytest.approx(57.36, abs=0.01)
    assert served["memory_per_gpu"]["fits"] is True
    assert served["memory_per_gpu"]["max_concurrency"]["mid"] == 56
    assert served["decode"]["tokens_per_s"]["class"] == "bound"
    assert served["decode"]["tokens_per_s"]["value"] == pytest.approx(1101.3, abs=0.1)
    assert served["decode"]["expected_tokens_per_s"]["high"] < served["decode"]["tokens_per_s"]["value"]


UNTYPED = "model_type: is missing; it says how the other fields are to be read"
SAFETENSORS = {"metadata": {"total_size": 141_107_412_992}}


def test_an_empty_configuration_beside_another_model_is_absent(client: httpx.Client) -> None:
    for model in ({"model": "llama-3.1-70b"}, {"architecture": LLAMA_70B}, {"safetensors": SAFETENSORS}):
        request = {**model, "inference": {}}
        assert estimate(client, config={}, **request) == estimate(client, **request)


def test_a_configuration_equals_its_fields(client: httpx.Client) -> None:
    request = {"inference": {"context_tokens": 8192}}
    by_config, by_fields = (
        estimate(client, config=CONFIG, **request), estimate(client, architecture=LLAMA_70B, **request)
    )  # fmt: skip
    assert by_config["inference"] == by_fields["inference"]
    assert by_config["architecture"] == by_fields["architecture"]


def test_exactly_the_defaults_that_were_used_are_listed(client: httpx.Client) -> None:
    answer = estimate(client, architecture={"params": 10**9}, inference={"dtype": "fp16"})
    assert "inference.dtype" not in assumptions(answer)
    assert "inference.kv_dtype" not in assumptions(answer)
    assert assumptions(answer)["inference.context_tokens"] == 0
    other = estimate(client, architecture=LLAMA_70B, inference={"context_tokens": 1})
    assert assumptions(other)["inference.dtype"] == "bf16"
    assert assumptions(other)["inference.kv_dtype"] == "bf16"
    assert assumptions(other)["architecture.head_dim"] == 128
    assert assumptions(other)["architecture.mlp"] == "gated"


def test_a_figure_that_cannot_be_computed_is_left_out_with_the_missing_fields(client: httpx.Client) -> None:
    answer = estimate(client, architecture={"params": 10**9}, inference={})
    assert "kv_cache" not in answer["inference"]
    (gap,) = [gap for gap in answer["left_out"] if gap["figure"] == "inference.kv_cache"]
    assert gap["missing"] == ["architecture.layers", "architecture.kv_heads", "architecture.head_dim"]


def test_a_quantized_model_is_an_estimate_since_its_embeddings_stay_16_bit(client: httpx.Client) -> None:
    weights = estimate(client, architecture=LLAMA_70B, inference={"dtype": "nf4_dq"})["inference"]["weights"]
    assert weights["class"] == "estimate"
    assert weights["low"] < weights["mid"] < weights["high"]
    assert weights["mid"] == pytest.approx(quantized(4.127) / 2**30)


def test_gpus_beyond_one_copy_serve_more_copies(client: httpx.Client) -> None:
    request: dict[str, Any] = {
        "architecture": LLAMA_70B,
        "inference": {"context_tokens": 8192, "concurrency": 64, "tensor_parallel": 4},
    }
    one = estimate(client, **request, gpus=A100)["inference"]
    two = estimate(client, **request, gpus=A100 | {"count": 8})["inference"]
    assert (one["memory_per_gpu"]["copies"], two["memory_per_gpu"]["copies"]) == (1, 2)
    assert one["memory_per_gpu"]["kv_cache"]["value"] == 2 * two["memory_per_gpu"]["kv_cache"]["value"]
    assert one["kv_cache"]["total"] == two["kv_cache"]["total"]


def test_only_experts_that_tokens_choose_are_read(client: httpx.Client) -> None:
    mixtral = {"layers": 32, "hidden": 4096, "heads": 32, "kv_heads": 8, "intermediate": 14336, "vocab": 32000,
               "experts": 8, "experts_per_token": 2}  # fmt: skip
    gpus = {"bandwidth_gb_per_s": 2039}
    one, many = (
        estimate(client, architecture=mixtral, inference={"concurrency": batch}, gpus=gpus)["inference"]["decode"]
        for batch in (1, 64)
    )
    read = 12_879_925_248 - 32_000 * 4096  # without the input embedding
    assert one["step"]["value"] == pytest.approx(2 * read / 2039e9 * 1e3, rel=1e-6)
    assert many["step"]["value"] == one["step"]["value"]
    assert many["expected_step"]["mid"] > 2.5 * one["expected_step"]["mid"]


def test_training_on_sixty_four_gpus_is_sharded_timed_and_costed(client: httpx.Client) -> None:
    answer = estimate(
        client,
        architecture=LLAMA_70B,
        training={"zero_stage": 3, "sequence_tokens": 4096, "recompute": "full", "tokens": 1e12},
        gpus={"count": 64, "usable_gib": 79.15, "peak_tflops": 989, "usd_per_gpu_hour": 2},
    )
    states = answer["training"]["states"]
    assert states["total"]["value"] == pytest.approx(70_553_706_496 * 18 / 64 / 2**30)
    assert assumptions(answer)["training.recipe"] == "mixed_adam_fp32_grads"
    compute = answer["training"]["compute"]
    assert compute["model_flops"]["mid"] == 6 * 70_553_706_496 * 1e12
    assert compute["hardware_flops"]["mid"] == 8 * 70_553_706_496 * 1e12
    ideal = 1e12 / compute["tokens_per_s"]["mid"] * 64 / 3600
    assert compute["gpu_hours"]["mid"] == pytest.approx(1.19 * ideal)  # 19 % for what a whole run takes besides
    assert compute["days"]["low"] < compute["days"]["mid"] < compute["days"]["high"]
    assert answer["cost"]["per_hour"]["value"] == 128
    assert answer["cost"]["per_job"]["mid"] == pytest.approx(2 * compute["gpu_hours"]["mid"])
    memory = answer["training"]["memory_per_gpu"]
    assert memory["need"]["mid"] == pytest.approx(
        sum(
            memory[part].get("value") or memory[part]["mid"]
            for part in ("states", "activations", "buffers", "overhead")
        )
    )


def test_adapters_train_a_small_part_beside_a_frozen_base(client: httpx.Client) -> None:
    request = {"method": "qlora", "lora_rank": 8, "lora_modules": ["q", "v"]}
    training = estimate(client, architecture=LLAMA_70B, training=request)["training"]
    assert training["trainable_params"]["value"] == 80 * 8 * (8192 + 8192 + 8192 + 1024)
    assert training["states"]["frozen_base"]["mid"] == pytest.approx(quantized(4.127) / 2**30)
    assert training["states"]["bytes_per_param"]["value"] == 16


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"architecture": LLAMA_70B}, "give exactly one of inference, serving and training; none is given"),
        (
            {"inference": {}, "training": {}},
            "give exactly one of inference, serving and training; inference and training are given",
        ),
        ({"inference": {}, "config": CONFIG, "architecture": {}}, "architecture and config are given"),
        (
            {"inference": {"contxt_tokens": 8}},
            "inference.contxt_tokens=8: there is no such field; did you mean context_tokens?",
        ),
        ({"inferense": {}}, "inferense: there is no such field; did you mean inference?"),
        ({"inference": {}, "gpus": {"zzz": 1}}, "gpus.zzz=1: there is no such field; `errors` lists what is allowed"),
        ({"inference": {"dtype": "bf61"}}, "did you mean bf16?"),
        ({"training": {"recipe": "adam"}}, "allowed are mixed_adam"),
        ({"inference": {"dtype": "bf16", "bits_per_weight": 4}}, "dtype and bits_per_weight say the same thing"),
        ({"inference": {"context_tokens": 0}}, "inference.context_tokens=0"),
        ({"inference": {"context_tokens": 10**12}}, "inference.context_tokens"),
        ({"inference": {}}, "inference: cannot be answered without architecture.params"),
        ({"config": {}, "inference": {}}, f"config.{UNTYPED}"),
        ({"config": {}, "inference": {"weight_bytes": 10**9}}, f"config.{UNTYPED}"),
        ({"config": {}, "safetensors": {}, "training": {}}, f"config.{UNTYPED}"),
        ({"training": {}}, "training: cannot be answered without architecture.params"),
        (
            {"architecture": {"params": 7}, "inference": {"context_tokens": 8}},
            "inference.context_tokens: cannot be answered without architecture.layers",
        ),
        ({"architecture": {"params": 7}, "inference": {"prompt_tokens": 8}}, "without gpus.peak_tflops"),
        ({"training": {"tokens": 5}}, "training.tokens: cannot be answered without architecture.params"),
        (
            {"architecture": LLAMA_70B, "inference": {"tensor_parallel": 3}},
            "tensor_parallel: 3 does not divide 64 heads",
        ),
        (
            {"architecture": LLAMA_70B, "inference": {"pipeline_parallel": 81}},
            "pipeline_parallel: 80 layers cannot be cut into 81 stages",
        ),
        (
            {"architecture": LLAMA_70B, "training": {"pipeline_parallel": 81}},
            "training.pipeline_parallel: 80 layers cannot be cut into 81 stages",
        ),
        (
            {"architecture": LLAMA_70B, "training": {"micro_batch": 8, "global_batch": 63, "data_parallel": 8}},
            "training.global_batch: 63 is less than the sequences of one pass, 64: 8 on each of 8 copies",
        ),
        *(
            (
                {"architecture": LLAMA_70B, "training": {"method": "full"} | given},
                f"training.{next(iter(given))}: is for training.method lora and qlora",
            )
            for given in ({"lora_rank": 8}, {"base_dtype": "nf4"}, {"lora_modules": ["q"]})
        ),
        ({"architecture": LLAMA_70B, "training": {"lora_rank": 8}}, "training.lora_rank: is for training.method lora"),
        (
            {"architecture": LLAMA_70B, "training": {"method": "lora", "lora_rank": 100_000}},
            "training.lora_rank: 100,000 is no low rank: at most 8,192, the smaller side of the widest matrix with an",
        ),
        (
            {"architecture": LLAMA_70B, "training": {"method": "lora", "lora_rank": 1025, "lora_modules": ["k", "v"]}},
            "training.lora_rank: 1,025 is no low rank: at most 1,024, the smaller side of the widest matrix with an",
        ),
        (
            {
                "model": "llama-3.1-70b",
                "training": {"method": "lora", "lora_rank": 65, "lora_matrices": [{"inputs": 64, "outputs": 8192}]},
            },
            "training.lora_rank: 65 is no low rank: at most 64",
        ),
        (
            {"architecture": LLAMA_70B, "inference": {"tensor_parallel": 8}, "gpus": {"count": 4}},
            "4 is not a multiple of 8 x 1",
        ),
        ({"architecture": LLAMA_70B, "training": {"data_parallel": 3}, "gpus": {"count": 4}}, "are not the 4 GPUs"),
        (
            {
                "model": "llama-3.1-8b",
                "inference": {"context_tokens": 8192, "prompt_tokens": 8000, "output_tokens": 200},
            },
            "inference.prompt_tokens: and inference.output_tokens together are 8200, more than",
        ),
        (
            {"model": "llama-3.1-8b", "inference": {"context_tokens": 8192, "output_tokens": 8193}},
            "inference.output_tokens: 8193 is more than inference.context_tokens, 8192",
        ),
        (
            {"model": "llama-3.1-8b", "inference": {"prompt_tokens": 131072}},
            "inference.prompt_tokens: 131072, and a token of output at least, are more than",
        ),
        ({"architecture": {"attention": "mqa", "kv_heads": 8}, "inference": {}}, "attention mqa has 1"),
        (
            {"architecture": LLAMA_70B | {"active_params": 10**9}, "inference": {}},
            "architecture.active_params: 1000000000: without experts a token passes through all parameters, 70",
        ),
        (
            {"architecture": MIXTRAL | {"active_params": 10**11}, "inference": {}},
            "architecture.active_params: 100000000000 is more than all parameters, 46702792704",
        ),
        *(
            (
                {"architecture": LLAMA_70B | {name: 2}, "inference": {}},
                f"architecture.{name}: has no effect without {needed}",
            )
            for name, needed in (
                ("experts_per_token", "experts"),
                ("moe_layers", "experts"),
                ("sliding_layers", "sliding_window"),
            )
        ),
        ({"architecture": {"heads": 32, "kv_heads": 7}, "inference": {}}, "kv_heads: 7 does not divide heads, 32"),
        ({"architecture": {"attention": "mla", "layers": 8}, "inference": {}}, "is the rank of the latent"),
        ({"config": {"model_type": "lama"}, "inference": {}}, "did you mean llama?"),
        ({"model": "gpt-os-20b", "inference": {}}, "There is no model named 'gpt-os-20b'. Did you mean gpt-oss-20b?"),
        ({"model": "gpt-9", "inference": {}}, "There is no model named 'gpt-9'. A body"),
    ],
)
def test_a_wrong_or_incomplete_workload_is_rejected_with_a_reason(
    client: httpx.Client, body: dict[str, Any], expected: str
) -> None:
    assert expected in get_error(client, **body)["detail"]


def test_the_stated_active_parameters_take_precedence(client: httpx.Client) -> None:
    answer = estimate(client, architecture=MIXTRAL | {"active_params": 12 * 10**9}, inference={})
    assert answer["parameters"]["active"]["value"] == assumptions(answer)["architecture.active_params"] == 12e9
    assert answer["parameters"]["total"]["value"] == 46_702_792_704


@pytest.mark.parametrize(
    ("given", "assumed"),
    [
        ({"prompt_tokens": 1000}, {"output_tokens": 1000, "context_tokens": 2000}),
        ({"prompt_tokens": 100_000}, {"output_tokens": 31_072, "context_tokens": 131_072}),
        (
            {"prompt_tokens": 100_000, "allow_longer_context": True},
            {"output_tokens": 100_000, "context_tokens": 200_000},
        ),
        ({"output_tokens": 100}, {"prompt_tokens": 8092, "context_tokens": 8192}),
        ({"output_tokens": 60_000}, {"prompt_tokens": 60_000, "context_tokens": 120_000}),
        ({"prompt_tokens": 1000, "context_tokens": 1000}, {"output_tokens": 1000}),
    ],
)
def test_a_prompt_or_an_output_alone_makes_a_context(
    client: httpx.Client, given: dict[str, Any], assumed: dict[str, int]
) -> None:
    answer = estimate(client, model="llama-3.1-8b", inference=given | {"concurrency": 8}, gpus=A100)
    lengths = ("prompt_tokens", "output_tokens", "context_tokens")
    recorded = {name: assumptions(answer).get(f"inference.{name}") for name in lengths}
    assert {name: value for name, value in recorded.items() if value is not None and name not in given} == assumed
    context = (given | assumed)["context_tokens"]
    assert answer["inference"]["kv_cache"]["per_sequence"]["value"] == context * 131_072 / 2**30


def test_an_error_points_to_the_field(client: httpx.Client) -> None:
    (error,) = get_error(client, inference={"contxt_tokens": 8})["errors"]
    assert error["pointer"] == "/body/inference/contxt_tokens"
    (error,) = get_error(client, architecture={"params": 7}, inference={"context_tokens": 8})["errors"]
    assert error["pointer"] == "/body/inference/context_tokens"


@pytest.mark.parametrize("body", ["", "[]", "7", "null", "{", '{"inference": {"context_tokens": NaN}}', "[" * 100_000])
def test_a_body_that_is_not_a_workload_is_a_problem(client: httpx.Client, body: str) -> None:
    response = client.post("/estimate", content=body, headers={"content-type": "application/json"})
    assert response.status_code in (400, 422), response.text
    assert response.headers["content-type"] == "application/problem+json"


def test_the_same_workload_has_the_same_response(client: httpx.Client) -> None:
    body = {"architecture": LLAMA_70B, "inference": {"context_tokens": 8192}, "gpus": A100}
    assert client.post("/estimate", json=body).content == client.post("/estimate", json=body).content


def test_null_is_the_same_as_absent(client: httpx.Client) -> None:
    expected = estimate(client, architecture=LLAMA_70B, inference={"dtype": None}, gpus={"count": None}, training=None)
    assert expected == estimate(client, architecture=LLAMA_70B, inference={})


def test_the_memory_of_a_pipeline_stage_is_a_bound(client: httpx.Client) -> None:
    request: dict[str, Any] = {"architecture": LLAMA_70B, "inference": {"context_tokens": 8192, "pipeline_parallel": 3}}
    memory = estimate(client, **request)["inference"]["memory_per_gpu"]
    assert memory["kv_cache"]["class"] == memory["weights"]["class"] == "bound"
    assert memory["kv_cache"]["value"] == 2.5 * 27 / 80


def test_sequences_are_counted_once_however_they_spread_over_copies(client: httpx.Client) -> None:
    request: dict[str, Any] = {"context_tokens": 8192, "concurrency": 3, "tensor_parallel": 1}
    served = estimate(client, architecture=LLAMA_70B, inference=request, gpus={"count": 2})["inference"]
    assert served["kv_cache"]["total"]["value"] == 3 * 2.5
    assert served["memory_per_gpu"]["kv_cache"]["value"] == 2 * 2.5


def test_the_tensors_of_a_checkpoint_give_the_exact_weights(client: httpx.Client) -> None:
    index = {"metadata": {"total_size": 16_060_522_496}}
    alone = estimate(client, safetensors=index, inference={})
    assert alone["inference"]["weights"]["value"] == 16_060_522_496 / 2**30
    assert alone["weights_type"]["source"] == "safetensors"
    named = estimate(client, model="llama-3.1-8b", safetensors=index, inference={"context_tokens": 8192})
    assert named["inference"]["weights"]["value"] == 16_060_522_496 / 2**30
    assert named["inference"]["kv_cache"]["per_token"]["value"] == 131_072


@pytest.mark.parametrize("size", [1, 10**9, 7 * 10**10])
def test_a_checkpoint_of_another_model_is_refused(client: httpx.Client, size: int) -> None:
    problem = get_error(client, model="llama-3.1-8b", safetensors={"metadata": {"total_size": size}}, inference={})
    assert problem["errors"] == [
        {
            "pointer": "/body/safetensors",
            "detail": f"safetensors: {size:,} bytes are not from 1 to 64 bits for each of the model's 8,030,261,248 "
            "parameters",
        }
    ]


@pytest.mark.parametrize(
    ("model", "why"),
    [
        ("gemma-3-27b", "of 27,432,406,640 published: the rest is the vision tower and its projector"),
        ("llama-4-scout", "only the language model is counted"),
        ("qwen2.5-vl-7b", None),
    ],
)
def test_a_preset_says_which_part_of_its_model_is_not_counted(
    client: httpx.Client, model: str, why: str | None
) -> None:
    notes = [note for note in estimate(client, model=model, inference={})["assumptions"] if note["field"] == "model"]
    assert [note["why"].endswith(why or "") for note in notes] == ([True] if why else [])


def test_a_header_alone_gives_parameters_and_type(client: httpx.Client) -> None:
    header = {"a.weight": {"dtype": "F8_E4M3", "shape": [1000, 1000], "data_offsets": [0, 1_000_000]}}
    answer = estimate(client, safetensors=header, inference={})
    assert answer["parameters"]["total"]["value"] == 1_000_000
    assert answer["weights_type"]["dtype"] == "fp8"


def test_tensors_that_are_not_understood_are_refused_with_their_name(client: httpx.Client) -> None:
    body = {"safetensors": {"a": {"dtype": "Q4", "shape": [1]}}, "inference": {}}
    answer = client.post("/estimate", json=body)
    assert answer.status_code == 422
    assert "'Q4' is not one of" in answer.json()["detail"]


SHORT = {"model_type": "gpt2", "n_layer": 48, "n_embd": 1600, "n_head": 25, "n_positions": 1024, "vocab_size": 50257}


@pytest.mark.parametrize(("named", "tokens"), [({"model": "llama-3.1-8b"}, 2048), ({"config": SHORT}, 1024)])
def test_a_training_without_a_length_counts_the_activations_of_the_usual_one(
    client: httpx.Client, named: dict[str, Any], tokens: int
) -> None:
    said = estimate(client, **named, training={"method": "full"})
    given = estimate(client, **named, training={"method": "full", "sequence_tokens": tokens})
    assert assumptions(said)["training.sequence_tokens"] == tokens
    assert "training.sequence_tokens" not in assumptions(given)
    assert said["training"] == given["training"]
    assert given["training"]["memory_per_gpu"]["activations"]["mid"] > 0


LITGPT = {"lora_rank": 32, "lora_modules": ["q", "v"], "sequence_tokens": 512, "recompute": "none"}
ADAPTERS = [
    ("mistral-7b-v0.1", {**LITGPT, "method": "lora", "micro_batch": 2, "recipe": "bf16_adam"}, 20.66),
    ("mistral-7b-v0.1", {**LITGPT, "method": "qlora", "micro_batch": 2, "recipe": "bf16_adam"}, 14.29),
    ("llama-3.1-8b", {**LITGPT, "method": "qlora", "micro_batch": 2, "recipe": "bf16_adam"}, 17.41),
    ("phi-2", {**LITGPT, "method": "lora", "micro_batch": 4, "recipe": "bf16_adam"}, 13.98),
    ("falcon-7b", {**LITGPT, "method": "lora", "micro_batch": 1, "recipe": "bf16_adam"}, 16.69),
    ("llama-2-7b", {"method": "qlora", "lora_rank": 8, "sequence_tokens": 8192}, 12.0),
    ("llama-2-7b", {"method": "qlora", "lora_rank": 8, "sequence_tokens": 32_768}, 32.0),
]


@pytest.mark.parametrize(("model", "training", "peak_gb"), ADAPTERS)
def test_adapters_need_what_litgpt_and_llama_factory_measured(
    client: httpx.Client, model: str, training: dict[str, Any], peak_gb: float
) -> None:
    answer = estimate(client, model=model, training=training, gpus={"count": 1})
    need = answer["training"]["memory_per_gpu"]["need"]["mid"] * 2**30 / 1e9
    assert need == pytest.approx(peak_gb, rel=0.1)


def test_the_matrices_of_a_base_in_4_bits_take_more_than_their_weights(client: httpx.Client) -> None:
    """Their inputs are stored, and one of them at a time in 16 bits."""
    shown = {}
    for method in ("lora", "qlora"):
        training = {**LITGPT, "method": method}
        answer = estimate(client, model="mistral-7b-v0.1", training=training, gpus={"count": 1})
        shown[method] = answer["training"]["memory_per_gpu"]
    assert shown["lora"]["buffers"]["mid"] == 0
    assert shown["qlora"]["buffers"]["mid"] * 2**30 == pytest.approx(2 * 4096 * 14336)
    inputs = 32 * 512 * (3 * 4096 + 14336) * 4 / 2**30
    more = shown["qlora"]["activations"]["mid"] - shown["lora"]["activations"]["mid"]
    assert more == pytest.approx(inputs)


@pytest.mark.parametrize(("rank", "recorded"), [(1024, []), (1025, [1025]), (8192, [8192])])
def test_a_rank_above_the_width_of_narrow_matrices_is_recorded(
    client: httpx.Client, rank: int, recorded: list[int]
) -> None:
    answer = estimate(client, architecture=LLAMA_70B, training={"method": "lora", "lora_rank": rank})
    notes = [note for note in answer["assumptions"] if note["field"] == "training.lora_rank"]
    assert [note["value"] for note in notes] == recorded
    assert all("the smaller side of some matrices, 1,024" in note["why"] for note in notes)
    sides = 80 * (2 * (8192 + 8192) + 2 * (8192 + 1024) + 3 * (8192 + 28672))
    assert answer["training"]["trainable_params"]["value"] == rank * sides


def test_adapters_of_layers_that_differ_are_bounded_by_all_their_matrices(client: httpx.Client) -> None:
    """DeepSeek-V2-Lite by hand: MLA in 27 layers, a dense MLP in the first and 64 experts in the others."""
    attention = 27 * ((2048 + 3072) + (2048 + 576) + (512 + 4096) + (2048 + 2048))
    mlps = 3 * ((2048 + 10944) + 26 * (64 * (2048 + 1408) + (2048 + 2816)))
    training = {"method": "lora", "lora_rank": 8, "recipe": "mixed_adam"}
    most = estimate(client, model="deepseek-v2-lite", training=training)
    trainable = most["training"]["trainable_params"]
    assert (trainable["class"], trainable["value"]) == ("bound", 8 * (attention + mlps))
    (note,) = (note for note in most["assumptions"] if note["field"] == "training.lora_modules")
    assert note["why"].startswith("the most there can be")
    states = most["training"]["states"]
    assert (states["gradients"]["class"], states["total"]["class"]) == ("bound", "bound")
    assert states["frozen_base"]["class"] == "exact"

    named = estimate(client, model="deepseek-v2-lite", training=training | {"lora_modules": ["q", "v"]})
    trainable, matrices = named["training"]["trainable_params"], (2048 + 3072) + (2048 + 576) + (512 + 4096)
    assert (trainable["class"], trainable["value"]) == ("exact", 8 * 27 * matrices)
    assert named["training"]["states"]["total"]["class"] == "exact"


def test_every_preset_that_generates_text_can_have_adapters(client: httpx.Client) -> None:
    presets = client.get("/models", params={"limit": 500}).json()["items"]
    asked = {preset["id"]: {"model": preset["id"], "training": {"method": "qlora"}} for preset in presets}
    refused = {
        name: response.json()["detail"]
        for name, body in asked.items()
        if (response := client.post("/estimate", json=body)).status_code != 200
    }
    assert all("models that generate text" in detail for detail in refused.values()), refused
    assert len(asked) - len(refused) >= 100


@pytest.mark.parametrize("method", ["lora", "qlora"])
def test_adapters_are_trained_with_checkpoints_unless_told_otherwise(client: httpx.Client, method: str) -> None:
    training = {"method": method, "sequence_tokens": 2048, "tokens": 1e9}
    said, full, none = (
        estimate(client, model="llama-3.1-70b", training=training | more, gpus={"peak_tflops": 312})
        for more in ({}, {"recompute": "full"}, {"recompute": "none"})
    )
    assert assumptions(said)["training.recompute"] == "full"
    assert said["training"] == full["training"]
    assert none["training"]["memory_per_gpu"]["need"]["mid"] > full["training"]["memory_per_gpu"]["need"]["mid"]
    assert none["training"]["compute"]["gpu_hours"]["mid"] < full["training"]["compute"]["gpu_hours"]["mid"]
