"""How many tokens a reply takes, and what is left out of one that takes too many."""

import json
from typing import Any

from app.mcp.tool import Reply

MAX_TOKENS = 1_500
"""The most tokens of a reply whose length was not asked for; what hosts cut is far above it."""
MAX_TOKENS_WITH_LIMIT = 12_000
"""The most of a reply to a call that gives `limit` or `fields`: half of what common hosts cut."""

BYTES_PER_TOKEN = 2.4
"""A lower bound of the bytes of JSON that a token takes in replies, so that estimates are never too small."""


def estimate_tokens(text: str, content: Any) -> int:
    """Return an upper estimate of the tokens of a reply: its line of text, and its content as compact JSON."""
    return round((len(text.encode()) + len(to_json(content))) / BYTES_PER_TOKEN)


def to_json(content: Any) -> bytes:
    """Return content as compact JSON."""
    return json.dumps(content, separators=(",", ":"), ensure_ascii=False).encode()


def shorten(reply: Reply, max_tokens: int) -> dict[str, Any]:
    """Return the content of a reply, its lists cut until it is short enough, with what was left out.

    The list that comes first in `lists` is cut first, down to one item, then the next one.
    """
    content = dict(reply.content)
    totals = {name: max(reply.totals.get(name, 0), len(content[name])) for name in reply.lists}
    full = _with_omissions(content, reply, totals)
    for name in reply.lists:
        while estimate_tokens(reply.text, full) > max_tokens and len(content[name]) > 1:
            content[name] = content[name][:-1]
            full = _with_omissions(content, reply, totals)
    return full


def _with_omissions(content: dict[str, Any], reply: Reply, totals: dict[str, int]) -> dict[str, Any]:
    omitted = {name: total - len(content[name]) for name, total in totals.items() if total > len(content[name])}
    return content | ({"omitted": omitted, "narrow": reply.narrow} if omitted else {})
