"""Index the prices of a size from the cheapest on, so that its cheapest region of a past day is found at once."""

from alembic import op

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None

_COLUMNS = ("size_key", "os", "purchase", "nano_usd_per_hour", "region")


def upgrade() -> None:
    op.create_index("ix_price_cheapest", "price", [*_COLUMNS])


def downgrade() -> None:
    op.drop_index("ix_price_cheapest", "price")
