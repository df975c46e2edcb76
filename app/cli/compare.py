"""The commands that lay sizes beside each other: similar, compare."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any

import typer

from app.catalog.queries.fit_params import CompareSearch, SimilarSearch
from app.cli import context, options
from app.cli.options import Command, parse_params, query_options
from app.cli.output import (
    Format,
    OutputOptions,
    check_column,
    print_line,
    print_next_cursor,
    print_note,
    print_rows,
    print_text,
    with_output_options,
)
from app.cli.tables import Column, format_table, format_value, min_table_width, terminal_width

app = typer.Typer()

SIMILAR_COLUMNS = {
    "size": Column(heading="size"),
    "distance": Column(heading="distance"),
    "cheaper": Column(heading="cheaper", rank=4),
    "bigger": Column(heading="bigger", rank=5),
    "gpu_count": Column(heading="GPUs", rank=2),
    "gpu_model": Column(heading="GPU", rank=1),
    "gpu_memory_gib": Column(heading="GPU GiB", rank=6),
    "vcpus": Column(heading="vCPUs", rank=7),
    "memory_gib": Column(heading="mem GiB", rank=8),
    "region": Column(heading="region", rank=3),
    "usd_per_hour": Column(heading="USD/h"),
}


@app.command(cls=Command)
@query_options(SimilarSearch)
@with_output_options
def similar(
    name: Annotated[str, options.SIZE_ARGUMENT],
    *,
    output: OutputOptions,
    **given: Any,
) -> None:
    """List the sizes that are most like one, with the distance of each told term by term."""
    from app.api.converters.compare import to_similar_page
    from app.catalog.queries.snapshot import load_snapshot
    from app.db.statements import run_plan
    from app.services.similar import find_similar

    asked = parse_params(SimilarSearch, given)
    with context.session() as session:
        page = to_similar_page(run_plan(session, find_similar(name, asked, load_snapshot(session), context.today())))
    told = page.model_dump(mode="json")
    for item in told["items"]:
        item["terms"] = item["terms"] if output.format is Format.json else [_term_text(term) for term in item["terms"]]
    print_rows(told["items"], SIMILAR_COLUMNS, output)
    if output.format is Format.table:
        for item in told["items"][:1]:
            print_line()
            print_text(f"{item['size']}: {'; '.join(item['terms'])}.")
        print_line()
        print_text(f"{len(told['items'])} of {page.total}, the most like {page.size} first.")
    if page.next_cursor:
        print_next_cursor(page.next_cursor)
    if not page.total:
        raise typer.Exit(context.EXIT_NOT_FOUND)


def _term_text(term: dict[str, Any]) -> str:
    return f"{term['term']} {term['contribution']:g} ({term['detail']})"


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
    output: OutputOptions,
    **given: Any,
) -> None:
    """Lay sizes side by side: every field with its difference from one of them."""
    from app.api.converters.compare import to_comparison_out
    from app.catalog.queries.snapshot import load_snapshot
    from app.db.statements import run_plan
    from app.services.compare import compare as compare_sizes

    asked = parse_params(CompareSearch, {**given, "size": sizes})
    with context.session() as session:
        found = to_comparison_out(run_plan(session, compare_sizes(asked, load_snapshot(session), context.today())))
    told = found.model_dump(mode="json")
    if output.columns:
        told["fields"] = _select_fields(told["fields"], output.columns)
    if output.format is Format.table:
        _print_comparison(told, output)
    else:
        print_rows(
            [_comparison_row(line, told["baseline"]) for line in told["fields"]],
            {},
            OutputOptions(format=output.format),
            json_value=told,
        )


def _select_fields(lines: Sequence[Any], names: Sequence[str]) -> list[Any]:
    known = {line["field"]: line for line in lines}
    for name in names:
        check_column(name, known)
    return [known[name] for name in names]


def _comparison_row(line: Mapping[str, Any], baseline: str) -> dict[str, Any]:
    """A field as a row: each size's value, and beside it by how many percent it differs from the baseline's."""
    row: dict[str, Any] = {"field": line["field"], "unit": line["unit"]}
    for cell in line["values"]:
        row[cell["size"]] = cell["value"]
        if cell["size"] != baseline:
            row[f"{cell['size']} %"] = cell["difference_percent"]
    return row


def _print_comparison(told: Mapping[str, Any], output: OutputOptions) -> None:
    """Print fields as rows and sizes as columns; where a line has no room for all, some at a time."""
    most = None if output.wide else terminal_width()
    rows, left_out = _table_rows(told, output, most)
    headings = {size: size for size in told["sizes"]}
    print_line(f"Compared with {told['baseline']}")
    if most is not None and min_table_width(rows, _columns(headings)) > most:
        headings = {size: str(number) for number, size in enumerate(told["sizes"], 1)}
        for size, heading in headings.items():
            print_line(f"  {heading:>2}  {size}")
    for part in _split_sizes(headings, told["baseline"], rows, most):
        print_line()
        for line in format_table(rows, _columns(part), most)[0]:
            print_line(line)
    if left_out:
        print_note(f"Left out at {most} columns: {', '.join(left_out)}. --wide shows all.")


def _table_rows(
    told: Mapping[str, Any], output: OutputOptions, most: int | None
) -> tuple[list[dict[str, str]], list[str]]:
    """The fields that are known of any size, or that were chosen; of a narrow table those that no line has room for."""
    lines = [line for line in told["fields"] if output.columns or _is_known(line)]
    rows = [
        {"field": line["field"]} | {cell["size"]: _cell(cell, told["baseline"]) for cell in line["values"]}
        for line in lines
    ]
    longest = max(MIN_WORD_WIDTH, (most - LABEL_WIDTH) // len(told["sizes"]) - 2) if most is not None else None
    long = [row["field"] for row in rows if longest is not None and any(len(one) > longest for one in _words(row))]
    return [row for row in rows if row["field"] not in long], [field for field in long if field != "name"]


def _is_known(line: Mapping[str, Any]) -> bool:
    return any(cell["value"] not in (None, []) for cell in line["values"])


def _words(row: Mapping[str, str]) -> Iterator[str]:
    return (word for name, cell in row.items() if name != "field" for word in cell.split())


LABEL_WIDTH = 24
"""About as long is the name of a field."""
MIN_WORD_WIDTH = 13
"""A word of a value may always be so long; names of sizes, which are longer, stand above the table."""


def _columns(headings: Mapping[str, str]) -> dict[str, Column]:
    sizes = {size: Column(heading=heading, wraps=True) for size, heading in headings.items()}
    return {"field": Column(heading="field"), **sizes}


def _cell(cell: Mapping[str, Any], baseline: str) -> str:
    percent = cell["difference_percent"]
    text = format_value(cell["value"] if cell["value"] != [] else None)
    return f"{text} ({percent:+.4g}%)" if percent and cell["size"] != baseline else text


def _split_sizes(
    headings: Mapping[str, str], baseline: str, rows: Sequence[Mapping[str, Any]], most: int | None
) -> Iterator[dict[str, str]]:
    """The sizes of each table: all of them, else the baseline with as many others as there is room for."""
    if most is None or min_table_width(rows, _columns(headings)) <= most:
        yield dict(headings)
        return
    part = {baseline: headings[baseline]}
    for size, heading in headings.items():
        if len(part) > 1 and min_table_width(rows, _columns({**part, size: heading})) > most:
            yield part
            part = {baseline: headings[baseline]}
        part[size] = heading
    yield part
