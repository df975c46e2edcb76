"""Where the catalog comes from and how to take it back: `vmsizes sources`, `forget`, `revisions`."""

from typing import Annotated

import typer

from app.catalog.keep.listing import list_revisions, list_sources
from app.cli import context
from app.cli.output import Csv, Json, chosen, show_rows
from app.cli.progress import progress
from app.cli.receiving import DryRun, print_outcome
from app.ingest.run import forget as forget_source

app = typer.Typer()

_SOURCES = {
    "id": "source",
    "kind": "kind",
    "published_on": "published on",
    "facts": "facts",
    "prices": "prices",
    "others": "others",
    "title": "title",
}
_REVISIONS = {
    "number": "revision",
    "created_at": "at",
    "facts": "facts",
    "sizes": "sizes",
    "prices": "prices",
    "from": "from",
}


@app.command()
def sources(*, as_json: Json = False, as_csv: Csv = False) -> None:
    """List what the catalog was read from, and how much of it each source says."""
    with context.session() as session:
        rows = list_sources(session)
    show_rows(rows, _SOURCES, chosen(as_json=as_json, as_csv=as_csv))


@app.command()
def forget(
    source: Annotated[str, typer.Argument(help="The id of the source, as `vmsizes sources` has it.")],
    *,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Take a source back: what only it said goes, everything it spoke of is decided anew, in a new revision."""
    with context.session(), progress() as step:
        outcome = forget_source(context.engine(), source, now=context.now(), dry_run=dry_run, progress=step)
    print_outcome(outcome, as_json=as_json)


@app.command()
def revisions(*, as_json: Json = False, as_csv: Csv = False) -> None:
    """List the ingests that changed something, the newest first."""
    form = chosen(as_json=as_json, as_csv=as_csv)
    with context.session() as session:
        rows = list_revisions(session)
    if form is form.table:
        rows = [_short(row) for row in rows]
    show_rows(rows, _REVISIONS, form)


def _short(row: dict[str, object]) -> dict[str, object]:
    """A revision on one line: how many of what, and from which sources."""
    counts, ids = row["counts"], row["source_ids"]
    assert isinstance(counts, dict)  # noqa: S101  # tells the type checker
    assert isinstance(ids, list)  # noqa: S101
    told = ids[0] if len(ids) == 1 else f"{len(ids)} sources"
    moment = str(row["created_at"]).partition(".")[0].replace("+00:00", "")
    return {
        "number": row["number"], "created_at": moment, "from": told,
        **{f"{name}s": counts.get(name) for name in ("fact", "size", "price")},
    }  # fmt: skip
