"""Add exchange rates: units of a currency per euro, by day and source."""

import sqlalchemy as sa
from alembic import op

from app.catalog.column_types import BYTEWISE, RateColumn

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "exchange_rate",
        sa.Column("currency", BYTEWISE, nullable=False),
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("source_id", BYTEWISE, nullable=False),
        sa.Column("units_per_euro", RateColumn(), nullable=False),
        sa.ForeignKeyConstraint(["source_id"], ["source.id"], name=op.f("fk_exchange_rate_source_id_source")),
        sa.PrimaryKeyConstraint("currency", "day", "source_id", name=op.f("pk_exchange_rate")),
        sqlite_with_rowid=False,
    )


def downgrade() -> None:
    op.drop_table("exchange_rate")
