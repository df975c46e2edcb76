"""Keep refused prices apart, and mark prices that are unusual or disputed, or that are sold no longer.

Offers are left empty: the next ingest derives them, and checks all prices.
"""

from typing import Any

import sqlalchemy as sa
from alembic import op

from app.catalog.column_types import BYTEWISE

revision = "0033"
down_revision = "0032"
branch_labels = None
depends_on = None

_MODELS = ("on_demand", "spot", "reserved_1y", "reserved_3y", "savings_1y", "savings_3y")
_KEY = ("size_key", "region", "os", "purchase", "valid_from", "source_id", "known_from")
_DAYS = {"valid_from", "known_from"}


def _added() -> list[tuple[str, sa.Column[Any]]]:
    return [
        ("price", sa.Column("median_nano_usd", sa.BigInteger(), nullable=True)),
        ("price", sa.Column("disputed", sa.Boolean(), nullable=True)),
        ("price", sa.Column("listed_until", sa.Date(), nullable=True)),
        ("price", sa.Column("ends_on", sa.Date(), nullable=True)),
        ("source", sa.Column("retail", sa.Boolean(), nullable=False, server_default=sa.false())),
        ("series", sa.Column("cloud_services", sa.Boolean(), nullable=True)),
        ("series", sa.Column("reserved_1y_until", sa.Date(), nullable=True)),
        ("series", sa.Column("reserved_3y_until", sa.Date(), nullable=True)),
        *(("offer", sa.Column(f"{model}_median_usd", sa.Float(), nullable=True)) for model in _MODELS),
        *(("offer", sa.Column(f"{model}_disputed", sa.Boolean(), nullable=True)) for model in _MODELS),
    ]


def upgrade() -> None:
    op.execute(sa.delete(sa.table("offer")))
    for table, column in _added():
        op.add_column(table, column)
    op.create_index(
        "ix_price_disputed",
        "price",
        ["size_key", "region", "os", "purchase"],
        sqlite_where=sa.text("disputed is 1"),
        postgresql_where=sa.text("disputed is true"),
    )
    op.create_table(
        "refused_price",
        *(sa.Column(name, sa.Date() if name in _DAYS else BYTEWISE, nullable=False) for name in _KEY),
        sa.Column("seen_until", sa.Date(), nullable=False),
        sa.Column("nano_usd_per_hour", sa.BigInteger(), nullable=False),
        sa.Column("approximate_date", sa.Boolean(), nullable=False),
        sa.Column("file_id", sa.Integer(), nullable=True),
        *(sa.Column(name, BYTEWISE, nullable=False) for name in ("rule", "evidence")),
        sa.PrimaryKeyConstraint(*_KEY, name=op.f("pk_refused_price")),
        sa.ForeignKeyConstraint(["size_key"], ["size.key"], name=op.f("fk_refused_price_size_key_size")),
        sa.ForeignKeyConstraint(["region"], ["region.code"], name=op.f("fk_refused_price_region_region")),
        sa.ForeignKeyConstraint(["source_id"], ["source.id"], name=op.f("fk_refused_price_source_id_source")),
        sqlite_with_rowid=False,
    )


def downgrade() -> None:
    """Put refused prices back where they were."""
    columns = ", ".join((*_KEY, "seen_until", "nano_usd_per_hour", "approximate_date", "file_id"))
    op.execute(f"insert into price ({columns}) select {columns} from refused_price")  # noqa: S608  # our own names
    op.drop_table("refused_price")
    op.drop_index("ix_price_disputed", "price")
    op.execute(sa.delete(sa.table("offer")))
    for table, column in reversed(_added()):
        op.drop_column(table, column.name)
