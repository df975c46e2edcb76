"""Add the table of observations, which are private to the holder of an API key."""

import sqlalchemy as sa
from alembic import op

from app.catalog.column_types import BYTEWISE, UtcDateTime

revision = "0039"
down_revision = "0038"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "observation",
        sa.Column("scope", BYTEWISE, primary_key=True),
        sa.Column("source", BYTEWISE, primary_key=True),
        sa.Column("position", sa.Integer(), primary_key=True),
        sa.Column("size_key", BYTEWISE, nullable=False, index=True),
        sa.Column("kind", BYTEWISE, nullable=False),
        sa.Column("value", BYTEWISE, nullable=False),
        sa.Column("region", BYTEWISE, nullable=False),
        sa.Column("zone", BYTEWISE, nullable=True),
        sa.Column("note", BYTEWISE, nullable=True),
        sa.Column("observed_at", UtcDateTime(), nullable=False),
        sa.Column("expires_at", UtcDateTime(), nullable=False),
    )


def downgrade() -> None:
    op.drop_table("observation")
