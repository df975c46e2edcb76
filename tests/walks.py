"""Whole lists, read page by page, and answers compared."""

from typing import Any

import httpx

PRICED = (
    "/sizes?limit=500",
    "/sizes?region=westeurope&limit=500",
    "/sizes?purchase=spot&sort=usd_per_hour&min_gpu_mem=80&limit=500",
    "/sizes?region=westeurope&max_usd_per_hour=2&currency=EUR&limit=500",
    "/sizes/nc24ads_a100_v4/similar?limit=500",
    "/fit?min_gpu_mem=80&region=westeurope&include=rejected&limit=500",
    "/fit?min_vcpus=96&budget_usd_per_month=5000&limit=500",
    "/sizes.csv?region=westeurope&sort=usd_per_hour",
)
"""Answers with prices, which are the same today by their history."""


def walk(client: httpx.Client, path: str, **parameters: Any) -> list[dict[str, Any]]:
    """Return every item of a list."""
    items: list[dict[str, Any]] = []
    cursor: str | None = ""
    while cursor is not None:
        answer = client.get(path, params={"limit": 500} | parameters | {"cursor": cursor})
        assert answer.status_code == 200, answer.text
        page = answer.json()
        items += page["items"]
        cursor = page["next_cursor"]
    return items


def assert_same_answers(client: httpx.Client, first: str, second: str) -> None:
    """Assert that two paths have the same answer, but for the cursor of the next page."""
    answers = [client.get(path) for path in (first, second)]
    assert [answer.status_code for answer in answers] == [200, 200], [answer.text for answer in answers]
    if answers[0].headers["content-type"] != "application/json":
        assert answers[1].text == answers[0].text
        return
    bodies = [{**answer.json(), "next_cursor": None} for answer in answers]
    assert bodies[1] == bodies[0]
