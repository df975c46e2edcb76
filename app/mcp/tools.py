"""The five tools, and a call of one without any protocol."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from app.catalog.queries.snapshot import Catalog
from app.converters.questions import Question
from app.errors import BadQuery, BadWorkload, NotFound
from app.mcp import compare_sizes, explain_size, find_sizes, fit_workload, price_history
from app.mcp.arguments import read_arguments, to_bad_arguments
from app.mcp.budget import MAX_TOKENS, MAX_TOKENS_WITH_LIMIT, shorten
from app.mcp.tool import Inquiry, Tool

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
