"""Command-line options made from a question's model, so that the API and the command line ask the same things."""

import inspect
import re
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from difflib import get_close_matches
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import typer
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from typer.core import TyperCommand, TyperGroup

from app.catalog.queries.params import is_multi_valued
from app.errors import BadQuery
from app.validation import display_value, explain

_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "b": 3, "t": 4}
_AMOUNT = re.compile(r"(?P<number>\d[\d_,]*(?:\.\d+)?(?:e\+?\d{1,2})?)\s*(?P<suffix>[kmgbt]?)i?", re.IGNORECASE)


def amount_parser(base: int) -> Callable[[Any], Any]:
    """Read a whole amount with a suffix: k, M, G (or B) and T are powers of `base`."""

    def read(text: Any) -> Any:
        written = _AMOUNT.fullmatch(str(text).strip())
        if written is None:
            raise typer.BadParameter(f"{text!r} is no amount; write 32768, 1e8, 32k, 100M, 2G or 1T")
        value = Decimal(re.sub(r"[_,]", "", written["number"])) * base ** _POWERS[written["suffix"].lower()]
        if value != value.to_integral_value():
            raise typer.BadParameter(f"{text!r} is {value.normalize():f}, and must be a whole number")
        return int(value)

    read.__name__ = "amount"
    return read


_DTYPE_ALIASES = {
    "float32": "fp32", "float": "fp32", "single": "fp32", "float16": "fp16", "half": "fp16", "16bit": None,
    "bfloat16": "bf16", "float8": "fp8", "e4m3": "fp8", "e5m2": "fp8", "fp8_e4m3": "fp8", "fp8_e5m2": "fp8",
    "float8_e4m3fn": "fp8", "float8_e4m3": "fp8", "float8_e5m2": "fp8", "awq": "awq_int4", "gptq": "gptq_int4",
    "float4": "fp4", "mx4": "mxfp4", "nvfp": "nvfp4", "w8a8": None, "32bit": "fp32",
}  # fmt: skip
"""Other spellings of types of numbers; None where one means several of them."""
_AMBIGUOUS_DTYPES = {
    "4bit": ("int4", "awq_int4", "gptq_int4", "nf4", "fp4", "mxfp4", "nvfp4"),
    "8bit": ("int8", "fp8"),
    "16bit": ("bf16", "fp16"),
    "w8a8": ("int8", "fp8"),
    "q4": ("gguf_q4_k_m", "gguf_q4_k_s"),
    "gguf": ("gguf_q4_k_m", "gguf_q5_k_m", "gguf_q6_k", "gguf_q8_0"),
}
"""What says less than a type: which could be meant."""


def parse_dtype(text: Any) -> Any:
    """Read a type of numbers in any case and common spelling; one that means several, or none, names the nearest."""
    from app.fit.formulas.memory import BITS

    word = str(text).strip().lower().replace("-", "_")
    word = re.sub(r"^(\d+)_bits?$", r"\1bit", word)
    for known in (word, _DTYPE_ALIASES.get(word), f"gguf_{word}"):
        if known in BITS:
            return known
    meant = _AMBIGUOUS_DTYPES.get(word) or get_close_matches(word, BITS, 4, 0.5)
    nearest = f"it could be {', '.join(meant)}" if meant else "common ones are bf16, fp16, fp8, int8, int4, mxfp4"
    raise typer.BadParameter(f"{text!r} is no type of numbers; {nearest}; --help lists all")


_GPU_AND_COUNT = re.compile(r"(?P<gpu>.+):(?P<count>\d+(?:\.\d+)?(?:/\d+)?)")


def parse_gpu_and_count(text: str) -> tuple[str, str | None]:
    """Split `H100:8` into a GPU and how many of it, as others write it."""
    written = _GPU_AND_COUNT.fullmatch(text.strip())
    return (written["gpu"], written["count"]) if written else (text.strip(), None)


MAX_METAVAR_CHOICES = 6
"""So many words stand in the place of the value (`--os linux|windows`); more of them are listed in the text."""


