"""Reads SQLite by its driver, on connections that are opened again where the file of the database was replaced.

A connection holds the file that it opened: after `mv new.db vmsizes.db` it would read the old one for ever, and after
`rm vmsizes.db` one that no other process can see.
"""

import re
import sqlite3
import stat
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple
from urllib.parse import parse_qsl, quote, unquote, urlencode

from app.db import functions
from app.db.errors import IS_NO_FILE, MISSING, DatabaseError
from app.db.statements import DriverReader

POOL_SIZE = 9
"""How many connections a pool keeps, also one of PostgreSQL; there are fewer reading threads, so none waits."""

_IN_MEMORY = {"", ":memory:"}


class SqliteUrl(NamedTuple):
    """A URL of SQLite: `sqlite:///FILE`, where FILE may be a URI, `file:…`; without it the database is in memory."""

    database: str
    query: Mapping[str, str]

    @classmethod
    def parse(cls, url: str) -> "SqliteUrl | None":
        """Return the parts of a URL; None for one of any other form."""
        match = re.fullmatch(r"sqlite://(?:/(?P<database>[^?]*))?(?:\?(?P<query>.*))?", url, re.DOTALL)
        return match and cls(unquote(match["database"] or ""), dict(parse_qsl(match["query"] or "")))

    def __str__(self) -> str:
        database = f"/{quote(self.database, safe=' +/')}" if self.database else ""
        return f"sqlite://{database}{f'?{urlencode(sorted(self.query.items()))}' if self.query else ''}"

    @property
    def path(self) -> Path | None:
        """The file, where it is named by its path and not by a URI."""
        is_path = self.database not in _IN_MEMORY and not self.database.startswith("file:")
        return Path(self.database) if is_path else None

    @property
    def file(self) -> Path | None:
        """The file; None for a database in memory."""
        if self.database in _IN_MEMORY or self.query.get("mode") == "memory":
            return None
        path = unquote(self.database.removeprefix("file:"))
        return self.path or Path(path.removeprefix("//") if path.startswith("///") else path)

    @property
    def absolute(self) -> "SqliteUrl":
        """The URL that names the same file from any folder."""
        return self._replace(database=str(self.path.absolute())) if self.path else self

    def to_uri(self, mode: str) -> str:
        """Return what opens the database in a mode, `ro` or `rw`; a file that is missing is not created."""
        if self.database in _IN_MEMORY:
            return ":memory:"
        name = self.path.absolute().as_uri().replace("file://", "file:", 1) if self.path else self.database
        return f"{name}?{urlencode({**self.query, **({'mode': mode} if self.file else {})})}"


class FileVersion(NamedTuple):
    """Which file it is that a path leads to, and its length in bytes."""

    device: int
    inode: int
    size_bytes: int

    def is_replaced_by(self, other: "FileVersion") -> bool:
        """Check whether a connection to this file must not be used for the other: it is another, or was cut."""
        return (self.device, self.inode) != (other.device, other.inode) or other.size_bytes < self.size_bytes


def check_file(path: Path) -> FileVersion:
    """Return which file is there now; raises DatabaseError where there is none that can be opened.

    To open a FIFO would wait for who writes to it.
    """
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        raise DatabaseError(sqlite3.OperationalError(f"{MISSING} (unable to open database file)")) from None
    except OSError as error:
        refused = sqlite3.OperationalError(f"unable to open database file: {error.strerror}")
        raise DatabaseError(refused) from None
    if not stat.S_ISREG(status.st_mode):
        raise DatabaseError(sqlite3.OperationalError(IS_NO_FILE))
    return FileVersion(status.st_dev, status.st_ino, status.st_size)


class SqliteReader(DriverReader):
    """Reads SQLite on a connection of its own."""

    kind, error_type = "sqlite", sqlite3.Error

    def __init__(self, driver: sqlite3.Connection, give_back: "Callable[[SqliteReader], None]") -> None:
        self.driver, self._give_back = driver, give_back

    def close(self) -> None:
        """Give the connection back."""
        self._give_back(self)


class SqliteDatabase:
    """An SQLite database to read, see `app.db.databases.Database`; up to `max_idle` connections are kept.

    `mode` is `ro` or `rw`: only a connection that may write removes the write-ahead log where it is closed last.
    """

    kind: Literal["sqlite", "postgresql"] = "sqlite"

    def __init__(
        self,
        url: SqliteUrl,
        *,
        mode: str,
        busy_seconds: float,
        max_idle: int,
        cached_statements: int = 32,
        pragmas: Sequence[str] = (),
    ) -> None:
        self._url, self.url, self.shown_url = url, str(url.absolute), str(url)
        self.file, self.path, self._mode, self._max_idle = url.file, url.path, mode, max_idle
        self._pragmas = ("query_only = on", *pragmas)
        self._open = partial(
            sqlite3.connect,
            url.to_uri(mode),
            timeout=busy_seconds,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=cached_statements,
            uri=True,
        )
        self._seen: FileVersion | None = None
        self._idle, self._used = list[SqliteReader](), set[SqliteReader]()

    def of_event_loop(self) -> "SqliteDatabase":
        """Return the same database for one connection, which waits for no lock and keeps more statements."""
        return SqliteDatabase(self._url, mode=self._mode, busy_seconds=0, max_idle=1, cached_statements=128)

    @property
    def connections(self) -> tuple[int, int]:
        """How many connections are in use, and how many idle."""
        return len(self._used), len(self._idle)

    def connect(self) -> SqliteReader:
        """Return a reader on a connection to the file that is there now; raises DatabaseError."""
        if self.file is not None:
            file = check_file(self.file)  # before it is opened: if it is replaced meanwhile, the next use finds out
            if self._seen is not None and self._seen.is_replaced_by(file):
                self.dispose()
            self._seen = file
        reader = None
        with suppress(IndexError):
            reader = self._idle.pop()
        if reader is None:
            reader = self._connect()
        self._used.add(reader)
        return reader

    def dispose(self) -> None:
        """Close the idle connections now, and those in use when they are given back."""
        idle, self._idle = self._idle, []
        for reader in idle:
            reader.driver.close()

    def _connect(self) -> SqliteReader:
        idle = self._idle
        try:
            driver = self._open()
            functions.register(driver)
            for pragma in self._pragmas:
                driver.execute(f"pragma {pragma}")
        except sqlite3.Error as error:
            raise DatabaseError(error) from error
        return SqliteReader(driver, partial(self._give_back, idle))

    def _give_back(self, idle: list[SqliteReader], reader: SqliteReader) -> None:
        self._used.discard(reader)
        if idle is self._idle and len(idle) < self._max_idle:
            idle.append(reader)
        else:
            reader.driver.close()
