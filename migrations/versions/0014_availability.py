"""Add the regions and zones in which sizes are offered."""

import sqlalchemy as sa
from alembic import op

from app.catalog.column_types import BYTEWISE

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "availability",
        sa.Column("size_key", BYTEWISE, nullable=False),
        sa.Column("region", BYTEWISE, nullable=False),
        sa.Column("source_id", BYTEWISE, nullable=False),
        sa.Column("zones", BYTEWISE, nullable=False),
        sa.Column("file", BYTEWISE, nullable=False),
        sa.ForeignKeyConstraint(["size_key"], ["size.key"]),
        sa.ForeignKeyConstraint(["region"], ["region.code"]),
        sa.ForeignKeyConstraint(["source_id"], ["source.id"]),
        sa.PrimaryKeyConstraint("size_key", "region", "source_id"),
        sqlite_with_rowid=False,
    )


def downgrade() -> None:
    op.drop_table("availability")
