"""Delivers what is due: to each webhook the events after those that it has, some at a time and in their order.

Some webhooks are sent to side by side. Only the sending is: the database is written by one of them at a time.

A message is written before it is sent, and sent again with the same id until the receiver takes it. A webhook is
claimed for the time of a run, so that two processes at once do not send the same twice. A process that is killed leaves
a claim that ends by itself, and a message that the next run sends again.
"""

import asyncio
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import uuid4

import orjson
from sqlalchemy import Engine, and_, delete, func, or_, select, update
from sqlmodel import Session

from app.catalog.column_types import table_of
from app.catalog.models import Change
from app.catalog.models.webhooks import Webhook, WebhookMessage
from app.catalog.queries.changes import ChangeFilter, find_next_changes, normalize
from app.catalog.queries.snapshot import Catalog, CatalogSnapshot
from app.db.engines import read_session
from app.db.writing import write_session
from app.errors import BadQuery, NotFound
from app.nearest import nearest
from app.schemas.catalog import ChangeOut
from app.webhooks.sending import AllowedTargets, RefusedAddress, Sender, SendResult, UnknownHost, check_url, resolve

WEBHOOK, MESSAGE = table_of(Webhook), table_of(WebhookMessage)
_NEWEST_FIRST = (MESSAGE.c.created_at.desc(), MESSAGE.c.id)
_NAME = re.compile(r"[a-z0-9]([a-z0-9._-]{0,62}[a-z0-9])?")


def add_webhook(
    session: Session,
    snapshot: CatalogSnapshot,
    allowed: AllowedTargets,
    now: datetime,
    *,
    url: str,
    filters: ChangeFilter,
    secret: str,
    name: str | None = None,
) -> Webhook:
    """Add a webhook, which gets the events from now on; its name is by default that of its host.

    Raises BadQuery for a URL that is not allowed, a name that is taken, or a filter that names something unknown.
    """
    checked = check_url(url)
    try:
        asyncio.run(resolve(checked, allowed))
    except RefusedAddress as refused:
        raise BadQuery("URL", url, str(refused)) from None
    except UnknownHost:
        pass  # it may be known later, or only where the refresh runs; `test` tells
    name = (name or checked.raw_host.decode("ascii")).lower()
    if not _NAME.fullmatch(name):
        raise BadQuery("name", name, "letters, digits, and . _ - inside are allowed, at most 64 characters")
    if session.get(Webhook, name) is not None:
        raise BadQuery("name", name, "is taken; give another --name")
    wanted = normalize(Catalog(session, snapshot, now.date()), filters)
    webhook = Webhook(
        name=name,
        url=url,
        secret=secret,
        filters=wanted.model_dump(mode="json", exclude_defaults=True),
        after_change=session.execute(select(func.coalesce(func.max(table_of(Change).c.id), 0))).scalar_one(),
        created_at=now,
    )
    session.add(webhook)
    session.flush()
    return webhook


def get_webhook(session: Session, name: str) -> Webhook:
    """Return a webhook; raises NotFound."""
    webhook = session.get(Webhook, name.lower())
    if webhook is None:
        names = session.execute(select(WEBHOOK.c.name)).scalars()
        raise NotFound("webhook", name, suggestions=tuple(nearest(name.lower(), [*names])))
    return webhook


def list_webhooks(session: Session) -> list[dict[str, Any]]:
    """Return every webhook by name, with its state; never its secret."""
    webhooks = session.execute(select(Webhook).order_by(WEBHOOK.c.name)).scalars().all()
    return [_to_row(session, webhook) for webhook in webhooks]


def _to_row(session: Session, webhook: Webhook) -> dict[str, Any]:
    of_webhook = MESSAGE.c.webhook == webhook.name
    last = session.execute(select(func.max(MESSAGE.c.created_at)).where(of_webhook)).scalar()
    # What is sent again says more than a ping that was sent since.
    order = (MESSAGE.c.body.is_(None), MESSAGE.c.last_attempt_at.desc().nulls_last(), *_NEWEST_FIRST)
    error = session.execute(select(MESSAGE.c.error).where(of_webhook).order_by(*order).limit(1)).scalar()
    return {
        "name": webhook.name,
        "url": webhook.url,
        "filters": webhook.filters,
        "state": state_of(webhook),
        "created_at": webhook.created_at,
        "failing_since": webhook.failing_since,
        "next_attempt_at": webhook.next_attempt_at,
        "last_message_at": last,
        "error": webhook.disabled_reason or error,
    }


