"""The commands about language models: what one needs, and where it fits."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import date
from typing import Annotated, Any, TypeVar

import typer
from pydantic import BaseModel, ValidationError

from app.api.converters.fit_request import plan_fit, to_search, to_workload
from app.api.converters.fit_response import to_placement_answer_out
from app.api.schemas.bodies import TEXT_VALUES
from app.api.schemas.estimate_request import EstimateIn
from app.api.schemas.estimate_response import EstimateOut
from app.api.schemas.fit_request import FitIn
from app.api.schemas.fit_response import FitAnswerOut
from app.catalog.queries.params import SizeSelection
from app.catalog.queries.snapshot import CatalogSnapshot, load_snapshot
from app.cli import context, options
from app.cli.model_options import (
    BODY_OPTIONS,
    CONSTRAINT_FIELDS,
    INFERENCE_FIELDS,
    OPTION_OF_FIELD,
    PRICING_FIELDS,
    SCOPE_OPTIONS,
    TRAINING_FIELDS,
    GpuOptions,
    ModelOptions,
)
from app.cli.options import Command, option_name, parse_params, query_options
from app.cli.output import Format, OutputOptions, print_rows, print_text, with_output_options
from app.cli.tables import Column
from app.db.statements import QueryPlan, run_plan
from app.errors import BadQuery
from app.services.estimate import estimate as estimate_workload
from app.services.placement import PlacementSearch, plan_placement
from app.validation import display_value, explain

app = typer.Typer()

Body = TypeVar("Body", bound=BaseModel)

PLACEMENT_COLUMNS = {
    "size": Column(heading="size"),
    "nodes": Column(heading="nodes", rank=2),
    "region": Column(heading="region", rank=6),
    "parallelism": Column(heading="cut", rank=1),
    "gib_per_gpu": Column(heading="GiB per GPU", rank=3),
    "sequences": Column(heading="sequences", rank=8),
    "tokens_per_s": Column(heading="tokens/s", rank=4),
    "hours": Column(heading="hours", rank=9),
    "usd_per_hour": Column(heading="USD/h"),
    "usd_per_million_tokens": Column(heading="USD/M tokens", rank=10),
    "usd_per_job": Column(heading="USD/job", rank=9),
    "warnings": Column(heading="warnings", rank=7, wraps=True),
}
TRAINING_RANKS = {"hours": 4, "usd_per_job": 3, "tokens_per_s": 9, "sequences": 10}
"""Of a training the hours and the cost of the job matter more than what serving is about."""
FIGURE_COLUMNS = {
    "figure": Column(heading="figure"),
    "value": Column(heading="value"),
    "unit": Column(heading="unit", rank=1),
    "class": Column(heading="class", rank=2),
}
MODEL_ARGUMENT = typer.Argument(
    metavar="MODEL",
    help="A language model by any of its names: `llama-3.3-70b`.",
    autocompletion=options.completer(options.model_ids),
)


@app.command(cls=Command)
@query_options(ModelOptions, GpuOptions)
@with_output_options
def estimate(
    model_name: Annotated[str | None, MODEL_ARGUMENT] = None,
    *,
    output: OutputOptions,
    **given: Any,
) -> None:
    """Say what a language model needs of memory, time and money, on GPUs that are given by their figures."""
    given = with_model_name(model_name, given)
    body = _parse_body(
        EstimateIn,
        _workload_body(given) | {"gpus": _drop_unset({name: given[name] for name in GpuOptions.model_fields})},
    )
    with context.session() as session:
        told = EstimateOut.model_validate(estimate_workload(session, to_workload(body))).model_dump(
            mode="json", by_alias=True
        )
    print_rows(list(_flatten_figures(told)), FIGURE_COLUMNS, output, json_value=told)
    if output.format is Format.table:
        if kind := told.get("weights_type"):
            print_text(
                f"weights: {kind['dtype'] or kind['detail']} ({kind['source']}: {kind['detail']})", indent="    "
            )
        for one in told["assumptions"]:
            print_text(f"assumed {one['field']} = {one['value']}: {one['why']}", indent="    ")


def with_model_name(name: str | None, given: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a model with its name, which may stand without an option."""
    if name is None:
        return dict(given)
    if given["model"] is not None:
        raise BadQuery("--model", given["model"], f"is a second model beside {name}: give one")
    return {**given, "model": name}


def _flatten_figures(part: Mapping[str, Any], path: str = "") -> Iterator[dict[str, Any]]:
    """Every figure of an answer, with the path to it; of a range all of its ends."""
    for name, value in part.items():
        if isinstance(value, dict) and "class" in value:
            ends = [value[end] for end in ("low", "mid", "high")]
            shown = f"{value['value']:.6g}" if value["value"] is not None else " .. ".join(f"{end:.4g}" for end in ends)
            yield {"figure": f"{path}{name}", "value": shown, "unit": value["unit"], "class": value["class"]}
        elif isinstance(value, dict) and name != "architecture":
            yield from _flatten_figures(value, f"{path}{name}.")


