"""Helpers that send POST /fit and apply the patch of a fix (JSON Merge Patch, RFC 7396)."""

from typing import Any

import httpx

Body = dict[str, Any]

LLAMA: Body = {"model": "llama-3.1-70b", "inference": {"context_tokens": 8192, "concurrency": 32}}


def fit(client: httpx.Client, body: Body, **more: Any) -> Body:
    response = client.post("/fit", json=body | more)
    assert response.status_code == 200, response.text
    answer: Body = response.json()
    return answer


def post_rejected(client: httpx.Client, body: Any) -> Body:
    response = client.post("/fit", json=body)
    assert response.status_code == 422, response.text
    problem: Body = response.json()
    return problem


def apply_merge_patch(body: Body, patch: Body) -> Body:
    changed = dict(body)
    for name, value in patch.items():
        if value is None:
            changed.pop(name, None)
        elif isinstance(value, dict):
            changed[name] = apply_merge_patch(changed.get(name) or {}, value)
        else:
            changed[name] = value
    return changed
