"""Writes synthetic catalogs in bulk: executemany into SQLite, COPY into PostgreSQL; SQLite files are cached."""

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

from app.catalog.providers import DEFAULT_PROVIDER
from app.catalog.store.offers import save_derived
from app.db import migrations
from app.db.engines import analyze, make_engine
from app.ingest.registry import parse_clouds, read_seeds
from app.ingest.run import ingest
from benchmarks import catalogs
from benchmarks.catalogs import PRICE_COLUMNS, TODAY, Scale

PROJECT = Path(__file__).resolve().parents[1]
CACHE_FOLDER = PROJECT / "data" / "benchmarks"
BATCH_SIZES = 500
"""Sizes whose prices are written in one batch."""
WITHOUT_FOREIGN_KEYS = {
    "sqlite": "pragma foreign_keys = off",
    "postgresql": "set session_replication_role = replica",
}
"""Synthetic rows are consistent, so that foreign keys need not be checked."""

Log = Callable[[str], None]
Write = Callable[[str, Sequence[str], Iterable[Sequence[Any]]], None]


def sqlite_catalog(scale: Scale, say: Log, folder: Path = CACHE_FOLDER) -> str:
    """Return the URL of an SQLite catalog of a scale; builds it unless it is cached."""
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


def seeded_catalog(folder: Path = CACHE_FOLDER, *, clouds: Sequence[str] = (DEFAULT_PROVIDER.id,)) -> str:
    """Build an SQLite catalog of the project's own seeds and return its URL."""
    folder.mkdir(parents=True, exist_ok=True)
    name = f"seeds-{len(clouds)}.db"
    for before in folder.glob(f"{name}*"):
        before.unlink()
    url = f"sqlite:///{folder / name}"
    with _migrated(url) as engine:
        ingest(engine, read_seeds(PROJECT / "seeds", clouds=clouds), now=datetime.now(UTC))
    return url


def grown_catalog(count: int, folder: Path = CACHE_FOLDER) -> str:
    """Build an SQLite catalog of `count` sizes from the seeds of all clouds, more than these have; return its URL.

    The clouds, GPUs and prices keep their shares. The sizes that are added are copies with other figures, so that no
    answer for a size serves its copies, too.
    """
    url = seeded_catalog(folder, clouds=parse_clouds("", PROJECT / "seeds"))
    with _migrated(url) as engine:
        with closing(sqlite3.connect(str(engine.url.database))) as connection:
            connection.execute(
                "create temp table seed as select key, row_number() over (order by key) as place from size"
            )
            (seeds,) = connection.execute("select count(*) from seed").fetchone()
            for number, start in enumerate(range(seeds, count, seeds), 1):
                some = min(seeds, count - start)
                _copy_sizes(connection, number, f"place * {some} / {seeds} > (place - 1) * {some} / {seeds}")
            connection.commit()
        derive(engine, lambda _: None)
    return url


def _copy_sizes(connection: sqlite3.Connection, number: int, chosen: str) -> None:
    """Copy some sizes with their prices: as many GPUs and vCPUs, but other memory, network, disks and prices."""
    figures = ("memory_gib", "network_mbps", "temp_disk_gib", "nvme_disk_gib", "uncached_disk_iops")
    changed = {name: f"{name} * {8 + number} / 8" for name in figures}
    changed |= {name: f"{name} || '-x{number}'" for name in ("key", "name", "size_key")}
    changed["nano_usd_per_hour"] = f"nano_usd_per_hour * {20 + number} / 20"
    for table, key in (("size", "key"), ("price", "size_key")):
        names = [name for _, name, *_ in connection.execute(f"pragma table_info({table})")]
        values = ", ".join(changed.get(name, name) for name in names)
        copied = f"select {values} from {table} where {key} in (select key from seed where {chosen})"
        connection.execute(f"insert into {table} ({', '.join(names)}) {copied}")


def write_sqlite(file: Path, scale: Scale, say: Log) -> None:
    """Fill an empty SQLite catalog except for derived tables."""

    def write(table: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        marks = ", ".join("?" * len(columns))
        connection.executemany(f"insert into {table} ({', '.join(columns)}) values ({marks})", rows)

    with closing(sqlite3.connect(file)) as connection:
        connection.execute("pragma synchronous = off")
        fill(write, scale, say)
        connection.commit()


def postgres_catalog(url: str, scale: Scale, say: Log) -> None:
    """Create the schema and rows of a PostgreSQL catalog, and analyze it as autovacuum would."""
    with _migrated(url) as engine:
        address = engine.url.set(drivername="postgresql").render_as_string(hide_password=False)
        with psycopg.connect(address) as connection:
            write_postgres(connection.cursor(), scale, say)
        derive(engine, say)
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connected:
            connected.exec_driver_sql("analyze")


def catalog_without_prices(url: str, scale: Scale) -> str:
    """Fill an empty database with a scale's catalog without prices, and return its URL."""
    bare = Scale(sizes=scale.sizes, prices=0)
    if not url.startswith("sqlite"):
        postgres_catalog(url, bare, lambda _: None)
        return url
    with _migrated(url) as engine:
        write_sqlite(Path(str(engine.url.database)), bare, lambda _: None)
        derive(engine, lambda _: None)
    return url


def write_postgres(cursor: psycopg.Cursor[Any], scale: Scale, say: Log) -> None:
    """Fill an empty PostgreSQL catalog except for derived tables."""

    def write(table: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        with cursor.copy(f"copy {table} ({', '.join(columns)}) from stdin") as copy:
            for part in _parts(iter(rows), 1000):
                copy.write("".join("\t".join(map(_text, row)) + "\n" for row in part))

    cursor.execute(WITHOUT_FOREIGN_KEYS["postgresql"])
    fill(write, scale, say)


def derive(engine: Engine, say: Log) -> None:
    """Derive offers and size documents as an ingest does."""
    say("offers and documents ...")
    with Session(engine) as session, session.begin():
        connection = session.connection()
        connection.exec_driver_sql(WITHOUT_FOREIGN_KEYS[engine.dialect.name])
        save_derived(session, TODAY)
        analyze(session)


def fill(write: Write, scale: Scale, say: Log) -> None:
    """Pass all rows of a catalog to a writer, and log the progress."""
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
    """Return a value as COPY reads it; no synthetic value has a tab, line end or backslash."""
    return "\\N" if value is None else str(value)


def _fingerprint() -> str:
    """Return a hash of what a cached catalog depends on: the code that builds it, and the schema."""
    versions = sorted((PROJECT / "migrations" / "versions").glob("*.py"))
    made_by = [Path(catalogs.__file__), Path(__file__), *versions]
    return hashlib.sha256(b"".join(path.read_bytes() for path in made_by)).hexdigest()[:12]
