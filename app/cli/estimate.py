"""Commands about needs: `vmsizes estimate` computes what a model takes, `vmsizes fit` finds the sizes that hold it.

`vmsizes accuracy` says how estimates agree with what was measured. Services and wire shapes are imported when a command
runs: help and completion of a line do not need them.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, replace
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, BinaryIO, get_args

import typer

from app.catalog.queries.params import FitSearch, FitSort, PageParams, SizeSelection
from app.cli import context, options
from app.cli.options import (
    BODY_FIELDS,
    BODY_OPTIONS,
    SCOPE_OPTIONS,
    Command,
    GpuOptions,
    ModelOptions,
    Receipt,
    ServiceOptions,
    drop_unset,
    option_name,
    parse_body,
    parse_params,
    query_options,
)
from app.cli.output import (
    EXIT_NOT_FOUND,
    Column,
    Format,
    OutputOptions,
    flatten_converted,
    in_currency,
    make_columns,
    print_exchange_rate,
    print_line,
    print_no_price,
    print_rows,
    print_text,
    with_notes,
    with_output_options,
)
from app.errors import BadQuery
from app.validation import display_value, plural

app = typer.Typer()

PLACEMENT_COLUMNS = {
    **make_columns({"parallelism": "layout"}, size=0, nodes=2, region=6, parallelism=1),
    **make_columns({"gib_per_gpu": "GiB per GPU"}, gib_per_gpu=3, sequences=8),
    **make_columns({"tokens_per_s": "tokens/s", "ttft_ms": "TTFT ms"}, tokens_per_s=4, ttft_ms=8),
    **make_columns({"tpot_ms": "TPOT ms"}, tpot_ms=8, limited_by=9, hours=9),
    **make_columns(usd_per_hour=0, usd_per_million_tokens=10, usd_per_job=9, warnings=7),
}
TRAINING_RANKS = {"hours": 4, "usd_per_job": 3, "tokens_per_s": 9, "sequences": 10}
"""Ranks of columns that matter more, or less, for training than for serving."""
FIT_COLUMNS = {
    **make_columns(size=0, nodes=1, region=2, usd_per_hour=0, as_of=5, usd_per_month=3, usd_per_job=7),
    **make_columns({"limiting_resource": "tightest"}, limiting_resource=6),
    **make_columns({"unused_gpu_memory_percent": "GPU mem unused %"}, unused_gpu_memory_percent=8, warnings=4),
}
FIGURE_COLUMNS = {
    "figure": Column(heading="figure"),
    "value": Column(heading="value"),
    "unit": Column(heading="unit", rank=1),
    "class": Column(heading="class", rank=2),
    "runs": Column(heading="measured runs", rank=2),
}
MODEL_SORTS = ("cost_per_1m_tokens", "time")
"""What `--sort` takes with a model, too."""
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
    from app.catalog.queries.lookups import load_models
    from app.schemas.fit_request import EstimateIn
    from app.services.fit import estimate_body

    values = _with_model_name(model_name, values)
    gpus = drop_unset({name: values[name] for name in GpuOptions.model_fields})
    body = parse_body(EstimateIn, _workload_body(values) | {"gpus": gpus})
    with context.reader() as reader:
        models = load_models(reader) if body.model is not None else {}
    data = estimate_body(body, models).model_dump(mode="json", by_alias=True)
    print_rows(list(_flatten_figures(data)), FIGURE_COLUMNS, output, json_value=data)
    if output.format is Format.table:
        if service := data.get("serving"):
            print_text(_service_text(service), indent="    ")
        if weights := data.get("weights_type"):
            text = f"weights: {weights['dtype'] or weights['detail']} ({weights['source']}: {weights['detail']})"
            print_text(text, indent="    ")
        for assumption in data["assumptions"]:
            print_text(f"assumed {assumption['field']} = {assumption['value']}: {assumption['why']}", indent="    ")


def _service_text(service: Mapping[str, Any]) -> str:
    """Return what a service takes, in a sentence."""
    limit = f"at most {service['max_concurrency_per_replica']} (limit: {service['limited_by']})"
    if not service["meets_targets"]:
        return f"service: not even one request at a time is served within memory and targets ({service['limited_by']})"
    parts = service.get("disaggregation")
    kinds = f" ({parts['prefill_replicas']} read prompts, {parts['decode_replicas']} generate)" if parts else ""
    own = plural(service["concurrency_per_replica"], "request")
    where = "each that generates" if parts else "each"
    return (
        f"service: {plural(service['replicas'], 'replica')}{kinds} on {plural(service['gpus'], 'GPU')} at the peak, "
        f"{service['replicas_at_mean']} on average; {own} at a time on {where}, {limit}"
    )


def _flatten_figures(part: Mapping[str, Any], path: str = "") -> Iterator[dict[str, Any]]:
    """Yield every figure of an estimate as a row with its path; a range is shown as low, middle and high."""
    for name, value in part.items():
        if isinstance(value, dict) and "class" in value:
            ends = [value[end] for end in ("low", "mid", "high")]
            text = f"{value['value']:.6g}" if value["value"] is not None else " .. ".join(f"{end:.4g}" for end in ends)
            runs = evidence["n"] or "none" if (evidence := value.get("evidence")) else ""
            row = {"figure": f"{path}{name}", "value": text, "unit": value["unit"], "class": value["class"]}
            yield row | {"runs": runs}
        elif isinstance(value, dict) and name != "architecture":
            yield from _flatten_figures(value, f"{path}{name}.")


@app.command(cls=Command)
@query_options(ModelOptions, ServiceOptions, FitSearch, choices={"sort": lambda: (*get_args(FitSort), *MODEL_SORTS)})
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
        model_name, {field: values.pop(field) for field in (*ModelOptions.model_fields, *ServiceOptions.model_fields)}
    )
    if any(value is not None for value in model.values()):
        _fit_model(model, drop_unset(values), output, receipt)
    else:
        _fit_requirements(values, output, receipt)


def _fit_requirements(values: Mapping[str, Any], output: OutputOptions, receipt: Path | None) -> None:
    """Print the sizes that meet raw amounts of resources."""
    params = parse_params(FitSearch, values)
    data = context.ask("GET /fit", params, receipt=receipt)
    items = data["items"]
    rows = []
    for item in items:  # without a model every figure of a cost is exact
        cost = flatten_converted(_cost_of_all(item, params.purchase))
        exact = {name: cost[name]["value"] for name in ("usd_per_job", "cost_per_job") if name in cost}
        rows.append(item | cost | exact)
    rows, columns = with_notes(rows, in_currency(FIT_COLUMNS, params.currency, "cost"))
    print_rows(rows, columns, output, json_value=data, objects=items)
    print_no_price(data)
    if output.format is Format.table:
        # Near misses only help where nothing fits; --include rejected lists all that do not fit.
        _print_summary(data, data["rejected"] or (data["nearest_misses"] if not items else []))
    if not items:
        raise typer.Exit(EXIT_NOT_FOUND)


def _cost_of_all(item: Mapping[str, Any], purchase: str) -> dict[str, Any]:
    """Return the cost of an option, with the list price of all its VMs; the API has that of one VM."""
    cost = dict(item["cost"][purchase])
    if "adjustment" in cost:
        of_one = Decimal(repr(cost["adjustment"]["list_usd_per_hour"]))
        cost["adjustment"] = cost["adjustment"] | {"list_usd_per_hour": float(item["nodes"] * of_one)}
    return cost


def _fit_model(
    model: Mapping[str, Any], values: Mapping[str, Any], output: OutputOptions, receipt: Path | None
) -> None:
    """Print the sizes that hold a model; raises BadQuery for options that only apply to raw amounts."""
    from app.schemas.fit_request import FitIn

    constraints, pricing = BODY_FIELDS["constraints"], BODY_FIELDS["pricing"]
    allowed = {*constraints, *pricing, *BODY_OPTIONS, *SCOPE_OPTIONS, "status", "purchase"}
    if stray := sorted(values.keys() - allowed):
        value = display_value(values[stray[0]])
        raise BadQuery(option_name(stray[0]), value, "is about raw amounts, not about a model")
    purchase = values.get("purchase", "on_demand")
    given = {name: values[name] for name in BODY_OPTIONS if name in values}
    body = _workload_body(model) | {"limit": PageParams.model_fields["limit"].default} | given
    body["constraints"] = _given(constraints, values)
    body["constraints"] |= _status_constraints(values.get("status", []))
    body["pricing"] = _given(pricing, values)
    body["pricing"]["purchases"] = [purchase, *(other for other in ("on_demand", "spot") if other != purchase)]
    selection = {name: values[name] for name in SCOPE_OPTIONS if name in values}
    if values.get("verified") is False:  # a body's verified_only=false means any size, --no-verified the others
        selection["verified"] = False
    if receipt is not None and selection:
        raise BadQuery("--receipt", receipt, f"cannot be given with {option_name(next(iter(selection)))}")
    parsed = parse_body(FitIn, body)
    chosen = parse_params(SizeSelection, selection)
    among = {name: getattr(chosen, name) for name in chosen.model_fields_set}

    if among:
        from app.services.fit import plan_fit

        answer = context.inquire(lambda inquiry: plan_fit(inquiry.catalog, parsed, among=among))
        data = answer.model_dump(mode="json", by_alias=True)
    else:
        data = context.ask("POST /fit", parsed, receipt=receipt)
    columns = PLACEMENT_COLUMNS
    if model.get("train"):
        columns = {
            name: replace(column, rank=TRAINING_RANKS.get(name, column.rank)) for name, column in columns.items()
        }
    rows = [_placement_row(item, purchase) for item in data["items"]]
    rows, columns = with_notes(rows, in_currency(columns, parsed.pricing.currency, "cost"))
    print_rows(rows, columns, output, json_value=data, objects=data["items"])
    print_no_price(data)
    if output.format is Format.table:
        _print_summary(data, data["rejected"] or data["nearest_misses"])
    if not data["fits"]:
        raise typer.Exit(EXIT_NOT_FOUND)


def _with_model_name(name: str | None, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options with the argument MODEL as `--model`; raises BadQuery where there is another model."""
    if name is None:
        return dict(values)
    for other in ("model", "config"):
        if values[other] is not None:
            raise BadQuery(option_name(other), values[other], f"is a second model beside {name}: give one")
    return {**values, "model": name}


