"""The commands that lay sizes beside each other: similar, compare."""

from typing import Annotated, Any

import typer

from app.api.comparing.answers import comparison_out, similar_out
from app.api.comparing.schemas import ComparisonOut, LineOut
from app.catalog.ask.known import read_known
from app.catalog.ask.searches import CompareSearch, SimilarSearch
from app.cli import context
from app.cli.options import asks, question
from app.cli.output import Csv, Format, Json, chosen, err, out, show_rows, write_json
from app.comparing.side_by_side import compare as compare_sizes
from app.comparing.similar import find_similar
from app.db.statements import answer

app = typer.Typer()

SIMILAR_COLUMNS = {
    "size": "size",
    "distance": "distance",
    "cheaper": "cheaper",
    "bigger": "bigger",
    "gpu_count": "GPUs",
    "gpu_model": "GPU",
    "gpu_memory_gib": "GPU mem GiB",
    "vcpus": "vCPUs",
    "memory_gib": "memory GiB",
    "region": "region",
    "usd_per_hour": "USD/h",
}


@app.command()
@asks(SimilarSearch)
def similar(
    name: Annotated[str, typer.Argument(help="The size, in any case, with or without `Standard_`.")],
    *,
    as_json: Json = False,
    as_csv: Csv = False,
    **given: Any,
) -> None:
    """List the sizes that are most like one, with the distance of each told term by term."""
    form = chosen(as_json=as_json, as_csv=as_csv)
    asked = question(SimilarSearch, given)
    with context.session() as session:
        page = similar_out(answer(session, find_similar(name, asked, read_known(session), context.today())))
    told = page.model_dump(mode="json")
    for item in told["items"]:
        item["terms"] = item["terms"] if form is Format.json else [_spoken(term) for term in item["terms"]]
    show_rows(told["items"], SIMILAR_COLUMNS, form)
    if form is Format.table:
        for item in told["items"][:1]:
            out.print(f"\n{item['size']}: {'; '.join(item['terms'])}.", highlight=False, soft_wrap=True)
        out.print(f"\n{len(told['items'])} of {page.total}, the most like {page.size} first.", highlight=False)
    if page.next_cursor:
        err.print(f"More: --cursor {page.next_cursor}", highlight=False, soft_wrap=True)
    if not page.total:
        raise typer.Exit(context.NOTHING)


def _spoken(term: dict[str, Any]) -> str:
    return f"{term['term']} {term['contribution']:g} ({term['detail']})"


@app.command()
@asks(CompareSearch, leave_out=frozenset({"size"}))
def compare(
    sizes: Annotated[list[str], typer.Argument(help="The sizes, 2 to 10, in any case, with or without `Standard_`.")],
    *,
    as_json: Json = False,
    as_csv: Csv = False,
    **given: Any,
) -> None:
    """Lay sizes side by side: every field with its difference from one of them."""
    form = chosen(as_json=as_json, as_csv=as_csv)
    asked = question(CompareSearch, {**given, "size": sizes})
    with context.session() as session:
        told = comparison_out(answer(session, compare_sizes(asked, read_known(session), context.today())))
    if form is Format.json:
        write_json(told.model_dump(mode="json"))
        return
    lines = told.fields if form is Format.csv else [line for line in told.fields if _is_known(line)]
    rows = [_row(line, told.baseline) for line in lines]
    show_rows(rows, {name: name for name in rows[0]}, form, title=_title(told))


def _is_known(line: LineOut) -> bool:
    return any(cell.value not in (None, []) for cell in line.values)


def _row(line: LineOut, baseline: str) -> dict[str, Any]:
    """A field as a row: each size's value, and beside it by how many percent it differs from the baseline's."""
    row: dict[str, Any] = {"field": line.field, "unit": line.unit}
    for cell in line.values:
        row[cell.size] = cell.value
        if cell.size != baseline:
            row[f"{cell.size} %"] = cell.difference_percent
    return row


def _title(told: ComparisonOut) -> str:
    return f"\nCompared with {told.baseline}"
