"""Add exact prices per GPU and per GiB to offers, and whether the date of a price is approximate.

The table is left empty: `vmsizes migrate` rebuilds it from the prices and sizes.
"""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

_COLUMNS = (
    ("on_demand_approximate_date", sa.Boolean()),
    ("spot_approximate_date", sa.Boolean()),
    ("usd_per_gpu_hour", sa.Float()),
    ("usd_per_gpu_gib_hour", sa.Float()),
)


def upgrade() -> None:
    """Add the columns."""
    op.execute("delete from offer")
    for name, kind in _COLUMNS:
        op.add_column("offer", sa.Column(name, kind, nullable=True))


def downgrade() -> None:
    """Drop the columns; the table is left empty here, too."""
    op.execute("delete from offer")
    for name, _ in _COLUMNS:
        op.drop_column("offer", name)
