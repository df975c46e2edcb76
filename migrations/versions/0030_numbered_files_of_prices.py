"""Number the files of prices: each price repeated a path, a fifth of its row.

SQLite's file keeps its length, and fills the pages that became free.
"""

import sqlalchemy as sa
from alembic import op

from app.catalog.column_types import BYTEWISE

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None

_TEXTS = ("size_key", "region", "os", "purchase")
_COLUMNS = f"{', '.join(_TEXTS)}, valid_from, source_id, known_from, seen_until, nano_usd_per_hour, approximate_date"


def upgrade() -> None:
    op.create_table(
        "price_file",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("file", BYTEWISE, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_price_file")),
        sa.UniqueConstraint("file", name=op.f("uq_price_file_file")),
    )
    files = "(select distinct file from price where file is not null) as files"
    op.execute(f"insert into price_file (id, file) select row_number() over (order by file), file from {files}")  # noqa: S608  # constants
    _remake(
        sa.Column("file_id", sa.Integer(), nullable=True),
        "select id from price_file where price_file.file = old_price.file",
    )


def downgrade() -> None:
    _remake(
        sa.Column("file", BYTEWISE, nullable=True),
        "select file from price_file where price_file.id = old_price.file_id",
    )
    op.drop_table("price_file")


def _remake(column: sa.Column[object], value: str) -> None:
    """Recreate the prices with another last column, whose value is a query over the old table."""
    op.rename_table("price", "old_price")
    if op.get_bind().dialect.name == "postgresql":  # where no two constraints of a schema have one name
        for constraint in ("pk_price", "fk_price_region_region", "fk_price_size_key_size", "fk_price_source_id_source"):
            op.drop_constraint(constraint, "old_price")
    op.create_table(
        "price",
        *(sa.Column(name, BYTEWISE, nullable=False) for name in _TEXTS),
        sa.Column("valid_from", sa.Date(), nullable=False),
        sa.Column("source_id", BYTEWISE, nullable=False),
        sa.Column("known_from", sa.Date(), nullable=False),
        sa.Column("seen_until", sa.Date(), nullable=False),
        sa.Column("nano_usd_per_hour", sa.BigInteger(), nullable=False),
        sa.Column("approximate_date", sa.Boolean(), nullable=False),
        column,
        sa.ForeignKeyConstraint(["region"], ["region.code"], name=op.f("fk_price_region_region")),
        sa.ForeignKeyConstraint(["size_key"], ["size.key"], name=op.f("fk_price_size_key_size")),
        sa.ForeignKeyConstraint(["source_id"], ["source.id"], name=op.f("fk_price_source_id_source")),
        sa.PrimaryKeyConstraint(*_TEXTS, "valid_from", "source_id", "known_from", name=op.f("pk_price")),
        sqlite_with_rowid=False,
    )
    op.execute(f"insert into price select {_COLUMNS}, ({value}) from old_price")  # noqa: S608  # constants
    op.drop_table("old_price")
    op.execute("analyze price")  # a new table has no statistics until the next ingest
