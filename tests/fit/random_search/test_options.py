"""Properties of every answer to a fit, checked on random requests with fixed seeds."""

from collections.abc import Callable
from functools import cache
from random import Random
from typing import Any

import httpx
import pytest

from tests.api.bodies import Body, apply_merge_patch, fit
from tests.databases import one_in

RandomBody = Callable[[int], Body]
"""Returns the random request of a seed."""
OptionsOf = Callable[[RandomBody, int], tuple[Body, list[Any]]]
MODELS = {
    "llama-3.1-8b": 131_072, "llama-3.1-70b": 131_072, "llama-3.1-405b": 131_072, "qwen2.5-72b": 131_072,
    "qwen3-235b-a22b": 40_960, "mixtral-8x7b": 32_768, "mixtral-8x22b": 65_536, "deepseek-v3": 163_840,
    "kimi-k2": 131_072, "gpt-oss-120b": 131_072, "gemma-2-27b": 8192, "phi-4": 16_384,
}  # fmt: skip
"""Presets and the longest context of each."""
CONTEXTS = (512, 2048, 8192, 32_768, 120_000)
SEQUENCES = (1, 2, 7, 16, 50, 64, 128, 300)
DTYPES = ("bf16", "fp16", "fp8", "int8", "int4", "awq_int4", "nvfp4")
DIFFERENT = 1 + 1e-9
"""Relative tolerance for doubles computed in another order."""


def random_serving(seed: int) -> Body:
    """Return a random request for a model that is served."""
    random = Random(seed)
    model = random.choice(list(MODELS))
    context = min(random.choice(CONTEXTS), MODELS[model])
    load = {"context_tokens": context, "concurrency": random.choice(SEQUENCES), "dtype": random.choice(DTYPES)}
    return {"model": model, "inference": load, "constraints": {"max_nodes": random.choice((1, 1, 2, 4, 8, 16))}}


def random_training(seed: int) -> Body:
    """Return a random request for a model that is trained."""
    random = Random(seed)
    job = {
        "method": random.choice(("full", "lora", "qlora", "qlora")),
        "sequence_tokens": random.choice((512, 2048, 4096)),
        "micro_batch": random.choice((1, 2, 4)),
        "recompute": random.choice(("none", "selective", "full")),
        "zero_stage": random.choice((None, None, 0, 2, 3)),
        "offload": random.choice(("none", "none", "optimizer", "all")),
    }
    model = random.choice([name for name in MODELS if name not in {"deepseek-v3", "kimi-k2"}])
    return {"model": model, "training": job, "constraints": {"max_nodes": random.choice((1, 2, 8, 64))}}


def all_options(client: httpx.Client, body: Body) -> list[Any]:
    """Return every option of an answer."""
    items = fit(client, body, limit=500)["items"]
    assert isinstance(items, list)
    return items


@pytest.fixture(scope="module")
def options_of(client: httpx.Client) -> OptionsOf:
    """Return a function that returns a random request with every option of its answer, and requests each once."""

    @cache
    def options_of(random_body: RandomBody, seed: int) -> tuple[Body, list[Any]]:
        body = random_body(seed)
        return body, all_options(client, body)

    return options_of


@pytest.mark.takes_seconds
@pytest.mark.parametrize("seeds", one_in(2, [range(25), range(25, 50)]), ids=str)
def test_no_option_generates_more_than_one_token_of_each_sequence_a_step(options_of: OptionsOf, seeds: range) -> None:
    checked = 0
    for seed in seeds:
        body, options = options_of(random_serving, seed)
        for item in options:
            speed, sequences = item.get("speed"), body["inference"]["concurrency"]
            if speed is None:
                continue
            checked += 1
            bound = speed["tokens_per_s"]["value"] * speed["step"]["value"] / 1e3
            expected = speed["expected_tokens_per_s"]["mid"] * speed["expected_step"]["mid"] / 1e3
            assert max(bound, expected) <= sequences * DIFFERENT, (body, item["size"], item["parallelism"])
    assert checked > 250


@pytest.mark.parametrize("random_body", [random_serving, random_training])
@pytest.mark.parametrize("seeds", one_in(4, [range(start, start + 15) for start in range(0, 60, 15)]), ids=str)
def test_an_option_is_tight_where_a_gpu_may_need_more_than_it_has_and_nowhere_else(
    options_of: OptionsOf, random_body: RandomBody, seeds: range
) -> None:
    for seed in seeds:
        body, options = options_of(random_body, seed)
        for item in options:
            most, budget = item["per_gpu"]["need"]["high"], item["per_gpu"]["budget"]["value"]
            if abs(most - budget) > 1e-6 * budget:
                assert ("TIGHT" in item["warnings"]) == (most > budget), (body, item["size"], most, budget)


