"""The commands about language models: what one needs, and where it fits."""

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

import typer
from pydantic import BaseModel, ValidationError

from app.api.estimate.answers import EstimateOut
from app.api.estimate.asking import to_workload
from app.api.estimate.fields import AS_TEXT
from app.api.estimate.schemas import EstimateIn
from app.api.fit.asking import fitting
from app.api.fit.request import FitIn
from app.catalog.ask.known import read_known
from app.cli import context
from app.cli.model_options import CONSTRAINTS, FIELDS, INFERENCE, PRICING, TOP, TRAINING, GpuOptions, ModelOptions
from app.cli.options import asks
from app.cli.output import Csv, Format, Json, chosen, out, show_rows, write_json
from app.db.statements import answer
from app.errors import BadQuestion
from app.estimating import estimate as estimate_workload
from app.validation import explain, shown

app = typer.Typer()

Body = TypeVar("Body", bound=BaseModel)

PLACED_COLUMNS = {
    "size": "size",
    "nodes": "nodes",
    "region": "region",
    "parallelism": "cut",
    "gib_per_gpu": "GiB per GPU",
    "sequences": "sequences",
    "tokens_per_s": "tokens/s",
    "hours": "hours",
    "usd_per_hour": "USD/h",
    "usd_per_million_tokens": "USD/M tokens",
    "usd_per_job": "USD/job",
    "warnings": "warnings",
}
FIGURE_COLUMNS = {"figure": "figure", "value": "value", "unit": "unit", "class": "class"}


@app.command()
@asks(ModelOptions, GpuOptions)
def estimate(*, as_json: Json = False, as_csv: Csv = False, **given: Any) -> None:
    """Say what a language model needs of memory, time and money, on GPUs that are given by their figures."""
    form = chosen(as_json=as_json, as_csv=as_csv)
    body = _read(
        EstimateIn, _workload(given) | {"gpus": _known({name: given[name] for name in GpuOptions.model_fields})}
    )
    with context.session() as session:
        told = EstimateOut.model_validate(estimate_workload(session, to_workload(body))).model_dump(
            mode="json", by_alias=True
        )
    if form is Format.json:
        write_json(told)
        return
    show_rows(list(_figures(told)), FIGURE_COLUMNS, form)
    if form is Format.table:
        if kind := told.get("weights_type"):
            told_type = f"weights: {kind['dtype'] or kind['detail']} ({kind['source']}: {kind['detail']})"
            out.print(told_type, highlight=False, soft_wrap=True)
        for one in told["assumptions"]:
            out.print(f"assumed {one['field']} = {one['value']}: {one['why']}", highlight=False, soft_wrap=True)


def _figures(part: Mapping[str, Any], path: str = "") -> Iterator[dict[str, Any]]:
    """Every figure of an answer, with the path to it; of a range all of its ends."""
    for name, value in part.items():
        if isinstance(value, dict) and "class" in value:
            ends = [value[end] for end in ("low", "mid", "high")]
            shown = f"{value['value']:.6g}" if value["value"] is not None else " .. ".join(f"{end:.4g}" for end in ends)
            yield {"figure": f"{path}{name}", "value": shown, "unit": value["unit"], "class": value["class"]}
        elif isinstance(value, dict) and name != "architecture":
            yield from _figures(value, f"{path}{name}.")


def fit_model(model: Mapping[str, Any], given: Mapping[str, Any], form: Format) -> None:
    """Say which sizes hold a model, from the options of a fit; raises BadQuestion for those of raw amounts."""
    given = _known(given)
    stray = sorted(given.keys() - {*CONSTRAINTS, *PRICING, *TOP, "purchase"})
    if stray:
        raise BadQuestion(f"--{stray[0].replace('_', '-')}", given[stray[0]], "is about raw amounts, not about a model")
    first = given.get("purchase", "on_demand")
    purchases = [first, *(other for other in ("on_demand", "spot") if other != first)]
    body = _workload(model) | {name: given[name] for name in TOP if name in given}
    body["constraints"] = {name: given[own] for own, name in CONSTRAINTS.items() if own in given}
    body["pricing"] = {name: given[own] for own, name in PRICING.items() if own in given} | {"purchases": purchases}
    asked = _read(FitIn, body)
    with context.session() as session:
        found = answer(session, fitting(asked, read_known(session), context.today()))
    told = found.model_dump(mode="json", by_alias=True)
    if form is Format.json:
        write_json(told)
    else:
        show_rows([_row(item, first) for item in told["items"]], PLACED_COLUMNS, form)
    if form is Format.table:
        _tell(told)
    if not told["fits"]:
        raise typer.Exit(context.NOTHING)


