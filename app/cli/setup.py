"""Commands that check an installation, and connect it to agents: `vmsizes doctor`, `vmsizes mcp`."""

import errno
import json
import shutil
import socket
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from enum import StrEnum
from importlib.metadata import distribution
from pathlib import Path
from tempfile import TemporaryFile, gettempdir
from typing import Annotated, Any, NamedTuple
from urllib.request import urlopen

import typer

from app.catalog.queries.freshness import load_feed_refreshes, load_freshness
from app.catalog.revisions import latest_revision
from app.cli import context
from app.cli.options import Command, Group
from app.cli.output import (
    EXIT_NOT_READY,
    EXIT_OK,
    Format,
    OutputOptions,
    make_columns,
    print_json,
    print_line,
    print_rows,
    print_text,
    with_output_options,
)
from app.db.errors import DatabaseError
from app.db.schema import newer_schema_text, newest_revision, schema_revision
from app.db.statements import BoundStatement, DriverReader, Statement
from app.errors import BadData, BadQuery, VmsizesError
from app.mcp.catalog import is_installed, require_sdk
from app.server.sockets import bind
from app.settings import Settings

app = typer.Typer()

EXIT_WARNINGS = 5
_CODES = {"ok": EXIT_OK, "warning": EXIT_WARNINGS, "error": EXIT_NOT_READY}
_COLUMNS = make_columns({"next": "what to do"}, check=0, status=0, detail=0, next=0)
_CLOCK_TOLERANCE = timedelta(minutes=2)
"""How far apart the clocks of this machine and of the database may be."""
_PROBE_SECONDS = 2
MAX_PORT = 65_535


class Finding(NamedTuple):
    """What was checked, its status (ok, warning, error), what was seen, and what to do about it."""

    check: str
    status: str
    detail: str
    next: str | None = None


@app.command(cls=Command, epilog="Exit codes: 0 nothing is wrong, 5 it works, with warnings, 4 it does not work.")
@with_output_options
def doctor(*, output: OutputOptions) -> None:
    """Check an installation and say what to do next; changes nothing."""
    findings = list(_examine())
    print_rows([finding._asdict() for finding in findings], _COLUMNS, output)
    wrong = sorted((finding for finding in findings if finding.next), key=lambda finding: finding.status)
    if output.format is Format.table:
        print_line()
        print_text(f"First: {wrong[0].next}." if wrong else "Nothing is wrong.")
    raise typer.Exit(_CODES[wrong[0].status if wrong else "ok"])


def _examine() -> Iterator[Finding]:
    """Yield a finding for each check; what cannot be checked without a database or catalog is left out."""
    try:
        settings = context.settings()
        context.database()  # refuses a URL of no database
        _check_settings(settings)
    except VmsizesError as error:
        todo = "correct the setting, in the environment or in .env"
        yield Finding("settings", "error", context.to_cli_text(error), todo)
        return
    yield Finding("settings", "ok", "all settings can be read")
    try:
        with context.database().connect() as reader:
            yield _examine_file(reader)
            yield from _examine_catalog(reader)
    except (VmsizesError, DatabaseError) as error:
        detail, _, todo = (context.error_message(error) or str(error)).removesuffix(".").partition("; ")
        yield Finding("database", "error", detail, todo or "start the database, or correct VMSIZES_DATABASE_URL")
    for name, folder in (("temporary files", Path(gettempdir())), ("fetched pages", context.feeds_folder())):
        yield _examine_folder(name, folder)
    yield _examine_port(settings.host, settings.port)
    if settings.mcp and not is_installed():
        todo = "pip install 'vmsizes[mcp]', or VMSIZES_MCP=false"
        yield Finding("agents", "warning", "the SDK of MCP is not installed", todo)


_QUICK_CHECK = Statement("pragma quick_check(1)")
_SERVER_TIME = Statement("select clock_timestamp()")


def _examine_file(reader: DriverReader) -> Finding:
    """Check that the database can be read; on SQLite also run `quick_check`, which finds a damaged file."""
    shown, fault = context.database().shown_url, "ok"
    if reader.kind == "sqlite":
        fault = reader.fetch(BoundStatement(_QUICK_CHECK))[0][0]
    if fault != "ok":
        todo = "restore a copy, or move the file away and run `vmsizes migrate`, then `vmsizes ingest seeds`"
        return Finding("database", "error", f"{shown} is damaged: {fault.splitlines()[-1]}", todo)
    return Finding("database", "ok", f"{shown} can be read")


def _check_settings(settings: Settings) -> None:
    """Check what only ingests and webhooks read; raises BadQuery."""
    from app.ingest.registry import parse_clouds
    from app.webhooks.sending import AllowedTargets

    AllowedTargets.parse(settings.webhook_allowed_networks)
    if not settings.seeds.is_dir():
        raise BadQuery("VMSIZES_SEEDS", settings.seeds, "is not a folder")
    if settings.azure_docs is not None and not settings.azure_docs.is_dir():
        raise BadQuery("VMSIZES_AZURE_DOCS", settings.azure_docs, "is not a folder")
    parse_clouds(settings.clouds, settings.seeds)


