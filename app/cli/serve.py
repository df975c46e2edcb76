"""Commands that run the service: `vmsizes migrate`, `vmsizes serve`."""

import errno
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from multiprocessing import get_context
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.cli import context
from app.cli.jobs import RunOptions, progress
from app.cli.options import Command, Wait
from app.cli.output import print_line
from app.errors import BadQuery
from app.settings import MAX_WORKERS, Settings
from app.telemetry import logs
from app.telemetry.counters import counters_folder

if TYPE_CHECKING:
    import socket

    from app.server.protocol import Limits


app = typer.Typer()


@app.command(cls=Command)
def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen on. (default: VMSIZES_HOST)")] = None,
    workers: Annotated[
        int | None, typer.Option(help="Worker processes. (default: VMSIZES_WORKERS)", min=1, max=MAX_WORKERS)
    ] = None,
    port: Annotated[
        int | None, typer.Option(help="Port to listen on. (default: VMSIZES_PORT)", min=0, max=65535)
    ] = None,
) -> None:
    """Serve the API over HTTP; the first start in a folder sets up its own catalog, vmsizes.db."""
    from app.mcp.catalog import is_installed
    from app.server import run
    from app.server.sockets import BACKLOG

    settings = context.settings()
    limits = _limits(settings)
    context.database()  # refuses a URL of no database, which each worker would die of
    chosen_host, chosen_port = host or settings.host, settings.port if port is None else port
    # What is named in an error is where the value came from.
    sources = {name: f"VMSIZES_{name}".upper() for name in settings.model_fields_set}
    sources |= {name: f"--{name}" for name, value in (("host", host), ("port", port)) if value}
    sockets = _bind(chosen_host, chosen_port, sources)
    if _is_first_start(settings):
        print_line("First start: the catalog is written to vmsizes.db in this folder, which takes about a minute.")
        _run_to_end(_fill)
    for listener in sockets:
        listener.listen(BACKLOG)
    named = f"[{chosen_host}]" if ":" in chosen_host else chosen_host
    where = f"http://{named}:{sockets[0].getsockname()[1]}"  # port 0 is any that is free
    print_line(f"Serving {where}")
    print_line(f"  documentation     {where}/docs")
    if settings.mcp:
        agents = f"{where}/mcp" if is_installed() else "not installed: they come with vmsizes[mcp]"
        print_line(f"  tools for agents  {agents}")
    if limits.max_connections < settings.max_connections:
        print_line(
            f"  connections       {limits.max_connections} a worker instead of {settings.max_connections}: "
            "more files cannot be open (ulimit -n)"
        )
    logs.configure(settings.log_format, settings.log_level)
    with _shared_counters(settings, workers or settings.workers):
        run.serve(
            sockets,
            limits,
            workers=workers or settings.workers,
            log_config=None,  # each worker does as its settings say
            **proxy_options(settings),
        )


def _is_first_start(settings: Settings) -> bool:
    """Check whether the default database has no catalog yet; at any other URL that may be a mistake in the URL."""
    from app.catalog.revisions import current_revision
    from app.db.errors import MISSING, DatabaseError, has_no_tables

    if "database_url" in settings.model_fields_set:
        return False
    try:
        with context.database().connect() as reader:
            return not current_revision(reader)
    except DatabaseError as error:
        if MISSING in str(error) or has_no_tables(error):
            return True
        raise


def _run_to_end(target: Callable[[], None]) -> None:
    """Run a function in a child process, which frees its memory; exit if it fails.

    SIGTERM and SIGQUIT end both processes. PID 1 of a container ignores them unless it handles them.
    """

    def end(number: int, _frame: object) -> None:
        sys.exit(128 + number)  # as shells name a program that a signal ended

    ending = (signal.SIGTERM, *([signal.SIGQUIT] if sys.platform != "win32" else []))
    before = {number: signal.signal(number, end) for number in ending}
    process = get_context("spawn").Process(target=target, daemon=True)
    process.start()
    try:
        process.join()
    finally:
        process.terminate()
        process.join()
    for number, handler in before.items():
        signal.signal(number, handler)
    if process.exitcode:
        sys.exit(process.exitcode)


