"""Count the prices of each source by the day on which they were last observed, so that ages need not read all prices."""

import sqlalchemy as sa
from alembic import op

from app.catalog.column_types import BYTEWISE

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "price_day",
        sa.Column("source_id", BYTEWISE, nullable=False),
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("approximate_date", sa.Boolean(), nullable=False),
        sa.Column("prices", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["source_id"], ["source.id"], name=op.f("fk_price_day_source_id_source")),
        sa.PrimaryKeyConstraint("source_id", "day", "approximate_date", name=op.f("pk_price_day")),
        sqlite_with_rowid=False,
    )
    key = "source_id, seen_until, approximate_date"
    op.execute(f"insert into price_day select {key}, count(*) from price group by {key}")  # noqa: S608  # no input


def downgrade() -> None:
    op.drop_table("price_day")
