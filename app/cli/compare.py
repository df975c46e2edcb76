"""Commands that compare sizes: `vmsizes similar`, `vmsizes compare`."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Annotated, Any

import typer

from app.catalog.queries.params import CompareSearch, SimilarSearch
from app.cli import context, options
from app.cli.currencies import print_exchange_rate, with_list_prices
from app.cli.options import Command, parse_params, query_options
from app.cli.output import (
    UNVERIFIED_NOTE,
    Column,
    Format,
    OutputOptions,
    check_column,
    format_table,
    format_value,
    mark_unverified,
    min_table_width,
    print_line,
    print_next_cursor,
    print_note,
    print_rows,
    print_text,
    size_columns,
    terminal_width,
    with_output_options,
)
from app.cli.receipts import Receipt, write_receipt

app = typer.Typer()

SIMILAR_COLUMNS = {
    "size": Column(heading="size"),
    "distance": Column(heading="distance"),
    "cheaper": Column(heading="cheaper", rank=4),
    "bigger": Column(heading="bigger", rank=5),
    **size_columns(gpu_count=2, gpu_model=1, gpu_memory_gib=6, vcpus=7, memory_gib=8),
    "region": Column(heading="region", rank=3),
    "usd_per_hour": Column(heading="USD/h"),
}
FIELD_NAME_WIDTH = 24
"""About the width of the longest field name."""
MIN_WORD_WIDTH = 13
"""A value with a word longer than its column is left out of `compare`, but never for a word up to this length."""


@app.command(cls=Command)
@query_options(SimilarSearch)
@with_output_options
def similar(name: Annotated[str, options.SIZE_ARGUMENT], *, output: OutputOptions, **values: Any) -> None:
    """List the sizes most similar to one, with the distance of each broken down by term."""
    from app.catalog.queries.snapshot import ask_catalog
    from app.services.similar import find_similar

    params = parse_params(SimilarSearch, values)
    with context.session() as session:
        page = ask_catalog(session, context.today(), lambda catalog: find_similar(catalog, name, params))
    items = page.model_dump(mode="json")["items"]
    rows, columns = with_list_prices(items, SIMILAR_COLUMNS)
    if output.format is not Format.json:
        for row in rows:
            row["terms"] = [f"{term['term']} {term['contribution']:g} ({term['detail']})" for term in row["terms"]]
    print_rows(rows, columns, output, json_value=items, objects=items)
    if output.format is Format.table:
        for item in rows[:1]:
            print_line()
            print_text(f"{item['size']}: {'; '.join(item['terms'])}.")
        print_line()
        print_text(f"{len(items)} of {page.total}, the most like {page.size} first.")
    if page.next_cursor:
        print_next_cursor(page.next_cursor)
    if not page.total:
        raise typer.Exit(context.EXIT_NOT_FOUND)


@app.command(cls=Command)
@query_options(CompareSearch, leave_out=frozenset({"size", "fields"}))
@with_output_options
def compare(
    sizes: Annotated[
        list[str],
        typer.Argument(
            help="The sizes, 2 to 10, in any case, with or without `Standard_`.",
            autocompletion=options.completer(options.size_names),
        ),
    ],
    *,
    receipt: Receipt = None,
    output: OutputOptions,
    **values: Any,
) -> None:
    """Compare sizes side by side: every field, with its difference from one of them."""
    from app.catalog.queries.snapshot import load_catalog
    from app.services.compare import compare as compare_sizes

    params = parse_params(CompareSearch, {**values, "size": sizes})
    with context.session() as session:
        result = compare_sizes(load_catalog(session, context.today()), params)
        write_receipt(session, receipt, "GET /compare", params)
    comparison = result.model_dump(mode="json")
    verified = next(field["values"] for field in comparison["fields"] if field["field"] == "verified")
    if output.columns:
        fields = {field["field"]: field for field in comparison["fields"]}
        for name in output.columns:
            check_column(name, fields)
        comparison["fields"] = [fields[name] for name in output.columns]
    if output.format is Format.table:
        _print_comparison(comparison, output, {cell["size"] for cell in verified if cell["value"] is False})
    else:
        rows = [_comparison_row(field, comparison["baseline"]) for field in comparison["fields"]]
        print_rows(rows, {}, OutputOptions(format=output.format), json_value=comparison)


def _comparison_row(field: Mapping[str, Any], baseline: str) -> dict[str, Any]:
    """Return a field as a row: the value of each size, and its difference from the baseline in percent."""
    row: dict[str, Any] = {"field": field["field"], "unit": field["unit"]}
    for cell in field["values"]:
        row[cell["size"]] = cell["value"]
        if cell["size"] != baseline:
            row[f"{cell['size']} %"] = cell["difference_percent"]
    return row


def _print_comparison(comparison: Mapping[str, Any], output: OutputOptions, unverified: Collection[str]) -> None:
    """Print a table with a row per field and a column per size.

    Where the sizes do not fit beside each other their names become numbers, and then several tables follow each other,
    each with the baseline.
    """
    sizes, baseline = comparison["sizes"], comparison["baseline"]
    max_width = None if output.wide else terminal_width()
    rows = [
        {"field": _label(field, comparison)} | {cell["size"]: _cell(cell, baseline) for cell in field["values"]}
        for field in comparison["fields"]
        if output.columns or any(cell["value"] not in (None, []) for cell in field["values"])
    ]
    left_out: list[str] = []
    if max_width is not None:
        max_word = max(MIN_WORD_WIDTH, (max_width - FIELD_NAME_WIDTH) // len(sizes) - 2)
        left_out = [row["field"] for row in rows if _longest_word(row) > max_word]
        rows = [row for row in rows if row["field"] not in left_out]
    names = {size: mark_unverified(size) if size in unverified else size for size in sizes}
    headings = dict(names)
    print_line(f"Compared with {names[baseline]}")
    if max_width is not None and min_table_width(rows, _columns(headings)) > max_width:
        headings = {size: str(number) for number, size in enumerate(sizes, 1)}
        for size, heading in headings.items():
            print_line(f"  {heading:>2}  {names[size]}")
    for part in _split_sizes(headings, baseline, rows, max_width):
        print_line()
        for line in format_table(rows, _columns(part), max_width)[0]:
            print_line(line)
    if unverified:
        print_text(UNVERIFIED_NOTE)
    if comparison.get("exchange_rate") is not None:
        print_line()
        print_exchange_rate(comparison["exchange_rate"])
    left_out = [field for field in left_out if field != "name"]  # names stand above the table
    if left_out:
        print_note(f"Left out at {max_width} columns: {', '.join(left_out)}. --wide shows all.")


def _label(field: Mapping[str, Any], comparison: Mapping[str, Any]) -> str:
    """Return the name of a field, with the currency of a converted price."""
    rate = comparison.get("exchange_rate")
    if rate is None or not str(field["unit"]).startswith(rate["currency"]):
        return str(field["field"])
    return f"{field['field']} ({rate['currency']})"


def _longest_word(row: Mapping[str, str]) -> int:
    return max((len(word) for name, cell in row.items() if name != "field" for word in cell.split()), default=0)


def _columns(headings: Mapping[str, str]) -> dict[str, Column]:
    sizes = {size: Column(heading=heading, wraps=True) for size, heading in headings.items()}
    return {"field": Column(heading="field"), **sizes}


def _cell(cell: Mapping[str, Any], baseline: str) -> str:
    percent = cell["difference_percent"]
    text = format_value(cell["value"] if cell["value"] != [] else None)
    return f"{text} ({percent:+.4g}%)" if percent and cell["size"] != baseline else text


def _split_sizes(
    headings: Mapping[str, str], baseline: str, rows: Sequence[Mapping[str, Any]], max_width: int | None
) -> Iterator[dict[str, str]]:
    """Yield the sizes of each table: all of them, else the baseline with as many others as fit."""
    if max_width is None or min_table_width(rows, _columns(headings)) <= max_width:
        yield dict(headings)
        return
    part = {baseline: headings[baseline]}
    for size, heading in headings.items():
        if len(part) > 1 and min_table_width(rows, _columns({**part, size: heading})) > max_width:
            yield part
            part = {baseline: headings[baseline]}
        part[size] = heading
    yield part
