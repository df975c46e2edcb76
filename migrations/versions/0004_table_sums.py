"""Store a checksum per table, from which the next digest is computed; tables without one are read once."""

import sqlalchemy as sa
from alembic import op

from app.catalog.column_types import BYTEWISE

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "table_sum",
        sa.Column("heading", BYTEWISE, nullable=False),
        sa.Column("rows", sa.Integer(), nullable=False),
        sa.Column("sum", BYTEWISE, nullable=False),
        sa.PrimaryKeyConstraint("heading", name=op.f("pk_table_sum")),
    )


def downgrade() -> None:
    op.drop_table("table_sum")
