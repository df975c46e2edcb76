"""What a tool is, how plain spellings of its arguments become values (`32k`, `80 GB`), how a reply is kept short.

The SDK would drop an argument that a tool does not have, and answer another question than was asked; so names are
checked here first.
"""

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args, get_origin

from pydantic import ValidationError

from app.catalog.names import as_written
from app.catalog.purchases import PURCHASE_MODELS
from app.catalog.queries.facets import FLAG_FACETS
from app.catalog.queries.lookups import resolve_gpus
from app.catalog.queries.params import (
    BOTH_SPELLINGS,
    Count,
    Gib,
    GpuCount,
    LowerText,
    Os,
    Quantity,
    SizeFilter,
    as_given,
    is_multi_valued,
    other_spellings,
)
from app.catalog.queries.snapshot import Catalog
from app.errors import BadQuery, BadWorkload, NotFound
from app.nearest import did_you_mean, nearest, only_bound
from app.questions import Inquiry
from app.validation import MAX_ERRORS, display_value, explain, truncate

FEATURES = tuple(name for name in dict.fromkeys(("nvlink", *FLAG_FACETS)) if name not in ("verified", "disputed"))
"""The fields of a size that are true or false, as the argument `features` takes them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Argument:
    """An argument of a tool.

    `type` and `description` are of its JSON Schema; `read` turns what is given into a value of the parameter that
    the argument sets, `sets` is that parameter where it has another name: `constraints.regions`. `units` are words
    that may follow a number, beside the one that the name of the argument has.
    """

    type: str
    description: str = ""
    sets: str = ""
    read: Callable[[Any], Any] = lambda value: value
    allowed: tuple[str, ...] = ()
    units: tuple[str, ...] = ()

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of a value."""
        shown = {"type": self.type, "enum": list(self.allowed), "description": self.description}
        return {name: value for name, value in shown.items() if value}


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgumentError:
    """What is wrong with one argument: its value, and what is allowed; `suggestions` can be sent instead."""

    field: str
    value: str | None
    allowed: str
    suggestions: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The error in one line: `region=atlantis: no such region`."""
        return f"{self.field}{'' if self.value is None else f'={self.value}'}: {self.allowed}"


class BadArguments(Exception):
    """Arguments that a tool does not take; long texts are cut, as an error may repeat a whole file."""

    def __init__(self, errors: Sequence[ArgumentError]) -> None:
        self.errors = tuple(
            replace(error, value=error.value and truncate(error.value, 200), allowed=truncate(error.allowed, 2_000))
            for error in errors[:MAX_ERRORS]
        )
        super().__init__("; ".join(error.text for error in self.errors))


def read_arguments(
    arguments: Mapping[str, Argument], required: Sequence[str], given: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the given arguments as values; null and empty ones are absent. A bound may be named after its field.

    Raises BadArguments for names that there are not, with the nearest one, and for values that cannot be read.
    """
    bounds = {spelling: name for spelling, name in other_spellings(SizeFilter).items() if name in arguments}
    accepted = arguments.keys() | bounds.keys()
    errors = [_unknown(name, value, arguments) for name, value in given.items() if name not in accepted]
    errors += [
        ArgumentError(
            field=spelling,
            value=_as_sent(given[spelling]),
            allowed=BOTH_SPELLINGS.format(spelling=spelling, name=name),
        )
        for spelling, name in bounds.items()
        if spelling in given and name in given
    ]
    values: dict[str, Any] = {}
    for spelling, value in given.items():
        if spelling not in accepted or value in (None, "", [], {}):
            continue
        name = bounds.get(spelling, spelling)
        read = arguments[name].read
        if name != spelling and read is read_gbps:
            read = read_mbps
        try:
            values[name] = read(_without_unit(value, spelling, arguments[name].units))
        except ValueError as error:
            errors.append(ArgumentError(field=spelling, value=_as_sent(value), allowed=str(error)))
    errors += [
        ArgumentError(field=name, value=None, allowed="is required")
        for name in required
        if name not in values and name not in {error.field for error in errors}
    ]
    if errors:
        raise BadArguments(errors)
    return values


