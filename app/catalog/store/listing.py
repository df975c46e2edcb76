"""What the catalog was read from: its sources with how much each says, and its revisions."""

from typing import Any

from sqlalchemy import desc, func, select
from sqlalchemy.orm import Session
from sqlmodel import SQLModel

from app.catalog.models import Benchmark, Correction, Fact, Model, Price, Region, Revision, SizeAlias, Source
from app.catalog.tables import table_of

_OTHERS = (SizeAlias, Correction, Region, Benchmark, Model)


def list_sources(session: Session) -> list[dict[str, Any]]:
    """Give every source by its id, with how many facts, prices and other rows cite it."""
    facts, prices = _cited(session, Fact), _cited(session, Price)
    others = [_cited(session, model) for model in _OTHERS]
    table = table_of(Source)
    return [
        {
            "id": row["id"],
            "kind": row["kind"],
            "title": row["title"],
            "publisher": row["publisher"],
            "published_on": row["published_on"],
            "facts": facts.get(row["id"], 0),
            "prices": prices.get(row["id"], 0),
            "others": sum(found.get(row["id"], 0) for found in others),
            "url": row["url"],
        }
        for row in session.execute(select(table).order_by(table.c.id)).mappings()
    ]


def list_revisions(session: Session) -> list[dict[str, Any]]:
    """Give every revision, the newest first."""
    table = table_of(Revision)
    rows = session.execute(select(table).order_by(desc(table.c.number))).mappings()
    return [dict(row) | {"created_at": row["created_at"].isoformat()} for row in rows]


def _cited(session: Session, model: type[SQLModel]) -> dict[str, int]:
    column = table_of(model).c.source_id
    rows = session.execute(select(column, func.count().label("number")).group_by(column)).mappings()
    return {row["source_id"]: row["number"] for row in rows}
