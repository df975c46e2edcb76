"""Faults of an SQLite file, each brought about beside a running service and put right."""

import os
import shutil
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.faults.catalogs import fill
from tests.faults.observe import Fault
from tests.waiting import LONGEST_SECONDS

ENDINGS = ("", "-wal", "-shm")


@dataclass(frozen=True, slots=True)
class File:
    """The file that the service reads, a copy of it, and a file with another catalog."""

    path: Path
    copy: Path
    other: Path

    def of(self, ending: str) -> Path:
        """Return the file, or one that SQLite keeps beside it."""
        return self.path.with_name(self.path.name + ending)


@contextmanager
def renamed(file: File, *endings: str) -> Iterator[None]:
    """Move the file, or those beside it, away and back."""
    moved = [file.of(ending) for ending in endings if file.of(ending).exists()]
    for path in moved:
        path.rename(path.with_name("away-" + path.name))
    try:
        yield
    finally:
        for path in moved:
            path.with_name("away-" + path.name).rename(path)


@contextmanager
def made_anew(file: File) -> Iterator[None]:
    """Delete everything, then migrate and ingest another catalog."""
    for ending in ENDINGS:
        file.of(ending).unlink(missing_ok=True)
    try:
        yield
    finally:
        fill(f"sqlite:///{file.path}", usd="7")


@contextmanager
def restored_later(file: File) -> Iterator[None]:
    """Delete everything, then put a copy there."""
    for ending in ENDINGS:
        file.of(ending).unlink(missing_ok=True)
    try:
        yield
    finally:
        _put(file, file.copy)


def _put(file: File, source: Path) -> None:
    part = file.path.with_name("part")
    shutil.copyfile(source, part)
    part.rename(file.path)


@contextmanager
def replaced(file: File, source: Callable[[File], Path]) -> Iterator[None]:
    """Move another file over it, as a deployment does."""
    _put(file, source(file))
    yield


@contextmanager
def overwritten(file: File, change: Callable[[File], None]) -> Iterator[None]:
    """Damage the file in place, and put its bytes back in place."""
    content = file.path.read_bytes()
    change(file)
    try:
        yield
    finally:
        with file.path.open("r+b") as opened:
            opened.write(content)
            opened.truncate()


def _write_noise(file: File) -> None:
    size = file.path.stat().st_size
    with file.path.open("r+b") as opened:
        for place in range(4096, size - 4096, 3 * 4096):
            opened.seek(place)
            opened.write(b"\xa5" * 2048)


def _write_header(file: File) -> None:
    with file.path.open("r+b") as opened:
        opened.write(b"no database, but text of the same length" * 2)


@contextmanager
def in_its_place(file: File, make: Callable[[Path], object]) -> Iterator[None]:
    """Put something else in the place of the file."""
    away = file.path.with_name("away")
    file.path.rename(away)
    make(file.path)
    try:
        yield
    finally:
        if file.path.is_dir() and not file.path.is_symlink():
            file.path.rmdir()
        away.replace(file.path)


@contextmanager
def locked(file: File) -> Iterator[None]:
    """Hold the lock of a writer, as a long ingest does."""
    with closing(sqlite3.connect(file.path, isolation_level=None)) as connection:
        connection.execute("begin immediate")
        connection.execute("update size set name = name || '!'")
        yield
        connection.execute("rollback")


@contextmanager
def exclusively_locked(file: File) -> Iterator[None]:
    """Hold every lock of the file, as a tool does that opens it in exclusive mode: its journal mode is not WAL."""
    with closing(sqlite3.connect(file.copy, isolation_level=None)) as connection:
        connection.execute("pragma journal_mode = delete")
    _put(file, file.copy)
    for ending in ("-wal", "-shm"):
        file.of(ending).unlink(missing_ok=True)
    with closing(sqlite3.connect(file.path, isolation_level=None)) as connection:
        connection.execute("pragma locking_mode = exclusive")
        deadline = time.monotonic() + LONGEST_SECONDS
        while True:
            try:
                connection.execute("begin exclusive")
                break
            except sqlite3.OperationalError:
                if time.monotonic() > deadline:
                    raise
        yield
        connection.execute("rollback")


@contextmanager
def permissions(path: Path, mode: int) -> Iterator[None]:
    before = path.stat().st_mode
    path.chmod(mode)
    try:
        yield
    finally:
        path.chmod(before)


@contextmanager
def changed(file: File, change: str, back: str) -> Iterator[None]:
    with closing(sqlite3.connect(file.path)) as connection:
        connection.executescript(change)
    try:
        yield
    finally:
        with closing(sqlite3.connect(file.path)) as connection:
            connection.executescript(back)


@contextmanager
def ingested(file: File) -> Iterator[None]:
    fill(f"sqlite:///{file.path}", usd=f"{time.time_ns() % 1000 + 3}", migrate=False)
    yield


