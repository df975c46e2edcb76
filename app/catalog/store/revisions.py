"""Revisions: one for each ingest that changed something, with a digest of the content of the whole catalog."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

import orjson
from sqlalchemy import (
    Boolean,
    Column,
    ColumnElement,
    Date,
    Double,
    Integer,
    Select,
    String,
    Table,
    cast,
    desc,
    func,
    insert,
    select,
    type_coerce,
)
from sqlalchemy.orm import Session
from sqlmodel import SQLModel

from app.catalog.column_types import NOT_IN_DIGEST, UsdColumn, table_of
from app.catalog.models import (
    Benchmark,
    Correction,
    Fact,
    Gpu,
    LanguageModel,
    Price,
    Region,
    Revision,
    Series,
    Size,
    SizeAlias,
    Source,
    TableSum,
)
from app.catalog.store.upsert import save_rows

_MODULUS = 2**256
_AT_ONCE = 5_000


@dataclass(frozen=True, slots=True)
class Content:
    """How many rows, and the sum of the sha256 of each, modulo 2^256."""

    rows: int = 0
    sum: int = 0

    def __add__(self, other: "Content") -> "Content":
        """Put rows to these."""
        return Content(self.rows + other.rows, (self.sum + other.sum) % _MODULUS)

    def __sub__(self, other: "Content") -> "Content":
        """Take rows from these."""
        return Content(self.rows - other.rows, (self.sum - other.sum) % _MODULUS)


def heading(table: Table) -> str:
    """What rows are of: a table and its columns; a table that got other columns has other content."""
    return f"{table.name}({', '.join(column.name for column in _told(table))})"


def content_of(session: Session, rows: Select[Any]) -> Content:
    """Hash every row of a query made by `canonical`, a few thousand at a time."""
    result = session.execute(rows, execution_options={"yield_per": _AT_ONCE})
    content = Content()
    for part in result.partitions():
        content += Content(len(part), sum(map(_hash, part)))
    return content


def _hash(row: Iterable[Any]) -> int:
    """The sha256 of a row as a JSON array of texts, numbers and nulls, without spaces, in UTF-8."""
    return int.from_bytes(sha256(orjson.dumps(tuple(row))).digest())


def canonical(session: Session, table: Table, columns: Table | None = None) -> Select[Any]:
    """Select what both databases give as the same texts, integers and doubles, of a table or of one like it."""
    kind = session.connection().dialect.name
    of = columns if columns is not None else table
    return select(*(_plain(of.c[column.name], kind) for column in _told(table)))


def _told(table: Table) -> list[Column[Any]]:
    """The columns that are content: not those that only say how a row came in."""
    return [column for column in table.columns if column.info != NOT_IN_DIGEST]


def _plain(column: Column[Any], kind: str) -> ColumnElement[Any]:
    if isinstance(column.type, UsdColumn):
        return cast(column, Double)
    if isinstance(column.type, Boolean):
        return cast(column, Integer)
    if isinstance(column.type, Date):
        return type_coerce(column, String) if kind == "sqlite" else func.to_char(column, "YYYY-MM-DD")
    return column


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
    LanguageModel,
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


_OTHERS = (SizeAlias, Correction, Region, Benchmark, LanguageModel)


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
