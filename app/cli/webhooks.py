"""Commands that send changes to receivers: `vmsizes webhooks …`. The API has none of this: it stays read-only."""

import sys
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.catalog.queries.changes import ChangeFilter
from app.cli import context
from app.cli.jobs import parse_interval, repeat
from app.cli.options import Command, Group, parse_params, query_options
from app.cli.output import (
    EXIT_BAD_DATA,
    Format,
    Json,
    OutputOptions,
    exit_with_nothing,
    make_columns,
    print_json,
    print_line,
    print_note,
    print_rows,
    print_text,
    with_output_options,
)
from app.db.writing import write_session
from app.validation import plural

if TYPE_CHECKING:
    from sqlalchemy import Engine

    from app.webhooks.delivery import DeliveryRun
    from app.webhooks.sending import Sender

app = typer.Typer()
webhooks_app = typer.Typer(
    cls=Group, help="Send changes to receivers of yours, by the convention of Standard Webhooks.", no_args_is_help=True
)
app.add_typer(webhooks_app, name="webhooks")

Name = Annotated[str, typer.Argument(help="The name of the webhook, as `vmsizes webhooks list` has it.")]
WEBHOOK_COLUMNS = {
    **make_columns({"last_message_at": "last message"}, name=0, url=2, filters=3, state=0, last_message_at=4),
    **make_columns({"next_attempt_at": "next attempt"}, next_attempt_at=5, error=1),
}
MESSAGE_COLUMNS = make_columns(created_at=0, webhook=0, type=3, events=2, status=0, attempts=2, error=1, id=4)


@webhooks_app.command(cls=Command)
@query_options(ChangeFilter, leave_out=frozenset({"since", "revision", "kind"}))
def add(
    url: Annotated[str, typer.Argument(metavar="URL", help="Where messages are posted; https only.")],
    *,
    name: Annotated[str | None, typer.Option(help="A name for it. (default: that of the host)")] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option(
            "--events",
            "--kind",
            metavar="A,B",
            help="Only these kinds of events: price_down, size_new … (default: all)",
        ),
    ] = None,
    secret_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Read the secret, whsec_…, from a file; `-` is standard input. (default: a new one)"
        ),
    ] = None,
    as_json: Json = False,
    **filters: Any,
) -> None:
    """Add a webhook, which gets the changes of later ingests; prints its secret, which is shown only now."""
    from app.catalog.queries.snapshot import load_snapshot
    from app.webhooks.delivery import add_webhook
    from app.webhooks.sending import AllowedTargets, check_secret, new_secret

    wanted = parse_params(ChangeFilter, {**filters, "kind": kind})
    secret = new_secret()
    if secret_file is not None:
        written = sys.stdin.read() if str(secret_file) == "-" else secret_file.read_text(encoding="utf-8")
        secret = check_secret(written, str(secret_file))
    with context.reader() as reader:
        snapshot = load_snapshot(reader)
    allowed = AllowedTargets.parse(context.settings().webhook_allowed_networks)
    with write_session(_writer()) as session:
        webhook = add_webhook(
            session, snapshot, allowed, context.now(), url=url, filters=wanted, secret=secret, name=name
        )
        added: dict[str, Any] = {"name": webhook.name, "url": webhook.url, "filters": webhook.filters}
    if as_json:
        print_json(added if secret_file else added | {"secret": secret})
        return
    print_text(f"{added['name']} gets {_filters_text(added['filters'])} from now on.")
    if not secret_file:
        print_line(f"Secret, shown only now: {secret}")


def _filters_text(filters: Mapping[str, Any]) -> str:
    words = (f"{name} {', '.join(value) if isinstance(value, list) else value}" for name, value in filters.items())
    return "; ".join(words) or "all changes"


@webhooks_app.command("list", cls=Command)
@with_output_options
def list_all(*, output: OutputOptions) -> None:
    """List the webhooks: which changes each gets, and whether it takes them."""
    from app.webhooks.delivery import list_webhooks

    with context.session() as session:
        rows = [_with_texts(row) for row in list_webhooks(session)]
    tables = output.format is Format.table
    shown = [row | {"filters": _filters_text(row["filters"])} for row in rows] if tables else rows
    print_rows(shown, WEBHOOK_COLUMNS, output)
    if not rows:
        exit_with_nothing("There are no webhooks: `vmsizes webhooks add URL` adds one.")


