"""Add the block size of FP8 weights that share a scale; unknown until models are ingested again."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("model", sa.Column("fp8_block", sa.Integer(), nullable=True))


def downgrade() -> None:
    op.drop_column("model", "fp8_block")