LESS = ("context_tokens", "concurrency", "sequence_tokens", "micro_batch")


@pytest.mark.takes_seconds
@pytest.mark.parametrize("random_body", [random_serving, random_training])
@pytest.mark.parametrize("seeds", one_in(2, [range(100, 110), range(110, 120)]), ids=str)
def test_less_work_and_more_vms_never_make_a_size_fail(
    client: httpx.Client, random_body: RandomBody, seeds: range
) -> None:
    for seed in seeds:
        body, random = random_body(seed), Random(seed)
        use = next(name for name in ("inference", "training") if name in body)
        name = random.choice([name for name in LESS if name in body[use]])
        easier = body | {use: body[use] | {name: max(1, int(body[use][name] * random.choice((0.25, 0.5, 0.9))))}}
        wider = body | {"constraints": {"max_nodes": body["constraints"]["max_nodes"] + random.choice((1, 3, 16))}}
        before = {item["size"] for item in all_options(client, body)}
        for changed in (easier, wider):
            lost = before - {item["size"] for item in all_options(client, changed)}
            assert not lost, (body, changed)


@pytest.mark.parametrize("random_body", [random_serving, random_training])
def test_a_size_fits_after_any_fix_of_a_random_request(client: httpx.Client, random_body: RandomBody) -> None:
    for seed in range(200, 204):
        body, random = random_body(seed), Random(seed)
        missed = fit(client, body, include=["rejected"])["rejected"]
        fixes = [(miss["size"], fix) for miss in missed for fix in miss["fixes"]]
        for size, fix in random.sample(fixes, min(8, len(fixes))):
            changed = apply_merge_patch(body, fix["patch"])
            changed["constraints"] = changed.get("constraints", {}) | {"name": [size]}
            assert [item["size"] for item in all_options(client, changed)] == [size], (body, size, fix)


@pytest.mark.parametrize("seed", one_in(3, range(12)))
def test_every_option_within_a_budget_has_a_price_within_it(client: httpx.Client, seed: int) -> None:
    random = Random(seed)
    budget, purchase = random.choice((500, 5000, 20_000, 10**9)), random.choice(("on_demand", "spot"))
    body = random_serving(seed) | {"pricing": {"purchases": [purchase], "hours": 730}}
    for name, field in (("budget_usd_per_month", "usd_per_month"), ("budget_usd_per_job", "usd_per_job")):
        limited = body | {"constraints": body["constraints"] | {name: budget}}
        answer = fit(client, limited, limit=500, include=["rejected"])
        for item in answer["items"]:
            cost = item["cost"][purchase][field]
            assert (cost if field == "usd_per_month" else cost["value"]) <= budget
        for miss in answer["rejected"]:
            unpriced = [failure for failure in miss["failures"] if failure["code"] == "NO_PRICE"]
            assert all(failure["constraint"] == name for failure in unpriced)
            assert not unpriced or not miss["fixes"]


@pytest.mark.parametrize("purchase", ["on_demand", "spot"])
@pytest.mark.parametrize("needs", ["min_gpus=1/8", "min_gpu_mem=80", "min_gpus=1&max_nodes=4", "gpu=*&region=eastus"])
def test_an_unpriced_size_is_within_no_budget(client: httpx.Client, purchase: str, needs: str) -> None:
    url = f"/fit?{needs}&purchase={purchase}&limit=500"
    within = client.get(f"{url}&budget_usd_per_month=1e9").json()
    free = client.get(url).json()
    priced = [item["size"] for item in free["items"] if item["cost"][purchase]["usd_per_hour"] is not None]
    assert [item["size"] for item in within["items"]] == priced
    assert within["rejection_summary"].get("NO_PRICE", 0) == len(free["items"]) - len(priced)


@pytest.mark.parametrize("purchase", ["on_demand", "spot"])
def test_an_unpriced_size_is_within_no_maximum_price(client: httpx.Client, purchase: str) -> None:
    sizes = client.get(f"/sizes?max_usd_per_hour=1e6&purchase={purchase}&limit=500").json()["items"]
    assert sizes
    assert all(size[f"{purchase}_usd_per_hour"] is not None for size in sizes)