@webhooks_app.command(cls=Command)
@with_output_options
def log(
    name: Annotated[str | None, typer.Argument(help="The name of a webhook. (default: all)")] = None,
    *,
    limit: Annotated[int, typer.Option(min=1, max=1000, metavar="N", help="The most messages to list.")] = 20,
    output: OutputOptions,
) -> None:
    """List what was sent, the newest first: whether it was taken, after how many attempts, and the last error."""
    from app.webhooks.delivery import list_messages

    with context.session() as session:
        rows = [_with_texts(row) for row in list_messages(session, name, limit)]
    print_rows(rows, MESSAGE_COLUMNS, output)
    if not rows:
        exit_with_nothing("Nothing was sent.")


def _with_texts(row: Mapping[str, Any]) -> dict[str, Any]:
    times = {name: _moment(value) for name, value in row.items() if isinstance(value, datetime)}
    return {**row, **times}


def _moment(moment: datetime) -> str:
    return f"{moment:%Y-%m-%dT%H:%M:%SZ}"


@webhooks_app.command(cls=Command)
def test(name: Name) -> None:
    """Send a message of type `ping` now, once; exits with 3 where it is not taken."""
    from app.webhooks.delivery import send_ping

    context.require_catalog()
    result = send_ping(_writer(), _sender(), context.now, name)
    if result.error is not None:
        print_note(f"{name}: {result.error}")
        raise typer.Exit(EXIT_BAD_DATA)
    print_text(f"{name}: it answered {result.status_code}.")


@webhooks_app.command(cls=Command)
def enable(name: Name) -> None:
    """Try a webhook again that is disabled or waits for its next attempt; it gets what it has missed."""
    from app.webhooks.delivery import enable_webhook

    with write_session(_writer()) as session:
        enable_webhook(session, name)
    print_text(f"{name} is enabled. `vmsizes webhooks deliver` sends what it has missed.")


@webhooks_app.command(cls=Command)
def remove(name: Name) -> None:
    """Remove a webhook with its log."""
    from app.webhooks.delivery import remove_webhook

    with write_session(_writer()) as session:
        remove_webhook(session, name)
    print_text(f"{name} is removed.")


@webhooks_app.command(cls=Command)
def deliver(
    *,
    every: Annotated[
        int | None,
        typer.Option(
            parser=parse_interval,
            metavar="INTERVAL",
            help="Go on delivering at this interval (30s, 5m, 1h), with one line a run, until SIGTERM.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Send every webhook the changes that it does not have yet; exits with 3 where any is not taken."""
    if every and as_json:
        raise typer.BadParameter("--every prints lines: it cannot be given with --json")
    sender = _sender()
    if every:
        repeat(lambda: _runs_text(_deliver(sender)), every)
    runs = _deliver(sender)
    if as_json:
        names = ("webhook", "messages", "events", "error", "next_attempt_at")
        print_json([_with_texts({name: getattr(run, name) for name in names}) for run in runs])
    elif not runs:
        print_note(_nothing_text())
    else:
        for run in runs:
            print_text(_run_text(run))
    if any(run.error for run in runs):
        raise typer.Exit(EXIT_BAD_DATA)


def _nothing_text() -> str:
    from app.webhooks.delivery import find_claims

    claims = (
        f"{name} is claimed by another run; if that was killed, it is due again at {_moment(until)}."
        for name, until in find_claims(context.engine(), context.now()).items()
    )
    return " ".join(claims) or "Nothing is due."


def _deliver(sender: "Sender") -> "list[DeliveryRun]":
    from app.webhooks.delivery import deliver_due

    context.require_catalog()
    return deliver_due(_writer(), sender, context.now)


def deliver_after_refresh() -> list[str]:
    """Deliver what is due, and return a line about it; none where nothing is, as where there are no webhooks."""
    from app.webhooks.delivery import deliver_due, has_webhooks

    if not has_webhooks(context.engine()):
        return []
    runs = deliver_due(context.engine(), _sender(), context.now)
    return [f"webhooks: {_runs_text(runs)}"] if runs else []


def _writer() -> "Engine":
    context.use_wait(None)
    return context.engine()


def _sender() -> "Sender":
    from app.webhooks.sending import AllowedTargets, Sender

    return Sender(AllowedTargets.parse(context.settings().webhook_allowed_networks))


def _runs_text(runs: "Iterable[DeliveryRun]") -> str:
    """Return what was delivered as one line."""
    return "; ".join(map(_run_text, runs)) or "nothing is due"


def _run_text(run: "DeliveryRun") -> str:
    sent = f"{run.webhook}: {plural(run.messages, 'message')} with {plural(run.events, 'event')}"
    if run.error is None:
        return f"{sent} delivered"
    then = f"next attempt at {_moment(run.next_attempt_at)}" if run.next_attempt_at else "disabled"
    return f"{sent} delivered, then failed: {run.error}; {then}"
