"""SQLite databases with the seeds of Azure, of all clouds, or with fewer, built once for each state of their files.

The test processes, `make openapi` and `make check` each need one, and all of Azure takes several seconds to ingest.
PostgreSQL gets the same rows by COPY, in a sixth of the time; that an ingest gives both the same digest is tested on
the sizes with GPUs, and with --slow on all.
"""

import csv
import fcntl
import hashlib
import io
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sqlalchemy import Connection, Table, make_url
from sqlalchemy.orm import Session

from app.catalog.models import Size
from app.db import migrations
from app.db.engines import analyze, make_engine
from app.ingest.registry import read_seeds, relative_to
from app.ingest.run import ingest
from tests.databases import Databases, SqliteFiles
from tests.factories import NOW

PROJECT = Path(__file__).resolve().parents[1]
FOLDER = PROJECT / "build" / "seeded"
PACKAGES = ("catalog", "cli", "db", "formats", "ingest", "telemetry")
"""Packages of the application that an ingest loads; a change of any other leaves the catalog as it is."""
MADE_FROM = ("app/*.py", *(f"app/{name}/**/*.py" for name in PACKAGES), "migrations/**/*.py", "seeds/**/*.*")
NULL = "\\N"
ROWS_OF_A_BLOCK = 5_000
LEFT_OUT = frozenset({"availability", "clouds", "prices", "sizes"})
"""Folders of the seeds without which there are the sizes of Azure's documents, and a few prices of each kind."""


def seeded_sqlite_url(name: str = "azure") -> str:
    """Return the URL of a database, which is read-only; builds it if a file that it is made from has changed.

    It has Azure, `all` clouds, or `few-sizes`.
    """
    FOLDER.mkdir(parents=True, exist_ok=True)
    file = FOLDER / f"{name}-{_fingerprint()}.db"
    with (FOLDER / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not file.exists():
            for outdated in FOLDER.glob(f"{name}-*.*"):
                outdated.unlink()
            part = file.with_suffix(".part")
            run_program(f"sqlite:///{part}", "migrate")
            if name == "few-sizes":
                ingest_few_sizes(f"sqlite:///{part}")
            else:
                run_program(f"sqlite:///{part}", "ingest", "seeds", clouds="" if name == "all" else name)
            part.rename(file)
    return f"sqlite:///{file}"


def ingest_few_sizes(url: str) -> None:
    """Ingest into a database with the schema the seeds but those LEFT_OUT, on the day NOW."""
    with TemporaryDirectory() as folder:
        seeds = link_few_seeds(Path(folder))
        engine = make_engine(url)
        ingest(engine, relative_to(seeds, read_seeds(seeds)), now=NOW)
        engine.dispose()


def link_few_seeds(folder: Path) -> Path:
    """Link in a folder, which is returned, the seeds but those LEFT_OUT."""
    for path in (PROJECT / "seeds").iterdir():
        if path.name not in LEFT_OUT:
            (folder / path.name).symlink_to(path)
    return folder


def seeded_url(databases: Databases, name: str = "azure") -> str:
    """Return the URL of a database of this kind with what `seeded_sqlite_url` has under that name; it is read-only."""
    source = seeded_sqlite_url(name)
    if isinstance(databases, SqliteFiles):
        return source
    url = databases.create()
    engine = make_engine(url, pooled=False)
    migrations.upgrade(engine)
    with (
        closing(sqlite3.connect(f"file:{make_url(source).database}?mode=ro", uri=True)) as rows,
        engine.begin() as connection,
    ):
        connection.exec_driver_sql("set local session_replication_role = replica")  # SQLite has checked foreign keys
        for table in Size.metadata.sorted_tables:
            _copy_rows(rows, connection, table)
    with Session(engine) as session:
        analyze(session)
        session.commit()
    engine.dispose()
    return url


def _copy_rows(source: sqlite3.Connection, target: Connection, table: Table) -> None:
    """Copy the rows of a table from SQLite to PostgreSQL."""
    names = [column.name for column in table.columns]
    values = [f"coalesce({column.name}, '{NULL}')" if column.nullable else column.name for column in table.columns]
    found = source.execute(f"select {', '.join(values)} from {table.name}")
    copy_in = f"copy {table.name} ({', '.join(names)}) from stdin (format csv, null '{NULL}')"
    driver: Any = target.connection.driver_connection
    with driver.cursor() as cursor, cursor.copy(copy_in) as copy:
        while block := found.fetchmany(ROWS_OF_A_BLOCK):
            lines = io.StringIO()
            csv.writer(lines).writerows(block)
            copy.write(lines.getvalue())
    if (numbered := table.autoincrement_column) is not None:
        sequence = f"pg_get_serial_sequence('{table.name}', '{numbered.name}')"
        target.exec_driver_sql(f"select setval({sequence}, max({numbered.name})) from {table.name}")


def run_program(database_url: str, *arguments: str, clouds: str = "azure") -> None:
    """Run the installed program on a database; fails with its output if it fails."""
    program = str(Path(sys.executable).with_name("vmsizes"))
    environment = {**os.environ, "VMSIZES_DATABASE_URL": database_url, "VMSIZES_CLOUDS": clouds}
    done = subprocess.run([program, *arguments], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def _fingerprint() -> str:
    digest = hashlib.sha256()
    for path in sorted(path for pattern in MADE_FROM for path in PROJECT.glob(pattern) if path.is_file()):
        digest.update(f"{path.relative_to(PROJECT)}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]


if __name__ == "__main__":
    for name in ("azure", "few-sizes", "all"):
        seeded_sqlite_url(name)
