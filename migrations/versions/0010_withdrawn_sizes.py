"""Add withdrawn sizes; offers repeat it, so that lists need not join the size.

Offers and size JSON are left empty: `vmsizes migrate` rebuilds them from the prices and sizes.
"""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

_INDEX = (
    *("region", "os", "purchase", "gpu_octave", "rank_usd", "size_key", "gpu_memory_gib", "retirement_date"),
    *("preview", "gpu_count", "doc"),
)


def upgrade() -> None:
    _empty()
    op.add_column("size", sa.Column("withdrawn", sa.Boolean(), nullable=True))
    op.add_column("offer", sa.Column("withdrawn", sa.Boolean(), nullable=True))
    _index_by(*_INDEX[:-2], "withdrawn", *_INDEX[-2:])


def downgrade() -> None:
    _empty()
    _index_by(*_INDEX)
    op.drop_column("offer", "withdrawn")
    op.drop_column("size", "withdrawn")


def _empty() -> None:
    op.execute("delete from offer")
    op.execute("delete from size_doc")


def _index_by(*columns: str) -> None:
    some = sa.text("gpu_octave is not null")
    op.drop_index("ix_offer_gpu", "offer")
    op.create_index("ix_offer_gpu", "offer", columns, sqlite_where=some, postgresql_where=some)
