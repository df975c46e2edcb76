"""The tasks that people come for are done in few clicks, and end at what the API says."""

from collections.abc import Callable
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser

from tests.browser.tasks import TASKS, Task, run

MAX_CLICKS = 4


def _first(client: httpx.Client, query: str) -> str:
    answer: Any = client.get(f"/sizes?{query}&sort=usd_per_hour&limit=1").json()
    return str(answer["items"][0]["name"])


FOUND: dict[str, Callable[[httpx.Client, str], bool]] = {
    "cheapest_with_80_gb": lambda client, found: found == _first(client, "region=westeurope&min_gpu_mem_per_gpu=80"),
    "holds_llama_70b": lambda _client, found: "sizes hold" in found,
    "dispute_of_nd40rs_v2": lambda _client, found: "256 by" in found and "128 by" in found,
    "csv_of_h100": lambda client, found: found == client.get("/ui/sizes.csv?gpu=h100").text,
    "comparison_of_three": lambda _client, found: found.count("A100") >= 3,
    "price_a_year_ago": lambda _client, found: "West Europe" in found and "since 2025-09-01" in found,
    "successor_of_retiring": lambda _client, found: "Retires on" in found,
    "cheapest_with_64_vcpus": lambda client, found: found == _first(client, "min_vcpus=64&max_vcpus=64&max_gpus=0"),
}


@pytest.mark.usefixtures("scripts")
@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.do.__name__)
def test_a_task_is_done_in_few_clicks(browser: Browser, base_url: str, client: httpx.Client, task: Task) -> None:
    found, clicks, _seconds = run(browser, base_url, task)
    assert FOUND[task.do.__name__](client, found), found
    assert clicks <= MAX_CLICKS