@contextmanager
def writer_killed(file: File) -> Iterator[None]:
    """Kill a process that has written half of a transaction."""
    script = (
        "import sqlite3, sys, time; c = sqlite3.connect(sys.argv[1], isolation_level=None);"
        "c.execute('pragma cache_size = 10'); c.execute('begin immediate');"
        "c.execute(\"update fact set raw = raw || 'x'\"); print('half', flush=True); time.sleep(60)"
    )
    process = subprocess.Popen(["python3", "-c", script, str(file.path)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGKILL)
    process.communicate()
    yield


@contextmanager
def full(file: File) -> Iterator[None]:
    """Fill the file system."""
    filler = file.path.with_name("filler")
    with filler.open("wb") as opened:
        try:
            while True:
                opened.write(bytes(65_536))
                opened.flush()
        except OSError:
            pass
    try:
        yield
    finally:
        filler.unlink()


@contextmanager
def mounted_read_only(file: File) -> Iterator[None]:
    folder = file.path.parent
    subprocess.run(["mount", "-o", "remount,ro", folder], check=True)
    try:
        yield
    finally:
        subprocess.run(["mount", "-o", "remount,rw", folder], check=True)


_VERSION = "create table kept as select * from alembic_version; update alembic_version set version_num = '0004'"
_VERSION_BACK = "delete from alembic_version; insert into alembic_version select * from kept; drop table kept"

FAULTS: tuple[Fault[File], ...] = (
    Fault("deleted, put back", lambda it: renamed(it, ""), "its file is missing"),
    Fault("deleted with -wal and -shm, put back", lambda it: renamed(it, *ENDINGS), "its file is missing"),
    Fault("-wal deleted", lambda it: renamed(it, "-wal"), seconds=2),
    Fault("-shm deleted", lambda it: renamed(it, "-shm"), seconds=2),
    Fault("deleted, a copy put there", restored_later, "its file is missing"),
    Fault("deleted and recreated", made_anew, "its file is missing", new_catalog=True, quick=True),
    Fault(
        "replaced by another catalog (mv)",
        lambda it: replaced(it, lambda file: file.other),
        new_catalog=True,
        seconds=2,
    ),
    Fault("replaced by the same catalog (mv)", lambda it: replaced(it, lambda file: file.copy), seconds=2),
    Fault("damaged: every third page", lambda it: overwritten(it, _write_noise), "its file is damaged"),
    Fault("damaged: the header", lambda it: overwritten(it, _write_header), seconds=2, may_fail=True),
    Fault(
        "truncated to a third",
        lambda it: overwritten(it, lambda file: os.truncate(file.path, file.path.stat().st_size // 3)),
        "its file is damaged",
        quick=True,
    ),
    Fault(
        "truncated to nothing",
        lambda it: overwritten(it, lambda file: os.truncate(file.path, 0)),
        "no catalog tables|damaged|no database",
    ),
    Fault("a folder in its place", lambda it: in_its_place(it, lambda path: path.mkdir()), "leads to no file"),
    Fault("a FIFO in its place", lambda it: in_its_place(it, os.mkfifo), "leads to no file"),
    Fault(
        "a device in its place",
        lambda it: in_its_place(it, lambda path: path.symlink_to("/dev/zero")),
        "leads to no file",
    ),
    Fault(
        "text in its place",
        lambda it: in_its_place(it, lambda path: path.write_text("no database " * 1000)),
        "its file is not a database",
    ),
    Fault("an empty file in its place", lambda it: in_its_place(it, lambda path: path.touch()), "no catalog tables"),
    Fault(
        "a link that leads nowhere",
        lambda it: in_its_place(it, lambda path: path.symlink_to("none")),
        "its file is missing",
    ),
    Fault("an ingest holds its transaction open", locked),
    Fault("another catalog ingested", ingested, new_catalog=True, seconds=2),
    Fault("a writer killed in its transaction", writer_killed, seconds=2),
    Fault("locked exclusively", exclusively_locked, "locked its file|does not answer in time"),
    Fault("the file may not be read (chmod 000)", lambda it: permissions(it.path, 0), may_fail=True),
    Fault("the file may not be written", lambda it: permissions(it.path, 0o444)),
    Fault(
        "the folder may not be read (chmod 000)",
        lambda it: permissions(it.path.parent, 0),
        "its folder may not be read",
    ),
    Fault("the folder may not be written", lambda it: permissions(it.path.parent, 0o555)),
    Fault(
        "tables gone and back",
        lambda it: changed(
            it, "alter table alembic_version rename to away", "alter table away rename to alembic_version"
        ),
        "has no catalog tables",
    ),
    Fault("schema of an older version", lambda it: changed(it, _VERSION, _VERSION_BACK), "has the schema 0004"),
    Fault("disk full", full),
    Fault("file system read-only", mounted_read_only),
)
NEEDS_MOUNT = {"disk full", "file system read-only"}
NEEDS_PERMISSIONS = {fault.name for fault in FAULTS if " may not be " in fault.name}
