"""Keep webhooks, and what was sent to them."""

import sqlalchemy as sa
from alembic import op

from app.catalog.column_types import BYTEWISE, UtcDateTime

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "webhook",
        *(sa.Column(name, BYTEWISE, nullable=False) for name in ("name", "url", "secret")),
        sa.Column("filters", sa.JSON(), nullable=False),
        sa.Column("after_change", sa.Integer(), nullable=False),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("failures", sa.Integer(), nullable=False),
        *(
            sa.Column(name, UtcDateTime(), nullable=True)
            for name in ("failing_since", "next_attempt_at", "claimed_until", "disabled_at")
        ),
        sa.Column("disabled_reason", BYTEWISE, nullable=True),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_webhook")),
    )
    op.create_table(
        "webhook_message",
        *(sa.Column(name, BYTEWISE, nullable=False) for name in ("id", "webhook", "type")),
        sa.Column("body", BYTEWISE, nullable=True),
        sa.Column("events", sa.Integer(), nullable=False),
        sa.Column("last_change", sa.Integer(), nullable=True),
        sa.Column("created_at", UtcDateTime(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        *(sa.Column(name, UtcDateTime(), nullable=True) for name in ("last_attempt_at", "delivered_at")),
        sa.Column("status_code", sa.Integer(), nullable=True),
        sa.Column("error", BYTEWISE, nullable=True),
        sa.ForeignKeyConstraint(["webhook"], ["webhook.name"], name=op.f("fk_webhook_message_webhook_webhook")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_webhook_message")),
    )
    op.create_index(op.f("ix_webhook_message_webhook"), "webhook_message", ["webhook"])


def downgrade() -> None:
    op.drop_index(op.f("ix_webhook_message_webhook"), "webhook_message")
    op.drop_table("webhook_message")
    op.drop_table("webhook")
