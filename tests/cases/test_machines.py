"""What cases of the kind `fit` may say, in other words than the published ones that are carried in."""

from typing import Any

import httpx
import pytest

from tests.cases.case_file import Case
from tests.cases.field_names import offloaded
from tests.cases.requests import by_preset, request_for
from tests.cases.runner import run

pytestmark = pytest.mark.first_database


@pytest.mark.parametrize(
    ("words", "fits"),
    [
        ({"workload": "inference", "model": "any", "heads": 32, "tensor_parallel": 4}, 1),
        ({"params": 70_600_000_000, "dtype": "bf16", "gpu": "A100-80GB", "gpus": 2, "nodes": 1}, 1),
        ({"params": 405_000_000_000, "dtype": "fp16", "gpu": "H100-SXM-80GB", "gpus": 8, "nodes": 2}, 1),
        ({"params": 405_000_000_000, "dtype": "fp16", "gpu": "H100-SXM-80GB", "gpus": 16, "nodes": 2}, 1),
        ({"params": 671_000_000_000, "dtype": "fp8", "gpu": "A100-80GB", "gpus": 16, "nodes": 2}, 1),
        ({"params": 30_000_000_000, "dtype": "fp8", "gpu": "V100-32GB", "gpus": 8}, 0),
        ({"params": 671_000_000_000, "dtype": "fp8", "gpu": "H200-141GB", "gpus": 8}, 1),
        ({"params": 7_000_000_000, "dtype": "bfloat16", "gpu": "V100-32GB", "gpus": 1}, 0),
        ({"params": 6_000_000_000, "dtype": "half", "gpu": "T4-16GB", "gpus": 1}, 1),
        ({"params": 13_000_000_000, "dtype": "fp16", "gpu": "24GB", "gpus": 1}, 0),
        ({"workload": "training", "params": 33_000_000_000, "method": "qlora_nf4", "gpu": "24GB", "gpus": 1}, 1),
        ({"workload": "training", "params": 65_200_000_000, "method": "lora_bf16_base", "gpu": "A100-80GB"}, 0),
        ({"workload": "training", "params": 7_000_000_000, "method": "full_adam_mixed", "gpu": "80GB", "gpus": 1}, 0),
        (
            {
                "workload": "training", "params": 7_000_000_000, "method": "full_adam_mixed", "gpu": "A100-80GB",
                "gpus": 8, "sharding": "fsdp", "seq": 2048, "activation_checkpointing": True,
            },
            1,
        ),
        (
            {
                "workload": "training", "params": 1_500_000_000, "method": "full_adam_mixed", "gpu": "V100-32GB",
                "gpus": 1, "seq": 1024, "micro_batch": 1, "activation_checkpointing": True,
            },
            1,
        ),
        ({"model": "llama-3.1-70b", "dtype": "bf16", "gpu": "A100-80GB", "gpus": 4, "context_tokens": 8192}, 1),
        ({"model": "Llama 3.1 70B", "dtype": "bf16", "gpu": "A100-80GB", "gpus": 1, "context_tokens": 8192}, 0),
        ({"model": "llama-3.1-70b", "params": 70_600_000_000, "dtype": "bf16", "gpu": "A100-80GB", "gpus": 4,
          "context_tokens": 8192}, 1),
        (
            {
                "workload": "training", "model": "llama-2-13b", "method": "full_adam_mixed", "gpu": "V100-32GB",
                "gpus": 1, "sharding": "zero2", "offload": "optimizer_cpu", "seq": 512,
                "activation_checkpointing": True,
            },
            1,
        ),
        (
            {
                "workload": "training", "model": "llama-2-13b", "method": "full_adam_mixed", "gpu": "V100-32GB",
                "gpus": 1, "seq": 512, "activation_checkpointing": True,
            },
            0,
        ),
    ],
)  # fmt: skip
def test_a_case_may_use_other_words(client: httpx.Client, words: dict[str, Any], fits: int) -> None:
    inputs = {"workload": "inference"} | words
    case = Case(id="x", kind="fit", inputs=inputs, expected=fits, unit="fits", tolerance_percent=0, source="")
    (result,) = run([case], client)
    assert (result.got, result.trouble) == (fits, "")


@pytest.mark.parametrize(
    ("words", "offload"),
    [
        ("optimizer_cpu", "optimizer"), ("cpu", "optimizer"), (True, "optimizer"), ("optimizer+params", "all"),
        ("params_nvme", "all"), ("all", "all"), (False, "none"), ("none", "none"),
    ],
)  # fmt: skip
def test_offloading_is_understood_in_several_words(words: bool | str, offload: str) -> None:
    assert offloaded(words) == offload


def test_an_unknown_word_for_offloading_gives_no_request(client: httpx.Client) -> None:
    inputs = {"workload": "training", "params": 10**9, "offload": "moon"}
    case = Case(id="x", kind="fit", inputs=inputs, expected=1, unit="fits", tolerance_percent=0, source="")
    (result,) = run([case], client)
    assert result.trouble == "no request for the case: KeyError('moon')"


QWEN = {
    "params": 235_093_634_560, "layers": 94, "hidden": 4096, "heads": 64, "kv_heads": 4, "head_dim": 128,
    "vocab": 151_936, "moe_intermediate": 1536, "experts": 128, "experts_per_token": 8, "moe_layers": 94,
}  # fmt: skip


@pytest.mark.parametrize(
    ("words", "by_name"),
    [
        (QWEN, True),
        ({"params": 235_000_000_000, "context_tokens": 8192}, True),
        ({"params": 235_000_000_000}, False),
        (QWEN | {"heads": 32}, False),
        ({"params": 300_000_000_000, "context_tokens": 8192}, False),
    ],
)
def test_a_case_whose_model_equals_a_preset_is_sent_with_its_name(
    client: httpx.Client, words: dict[str, Any], by_name: bool
) -> None:
    request = request_for("fit", {"workload": "inference", "model": "qwen3-235b-a22b"} | words)
    preset = client.get("/models/qwen3-235b-a22b").json()
    assert ("model" in by_preset(request, preset).body) == by_name
