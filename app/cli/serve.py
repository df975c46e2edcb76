"""Commands that run the service: `vmsizes migrate`, `vmsizes serve`."""

from typing import Annotated

import typer

from app.cli import context
from app.cli.options import Wait
from app.cli.output import print_line
from app.cli.progress import progress
from app.errors import BadQuery

app = typer.Typer()


@app.command()
def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen on. (default: VMSIZES_HOST)")] = None,
    workers: Annotated[int | None, typer.Option(help="Worker processes. (default: VMSIZES_WORKERS)")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on. (default: VMSIZES_PORT)")] = None,
) -> None:
    """Serve the API over HTTP."""
    import uvicorn

    settings = context.settings()
    _check_address(host or settings.host, port or settings.port)
    where = f"http://{host or settings.host}:{port or settings.port}"
    print_line(f"Serving {where}")
    print_line(f"  documentation     {where}/docs")
    if settings.mcp:
        print_line(f"  tools for agents  {_agents_note(where)}")
    uvicorn.run(
        "app.asgi:service",
        factory=True,
        host=host or settings.host,
        port=port or settings.port,
        workers=workers or settings.workers,
        server_header=False,
        log_level="info",
        access_log=False,
    )


def _agents_note(where: str) -> str:
    """Return where the tools for agents are, or what to install for them."""
    from app.mcp.sdk import is_installed

    return f"{where}/mcp" if is_installed() else "not installed: pip install 'vmsizes[mcp]'"


def _check_address(host: str, port: int) -> None:
    """Raise BadQuery for an address that cannot be listened on, before any message says that it is served."""
    import socket

    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except OSError as error:
        raise BadQuery("--host", host, f"is not an address of this machine ({error.strerror})") from None
    with socket.socket(family, kind, protocol) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the server does
        try:
            listener.bind(address)
            listener.listen()
        except OSError as error:
            raise BadQuery(
                "--port", port, f"cannot be listened on at {host} ({error.strerror}); choose another"
            ) from None


@app.command()
def migrate(*, wait: Wait = None) -> None:
    """Upgrade the database to the newest schema, and rebuild the derived tables that this emptied."""
    from app.catalog.store.offers import is_derived, save_derived
    from app.db.engines import analyze
    from app.db.migrations import upgrade
    from app.db.writing import waiting_text, write_session

    context.use_wait(wait)
    with progress() as step:
        upgrade(context.engine(), on_wait=lambda seconds: step(waiting_text(seconds), None))
    with write_session(context.engine()) as session:
        if not is_derived(session):
            derived = save_derived(session, context.today())
            analyze(session)
            print_line(f"Derived tables were rebuilt: {derived.added} offers.")
    print_line("The database has the newest schema.")