def _without_unit(value: Any, name: str, units: Sequence[str]) -> Any:
    """Return a text without the unit of its argument: `32` for users=`32 users`, `500` for ttft_ms=`500ms`."""
    if not isinstance(value, str):
        return value
    amount, _, period = re.sub("^(min|max)_", "", name).partition("_per_")
    words = "|".join(re.sub("(?<=[a-z]{2})s$", "s?", unit) for unit in (amount.rpartition("_")[2], *units))
    rate = rf"\s*(/|per\b|an?\b)\s*({period}|{period[0]})" if period else ""
    written = re.fullmatch(rf"(\$?\s*\d[\d.,_/]*)\s*(({words})({rate})?|{rate})", value.strip(), re.IGNORECASE)
    return written[1] if written else value


def _as_sent(value: Any) -> str | None:
    """Return a value as JSON if it is a list or an object, which may be what is wrong with it."""
    return to_json(value) if isinstance(value, list | dict) else display_value(value)


def _unknown(name: str, value: Any, arguments: Mapping[str, Argument]) -> ArgumentError:
    near = nearest(name, arguments)
    flag = f"write features={name}" if name in FEATURES and "features" in arguments else ""
    hint = flag or did_you_mean(near, sent=name) or only_bound(name, arguments) or f"there are {', '.join(arguments)}"
    return ArgumentError(
        field=name, value=_as_sent(value), allowed=f"there is no such argument; {hint}", suggestions=near
    )


def to_bad_arguments(error: Exception, arguments: Mapping[str, Argument], given: Mapping[str, Any]) -> BadArguments:
    """Return an error of a query or a body as one about the arguments that set its fields."""
    if isinstance(error, NotFound):
        field = "sizes" if error.kind == "size" and "size" not in arguments else error.kind
        errors = [ArgumentError(field=field, value=error.name, allowed=str(error), suggestions=error.suggestions)]
    elif isinstance(error, BadQuery | BadWorkload):
        allowed = error.allowed if isinstance(error, BadQuery) else error.detail
        name = _argument_of(error.field, arguments)
        value = _as_sent(given.get(name)) if error.value is None else as_written(str(error.value))
        for pattern, instead in _FOR_AGENTS.items():
            allowed = re.sub(pattern, instead, allowed)
        errors = [ArgumentError(field=name, value=value, allowed=allowed)]
    elif isinstance(error, ValidationError):
        errors = []
        for fault in error.errors():
            path = ".".join(step for step in fault["loc"] if isinstance(step, str))
            name = as_given(_argument_of(path, arguments), given)
            value = _as_sent(given.get(name, fault.get("input")))
            errors.append(ArgumentError(field=name, value=value, allowed=explain(fault)))
    else:
        raise error
    return BadArguments(errors)


_FOR_AGENTS = {
    r"GET /\w+ lists them(?=: )": "there are",
    r"GET /sizes lists them": "find_sizes finds them",
    r"GET /series lists them": "explain_size says the series of a size",
    r"GET /\w+ lists them": "find_sizes without it names some in its items",
    r"; (GET /regions says|inference\.allow_longer_context takes) .*": "",
    r"A body of the API may give architecture or config instead": "vmsizes://models lists them",
}
"""What an agent can do instead of what an error of the API advises: endpoints and fields that no tool has."""


def _argument_of(path: str, arguments: Mapping[str, Argument]) -> str:
    """Return the argument that sets a parameter or a path of a body; the path itself where none does."""
    return next((name for name, argument in arguments.items() if path in (argument.sets, name)), path)


def read_texts(value: Any) -> list[str]:
    """Return the texts of a list, or of a text with commas."""
    values = value if isinstance(value, list | tuple) else [value]
    if not all(isinstance(text, str) for text in values):
        raise ValueError("expected a string; several are separated by commas")
    return [part.strip() for text in values for part in text.split(",") if part.strip()]


