"""Turn prices into runs with two clocks, and add the complete lists of sources.

Each price becomes a run of one day. It is known from the day of the first revision that names its source, since no row
says when it was ingested; without such a revision from the day it is valid from.
"""

import json
from datetime import date
from typing import Any

import sqlalchemy as sa
from alembic import op

from app.catalog.column_types import BYTEWISE, UsdColumn

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

_NANO = {
    # The text of a double has all its digits; multiplied it could be rounded.
    "sqlite": "cast(replace(printf('%.9f', usd_per_hour), '.', '') as integer)",
    "postgresql": "cast(usd_per_hour * 1000000000 as bigint)",
}
_USD = {"sqlite": "nano_usd_per_hour / 1e9", "postgresql": "nano_usd_per_hour / 1000000000::numeric"}
_OFFER = ("size_key", "region", "os", "purchase")
_SAME = ", ".join(_OFFER)


def upgrade() -> None:
    _set_aside()
    _make_prices(
        sa.Column("source_id", BYTEWISE, nullable=False),
        sa.Column("known_from", sa.Date(), nullable=False),
        sa.Column("seen_until", sa.Date(), nullable=False),
        sa.Column("nano_usd_per_hour", sa.BigInteger(), nullable=False),
        sa.Column("approximate_date", sa.Boolean(), nullable=False),
        key=("source_id", "known_from"),
    )
    op.create_table(
        "price_list",
        sa.Column("source_id", BYTEWISE, nullable=False),
        sa.Column("region", BYTEWISE, nullable=False),
        sa.Column("os", BYTEWISE, nullable=False),
        sa.Column("purchase", BYTEWISE, nullable=False),
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("known_from", sa.Date(), nullable=False),
        sa.Column("rows", sa.Integer(), nullable=False),
        sa.Column("file", BYTEWISE, nullable=True),
        sa.ForeignKeyConstraint(["source_id"], ["source.id"], name=op.f("fk_price_list_source_id_source")),
        sa.PrimaryKeyConstraint("source_id", "region", "os", "purchase", "day", name=op.f("pk_price_list")),
        sqlite_with_rowid=False,
    )
    connection = op.get_bind()
    columns = f"{_SAME}, valid_from, source_id, known_from, seen_until, nano_usd_per_hour, approximate_date, file"
    values = f"{_SAME}, valid_from, source_id, coalesce(:day, valid_from), valid_from, {_NANO[connection.dialect.name]}"
    copied = f"insert into price ({columns}) select {values}, approximate_date, file from old_price"  # noqa: S608
    for source, day in _days_of_sources(connection).items():
        of_source = sa.text(f"{copied} where source_id = :source").bindparams(sa.bindparam("day", day, sa.Date()))
        connection.execute(of_source, {"source": source})
    op.drop_table("old_price")


def downgrade() -> None:
    _set_aside()
    _make_prices(
        sa.Column("usd_per_hour", UsdColumn(), nullable=False),
        sa.Column("approximate_date", sa.Boolean(), nullable=False),
        sa.Column("source_id", BYTEWISE, nullable=False),
        key=(),
    )
    newest = f"row_number() over (partition by {_SAME}, valid_from order by known_from desc, source_id)"
    values = f"{_SAME}, valid_from, {_USD[op.get_bind().dialect.name]}, approximate_date, source_id, file"
    ranked = f"(select old_price.*, {newest} as newest from old_price) as ranked"  # noqa: S608  # constants
    op.execute(f"insert into price select {values} from {ranked} where newest = 1")  # noqa: S608
    op.drop_table("price_list")
    op.drop_table("old_price")


def _set_aside() -> None:
    op.rename_table("price", "old_price")
    if op.get_bind().dialect.name == "postgresql":  # where no two constraints of a schema have one name
        for constraint in ("pk_price", "fk_price_region_region", "fk_price_size_key_size", "fk_price_source_id_source"):
            op.drop_constraint(constraint, "old_price")


def _make_prices(*columns: sa.Column[Any], key: tuple[str, ...]) -> None:
    op.create_table(
        "price",
        *(sa.Column(each, BYTEWISE, nullable=False) for each in _OFFER),
        sa.Column("valid_from", sa.Date(), nullable=False),
        *columns,
        sa.Column("file", BYTEWISE, nullable=True),
        sa.ForeignKeyConstraint(["region"], ["region.code"], name=op.f("fk_price_region_region")),
        sa.ForeignKeyConstraint(["size_key"], ["size.key"], name=op.f("fk_price_size_key_size")),
        sa.ForeignKeyConstraint(["source_id"], ["source.id"], name=op.f("fk_price_source_id_source")),
        sa.PrimaryKeyConstraint(*_OFFER, "valid_from", *key, name=op.f("pk_price")),
        sqlite_with_rowid=False,
    )


def _days_of_sources(connection: sa.Connection) -> dict[str, date | None]:
    """Return the sources of prices, each with the day of the first revision that names it."""
    days: dict[str, date | None] = dict.fromkeys(
        connection.execute(sa.text("select distinct source_id from old_price")).scalars()
    )
    revisions = sa.table(
        "revision", sa.column("number"), sa.column("created_at", sa.DateTime()), sa.column("source_ids")
    )
    query = sa.select(revisions.c.created_at, revisions.c.source_ids).order_by(revisions.c.number)
    for created_at, source_ids in connection.execute(query):
        named = json.loads(source_ids) if isinstance(source_ids, str) else source_ids
        for source in named:
            if source in days and days[source] is None:
                days[source] = created_at.date()
    return days
