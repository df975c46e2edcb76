"""Which sizes an intake touched: what is derived of the others still holds."""

from collections.abc import Iterable
from datetime import date
from typing import Any

from sqlalchemy import (
    Boolean,
    Column,
    ColumnElement,
    MetaData,
    Select,
    Table,
    exists,
    func,
    insert,
    literal,
    select,
    true,
)
from sqlalchemy.orm import Session

from app.catalog.column_types import BYTEWISE
from app.catalog.models import Offer, Price, Size, SizeDoc
from app.catalog.projections import spot_since
from app.catalog.tables import table_of

TOUCHED = Table(
    "touched_size",
    MetaData(),
    Column("size_key", BYTEWISE, primary_key=True),
    Column("rewritten", Boolean, nullable=False),
    prefixes=["temporary"],
)
"""The sizes whose offers may be others now, and, where `rewritten`, the documents, too."""


def touch(session: Session, sizes: Select[Any], *, rewritten: bool = False) -> None:
    """Add the keys of a query; what is added first tells whether a size is rewritten."""
    keys = sizes.distinct().subquery()
    key = next(iter(keys.c))
    new = select(key, literal(rewritten)).where(~exists().where(TOUCHED.c.size_key == key))
    session.execute(insert(TOUCHED).from_select(["size_key", "rewritten"], new))


def rewritten(session: Session, keys: Iterable[str], sources: Iterable[str]) -> None:
    """Touch sizes whose rows are others, or whose source is."""
    rows = [{"size_key": key, "rewritten": True} for key in keys]
    if rows:
        session.execute(insert(TOUCHED), rows)
    size = table_of(Size).c
    touch(session, select(size.key).where(size.source_id.in_(list(sources))), rewritten=True)


def fallen_due(after: date, until: date) -> Select[Any]:
    """Find the sizes with a price that came into force after one day and until another."""
    price = table_of(Price).c
    return select(price.size_key).where(price.valid_from > after, price.valid_from <= until)


def fallen_behind(after: date, until: date) -> Select[Any]:
    """Find the sizes with a spot price that was an offer on one day, and is too old for it on another."""
    price = table_of(Price).c
    lapsed = (price.valid_from >= spot_since(after), price.valid_from < spot_since(until))
    return select(price.size_key).where(price.purchase == "spot", *lapsed)


def is_derived(session: Session) -> bool:
    """Whether every size has its document, and its offers: a migration that changes what is derived empties tables."""
    size, doc = (select(func.count()).select_from(table_of(model)).scalar_subquery() for model in (Size, SizeDoc))
    sizes, docs, offered = session.execute(select(size, doc, exists(select(table_of(Offer).c.size_key)))).one()
    return bool(sizes == docs and (offered or not sizes))


def asked(column: ColumnElement[str], *, touched: bool) -> ColumnElement[bool]:
    """The condition that a size is touched; with `touched` false it holds for all."""
    return column.in_(select(TOUCHED.c.size_key)) if touched else true()