def fit_model(model: Mapping[str, Any], given: Mapping[str, Any], output: OutputOptions) -> None:
    """Say which sizes hold a model, from the options of a fit; raises BadQuestion for those of raw amounts."""
    given = _drop_unset(given)
    stray = sorted(
        given.keys() - {*CONSTRAINT_FIELDS, *PRICING_FIELDS, *BODY_OPTIONS, *SCOPE_OPTIONS, "status", "purchase"}
    )
    if stray:
        raise BadQuery(option_name(stray[0]), display_value(given[stray[0]]), "is about raw amounts, not about a model")
    first = given.get("purchase", "on_demand")
    purchases = [first, *(other for other in ("on_demand", "spot") if other != first)]
    body = _workload_body(model) | {name: given[name] for name in BODY_OPTIONS if name in given}
    body["constraints"] = {name: given[own] for own, name in CONSTRAINT_FIELDS.items() if own in given}
    body["constraints"] |= _status_constraints(given.get("status", []))
    body["pricing"] = {name: given[own] for own, name in PRICING_FIELDS.items() if own in given} | {
        "purchases": purchases
    }
    narrowed = {name: given[name] for name in SCOPE_OPTIONS if name in given}
    narrowed |= {"verified": False} if given.get("verified") is False else {}
    asked, scope = _parse_body(FitIn, body), parse_params(SizeSelection, narrowed)
    with context.session() as session:
        found = run_plan(session, _fit_query(asked, scope, load_snapshot(session), context.today()))
    told = found.model_dump(mode="json", by_alias=True)
    items = told["items"]
    print_rows([_placement_row(item, first) for item in items], _columns(model), output, json_value=told, objects=items)
    if output.format is Format.table:
        _print_summary(told)
    if not told["fits"]:
        raise typer.Exit(context.EXIT_NOT_FOUND)


def _columns(model: Mapping[str, Any]) -> Mapping[str, Column]:
    if not model.get("train"):
        return PLACEMENT_COLUMNS
    return {name: replace(one, rank=TRAINING_RANKS.get(name, one.rank)) for name, one in PLACEMENT_COLUMNS.items()}


def _status_constraints(statuses: Any) -> dict[str, bool]:
    """Which sizes that can be ordered count: `current` always does."""
    asked = set(parse_params(SizeSelection, {"status": statuses}).status)
    if not asked or "any" in asked:
        return {}
    if "current" not in asked or "retired" in asked:
        raise BadQuery("--status", ",".join(sorted(asked)), "of a model: current, and preview and retiring beside it")
    return {"allow_preview": "preview" in asked, "allow_retiring": "retiring" in asked}


def _fit_query(asked: FitIn, scope: SizeSelection, known: CatalogSnapshot, today: date) -> QueryPlan[FitAnswerOut]:
    """Ask as a body does, of the sizes that the options of a search leave."""
    search = to_search(asked, today)
    given = {name: getattr(scope, name) for name in scope.model_fields_set}
    if not given or not isinstance(search, PlacementSearch):
        return (yield from plan_fit(asked, known, today))
    search = replace(search, scope=search.scope.model_copy(update=given))
    placements = yield from plan_placement(search, known, today)
    return to_placement_answer_out(placements, limit=asked.limit, include=asked.include)


def _drop_unset(given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if value not in (None, [])}


def _workload_body(given: Mapping[str, Any]) -> dict[str, Any]:
    """The model and its use, as a body says them."""
    use, names = ("training", TRAINING_FIELDS) if given.get("train") else ("inference", INFERENCE_FIELDS)
    wrong = [own for own in {**INFERENCE_FIELDS, **TRAINING_FIELDS} if given.get(own) is not None and own not in names]
    if wrong:
        raise BadQuery(option_name(wrong[0]), given[wrong[0]], f"is not of {use}; --train says which is meant")
    workload = {name: given[own] for own, name in names.items() if given.get(own) is not None}
    return {"model": given.get("model"), use: workload}


def _parse_body(model: type[Body], body: Mapping[str, Any]) -> Body:
    """Read a body; raises BadQuestion naming the option that is wrong."""
    try:
        return model.model_validate(body, context={TEXT_VALUES: True})
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"] if isinstance(part, str))
        field = OPTION_OF_FIELD.get(place, place.rpartition(".")[2] or "question")
        raise BadQuery(option_name(field), display_value(first.get("input")), explain(first)) from None


def _placement_row(item: Mapping[str, Any], purchase: str) -> dict[str, Any]:
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
        "sequences": _mid(item.get("max_concurrency")),
        "tokens_per_s": _mid(speed.get("expected_tokens_per_s")),
        "hours": _mid(speed.get("hours")),
        "usd_per_hour": cost["usd_per_hour"],
        "usd_per_million_tokens": _mid(cost.get("usd_per_million_tokens")),
        "usd_per_job": _mid(cost.get("usd_per_job")),
        "warnings": item["warnings"],
    }


def _mid(figure: Mapping[str, Any] | None) -> float | None:
    """The middle of a figure to four digits."""
    if figure is None:
        return None
    return float(f"{figure['mid'] if figure['value'] is None else figure['value']:.4g}")


def _print_summary(told: Mapping[str, Any]) -> None:
    """Say the best option in a sentence, how many do not fit, and of the nearest what would help."""
    reasons = ", ".join(f"{count} {code}" for code, count in told["rejection_summary"].items())
    lines = [f"{told['items'][0]['size']}: {told['items'][0]['explanation']}", ""] if told["items"] else []
    lines.append(f"{told['total']} sizes fit, {told['rejected_total']} do not ({reasons or 'none'}).")
    for miss in told["rejected"] or told["nearest_misses"]:
        lines += [f"  {miss['size']}: {failure['code']}: {failure['detail']}" for failure in miss["failures"]]
        fixes = ", or ".join(fix["text"] for fix in miss["fixes"])
        lines += [f"    fits with {fixes}"] if fixes else []
    for line in ["", *lines]:
        start = line[: len(line) - len(line.lstrip())]
        print_text(line.lstrip(), first=start, indent=f"{start}  " if start else "")
