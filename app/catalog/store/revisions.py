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
_BATCH_SIZE = 5_000


@dataclass(frozen=True, slots=True)
class TableChecksum:
    """How many rows, and the sum of the sha256 of each, modulo 2^256."""

    rows: int = 0
    sum: int = 0

    def __add__(self, other: "TableChecksum") -> "TableChecksum":
        """Put rows to these."""
        return TableChecksum(self.rows + other.rows, (self.sum + other.sum) % _MODULUS)

    def __sub__(self, other: "TableChecksum") -> "TableChecksum":
        """Take rows from these."""
        return TableChecksum(self.rows - other.rows, (self.sum - other.sum) % _MODULUS)


def table_signature(table: Table) -> str:
    """What rows are of: a table and its columns; a table that got other columns has other content."""
    return f"{table.name}({', '.join(column.name for column in _content_columns(table))})"


def compute_checksum(session: Session, rows: Select[Any]) -> TableChecksum:
    """Hash every row of a query made by `canonical`, a few thousand at a time."""
    result = session.execute(rows, execution_options={"yield_per": _BATCH_SIZE})
    content = TableChecksum()
    for part in result.partitions():
        content += TableChecksum(len(part), sum(map(_hash_row, part)))
    return content


def _hash_row(row: Iterable[Any]) -> int:
    """The sha256 of a row as a JSON array of texts, numbers and nulls, without spaces, in UTF-8."""
    return int.from_bytes(sha256(orjson.dumps(tuple(row))).digest())


def select_canonical(session: Session, table: Table, staged: Table | None = None) -> Select[Any]:
    """Select what both databases give as the same texts, integers and doubles, of a table or of one like it."""
    kind = session.connection().dialect.name
    of = staged if staged is not None else table
    return select(*(_canonical_value(of.c[column.name], kind) for column in _content_columns(table)))


def _content_columns(table: Table) -> list[Column[Any]]:
    """The columns that are content: not those that only say how a row came in."""
    return [column for column in table.columns if column.info != NOT_IN_DIGEST]


def _canonical_value(column: Column[Any], dialect: str) -> ColumnElement[Any]:
    if isinstance(column.type, UsdColumn):
        return cast(column, Double)
    if isinstance(column.type, Boolean):
        return cast(column, Integer)
    if isinstance(column.type, Date):
        return type_coerce(column, String) if dialect == "sqlite" else func.to_char(column, "YYYY-MM-DD")
    return column


CONTENT_TABLES: tuple[type[SQLModel], ...] = (
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
    session: Session, source_ids: Iterable[str], now: datetime, known: Mapping[str, TableChecksum] | None = None
) -> dict[str, Any]:
    """Write the revision of an ingest that changed something; `now` must know its time zone.

    `kept` is the content that is known of tables by their headings; the others are read.
    """
    before = latest_revision(session)
    contents = _compute_checksums(session, known or {})
    row = {
        "number": before["number"] + 1 if before else 1,
        "created_at": now.astimezone(UTC),
        "digest": _digest(contents),
        "source_ids": sorted(set(source_ids)),
        "counts": _counts(contents),
    }
    session.execute(insert(table_of(Revision)), [row])
    sums = [{"heading": name, "rows": one.rows, "sum": f"{one.sum:064x}"} for name, one in contents.items()]
    save_rows(session, TableSum, sums, replace_all=True)
    return row


def load_checksums(session: Session) -> dict[str, TableChecksum]:
    """Get the content of each table at the newest revision, by heading; empty where nothing is kept."""
    rows = session.execute(select(table_of(TableSum))).mappings()
    return {row["heading"]: TableChecksum(rows=row["rows"], sum=int(row["sum"], 16)) for row in rows}


def compute_digest(session: Session) -> tuple[str, dict[str, int]]:
    """Read every row of every table: the digest of the whole catalog, and how many rows each table has."""
    contents = _compute_checksums(session, {})
    return _digest(contents), _counts(contents)


def _compute_checksums(session: Session, known: Mapping[str, TableChecksum]) -> dict[str, TableChecksum]:
    contents = {}
    for table in map(table_of, CONTENT_TABLES):
        name = table_signature(table)
        contents[name] = known[name] if name in known else compute_checksum(session, select_canonical(session, table))
    return contents


def _digest(contents: Mapping[str, TableChecksum]) -> str:
    lines = (f"{name} {content.rows} {content.sum:064x}\n" for name, content in contents.items())
    return sha256("".join(lines).encode()).hexdigest()


def _counts(contents: Mapping[str, TableChecksum]) -> dict[str, int]:
    return {name.partition("(")[0]: content.rows for name, content in contents.items()}


_OTHER_TABLES = (SizeAlias, Correction, Region, Benchmark, LanguageModel)


def list_sources(session: Session) -> list[dict[str, Any]]:
    """Give every source by its id, with how many facts, prices and other rows cite it."""
    facts, prices = _count_by_source(session, Fact), _count_by_source(session, Price)
    others = [_count_by_source(session, model) for model in _OTHER_TABLES]
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


def _count_by_source(session: Session, model: type[SQLModel]) -> dict[str, int]:
    column = table_of(model).c.source_id
    rows = session.execute(select(column, func.count().label("number")).group_by(column)).mappings()
    return {row["source_id"]: row["number"] for row in rows}