def state_of(webhook: Webhook) -> str:
    """Return active, failing (its last run failed, and it is tried again) or disabled."""
    if webhook.disabled_at is not None:
        return "disabled"
    return "failing" if webhook.failures else "active"


def list_messages(session: Session, name: str | None, limit: int) -> list[dict[str, Any]]:
    """Return the newest messages, of one webhook or of all, with the outcome of their attempts but not their bodies."""
    query = select(WebhookMessage).order_by(*_NEWEST_FIRST).limit(limit)
    if name is not None:
        query = query.where(MESSAGE.c.webhook == get_webhook(session, name).name)
    return [
        {
            "id": message.id,
            "webhook": message.webhook,
            "type": message.type,
            "events": message.events,
            "created_at": message.created_at,
            "status": "delivered" if message.delivered_at else "failed" if message.body is None else "pending",
            "attempts": message.attempts,
            "last_attempt_at": message.last_attempt_at,
            "status_code": message.status_code,
            "error": message.error,
        }
        for message in session.execute(query).scalars()
    ]


def enable_webhook(session: Session, name: str) -> Webhook:
    """Let a webhook be tried again at once; it gets the events since it failed."""
    webhook = get_webhook(session, name)
    webhook.disabled_at = webhook.disabled_reason = webhook.failing_since = webhook.next_attempt_at = None
    webhook.failures = 0
    return webhook


def remove_webhook(session: Session, name: str) -> None:
    """Remove a webhook with its messages; raises NotFound."""
    webhook = get_webhook(session, name)
    session.execute(delete(WebhookMessage).where(MESSAGE.c.webhook == webhook.name))
    session.delete(webhook)


CHANGED, PING = "catalog.changed", "ping"
"""The types of messages."""

MAX_EVENTS = 100
MAX_BODY_BYTES = 64 * 1024
"""How many events a message has at most, and how many bytes; an event has some 300."""
MAX_RUN = timedelta(minutes=2)
"""How long one run sends messages to a webhook before it goes on to the next."""
MAX_AT_ONCE = 8
"""How many webhooks are sent to side by side, so that a slow receiver does not delay the others."""
KEPT_MESSAGES = 100
"""How many messages of a webhook, that are not sent again, stay in the log."""

CLAIM = timedelta(minutes=5)
"""How long a claim lasts: longer than the attempts of one message; it is renewed for each."""
FIRST_WAIT, LONGEST_WAIT = timedelta(minutes=5), timedelta(hours=24)
"""The wait after the first run that failed, which doubles with each further one, and the longest."""
JITTER = 0.1
"""A wait is longer or shorter by up to this share."""
DISABLED_AFTER = timedelta(days=5)
"""A webhook that has failed for so long is disabled."""

Clock = Callable[[], datetime]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryRun:
    """What a webhook got in one run, and why no more: an error, with the time of the next attempt or without one."""

    webhook: str
    messages: int
    events: int
    error: str | None = None
    next_attempt_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Outgoing:
    """A message with what is needed to send it."""

    id: str
    url: str
    secret: str
    body: str
    events: int


def deliver_due(engine: Engine, sender: Sender, now: Clock) -> list[DeliveryRun]:
    """Deliver to every webhook that is due; leaves out those that have nothing new, or that another process claims."""
    with read_session(engine) as session:
        names = session.execute(select(WEBHOOK.c.name).where(_is_due(now())).order_by(WEBHOOK.c.name)).scalars().all()
    places = asyncio.Semaphore(MAX_AT_ONCE)

    async def deliver(name: str) -> DeliveryRun | None:
        async with places:
            return await _deliver(engine, sender, now, name)

    async def deliver_side_by_side() -> list[DeliveryRun | None]:
        return await asyncio.gather(*map(deliver, names))

    return [run for run in asyncio.run(deliver_side_by_side()) if run is not None and (run.messages or run.error)]


def find_claims(engine: Engine, now: datetime) -> dict[str, datetime]:
    """Return when the claims of processes end, by webhook: those that deliver to it, or were killed."""
    claims = select(WEBHOOK.c.name, WEBHOOK.c.claimed_until).where(WEBHOOK.c.claimed_until > now)
    with read_session(engine) as session:
        return {row.name: row.claimed_until for row in session.execute(claims.order_by(WEBHOOK.c.name))}


