"""Revisions of the catalog: one for each ingest that changed something, with a digest of all content.

The digest is computed from a checksum of each table that does not depend on the order of rows, and is the same on
SQLite and PostgreSQL. Checksums are stored, so that an ingest reads only the tables that it changed.
"""

from collections.abc import Iterable, Mapping, Sequence
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
    FromClause,
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
    Adjustment,
    Benchmark,
    CompleteList,
    Correction,
    Disk,
    DiskPrice,
    ExchangeRate,
    Fact,
    FeedRun,
    Gpu,
    LanguageModel,
    Price,
    PriceDay,
    RefusedPrice,
    Region,
    Revision,
    Series,
    Size,
    SizeAlias,
    Source,
    TableSum,
)
from app.catalog.revisions import latest_revision
from app.catalog.store.upsert import save_rows
from app.errors import NotFound

_MODULUS = 2**256
_BATCH_SIZE = 5_000


@dataclass(frozen=True, slots=True)
class TableChecksum:
    """How many rows a table has, and the sum of the SHA-256 of each, modulo 2^256."""

    rows: int = 0
    sum: int = 0

    def __add__(self, other: "TableChecksum") -> "TableChecksum":
        """Add rows."""
        return TableChecksum(self.rows + other.rows, (self.sum + other.sum) % _MODULUS)

    def __sub__(self, other: "TableChecksum") -> "TableChecksum":
        """Subtract rows."""
        return TableChecksum(self.rows - other.rows, (self.sum - other.sum) % _MODULUS)


def table_signature(table: Table) -> str:
    """Return the name of a table and its columns; a checksum is of no use once a table has other columns."""
    return f"{table.name}({', '.join(column.name for column in content_columns(table))})"


def compute_checksum(session: Session, rows: Select[Any]) -> TableChecksum:
    """Compute the checksum of the rows of a query made by `select_canonical`."""
    result = session.execute(rows, execution_options={"yield_per": _BATCH_SIZE})
    checksum = TableChecksum()
    for part in result.partitions():
        checksum += checksum_of([*map(tuple, part)])
    return checksum


def checksum_of(rows: Sequence[tuple[Any, ...]]) -> TableChecksum:
    """Return the checksum of rows with the values that `select_canonical` returns; a date counts as its text.

    Of each row it is the SHA-256 of a compact JSON array of strings, numbers and nulls in UTF-8.
    """
    hashes = [int.from_bytes(sha256(text).digest()) for text in map(orjson.dumps, rows)]
    return TableChecksum(len(rows), sum(hashes) % _MODULUS)


def select_canonical(session: Session, table: Table, staged: FromClause | None = None) -> Select[Any]:
    """Build the query of a table's content, or of its `staged` rows, with equal values on both databases."""
    kind = session.connection().dialect.name
    of = staged if staged is not None else table
    return select(*(_canonical_value(of.c[column.name], kind) for column in content_columns(table)))


def content_columns(table: Table) -> list[Column[Any]]:
    """Return the columns that are content, without those that only say where a row was read."""
    return [column for column in table.columns if column.info != NOT_IN_DIGEST]


def _canonical_value(column: ColumnElement[Any], dialect: str) -> ColumnElement[Any]:
    if isinstance(column.type, UsdColumn):
        return cast(column, Double)
    if isinstance(column.type, Boolean):
        return cast(column, Integer)
    if isinstance(column.type, Date):
        return type_coerce(column, String) if dialect == "sqlite" else func.to_char(column, "YYYY-MM-DD")
    return column


CONTENT_TABLES: tuple[type[SQLModel], ...] = (
    *(Source, Series, Gpu, Size, SizeAlias, Fact, Correction, Region, Price, RefusedPrice, CompleteList, Benchmark),
    *(LanguageModel, ExchangeRate, Disk, DiskPrice, Adjustment),
)
"""The tables that the digest covers: all but revisions, checksums, read files, and what is derived for reading."""


def save_revision(
    session: Session,
    source_ids: Iterable[str],
    now: datetime,
    kept: Mapping[str, TableChecksum] | None = None,
    *,
    changes: int | None = None,
) -> dict[str, Any]:
    """Write the revision of an ingest that changed something; `now` must have a time zone.

    `kept` are the checksums that need not be computed, by signature; the other tables are read. `changes` is the
    number of its events, None where there was nothing to compare with.
    """
    previous = latest_revision(session)
    checksums = _compute_checksums(session, kept or {})
    row = {
        "number": previous["number"] + 1 if previous else 1,
        "created_at": now.astimezone(UTC),
        "digest": _digest(checksums),
        "source_ids": sorted(set(source_ids)),
        "counts": _counts(checksums),
        "changes": changes,
    }
    session.execute(insert(table_of(Revision)), [row])
    sums = [{"heading": name, "rows": table.rows, "sum": f"{table.sum:064x}"} for name, table in checksums.items()]
    save_rows(session, TableSum, sums, replace_all=True)
    return row


