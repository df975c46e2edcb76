"""The tables of what was ingested when: files, feeds, revisions, their changes, and the sums of their digest."""

from datetime import date, datetime

from sqlalchemy import JSON, Column
from sqlmodel import Field, SQLModel

from app.catalog.column_types import BYTEWISE, CatalogTable, UtcDateTime


class IngestedFile(CatalogTable, table=True):
    """A file that was ingested, so that rows it no longer has are deleted when it is ingested again."""

    __tablename__ = "ingested_file"

    file: str = Field(sa_type=BYTEWISE, primary_key=True, description="its path as it was given")
    kind: str = Field(sa_type=BYTEWISE, primary_key=True, description="prices, aliases, regions, documents …")
    keys: list[list[str]] = Field(
        sa_column=Column(JSON, nullable=False),
        description="source and key of each row; empty for prices and facts, which know their file",
    )


class FeedRun(SQLModel, table=True):
    """The last refresh of a feed, also one that failed and so has no revision; no content of the catalog."""

    __tablename__ = "feed_run"

    feed: str = Field(sa_type=BYTEWISE, primary_key=True, description="azure-prices, exchange-rates …")
    ended_at: datetime = Field(sa_type=UtcDateTime)
    succeeded_at: datetime | None = Field(
        sa_type=UtcDateTime, default=None, description="when one last ended with nothing refused; null for never"
    )


class Revision(CatalogTable, table=True):
    """One ingest that changed something: what the whole catalog's content was after it."""

    number: int = Field(primary_key=True)
    created_at: datetime = Field(sa_type=UtcDateTime)
    digest: str = Field(sa_type=BYTEWISE, description="sha256 of how many rows each table has, and of their sums")
    source_ids: list[str] = Field(sa_column=Column(JSON, nullable=False))
    counts: dict[str, int] = Field(sa_column=Column(JSON, nullable=False))
    changes: int | None = Field(
        default=None, description="how many events it made; null where there was nothing to compare it with"
    )


class Change(CatalogTable, table=True):
    """An event: what a revision changed of a size, one of its accepted values, or one of its prices in force."""

    id: int = Field(primary_key=True, description="grows from event to event, and from revision to revision")
    revision: int = Field(index=True, description="the number of the revision, which is written after its events")
    kind: str = Field(sa_type=BYTEWISE, description="app.catalog.changes.ChangeKind")
    size_key: str = Field(sa_type=BYTEWISE, description="no foreign key: the size may be gone")
    size: str = Field(sa_type=BYTEWISE, description="the name of the size at that revision")
    region: str | None = Field(sa_type=BYTEWISE, default=None, description="this and the two below: of a price")
    os: str | None = Field(sa_type=BYTEWISE, default=None)
    purchase: str | None = Field(sa_type=BYTEWISE, default=None)
    field: str | None = Field(sa_type=BYTEWISE, default=None, description="of a value or a dispute")
    old: str | None = Field(sa_type=BYTEWISE, default=None, description="USD an hour, or a value as facts have it")
    new: str | None = Field(sa_type=BYTEWISE, default=None)
    percent: float | None = Field(default=None, description="of the old price, negative where it fell")
    valid_from: date | None = Field(default=None, description="the first day on which the new price was observed")
    source_id: str | None = Field(
        sa_type=BYTEWISE, default=None, description="no foreign key: the source may be forgotten"
    )


class TableSum(CatalogTable, table=True):
    """The content of a table at the newest revision, from which the next digest starts."""

    __tablename__ = "table_sum"

    heading: str = Field(sa_type=BYTEWISE, primary_key=True, description="the table, and its columns in brackets")
    rows: int
    sum: str = Field(sa_type=BYTEWISE, description="the sum of its rows' hashes modulo 2^256, hexadecimal")
