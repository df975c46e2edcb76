"""Makes command-line options from the models of the API's parameters, so that both take the same things.

Also here: the options of commands about language models, which have no such model since the API takes them as a body,
shell completion, and the layout of help.
"""

import inspect
import re
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from difflib import get_close_matches
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import typer
from pydantic import BaseModel, Field, ValidationError
from pydantic.fields import FieldInfo
from typer.core import TyperCommand, TyperGroup

from app.catalog.providers import DEFAULT_PROVIDER
from app.catalog.queries.params import (
    GIB,
    CurrencyParams,
    OfferParams,
    PageParams,
    PriceDayParams,
    SizeFilter,
    SizeList,
    SizeRequirements,
    SizeSelection,
    is_multi_valued,
)
from app.errors import BadQuery
from app.validation import display_value, explain


@dataclass(frozen=True, slots=True)
class ParsedBy:
    """Annotates a field whose option has a parser of its own."""

    parse: Callable[[Any], Any]


_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "b": 3, "t": 4}
_AMOUNT = re.compile(r"(?P<number>\d[\d_,]*(?:\.\d+)?(?:e\+?\d{1,2})?)\s*(?P<suffix>[kmgbt]?)i?", re.IGNORECASE)


def amount_parser(base: int) -> Callable[[Any], Any]:
    """Return a parser of whole amounts in which the suffixes k, M, G (or B) and T are powers of `base`."""

    def parse(text: Any) -> Any:
        match = _AMOUNT.fullmatch(str(text).strip())
        if match is None:
            raise typer.BadParameter(f"{text!r} is not an amount; write 32768, 1e8, 32k, 100M, 2G or 1T")
        value = Decimal(re.sub(r"[_,]", "", match["number"])) * base ** _POWERS[match["suffix"].lower()]
        if value != value.to_integral_value():
            raise typer.BadParameter(f"{text!r} is {value.normalize():f}, and must be a whole number")
        return int(value)

    parse.__name__ = "amount"  # Typer shows it in messages
    return parse


_GIB = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>[gt])(?:i?b)?", re.IGNORECASE)


def parse_gib(text: Any) -> Any:
    """Return the GiB of `80GB` (which vendors write for GiB), `80 GiB` or `1.5 TiB`; any other text unchanged."""
    match = _GIB.fullmatch(str(text).strip())
    return str(Decimal(match["number"]) * (1024 if match["unit"] in "tT" else 1)) if match else text


_AMBIGUOUS_DTYPES = {
    "4bit": ("int4", "awq_int4", "gptq_int4", "nf4", "fp4", "mxfp4", "nvfp4"),
    "8bit": ("int8", "fp8"),
    "16bit": ("bf16", "fp16"),
    "w8a8": ("int8", "fp8"),
    "q4": ("gguf_q4_k_m", "gguf_q4_k_s"),
    "gguf": ("gguf_q4_k_m", "gguf_q5_k_m", "gguf_q6_k", "gguf_q8_0"),
}
"""Names that could mean several number types: refused, with the types they could mean."""


def parse_dtype(text: Any) -> Any:
    """Return the number type of a name in any case and common spelling; raises BadParameter naming the nearest."""
    from app.fit.formulas.data_types import BITS, to_dtype

    name = to_dtype(str(text))
    if name in BITS:
        return name
    near = _AMBIGUOUS_DTYPES.get(name) or get_close_matches(name, BITS, 4, 0.5)
    hint = f"it could be {', '.join(near)}" if near else "common ones are bf16, fp16, fp8, int8, int4, mxfp4"
    raise typer.BadParameter(f"{text!r} is not a number type; {hint}; --help lists all")


_GPU_AND_COUNT = re.compile(r"(?P<gpu>.+):(?P<count>\d+(?:\.\d+)?(?:/\d+)?)")


def parse_gpu_and_count(text: str) -> tuple[str, str | None]:
    """Split `H100:8`, as other tools write it, into the name of a GPU and the number of them."""
    match = _GPU_AND_COUNT.fullmatch(text.strip())
    return (match["gpu"], match["count"]) if match else (text.strip(), None)


