"""The catalog for tools and resources: threads that read it, the snapshot of a revision, the age of its prices."""

import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import date
from importlib.util import find_spec
from typing import Any, TypeVar

from app.catalog.queries.freshness import load_freshness
from app.catalog.queries.snapshot import (
    MAX_ATTEMPTS,
    Catalog,
    CatalogSnapshot,
    changes_too_fast,
    load_snapshot,
    or_busy,
)
from app.catalog.revisions import latest_revision, revision_id
from app.db.databases import Database
from app.db.executors import Guard, ReadingThreads, wait_indefinitely
from app.db.statements import DriverReader
from app.errors import CatalogChanged, NotReady

T = TypeVar("T")

MAX_THREADS = 2
"""With the threads of the API these are as many as the pool has connections (`app.db.databases`)."""


RevisionInfo = Mapping[str, Any]
"""The revision that an answer is from, the day of the answer, and how old its newest prices are, as JSON data."""


class CatalogReader:
    """Runs work that reads the catalog, each on a connection of its own in a thread.

    `served` returns the snapshot that the API of this process answers from, if it has one: what was asked of it need
    not be asked a second time.
    """

    def __init__(
        self,
        database: Database,
        today: Callable[[], date],
        guard: Guard = wait_indefinitely,
        served: Callable[[], CatalogSnapshot | None] = lambda: None,
    ) -> None:
        self._threads, self._today = ReadingThreads(database, MAX_THREADS, name="mcp", guard=guard), today
        self._served = served
        self._lock = threading.Lock()
        self._revision: RevisionInfo = {}
        self._own: CatalogSnapshot | None = None

    async def run(self, work: Callable[[Catalog, RevisionInfo], T]) -> T:
        """Call a function with the catalog in a thread, and again if an ingest commits meanwhile.

        Raises NotReady for an empty catalog, and Busy.
        """
        for _ in range(MAX_ATTEMPTS):
            with suppress(CatalogChanged):
                return await or_busy(self._threads.run(self._work, work))
        raise changes_too_fast()

    def close(self) -> None:
        """Stop the threads."""
        self._threads.close()

    def _work(self, reader: DriverReader, work: Callable[[Catalog, RevisionInfo], T]) -> T:
        """Do the work; the current revision and its snapshot are read again only after a change or a new day."""
        latest, today = latest_revision(reader), self._today()
        if latest is None:
            raise NotReady("The catalog is empty; run `vmsizes ingest seeds`.")
        with self._lock:
            if (self._revision.get("digest"), self._revision.get("day")) != (latest["digest"], today.isoformat()):
                as_of = load_freshness(reader, today).newest_prices_as_of
                self._revision = {
                    "revision": latest["number"],
                    "digest": latest["digest"],
                    "created_at": latest["created_at"].isoformat(),
                    "day": today.isoformat(),
                    "prices_as_of": as_of.isoformat() if as_of else None,
                    "prices_age_days": (today - as_of).days if as_of else None,
                }
            revision = self._revision
            snapshot = self._snapshot(reader, revision_id(latest["number"], latest["digest"]))
        return Catalog(reader, snapshot, today).ask(work, revision)

    def _snapshot(self, reader: DriverReader, revision: str) -> CatalogSnapshot:
        served = self._served()
        if served is not None and served.revision == revision:
            self._own = None
            return served
        if self._own is None or self._own.revision != revision:
            self._own = load_snapshot(reader)
        return self._own


def is_installed() -> bool:
    """Return whether the official SDK can be imported."""
    return find_spec("mcp") is not None


def require_sdk() -> None:
    """Raise NotReady where the official SDK is not installed."""
    if not is_installed():
        raise NotReady("MCP needs the official SDK, which is not installed; run `pip install 'vmsizes[mcp]'`.")