def choices_of(annotation: Any) -> tuple[str, ...]:
    """The words that a type takes, where it takes but a few."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return tuple(map(str, arguments))
    if origin in (Annotated, tuple):
        return choices_of(arguments[0])
    if origin in (Union, types.UnionType):
        return next((words for words in map(choices_of, arguments) if words), ())
    return ()


def sort_keys() -> tuple[str, ...]:
    """What sizes are sorted by."""
    from app.catalog.queries.params import SORT_KEYS

    return SORT_KEYS


def dtypes() -> tuple[str, ...]:
    """Types of weights."""
    from app.fit.formulas.memory import BITS

    return tuple(BITS)


def recipes() -> tuple[str, ...]:
    """Recipes of training."""
    from app.fit.formulas.optimizer import RECIPES

    return tuple(RECIPES)


def _catalog_column(table: str, column: str) -> Callable[[], Sequence[str]]:
    def read() -> Sequence[str]:
        from sqlalchemy import select
        from sqlalchemy.exc import SQLAlchemyError

        from app.catalog.models import Size
        from app.db.engines import make_engine, read_session
        from app.settings import Settings

        of = Size.metadata.tables[table].c[column]
        try:
            with read_session(make_engine(Settings().database_url, pooled=False)) as session:
                return tuple(session.execute(select(of).order_by(of)).scalars())
        except (SQLAlchemyError, ImportError, ValueError):  # nobody waits for a message while completing a word
            return ()

    return read


size_names = _catalog_column("size", "name")
model_ids = _catalog_column("model", "id")
gpu_ids = _catalog_column("gpu", "id")
region_codes = _catalog_column("region", "code")
series_ids = _catalog_column("series", "id")

CHOICES: Mapping[str, Callable[[], Sequence[str]]] = {
    "dtype": dtypes,
    "kv_dtype": dtypes,
    "recipe": recipes,
}
"""Words of options whose type does not say them, by the name of the option."""

CATALOG_VALUES: Mapping[str, Callable[[], Sequence[str]]] = {
    "region": region_codes,
    "available_in": region_codes,
    "gpu": gpu_ids,
    "series": series_ids,
    "model": model_ids,
    "name": size_names,
    "baseline": size_names,
    "subject": size_names,
    "size": size_names,
}
"""What the catalog has, by the name of the option."""


def _spellings(word: str) -> Iterator[str]:
    """How a word may be written: a shell only takes what goes on as it was begun."""
    short = word.removeprefix("Standard_")
    yield from (word, word.lower(), short, short.lower(), f"-{word}")


def completer(words: Callable[[], Iterable[str]], *, several: bool = False) -> Callable[[str], list[str]]:
    """Complete a word as it was begun; of several values, with commas between them, the last one."""

    def complete(incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",") if several else ("", "", incomplete)
        forms = (next((form for form in _spellings(word) if form.startswith(last)), None) for word in words())
        return [f"{before}{comma}{form}" for form in forms if form is not None]

    return complete


SIZE_ARGUMENT = typer.Argument(
    help="The size, in any case, with or without `Standard_`.", autocompletion=completer(size_names)
)
"""The argument that is a size."""


Params = TypeVar("Params", bound=BaseModel)
Choices = Mapping[str, Callable[[], Sequence[str]]]


@dataclass(frozen=True, slots=True)
class ParsedBy:
    """In the annotation of a field: how its option is read from a text."""

    parse: Callable[[Any], Any]


def query_options(
    *models: type[BaseModel], leave_out: frozenset[str] = frozenset({"fields"}), choices: Choices | None = None
) -> Callable[[Any], Any]:
    """Give a command one option for each field of one or several models; the command gets them as `given`.

    A list's `fields` are left out, which `--columns` says here. `words` lists what an option takes where its type does
    not say it.
    """

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        own = [p for p in inspect.signature(command).parameters.values() if p.kind is not p.VAR_KEYWORD]
        fields = {
            name: (field, _heading(model, name)) for model in models for name, field in model.model_fields.items()
        }
        options = [
            _make_option(name, field, heading, {**CHOICES, **(choices or {})})
            for name, (field, heading) in fields.items()
            if name not in leave_out
        ]
        signature = inspect.Signature([*own, *options])

        def run(**values: Any) -> Any:
            return command(**values)

        run.__signature__ = signature  # type: ignore[attr-defined]  # what Typer reads the options from
        run.__doc__, run.__name__ = command.__doc__, command.__name__
        run.__annotations__ = {p.name: p.annotation for p in signature.parameters.values()}
        return run

    return decorate


def _heading(model: type[BaseModel], name: str) -> str | None:
    """The title of the model, among its bases, that brings a field."""
    for base in reversed(model.__mro__):
        if name in getattr(base, "__annotations__", {}) and issubclass(base, BaseModel):
            return _HEADINGS.get(base.__name__)
    return None


_HEADINGS = {
    "SizeSelection": "Which sizes",
    "SizeRequirements": "What a VM must have",
    "SizeFilter": "What a VM may have at most",
    "OfferParams": "Whose prices",
    "ModelOptions": "A model and its use",
    "GpuOptions": "GPUs by their figures",
    "PageParams": "Order and page",
    "SizeList": "Order and page",
}


def parse_params(model: type[Params], values: dict[str, Any]) -> Params:
    """Make the question from the options that were given; raises BadQuestion naming the option."""
    try:
        return model(**{name: value for name, value in values.items() if value is not None and value != []})
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0]) if first["loc"] else "question"
        raise BadQuery(option_name(name), display_value(first.get("input")), explain(first)) from None


def option_name(name: str) -> str:
    """The option that sets a field."""
    return f"--{name.replace('_', '-')}"


def _make_option(name: str, field: FieldInfo, heading: str | None, choices: Choices) -> inspect.Parameter:
    many = is_multi_valued(field)
    read = _find_parser(field.annotation)
    kind: Any = list[str] if many else str if read else _cli_type(field.annotation)
    flag = option_name(name)
    words = choices_of(field.annotation) or (choices[name]() if name in choices else ())
    made = typer.Option(
        f"{flag}/--no-{flag[2:]}" if kind is bool else flag,
        help=_help_text(field, words),
        show_default=False,
        metavar=None if kind is bool else _metavar(kind, words),
        parser=read,
        rich_help_panel=heading,
        autocompletion=completer(lambda: words, several=many) if words else _catalog_completer(name, several=many),
    )
    optional: Any = kind if many else kind | None
    annotation: Any = Annotated[optional, made]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def _find_parser(annotation: Any) -> Callable[[Any], Any] | None:
    if isinstance(annotation, ParsedBy):
        return annotation.parse
    return next(filter(None, map(_find_parser, get_args(annotation))), None)


def _catalog_completer(name: str, *, several: bool) -> Callable[[str], list[str]] | None:
    return completer(CATALOG_VALUES[name], several=several) if name in CATALOG_VALUES else None


def _help_text(field: FieldInfo, words: Sequence[str]) -> str:
    text = field.description or ""
    if len(words) > MAX_METAVAR_CHOICES and words[-1] not in text:
        text += f" One of {', '.join(words)}."
    return text + (f" (default: {_default_text(field.default)})" if field.default else "")


def _metavar(kind: Any, words: Sequence[str]) -> str:
    if words:
        return "|".join(words) if len(words) <= MAX_METAVAR_CHOICES else "NAME"
    return {list[str]: "A,B", int: "N"}.get(kind, "VALUE")


def _cli_type(annotation: Any) -> type:
    """The type that the command line reads; what only the model can check is read as text."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _cli_type(arguments[0])
    if origin in (Union, types.UnionType):
        return _cli_type(next(argument for argument in arguments if argument is not type(None)))
    if origin is Literal or annotation in (Decimal, float):
        return str
    return annotation if annotation in (int, bool) else str


def _default_text(default: Any) -> str:
    return ", ".join(default) if isinstance(default, tuple) else str(default)


HEADING_ORDER = (
    *("Arguments", "A model and its use", "GPUs by their figures", "Which sizes", "What a VM must have"),
    *("What a VM may have at most", "Whose prices", "Order and page", "Output", "Options"),
)
"""The headings, as far as a command has options under them; others come before the last."""


class Command(TyperCommand):
    """A command whose help tells its options in groups; a name too long for its column has its text below it."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments, then the options under their headings."""
        groups: dict[str, list[tuple[str, str]]] = {heading: [] for heading in HEADING_ORDER}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is None:
                continue
            if param.param_type_name == "argument":
                groups["Arguments"].append((param.metavar or param.name.upper(), record[1]))
            else:
                groups.setdefault(getattr(param, "rich_help_panel", None) or "Options", []).append(record)
        groups["Options"] = groups.pop("Options")
        for heading, records in groups.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)


class Group(TyperGroup):
    """A group of commands, of each of which the help tells the whole of what it does."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands with their texts."""
        commands = ((name, self.get_command(ctx, name)) for name in self.list_commands(ctx))
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.help or "") for name, command in commands if command is not None])
