"""Count the prices of each region, system and purchase model at ingest, so that a list of prices has its total at once.

The table is left empty: `vmsizes migrate` fills it from the prices.
"""

import sqlalchemy as sa
from alembic import op

from app.catalog.column_types import BYTEWISE

revision = "0023"
down_revision = "0022"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "price_total",
        *(sa.Column(name, BYTEWISE, nullable=False) for name in ("region", "os", "purchase")),
        *(sa.Column(name, sa.Date(), nullable=True) for name in ("since", "until")),
        *(sa.Column(name, sa.Integer(), nullable=False) for name in ("in_force", "begun")),
        sa.PrimaryKeyConstraint("region", "os", "purchase", name=op.f("pk_price_total")),
        sqlite_with_rowid=False,
    )


def downgrade() -> None:
    op.drop_table("price_total")
