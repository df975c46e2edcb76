"""Add the rules by which prices differ from list prices, and to offers what they did: the list price and the rules."""

import sqlalchemy as sa
from alembic import op

from app.catalog.column_types import BYTEWISE

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None

_PURCHASES = ("on_demand", "spot", "reserved_1y", "reserved_3y", "savings_1y", "savings_3y")


def upgrade() -> None:
    op.create_table(
        "adjustment",
        sa.Column("source_id", BYTEWISE, nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("name", BYTEWISE, nullable=False),
        *(sa.Column(name, BYTEWISE, nullable=True) for name in ("size", "region", "os", "purchase")),
        sa.Column("discount_basis_points", sa.Integer(), nullable=True),
        sa.Column("nano_usd_per_hour", sa.BigInteger(), nullable=True),
        *(sa.Column(name, sa.Date(), nullable=True) for name in ("valid_from", "valid_until")),
        sa.ForeignKeyConstraint(["region"], ["region.code"], name=op.f("fk_adjustment_region_region")),
        sa.ForeignKeyConstraint(["source_id"], ["source.id"], name=op.f("fk_adjustment_source_id_source")),
        sa.PrimaryKeyConstraint("source_id", "position", name=op.f("pk_adjustment")),
        sqlite_with_rowid=False,
    )
    for purchase in _PURCHASES:
        op.add_column("offer", sa.Column(f"{purchase}_adjustment", BYTEWISE, nullable=True))


def downgrade() -> None:
    """Take the columns and rules away; prices that rules changed are derived again by the next ingest."""
    adjusted = sa.or_(*(sa.column(f"{purchase}_adjustment").is_not(None) for purchase in _PURCHASES))
    if op.get_bind().execute(sa.select(sa.literal(1)).select_from(sa.table("offer")).where(adjusted).limit(1)).first():
        op.execute("delete from offer")
    for purchase in reversed(_PURCHASES):
        op.drop_column("offer", f"{purchase}_adjustment")
    op.drop_table("adjustment")
