"""Store the file of each price and the files that were read, so that what a file no longer says can be removed.

Prices that are there already have no file. An ingest still overwrites them, but only `vmsizes forget` removes them.
"""

import sqlalchemy as sa
from alembic import op

from app.catalog.column_types import BYTEWISE

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("price", sa.Column("file", BYTEWISE, nullable=True))
    op.create_table(
        "ingested_file",
        sa.Column("file", BYTEWISE, nullable=False),
        sa.Column("kind", BYTEWISE, nullable=False),
        sa.Column("keys", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("file", "kind", name=op.f("pk_ingested_file")),
    )


def downgrade() -> None:
    op.drop_table("ingested_file")
    op.drop_column("price", "file")
