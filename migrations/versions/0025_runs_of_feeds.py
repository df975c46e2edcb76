"""Keep when each feed was refreshed last, and when that last succeeded."""

import sqlalchemy as sa
from alembic import op

from app.catalog.column_types import BYTEWISE, UtcDateTime

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "feed_run",
        sa.Column("feed", BYTEWISE, nullable=False),
        sa.Column("ended_at", UtcDateTime(), nullable=False),
        sa.Column("succeeded_at", UtcDateTime(), nullable=True),
        sa.PrimaryKeyConstraint("feed", name=op.f("pk_feed_run")),
    )


def downgrade() -> None:
    op.drop_table("feed_run")