# Choices and shell completion


Params = TypeVar("Params", bound=BaseModel)
Choices = Mapping[str, Callable[[], Sequence[str]]]

MAX_METAVAR_CHOICES = 6
"""Up to this many choices stand in place of the value (`--os linux|windows`); more are listed in the help text."""


def choices_of(annotation: Any) -> tuple[str, ...]:
    """Return the literal values that a type takes; none for any other type."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return tuple(map(str, arguments))
    if origin in (Annotated, tuple):
        return choices_of(arguments[0])
    if origin in (Union, types.UnionType):
        return next((choices for choices in map(choices_of, arguments) if choices), ())
    return ()


def sort_keys() -> tuple[str, ...]:
    """Return the keys by which sizes are sorted."""
    from app.catalog.queries.params import SORT_KEYS

    return SORT_KEYS


def dtypes() -> tuple[str, ...]:
    """Return the number types of weights."""
    from app.fit.formulas.data_types import BITS

    return tuple(BITS)


def recipes() -> tuple[str, ...]:
    """Return the names of the training recipes."""
    from app.fit.formulas.optimizer import RECIPES

    return tuple(RECIPES)


def _catalog_column(table: str, column: str) -> Callable[[], Sequence[str]]:
    def read() -> Sequence[str]:
        from sqlalchemy import select
        from sqlalchemy.exc import SQLAlchemyError

        from app.catalog.models import Size
        from app.db.engines import make_engine, read_session
        from app.settings import Settings

        names = Size.metadata.tables[table].c[column]
        try:
            with read_session(make_engine(Settings().database_url, pooled=False)) as session:
                return tuple(session.execute(select(names).order_by(names)).scalars())
        except (SQLAlchemyError, ImportError, ValueError):  # a message would end up in the line being completed
            return ()

    return read


size_names = _catalog_column("size", "name")
model_ids = _catalog_column("model", "id")
gpu_ids = _catalog_column("gpu", "id")
region_codes = _catalog_column("region", "code")
series_ids = _catalog_column("series", "id")

CHOICES: Choices = {
    "dtype": dtypes,
    "kv_dtype": dtypes,
    "recipe": recipes,
}
"""Choices of fields whose type does not name them."""

CATALOG_VALUES: Choices = {
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
"""Values of the catalog that complete a field."""


def _spellings(name: str) -> Iterator[str]:
    # A shell drops completions that do not continue what was typed, so each spelling is tried as typed.
    short = name.removeprefix(DEFAULT_PROVIDER.size_prefix)
    yield from (name, name.lower(), short, short.lower(), f"-{name}")


def completer(values: Callable[[], Iterable[str]], *, several: bool = False) -> Callable[[str], list[str]]:
    """Return a function that completes a value; of several values separated by commas, the last one."""

    def complete(incomplete: str) -> list[str]:
        before, comma, last = incomplete.rpartition(",") if several else ("", "", incomplete)
        spellings = (next((one for one in _spellings(name) if one.startswith(last)), None) for name in values())
        return [f"{before}{comma}{spelling}" for spelling in spellings if spelling is not None]

    return complete


SIZE_ARGUMENT = typer.Argument(
    help="The size, in any case, with or without `Standard_`.", autocompletion=completer(size_names)
)


# Options from models


def query_options(
    *models: type[BaseModel], leave_out: frozenset[str] = frozenset({"fields"}), choices: Choices | None = None
) -> Callable[[Any], Any]:
    """Decorate a command with one option per field of the models; it gets their values as keyword arguments.

    `fields` is left out by default: `--columns` does the same. `choices` adds choices that the type does not name.
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


def parse_params(model: type[Params], values: Mapping[str, Any]) -> Params:
    """Validate the options that were given as a model; raises BadQuery naming the option."""
    try:
        return model(**{name: value for name, value in values.items() if value is not None and value != []})
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0]) if first["loc"] else "question"
        raise BadQuery(option_name(name), display_value(first.get("input")), explain(first)) from None


