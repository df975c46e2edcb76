"""The five tools, a call of one without any protocol, and how a reply is kept short."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from app.catalog.queries.snapshot import Catalog
from app.errors import BadQuery, BadWorkload, NotFound
from app.mcp import compare_sizes, explain_size, find_sizes, fit_workload, price_history
from app.mcp.arguments import read_arguments, to_bad_arguments
from app.mcp.tool import Reply, Tool
from app.questions import Inquiry, Question

TOOLS: Mapping[str, Tool] = {
    tool.name: tool
    for tool in (find_sizes.TOOL, explain_size.TOOL, fit_workload.TOOL, compare_sizes.TOOL, price_history.TOOL)
}

INSTRUCTIONS = """Cloud VM sizes (Azure): specifications, prices, fit of language models, each figure with its source.
Memory is GiB, prices USD an hour; null is unknown, never zero. Prices hold from price_as_of on: quote that day.
Unknown arguments are refused. A reply says in `omitted` what it left out and in `narrow` which arguments leave less.
Start with find_sizes or fit_workload; explain_size has sources and disputes of one size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Called:
    """What a call gives: a line of text, structured content, and the questions with their answers behind it."""

    text: str
    content: dict[str, Any]
    asked: Sequence[tuple[Question, Mapping[str, Any]]]


def call(tool: Tool, arguments: Mapping[str, Any], catalog: Catalog) -> Called:
    """Call a tool; raises BadArguments for what it does not take or the catalog does not have."""
    values = read_arguments(tool.arguments, tool.required, arguments)
    inquiry = Inquiry(catalog)
    try:
        reply = tool.run(inquiry, values)
    except (BadQuery, BadWorkload, NotFound, ValidationError) as error:
        raise to_bad_arguments(error, tool.arguments, arguments) from None
    longer = "limit" in values or "fields" in values
    content = shorten(reply, MAX_TOKENS_WITH_LIMIT if longer else MAX_TOKENS)
    return Called(text=reply.text, content=content, asked=tuple(inquiry.asked))


MAX_TOKENS = 1_500
"""The most tokens of a reply whose length was not asked for; what hosts cut is far above it."""
MAX_TOKENS_WITH_LIMIT = 12_000
"""The most of a reply to a call that gives `limit` or `fields`: half of what common hosts cut."""

BYTES_PER_TOKEN = 2.35
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
