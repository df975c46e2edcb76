"""The commands, joined: those that serve and prepare are here, those that ask and receive in rooms of their own."""

from typing import Annotated

import typer

from app.catalog.keep.offering import save_derived
from app.catalog.keep.touching import is_derived
from app.cli import asking, comparing, context, exporting, modelling, receiving
from app.cli.output import out
from app.db.engines import take_statistics, writing
from app.schema import upgrade

app = typer.Typer(
    name="vmsizes",
    help="Look up, compare and cost cloud VM sizes: a source for every figure, fit and cost with the reasoning shown.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    epilog="Exit codes: 0 done or found, 1 nothing found, 2 bad question, 3 bad data, 4 no catalog yet.",
)
app.add_typer(receiving.app, name="ingest")
app.command()(asking.search)
app.command()(asking.show)
app.command()(asking.fit)
app.command()(modelling.estimate)
app.command()(comparing.similar)
app.command()(comparing.compare)
app.command()(asking.conflicts)
app.command()(asking.models)
app.add_typer(exporting.app, name="export")


@app.command()
def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen on. (default: VMSIZES_HOST)")] = None,
    workers: Annotated[int | None, typer.Option(help="Processes that serve. (default: VMSIZES_WORKERS)")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on. (default: VMSIZES_PORT)")] = None,
) -> None:
    """Serve the API over HTTP."""
    import uvicorn  # noqa: PLC0415  # only this command needs it

    settings = context.settings()
    where = f"http://{host or settings.host}:{port or settings.port}"
    out.print(f"Serving {where} - documentation at {where}/docs", highlight=False, soft_wrap=True)
    uvicorn.run(
        "app.main:create_service",
        factory=True,
        host=host or settings.host,
        port=port or settings.port,
        workers=workers or settings.workers,
        server_header=False,
        log_level="info",
        access_log=False,
    )


@app.command()
def migrate() -> None:
    """Bring the database to the newest schema, and derive anew what that emptied."""
    upgrade(context.engine())
    with writing(context.engine()) as session:
        if not is_derived(session):
            derived = save_derived(session, context.today())
            take_statistics(session)
            out.print(f"Offers and documents are derived anew: {derived.added} offers.", highlight=False)
    out.print("The database has the newest schema.", highlight=False)


def main() -> None:
    """Run the command line."""
    context.run(app)
