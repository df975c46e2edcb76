"""The commands that ask: search, show, fit, conflicts, models."""

import json
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import typer
from sqlalchemy.orm import Session

from app.catalog.queries.fit_params import FitSearch
from app.catalog.queries.gpu_filters import GpuNames, load_gpu_names, resolve_gpus
from app.catalog.queries.language_models import ModelSearch
from app.catalog.queries.params import SizeSearch
from app.catalog.queries.provenance import ConflictSearch
from app.cli import context, options
from app.cli.model_options import ModelOptions
from app.cli.options import Command, parse_gpu_and_count, parse_params, query_options
from app.cli.output import (
    Format,
    OutputOptions,
    print_line,
    print_next_cursor,
    print_note,
    print_rows,
    print_text,
    with_output_options,
    write_json,
)
from app.cli.tables import Column
from app.errors import BadQuery

app = typer.Typer()

SIZE_COLUMNS = {
    "name": Column(heading="size"),
    "status": Column(heading="status", rank=9),
    "vcpus": Column(heading="vCPUs", rank=5),
    "memory_gib": Column(heading="mem GiB", rank=6),
    "gpu_count": Column(heading="GPUs", rank=1),
    "gpu_model": Column(heading="GPU", rank=2),
    "gpu_memory_gib_per_gpu": Column(heading="GiB/GPU", rank=3),
    "gpu_memory_gib": Column(heading="GPU GiB", rank=8),
    "on_demand_usd_per_hour": Column(heading="USD/h"),
    "region": Column(heading="region", rank=4),
    "on_demand_as_of": Column(heading="as of", rank=7),
    "price_age_days": Column(heading="days old", rank=7),
    "spot_usd_per_hour": Column(heading="spot USD/h", rank=7),
    "spot_as_of": Column(heading="spot as of", rank=8),
}
CONFLICT_COLUMNS = {
    "name": Column(heading="of"),
    "field": Column(heading="field"),
    "accepted_value": Column(heading="accepted", wraps=True),
    "accepted_source_id": Column(heading="of source", rank=2),
    "value": Column(heading="disputed", wraps=True),
    "source_id": Column(heading="of source", rank=1),
}


def _in_billions(params: float) -> str:
    return f"{params / 1e9:.3g}B"


MODEL_COLUMNS = {
    "id": Column(heading="model"),
    "params": Column(heading="params", format=_in_billions),
    "active_params": Column(heading="active", rank=1, format=_in_billions),
    "layers": Column(heading="layers", rank=4),
    "hidden": Column(heading="hidden", rank=5),
    "attention": Column(heading="attention", rank=6),
    "kv_heads": Column(heading="KV heads", rank=7),
    "head_dim": Column(heading="head dim", rank=8),
    "experts": Column(heading="experts", rank=3),
    "dtype": Column(heading="dtype", rank=1),
    "max_context_tokens": Column(heading="context", rank=1),
    "license": Column(heading="license", rank=2),
}
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


@app.command(cls=Command)
@query_options(SizeSearch, choices={"sort": options.sort_keys})
@with_output_options
def search(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="GPU",
            help="A GPU by any of its names: `A100`, `A100-80GB`, `H100:8` for exactly 8 of it; several: any of them. "
            "What is the name of no GPU is looked for in the names of sizes and series.",
            autocompletion=options.completer(options.gpu_ids),
        ),
    ] = None,
    *,
    gpus: Annotated[
        str | None,
        typer.Option(
            metavar="N",
            help="Exactly so many GPUs; a sixth is 1/6.",
            show_default=False,
            rich_help_panel="What a VM must have",
        ),
    ] = None,
    output: OutputOptions,
    **given: Any,
) -> None:
    """Find sizes, each with its price in the asked region, else in the cheapest."""
    from app.catalog.queries.sizes import search_sizes

    with context.session() as session:
        given = add_search_words(session, words or [], _exact_gpu_count(gpus, given))
        page = search_sizes(session, parse_params(SizeSearch, given), today=context.today())
    print_rows([json.loads(item) for item in page.items], SIZE_COLUMNS, output)
    print_footer(len(page.items), page.total, page.next_cursor, output)


