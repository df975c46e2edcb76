"""Keep what each revision changed as events.

Events begin with the next ingest: earlier revisions cannot be compared any more, so they have no number of changes.
"""

import sqlalchemy as sa
from alembic import op

from app.catalog.column_types import BYTEWISE

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("revision", sa.Column("changes", sa.Integer(), nullable=True))
    op.create_table(
        "change",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        *(sa.Column(name, BYTEWISE, nullable=False) for name in ("kind", "size_key", "size")),
        *(sa.Column(name, BYTEWISE, nullable=True) for name in ("region", "os", "purchase", "field", "old", "new")),
        sa.Column("percent", sa.Float(), nullable=True),
        sa.Column("valid_from", sa.Date(), nullable=True),
        sa.Column("source_id", BYTEWISE, nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_change")),
    )
    op.create_index(op.f("ix_change_revision"), "change", ["revision"])
    op.create_table(
        "price_tracking",
        *(sa.Column(name, BYTEWISE, nullable=False) for name in ("region", "os", "purchase")),
        sa.PrimaryKeyConstraint("region", "os", "purchase", name=op.f("pk_price_tracking")),
        sqlite_with_rowid=False,
    )


def downgrade() -> None:
    op.drop_table("price_tracking")
    op.drop_index(op.f("ix_change_revision"), "change")
    op.drop_table("change")
    op.drop_column("revision", "changes")
