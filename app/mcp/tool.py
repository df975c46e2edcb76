"""What a tool is: its arguments, what it asks the catalog, and the reply that it makes of the answers."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, get_args

from app.catalog.purchases import PURCHASE_MODELS
from app.catalog.queries.lookups import resolve_gpus
from app.catalog.queries.params import Os, SizeParams
from app.errors import BadQuery
from app.mcp.arguments import Argument, input_schema, read_count, read_purchase, read_texts, read_word
from app.questions import Inquiry


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
