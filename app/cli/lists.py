"""Commands that list what the catalog has beside sizes: conflicts, refused prices, models, changes and retirements."""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pydantic import BaseModel

from app.catalog.queries.changes import ChangeSearch
from app.catalog.queries.provenance import ConflictSearch, ModelSearch, RefusedPriceSearch
from app.catalog.queries.retirements import RetirementSearch
from app.cli import context
from app.cli.options import Command, drop_unset, option_name, parse_body, parse_params, query_options
from app.cli.output import (
    EXIT_BAD_DATA,
    Column,
    Format,
    OutputOptions,
    Record,
    format_cents,
    format_value,
    make_columns,
    print_commitment,
    print_line,
    print_no_price,
    print_page,
    print_rows,
    print_text,
    with_list_prices,
    with_output_options,
)
from app.errors import BadData, BadQuery
from app.schemas.retirement_request import SuccessorNeedsIn
from app.validation import display_value, plural

if TYPE_CHECKING:
    from app.questions import Inquiry

app = typer.Typer()

CONFLICT_COLUMNS = {
    **make_columns({"name": "of", "accepted_value": "accepted"}, name=0, field=0, region=3, accepted_value=0),
    **make_columns({"accepted_source_id": "source", "value": "disputed"}, accepted_source_id=2, value=0),
    "source_id": Column(heading="other source", rank=1),
}
REFUSED_PRICE_COLUMNS = make_columns(
    size=0, region=0, usd_per_hour=0, valid_from=3, seen_until=2, rule=0, evidence=1, source_id=4
)


def _in_billions(params: float) -> str:
    return f"{params / 1e9:.3g}B"


MODEL_COLUMNS = {
    "id": Column(heading="model"),
    "params": Column(heading="params", format=_in_billions),
    "active_params": Column(heading="active", rank=1, format=_in_billions),
    **make_columns({"kv_heads": "KV heads"}, layers=4, hidden=5, attention=6, kv_heads=7, head_dim=8, experts=3),
    **make_columns({"max_context_tokens": "context"}, dtype=1, max_context_tokens=1, license=2),
}
CHANGE_COLUMNS = {
    **make_columns(on=4, kind=0, size=0, region=1, os=6, purchase=5, field=3, old=0, new=0),
    "percent": Column(heading="%", rank=2, format="{:+.1f}".format),
    **make_columns(valid_from=8, source_id=9, revision=7),
}
RETIREMENT_COLUMNS = make_columns(
    retirement_date=0, days_left=2, size=0, series=1, vcpus=4, memory_gib=5, gpu_model=3, source_url=6
)
PLAN_COLUMNS = {
    "id": Column(heading="id", rank=4, wraps=True),
    **make_columns({"count": "VMs"}, size=0, region=2, count=3, retirement_date=1, days_left=7, successor=0),
    **make_columns({"successor_usd_per_hour": "then"}, usd_per_hour=0, successor_usd_per_hour=0),
    "change_usd_per_month": Column(heading="+/- USD/month", format=format_cents),
    **make_columns(lost=6),
}
_DATED = {"past", "after", "before"}
"""Options that say which retirements are listed; without any, those to come."""


def _list_command(endpoint: str, model: type[BaseModel], columns: Mapping[str, Column], text: str) -> None:
    """Add the command that prints a page of a list, named like its endpoint."""

    @with_output_options
    def print_list(*, output: OutputOptions, **values: Any) -> None:
        print_page(context.ask(endpoint, parse_params(model, values)), columns, output)

    print_list.__doc__ = text
    app.command(endpoint.removeprefix("GET /"), cls=Command)(query_options(model)(print_list))


_list_command(
    "GET /conflicts",
    ConflictSearch,
    CONFLICT_COLUMNS,
    "List every figure on which sources disagree: the accepted one and the other.",
)
_list_command(
    "GET /refused-prices",
    RefusedPriceSearch,
    REFUSED_PRICE_COLUMNS,
    "List the retail prices that were refused because they belong to another meter, with rule and evidence.",
)
_list_command("GET /models", ModelSearch, MODEL_COLUMNS, "List the language models whose configuration is known.")


@app.command(cls=Command)
@query_options(ChangeSearch)
@with_output_options
def changes(*, output: OutputOptions, **values: Any) -> None:
    """List what ingests changed: prices, sizes, values, disputes and retirements, the oldest first."""
    page = context.ask("GET /changes", parse_params(ChangeSearch, values))
    tracked = f"Changes are known since {page['tracked_since'][:10]}."
    rows = [item | {"on": item["at"][:10]} for item in page["items"]]
    is_table = output.format is Format.table and not output.columns
    columns = CHANGE_COLUMNS if is_table else {name: CHANGE_COLUMNS[name] for name in CHANGE_COLUMNS if name != "on"}
    shown = rows if is_table else page["items"]
    print_page(page, columns, output, rows=shown, remark=f". {tracked}", nothing=f"Nothing matches. {tracked}")


