"""Receipts of answers: the option `--receipt` of commands, and `vmsizes verify`."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from pydantic import BaseModel
from sqlmodel import Session

from app.cli import context
from app.cli.output import print_line, print_note
from app.errors import BadData, NotReady

app = typer.Typer()

EXIT_DIFFERENT = 1

Receipt = Annotated[
    Path | None,
    typer.Option(
        "--receipt",
        metavar="FILE",
        help="Write what the answer rests on to this file, for `vmsizes verify`.",
        show_default=False,
        dir_okay=False,
    ),
]


def write_receipt(
    session: Session, path: Path | None, endpoint: str, params: BaseModel, name: str | None = None
) -> None:
    """Write the receipt of an answer: that of the API to the same question; nothing without a file."""
    from app.catalog.queries.snapshot import load_catalog

    if path is None:
        return
    from app.questions import Question, answer
    from app.receipts import make_receipt

    catalog = load_catalog(session, context.today())
    question = Question(endpoint, params, name)
    receipt = make_receipt(catalog, [(question, answer(catalog, *question))])
    path.write_text(f"{json.dumps(receipt, indent=1, ensure_ascii=False)}\n", encoding="utf-8")


@app.command()
def verify(
    receipt: Annotated[Path, typer.Argument(metavar="FILE", help="A receipt: JSON.", exists=True, dir_okay=False)],
    database: Annotated[
        str | None, typer.Option(help="The catalog to compute it from. (default: VMSIZES_DATABASE_URL)")
    ] = None,
) -> None:
    """Compute the answers of a receipt again, and say whether they and what they rest on are equal."""
    data = _read(receipt)
    differences = _check(data, database)
    for line in differences:
        print_line(line)
    if differences:
        print_note(f"{len(differences)} differences.")
        raise typer.Exit(EXIT_DIFFERENT)
    rests_on = data["rests_on"]
    print_line(
        f"Equal: {len(data['questions'])} answers of {data['day']}, from {rests_on['fact_count']} facts and "
        f"{rests_on['price_count']} prices of {len(rests_on['sources'])} sources."
    )


def _read(path: Path) -> dict[str, Any]:
    """Read a receipt, also one inside the `_meta` of a reply; raises BadData for what is none."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise BadData(f"is no receipt: {error}", file=str(path), line=getattr(error, "lineno", None)) from None
    data = data.get("_meta", data) if isinstance(data, dict) else data
    data = data.get("vmsizes/receipt", data) if isinstance(data, dict) else data
    if not isinstance(data, dict) or "receipt" not in data:
        raise BadData("is no receipt: there is no field `receipt`", file=str(path))
    return data


def _check(data: dict[str, Any], database: str | None) -> list[str]:
    from datetime import date

    from app.catalog.queries.snapshot import Catalog, load_snapshot
    from app.db.engines import make_engine, read_session
    from app.receipts import check_receipt

    try:
        day = date.fromisoformat(str(data.get("day")))
    except ValueError:
        return [f"day: {data.get('day')!r} is no day"]
    engine = context.engine() if database is None else make_engine(database)
    try:
        with read_session(engine) as session:
            snapshot = load_snapshot(session)
            if not snapshot.revision:
                raise NotReady("The catalog is empty; run `vmsizes ingest seeds`.")
            return check_receipt(Catalog(session, snapshot, day), data)
    finally:
        if database is not None:
            engine.dispose()