def _examine_catalog(reader: DriverReader) -> Iterator[Finding]:
    schema, newest = schema_revision(reader), newest_revision()
    if schema > newest:
        todo = "install the version that migrated it, or a later one; this one serves, but writes nothing"
        yield Finding("schema", "warning", newer_schema_text(schema), todo)
    elif schema < newest:
        yield Finding("schema", "error", f"{schema}; this version needs {newest}", "vmsizes migrate")
        return
    else:
        yield Finding("schema", "ok", schema)
    revision = latest_revision(reader)
    if revision is None:
        yield Finding("catalog", "error", "it is empty", "vmsizes ingest seeds")
        return
    yield Finding("catalog", "ok", f"revision {revision['number']} of {_at(revision['created_at'])}")
    here = there = context.now()
    if reader.kind == "postgresql":  # SQLite has the clock of this machine
        there = reader.fetch(BoundStatement(_SERVER_TIME))[0][0]
    if revision["created_at"] > here + _CLOCK_TOLERANCE:
        detail = f"{_at(here)} is before the newest revision of the catalog"
        yield Finding("clock", "error", detail, "set the clock of this machine, or of the one that ingests, by NTP")
    elif abs(there - here) > _CLOCK_TOLERANCE:
        detail = f"{_at(here)} here, {_at(there)} on the server of the database"
        yield Finding("clock", "warning", detail, "set both clocks by NTP")
    else:
        yield Finding("clock", "ok", _at(here))
    yield from _examine_age(reader)


def _at(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M} UTC"


def _examine_age(reader: DriverReader) -> Iterator[Finding]:
    """Yield how old prices and rates are, and the feeds that failed or are overdue."""
    days = context.settings().stale_after_days
    freshness = load_freshness(reader, context.today())
    ages = {"prices": freshness.newest_prices_as_of, "exchange rates": freshness.newest_exchange_rates_as_of}
    detail = ", ".join(f"{name} of {day or 'no day'}" for name, day in ages.items())
    stale = freshness.is_stale(days)
    yield Finding("age", "warning" if stale else "ok", detail, "vmsizes refresh" if stale else None)
    for feed in load_feed_refreshes(reader):
        overdue = context.now() - feed.ended_at > timedelta(days=days)
        seen = f"last run {_at(feed.ended_at)}" + (", which failed" if feed.has_failed else "")
        todo = f"vmsizes refresh {feed.feed}{_to_give(feed.feed)}" if feed.has_failed or overdue else None
        yield Finding(f"feed {feed.feed}", "warning" if todo else "ok", seen, todo)


def _to_give(feed: str) -> str:
    """Return the arguments a refresh needs if the settings do not let it fetch the feed."""
    settings = context.settings()
    if feed == "azure-docs":
        return "" if settings.azure_docs else " FOLDER"
    can_fetch = settings.azure_subscription and settings.azure_token.get_secret_value()
    return " --file FILE" if feed == "aws-types" or (feed == "azure-skus" and not can_fetch) else ""


def _examine_folder(name: str, folder: Path) -> Finding:
    """Try to write a file that has no name into a folder, or into the nearest one above it that is there."""
    nearest = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    try:
        with TemporaryFile(dir=nearest):
            return Finding(name, "ok", f"{folder} can be written")
    except OSError as error:
        todo = "give this user the right to write there, or set " + ("VMSIZES_FEEDS" if "pages" in name else "TMPDIR")
        return Finding(name, "warning", f"{folder} cannot be written: {error.strerror}", todo)


def _examine_port(host: str, port: int) -> Finding:
    try:
        for listener in bind(host, port):
            listener.close()
    except OSError as error:
        with suppress(OSError, ValueError), urlopen(f"http://{host}:{port}/healthz", timeout=_PROBE_SECONDS) as health:
            if json.load(health) == {"status": "ok"}:
                return Finding("port", "ok", f"a service answers at http://{host}:{port}")
        todo = f"end what listens there, or vmsizes serve --port {port + 1 if port < MAX_PORT else port - 1}"
        if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
            todo = "correct VMSIZES_HOST"
        return Finding("port", "error", f"{port} at {host} cannot be listened on: {error.strerror}", todo)
    return Finding("port", "ok", f"{port} at {host} is free")


# Agents

mcp_app = typer.Typer(cls=Group, help="Serve the tools for agents (MCP) on standard input and output.")
app.add_typer(mcp_app, name="mcp")