def _given(fields: Mapping[str, str], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields whose options are given."""
    return {field: values[own] for own, field in fields.items() if values.get(own) is not None}


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
    part = "training" if values.get("train") else "inference"
    fields, of_a_service = BODY_FIELDS[part], BODY_FIELDS["serving"]
    applies = {*fields} if part == "training" else {*fields, *of_a_service}
    for own in {**BODY_FIELDS["inference"], **BODY_FIELDS["training"], **of_a_service}:
        if values.get(own) is not None and own not in applies:
            other = "remove --train" if part == "training" else "add --train"
            raise BadQuery(option_name(own), values[own], f"does not apply to {part}; {other} or leave it out")
    files = read_model_files(values.get("config"), values.get("safetensors"))
    service = _given(of_a_service, values)
    body = {"model": values.get("model"), part: _given(fields, values)} | files
    return body | ({"serving": service} if service else {})


def _placement_row(item: Mapping[str, Any], purchase: str) -> dict[str, Any]:
    """Return a placement as a row of the table, with the cost for one purchase model."""
    parallelism, memory = item["parallelism"], item["per_gpu"]
    speed = item.get("speed", {})  # of some kinds of models none is known
    cost = _cost_of_all(item, purchase)
    names = {"TP": "tensor", "PP": "pipeline", "EP": "expert", "DPA": "data_attention", "DP": "data"}
    degrees = {short: parallelism[name] for short, name in names.items()}
    row = {
        "size": item["size"],
        "nodes": item["nodes"],
        "region": item["region"],
        "parallelism": " ".join(f"{name}{degree}" for name, degree in degrees.items() if degree > 1) or "-",
        "gib_per_gpu": f"{memory['need']['mid']:.1f} of {memory['budget']['value']:.1f}",
        "sequences": _mid(item.get("max_concurrency")),
        "tokens_per_s": _mid(speed.get("expected_tokens_per_s")),
        "hours": _mid(speed.get("hours")),
        "usd_per_hour": cost["usd_per_hour"],
        "usd_per_million_tokens": _mid(cost.get("usd_per_million_tokens")),
        "usd_per_job": _mid(cost.get("usd_per_job")),
        "warnings": item["warnings"],
    }
    row |= {name: cost[name] for name in ("adjustment", "estimate") if name in cost}
    if (service := item.get("serving")) is not None:
        row |= {
            "sequences": service["max_concurrency_per_replica"] * service["replicas"],
            "ttft_ms": _mid(speed.get("ttft")),
            "tpot_ms": _mid(speed.get("expected_step")),
            "limited_by": service["limited_by"],
        }
    if (converted := cost.get("converted")) is not None:
        row |= {
            "currency": converted["currency"],
            "cost_per_hour": converted["cost_per_hour"],
            "cost_per_million_tokens": _mid(converted.get("cost_per_million_tokens")),
            "cost_per_job": _mid(converted.get("cost_per_job")),
        }
    return row


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
    print_text(f"{fitting}, {rest} not ({reasons})." if reasons else f"{fitting}.")
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
    if safetensors is None:
        return fields
    path = Path(safetensors)
    if path.suffix == ".json":
        return fields | {"safetensors": _read_json("--safetensors", path)}
    # The tensors of the headers of one file, or of all files of a folder.
    files = sorted(path.glob("*.safetensors")) if path.is_dir() else [path]
    if not files:
        raise BadQuery("--safetensors", str(path), "has no .safetensors files")
    return fields | {"safetensors": {name: tensor for file in files for name, tensor in _read_header(file).items()}}


def _read_json(option: str, path: Path) -> dict[str, Any]:
    try:
        loaded = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise BadQuery(option, str(path), f"cannot be read as JSON: {error}") from None
    if not isinstance(loaded, dict):
        raise BadQuery(option, str(path), "holds no JSON object")
    return loaded


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
    "leave_one_out_error": Column(heading="error, left out"),
    **make_columns({"left_out": "left out", "left_out_n": "n left out"}, left_out=2, left_out_n=2),
    **make_columns({"in_range_share": "in range", "range_width": "high / low"}, n=0, in_range_share=0, range_width=0),
    **make_columns({"worst_ratio": "worst ratio", "compared_on": "on"}, median_error=0, worst_ratio=2, compared_on=3),
    "source": Column(heading="measured by", rank=3, wraps=True),
}


@app.command(cls=Command)
@with_output_options
def accuracy(*, output: OutputOptions) -> None:
    """Show how the estimates agree with what was measured, by family: one figure for one kind of workload."""
    from app.fit.results import read_accuracy

    print_rows([asdict(family) for family in read_accuracy()], ACCURACY_COLUMNS, output)
