"""The file of an SQLite database that a service reads: opened read-only, and opened again where it was replaced.

A connection holds the file that it opened: after `mv new.db vmsizes.db` it would read the old one for ever, and after
`rm vmsizes.db` one that no other process can see.
"""

import sqlite3
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote

from sqlalchemy import URL, Dialect, Engine, event
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import DisconnectionError
from sqlalchemy.pool import ConnectionPoolEntry

MISSING = "no such database file"
IS_NO_FILE = "the path of the database is no regular file"
_IN_MEMORY = {None, "", ":memory:"}
_OPENED = "vmsizes.file"


class FileVersion(NamedTuple):
    """Which file it is that a path leads to, and its length in bytes."""

    device: int
    inode: int
    size_bytes: int

    def is_replaced_by(self, other: "FileVersion") -> bool:
        """Check whether a connection to this file must not be used for the other: it is another, or was cut."""
        return (self.device, self.inode) != (other.device, other.inode) or other.size_bytes < self.size_bytes


@dataclass(frozen=True, slots=True)
class DatabaseFile:
    """The file of an SQLite database, by its path."""

    path: Path

    @classmethod
    def of(cls, url: URL) -> "DatabaseFile | None":
        """Return the file that a URL names; None for a database in memory."""
        name = url.database
        if name in _IN_MEMORY or url.query.get("mode") == "memory":
            return None
        if not (name or "").startswith("file:"):
            return cls(Path(name or ""))
        path = unquote((name or "").removeprefix("file:"))
        return cls(Path(path.removeprefix("//") if path.startswith("///") else path))

    def read_only_url(self, url: URL) -> URL:
        """Return the URL that opens the file read-only; the file is not created where it is missing."""
        if (url.database or "").startswith("file:"):
            return url.difference_update_query(["mode"]).update_query_dict({"mode": "ro", "uri": "true"})
        quoted = self.path.absolute().as_uri().replace("file://", "file:", 1)
        return url.set(database=quoted).update_query_dict({"mode": "ro", "uri": "true"})

    def check(self) -> FileVersion:
        """Return which file is there now; raises sqlite3.OperationalError where there is none that can be opened.

        To open a FIFO would wait for who writes to it.
        """
        try:
            status = self.path.stat()
        except (FileNotFoundError, NotADirectoryError):
            raise sqlite3.OperationalError(f"{MISSING} (unable to open database file)") from None
        except OSError as error:
            raise sqlite3.OperationalError(f"unable to open database file: {error.strerror}") from None
        if not stat.S_ISREG(status.st_mode):
            raise sqlite3.OperationalError(IS_NO_FILE)
        return FileVersion(status.st_dev, status.st_ino, status.st_size)

    def refuse_missing(self, engine: Engine) -> None:
        """Let an engine create no file: a connection to a missing one fails instead."""

        @event.listens_for(engine, "do_connect")
        def check(*_: object) -> None:
            self.check()

    def watch(self, engine: Engine) -> None:
        """Let the pool of an engine open a connection again where the file is no longer the one it was opened on."""

        @event.listens_for(engine, "do_connect")
        def connect(
            dialect: Dialect, record: ConnectionPoolEntry, arguments: list[Any], parameters: dict[str, Any]
        ) -> DBAPIConnection:
            opened = self.check()  # before it is opened: if it is replaced meanwhile, the next use opens it again
            connection = dialect.connect(*arguments, **parameters)
            record.info[_OPENED] = opened
            return connection

        @event.listens_for(engine, "checkout")
        def check(_connection: DBAPIConnection, record: ConnectionPoolEntry, _proxy: object) -> None:
            if record.info[_OPENED].is_replaced_by(self.check()):
                raise DisconnectionError("the file of the database was replaced")