def has_webhooks(engine: Engine) -> bool:
    """Return whether there is any webhook."""
    with read_session(engine) as session:
        return session.execute(select(WEBHOOK.c.name).limit(1)).first() is not None


def send_ping(engine: Engine, sender: Sender, now: Clock, name: str) -> SendResult:
    """Send a message of type `ping` once, also to a webhook that is disabled, and log it; raises NotFound."""
    body = _body(PING, now(), {"webhook": name})
    with write_session(engine) as session:
        webhook = get_webhook(session, name)
        message = _message(webhook.name, PING, body, now(), events=0, last_change=None)
        session.add(message)
        outgoing = _outgoing(webhook, message)
        message.body = None  # it is not sent again
    result = sender.send(outgoing.url, outgoing.secret, outgoing.id, outgoing.body, once=True)
    with write_session(engine) as session:
        message = _record_attempts(session, outgoing.id, result, now())
        _delete_old_messages(session, message.webhook)
    return result


def _is_due(now: datetime) -> Any:
    return and_(
        WEBHOOK.c.disabled_at.is_(None),
        or_(WEBHOOK.c.next_attempt_at.is_(None), WEBHOOK.c.next_attempt_at <= now),
        or_(WEBHOOK.c.claimed_until.is_(None), WEBHOOK.c.claimed_until <= now),
    )


class _Claim:
    """The right of this process to deliver to a webhook, which it may lose where it takes longer than CLAIM."""

    def __init__(self, name: str, until: datetime) -> None:
        self._name, self._until = name, until

    @staticmethod
    def take(engine: Engine, name: str, now: datetime) -> "_Claim | None":
        """Claim a webhook that is still due; None where another process was faster."""
        until = now + CLAIM
        with write_session(engine) as session:
            claimed = update(WEBHOOK).where(WEBHOOK.c.name == name, _is_due(now)).values(claimed_until=until)
            return _Claim(name, until) if _count(session, claimed) else None

    def renew(self, session: Session, now: datetime) -> bool:
        """Claim it for longer; False where the claim has ended and another process has taken it."""
        until = now + CLAIM
        held = self._set(session, until)
        self._until = until if held else self._until
        return held

    def release(self, engine: Engine) -> None:
        """Give it back."""
        with write_session(engine) as session:
            self._set(session, None)

    def _set(self, session: Session, until: datetime | None) -> bool:
        held = and_(WEBHOOK.c.name == self._name, WEBHOOK.c.claimed_until == self._until)
        return _count(session, update(WEBHOOK).where(held).values(claimed_until=until)) == 1


def _count(session: Session, statement: Any) -> int:
    result: Any = session.execute(statement)
    return int(result.rowcount)


async def _deliver(engine: Engine, sender: Sender, now: Clock, name: str) -> DeliveryRun | None:
    """Send a webhook its messages one after the other, until it has all events, one fails, or MAX_RUN is over."""
    claim = _Claim.take(engine, name, now())
    if claim is None:
        return None
    messages, events, end = 0, 0, now() + MAX_RUN
    try:
        while now() < end:
            with write_session(engine) as session:
                outgoing = _next_outgoing(session, name, now()) if claim.renew(session, now()) else None
            if outgoing is None:
                break
            result = await sender.post(outgoing.url, outgoing.secret, outgoing.id, outgoing.body)
            with write_session(engine) as session:
                if not claim.renew(session, now()):  # removed, or sent again by another process after CLAIM
                    break
                webhook = _record(session, outgoing.id, result, now())
                if not result.delivered:
                    return DeliveryRun(
                        webhook=name,
                        messages=messages,
                        events=events,
                        error=webhook.disabled_reason or result.error,
                        next_attempt_at=webhook.next_attempt_at,
                    )
            messages, events = messages + 1, events + outgoing.events
        return DeliveryRun(webhook=name, messages=messages, events=events)
    finally:
        claim.release(engine)


