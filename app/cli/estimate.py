"""Commands about needs: `vmsizes estimate` computes what a model takes, `vmsizes fit` finds the sizes that hold it.

`vmsizes accuracy` says how estimates agree with what was measured. Services and wire shapes are imported when a command
runs: help and completion of a line do not need them.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, TypeVar

import typer
from pydantic import BaseModel

from app.catalog.queries.params import FitSearch, SizeSelection
from app.cli import context, options
from app.cli.currencies import flatten_converted, in_currency, print_exchange_rate
from app.cli.options import (
    BODY_OPTIONS,
    CONSTRAINT_FIELDS,
    INFERENCE_FIELDS,
    PRICING_FIELDS,
    SCOPE_OPTIONS,
    SERVICE_FIELDS,
    TRAINING_FIELDS,
    Command,
    GpuOptions,
    ModelOptions,
    ServiceOptions,
    option_name,
    parse_body,
    parse_params,
    query_options,
)
from app.cli.output import (
    Column,
    Format,
    OutputOptions,
    print_line,
    print_no_price,
    print_rows,
    print_text,
    with_output_options,
)
from app.cli.receipts import Receipt, write_receipt
from app.errors import BadQuery
from app.validation import display_value

if TYPE_CHECKING:
    from app.schemas.fit_request import FitIn
    from app.schemas.fit_response import FitAnswerOut


app = typer.Typer()

Body = TypeVar("Body", bound=BaseModel)

PLACEMENT_COLUMNS = {
    "size": Column(heading="size"),
    "nodes": Column(heading="nodes", rank=2),
    "region": Column(heading="region", rank=6),
    "parallelism": Column(heading="layout", rank=1),
    "gib_per_gpu": Column(heading="GiB per GPU", rank=3),
    "sequences": Column(heading="sequences", rank=8),
    "tokens_per_s": Column(heading="tokens/s", rank=4),
    "ttft_ms": Column(heading="TTFT ms", rank=8),
    "tpot_ms": Column(heading="TPOT ms", rank=8),
    "limited_by": Column(heading="limited by", rank=9),
    "hours": Column(heading="hours", rank=9),
    "usd_per_hour": Column(heading="USD/h"),
    "usd_per_million_tokens": Column(heading="USD/M tokens", rank=10),
    "usd_per_job": Column(heading="USD/job", rank=9),
    "warnings": Column(heading="warnings", rank=7, wraps=True),
}
TRAINING_RANKS = {"hours": 4, "usd_per_job": 3, "tokens_per_s": 9, "sequences": 10}
"""Ranks of columns that matter more, or less, for training than for serving."""
FIT_COLUMNS = {
    "size": Column(heading="size"),
    "nodes": Column(heading="nodes", rank=1),
    "region": Column(heading="region", rank=2),
    "usd_per_hour": Column(heading="USD/h"),
    "as_of": Column(heading="as of", rank=5),
    "usd_per_month": Column(heading="USD/month", rank=3),
    "usd_per_job": Column(heading="USD/job", rank=7),
    "limiting_resource": Column(heading="tightest", rank=6),
    "unused_gpu_memory_percent": Column(heading="GPU mem unused %", rank=8),
    "warnings": Column(heading="warnings", rank=4, wraps=True),
}
FIGURE_COLUMNS = {
    "figure": Column(heading="figure"),
    "value": Column(heading="value"),
    "unit": Column(heading="unit", rank=1),
    "class": Column(heading="class", rank=2),
}
MODEL_HELP = "A language model by any of its names: `llama-3.3-70b`."


@app.command(cls=Command)
@query_options(ModelOptions, ServiceOptions, GpuOptions)
@with_output_options
def estimate(
    model_name: Annotated[
        str | None,
        typer.Argument(metavar="MODEL", help=MODEL_HELP, autocompletion=options.completer(options.model_ids)),
    ] = None,
    *,
    output: OutputOptions,
    **values: Any,
) -> None:
    """Compute the memory, time and cost of a language model on GPUs described by their figures."""
    from app.catalog.queries.language_models import load_models
    from app.converters.fit_request import estimate_body
    from app.schemas.estimate_request import EstimateIn

    values = _with_model_name(model_name, values)
    gpus = _drop_unset({name: values[name] for name in GpuOptions.model_fields})
    body = parse_body(EstimateIn, _workload_body(values) | {"gpus": gpus})
    with context.session() as session:
        models = load_models(session) if body.model is not None else {}
    data = estimate_body(body, models).model_dump(mode="json", by_alias=True)
    print_rows(list(_flatten_figures(data)), FIGURE_COLUMNS, output, json_value=data)
    if output.format is Format.table:
        if service := data.get("serving"):
            print_text(_service_text(service), indent="    ")
        if weights := data.get("weights_type"):
            text = f"weights: {weights['dtype'] or weights['detail']} ({weights['source']}: {weights['detail']})"
            print_text(text, indent="    ")
        for one in data["assumptions"]:
            print_text(f"assumed {one['field']} = {one['value']}: {one['why']}", indent="    ")


def _service_text(service: Mapping[str, Any]) -> str:
    """Return what a service takes, in a sentence."""
    limit = f"at most {service['max_concurrency_per_replica']} (limit: {service['limited_by']})"
    if not service["meets_targets"]:
        return f"service: not even one request at a time is served within memory and targets ({service['limited_by']})"
    parts = service.get("disaggregation")
    kinds = f" ({parts['prefill_replicas']} read prompts, {parts['decode_replicas']} generate)" if parts else ""
    return (
        f"service: {service['replicas']} replicas{kinds} on {service['gpus']} GPUs at the peak, "
        f"{service['replicas_at_mean']} on average; {service['concurrency_per_replica']} requests at a time on each"
        f"{' that generates' if parts else ''}, {limit}"
    )


def _flatten_figures(part: Mapping[str, Any], path: str = "") -> Iterator[dict[str, Any]]:
    """Yield every figure of an estimate as a row with its path; a range is shown as low, middle and high."""
    for name, value in part.items():
        if isinstance(value, dict) and "class" in value:
            ends = [value[end] for end in ("low", "mid", "high")]
            text = f"{value['value']:.6g}" if value["value"] is not None else " .. ".join(f"{end:.4g}" for end in ends)
            yield {"figure": f"{path}{name}", "value": text, "unit": value["unit"], "class": value["class"]}
        elif isinstance(value, dict) and name != "architecture":
            yield from _flatten_figures(value, f"{path}{name}.")


@app.command(cls=Command)
@query_options(ModelOptions, ServiceOptions, FitSearch)
@with_output_options
def fit(
    model_name: Annotated[
        str | None,
        typer.Argument(
            metavar="MODEL",
            help=f"{MODEL_HELP} Without one the options say what a VM must have.",
            autocompletion=options.completer(options.model_ids),
        ),
    ] = None,
    *,
    receipt: Receipt = None,
    output: OutputOptions,
    **values: Any,
) -> None:
    """Find the sizes that hold a model or meet requirements: on how many VMs, at what cost, and why others do not."""
    model = _with_model_name(
        model_name, {field: values.pop(field) for field in (*ModelOptions.model_fields, *SERVICE_FIELDS)}
    )
    if any(value is not None for value in model.values()):
        _fit_model(model, _drop_unset(values), output, receipt)
    else:
        _fit_requirements(values, output, receipt)


def _fit_requirements(values: Mapping[str, Any], output: OutputOptions, receipt: Path | None) -> None:
    """Print the sizes that meet raw amounts of resources."""
    from app.catalog.queries.snapshot import ask_catalog
    from app.converters.resource_fit import to_fit_out
    from app.services.resource_fit import plan_resource_fit

    params = parse_params(FitSearch, values)
    with context.session() as session:
        result = ask_catalog(
            session,
            context.today(),
            lambda catalog: plan_resource_fit(catalog, params, rejected="rejected" in params.include),
        )
        write_receipt(session, receipt, "GET /fit", params)
    data = to_fit_out(result).model_dump(mode="json", by_alias=True)
    items = data["items"]
    rows = [item | _plain_cost(item["cost"][params.purchase]) for item in items]
    print_rows(rows, in_currency(FIT_COLUMNS, params.currency, "cost"), output, json_value=data, objects=items)
    print_no_price(data)
    if output.format is Format.table:
        # Near misses only help where nothing fits; --include rejected lists all that do not fit.
        _print_summary(data, data["rejected"] or (data["nearest_misses"] if not items else []))
    if not items:
        raise typer.Exit(context.EXIT_NOT_FOUND)


def _plain_cost(cost: Mapping[str, Any]) -> dict[str, Any]:
    """Return a cost as plain numbers: without a model every figure of it is exact."""
    parts = flatten_converted(cost)
    return {name: part["value"] if isinstance(part, dict) else part for name, part in parts.items()}


def _fit_model(
    model: Mapping[str, Any], values: Mapping[str, Any], output: OutputOptions, receipt: Path | None
) -> None:
    """Print the sizes that hold a model; raises BadQuery for options that only apply to raw amounts."""
    from app.schemas.fit_request import FitIn

    allowed = {*CONSTRAINT_FIELDS, *PRICING_FIELDS, *BODY_OPTIONS, *SCOPE_OPTIONS, "status", "purchase"}
    if stray := sorted(values.keys() - allowed):
        value = display_value(values[stray[0]])
        raise BadQuery(option_name(stray[0]), value, "is about raw amounts, not about a model")
    purchase = values.get("purchase", "on_demand")
    body = _workload_body(model) | {name: values[name] for name in BODY_OPTIONS if name in values}
    body["constraints"] = {field: values[own] for own, field in CONSTRAINT_FIELDS.items() if own in values}
    body["constraints"] |= _status_constraints(values.get("status", []))
    body["pricing"] = {field: values[own] for own, field in PRICING_FIELDS.items() if own in values}
    body["pricing"]["purchases"] = [purchase, *(other for other in ("on_demand", "spot") if other != purchase)]
    selection = {name: values[name] for name in SCOPE_OPTIONS if name in values}
    if values.get("verified") is False:  # a body's verified_only=false means any size, --no-verified the others
        selection["verified"] = False
    if receipt is not None and selection:
        raise BadQuery("--receipt", receipt, f"cannot be given with {option_name(next(iter(selection)))}")
    parsed = parse_body(FitIn, body)
    if receipt is not None:
        with context.session() as session:
            write_receipt(session, receipt, "POST /fit", parsed)
    result = _run_fit(parsed, parse_params(SizeSelection, selection))
    data = result.model_dump(mode="json", by_alias=True)
    columns = PLACEMENT_COLUMNS
    if model.get("train"):
        columns = {name: replace(one, rank=TRAINING_RANKS.get(name, one.rank)) for name, one in columns.items()}
    rows = [_placement_row(item, purchase) for item in data["items"]]
    columns = in_currency(columns, parsed.pricing.currency, "cost")
    print_rows(rows, columns, output, json_value=data, objects=data["items"])
    print_no_price(data)
    if output.format is Format.table:
        _print_summary(data, data["rejected"] or data["nearest_misses"])
    if not data["fits"]:
        raise typer.Exit(context.EXIT_NOT_FOUND)


def _run_fit(body: "FitIn", selection: SizeSelection) -> "FitAnswerOut":
    """Answer a body as POST /fit does, among the sizes that the selection leaves."""
    from app.catalog.queries.snapshot import ask_catalog
    from app.converters.fit_request import plan_fit

    among = {name: getattr(selection, name) for name in selection.model_fields_set}
    with context.session() as session:
        return ask_catalog(session, context.today(), lambda catalog: plan_fit(catalog, body, among=among))


def _with_model_name(name: str | None, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options with the argument MODEL as `--model`; raises BadQuery where both are given."""
    if name is None:
        return dict(values)
    if values["model"] is not None:
        raise BadQuery("--model", values["model"], f"is a second model beside {name}: give one")
    return {**values, "model": name}


