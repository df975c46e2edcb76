"""Drop the memory bucket of offers and its index: sizes are found by sets now, and nothing asks for it."""

import sqlalchemy as sa
from alembic import op

revision = "0034"
down_revision = "0033"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.drop_index("ix_offer_gpu", table_name="offer")
    op.drop_column("offer", "gpu_octave")


def downgrade() -> None:
    with_gpu = sa.text("gpu_octave is not null")
    op.execute(sa.delete(sa.table("offer")))  # the next ingest derives them, with their buckets
    op.add_column("offer", sa.Column("gpu_octave", sa.Integer(), nullable=True))
    columns = ["region", "os", "gpu_octave", "on_demand_rank_usd", "size_key"]
    op.create_index("ix_offer_gpu", "offer", columns, sqlite_where=with_gpu, postgresql_where=with_gpu)
