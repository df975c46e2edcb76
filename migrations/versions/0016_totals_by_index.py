"""Let an index of offers cover what filters read, so that totals and facets are counted without whole offers."""

from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

_KEY = ("region", "os", "spot_rank_usd", "size_key")
_FILTERED = ("retirement_date", "withdrawn", "preview", "gpu_memory_gib", "gpu_count", "vcpus", "memory_gib")


def upgrade() -> None:
    op.drop_index("ix_offer_spot", "offer")
    op.create_index("ix_offer_spot", "offer", [*_KEY, *_FILTERED])


def downgrade() -> None:
    op.drop_index("ix_offer_spot", "offer")
    op.create_index("ix_offer_spot", "offer", _KEY)