def parse_body(model: type[Params], body: Mapping[str, Any]) -> Params:
    """Validate a body of the API whose values are those of options; raises BadQuery naming the option that is wrong."""
    from app.schemas.bodies import TEXT_VALUES

    try:
        return model.model_validate(body, context={TEXT_VALUES: True})
    except ValidationError as error:
        first = error.errors()[0]
        path = ".".join(str(part) for part in first["loc"] if isinstance(part, str))
        field = OPTION_OF_FIELD.get(path, path.rpartition(".")[2] or "question")
        raise BadQuery(option_name(field), display_value(first.get("input")), explain(first)) from None


def option_name(field: str) -> str:
    """Return the option that sets a field: `--min-gpus` for `min_gpus`."""
    return f"--{field.replace('_', '-')}"


def _make_option(name: str, field: FieldInfo, heading: str | None, choices_by_name: Choices) -> inspect.Parameter:
    several = is_multi_valued(field)
    parser = _find_parser(field.annotation)
    cli_type: Any = list[str] if several else str if parser else _cli_type(field.annotation)
    flag = option_name(name)
    choices = choices_of(field.annotation) or (choices_by_name[name]() if name in choices_by_name else ())
    values = (lambda: choices) if choices else CATALOG_VALUES.get(name)
    option = typer.Option(
        f"{flag}/--no-{flag[2:]}" if cli_type is bool else flag,
        help=_help_text(field, choices),
        show_default=False,
        metavar=None if cli_type is bool else _metavar(cli_type, choices),
        parser=parser,
        rich_help_panel=heading,
        autocompletion=completer(values, several=several) if values else None,
    )
    optional: Any = cli_type if several else cli_type | None
    annotation: Any = Annotated[optional, option]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def _find_parser(annotation: Any) -> Callable[[Any], Any] | None:
    if isinstance(annotation, ParsedBy):
        return annotation.parse
    if annotation == GIB:
        return parse_gib
    return next(filter(None, map(_find_parser, get_args(annotation))), None)


