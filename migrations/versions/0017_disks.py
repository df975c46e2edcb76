"""Add managed disks and their prices."""

import sqlalchemy as sa
from alembic import op

from app.catalog.column_types import BYTEWISE

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

_INTEGERS = ("max_iops", "max_mbps", "burst_iops", "burst_mbps", "included_iops", "included_mbps", "iops_per_gib")


def upgrade() -> None:
    op.create_table(
        "disk",
        sa.Column("id", BYTEWISE, nullable=False),
        sa.Column("type", BYTEWISE, nullable=False),
        sa.Column("redundancy", BYTEWISE, nullable=False),
        sa.Column("size", BYTEWISE, nullable=True),
        sa.Column("sku", BYTEWISE, nullable=False),
        sa.Column("min_gib", sa.Integer(), nullable=True),
        sa.Column("max_gib", sa.Integer(), nullable=False),
        *(sa.Column(name, sa.Integer(), nullable=True) for name in _INTEGERS),
        sa.Column("mbps_per_iops", sa.Float(), nullable=True),
        sa.Column("max_shares", sa.Integer(), nullable=True),
        sa.Column("source_id", BYTEWISE, nullable=False),
        sa.ForeignKeyConstraint(["source_id"], ["source.id"], name=op.f("fk_disk_source_id_source")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_disk")),
    )
    op.create_table(
        "disk_price",
        sa.Column("region", BYTEWISE, nullable=False),
        sa.Column("disk_id", BYTEWISE, nullable=False),
        sa.Column("per", BYTEWISE, nullable=False),
        sa.Column("valid_from", sa.Date(), nullable=False),
        sa.Column("source_id", BYTEWISE, nullable=False),
        sa.Column("nano_usd", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["region"], ["region.code"], name=op.f("fk_disk_price_region_region")),
        sa.ForeignKeyConstraint(["disk_id"], ["disk.id"], name=op.f("fk_disk_price_disk_id_disk")),
        sa.ForeignKeyConstraint(["source_id"], ["source.id"], name=op.f("fk_disk_price_source_id_source")),
        sa.PrimaryKeyConstraint("region", "disk_id", "per", "valid_from", "source_id", name=op.f("pk_disk_price")),
        sqlite_with_rowid=False,
    )


def downgrade() -> None:
    op.drop_table("disk_price")
    op.drop_table("disk")
