"""The command that shows what a size cost over time: `vmsizes history`."""

from typing import Annotated, Any

import typer

from app.catalog.queries.prices import PriceHistorySearch, find_price_history
from app.catalog.queries.snapshot import load_snapshot
from app.cli import context, options
from app.cli.options import Command, parse_params, query_options
from app.cli.output import (
    Column,
    Format,
    OutputOptions,
    print_line,
    print_next_cursor,
    print_rows,
    print_text,
    with_output_options,
)
from app.cli.receipts import Receipt, write_receipt
from app.db.statements import run_plan

app = typer.Typer()

COLUMNS = {
    "valid_from": Column(heading="from"),
    "seen_until": Column(heading="until"),
    "usd_per_hour": Column(heading="USD/h"),
    "source_id": Column(heading="source", rank=1),
    "known_from": Column(heading="known from", rank=2),
}


@app.command(cls=Command)
@query_options(PriceHistorySearch)
@with_output_options
def history(
    name: Annotated[str, options.SIZE_ARGUMENT], *, receipt: Receipt = None, output: OutputOptions, **values: Any
) -> None:
    """List what a size cost in a region over time, with the days between which each source has a price."""
    params = parse_params(PriceHistorySearch, values)
    with context.session() as session:
        found = run_plan(session, find_price_history(name, params, load_snapshot(session), context.today()))
        write_receipt(session, receipt, "GET /sizes/{name}/price-history", params, name)
    print_rows(found.items, COLUMNS, output)
    if output.format is Format.table:
        print_line()
        print_text(f"{len(found.items)} of {found.total} prices in {params.region}, the oldest first.")
    if found.next_cursor:
        print_next_cursor(found.next_cursor)
    if not found.total:
        raise typer.Exit(context.EXIT_NOT_FOUND)
