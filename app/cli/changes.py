"""The command about what changed: `vmsizes changes`."""

from typing import Any

import typer

from app.catalog.queries.changes import ChangeSearch
from app.cli import context
from app.cli.options import Command, parse_params, query_options
from app.cli.output import (
    Column,
    Format,
    OutputOptions,
    print_line,
    print_next_cursor,
    print_note,
    print_rows,
    with_output_options,
)

app = typer.Typer()


def _in_percent(percent: float) -> str:
    return f"{percent:+.1f}"


CHANGE_COLUMNS = {
    "on": Column(heading="on", rank=4),
    "kind": Column(heading="kind"),
    "size": Column(heading="size"),
    "region": Column(heading="region", rank=1),
    "os": Column(heading="OS", rank=6),
    "purchase": Column(heading="purchase", rank=5),
    "field": Column(heading="field", rank=3),
    "old": Column(heading="old", wraps=True),
    "new": Column(heading="new", wraps=True),
    "percent": Column(heading="%", rank=2, format=_in_percent),
    "valid_from": Column(heading="from", rank=8),
    "source_id": Column(heading="source", rank=9),
    "revision": Column(heading="revision", rank=7),
}


@app.command(cls=Command)
@query_options(ChangeSearch)
@with_output_options
def changes(*, output: OutputOptions, **values: Any) -> None:
    """List what ingests changed: prices, sizes, values, disputes and retirements, the oldest first."""
    from app.catalog.queries.changes import find_changes
    from app.catalog.queries.snapshot import load_catalog

    search = parse_params(ChangeSearch, values)
    with context.session() as session:
        page = find_changes(load_catalog(session, context.today()), search)
    tables = output.format is Format.table and not output.columns
    rows = [item | {"at": item["at"].isoformat()} for item in page.items]
    print_rows([row | {"on": row["at"][:10]} for row in rows] if tables else rows, CHANGE_COLUMNS, output)
    tracked = f"Changes are known since {page.tracked_since:%Y-%m-%d}."
    if not page.total:
        print_note(f"Nothing matches. {tracked}")
        raise typer.Exit(context.EXIT_NOT_FOUND)
    if output.format is Format.table:
        print_line()
        print_line(f"{len(page.items)} of {page.total}. {tracked}")
    if page.next_cursor:
        print_next_cursor(page.next_cursor)
