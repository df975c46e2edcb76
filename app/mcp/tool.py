"""What a tool is, how it is called without any protocol, and how its reply is kept short."""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, get_args

from pydantic import ValidationError

from app.catalog.purchases import PURCHASE_MODELS
from app.catalog.queries.lookups import resolve_gpus
from app.catalog.queries.params import Os, SizeParams
from app.catalog.queries.snapshot import Catalog
from app.errors import BadQuery, BadWorkload, NotFound
from app.mcp.arguments import (
    Argument,
    input_schema,
    read_arguments,
    read_count,
    read_purchase,
    read_texts,
    read_word,
    to_bad_arguments,
)
from app.questions import Inquiry, Question


def find_gpus(inquiry: Inquiry, names: Sequence[str]) -> list[str]:
    """Return globs for all GPUs that are called so; raises BadQuery for a name that no GPU has.

    `A100 80GB` is the name of one model, and of all A100 with 80 GB for those who ask for them.
    """
    known = inquiry.catalog.snapshot.gpus
    found = dict.fromkeys(resolve_gpus(known, names))
    for name in names:
        with suppress(BadQuery):
            found |= dict.fromkeys(resolve_gpus(known, [f"gpu {name}"]))
    return list(found)


def ask_name(inquiry: Inquiry, name: str) -> str:
    """Return the full name of a size by any of its names; raises NotFound."""
    full_name: str = inquiry.ask("GET /sizes/{name}", SizeParams(), name)["name"]
    return full_name


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a tool replies: one line of text, and structured content.

    `lists` are keys of the content whose lists may be shortened to keep a reply short, the first one first; `totals`
    how many items each has in all, and `narrow` says which arguments leave fewer.
    """

    text: str
    content: dict[str, Any]
    lists: Sequence[str] = ()
    totals: Mapping[str, int] = field(default_factory=dict)
    narrow: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool: `output` are the properties of its structured content, of which those of `always` are always there."""

    name: str
    description: str
    arguments: Mapping[str, Argument]
    output: Mapping[str, Any]
    always: Sequence[str]
    run: Callable[[Inquiry, dict[str, Any]], Reply]
    required: Sequence[str] = ()

    @property
    def input_schema(self) -> dict[str, Any]:
        """The JSON Schema of the arguments."""
        return input_schema(self.arguments, self.required)

    @property
    def output_schema(self) -> dict[str, Any]:
        """The JSON Schema of the structured content."""
        return {"type": "object", "properties": dict(self.output), "required": list(self.always)}


MAX_ITEMS = 50


def read_limit(value: Any) -> int:
    """Return how many items a reply may have, 1 to 50."""
    number = read_count(value)
    if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= MAX_ITEMS:
        raise ValueError(f"must be a whole number from 1 to {MAX_ITEMS}")
    return number


GPU = Argument(type="string", read=read_texts)
REGION = Argument(type="string", description="eastus or 'East US'; several with commas", read=read_texts)
OS = Argument(type="string", allowed=get_args(Os), read=read_word)
PURCHASE = Argument(type="string", allowed=PURCHASE_MODELS, read=read_purchase)
SAME_PURCHASE = Argument(type="string", description="as in find_sizes", read=read_purchase)
DAY = Argument(type="string", description="prices of a day, YYYY-MM-DD")
CURRENCY = Argument(type="string", description="ISO 4217, beside USD")
FIELDS = Argument(type="string", description="only these, with commas", read=read_texts)

LIST: Mapping[str, Any] = {"type": "array"}
OBJECT: Mapping[str, Any] = {"type": "object"}
TEXT: Mapping[str, Any] = {"type": "string"}
NUMBER: Mapping[str, Any] = {"type": "number"}
OMITTED: Mapping[str, Any] = {"omitted": OBJECT, "narrow": TEXT}
"""The properties that say what was left out of a reply."""


def given(values: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Return those of the named values that are given."""
    return {name: values[name] for name in names if name in values}


def mark_unverified(size: str, *, verified: bool) -> str:
    """Return the name of a size for a line of text, with a remark if it is not verified."""
    return size if verified else f"{size} (not verified: no vendor page names it, or it is withdrawn)"


def plural(number: int, noun: str) -> str:
    """Return `1 size`, `2 sizes`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


# A call


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