def _known(given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if value not in (None, [])}


def _workload(given: Mapping[str, Any]) -> dict[str, Any]:
    """The model and its use, as a body says them."""
    use, names = ("training", TRAINING) if given.get("train") else ("inference", INFERENCE)
    wrong = [own for own in {**INFERENCE, **TRAINING} if given.get(own) is not None and own not in names]
    if wrong:
        raise BadQuestion(
            f"--{wrong[0].replace('_', '-')}", given[wrong[0]], f"is not of {use}; --train says which is meant"
        )
    workload = {name: given[own] for own, name in names.items() if given.get(own) is not None}
    return {"model": given.get("model"), use: workload}


def _read(shape: type[Body], body: Mapping[str, Any]) -> Body:
    """Read a body; raises BadQuestion naming the option that is wrong."""
    try:
        return shape.model_validate(body, context={AS_TEXT: True})
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"] if isinstance(part, str))
        option = FIELDS.get(place, place.rpartition(".")[2] or "question")
        raise BadQuestion(f"--{option.replace('_', '-')}", shown(first.get("input")), explain(first)) from None


def _row(item: Mapping[str, Any], purchase: str) -> dict[str, Any]:
    """An option as a line of a table."""
    cut, memory, speed = item["parallelism"], item["per_gpu"], item["speed"]
    cost = item["cost"][purchase]
    parts = {"TP": cut["tensor"], "PP": cut["pipeline"], "DP": cut["data"]}
    return {
        "size": item["size"],
        "nodes": item["nodes"],
        "region": item["region"],
        "parallelism": " ".join(f"{name}{count}" for name, count in parts.items() if count > 1) or "-",
        "gib_per_gpu": f"{memory['need']['mid']:.1f} of {memory['budget']['value']:.1f}",
        "sequences": _middle(item.get("max_concurrency")),
        "tokens_per_s": _middle(speed.get("expected_tokens_per_s")),
        "hours": _middle(speed.get("hours")),
        "usd_per_hour": cost["usd_per_hour"],
        "usd_per_million_tokens": _middle(cost.get("usd_per_million_tokens")),
        "usd_per_job": _middle(cost.get("usd_per_job")),
        "warnings": item["warnings"],
    }


def _middle(figure: Mapping[str, Any] | None) -> float | None:
    """The middle of a figure to four digits."""
    if figure is None:
        return None
    return float(f"{figure['mid'] if figure['value'] is None else figure['value']:.4g}")


def _tell(told: Mapping[str, Any]) -> None:
    """Say the best option in a sentence, how many do not fit, and of the nearest what would help."""
    reasons = ", ".join(f"{count} {code}" for code, count in told["rejection_summary"].items())
    lines = [f"{told['items'][0]['size']}: {told['items'][0]['explanation']}", ""] if told["items"] else []
    lines.append(f"{told['total']} sizes fit, {told['rejected_total']} do not ({reasons or 'none'}).")
    for miss in told["rejected"] or told["nearest_misses"]:
        lines += [f"  {miss['size']}: {failure['code']}: {failure['detail']}" for failure in miss["failures"]]
        fixes = ", or ".join(fix["text"] for fix in miss["fixes"])
        lines += [f"    fits with {fixes}"] if fixes else []
    for line in ["", *lines]:
        out.print(line, highlight=False, soft_wrap=True)