def _cli_type(annotation: Any) -> type:
    """Return the type that Typer parses; text for types that only the model can check."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _cli_type(arguments[0])
    if origin in (Union, types.UnionType):
        return _cli_type(next(argument for argument in arguments if argument is not type(None)))
    # Decimals and floats stay text: the model's own message for a bad number names the option.
    return annotation if annotation in (int, bool) else str


def _help_text(field: FieldInfo, choices: Sequence[str]) -> str:
    text = field.description or ""
    if len(choices) > MAX_METAVAR_CHOICES and choices[-1] not in text:
        text += f" One of {', '.join(choices)}."
    default = ", ".join(field.default) if isinstance(field.default, tuple) else field.default
    return text + (f" (default: {default})" if field.default else "")


def _metavar(cli_type: Any, choices: Sequence[str]) -> str:
    if choices:
        return "|".join(choices) if len(choices) <= MAX_METAVAR_CHOICES else "NAME"
    return {list[str]: "A,B", int: "N"}.get(cli_type, "VALUE")


# Options of language models

Wait = Annotated[
    float | None,
    typer.Option(
        min=0,
        metavar="SECONDS",
        help="How long to wait for another command that writes. (default: VMSIZES_WAIT_SECONDS)",
    ),
]
ContextTokens = Annotated[int, ParsedBy(amount_parser(1024))]
TokenCount = Annotated[float, ParsedBy(amount_parser(1000))]
Dtype = Annotated[str, ParsedBy(parse_dtype)]


class ModelOptions(BaseModel):
    """The language model and its workload."""

    model: str | None = Field(default=None, description="A language model by any of its names: `llama-3.1-70b`.")
    config: str | None = Field(
        default=None, description="A file: the model's Hugging Face `config.json`, of any length."
    )
    safetensors: str | None = Field(
        default=None,
        description="The model's checkpoint, for the exact bytes of its weights: `model.safetensors.index.json`, a "
        "`.safetensors` file, of which the header is read, or a folder of them.",
    )
    context: ContextTokens | None = Field(default=None, description="Context of a sequence, tokens; 32k is 32,768.")
    concurrency: int | None = Field(default=None, description="Sequences at a time. (default: 1)")
    allow_longer_context: bool | None = Field(
        default=None, description="Accept a context that is longer than the model is made for."
    )
    dtype: Dtype | None = Field(default=None, description="Number type of the weights. (default: as released)")
    kv_dtype: Dtype | None = Field(default=None, description="Number type of the KV cache. (default: bf16)")
    train: bool | None = Field(default=None, description="Train the model instead of serving it.")
    method: Literal["full", "lora", "qlora"] | None = Field(default=None, description="For training. (default: full)")
    recipe: str | None = Field(default=None, description="For training: bytes per parameter, by name.")
    sequence: ContextTokens | None = Field(
        default=None, description="For training: tokens per sequence; 4k is 4,096. (default: 2,048)"
    )
    micro_batch: int | None = Field(default=None, description="For training: sequences at a time. (default: 1)")
    recompute: Literal["none", "selective", "full"] | None = Field(
        default=None, description="For training: activations to recompute. (default: none, with adapters full)"
    )
    zero_stage: int | None = Field(default=None, description="For training: ZeRO stage, 0 to 3.")
    tokens: TokenCount | None = Field(
        default=None, description="For training: tokens in all, 100M or 1e8; adds hours and the cost of the job."
    )
    tensor_parallel: int | None = Field(default=None, description="GPUs that share each layer.")
    pipeline_parallel: int | None = Field(default=None, description="Stages that the layers are split into.")
    expert_parallel: int | None = Field(default=None, description="For serving: GPUs that experts are dealt out over.")
    data_parallel_attention: int | None = Field(
        default=None, description="For serving: groups of GPUs that each have the attention of their own sequences."
    )


class ServiceOptions(BaseModel):
    """The load of a service and its targets, in place of a concurrency."""

    input_tokens: int | None = Field(default=None, description="Tokens of a prompt.")
    output_tokens: int | None = Field(default=None, description="Tokens that are generated for a prompt.")
    users: int | None = Field(default=None, description="Users with one request at a time each, on average.")
    think_time_s: float | None = Field(default=None, description="What a user waits after an answer, s. (default: 0)")
    requests_per_second: float | None = Field(default=None, description="Requests a second, on average.")
    requests_per_day: TokenCount | None = Field(default=None, description="Requests a day, on average: 100k, 2M.")
    peak_to_mean: float | None = Field(default=None, description="Load at the peak over the average. (default: 1)")
    ttft_ms: float | None = Field(default=None, description="The longest expected time to the first token, ms.")
    tpot_ms: float | None = Field(default=None, description="The longest expected time per output token, ms.")
    prefix_cache_hit: float | None = Field(
        default=None, description="Share of a prompt that is cached, 0 to 1. (default: 0)"
    )
    disaggregated: bool | None = Field(default=None, description="Prompts are read by replicas of their own.")


class GpuOptions(BaseModel):
    """GPUs described by their figures."""

    count: int | None = Field(default=None, description="GPUs. (default: 1)")
    usable_gib: float | None = Field(default=None, description="Memory of one GPU as the system sees it, GiB.")
    bandwidth_gb_per_s: float | None = Field(default=None, description="Memory bandwidth of one GPU, 10^9 bytes/s.")
    peak_tflops: float | None = Field(default=None, description="Dense peak of one GPU in the type used, TFLOP/s.")
    usd_per_gpu_hour: float | None = Field(default=None, description="Price of one GPU, USD an hour.")


_PARALLEL_FIELDS = {"tensor_parallel": "tensor_parallel", "pipeline_parallel": "pipeline_parallel"}
INFERENCE_FIELDS = _PARALLEL_FIELDS | {
    "expert_parallel": "expert_parallel",
    "data_parallel_attention": "data_parallel_attention",
    "context": "context_tokens",
    "concurrency": "concurrency",
    "allow_longer_context": "allow_longer_context",
    "dtype": "dtype",
    "kv_dtype": "kv_dtype",
}
"""Options of a model that is served, and the fields of the body's `inference` that they set."""
TRAINING_FIELDS = _PARALLEL_FIELDS | {
    "method": "method",
    "recipe": "recipe",
    "sequence": "sequence_tokens",
    "micro_batch": "micro_batch",
    "recompute": "recompute",
    "zero_stage": "zero_stage",
    "tokens": "tokens",
}
"""Options of a model that is trained, and the fields of the body's `training` that they set."""
SERVICE_FIELDS = {name: name for name in ServiceOptions.model_fields}
"""Options of a service, and the fields of the body's `serving` that they set."""
CONSTRAINT_FIELDS = {
    "region": "regions",
    "available_in": "available_in",
    "series": "series",
    "name": "name",
    "gpu": "gpu",
    "gpu_vendor": "gpu_vendor",
    "verified": "verified_only",
    "infiniband": "require_infiniband",
    "max_nodes": "max_nodes",
    "budget_usd_per_month": "budget_usd_per_month",
}
"""Options of any fit, and the fields of the body's `constraints` that they set."""
PRICING_FIELDS = {name: name for name in ("os", "hours", "hours_per_month", "as_of", "known_at", "currency")}
BODY_OPTIONS = ("sort", "limit", "include")
"""Options of any fit that are fields of the body itself."""
SCOPE_OPTIONS = ("q", "disputed")
"""Options of any fit that narrow the sizes and that a body does not have."""
OPTION_OF_FIELD = {
    f"{part}.{field}": option
    for part, fields in (
        ("inference", INFERENCE_FIELDS),
        ("training", TRAINING_FIELDS),
        ("serving", SERVICE_FIELDS),
        ("constraints", CONSTRAINT_FIELDS),
    )
    for option, field in fields.items()
}
"""The option that sets a field, by its path in a body."""


