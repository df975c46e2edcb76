"""Create the read model: offers in list order, a JSON text per size, price history in the order of its key.

The derived tables are left empty: `vmsizes migrate` rebuilds them from the prices and sizes.
"""

import sqlalchemy as sa
from alembic import op

from app.catalog.column_types import BYTEWISE, UsdColumn

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_OCTAVE = f"case {' '.join(f'when gpu_memory_gib >= {2**n} then {n}' for n in range(15, 0, -1))} "
_OCTAVE += "when gpu_memory_gib > 0 then 0 end"


def upgrade() -> None:
    """Create the read model, and store SQLite's prices without row numbers (`without rowid`)."""
    _price(clustered=True)
    op.drop_table("best_offer")
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
        sa.Column("gpu_octave", sa.Integer(), sa.Computed(_OCTAVE, persisted=True), nullable=True),
        sa.ForeignKeyConstraint(["priced_in"], ["region.code"], name=op.f("fk_offer_priced_in_region")),
        sa.ForeignKeyConstraint(["size_key"], ["size.key"], name=op.f("fk_offer_size_key_size")),
        sa.PrimaryKeyConstraint("region", "os", "purchase", "rank_usd", "size_key", name=op.f("pk_offer")),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_offer_size", "offer", ["region", "os", "purchase", "size_key"], unique=True)
    some = sa.text("gpu_octave is not null")
    op.create_index(
        "ix_offer_gpu",
        "offer",
        [
            *("region", "os", "purchase", "gpu_octave", "rank_usd", "size_key", "gpu_memory_gib", "retirement_date"),
            *("preview", "gpu_count", "priced_in", "on_demand_usd_per_hour", "on_demand_as_of", "spot_usd_per_hour"),
            "spot_as_of",
        ],
        sqlite_where=some,
        postgresql_where=some,
    )
    op.create_table(
        "size_doc",
        sa.Column("size_key", BYTEWISE, nullable=False),
        sa.Column("doc", BYTEWISE, nullable=False),
        sa.ForeignKeyConstraint(["size_key"], ["size.key"], name=op.f("fk_size_doc_size_key_size")),
        sa.PrimaryKeyConstraint("size_key", name=op.f("pk_size_doc")),
    )


def downgrade() -> None:
    """Restore the tables of the first schema; an ingest fills the derived ones."""
    op.drop_table("size_doc")
    op.drop_table("offer")
    op.create_table(
        "offer",
        sa.Column("size_key", BYTEWISE, nullable=False),
        sa.Column("region", BYTEWISE, nullable=False),
        sa.Column("os", BYTEWISE, nullable=False),
        *_prices(),
        sa.ForeignKeyConstraint(["region"], ["region.code"], name=op.f("fk_offer_region_region")),
        sa.ForeignKeyConstraint(["size_key"], ["size.key"], name=op.f("fk_offer_size_key_size")),
        sa.PrimaryKeyConstraint("size_key", "region", "os", name=op.f("pk_offer")),
    )
    for purchase in ("on_demand", "spot"):
        op.create_index(
            f"ix_offer_region_os_{purchase}", "offer", ["region", "os", f"{purchase}_usd_per_hour", "size_key"]
        )
    op.create_table(
        "best_offer",
        sa.Column("size_key", BYTEWISE, nullable=False),
        sa.Column("os", BYTEWISE, nullable=False),
        sa.Column("purchase", BYTEWISE, nullable=False),
        sa.Column("region", BYTEWISE, nullable=False),
        *_prices(),
        sa.ForeignKeyConstraint(["region"], ["region.code"], name=op.f("fk_best_offer_region_region")),
        sa.ForeignKeyConstraint(["size_key"], ["size.key"], name=op.f("fk_best_offer_size_key_size")),
        sa.PrimaryKeyConstraint("size_key", "os", "purchase", name=op.f("pk_best_offer")),
    )
    op.create_index("ix_best_offer_os_purchase", "best_offer", ["os", "purchase", "size_key"])
    _price(clustered=False)


def _prices() -> list[sa.Column[object]]:
    return [
        sa.Column("on_demand_usd_per_hour", UsdColumn(), nullable=True),
        sa.Column("on_demand_as_of", sa.Date(), nullable=True),
        sa.Column("spot_usd_per_hour", UsdColumn(), nullable=True),
        sa.Column("spot_as_of", sa.Date(), nullable=True),
    ]


def _price(*, clustered: bool) -> None:
    """Rebuild SQLite's price table with or without row numbers; does nothing on PostgreSQL."""
    if op.get_bind().dialect.name != "sqlite":
        return
    op.rename_table("price", "price_before")
    op.create_table(
        "price",
        sa.Column("size_key", BYTEWISE, nullable=False),
        sa.Column("region", BYTEWISE, nullable=False),
        sa.Column("os", BYTEWISE, nullable=False),
        sa.Column("purchase", BYTEWISE, nullable=False),
        sa.Column("valid_from", sa.Date(), nullable=False),
        sa.Column("usd_per_hour", UsdColumn(), nullable=False),
        sa.Column("approximate_date", sa.Boolean(), nullable=False),
        sa.Column("source_id", BYTEWISE, nullable=False),
        sa.ForeignKeyConstraint(["region"], ["region.code"], name=op.f("fk_price_region_region")),
        sa.ForeignKeyConstraint(["size_key"], ["size.key"], name=op.f("fk_price_size_key_size")),
        sa.ForeignKeyConstraint(["source_id"], ["source.id"], name=op.f("fk_price_source_id_source")),
        sa.PrimaryKeyConstraint("size_key", "region", "os", "purchase", "valid_from", name=op.f("pk_price")),
        sqlite_with_rowid=not clustered,
    )
    op.execute("insert into price select * from price_before")
    op.drop_table("price_before")
