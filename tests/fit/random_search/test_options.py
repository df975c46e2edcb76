"""What may never be answered, looked for in many random questions; the same ones in every run."""

from functools import cache
from random import Random
from typing import Any

import httpx
import pytest

from tests.api.bodies import Body, fit

MODELS = (
    "llama-3.1-8b", "llama-3.1-70b", "llama-3.1-405b", "qwen2.5-72b", "qwen3-235b-a22b", "mixtral-8x7b",
    "mixtral-8x22b", "deepseek-v3", "kimi-k2", "gpt-oss-120b", "gemma-2-27b", "phi-4",
)  # fmt: skip
CONTEXTS = (512, 2048, 8192, 32_768, 120_000)
SEQUENCES = (1, 2, 7, 16, 50, 64, 128, 300)
DTYPES = ("bf16", "fp16", "fp8", "int8", "int4", "awq_int4", "nvfp4")
DIFFERENT = 1 + 1e-9
"""Doubles that are computed in another order may differ by so much."""


def served(seed: int) -> Body:
    """A random question about a model that is served."""
    random = Random(seed)  # noqa: S311  # the same questions in every run
    model = random.choice(MODELS)
    shape = {"context_tokens": min(random.choice(CONTEXTS), 4096 if model in {"gemma-2-27b", "phi-4"} else 120_000)}
    load = shape | {"concurrency": random.choice(SEQUENCES), "dtype": random.choice(DTYPES)}
    return {"model": model, "inference": load, "constraints": {"max_nodes": random.choice((1, 1, 2, 4, 8, 16))}}


def all_of(client: httpx.Client, body: Body) -> list[Any]:
    """Every option of a question."""
    items = fit(client, body, limit=500)["items"]
    assert isinstance(items, list)
    return items


@pytest.mark.parametrize("seeds", [range(start, start + 50) for start in range(0, 250, 50)], ids=str)
def test_no_option_generates_more_than_one_token_of_each_sequence_a_step(client: httpx.Client, seeds: range) -> None:
    checked = 0
    for seed in seeds:
        body = served(seed)
        for item in all_of(client, body):
            speed, sequences = item.get("speed"), body["inference"]["concurrency"]
            if speed is None:
                continue
            checked += 1
            bound = speed["tokens_per_s"]["value"] * speed["step"]["value"] / 1e3
            expected = speed["expected_tokens_per_s"]["mid"] * speed["expected_step"]["mid"] / 1e3
            assert max(bound, expected) <= sequences * DIFFERENT, (body, item["size"], item["parallelism"])
    assert checked > 500
