"""Reads what clients send beside JSON bodies: inventories of VMs, quotas."""

import json
from collections.abc import Callable
from typing import Any

from app.errors import BadData


def load_json(text: str, name: str, check: Callable[[Any], None] = lambda _: None) -> Any:
    """Return JSON data; raises BadData naming the file where it is none, or where the check raises ValueError."""
    try:
        loaded = json.loads(text)
        check(loaded)
    except (ValueError, RecursionError) as error:
        raise BadData(f"is not JSON: {error}", file=name) from error
    return loaded


def lower_keys(value: object) -> dict[str, Any]:
    """Return a JSON object with its keys in lower case; empty for any other value."""
    return {key.lower(): item for key, item in value.items()} if isinstance(value, dict) else {}
