"""The command that costs VMs with their disks: `vmsizes cost`."""

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Annotated, Any

import typer

from app.catalog.queries.costs import CostSearch
from app.cli import context, options
from app.cli.currencies import flatten_converted, in_currency, print_exchange_rate
from app.cli.options import Command, parse_params, query_options
from app.cli.output import (
    Column,
    Format,
    OutputOptions,
    format_value,
    print_line,
    print_no_price,
    print_rows,
    print_text,
    with_output_options,
)

app = typer.Typer()


def _in_cents(amount: float) -> str:
    return f"{Decimal(repr(amount)):,.2f}"


COST_COLUMNS = {
    "part": Column(heading="part"),
    "what": Column(heading="what", rank=1, wraps=True),
    "usd_per_hour": Column(heading="USD/h", rank=2),
    "usd_per_month": Column(heading="USD/month", format=_in_cents),
    "usd_per_year": Column(heading="USD/year", rank=3, format=_in_cents),
    "price_as_of": Column(heading="as of", rank=4),
    "price_age_days": Column(heading="days old", rank=5),
    "source_ids": Column(heading="sources", rank=6),
}


@app.command(cls=Command)
@query_options(CostSearch)
@with_output_options
def cost(name: Annotated[str, options.SIZE_ARGUMENT], *, output: OutputOptions, **values: Any) -> None:
    """Show what VMs of a size cost with their disks: an hour, a month, a year."""
    from app.catalog.queries.snapshot import load_catalog
    from app.services.costs import compute_costs

    params = parse_params(CostSearch, values)
    with context.session() as session:
        answer = compute_costs(load_catalog(session, context.today()), name, params).model_dump(mode="json")
    columns = in_currency(COST_COLUMNS, params.currency)
    rows = list(_rows(answer, {**COST_COLUMNS, **columns}))
    if output.format is Format.table:
        where = f"in {answer['region']}" if answer["region"] else "(no region has a price)"
        model = f"{answer['os'].capitalize()}, {answer['purchase'].replace('_', ' ')}"
        print_text(f"{answer['size']} {where}: {model}, {format_value(answer['hours_per_month'])} hours a month")
        print_line()
    print_rows(rows, columns, output, json_value=answer)
    print_no_price(answer)
    if output.format is Format.table:
        print_line()
        adjustment = answer["vm"].get("adjustment")
        if adjustment is not None:
            listed, rules = format_value(adjustment["list_usd_per_hour"]), ", ".join(adjustment["rules"])
            print_text(f"The list price of 1 VM is {listed} USD/h; it is adjusted by {rules}.")
        print_exchange_rate(answer.get("exchange_rate"))
        for label, texts in (("Unknown", answer["unknown_parts"]), ("Warnings", answer["warnings"])):
            if texts:
                print_text(f"{label}: {', '.join(texts)}.")
        if "LICENCE_INCLUDED" in answer["warnings"]:
            print_text("With Azure Hybrid Benefit Windows Server costs what Linux does: --os linux.")
        print_text(f"Not included: {'; '.join(answer['not_included'])}.")


def _rows(answer: Mapping[str, Any], fields: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Yield one VM, each of its disks, and all VMs together, as rows that have all of the fields."""
    blank = dict.fromkeys(fields)
    vm = answer["vm"]
    yield _row("vm", "1 VM", vm | {"source_ids": [vm["source_id"]] if vm["source_id"] else []}, blank)
    for index, disk in enumerate(answer["disks"]):
        amounts = ((disk["gib"], "GiB"), (disk["iops"], "IOPS"), (disk["mbps"], "MBps"))
        known = [f"{amount} {unit}" for amount, unit in amounts if amount is not None]
        yield _row(f"disks[{index}]", f"{disk['disk']}: {', '.join(known)}", disk, blank)
    disks = len(answer["disks"])
    each = f", each with {disks} disk{'s' if disks > 1 else ''}" if disks else ""
    yield _row("total", f"{answer['count']} VM{'s' if answer['count'] > 1 else ''}{each}", answer["total"], blank)


def _row(part: str, what: str, figures: Mapping[str, Any], blank: Mapping[str, None]) -> dict[str, Any]:
    known = {name: value for name, value in flatten_converted(figures).items() if name in blank}
    return {**blank, **known, "part": part, "what": what}
