"""Add the CoreMark of a size, and to its offers, which are priced by it.

Facts are resolved anew at the next ingest; size JSON is left empty: `vmsizes migrate` rebuilds it.
"""

import sqlalchemy as sa
from alembic import op

revision = "0038"
down_revision = "0037"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("delete from size_doc")
    for table in ("size", "offer"):
        op.add_column(table, sa.Column("coremark", sa.Integer(), nullable=True))


def downgrade() -> None:
    op.execute("delete from size_doc")
    for table in ("offer", "size"):
        op.drop_column(table, "coremark")