def read_size(value: Any) -> str:
    """Return the name of a size."""
    if not isinstance(value, str):
        raise ValueError("expected the name of a size")  # noqa: TRY004  # told to the agent like any wrong value
    return value


def read_sizes(value: Any) -> list[str]:
    """Return the names of several sizes, separated by commas or words: `A, B and C`, `A vs B`."""
    joined = re.compile(r"\s+(?:and|vs\.?|versus)\s+", re.IGNORECASE)
    parts = (part for text in read_texts(value) for part in joined.split(f" {text}"))
    return [part.strip() for part in parts if part.strip()]


_AMOUNT = re.compile(r"\$?\s*([\d,_]*\.?\d+(?:e\+?\d+)?)\s*([a-z]*)\.?", re.IGNORECASE)
_GIB = {"": 1, "g": 1, "gb": 1, "gib": 1, "t": 1024, "tb": 1024, "tib": 1024}
_TOKENS = {"": 1, "tokens": 1, "k": 1024, "ki": 1024, "m": 1024**2}
_JOB_TOKENS = {"": 1, "tokens": 1, "k": 10**3, "m": 10**6, "b": 10**9, "g": 10**9, "t": 10**12}


def read_number(value: Any) -> Any:
    """Return a number, also one that is written as a text: `8`, `$3.50`, `1,000`."""
    return _scaled(value, {"": 1, "usd": 1}, "expected a number")


def read_count(value: Any) -> Any:
    """Return a whole number, also one that is written as a text."""
    number = read_number(value)
    return int(number) if isinstance(number, float) and number.is_integer() else number


def read_gib(value: Any) -> Any:
    """Return an amount of memory in GiB: `80`, `80 GB` (which vendors write for GiB), `1.5 TiB`."""
    return _scaled(value, _GIB, "expected GiB, such as 80, 80 GiB or 1.5 TiB")


def read_gbps(value: Any) -> Any:
    """Return a bandwidth in Gbps: `80`, `80 Gbps`, `100 Gbit/s`."""
    text = re.sub(r"(?i)\s*(gbps|gbit/?s?|gb/s)$", "", value) if isinstance(value, str) else value
    return read_number(text)


def read_mbps(value: Any) -> Any:
    """Return the Gbps of a bandwidth in Mbps: `12500`, `12,500`."""
    mbps = read_number(value)
    return mbps / 1000 if isinstance(mbps, int | float) else mbps


def read_tokens(value: Any) -> Any:
    """Return a number of tokens: `8192`, `32k` (32,768, as contexts are named), `1M`."""
    number = _scaled(value, _TOKENS, "expected tokens, such as 8192 or 32k")
    return int(number) if isinstance(number, float) and number.is_integer() else number


def read_job_tokens(value: Any) -> Any:
    """Return the tokens of a training: `1e9`, `100M`, `1B`, in powers of 1,000."""
    return _scaled(value, _JOB_TOKENS, "expected tokens, such as 1e9, 100M or 1B")


def _scaled(value: Any, units: Mapping[str, int], expected: str) -> Any:
    if not isinstance(value, str):
        return value
    written = _AMOUNT.fullmatch(value.strip())
    if written is None or written[2].lower() not in units:
        raise ValueError(expected)
    return float(written[1].replace(",", "").replace("_", "")) * units[written[2].lower()]


def read_gpus(value: Any) -> Any:
    """Return a number of GPUs: a whole one, or a part such as `1/6`."""
    return value if isinstance(value, str) else str(value)


def read_word(value: Any) -> Any:
    """Return a word of a fixed set: lower case, blanks and hyphens as underscores."""
    return re.sub(r"[\s-]+", "_", value.strip().lower()) if isinstance(value, str) else value


def read_words(value: Any) -> list[str]:
    """Return words of a fixed set."""
    return [read_word(text) for text in read_texts(value)]