@app.command(cls=Command)
@query_options(RetirementSearch, SuccessorNeedsIn)
@with_output_options
def retirements(
    inventory: Annotated[
        Path | None,
        typer.Argument(
            metavar="INVENTORY",
            help="A CSV file with the columns size and region, and optionally count and id, whatever else it has; or "
            "what `az vm list` prints. Without one all announced retirements are listed.",
            show_default=False,
        ),
    ] = None,
    *,
    output: OutputOptions,
    **values: Any,
) -> None:
    """List retirements to come, or find out which VMs of an inventory retire and what can take their place."""
    given = drop_unset(values)
    if "keep" in given:
        given["keep"] = [name.strip() for names in given["keep"] for name in names.split(",") if name.strip()]
    own, other = (SuccessorNeedsIn, RetirementSearch) if inventory is not None else (RetirementSearch, SuccessorNeedsIn)
    for name in given.keys() & (other.model_fields.keys() - own.model_fields.keys()):
        detail = "is about the list of retirements, not about an inventory" if inventory else "needs an inventory"
        raise BadQuery(option_name(name), display_value(given[name]), detail)
    if inventory is None:
        _list(given, output)
    else:
        _plan(inventory, given, output)


def _list(values: Mapping[str, Any], output: OutputOptions) -> None:
    coming_only = not values.keys() & _DATED
    search = parse_params(RetirementSearch, {**values, "past": False} if coming_only else values)
    others = search.model_copy(update={"past": True, "cursor": None, "limit": 1})

    def find(inquiry: "Inquiry") -> tuple[Record, int]:
        page = inquiry.ask("GET /retirements", search)
        return page, inquiry.ask("GET /retirements", others)["total"] if coming_only else 0

    page, past = context.inquire(find)
    notes = [f"{past} {'has' if past == 1 else 'have'} passed: --past lists {'it' if past == 1 else 'them'}."]
    nothing = "Nothing is to come." if past else "Nothing matches."
    print_page(page, RETIREMENT_COLUMNS, output, notes=notes if past else (), nothing=nothing)


def _plan(inventory: Path, values: Mapping[str, Any], output: OutputOptions) -> None:
    """Print a plan; exits with the code of bad data where an item names something that the catalog does not have."""
    from app.converters.inventory import read_inventory
    from app.services.retirements import plan_retirements, to_plan_rows

    needs, items = parse_body(SuccessorNeedsIn, values), read_inventory(inventory)
    if not items:
        raise BadData("has no VMs", file=str(inventory))
    plan = context.inquire(lambda inquiry: plan_retirements(inquiry.catalog, items, needs))
    data = plan.model_dump(mode="json")
    rows, columns = with_list_prices(to_plan_rows(data["items"]), PLAN_COLUMNS)
    rows, columns = with_list_prices(rows, columns, "successor_")
    print_rows(rows, columns, output, json_value=data, objects=data["items"])
    if output.format is Format.table:
        _print_remarks(data)
    print_no_price(data)
    if data["summary"]["outcomes"]["error"]:
        raise typer.Exit(EXIT_BAD_DATA)


def _print_remarks(data: Record) -> None:
    """Print what the table has no room for: items without an answer, equal ones once, and the plan in numbers."""
    print_line()
    for remarks in dict.fromkeys(tuple(_remarks(item)) for item in data["items"]):
        for remark in remarks:
            print_text(remark, indent="    ")
    summary = data["summary"]
    for due in summary["by_date"]:
        missing = due["without_successor"]
        lacking = f", {plural(missing, 'item')} without a successor" if missing else ""
        vms = f"{plural(due['vms'], 'VM')} of {plural(due['items'], 'item')}"
        print_text(f"{vms} {_when(due, data['today'])}{lacking}.")
    if summary["priced"]:
        now, then = (Decimal(repr(summary[name]["usd_per_month"])).quantize(_CENT) for name in ("now", "then"))
        unpriced = f" Without {plural(summary['unpriced'], 'item')} of unknown price." if summary["unpriced"] else ""
        # The change is that of the amounts as they are shown.
        print_text(f"Best successors cost {then:,.2f} USD a month instead of {now:,.2f}: {then - now:+,.2f}.{unpriced}")
    print_commitment(summary["then"]["committed_hours_per_month"])
    outcomes = summary["outcomes"]
    print_text(f"No successor needed: {outcomes['not_needed']}. Unknown size or region: {outcomes['error']}.")


_CENT = Decimal("0.01")


def _when(due: Record, today: str) -> str:
    """Return what happens to VMs on a day: `retire on 2026-09-30`, `retired on 2025-09-30`, `were withdrawn`."""
    day, is_one = due["retirement_date"], due["vms"] == 1
    if day is None:
        return "was withdrawn" if is_one else "were withdrawn"
    if day <= today:
        return f"retired on {day}"
    return f"retires on {day}" if is_one else f"retire on {day}"


def _remarks(item: Record) -> Iterator[str]:
    name = f"{item['size']} in {item['region']}"
    for error in item["errors"]:
        place = item["id"] or f"item {item['index'] + 1}"
        yield f"{place}: {error['detail']}"
    if item["outcome"] == "no_successor":
        nearest = ""
        for miss in item["nearest_misses"][:1]:
            reasons = "; ".join(failure["detail"] for failure in miss["failures"])
            nearest = f" Nearest is {miss['size']}: {reasons}."
        yield f"{name}: no successor.{nearest}"
        for fix in item["fixes"]:
            yield f"  without {', '.join(fix['give_up'])}: {fix['size']}, {format_value(fix['usd_per_hour'])} USD/h"
