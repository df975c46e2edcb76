"""Revisions: one for each ingest that changed something, with a digest of the content of the whole catalog."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from sqlalchemy import desc, insert, select
from sqlalchemy.orm import Session
from sqlmodel import SQLModel

from app.catalog.models import (
    Benchmark,
    Correction,
    Fact,
    Gpu,
    Model,
    Price,
    Region,
    Revision,
    Series,
    Size,
    SizeAlias,
    Source,
    TableSum,
)
from app.catalog.store.contents import Content, canonical, content_of, heading
from app.catalog.store.upsert import save_rows
from app.catalog.tables import table_of

CONTENT: tuple[type[SQLModel], ...] = (
    Source,
    Series,
    Gpu,
    Size,
    SizeAlias,
    Fact,
    Correction,
    Region,
    Price,
    Benchmark,
    Model,
)
"""The tables whose content the digest is of: all but the revisions, their sums, and what is derived for reading."""


def latest_revision(session: Session) -> dict[str, Any] | None:
    """Get the newest revision, or None where nothing was ingested yet."""
    table = table_of(Revision)
    row = session.execute(select(table).order_by(desc(table.c.number)).limit(1)).mappings().first()
    return dict(row) if row else None


def save_revision(
    session: Session, source_ids: Iterable[str], now: datetime, kept: Mapping[str, Content] | None = None
) -> dict[str, Any]:
    """Write the revision of an ingest that changed something; `now` must know its time zone.

    `kept` is the content that is known of tables by their headings; the others are read.
    """
    before = latest_revision(session)
    contents = _contents(session, kept or {})
    row = {
        "number": before["number"] + 1 if before else 1,
        "created_at": now.astimezone(UTC),
        "digest": _digest(contents),
        "source_ids": sorted(set(source_ids)),
        "counts": _counts(contents),
    }
    session.execute(insert(table_of(Revision)), [row])
    sums = [{"heading": name, "rows": one.rows, "sum": f"{one.sum:064x}"} for name, one in contents.items()]
    save_rows(session, TableSum, sums, whole=True)
    return row


def kept_contents(session: Session) -> dict[str, Content]:
    """Get the content of each table at the newest revision, by heading; empty where nothing is kept."""
    rows = session.execute(select(table_of(TableSum))).mappings()
    return {row["heading"]: Content(rows=row["rows"], sum=int(row["sum"], 16)) for row in rows}


def digest_of(session: Session) -> tuple[str, dict[str, int]]:
    """Read every row of every table: the digest of the whole catalog, and how many rows each table has."""
    contents = _contents(session, {})
    return _digest(contents), _counts(contents)


def _contents(session: Session, kept: Mapping[str, Content]) -> dict[str, Content]:
    contents = {}
    for table in map(table_of, CONTENT):
        name = heading(table)
        contents[name] = kept[name] if name in kept else content_of(session, canonical(session, table))
    return contents


def _digest(contents: Mapping[str, Content]) -> str:
    lines = (f"{name} {content.rows} {content.sum:064x}\n" for name, content in contents.items())
    return sha256("".join(lines).encode()).hexdigest()


def _counts(contents: Mapping[str, Content]) -> dict[str, int]:
    return {name.partition("(")[0]: content.rows for name, content in contents.items()}