_BY_TYPE: Sequence[tuple[Any, str, Callable[[Any], Any]]] = (
    (Gib, "number", read_gib),
    (Count, "number", read_count),
    (GpuCount, "string", read_gpus),
    (Quantity, "number", read_gbps),
    (LowerText, "string", str),
)
"""The JSON type and the reader of a filter's value by the type of its parameter."""


def filter_argument(name: str, description: str = "") -> Argument:
    """Return the argument that sets a filter of sizes, by the type of its parameter."""
    field = SizeFilter.model_fields[name]
    kind, *_ = get_args(field.annotation)
    if is_multi_valued(field):
        of_words = get_origin(kind) is Literal
        return Argument(type="string", description=description, read=read_words if of_words else read_texts)
    if get_origin(kind) is Literal:
        return Argument(type="string", description=description, allowed=get_args(kind), read=read_word)
    json_type, read = next((json_type, read) for handled, json_type, read in _BY_TYPE if handled == kind)
    return Argument(type=json_type, description=description, read=read)


def read_purchase(value: Any) -> Any:
    """Return a purchase model: `On demand`, `pay as you go`, `3-year reserved`, `savings plan 1 year`."""
    word = read_word(value)
    if not isinstance(word, str) or word in PURCHASE_MODELS:
        return word
    if word in ("payg", "pay_as_you_go", "ondemand", "list"):
        return "on_demand"
    kind = "reserved" if re.search(r"reserv|(^|_)ri(_|$)", word) else "savings" if "saving" in word else ""
    years = re.search(r"1|one|3|three", word)
    if kind and years:
        return f"{kind}_{'1y' if years[0] in ('1', 'one') else '3y'}"
    return word


def find_gpus(inquiry: Inquiry, names: Sequence[str]) -> list[str]:
    """Return globs for all GPUs that are called so; raises BadQuery for a name that no GPU has.

    `A100 80GB` is the name of one model, and of all A100 with 80 GB for those who ask for them.
    """
    gpus = inquiry.catalog.snapshot.gpus
    models = dict.fromkeys(resolve_gpus(gpus, names))
    for name in names:
        with suppress(BadQuery):
            models |= dict.fromkeys(resolve_gpus(gpus, [f"gpu {name}"]))
    return list(models)


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
    """A tool: `output` are the properties of its structured content, of which those of `always` are always there.

    `omitted` and `narrow` say what a reply leaves out; the instructions explain them once for all tools.
    """

    name: str
    description: str
    arguments: Mapping[str, Argument]
    output: Mapping[str, Any]
    always: Sequence[str]
    run: Callable[[Inquiry, dict[str, Any]], Reply]
    required: Sequence[str] = ()

    @property
    def input_schema(self) -> dict[str, Any]:
        """The JSON Schema of the arguments; others are forbidden."""
        properties = {name: argument.schema for name, argument in self.arguments.items()}
        schema = {"type": "object", "properties": properties, "additionalProperties": False}
        return schema | ({"required": list(self.required)} if self.required else {})

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


def more_by_limit(values: Mapping[str, Any], default: int) -> str:
    """Return the advice that a larger limit shows more, unless the largest was given."""
    return f"; limit shows up to {MAX_ITEMS}" if values.get("limit", default) < MAX_ITEMS else ""


GPU = REGION = Argument(type="string", read=read_texts)
OS = Argument(type="string", allowed=get_args(Os), read=read_word)
PURCHASE = Argument(type="string", allowed=PURCHASE_MODELS, read=read_purchase)
SAME_PURCHASE = Argument(type="string", read=read_purchase)
DAY = CURRENCY = Argument(type="string")
"""find_sizes describes these, regions and ways to buy for all tools."""
FIELDS = Argument(type="string", description="only these, with commas", read=read_texts)

LIST: Mapping[str, Any] = {"type": "array"}
OBJECT: Mapping[str, Any] = {"type": "object"}
TEXT: Mapping[str, Any] = {"type": "string"}


