"""Writes made-up catalogs in bulk: executemany into SQLite, COPY into PostgreSQL; a finished SQLite file is kept."""

import hashlib
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

import psycopg
from sqlalchemy import Engine
from sqlalchemy.orm import Session

from app.catalog.indexes import OFFERS_BY_MEMORY_BUCKET
from app.catalog.store.offers import save_derived
from app.db import migrations
from app.db.engines import analyze, make_engine
from app.ingest.registry import read_seeds
from app.ingest.run import ingest
from benchmarks import catalogs
from benchmarks.catalogs import PRICE_COLUMNS, TODAY, Scale

PROJECT = Path(__file__).resolve().parents[1]
CACHE_FOLDER = PROJECT / "data" / "benchmarks"
BATCH_SIZES = 500
"""Sizes whose prices are written in one go."""
WITHOUT_FOREIGN_KEYS = {
    "sqlite": "pragma foreign_keys = off",
    "postgresql": "set session_replication_role = replica",
}
"""Rows are made to fit, so that no reference need be looked up."""

Log = Callable[[str], None]
Write = Callable[[str, Sequence[str], Iterable[Sequence[Any]]], None]


def sqlite_catalog(scale: Scale, say: Log, folder: Path = CACHE_FOLDER) -> str:
    """Give the URL of an SQLite catalog of a scale, made now unless an earlier run left it."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{scale.sizes}-{scale.prices}-{_fingerprint()}.db"
    if not file.exists():
        for outdated in folder.glob(f"{scale.sizes}-{scale.prices}-*"):
            outdated.unlink()
        made = file.with_suffix(".part")
        with _migrated(f"sqlite:///{made}") as engine:
            write_sqlite(made, scale, say)
            derive(engine, say)
        made.rename(file)
    return f"sqlite:///{file}"


def seeded_catalog(folder: Path = CACHE_FOLDER) -> str:
    """Give the URL of an SQLite catalog of the project's own seeds, made anew."""
    folder.mkdir(parents=True, exist_ok=True)
    for before in folder.glob("seeds.db*"):
        before.unlink()
    url = f"sqlite:///{folder / 'seeds.db'}"
    with _migrated(url) as engine:
        ingest(engine, read_seeds(PROJECT / "seeds"), now=datetime.now(UTC))
    return url


def write_sqlite(file: Path, scale: Scale, say: Log) -> None:
    """Fill an empty SQLite catalog but for what is derived."""

    def write(table: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        marks = ", ".join("?" * len(columns))
        connection.executemany(f"insert into {table} ({', '.join(columns)}) values ({marks})", rows)

    with closing(sqlite3.connect(file)) as connection:
        connection.execute("pragma synchronous = off")
        fill(write, scale, say)
        connection.commit()


def postgres_catalog(url: str, scale: Scale, say: Log) -> None:
    """Fill an empty PostgreSQL database, schema and rows, and take the statistics as autovacuum would."""
    with _migrated(url) as engine:
        address = engine.url.set(drivername="postgresql").render_as_string(hide_password=False)
        with psycopg.connect(address) as connection:
            write_postgres(connection.cursor(), scale, say)
        derive(engine, say)
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connected:
            connected.exec_driver_sql("analyze")


def catalog_without_prices(url: str, scale: Scale) -> str:
    """Fill an empty database with everything of a scale but its prices, and give its URL."""
    bare = Scale(sizes=scale.sizes, prices=0)
    if not url.startswith("sqlite"):
        postgres_catalog(url, bare, lambda _: None)
        return url
    with _migrated(url) as engine:
        write_sqlite(Path(str(engine.url.database)), bare, lambda _: None)
        derive(engine, lambda _: None)
    return url


def write_postgres(cursor: psycopg.Cursor[Any], scale: Scale, say: Log) -> None:
    """Fill an empty PostgreSQL catalog but for what is derived."""

    def write(table: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        with cursor.copy(f"copy {table} ({', '.join(columns)}) from stdin") as copy:
            for part in _parts(iter(rows), 1000):
                copy.write("".join("\t".join(map(_text, row)) + "\n" for row in part))

    cursor.execute(WITHOUT_FOREIGN_KEYS["postgresql"])
    fill(write, scale, say)


def derive(engine: Engine, say: Log) -> None:
    """Derive with the statements of an ingest; the index by octaves is made afterwards."""
    say("offers and documents ...")
    with Session(engine) as session, session.begin():
        connection = session.connection()
        connection.exec_driver_sql(WITHOUT_FOREIGN_KEYS[engine.dialect.name])
        OFFERS_BY_MEMORY_BUCKET.drop(connection)
        save_derived(session, TODAY)
        OFFERS_BY_MEMORY_BUCKET.create(connection)
        analyze(session)


def fill(write: Write, scale: Scale, say: Log) -> None:
    """Hand all rows of a catalog to a writer, saying how far it is."""
    started = time.monotonic()
    for table, rows in catalogs.small_tables(scale).items():
        write(table, tuple(rows[0]), (tuple(row.values()) for row in rows))
    each, done = scale.prices // scale.sizes, 0
    for part in _parts(catalogs.sizes(scale), BATCH_SIZES):
        prices = [list(catalogs.prices_of(size, each)) for size in part]
        write("size", tuple(part[0]), (tuple(size.values()) for size in part))
        write("price", PRICE_COLUMNS, (price for of_one in prices for price in of_one))
        done += len(part)
        rate = done * each / (time.monotonic() - started)
        say(f"catalog of {scale.name}: {100 * done // scale.sizes} %, {rate:,.0f} prices/s")


@contextmanager
def _migrated(url: str) -> Iterator[Engine]:
    engine = make_engine(url)
    migrations.upgrade(engine)
    yield engine
    engine.dispose()


def _parts(rows: Iterator[Any], count: int) -> Iterator[list[Any]]:
    while part := list(islice(rows, count)):
        yield part


def _text(value: Any) -> str:
    """A value as COPY reads it; none of ours has a tab, a line end or a backslash."""
    return "\\N" if value is None else str(value)


def _fingerprint() -> str:
    """What a kept catalog depends on: how it was made, and the schema."""
    versions = sorted((PROJECT / "migrations" / "versions").glob("*.py"))
    made_by = [Path(catalogs.__file__), Path(__file__), *versions]
    return hashlib.sha256(b"".join(path.read_bytes() for path in made_by)).hexdigest()[:12]
