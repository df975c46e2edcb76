"""Count the prices of each region, system and purchase model on every day, not only on that of the ingest.

The table is left empty: `vmsizes migrate` fills it from the prices.
"""

import sqlalchemy as sa
from alembic import op

from app.catalog.column_types import BYTEWISE

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None

_GROUP = ("region", "os", "purchase")


def upgrade() -> None:
    op.drop_table("price_total")
    op.create_table(
        "price_total",
        *(sa.Column(name, BYTEWISE, nullable=False) for name in _GROUP),
        sa.Column("since", sa.Date(), nullable=False),
        sa.Column("until", sa.Date(), nullable=True),
        *(sa.Column(name, sa.Integer(), nullable=False) for name in ("in_force", "begun")),
        sa.PrimaryKeyConstraint(*_GROUP, "since", name=op.f("pk_price_total")),
        sqlite_with_rowid=False,
    )


def downgrade() -> None:
    op.drop_table("price_total")
    op.create_table(
        "price_total",
        *(sa.Column(name, BYTEWISE, nullable=False) for name in _GROUP),
        *(sa.Column(name, sa.Date(), nullable=True) for name in ("since", "until")),
        *(sa.Column(name, sa.Integer(), nullable=False) for name in ("in_force", "begun")),
        sa.PrimaryKeyConstraint(*_GROUP, name=op.f("pk_price_total")),
        sqlite_with_rowid=False,
    )
