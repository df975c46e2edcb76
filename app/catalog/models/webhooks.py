"""The tables of webhooks: where change events are sent, and what was sent. Neither is content of the catalog."""

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, Column
from sqlmodel import Field, SQLModel

from app.catalog.column_types import BYTEWISE, UtcDateTime


class Webhook(SQLModel, table=True):
    """A receiver of change events: which ones it gets, how far it has got them, and when it is tried again."""

    name: str = Field(sa_type=BYTEWISE, primary_key=True)
    url: str = Field(sa_type=BYTEWISE, description="https")
    secret: str = Field(sa_type=BYTEWISE, description="whsec_ and base64: kept as it is, since it signs every delivery")
    filters: dict[str, Any] = Field(sa_column=Column(JSON, nullable=False), description="parameters of GET /changes")
    after_change: int = Field(description="the id of the last event that was delivered or passed over")
    created_at: datetime = Field(sa_type=UtcDateTime)
    failures: int = Field(default=0, description="runs in a row that failed")
    failing_since: datetime | None = Field(sa_type=UtcDateTime, default=None)
    next_attempt_at: datetime | None = Field(sa_type=UtcDateTime, default=None, description="after a failure")
    claimed_until: datetime | None = Field(
        sa_type=UtcDateTime, default=None, description="a process delivers to it until then; null: none does"
    )
    disabled_at: datetime | None = Field(sa_type=UtcDateTime, default=None)
    disabled_reason: str | None = Field(sa_type=BYTEWISE, default=None)


class WebhookMessage(SQLModel, table=True):
    """A message to a webhook, with the outcome of its attempts; it is written before it is sent."""

    __tablename__ = "webhook_message"

    id: str = Field(sa_type=BYTEWISE, primary_key=True, description="the header webhook-id, the same in every attempt")
    webhook: str = Field(sa_type=BYTEWISE, foreign_key="webhook.name", index=True)
    type: str = Field(sa_type=BYTEWISE)
    body: str | None = Field(sa_type=BYTEWISE, description="what is sent; null once it will not be sent again")
    events: int
    last_change: int | None = Field(description="the id of its last event; null without events")
    created_at: datetime = Field(sa_type=UtcDateTime)
    attempts: int = 0
    last_attempt_at: datetime | None = Field(sa_type=UtcDateTime, default=None)
    delivered_at: datetime | None = Field(sa_type=UtcDateTime, default=None)
    status_code: int | None = Field(default=None, description="of the last answer; null where there was none")
    error: str | None = Field(sa_type=BYTEWISE, default=None, description="why the last attempt failed")