_SETTINGS = {"darwin": Path("~/Library/Application Support"), "win32": Path("~/AppData/Roaming")}
_SETTINGS_FOLDER = _SETTINGS.get(sys.platform, Path("~/.config"))
_HOSTS = {
    "claude": (_SETTINGS_FOLDER / "Claude/claude_desktop_config.json", "mcpServers"),
    "claude-code": (Path(".mcp.json"), "mcpServers"),
    "cursor": (Path("~/.cursor/mcp.json"), "mcpServers"),
    "gemini": (Path("~/.gemini/settings.json"), "mcpServers"),
    "vscode": (_SETTINGS_FOLDER / "Code/User/mcp.json", "servers"),
    "windsurf": (Path("~/.codeium/windsurf/mcp_config.json"), "mcpServers"),
}
"""The file of each host, in the home of the user or this folder, and the member of it that has the servers."""
Host = StrEnum("Host", list(_HOSTS))  # type: ignore[misc]  # its names are those of the table
_NAME = "vmsizes"


@mcp_app.callback(invoke_without_command=True)
def mcp(ctx: typer.Context) -> None:
    """Serve the tools for agents (MCP) on standard input and output, for programs that start this one."""
    if ctx.invoked_subcommand is not None:
        return
    require_sdk()
    from app.mcp.server import serve

    serve(context.database(), context.today)


@mcp_app.command(cls=Command)
def install(
    *,
    host: Annotated[
        list[Host] | None, typer.Option(help="The program to set up; may be repeated. (default: all that are there)")
    ] = None,
    show: Annotated[bool, typer.Option("--print", help="Print what would be written, and write nothing.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Write without asking.")] = False,
    remove: Annotated[bool, typer.Option("--remove", help="Take vmsizes out of the configuration again.")] = False,
) -> None:
    """Add the tools to the configuration of programs that run agents; what else is in it stays, and is copied first."""
    if not remove:
        require_sdk()
    there = [
        name for name, (file, _) in _HOSTS.items() if file.name != ".mcp.json" and file.expanduser().parent.is_dir()
    ]
    chosen = list(dict.fromkeys(host or there))
    if not chosen:
        raise BadQuery("--host", None, f"no program is there that has a configuration; choose {', '.join(_HOSTS)}")
    if show:
        print_json({_HOSTS[name][1]: {_NAME: _server()} for name in chosen})
        return
    for name in chosen:
        file, member = _HOSTS[name]
        _edit(file.expanduser().resolve(), member, None if remove else _server(), ask=not yes)


def _server() -> dict[str, Any]:
    """Return how a host starts the tools: this program, on the database that it uses now, wherever it is started."""
    command, *arguments = _program()
    environment = {"VMSIZES_DATABASE_URL": context.database().url}
    return {"command": command, "args": [*arguments, "mcp"], "env": environment}


def _program() -> list[str]:
    """Return how this program is started again: by uvx where it runs from the cache of uv, which may be emptied."""
    if not any((folder / "CACHEDIR.TAG").exists() for folder in Path(sys.prefix).parents):
        return [str(Path(sys.executable).with_name("vmsizes"))]
    # PEP 610: where a wheel or a folder is that was installed by its path.
    origin = json.loads(distribution("vmsizes").read_text("direct_url.json") or "{}")
    requirement = f"vmsizes[mcp] @ {origin['url']}" if "url" in origin else "vmsizes[mcp]"
    return [shutil.which("uvx") or "uvx", "--from", requirement, "vmsizes"]


def _edit(file: Path, member: str, server: Mapping[str, Any] | None, *, ask: bool) -> None:
    """Add a server to the configuration in a file, or remove it (None); the file as it was is kept as FILE.bak."""
    before = file.read_text(encoding="utf-8") if file.exists() else ""
    try:
        configuration = json.loads(before or "{}")
        servers = configuration.setdefault(member, {})
        present = servers.pop(_NAME, None)
    except (ValueError, AttributeError, TypeError):
        raise BadData(
            f"is not JSON with an object {member!r}; add by hand what `vmsizes mcp install --print` prints",
            file=str(file),
        ) from None
    if server is not None:
        servers[_NAME] = server
    if present == server:
        print_line(f"{file} {'has it already' if server else 'does not have it'}.")
        return
    if ask and not typer.confirm(f"{'Write' if server else 'Remove'} {_NAME} in {file}?"):
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    partial = file.with_name(f"{file.name}.partial")
    if before:
        shutil.copy2(file, file.with_name(f"{file.name}.bak"))
        shutil.copy2(file, partial)
    else:
        partial.touch(mode=0o600)  # the URL of a database may have a password
    partial.write_text(json.dumps(configuration, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    partial.replace(file)
    done = "Restart the program to use it" if server else "The program forgets it when it is restarted"
    print_line(f"{file} is written{f'; as it was: {file.name}.bak' if before else ''}. {done}.")
