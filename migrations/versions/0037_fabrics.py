"""Add the fabric that joins VMs of a size: InfiniBand, EFA, RoCE.

Facts are resolved anew at the next ingest; size JSON is left empty: `vmsizes migrate` rebuilds it.
"""

import sqlalchemy as sa
from alembic import op

from app.catalog.column_types import BYTEWISE

revision = "0037"
down_revision = "0036"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("delete from size_doc")
    op.add_column("size", sa.Column("fabric", BYTEWISE, nullable=True))


def downgrade() -> None:
    op.execute("delete from size_doc")
    op.drop_column("size", "fabric")
