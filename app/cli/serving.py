"""The commands that prepare a database and serve it."""

from typing import Annotated

import typer

from app.cli import context
from app.cli.output import out

app = typer.Typer()


@app.command()
def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen on. (default: VMSIZES_HOST)")] = None,
    workers: Annotated[int | None, typer.Option(help="Processes that serve. (default: VMSIZES_WORKERS)")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on. (default: VMSIZES_PORT)")] = None,
) -> None:
    """Serve the API over HTTP."""
    import uvicorn

    settings = context.settings()
    where = f"http://{host or settings.host}:{port or settings.port}"
    out.print(f"Serving {where} - documentation at {where}/docs", highlight=False, soft_wrap=True)
    uvicorn.run(
        "app.server:service",
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
    from app.catalog.keep.offering import save_derived
    from app.catalog.keep.touching import is_derived
    from app.db.engines import take_statistics, writing
    from app.schema import upgrade

    upgrade(context.engine())
    with writing(context.engine()) as session:
        if not is_derived(session):
            derived = save_derived(session, context.today())
            take_statistics(session)
            out.print(f"Offers and documents are derived anew: {derived.added} offers.", highlight=False)
    out.print("The database has the newest schema.", highlight=False)