def _drop_unset(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value not in (None, [])}


def _status_constraints(statuses: Any) -> dict[str, bool]:
    """Convert `--status` to constraints of a body, which always allows current sizes and never retired ones."""
    chosen = set(parse_params(SizeSelection, {"status": statuses}).status)
    if not chosen or "any" in chosen:
        return {}
    if "current" not in chosen or "retired" in chosen:
        value = ",".join(sorted(chosen))
        raise BadQuery("--status", value, "with a model it takes current, and preview and retiring beside it")
    return {"allow_preview": "preview" in chosen, "allow_retiring": "retiring" in chosen}


def _workload_body(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the model and its workload as fields of a body; raises BadQuery for options of the other workload."""
    part, fields = ("training", TRAINING_FIELDS) if values.get("train") else ("inference", INFERENCE_FIELDS)
    for own in {**INFERENCE_FIELDS, **TRAINING_FIELDS}:
        if values.get(own) is not None and own not in fields:
            other = "remove --train" if part == "training" else "add --train"
            raise BadQuery(option_name(own), values[own], f"does not apply to {part}; {other} or leave it out")
    workload = {field: values[own] for own, field in fields.items() if values.get(own) is not None}
    files = read_model_files(values.get("config"), values.get("safetensors"))
    service = {field: values[own] for own, field in SERVICE_FIELDS.items() if values.get(own) is not None}
    body = {"model": values.get("model"), part: workload} | files
    return body | ({"serving": service} if service else {})


def _placement_row(item: Mapping[str, Any], purchase: str) -> dict[str, Any]:
    """Return a placement as a row of the table, with the cost for one purchase model."""
    parallelism, memory = item["parallelism"], item["per_gpu"]
    speed = item.get("speed", {})  # of some kinds of models none is known
    cost = item["cost"][purchase]
    degrees = {
        "TP": parallelism["tensor"],
        "PP": parallelism["pipeline"],
        "EP": parallelism["expert"],
        "DPA": parallelism["data_attention"],
        "DP": parallelism["data"],
    }
    return {
        "size": item["size"],
        "nodes": item["nodes"],
        "region": item["region"],
        "parallelism": " ".join(f"{name}{degree}" for name, degree in degrees.items() if degree > 1) or "-",
        "gib_per_gpu": f"{memory['need']['mid']:.1f} of {memory['budget']['value']:.1f}",
        "sequences": _mid(item.get("max_concurrency")),
        "tokens_per_s": _mid(speed.get("expected_tokens_per_s")),
        **_service_cells(item),
        "hours": _mid(speed.get("hours")),
        "usd_per_hour": cost["usd_per_hour"],
        "usd_per_million_tokens": _mid(cost.get("usd_per_million_tokens")),
        "usd_per_job": _mid(cost.get("usd_per_job")),
        "warnings": item["warnings"],
        **_converted_cost(cost.get("converted")),
    }


def _service_cells(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a row says of a service; nothing where none is asked for."""
    service, speed = item.get("serving"), item.get("speed", {})
    if service is None:
        return {}
    return {
        "sequences": service["max_concurrency_per_replica"] * service["replicas"],
        "ttft_ms": _mid(speed.get("ttft")),
        "tpot_ms": _mid(speed.get("expected_step")),
        "limited_by": service["limited_by"],
    }


def _converted_cost(converted: Mapping[str, Any] | None) -> dict[str, Any]:
    if converted is None:
        return {}
    return {
        "currency": converted["currency"],
        "cost_per_hour": converted["cost_per_hour"],
        "cost_per_million_tokens": _mid(converted.get("cost_per_million_tokens")),
        "cost_per_job": _mid(converted.get("cost_per_job")),
    }


def _mid(figure: Mapping[str, Any] | None) -> float | None:
    """Return the value of a figure, of a range its middle, to four digits."""
    if figure is None:
        return None
    return float(f"{figure['mid'] if figure['value'] is None else figure['value']:.4g}")


def _print_summary(data: Mapping[str, Any], misses: Iterable[Mapping[str, Any]]) -> None:
    """Print why the best option fits, how many sizes do not, and for some of those why and what would help."""
    print_line()
    if data["items"]:
        best = data["items"][0]
        print_text(f"{best['size']}: {best['explanation']}")
        print_line()
    reasons = ", ".join(f"{count} {code}" for code, count in data["rejection_summary"].items())
    fitting = "1 size fits" if data["total"] == 1 else f"{data['total']} sizes fit"
    rest = "1 does" if data["rejected_total"] == 1 else f"{data['rejected_total']} do"
    print_text(f"{fitting}, {rest} not ({reasons or 'none'}).")
    print_exchange_rate(data.get("exchange_rate"))
    for miss in misses:
        for failure in miss["failures"]:
            print_text(f"{miss['size']}: {failure['code']}: {failure['detail']}", first="  ", indent="    ")
        if fixes := miss.get("fixes"):
            print_text(f"fits with {', or '.join(fix['text'] for fix in fixes)}", first="    ", indent="      ")


MAX_HEADER_BYTES = 100_000_000
"""The longest header that the safetensors library reads."""


def read_model_files(config: str | None, safetensors: str | None) -> dict[str, Any]:
    """Return the fields of a body that the files give; raises BadQuery naming a file that cannot be read."""
    fields: dict[str, Any] = {}
    if config is not None:
        fields["config"] = _read_json("--config", Path(config))
    if safetensors is not None:
        fields["safetensors"] = _read_checkpoint(Path(safetensors))
    return fields


def _read_checkpoint(path: Path) -> dict[str, Any]:
    """Return an index, or the tensors of the headers of one file or of all files of a folder."""
    if path.suffix == ".json":
        return _read_json("--safetensors", path)
    files = sorted(path.glob("*.safetensors")) if path.is_dir() else [path]
    if not files:
        raise BadQuery("--safetensors", str(path), "has no .safetensors files")
    return {name: tensor for file in files for name, tensor in _read_header(file).items()}


def _read_json(option: str, path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise BadQuery(option, str(path), f"cannot be read as JSON: {error}") from None
    if not isinstance(found, dict):
        raise BadQuery(option, str(path), "holds no JSON object")
    return found


def _read_header(path: Path) -> dict[str, Any]:
    """Return the header of a file: 8 bytes with its length, little-endian, and as many bytes of JSON."""
    try:
        with path.open("rb") as file:
            header = json.loads(_header_bytes(file))
    except (OSError, ValueError) as error:
        raise BadQuery("--safetensors", str(path), f"has no header of safetensors: {error}") from None
    if not isinstance(header, dict):
        raise BadQuery("--safetensors", str(path), "has no header of safetensors: it holds no JSON object")
    return header


def _header_bytes(file: BinaryIO) -> bytes:
    length = int.from_bytes(file.read(8), "little")
    if not 0 < length <= MAX_HEADER_BYTES:
        raise ValueError(f"a length of {length} bytes")
    return file.read(length)


ACCURACY_COLUMNS = {
    "family": Column(heading="family"),
    "title": Column(heading="of"),
    "n": Column(heading="n"),
    "in_range_share": Column(heading="in range"),
    "range_width": Column(heading="high / low"),
    "median_error": Column(heading="median error"),
    "worst_ratio": Column(heading="worst", rank=2),
    "leave_one_out_error": Column(heading="left out"),
    "source": Column(heading="measured by", rank=3, wraps=True),
}


@app.command(cls=Command)
@with_output_options
def accuracy(*, output: OutputOptions) -> None:
    """Show how the estimates agree with what was measured, by family: one figure for one kind of workload."""
    from app.fit.accuracy import read_accuracy

    print_rows([asdict(family) for family in read_accuracy()], ACCURACY_COLUMNS, output)
