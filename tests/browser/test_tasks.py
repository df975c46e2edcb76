"""The tasks that people come for are done in few clicks, and end at what the API says."""

import httpx
import pytest
from playwright.sync_api import Browser

from tests.browser.conftest import VIEWPORTS
from tests.browser.tasks import (
    TASKS,
    Task,
    cheapest_with_64_vcpus,
    confidential,
    dispute_of_nd40rs_v2,
    greatest_spot_saving,
    local_nvme,
    misspellings,
    price_a_year_ago,
    run,
)

MAX_CLICKS = 5
ONCE_WRONG = (
    *(price_a_year_ago, cheapest_with_64_vcpus, dispute_of_nd40rs_v2, greatest_spot_saving),
    *(local_nvme, confidential, misspellings),
)
"""The tasks that the pages failed before, which are done in each run; the others with --slow."""
DEVICES = tuple(VIEWPORTS)


@pytest.mark.takes_seconds
@pytest.mark.usefixtures("scripts")
@pytest.mark.parametrize(
    ("task", "device"),
    [
        pytest.param(task, device, id=f"{task.__name__}-{device}", marks=() if done else pytest.mark.slow)
        for number, task in enumerate(TASKS)
        for device in DEVICES
        for done in [task in ONCE_WRONG and device == DEVICES[number % 2]]
    ],
)
def test_a_task_is_done_in_few_clicks(
    browser: Browser, base_url: str, client: httpx.Client, task: Task, device: str
) -> None:
    found = run(browser, client, base_url, task, device)
    assert found.right, found.answer
    assert found.clicks <= MAX_CLICKS
