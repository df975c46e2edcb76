"""Add the configuration of models whose layers differ, as JSON; null until models are ingested again."""

import sqlalchemy as sa
from alembic import op

from app.catalog.column_types import BYTEWISE

revision = "0021"
down_revision = "0020"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("model", sa.Column("config", BYTEWISE, nullable=True))


def downgrade() -> None:
    op.drop_column("model", "config")
