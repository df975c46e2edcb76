"""Add the type, family of quota and base size of a size, what protects its memory, and the type of a series.

Facts are resolved anew at the next ingest; size JSON is left empty: `vmsizes migrate` rebuilds it.
"""

import sqlalchemy as sa
from alembic import op

from app.catalog.column_types import BYTEWISE

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

_TEXTS = ("category", "quota_family", "parent_size", "confidential_computing")


def upgrade() -> None:
    op.execute("delete from size_doc")
    op.add_column("series", sa.Column("category", BYTEWISE, nullable=True))
    for name in _TEXTS:
        op.add_column("size", sa.Column(name, BYTEWISE, nullable=True))
    op.add_column("size", sa.Column("encryption_at_host", sa.Boolean(), nullable=True))


def downgrade() -> None:
    op.execute("delete from size_doc")
    for name in ("encryption_at_host", *_TEXTS):
        op.drop_column("size", name)
    op.drop_column("series", "category")
