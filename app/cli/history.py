"""The command that shows what a size cost over time: `vmsizes history`."""

from typing import Annotated, Any

import typer

from app.catalog.queries.price_lines import PriceLine, merge_runs
from app.catalog.queries.prices import PriceHistorySearch, PriceSearch, find_price_history, find_prices
from app.catalog.queries.provenance import RefusedPriceSearch, find_refused_prices
from app.catalog.queries.snapshot import load_catalog
from app.cli import context, options
from app.cli.options import Command, parse_params, query_options
from app.cli.outcomes import plural
from app.cli.output import (
    Column,
    Format,
    OutputOptions,
    format_value,
    print_line,
    print_next_cursor,
    print_rows,
    print_text,
    with_output_options,
)
from app.cli.receipts import Receipt, write_receipt

app = typer.Typer()

COLUMNS = {
    "since": Column(heading="since"),
    "last_seen": Column(heading="last seen"),
    "usd_per_hour": Column(heading="USD/h"),
    "sources": Column(heading="lists", rank=1, wraps=True),
}


@app.command(cls=Command)
@query_options(PriceHistorySearch)
@with_output_options
def history(
    name: Annotated[str, options.SIZE_ARGUMENT], *, receipt: Receipt = None, output: OutputOptions, **values: Any
) -> None:
    """List what a size cost in a region over time, each price with the days on which lists had it."""
    params, today = parse_params(PriceHistorySearch, values), context.today()
    day = min(params.until or today, today)
    offer = params.model_dump(include={"os", "purchase", "known_at"})
    with context.session() as session:
        catalog = load_catalog(session, today)
        found = find_price_history(catalog, name, params)
        of_day = PriceSearch(region=(params.region,), as_of=day, **offer)
        in_force = find_prices(catalog, name, of_day).items
        search = RefusedPriceSearch(size=name, region=params.region, limit=1)
        refused = find_refused_prices(catalog, search).total
        write_receipt(session, receipt, "GET /sizes/{name}/price-history", params, name)
    if output.format is Format.table and not output.columns:
        lines = merge_runs(found.items, next(iter(in_force), None))
        noted = {"note": Column(heading="note", wraps=True)} if any(line.note() for line in lines) else {}
        print_rows([_to_row(line) for line in lines], {**COLUMNS, **noted}, output)
        print_line()
        print_text(f"{plural(len(lines), 'price')} in {params.region}, the oldest first.")
        if len(found.items) < found.total:
            print_text(f"Merged from {len(found.items)} of {plural(found.total, 'price')} of lists.")
        if lines and not in_force:
            print_text(f"None is in force on {day}: newer lists lack it.")
        elif lines and lines[-1].in_force:
            last = lines[-1]
            print_text(f"In force on {day}: {format_value(last.usd_per_hour)} USD/h, last seen {last.last_seen}.")
        if refused:
            listed = f"vmsizes refused-prices --size {name} --region {params.region}"
            print_text(f"{plural(refused, 'price')} of lists there {'is' if refused == 1 else 'are'} refused: {listed}")
    else:
        print_rows(found.items, {}, output)
    if found.next_cursor:
        print_next_cursor(found.next_cursor)
    if not found.total:
        raise typer.Exit(context.EXIT_NOT_FOUND)


def _to_row(line: PriceLine) -> dict[str, Any]:
    shown = {name: getattr(line, name) for name in COLUMNS}
    return shown | {"note": line.note(), "since": f"{'≈' if line.approximate_date else ''}{line.since}"}