def given(values: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Return those of the named values that are given."""
    return {name: values[name] for name in names if name in values}


def mark_unverified(size: str, *, verified: bool) -> str:
    """Return the name of a size for a line of text, with a remark if it is not verified."""
    return size if verified else f"{size} (not verified: no vendor page names it, or it is withdrawn)"


_MOST_RULES = 3


def adjustment_of(priced: Mapping[str, Any]) -> dict[str, Any]:
    """Return the `adjustment` of a row with a price: its list price and first rules; empty if there is none."""
    if not (adjustment := priced.get("adjustment")):
        return {}
    rules = adjustment["rules"]
    more = [f"{len(rules) - _MOST_RULES} more"] if len(rules) > _MOST_RULES else []
    return {"adjustment": {**adjustment, "rules": [*rules[:_MOST_RULES], *more]}}


def list_price_text(priced: Mapping[str, Any]) -> str:
    """Return the list price to append to what is paid in a line of text; empty if no rule changes it."""
    adjustment = priced.get("adjustment")
    return f" (list {adjustment['list_usd_per_hour']})" if adjustment else ""


# A call


def call(tool: Tool, arguments: Mapping[str, Any], catalog: Catalog) -> tuple[Reply, Inquiry]:
    """Return a tool's reply, short enough, and what it asked.

    Raises BadArguments for what the tool does not take or the catalog does not have.
    """
    values = read_arguments(tool.arguments, tool.required, arguments)
    inquiry = Inquiry(catalog)
    try:
        reply = tool.run(inquiry, values)
    except BadArguments as error:
        sent = [replace(wrong, value=_as_sent(arguments.get(wrong.field))) for wrong in error.errors]
        raise BadArguments(sent) from None
    except (BadQuery, BadWorkload, NotFound, ValidationError) as error:
        raise to_bad_arguments(error, tool.arguments, arguments) from None
    longer = "limit" in values or "fields" in values
    content = shorten(reply, MAX_TOKENS_WITH_LIMIT if longer else MAX_TOKENS)
    return replace(reply, content=content), inquiry


MAX_TOKENS = 1_500
"""The most tokens of a reply whose length was not asked for; what hosts cut is far above it."""
MAX_TOKENS_WITH_LIMIT = 12_000
"""The most of a reply to a call that gives `limit` or `fields`: half of what common hosts cut."""

BYTES_PER_TOKEN = 2.35
"""A lower bound of the bytes of JSON that a token takes in replies, so that estimates are never too small."""


def estimate_tokens(text: str, content: Any) -> int:
    """Return an upper estimate of the tokens of a reply: its line of text, and its content as compact JSON."""
    return round(len(f"{text}{to_json(content)}".encode()) / BYTES_PER_TOKEN)


def to_json(content: Any) -> str:
    """Return content as compact JSON."""
    return json.dumps(content, separators=(",", ":"), ensure_ascii=False)


def shorten(reply: Reply, max_tokens: int) -> dict[str, Any]:
    """Return the content of a reply, its lists cut until it is short enough, with what was left out.

    The list that comes first in `lists` is cut first, down to one item, then the next one.
    """
    content = dict(reply.content)
    totals = {name: max(reply.totals.get(name, 0), len(content[name])) for name in reply.lists}

    def tokens(cut: dict[str, Any]) -> int:
        return estimate_tokens(reply.text, _with_omissions(cut, reply, totals))

    for name in reply.lists:
        if tokens(content) > max_tokens:
            items = content[name]
            kept = bisect_right(
                range(1, len(items)), max_tokens, key=lambda count: tokens(content | {name: items[:count]})
            )
            content[name] = items[: max(1, kept)]
    return _with_omissions(content, reply, totals)


def _with_omissions(content: dict[str, Any], reply: Reply, totals: dict[str, int]) -> dict[str, Any]:
    omitted = {name: total - len(content[name]) for name, total in totals.items() if total > len(content[name])}
    return content | ({"omitted": omitted, "narrow": reply.narrow} if omitted else {})