def _next_outgoing(session: Session, name: str, now: datetime) -> _Outgoing | None:
    """Return the message that was not delivered yet, else a new one of the next events; None where there are none."""
    webhook = get_webhook(session, name)
    unsent = and_(MESSAGE.c.webhook == name, MESSAGE.c.body.is_not(None))
    message = session.execute(select(WebhookMessage).where(unsent)).scalar()
    if message is None:
        filters = ChangeFilter.model_validate(webhook.filters)
        events, newest = find_next_changes(session, filters, webhook.after_change, MAX_EVENTS + 1)
        if not events:
            webhook.after_change = max(webhook.after_change, newest)
            return None
        message = _changes_message(name, events, now)
        session.add(message)
    return _outgoing(webhook, message)


def _changes_message(name: str, rows: Sequence[dict[str, Any]], now: datetime) -> WebhookMessage:
    """Return a message of the first rows, as GET /changes shows them: at most MAX_EVENTS, and MAX_BODY_BYTES."""
    items: list[dict[str, Any]] = []
    size = 0
    for row in rows[:MAX_EVENTS]:
        item = ChangeOut.model_validate(row).model_dump(mode="json")
        size += len(orjson.dumps(item))
        if items and size > MAX_BODY_BYTES:
            break
        items.append(item)
    last = rows[len(items) - 1]
    body = _body(CHANGED, last["at"], {"items": items, "more": len(items) < len(rows)})
    return _message(name, CHANGED, body, now, events=len(items), last_change=last["id"])


def _body(kind: str, timestamp: datetime, data: Any) -> str:
    return orjson.dumps({"type": kind, "timestamp": timestamp, "data": data}, option=orjson.OPT_UTC_Z).decode()


def _message(name: str, kind: str, body: str, now: datetime, *, events: int, last_change: int | None) -> WebhookMessage:
    return WebhookMessage(
        id=f"msg_{uuid4().hex}",
        webhook=name,
        type=kind,
        body=body,
        events=events,
        last_change=last_change,
        created_at=now,
    )


def _outgoing(webhook: Webhook, message: WebhookMessage) -> _Outgoing:
    assert message.body is not None  # noqa: S101  # only what is not sent yet has a body
    return _Outgoing(id=message.id, url=webhook.url, secret=webhook.secret, body=message.body, events=message.events)


def _record(session: Session, message_id: str, result: SendResult, now: datetime) -> Webhook:
    """Write the outcome of a message to the log, and what follows from it to its webhook."""
    message = _record_attempts(session, message_id, result, now)
    webhook = get_webhook(session, message.webhook)
    if result.delivered:
        message.body = None
        webhook.after_change = message.last_change or webhook.after_change
        webhook.failures, webhook.failing_since, webhook.next_attempt_at = 0, None, None
        _delete_old_messages(session, webhook.name)
        return webhook
    webhook.failures += 1
    webhook.failing_since = webhook.failing_since or now
    if result.gone or now - webhook.failing_since >= DISABLED_AFTER:
        webhook.disabled_at, webhook.next_attempt_at = now, None
        reason = "it wants no more messages" if result.gone else f"it failed for {DISABLED_AFTER.days} days"
        webhook.disabled_reason = f"{reason}: {result.error}"
    else:
        webhook.next_attempt_at = now + _wait(webhook.failures, result.retry_after)
    return webhook


def _record_attempts(session: Session, message_id: str, result: SendResult, now: datetime) -> WebhookMessage:
    message = session.get_one(WebhookMessage, message_id)
    message.attempts += result.attempts
    message.last_attempt_at, message.status_code, message.error = now, result.status_code, result.error
    message.delivered_at = now if result.delivered else None
    return message


def _wait(failures: int, retry_after: float | None) -> timedelta:
    """Return how long to wait after that many failed runs; longer where the receiver asks for it."""
    wait = min(LONGEST_WAIT, FIRST_WAIT * 2.0 ** min(failures - 1, 20))
    # No secret depends on this chance.
    wait *= random.uniform(1 - JITTER, 1 + JITTER)  # noqa: S311
    return max(wait, min(LONGEST_WAIT, timedelta(seconds=retry_after or 0)))


def _delete_old_messages(session: Session, name: str) -> None:
    done = and_(MESSAGE.c.webhook == name, MESSAGE.c.body.is_(None))
    kept = select(MESSAGE.c.id).where(done).order_by(*_NEWEST_FIRST).limit(KEPT_MESSAGES)
    session.execute(delete(MESSAGE).where(done, MESSAGE.c.id.not_in(kept)))
