"""Adds, lists, enables and removes webhooks."""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import delete, func, select
from sqlmodel import Session

from app.catalog.column_types import table_of
from app.catalog.models import Change
from app.catalog.models.webhooks import Webhook, WebhookMessage
from app.catalog.queries.changes import ChangeFilter, normalize
from app.catalog.queries.snapshot import Catalog, CatalogSnapshot
from app.errors import BadQuery, NotFound
from app.nearest import nearest
from app.webhooks.targets import AllowedTargets, RefusedAddress, UnknownHost, check_url, resolve

WEBHOOK, MESSAGE = table_of(Webhook), table_of(WebhookMessage)
_NAME = re.compile(r"[a-z0-9]([a-z0-9._-]{0,62}[a-z0-9])?")


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookRequest:
    """A webhook to add: its URL, which events it gets, and its name; by default that of its host."""

    url: str
    filters: ChangeFilter
    secret: str
    name: str | None = None


def add_webhook(
    session: Session, request: WebhookRequest, snapshot: CatalogSnapshot, allowed: AllowedTargets, now: datetime
) -> Webhook:
    """Add a webhook, which gets the events from now on.

    Raises BadQuery for a URL that is not allowed, a name that is taken, or a filter that names something unknown.
    """
    url = check_url(request.url)
    try:
        asyncio.run(resolve(url, allowed))
    except RefusedAddress as refused:
        raise BadQuery("URL", request.url, str(refused)) from None
    except UnknownHost:
        pass  # it may be known later, or only where the refresh runs; `test` tells
    name = (request.name or url.raw_host.decode("ascii")).lower()
    if not _NAME.fullmatch(name):
        raise BadQuery("name", name, "letters, digits, and . _ - inside are allowed, at most 64 characters")
    if session.get(Webhook, name) is not None:
        raise BadQuery("name", name, "is taken; give another --name")
    filters = normalize(Catalog(session, snapshot, now.date()), request.filters)
    webhook = Webhook(
        name=name,
        url=request.url,
        secret=request.secret,
        filters=filters.model_dump(mode="json", exclude_defaults=True),
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
    last = session.execute(
        select(WebhookMessage).where(MESSAGE.c.webhook == webhook.name).order_by(*_newest_first()).limit(1)
    ).scalar()
    return {
        "name": webhook.name,
        "url": webhook.url,
        "filters": webhook.filters,
        "state": state_of(webhook),
        "created_at": webhook.created_at,
        "failing_since": webhook.failing_since,
        "next_attempt_at": webhook.next_attempt_at,
        "last_message_at": last.created_at if last is not None else None,
        "error": webhook.disabled_reason or (last.error if last is not None and webhook.failures else None),
    }


def state_of(webhook: Webhook) -> str:
    """Return active, failing (its last run failed, and it is tried again) or disabled."""
    if webhook.disabled_at is not None:
        return "disabled"
    return "failing" if webhook.failures else "active"


def list_messages(session: Session, name: str | None, limit: int) -> list[dict[str, Any]]:
    """Return the newest messages, of one webhook or of all, with the outcome of their attempts but not their bodies."""
    query = select(WebhookMessage).order_by(*_newest_first()).limit(limit)
    if name is not None:
        query = query.where(MESSAGE.c.webhook == get_webhook(session, name).name)
    return [
        {
            "id": message.id,
            "webhook": message.webhook,
            "type": message.type,
            "events": message.events,
            "created_at": message.created_at,
            "status": _status_of(message),
            "attempts": message.attempts,
            "last_attempt_at": message.last_attempt_at,
            "status_code": message.status_code,
            "error": message.error,
        }
        for message in session.execute(query).scalars()
    ]


def _status_of(message: WebhookMessage) -> str:
    if message.delivered_at is not None:
        return "delivered"
    return "pending" if message.body is not None else "failed"


def _newest_first() -> Sequence[Any]:
    return MESSAGE.c.created_at.desc(), MESSAGE.c.id


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