# Help

_HEADINGS: Mapping[type[BaseModel], str] = {
    SizeSelection: "Which sizes",
    SizeRequirements: "What a VM must have",
    SizeFilter: "What a VM may have at most",
    OfferParams: "Prices",
    CurrencyParams: "Prices",
    PriceDayParams: "Prices",
    ModelOptions: "Model and workload",
    ServiceOptions: "Load and targets of a service",
    GpuOptions: "GPUs",
    PageParams: "Order and page",
    SizeList: "Order and page",
}
_HEADING_ORDER = (
    *(
        "Arguments",
        "Model and workload",
        "Load and targets of a service",
        "GPUs",
        "Which sizes",
        "What a VM must have",
        "What a VM may have at most",
    ),
    *("Prices", "Order and page", "Output", "Options"),
)
"""The order of the headings in a command's help; others come before the last."""


def _heading(model: type[BaseModel], name: str) -> str | None:
    """Return the heading of the base class that declares a field; only an upper bound is what a VM may have."""
    for base in reversed(model.__mro__):
        if name in getattr(base, "__annotations__", {}) and issubclass(base, BaseModel):
            return _HEADINGS.get(SizeRequirements if base is SizeFilter and not name.startswith("max_") else base)
    return None


class Command(TyperCommand):
    """A command whose help groups the options; long option names have their text on the line below."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments, then the options under their headings."""
        groups: dict[str, list[tuple[str, str]]] = {heading: [] for heading in _HEADING_ORDER}
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
    """A group of commands whose help shows the full text of each; Typer's own cuts it after a sentence."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands with their texts."""
        commands = ((name, self.get_command(ctx, name)) for name in self.list_commands(ctx))
        with formatter.section("Commands"):
            formatter.write_dl([(name, command.help or "") for name, command in commands if command is not None])
