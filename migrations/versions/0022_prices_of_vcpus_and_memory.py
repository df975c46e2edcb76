"""Add the prices of a vCPU and of a GiB of memory to offers.

The table is left empty: `vmsizes migrate` rebuilds it from the prices and sizes.
"""

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None

_COLUMNS = tuple(
    f"{purchase}_{name}"
    for name in ("usd_per_vcpu_hour", "usd_per_memory_gib_hour")
    for purchase in ("on_demand", "spot", "reserved_1y", "reserved_3y", "savings_1y", "savings_3y")
)


def upgrade() -> None:
    op.execute("delete from offer")
    for name in _COLUMNS:
        op.add_column("offer", sa.Column(name, sa.Float(), nullable=True))


def downgrade() -> None:
    op.execute("delete from offer")
    for name in reversed(_COLUMNS):
        op.drop_column("offer", name)