def _exact_gpu_count(gpus: str | None, given: Mapping[str, Any]) -> dict[str, Any]:
    """A number of GPUs is a least and a most."""
    if gpus is None:
        return dict(given)
    if given["min_gpus"] is not None or given["max_gpus"] is not None:
        raise BadQuery("--gpus", gpus, "is an exact number; give either it or --min-gpus and --max-gpus")
    return {**given, "min_gpus": gpus, "max_gpus": gpus}


@app.command(cls=Command)
@query_options(ConflictSearch)
@with_output_options
def conflicts(
    *,
    output: OutputOptions,
    **given: Any,
) -> None:
    """List every figure on which sources disagree: the accepted one and the other."""
    from app.catalog.queries.provenance import find_conflicts

    with context.session() as session:
        page = find_conflicts(session, parse_params(ConflictSearch, given))
    print_rows(page.items, CONFLICT_COLUMNS, output)
    print_footer(len(page.items), page.total, page.next_cursor, output)


@app.command(cls=Command)
@query_options(ModelSearch)
@with_output_options
def models(
    *,
    output: OutputOptions,
    **given: Any,
) -> None:
    """List language models whose configuration is known."""
    from app.catalog.queries.language_models import find_models

    with context.session() as session:
        page = find_models(session, parse_params(ModelSearch, given))
    print_rows(page.items, MODEL_COLUMNS, output)
    print_footer(len(page.items), page.total, page.next_cursor, output)


@app.command(name="show", cls=Command)
@with_output_options
def show_size(
    name: Annotated[str, options.SIZE_ARGUMENT],
    *,
    with_facts: Annotated[bool, typer.Option("--facts", help="Who says what of it.")] = False,
    with_prices: Annotated[bool, typer.Option("--prices", help="All its prices in force.")] = False,
    output: OutputOptions,
) -> None:
    """Show a size: its GPUs and price first, then all else, and its cheapest regions."""
    from app.catalog.queries.prices import PriceSearch, find_prices
    from app.catalog.queries.provenance import FactSearch, find_facts
    from app.catalog.queries.sizes import get_size
    from app.catalog.queries.snapshot import load_snapshot
    from app.db.statements import run_plan

    if with_facts and with_prices:
        raise typer.BadParameter("--facts and --prices are two lists: give one at a time")
    with context.session() as session:
        size = json.loads(get_size(session, name, today=context.today()))
        facts = find_facts(session, name, FactSearch(limit=500)).items
        prices = run_plan(
            session, find_prices(name, PriceSearch(limit=500), load_snapshot(session), context.today())
        ).items
    if with_facts or with_prices:
        _print_list(facts if with_facts else prices, output, facts=with_facts)
    elif output.format is Format.json and not output.columns:
        write_json({"size": size, "facts": facts, "prices": prices})
    elif output.columns or output.format is Format.csv:
        print_rows([size], {}, output)
    else:
        _print_size(size, prices)


def _print_list(rows: Sequence[Any], output: OutputOptions, *, facts: bool) -> None:
    from app.cli.size_text import FACT_COLUMNS, PRICE_COLUMNS

    print_rows(rows, FACT_COLUMNS if facts else PRICE_COLUMNS, output)
    print_footer(len(rows), len(rows), None, output)


def _print_size(size: Any, prices: Sequence[Any]) -> None:
    from app.catalog.fields import SIZE_FLAGS
    from app.cli.size_text import print_size

    print_size(size, prices, list(SIZE_FLAGS))


