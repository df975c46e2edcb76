"""The commands that ask: search, show, fit, conflicts, models."""

import json
from typing import Annotated, Any

import typer

from app.api.fit.answers import fit_out
from app.catalog.ask.known import read_known
from app.catalog.ask.language_models import ModelSearch, find_models
from app.catalog.ask.paging import Item
from app.catalog.ask.prices import PriceSearch, find_prices
from app.catalog.ask.provenance import ConflictSearch, FactSearch, find_conflicts, find_facts
from app.catalog.ask.search import SizeSearch
from app.catalog.ask.searches import FitSearch
from app.catalog.ask.sizes import get_size, search_sizes
from app.cli import context
from app.cli.model_options import ModelOptions
from app.cli.modelling import fit_model
from app.cli.options import asks, question
from app.cli.output import Csv, Format, Json, chosen, err, out, show_rows, write_json
from app.db.statements import answer
from app.recommend import recommend

app = typer.Typer()

SIZE_COLUMNS = {
    "name": "size",
    "status": "status",
    "vcpus": "vCPUs",
    "memory_gib": "memory GiB",
    "gpu_count": "GPUs",
    "gpu_model": "GPU",
    "gpu_memory_gib": "GPU mem GiB",
    "gpu_memory_gib_per_gpu": "per GPU",
    "region": "region",
    "on_demand_usd_per_hour": "USD/h",
    "on_demand_as_of": "as of",
    "spot_usd_per_hour": "spot USD/h",
    "spot_as_of": "as of ",
}
FACT_COLUMNS = {
    "field": "field",
    "value": "value",
    "unit": "unit",
    "verdict": "verdict",
    "source_id": "source",
    "corrected_value": "corrected to",
    "raw": "verbatim",
    "reason": "why",
}
CONFLICT_COLUMNS = {
    "name": "of",
    "field": "field",
    "accepted_value": "accepted",
    "accepted_source_id": "of source",
    "value": "disputed",
    "source_id": "of source ",
}
MODEL_COLUMNS = {
    "id": "model",
    "params": "params",
    "active_params": "active",
    "layers": "layers",
    "hidden": "hidden",
    "attention": "attention",
    "kv_heads": "KV heads",
    "head_dim": "head dim",
    "experts": "experts",
    "dtype": "dtype",
    "max_context_tokens": "context tokens",
    "license": "license",
}
OPTION_COLUMNS = {
    "size": "size",
    "nodes": "nodes",
    "region": "region",
    "usd_per_hour": "USD/h",
    "as_of": "as of",
    "usd_per_month": "USD/month",
    "limiting_resource": "tightest",
    "unused_gpu_memory_percent": "GPU mem unused %",
    "warnings": "warnings",
}


@app.command()
@asks(SizeSearch)
def search(*, as_json: Json = False, as_csv: Csv = False, **given: Any) -> None:
    """Find sizes, each with its price in the asked region, else in the cheapest."""
    form = chosen(as_json=as_json, as_csv=as_csv)
    with context.session() as session:
        page = search_sizes(session, question(SizeSearch, given), today=context.today())
    show_rows([json.loads(item) for item in page.items], SIZE_COLUMNS, form)
    _end(len(page.items), page.total, page.next_cursor, form)


@app.command()
@asks(ConflictSearch)
def conflicts(*, as_json: Json = False, as_csv: Csv = False, **given: Any) -> None:
    """List every figure on which sources disagree: the accepted one and the other."""
    form = chosen(as_json=as_json, as_csv=as_csv)
    with context.session() as session:
        page = find_conflicts(session, question(ConflictSearch, given))
    show_rows(page.items, CONFLICT_COLUMNS, form)
    _end(len(page.items), page.total, page.next_cursor, form)


@app.command()
@asks(ModelSearch)
def models(*, as_json: Json = False, as_csv: Csv = False, **given: Any) -> None:
    """List language models whose configuration is known."""
    form = chosen(as_json=as_json, as_csv=as_csv)
    with context.session() as session:
        page = find_models(session, question(ModelSearch, given))
    show_rows(page.items, MODEL_COLUMNS, form)
    _end(len(page.items), page.total, page.next_cursor, form)


@app.command()
def show(
    name: Annotated[str, typer.Argument(help="The size, in any case, with or without `Standard_`.")],
    *,
    as_json: Json = False,
    as_csv: Csv = False,
) -> None:
    """Show a size, who says what of it, and what it costs."""
    form = chosen(as_json=as_json, as_csv=as_csv)
    with context.session() as session:
        size = json.loads(get_size(session, name, today=context.today()))
        facts = find_facts(session, name, FactSearch(limit=500)).items
        prices = answer(session, find_prices(name, PriceSearch(limit=500), read_known(session), context.today())).items
    if form is Format.json:
        write_json({"size": size, "facts": facts, "prices": prices})
    elif form is Format.csv:
        show_rows([size], {}, form)
    else:
        _show_size(size, facts, prices)


def _show_size(size: Item, facts: list[Item], prices: list[Item]) -> None:
    known = [{"field": name, "value": value} for name, value in size.items() if value not in (None, [])]
    show_rows(known, {"field": "field", "value": "value"}, Format.table, title=f"\n{size['name']}")
    show_rows(facts, FACT_COLUMNS, Format.table, title="\nWho says what")
    columns = {name: name for name in ("region", "os", "purchase", "usd_per_hour", "valid_from", "source_id")}
    show_rows(prices, columns, Format.table, title=f"\nPrices in force ({len(prices)})")


@app.command()
@asks(ModelOptions, FitSearch)
def fit(*, as_json: Json = False, as_csv: Csv = False, **given: Any) -> None:
    """Say which sizes hold a model (--model) or meet the needs, on how many VMs, at what cost, and why not others."""
    form = chosen(as_json=as_json, as_csv=as_csv)
    model = {name: given.pop(name) for name in ModelOptions.model_fields}
    if any(value is not None for value in model.values()):
        fit_model(model, given, form)
        return
    asked = question(FitSearch, given)
    with context.session() as session:
        answer = recommend(session, asked, today=context.today())
    told = fit_out(answer, rejected="rejected" in asked.include).model_dump(mode="json", by_alias=True)
    if form is Format.json:
        write_json(told)
    else:
        show_rows([item | item["cost"][asked.purchase] for item in told["items"]], OPTION_COLUMNS, form)
    if form is Format.table:
        _tell_misses(told)
    if not told["items"]:
        raise typer.Exit(context.NOTHING)


def _tell_misses(told: Item) -> None:
    reasons = ", ".join(f"{count} {code}" for code, count in told["rejection_summary"].items())
    if told["items"]:
        best = told["items"][0]
        out.print(f"\n{best['size']}: {best['explanation']}", highlight=False, soft_wrap=True)
    counts = f"{told['total']} sizes fit, {told['rejected_total']} do not ({reasons or 'none'})."
    out.print(f"\n{counts}", highlight=False, soft_wrap=True)
    for miss in told["rejected"] or (told["nearest_misses"] if not told["items"] else []):
        for failure in miss["failures"]:
            out.print(f"  {miss['size']}: {failure['code']}: {failure['detail']}", highlight=False, soft_wrap=True)


def _end(shown: int, total: int, cursor: str | None, form: Format) -> None:
    """Say on stderr what is not shown; finding nothing has an exit code of its own."""
    if total == 0:
        err.print("Nothing matches.", highlight=False)
        raise typer.Exit(context.NOTHING)
    if form is Format.table:
        out.print(f"\n{shown} of {total}.", highlight=False)
    if cursor:
        err.print(f"More: --cursor {cursor}", highlight=False, soft_wrap=True)
