"""Place regions, name their providers, and say how a source computed its prices.

Offers are left empty: the next ingest derives them.
"""

from typing import Any

import sqlalchemy as sa
from alembic import op

from app.catalog.column_types import BYTEWISE

revision = "0035"
down_revision = "0034"
branch_labels = None
depends_on = None


_MODELS = ("on_demand", "spot", "reserved_1y", "reserved_3y", "savings_1y", "savings_3y")


def _added() -> list[tuple[str, sa.Column[Any]]]:
    return [
        ("source", sa.Column("formula", BYTEWISE, nullable=True)),
        ("region", sa.Column("provider", BYTEWISE, nullable=False, server_default="azure")),
        *(("region", sa.Column(name, BYTEWISE, nullable=True)) for name in ("place", "country", "continent")),
        *(("region", sa.Column(name, sa.Float(), nullable=True)) for name in ("latitude", "longitude")),
        *(("offer", sa.Column(f"{model}_formula", BYTEWISE, nullable=True)) for model in _MODELS),
    ]


def upgrade() -> None:
    op.execute(sa.delete(sa.table("offer")))
    for table, column in _added():
        op.add_column(table, column)


def downgrade() -> None:
    op.execute(sa.delete(sa.table("offer")))
    for table, column in reversed(_added()):
        op.drop_column(table, column.name)