def load_checksums(session: Session) -> dict[str, TableChecksum]:
    """Load the checksum of each table at the newest revision, by signature; empty where none are stored."""
    rows = session.execute(select(table_of(TableSum))).mappings()
    return {row["heading"]: TableChecksum(rows=row["rows"], sum=int(row["sum"], 16)) for row in rows}


def compute_digest(session: Session) -> tuple[str, dict[str, int]]:
    """Compute the digest from every row of the catalog; return it and the number of rows of each table."""
    checksums = _compute_checksums(session, {})
    return _digest(checksums), _counts(checksums)


def _compute_checksums(session: Session, kept: Mapping[str, TableChecksum]) -> dict[str, TableChecksum]:
    checksums = {}
    for table in map(table_of, CONTENT_TABLES):
        name = table_signature(table)
        checksums[name] = kept[name] if name in kept else compute_checksum(session, select_canonical(session, table))
    return checksums


def _digest(checksums: Mapping[str, TableChecksum]) -> str:
    lines = (f"{name} {checksum.rows} {checksum.sum:064x}\n" for name, checksum in checksums.items())
    return sha256("".join(lines).encode()).hexdigest()


def _counts(checksums: Mapping[str, TableChecksum]) -> dict[str, int]:
    return {name.partition("(")[0]: checksum.rows for name, checksum in checksums.items()}


_OTHER_TABLES = (SizeAlias, Correction, Region, Benchmark, LanguageModel, ExchangeRate, Disk, DiskPrice, Adjustment)


def list_sources(session: Session) -> list[dict[str, Any]]:
    """Return every source by id, with how many facts, prices and other rows cite it."""
    facts, of_day = _count_by_source(session, Fact), table_of(PriceDay).c
    counted = session.execute(select(of_day.source_id, func.sum(of_day.prices)).group_by(of_day.source_id))
    prices = {source: int(number) for source, number in counted}
    others = [_count_by_source(session, model) for model in _OTHER_TABLES]
    table = table_of(Source)
    return [
        {
            **{name: row[name] for name in ("id", "kind", "title", "publisher", "published_on")},
            "facts": facts.get(row["id"], 0),
            "prices": prices.get(row["id"], 0),
            "others": sum(counts.get(row["id"], 0) for counts in others),
            "url": row["url"],
        }
        for row in session.execute(select(table).order_by(table.c.id)).mappings()
    ]


def list_revisions(session: Session) -> list[dict[str, Any]]:
    """Return every revision, the newest first."""
    table = table_of(Revision)
    rows = session.execute(select(table).order_by(desc(table.c.number))).mappings()
    return [dict(row) | {"created_at": row["created_at"].isoformat()} for row in rows]


def find_sources_taken_in(session: Session, number: int) -> tuple[list[str], dict[str, int]]:
    """Return the sources that a revision was the first to take in, and the first revision of each other that it read.

    Those that were forgotten since are in neither. Raises NotFound for an unknown revision.
    """
    table = table_of(Revision).c
    first: dict[str, int] = {}
    read, sources = None, 0
    for row in session.execute(select(table.number, table.source_ids, table.counts).order_by(table.number)):
        before, sources = sources, row.counts.get("source", 0)
        if sources < before:  # only forgetting removes sources
            first = {source: since for source, since in first.items() if source not in row.source_ids}
        else:
            first = dict.fromkeys(row.source_ids, row.number) | first
        if row.number == number:
            read = row.source_ids
    if read is None:
        raise NotFound("revision", str(number))
    taken_in = [source for source, since in first.items() if since == number]
    return sorted(taken_in), {source: first[source] for source in read if first.get(source, number) < number}


def _count_by_source(session: Session, model: type[SQLModel]) -> dict[str, int]:
    column = table_of(model).c.source_id
    return dict(session.execute(select(column, func.count()).group_by(column)).all())


def save_feed_run(session: Session, feed: str, ended_at: datetime, *, succeeded: bool) -> None:
    """Note when a feed was refreshed last; when it last succeeded stays as it is where this one did not."""
    run = session.get(FeedRun, feed)
    if run is None:
        run = FeedRun(feed=feed, ended_at=ended_at)
        session.add(run)
    run.ended_at = ended_at
    if succeeded:
        run.succeeded_at = ended_at
