"""Hold offers by their key, without what is computed when they are read, and with three indexes instead of thirteen.

The table is left empty: `vmsizes migrate` rebuilds it from the prices and sizes.
"""

from typing import Any

import sqlalchemy as sa
from alembic import op

from app.catalog.column_types import BYTEWISE

revision = "0028"
down_revision = "0027"
branch_labels = None
depends_on = None

_PURCHASES = ("on_demand", "spot", "reserved_1y", "reserved_3y", "savings_1y", "savings_3y")
_WITH_GPU = sa.text("gpu_octave is not null")


def upgrade() -> None:
    """Recreate the table without unit prices and JSON."""
    _remake(
        *_texts("region", "os", "size_key"),
        *_figures(
            *("gpu_octave", "gpu_memory_gib", "gpu_count", "gpu_count_numerator", "gpu_count_denominator"),
            *("vcpus", "memory_gib"),
        ),
        *_status(),
        *(sa.Column(f"{purchase}_rank_usd", sa.Float(), nullable=False) for purchase in _PURCHASES),
        sa.Column("priced_in", BYTEWISE, nullable=True),
        *_of_each("as_of", sa.Date()),
        *_of_each("approximate_date", sa.Boolean()),
        *_of_each("adjustment", BYTEWISE),
        key=("region", "os", "size_key"),
    )
    for purchase in ("on_demand", "spot"):
        op.create_index(f"ix_offer_{purchase}", "offer", ["region", "os", f"{purchase}_rank_usd", "size_key"])
    _index_gpus("ix_offer_gpu", "on_demand_rank_usd", "size_key")


def downgrade() -> None:
    """Recreate the table as it was."""
    _remake(
        *_texts("region", "os"),
        sa.Column("on_demand_rank_usd", sa.Float(), nullable=False),
        *_texts("size_key"),
        *_figures("gpu_octave", "gpu_memory_gib", "gpu_count", "vcpus", "memory_gib"),
        *_status(),
        *(sa.Column(f"{purchase}_rank_usd", sa.Float(), nullable=False) for purchase in _PURCHASES[1:]),
        sa.Column("priced_in", BYTEWISE, nullable=True),
        *_of_each("as_of", sa.Date()),
        *_of_each("approximate_date", sa.Boolean()),
        *_of_each("usd_per_gpu_hour", sa.Float()),
        *_of_each("usd_per_gpu_gib_hour", sa.Float()),
        sa.Column("doc", BYTEWISE, nullable=True),
        *_of_each("adjustment", BYTEWISE),
        *_of_each("usd_per_vcpu_hour", sa.Float()),
        *_of_each("usd_per_memory_gib_hour", sa.Float()),
        key=("region", "os", "on_demand_rank_usd", "size_key"),
    )
    op.create_index("ix_offer_size", "offer", ["region", "os", "size_key"], unique=True)
    filtered = ("size_key", "gpu_memory_gib", "retirement_date", "preview", "withdrawn", "gpu_count")
    for purchase in _PURCHASES:
        rank = f"{purchase}_rank_usd"
        if purchase == "on_demand":
            _index_gpus("ix_offer_gpu", rank, *filtered, "doc")
            continue
        covered = ("retirement_date", "withdrawn", "preview", "gpu_memory_gib", "gpu_count", "vcpus", "memory_gib")
        key = ("region", "os", rank, "size_key")
        op.create_index(f"ix_offer_{purchase}", "offer", [*key, *(covered if purchase == "spot" else ())])
        _index_gpus(f"ix_offer_gpu_{purchase}", rank, *filtered)


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


def _texts(*names: str) -> list[sa.Column[Any]]:
    return [sa.Column(name, BYTEWISE, nullable=False) for name in names]


def _figures(*names: str) -> list[sa.Column[Any]]:
    """Return columns of a size: GiB and numbers of GPUs are fractional."""
    fractional = ("gpu_count", "gpu_memory_gib", "memory_gib")
    return [sa.Column(name, sa.Float() if name in fractional else sa.Integer(), nullable=True) for name in names]


def _of_each(what: str, kind: sa.types.TypeEngine[Any]) -> list[sa.Column[Any]]:
    return [sa.Column(f"{purchase}_{what}", kind, nullable=True) for purchase in _PURCHASES]


def _status() -> list[sa.Column[Any]]:
    return [
        sa.Column("preview", sa.Boolean(), nullable=True),
        sa.Column("withdrawn", sa.Boolean(), nullable=True),
        sa.Column("retirement_date", sa.Date(), nullable=True),
    ]
