"""Whole lists, read page by page."""

from typing import Any

import httpx


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
