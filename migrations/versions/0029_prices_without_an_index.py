"""Drop the index of prices by size and price: the few prices of a size are sorted where a past day is asked for."""

from alembic import op

revision = "0029"
down_revision = "0028"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.drop_index("ix_price_cheapest", "price")


def downgrade() -> None:
    op.create_index("ix_price_cheapest", "price", ["size_key", "os", "purchase", "nano_usd_per_hour", "region"])
