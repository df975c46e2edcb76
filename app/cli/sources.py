"""Commands about what the catalog was read from: `vmsizes sources`, `forget`, `revisions`."""

from typing import Annotated

import typer

from app.catalog.store.revisions import list_revisions, list_sources
from app.cli import context
from app.cli.ingest import DryRun, print_outcome, progress
from app.cli.output import Column, Format, Json, OutputOptions, print_rows, with_output_options
from app.ingest.run import forget as forget_source

app = typer.Typer()

SOURCE_COLUMNS = {
    "id": Column(heading="source"),
    "kind": Column(heading="kind", rank=3),
    "published_on": Column(heading="published on", rank=2),
    "facts": Column(heading="facts", rank=1),
    "prices": Column(heading="prices", rank=1),
    "others": Column(heading="others", rank=4),
    "title": Column(heading="title", rank=5, wraps=True),
}
REVISION_COLUMNS = {
    "number": Column(heading="revision"),
    "created_at": Column(heading="at"),
    "facts": Column(heading="facts", rank=2),
    "sizes": Column(heading="sizes", rank=2),
    "prices": Column(heading="prices", rank=2),
    "from": Column(heading="from", rank=1, wraps=True),
}


@app.command()
@with_output_options
def sources(*, output: OutputOptions) -> None:
    """List the sources of the catalog, and how many facts and prices each gave."""
    with context.session() as session:
        rows = list_sources(session)
    print_rows(rows, SOURCE_COLUMNS, output)


@app.command()
def forget(
    source: Annotated[str, typer.Argument(help="The id of the source, as `vmsizes sources` lists it.")],
    *,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Remove a source in a new revision: facts that only it states go, others are decided again without it."""
    with context.session(), progress() as step:
        outcome = forget_source(context.engine(), source, now=context.now(), dry_run=dry_run, progress=step)
    print_outcome(outcome, as_json=as_json)


@app.command()
@with_output_options
def revisions(*, output: OutputOptions) -> None:
    """List the ingests that changed the catalog, the newest first."""
    with context.session() as session:
        rows = list_revisions(session)
    if output.format is Format.table and not output.columns:
        rows = [_short_revision(row) for row in rows]
    print_rows(rows, REVISION_COLUMNS, output)


def _short_revision(row: dict[str, object]) -> dict[str, object]:
    """Return a revision as one row: how many facts, sizes and prices, from which sources."""
    counts, ids = row["counts"], row["source_ids"]
    assert isinstance(counts, dict)  # noqa: S101  # tells the type checker
    assert isinstance(ids, list)  # noqa: S101
    origin = ids[0] if len(ids) == 1 else f"{len(ids)} sources"
    moment = str(row["created_at"]).partition(".")[0].replace("+00:00", "")
    return {
        "number": row["number"], "created_at": moment, "from": origin,
        **{f"{name}s": counts.get(name) for name in ("fact", "size", "price")},
    }  # fmt: skip
