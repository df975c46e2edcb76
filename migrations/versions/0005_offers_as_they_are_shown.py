"""Add the JSON text of an offer, and an index that covers it in place of the columns it is made of.

The table is left empty: `vmsizes migrate` rebuilds it from the prices and sizes.
"""

from typing import Any

import sqlalchemy as sa
from alembic import op

from app.catalog.column_types import BYTEWISE, UsdColumn

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

_OCTAVE = f"case {' '.join(f'when gpu_memory_gib >= {2**n} then {n}' for n in range(15, 0, -1))} "
_OCTAVE += "when gpu_memory_gib > 0 then 0 end"

_WALKED = ("region", "os", "purchase", "gpu_octave", "rank_usd", "size_key", "gpu_memory_gib", "retirement_date")


def upgrade() -> None:
    """Recreate the table with the octave (memory bucket) as a plain column: SQLite covers no query of a generated one."""
    octave = sa.Column("gpu_octave", sa.Integer(), nullable=True)
    _remake(octave, sa.Column("doc", BYTEWISE, nullable=False), covered=("preview", "gpu_count", "doc"))


def downgrade() -> None:
    """Recreate the table as it was."""
    octave = sa.Column("gpu_octave", sa.Integer(), sa.Computed(_OCTAVE, persisted=True), nullable=True)
    _remake(octave, covered=("preview", "gpu_count", "priced_in", *(column.name for column in _prices())))


def _remake(*derived: sa.Column[Any], covered: tuple[str, ...]) -> None:
    op.drop_table("offer")
    op.create_table(
        "offer",
        sa.Column("region", BYTEWISE, nullable=False),
        sa.Column("os", BYTEWISE, nullable=False),
        sa.Column("purchase", BYTEWISE, nullable=False),
        sa.Column("rank_usd", sa.Float(), nullable=False),
        sa.Column("size_key", BYTEWISE, nullable=False),
        sa.Column("priced_in", BYTEWISE, nullable=True),
        *_prices(),
        sa.Column("gpu_count", sa.Float(), nullable=True),
        sa.Column("gpu_memory_gib", sa.Float(), nullable=True),
        sa.Column("preview", sa.Boolean(), nullable=True),
        sa.Column("retirement_date", sa.Date(), nullable=True),
        *derived,
        sa.ForeignKeyConstraint(["priced_in"], ["region.code"], name=op.f("fk_offer_priced_in_region")),
        sa.ForeignKeyConstraint(["size_key"], ["size.key"], name=op.f("fk_offer_size_key_size")),
        sa.PrimaryKeyConstraint("region", "os", "purchase", "rank_usd", "size_key", name=op.f("pk_offer")),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_offer_size", "offer", ["region", "os", "purchase", "size_key"], unique=True)
    some = sa.text("gpu_octave is not null")
    op.create_index("ix_offer_gpu", "offer", [*_WALKED, *covered], sqlite_where=some, postgresql_where=some)


def _prices() -> list[sa.Column[object]]:
    return [
        sa.Column("on_demand_usd_per_hour", UsdColumn(), nullable=True),
        sa.Column("on_demand_as_of", sa.Date(), nullable=True),
        sa.Column("spot_usd_per_hour", UsdColumn(), nullable=True),
        sa.Column("spot_as_of", sa.Date(), nullable=True),
    ]