@app.command(cls=Command)
@query_options(ModelOptions, FitSearch)
@with_output_options
def fit(
    model_name: Annotated[
        str | None,
        typer.Argument(
            metavar="MODEL",
            help="A language model by any of its names: `llama-3.3-70b`. Without one the options say what a VM must "
            "have.",
            autocompletion=options.completer(options.model_ids),
        ),
    ] = None,
    *,
    output: OutputOptions,
    **given: Any,
) -> None:
    """Say which sizes hold a model or meet the needs, on how many VMs, at what cost, and why not others."""
    from app.cli.estimate import fit_model, with_model_name

    model = with_model_name(model_name, {field: given.pop(field) for field in ModelOptions.model_fields})
    if any(value is not None for value in model.values()):
        fit_model(model, given, output)
    else:
        _fit_needs(given, output)


def _fit_needs(given: dict[str, Any], output: OutputOptions) -> None:
    from app.api.converters.resource_fit import to_fit_out
    from app.services.resource_fit import fit_resources

    asked = parse_params(FitSearch, given)
    with context.session() as session:
        answer = fit_resources(session, asked, today=context.today())
    told = to_fit_out(answer, rejected="rejected" in asked.include).model_dump(mode="json", by_alias=True)
    items = told["items"]
    print_rows(
        [item | _plain_cost(item["cost"][asked.purchase]) for item in items],
        FIT_COLUMNS,
        output,
        json_value=told,
        objects=items,
    )
    if output.format is Format.table:
        _print_misses(told)
    if not items:
        raise typer.Exit(context.EXIT_NOT_FOUND)


def _plain_cost(cost: Mapping[str, Any]) -> dict[str, Any]:
    """A cost with plain numbers: of raw amounts every one is exact."""
    return {name: part["value"] if isinstance(part, dict) else part for name, part in cost.items()}


def _print_misses(told: Mapping[str, Any]) -> None:
    reasons = ", ".join(f"{count} {code}" for code, count in told["rejection_summary"].items())
    if told["items"]:
        best = told["items"][0]
        print_line()
        print_text(f"{best['size']}: {best['explanation']}")
    print_line()
    print_text(f"{told['total']} sizes fit, {told['rejected_total']} do not ({reasons or 'none'}).")
    for miss in told["rejected"] or (told["nearest_misses"] if not told["items"] else []):
        for failure in miss["failures"]:
            print_text(f"{miss['size']}: {failure['code']}: {failure['detail']}", first="  ", indent="    ")


def print_footer(shown: int, total: int, cursor: str | None, output: OutputOptions) -> None:
    """Say on stderr what is not shown; finding nothing has an exit code of its own."""
    if total == 0:
        print_note("Nothing matches.")
        raise typer.Exit(context.EXIT_NOT_FOUND)
    if output.format is Format.table:
        print_line()
        print_line(f"{shown} of {total}.")
    if cursor:
        print_next_cursor(cursor)


def add_search_words(session: Session, words: Sequence[str], given: Mapping[str, Any]) -> dict[str, Any]:
    """Add to the options what the words say; raises BadQuestion for `X:8` where X is no GPU, or two numbers differ."""
    asked = dict(given)
    parts = [parse_gpu_and_count(one) for word in words for one in word.split(",") if one.strip()]
    phrase = [parse_gpu_and_count(" ".join(words))] if len(words) > 1 else []
    known = load_gpu_names(session)
    if phrase and _is_gpu(known, phrase[0][0]):
        parts = phrase
    for word, count in parts:
        if _is_gpu(known, word, must=count is not None):
            asked["gpu"] = [*(asked["gpu"] or []), word]
        else:
            asked["q"] = " ".join(filter(None, (asked["q"], word)))
        _set_gpu_count(asked, word, count)
    return asked


def _set_gpu_count(asked: dict[str, Any], word: str, count: str | None) -> None:
    if count is None:
        return
    for bound in ("min_gpus", "max_gpus"):
        if asked[bound] not in (None, count):
            raise BadQuery("GPU", f"{word}:{count}", f"says {count} GPUs, and {asked[bound]} are asked for besides")
        asked[bound] = count


def _is_gpu(known: GpuNames, word: str, *, must: bool = False) -> bool:
    """Whether the filter of GPUs takes a word."""
    try:
        resolve_gpus(known, [word.lower()], "GPU")
    except BadQuery:
        if must:
            raise
        return False
    return True
