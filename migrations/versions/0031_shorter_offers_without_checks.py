"""Let the prices of offers that no index is by be null where they are unknown, and look for no size of each offer.

Infinity takes eight bytes, and foreign keys half of the time in which PostgreSQL writes an offer. The
table is left empty: `vmsizes migrate` rebuilds it from the prices and sizes.
"""

import sqlalchemy as sa
from alembic import op

from app.catalog.column_types import BYTEWISE

revision = "0031"
down_revision = "0030"
branch_labels = None
depends_on = None

_INDEXED = ("on_demand", "spot")
_PURCHASES = (*_INDEXED, "reserved_1y", "reserved_3y", "savings_1y", "savings_3y")
_WITH_GPU = sa.text("gpu_octave is not null")


def upgrade() -> None:
    _remake(nullable=True)


def downgrade() -> None:
    _remake(
        sa.ForeignKeyConstraint(["priced_in"], ["region.code"], name=op.f("fk_offer_priced_in_region")),
        sa.ForeignKeyConstraint(["size_key"], ["size.key"], name=op.f("fk_offer_size_key_size")),
        nullable=False,
    )


def _remake(*checks: sa.ForeignKeyConstraint, nullable: bool) -> None:
    """Recreate the table without rows, with foreign keys or not, and with nullable prices or not."""
    op.drop_table("offer")
    op.create_table(
        "offer",
        *(sa.Column(name, BYTEWISE, nullable=False) for name in ("region", "os", "size_key")),
        sa.Column("gpu_octave", sa.Integer(), nullable=True),
        sa.Column("gpu_memory_gib", sa.Float(), nullable=True),
        sa.Column("gpu_count", sa.Float(), nullable=True),
        *(sa.Column(f"gpu_count_{part}", sa.Integer(), nullable=True) for part in ("numerator", "denominator")),
        sa.Column("vcpus", sa.Integer(), nullable=True),
        sa.Column("memory_gib", sa.Float(), nullable=True),
        sa.Column("preview", sa.Boolean(), nullable=True),
        sa.Column("withdrawn", sa.Boolean(), nullable=True),
        sa.Column("retirement_date", sa.Date(), nullable=True),
        *(sa.Column(f"{one}_rank_usd", sa.Float(), nullable=nullable and one not in _INDEXED) for one in _PURCHASES),
        sa.Column("priced_in", BYTEWISE, nullable=True),
        *(sa.Column(f"{one}_as_of", sa.Date(), nullable=True) for one in _PURCHASES),
        *(sa.Column(f"{one}_approximate_date", sa.Boolean(), nullable=True) for one in _PURCHASES),
        *(sa.Column(f"{one}_adjustment", BYTEWISE, nullable=True) for one in _PURCHASES),
        *checks,
        sa.PrimaryKeyConstraint("region", "os", "size_key", name=op.f("pk_offer")),
        sqlite_with_rowid=False,
    )
    for one in _INDEXED:
        op.create_index(f"ix_offer_{one}", "offer", ["region", "os", f"{one}_rank_usd", "size_key"])
    of_gpus = ["region", "os", "gpu_octave", "on_demand_rank_usd", "size_key"]
    op.create_index("ix_offer_gpu", "offer", of_gpus, sqlite_where=_WITH_GPU, postgresql_where=_WITH_GPU)
