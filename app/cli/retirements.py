"""The command about retirements: `vmsizes retirements`."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from app.catalog.queries.retirements import RetirementSearch
from app.cli import context
from app.cli.currencies import with_list_prices
from app.cli.options import Command, option_name, parse_body, parse_params, query_options
from app.cli.output import (
    Column,
    Format,
    OutputOptions,
    Record,
    format_value,
    print_line,
    print_next_cursor,
    print_no_price,
    print_note,
    print_rows,
    print_text,
    size_columns,
    with_output_options,
)
from app.errors import BadQuery
from app.schemas.retirement_request import SuccessorNeedsIn
from app.validation import display_value

app = typer.Typer()

RETIREMENT_COLUMNS = {
    "retirement_date": Column(heading="retires"),
    "days_left": Column(heading="days left", rank=2),
    "size": Column(heading="size"),
    "series": Column(heading="series", rank=1),
    **size_columns(vcpus=4, memory_gib=5, gpu_model=3),
    "source_url": Column(heading="source", rank=6),
}
PLAN_COLUMNS = {
    "id": Column(heading="id", rank=4, wraps=True),
    "size": Column(heading="size"),
    "region": Column(heading="region", rank=2),
    "count": Column(heading="VMs", rank=3),
    "retirement_date": Column(heading="retires", rank=1),
    "days_left": Column(heading="days left", rank=7),
    "successor": Column(heading="successor"),
    "usd_per_hour": Column(heading="USD/h"),
    "successor_usd_per_hour": Column(heading="then"),
    "change_usd_per_month": Column(heading="+/- USD/month"),
    "lost": Column(heading="lost", rank=6, wraps=True),
}
_BOTH_MODES = {"before"}
"""Options of the list and of a plan."""
_DATED = {"past", "after", "before"}
"""Options that say which retirements are listed; without any, those to come."""


@app.command(cls=Command)
@query_options(RetirementSearch, SuccessorNeedsIn)
@with_output_options
def retirements(
    inventory: Annotated[
        Path | None,
        typer.Argument(
            metavar="INVENTORY",
            help="A CSV file with the columns size and region, and if you like count and id, whatever else it has; or "
            "what `az vm list` prints. Without one all announced retirements are listed.",
            show_default=False,
        ),
    ] = None,
    *,
    output: OutputOptions,
    **values: Any,
) -> None:
    """List retirements to come, or find out which VMs of an inventory retire and what can take their place."""
    given = {name: value for name, value in values.items() if value not in (None, [])}
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
    from app.catalog.queries.retirements import find_retirements
    from app.catalog.queries.snapshot import load_catalog

    coming_only = not values.keys() & _DATED
    search = parse_params(RetirementSearch, {**values, "past": False} if coming_only else values)
    with context.session() as session:
        catalog = load_catalog(session, context.today())
        page = find_retirements(catalog, search)
        others = search.model_copy(update={"past": True, "cursor": None, "limit": 1})
        past = find_retirements(catalog, others).total if coming_only else 0
    print_rows(page.items, RETIREMENT_COLUMNS, output)
    if page.total and output.format is Format.table:
        print_line()
        print_line(f"{len(page.items)} of {page.total}.")
    if past:
        print_note(f"{past} {'has' if past == 1 else 'have'} passed: --past lists {'it' if past == 1 else 'them'}.")
    if not page.total:
        print_note("Nothing is to come." if past else "Nothing matches.")
        raise typer.Exit(context.EXIT_NOT_FOUND)
    if page.next_cursor:
        print_next_cursor(page.next_cursor)


def _plan(inventory: Path, values: Mapping[str, Any], output: OutputOptions) -> None:
    """Print a plan; exits with the code of bad data where an item names something that the catalog does not have."""
    from app.catalog.queries.snapshot import load_catalog
    from app.converters.inventory import read_inventory
    from app.converters.retirements import plan_inventory, to_plan_rows

    needs, items = parse_body(SuccessorNeedsIn, values), read_inventory(inventory)
    with context.session() as session:
        plan = plan_inventory(load_catalog(session, context.today()), items, needs)
    data = plan.model_dump(mode="json")
    rows, columns = with_list_prices(to_plan_rows(data["items"]), PLAN_COLUMNS)
    rows, columns = with_list_prices(rows, columns, "successor_")
    print_rows(rows, columns, output, json_value=data, objects=data["items"])
    if output.format is Format.table:
        _print_remarks(data)
    print_no_price(data)
    if data["summary"]["outcomes"]["error"]:
        raise typer.Exit(context.EXIT_BAD_DATA)


def _print_remarks(data: Record) -> None:
    """Print what the table has no room for: items without an answer, equal ones once, and the plan in numbers."""
    print_line()
    for remarks in dict.fromkeys(tuple(_remarks(item)) for item in data["items"]):
        for remark in remarks:
            print_text(remark, indent="    ")
    summary = data["summary"]
    for due in summary["by_date"]:
        missing = f", {due['without_successor']} of them without a successor" if due["without_successor"] else ""
        when = f"On {due['retirement_date']} retire" if due["retirement_date"] else "Withdrawn are"
        print_text(f"{when} {_several(due['vms'], 'VM')} of {_several(due['items'], 'item')}{missing}.")
    if summary["priced"]:
        now, then, change = (summary[name]["usd_per_month"] for name in ("now", "then", "change"))
        unpriced = f" Without {_several(summary['unpriced'], 'item')} of unknown price." if summary["unpriced"] else ""
        print_text(f"Best successors cost {then:,.2f} USD a month instead of {now:,.2f}: {change:+,.2f}.{unpriced}")
    outcomes = summary["outcomes"]
    print_text(f"No successor needed: {outcomes['not_needed']}. Unknown size or region: {outcomes['error']}.")


def _remarks(item: Record) -> Iterator[str]:
    name = f"{item['size']} in {item['region']}"
    for error in item["errors"]:
        place = item["id"] or f"item {item['index'] + 1}"
        yield f"{place}: {error['detail']}"
    if item["outcome"] == "no_successor":
        nearest = "; ".join(_miss(miss) for miss in item["nearest_misses"][:1])
        yield f"{name}: no successor. Nearest is {nearest}." if nearest else f"{name}: no successor."
        for fix in item["fixes"]:
            yield f"  without {', '.join(fix['give_up'])}: {fix['size']}, {format_value(fix['usd_per_hour'])} USD/h"


def _miss(miss: Record) -> str:
    return f"{miss['size']}, which {', and '.join(failure['detail'] for failure in miss['failures'])}"


def _several(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
