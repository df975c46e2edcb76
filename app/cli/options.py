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
from functools import partial, wraps
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, TypeVar, Union, cast, get_args, get_origin

import typer
from pydantic import BaseModel, Field, ValidationError
from pydantic.fields import FieldInfo
from typer.core import TyperCommand, TyperGroup

from app.catalog.providers import DEFAULT_PROVIDER
from app.catalog.queries.params import (
    GIB,
    SORT_KEYS,
    CurrencyParams,
    OfferParams,
    PageParams,
    PriceDayParams,
    SizeFilter,
    SizeList,
    SizeRequirements,
    SizeSelection,
    as_given,
    is_multi_valued,
    other_spellings,
    types_within,
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
_OTHER_UNIT = re.compile(r"\d+(?:\.\d+)?\s*[a-z]+", re.IGNORECASE)


def parse_gib(text: Any) -> Any:
    """Return the GiB of `80GB` (which vendors write for GiB), `80 GiB` or `1.5 TiB`; any other text unchanged.

    Raises BadParameter for another unit.
    """
    match = _GIB.fullmatch(str(text).strip())
    if match is None and _OTHER_UNIT.fullmatch(str(text).strip()):
        raise typer.BadParameter(f"{text!r}: units are GB and TB, or GiB and TiB, which mean the same; without one GiB")
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


def parse_dtype(text: Any, *, of: str = "BITS") -> Any:
    """Return the number type of a name in any case and common spelling; raises BadParameter naming the nearest."""
    from app.fit.formulas import quantization

    types = getattr(quantization, of)
    name = quantization.to_dtype(str(text), types)
    if name in types:
        return name
    near = [dtype for dtype in _AMBIGUOUS_DTYPES.get(name, ()) if dtype in types]
    near = near or get_close_matches(name, types, 4, 0.5)
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


def _late_values(module: str, name: str) -> Callable[[], Sequence[str]]:
    """Return a function that imports a module when it is called, and returns values of it."""
    return lambda: tuple(getattr(import_module(module), name))


def sort_keys() -> Sequence[str]:
    """Return the keys by which sizes are sorted."""
    return SORT_KEYS


def _catalog_column(table: str, column: str) -> Callable[[], Sequence[str]]:
    def read() -> Sequence[str]:
        from app.db.databases import open_database
        from app.db.errors import DatabaseError
        from app.db.statements import BoundStatement, Statement
        from app.settings import Settings

        names = Statement(f"select {column} from {table} order by {column}")
        try:
            with open_database(Settings().database_url, pool_size=0).connect() as reader:
                return tuple(name for (name,) in reader.fetch(BoundStatement(names)))
        except (DatabaseError, ImportError, ValueError):  # a message would end up in the line being completed
            return ()

    return read


size_names = _catalog_column("size", "name")
model_ids = _catalog_column("model", "id")
gpu_ids = _catalog_column("gpu", "id")

CHOICES: Choices = {
    "dtype": _late_values("app.fit.formulas.quantization", "BITS"),
    "kv_dtype": _late_values("app.fit.formulas.quantization", "KV_BITS"),
    "recipe": _late_values("app.fit.formulas.optimizer", "RECIPES"),
}
"""Choices of fields whose type does not name them."""

CATALOG_VALUES: Choices = {
    **dict.fromkeys(("name", "baseline", "subject", "size"), size_names),
    **dict.fromkeys(("region", "available_in"), _catalog_column("region", "code")),
    "gpu": gpu_ids,
    "series": _catalog_column("series", "id"),
    "model": model_ids,
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
        spellings = (
            next((spelling for spelling in _spellings(name) if spelling.startswith(last)), None) for name in values()
        )
        return [f"{before}{comma}{spelling}" for spelling in spellings if spelling is not None]

    return complete


SIZE_ARGUMENT = typer.Argument(
    metavar="SIZE", help="In any case, with or without `Standard_`.", autocompletion=completer(size_names)
)


# Options from models


def query_options(
    *models: type[BaseModel], leave_out: frozenset[str] = frozenset({"fields"}), choices: Choices | None = None
) -> Callable[[Any], Any]:
    """Decorate a command with one option per field of the models; it gets their values as keyword arguments.

    A bound of sizes has a second option, named after its field; help shows the shorter one, `parse_params` takes both.
    `fields` is left out by default: `--columns` does the same. `choices` are instead of those that the type names.
    """

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        own = [p for p in inspect.signature(command).parameters.values() if p.kind is not p.VAR_KEYWORD]
        fields = {
            name: (field, _heading(model, name)) for model in models for name, field in model.model_fields.items()
        }
        spelled = {spelling: name for model in models for spelling, name in other_spellings(model).items()}
        options = [
            _make_option(name, field, heading, {**CHOICES, **(choices or {})})
            for name, (field, heading) in fields.items()
            if name not in leave_out
        ]
        options += [
            _make_option(spelling, fields[name][0], None, {}, hidden=True) for spelling, name in spelled.items()
        ]
        _set_signature(command, inspect.Signature([*own, *options]))
        return command

    return decorate


def with_options(name: str) -> Callable[[Callable[..., Any]], Callable[[Callable[..., Any]], Callable[..., Any]]]:
    """Make a decorator of a function: a command gets the options that the function has, and its value as one parameter.

    The parameter is called `name`; the options stand behind those of the command.
    """

    def make(build: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        added = inspect.signature(build).parameters.values()

        def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
            own = [parameter for parameter in inspect.signature(command).parameters.values() if parameter.name != name]
            rest = [own.pop()] if own and own[-1].kind is inspect.Parameter.VAR_KEYWORD else []

            @wraps(command)
            def run(**values: Any) -> Any:
                built = build(**{parameter.name: values.pop(parameter.name) for parameter in added})
                return command(**{name: built}, **values)

            _set_signature(run, inspect.Signature([*own, *added, *rest]))
            return run

        return decorate

    return make


def _set_signature(command: Callable[..., Any], signature: inspect.Signature) -> None:
    """Set what Typer reads the options of a command from."""
    command.__signature__ = signature  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in signature.parameters.values()}


def drop_unset(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of the options that were given."""
    return {name: value for name, value in values.items() if value not in (None, [])}


def parse_params(model: type[Params], values: Mapping[str, Any]) -> Params:
    """Validate the options that were given as a model; raises BadQuery naming the option."""
    try:
        return model(**drop_unset(values))
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0]) if first["loc"] else "question"
        given = {name for name, value in values.items() if value is not None}
        option = as_given(name, given)
        value = values[option] if option != name else first.get("input")
        raise BadQuery(option_name(option), display_value(value), explain(first)) from None


def parse_body(model: type[Params], body: Mapping[str, Any]) -> Params:
    """Validate a body of the API whose values are those of options; raises BadQuery naming the option that is wrong."""
    from app.schemas.bodies import TEXT_VALUES

    try:
        return model.model_validate(body, context={TEXT_VALUES: True})
    except ValidationError as error:
        first = error.errors()[0]
        path = ".".join(str(part) for part in first["loc"] if isinstance(part, str))
        if first["type"] == "contradiction":
            raise _contradiction(path, explain(first)) from None
        field = OPTION_OF_FIELD.get(path, path.rpartition(".")[2] or "question")
        raise BadQuery(option_name(field), display_value(first.get("input")), explain(first)) from None


def _contradiction(part: str, detail: str) -> BadQuery:
    """Return the error for fields of a part of a body, or of all of it, that contradict each other.

    It is about the option that the text begins with, else about the last one that it names.
    """
    fields = BODY_FIELDS.get(part) or _same(*BODY_OPTIONS, "config")
    options = {field: option_name(option) for option, field in fields.items()}
    named = re.compile(rf"(?<![\w.-])(?:{'|'.join(options)})(?![\w.-])")
    text = named.sub(lambda match: options[match[0]], detail)
    about, _, rest = text.partition(" ")
    if about.startswith("--"):
        return BadQuery(about, None, rest)
    return BadQuery(options[named.findall(detail)[-1]] if named.search(detail) else part or "question", None, text)


def option_name(field: str) -> str:
    """Return the option that sets a field: `--min-gpus` for `min_gpus`."""
    return f"--{field.replace('_', '-')}"


def name_as_typed(option: str) -> str:
    """Return an option as the running command has it: an argument by its name, else the first of its spellings."""
    field = option.removeprefix("--").replace("-", "_")
    params = {param.name: param for param in Command.running.params} if Command.running else {}
    param = params.get(field) or params.get(f"{field}s")
    if param is None or not option.startswith("--"):
        return option
    return (param.metavar or param.name.upper()).strip("[]") if param.param_type_name == "argument" else param.opts[0]


def _make_option(
    name: str, field: FieldInfo, heading: str | None, choices_by_name: Choices, *, hidden: bool = False
) -> inspect.Parameter:
    several = is_multi_valued(field)
    parsed_by = (part for part in types_within(field.annotation) if part == GIB or isinstance(part, ParsedBy))
    parser = next((part.parse if isinstance(part, ParsedBy) else parse_gib for part in parsed_by), None)
    cli_type: Any = list[str] if several else str if parser else _cli_type(field.annotation)
    flag = option_name(name)
    literals = (part for part in types_within(field.annotation) if get_origin(part) is Literal)
    choices: Sequence[str] = choices_by_name[name]() if name in choices_by_name else ()
    choices = choices or next((tuple(map(str, get_args(part))) for part in literals), ())
    values = (lambda: choices) if choices else CATALOG_VALUES.get(name)
    option = typer.Option(
        f"{flag}/--no-{flag[2:]}" if cli_type is bool else flag,
        help=_help_text(field, choices),
        show_default=False,
        hidden=hidden,
        metavar=None if cli_type is bool else _metavar(cli_type, choices),
        parser=parser,
        rich_help_panel=heading,
        autocompletion=completer(values, several=several) if values else None,
    )
    optional: Any = cli_type if several else cli_type | None
    annotation: Any = Annotated[optional, option]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


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
    if field.is_required():
        return f"{text} (required)"
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
Receipt = Annotated[
    Path | None,
    typer.Option(
        "--receipt",
        metavar="FILE",
        help="Write what the answer rests on to this file, for `vmsizes verify`.",
        show_default=False,
        dir_okay=False,
    ),
]
ContextTokens = Annotated[int, ParsedBy(amount_parser(1024))]
TokenCount = Annotated[float, ParsedBy(amount_parser(1000))]
Dtype = Annotated[str, ParsedBy(parse_dtype)]
KvDtype = Annotated[str, ParsedBy(partial(parse_dtype, of="KV_BITS"))]


def _option(description: str, *sets: str) -> Any:
    """Return an option; `sets` are the fields of a body that it sets, by their paths."""
    return Field(default=None, description=description, json_schema_extra={"sets": list(sets)})


class ModelOptions(BaseModel):
    """The language model and its workload."""

    model: str | None = _option("A language model by any of its names: `llama-3.1-70b`.")
    config: str | None = _option("A file: the model's Hugging Face `config.json`, of any length.")
    safetensors: str | None = _option(
        "The model's checkpoint, for the exact bytes of its weights: `model.safetensors.index.json`, a "
        "`.safetensors` file, of which the header is read, or a folder of them."
    )
    context: ContextTokens | None = _option("Context of a sequence, tokens; 32k is 32,768.", "inference.context_tokens")
    concurrency: int | None = _option("Sequences at a time. (default: 1)", "inference.concurrency")
    allow_longer_context: bool | None = _option(
        "Accept a context that is longer than the model is made for.", "inference.allow_longer_context"
    )
    dtype: Dtype | None = _option("Number type of the weights. (default: as released)", "inference.dtype")
    kv_dtype: KvDtype | None = _option("Number type of the KV cache. (default: bf16)", "inference.kv_dtype")
    train: bool | None = _option("Train the model instead of serving it.")
    method: Literal["full", "lora", "qlora"] | None = _option("For training. (default: full)", "training.method")
    recipe: str | None = _option("For training: bytes per parameter, by name.", "training.recipe")
    sequence: ContextTokens | None = _option(
        "For training: tokens per sequence; 4k is 4,096. (default: 2,048)", "training.sequence_tokens"
    )
    micro_batch: int | None = _option("For training: sequences at a time. (default: 1)", "training.micro_batch")
    recompute: Literal["none", "selective", "full"] | None = _option(
        "For training: activations to recompute. (default: none, with adapters full)", "training.recompute"
    )
    zero_stage: int | None = _option("For training: ZeRO stage, 0 to 3.", "training.zero_stage")
    tokens: TokenCount | None = _option(
        "For training: tokens in all, 100M or 1e8; adds hours and the cost of the job.", "training.tokens"
    )
    tensor_parallel: int | None = _option(
        "GPUs that share each layer.", "inference.tensor_parallel", "training.tensor_parallel"
    )
    pipeline_parallel: int | None = _option(
        "Stages that the layers are split into.", "inference.pipeline_parallel", "training.pipeline_parallel"
    )
    expert_parallel: int | None = _option(
        "For serving: GPUs that experts are distributed over.", "inference.expert_parallel"
    )
    data_parallel_attention: int | None = _option(
        "For serving: groups of GPUs that each have the attention of their own sequences.",
        "inference.data_parallel_attention",
    )


class ServiceOptions(BaseModel):
    """The load of a service and its targets, in place of a concurrency."""

    input_tokens: int | None = _option("Tokens of a prompt.")
    output_tokens: int | None = _option("Tokens that are generated for a prompt.")
    users: int | None = _option("Users with one request at a time each; needs --input-tokens and --output-tokens.")
    think_time_s: float | None = _option("What a user waits after an answer, s. (default: 0)")
    requests_per_second: float | None = _option("Requests a second, on average.")
    requests_per_day: TokenCount | None = _option("Requests a day, on average: 100k, 2M.")
    peak_to_mean: float | None = _option("Load at the peak over the average. (default: 1)")
    ttft_ms: float | None = _option("The longest expected time to the first token, ms.")
    tpot_ms: float | None = _option("The longest expected time per output token, ms.")
    prefix_cache_hit: float | None = _option("Share of a prompt that is cached, 0 to 1. (default: 0)")
    disaggregated: bool | None = _option("Prompts are read by replicas of their own.")


class GpuOptions(BaseModel):
    """GPUs described by their figures."""

    count: int | None = _option("GPUs. (default: 1)")
    usable_gib: float | None = _option("Memory of one GPU as the system sees it, GiB.")
    bandwidth_gb_per_s: float | None = _option("Memory bandwidth of one GPU, 10^9 bytes/s.")
    peak_tflops: float | None = _option("Dense peak of one GPU in the type used, TFLOP/s.")
    usd_per_gpu_hour: float | None = _option("Price of one GPU, USD an hour.")


def _fields_set(part: str) -> dict[str, str]:
    """Return the fields of a part of a body by the options of a model that set them."""
    sets = {name: cast("Any", field.json_schema_extra)["sets"] for name, field in ModelOptions.model_fields.items()}
    paths = ((name, path.partition(".")) for name, own in sets.items() for path in own)
    return {name: field for name, (head, _, field) in paths if head == part}


def _same(*names: str) -> dict[str, str]:
    return {name: name for name in names}


BODY_FIELDS: Mapping[str, Mapping[str, str]] = {
    "inference": _fields_set("inference"),
    "training": _fields_set("training"),
    "serving": _same(*ServiceOptions.model_fields),
    "constraints": {
        **_same("provider", "country", "continent", "available_in", "series", "name", "gpu", "gpu_vendor"),
        **_same("max_nodes", "budget_usd_per_month"),
        "region": "regions",
        "verified": "verified_only",
        "infiniband": "require_infiniband",
    },
    "pricing": _same("os", "hours", "hours_per_month", "as_of", "known_at", "currency"),
    "gpus": _same(*GpuOptions.model_fields),
}
"""The fields of each part of a body, by the options that set them."""
BODY_OPTIONS = ("sort", "limit", "include")
"""Options of any fit that are fields of the body itself."""
SCOPE_OPTIONS = ("q", "disputed")
"""Options of any fit that narrow the sizes and that a body does not have."""
OPTION_OF_FIELD = {
    f"{part}.{field}": option
    for part, fields in BODY_FIELDS.items()
    if part != "pricing"
    for option, field in fields.items()
}
"""The option that sets a field, by its path in a body."""


# Help

_HEADINGS: Mapping[type[BaseModel], str] = {
    ModelOptions: "Model and workload",
    ServiceOptions: "Load and targets of a service",
    GpuOptions: "GPUs",
    SizeSelection: "Which sizes",
    SizeRequirements: "What a VM must have",
    SizeFilter: "What a VM may have at most",
    **dict.fromkeys((OfferParams, CurrencyParams, PriceDayParams), "Prices"),
    **dict.fromkeys((PageParams, SizeList), "Order and page"),
}
_HEADING_ORDER = ("Arguments", *dict.fromkeys(_HEADINGS.values()), "Output", "Options")
"""The order of the headings in a command's help; others come before the last."""


def _heading(model: type[BaseModel], name: str) -> str | None:
    """Return the heading of the base class that declares a field; only an upper bound is what a VM may have."""
    for base in reversed(model.__mro__):
        if name in getattr(base, "__annotations__", {}) and issubclass(base, BaseModel):
            return _HEADINGS.get(SizeRequirements if base is SizeFilter and not name.startswith("max_") else base)
    return None


_VALUES = {"str": "VALUE", "int": "N", "int range": "N", "path": "PATH"}
"""What help calls a value by its type, where the option has no name for it."""


class Command(TyperCommand):
    """A command whose help groups the options; long option names have their text on the line below."""

    running: ClassVar["Command | None"] = None

    def invoke(self, ctx: Any) -> Any:
        """Run the command; errors name its options as it has them."""
        Command.running = self
        return super().invoke(ctx)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments; what is wrong with a value is said as for the API, and not in the words of pydantic."""
        try:
            return super().parse_args(ctx, args)
        except typer.BadParameter as error:
            if isinstance(error.__cause__, ValidationError):
                wrong, form = error.__cause__.errors()[0], getattr(error.param, "metavar", None)
                text = f"must be written as {form}" if wrong["type"] == "value_error" and form else explain(wrong)
                value = repr(wrong["input"])
                error.message = text if text.startswith(value) else f"{value}: {text}"
            raise

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the arguments as POSIX writes them: optional ones in brackets, and none in braces."""
        return [
            piece.translate({ord("{"): None, ord("}"): None}).upper() for piece in super().collect_usage_pieces(ctx)
        ]

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
                names = re.sub("<(.+)>", lambda kind: _VALUES.get(kind[1], kind[1]), record[0])
                groups.setdefault(getattr(param, "rich_help_panel", None) or "Options", []).append((names, record[1]))
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
