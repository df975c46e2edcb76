"""Hold the prices of all purchase models in one offer, and give reservations and savings plans their prices.

The table is left empty: `vmsizes migrate` rebuilds it from the prices and sizes.
"""

from typing import Any

import sqlalchemy as sa
from alembic import op

from app.catalog.column_types import BYTEWISE, UsdColumn

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

_PURCHASES = ("on_demand", "spot", "reserved_1y", "reserved_3y", "savings_1y", "savings_3y")
_WITH_GPU = sa.text("gpu_octave is not null")


def upgrade() -> None:
    """Recreate the table with the prices side by side."""
    ranks = {purchase: sa.Column(f"{purchase}_rank_usd", sa.Float(), nullable=False) for purchase in _PURCHASES}
    _remake(
        *(_text("region"), _text("os"), ranks.pop("on_demand"), _text("size_key")),
        sa.Column("gpu_octave", sa.Integer(), nullable=True),
        sa.Column("gpu_memory_gib", sa.Float(), nullable=True),
        sa.Column("gpu_count", sa.Float(), nullable=True),
        sa.Column("vcpus", sa.Integer(), nullable=True),
        sa.Column("memory_gib", sa.Float(), nullable=True),
        *_status(),
        *ranks.values(),
        _text("priced_in", nullable=True),
        *_of_each("as_of", sa.Date),
        *_of_each("approximate_date", sa.Boolean),
        *_of_each("usd_per_gpu_hour", sa.Float),
        *_of_each("usd_per_gpu_gib_hour", sa.Float),
        _text("doc", nullable=True),
        key=("region", "os", "on_demand_rank_usd", "size_key"),
    )
    op.create_index("ix_offer_size", "offer", ["region", "os", "size_key"], unique=True)
    filtered = ("size_key", "gpu_memory_gib", "retirement_date", "preview", "withdrawn", "gpu_count")
    for purchase in _PURCHASES:
        rank = f"{purchase}_rank_usd"
        if purchase == "on_demand":
            _index_gpus("ix_offer_gpu", rank, *filtered, "doc")
        else:
            op.create_index(f"ix_offer_{purchase}", "offer", ["region", "os", rank, "size_key"])
            _index_gpus(f"ix_offer_gpu_{purchase}", rank, *filtered)


def downgrade() -> None:
    """Recreate the table as it was."""
    _remake(
        *(_text("region"), _text("os"), _text("purchase")),
        sa.Column("rank_usd", sa.Float(), nullable=False),
        _text("size_key"),
        _text("priced_in", nullable=True),
        *_prices_before(),
        sa.Column("usd_per_gpu_hour", sa.Float(), nullable=True),
        sa.Column("usd_per_gpu_gib_hour", sa.Float(), nullable=True),
        sa.Column("gpu_count", sa.Float(), nullable=True),
        sa.Column("gpu_memory_gib", sa.Float(), nullable=True),
        *_status(),
        sa.Column("gpu_octave", sa.Integer(), nullable=True),
        _text("doc"),
        key=("region", "os", "purchase", "rank_usd", "size_key"),
    )
    op.create_index("ix_offer_size", "offer", ["region", "os", "purchase", "size_key"], unique=True)
    columns = (
        *("region", "os", "purchase", "gpu_octave", "rank_usd", "size_key", "gpu_memory_gib", "retirement_date"),
        *("preview", "withdrawn", "gpu_count", "doc"),
    )
    op.create_index("ix_offer_gpu", "offer", columns, sqlite_where=_WITH_GPU, postgresql_where=_WITH_GPU)


def _remake(*columns: sa.Column[Any], key: tuple[str, ...]) -> None:
    op.drop_table("offer")
    op.create_table(
        "offer",
        *columns,
        sa.ForeignKeyConstraint(["priced_in"], ["region.code"], name=op.f("fk_offer_priced_in_region")),
        sa.ForeignKeyConstraint(["size_key"], ["size.key"], name=op.f("fk_offer_size_key_size")),
        sa.PrimaryKeyConstraint(*key, name=op.f("pk_offer")),
        sqlite_with_rowid=False,
    )


def _index_gpus(name: str, *columns: str) -> None:
    every = ["region", "os", "gpu_octave", *columns]
    op.create_index(name, "offer", every, sqlite_where=_WITH_GPU, postgresql_where=_WITH_GPU)


def _text(name: str, *, nullable: bool = False) -> sa.Column[str]:
    return sa.Column(name, BYTEWISE, nullable=nullable)


def _of_each(what: str, kind: type[sa.types.TypeEngine[Any]]) -> list[sa.Column[Any]]:
    return [sa.Column(f"{purchase}_{what}", kind(), nullable=True) for purchase in _PURCHASES]


def _status() -> list[sa.Column[Any]]:
    return [
        sa.Column("preview", sa.Boolean(), nullable=True),
        sa.Column("withdrawn", sa.Boolean(), nullable=True),
        sa.Column("retirement_date", sa.Date(), nullable=True),
    ]


def _prices_before() -> list[sa.Column[Any]]:
    kinds = {"usd_per_hour": UsdColumn, "as_of": sa.Date, "approximate_date": sa.Boolean}
    return [
        sa.Column(f"{purchase}_{what}", kind(), nullable=True)
        for purchase in ("on_demand", "spot")
        for what, kind in kinds.items()
    ]