def _fill() -> None:
    from app.cli.ingest import read_all_seeds

    try:
        migrate()
        tables = RunOptions().ingest(read_all_seeds()).summary.changes
    except KeyboardInterrupt:
        sys.exit(130)  # as shells name a program that Ctrl-C ended
    except Exception as error:  # noqa: BLE001  # an error of the project or the database is printed, any other raised
        context.exit_with_error(error)
    print_line(f"It has {tables['size'].added:,} sizes and {tables['price'].added:,} prices.")


@contextmanager
def _shared_counters(settings: Settings, workers: int) -> Iterator[None]:
    """Give several workers a folder for their counters, unless the settings have one, and remove it at the end."""
    if workers == 1 or settings.counters_folder is not None:
        yield
        return
    with counters_folder() as folder:
        os.environ["VMSIZES_COUNTERS_FOLDER"] = str(folder)
        yield


def proxy_options(settings: Settings) -> dict[str, Any]:
    """Return uvicorn's options for proxies: without trusted ones it ignores X-Forwarded-For.

    Its own default is to believe every process on the same machine.
    """
    return {"proxy_headers": bool(settings.trusted_proxies), "forwarded_allow_ips": settings.trusted_proxies or None}


def _limits(settings: Settings) -> "Limits":
    """Return the limits of a worker by the settings and the limit of open files; raises BadQuery if that is too low."""
    from app.server.protocol import Limits, TooFewFiles, fit_to_descriptors

    limits = Limits(**settings.model_dump(include={limit.name for limit in fields(Limits)}))
    try:
        return fit_to_descriptors(limits)
    except TooFewFiles as error:
        raise BadQuery("VMSIZES_MAX_CONNECTIONS", settings.max_connections, str(error)) from None


def _bind(host: str, port: int, sources: Mapping[str, str]) -> "list[socket.socket]":
    """Bind before the slow part of a start; raises BadQuery if that fails.

    `sources` names the setting or the option that a value is from.
    """
    import socket

    from app.server.sockets import bind

    try:
        return bind(host, port)
    except OSError as error:
        if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
            detail = f"is not an address of this machine ({error.strerror})"
            raise BadQuery(sources.get("host", "--host"), host, detail) from None
        raise BadQuery(
            sources.get("port", "--port"), port, f"cannot be listened on at {host} ({error.strerror}); choose another"
        ) from None


@app.command(cls=Command)
def migrate(*, wait: Wait = None) -> None:
    """Upgrade the database to the newest schema, and rebuild the derived tables that this emptied."""
    from sqlalchemy.orm import Session

    from app.catalog.store.offers import is_derived, save_derived
    from app.db.engines import analyze
    from app.db.migrations import upgrade
    from app.db.writing import waiting_text

    def derive(session: Session) -> None:
        if not is_derived(session):
            offers = save_derived(session, context.today())
            rebuilt.append(offers.added + offers.changed + offers.unchanged)
            analyze(session)

    context.create_file()
    context.use_wait(wait)
    rebuilt: list[int] = []
    with progress() as step:
        upgrade(context.engine(), then=derive, on_wait=lambda seconds: step(waiting_text(seconds), None))
    for offers in rebuilt:
        print_line(f"Derived tables were rebuilt: {offers} offers.")
    if role := context.settings().reader_role:
        from app.db.migrations import RoleRefused, grant_reader

        try:
            tables = grant_reader(context.engine(), role, context.settings().reader_password.get_secret_value())
        except RoleRefused as error:
            raise BadQuery("VMSIZES_READER_ROLE", role, str(error)) from None
        print_line(f"The role {role} may read {len(tables)} tables, and write nothing.")
    print_line("The database has the newest schema.")
