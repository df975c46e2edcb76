"""The catalog for tools and resources: sessions in threads, the snapshot of a revision, and how old its prices are."""

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime
from importlib.util import find_spec
from typing import Any, TypeVar

from sqlalchemy import Engine
from sqlmodel import Session

from app.catalog.queries.freshness import load_freshness
from app.catalog.queries.snapshot import (
    MAX_ATTEMPTS,
    Catalog,
    CatalogSnapshot,
    changes_too_fast,
    load_snapshot,
    revision_id,
)
from app.catalog.store.revisions import latest_revision
from app.db.executors import Guard, SessionThreads, wait_for_ever
from app.errors import CatalogChanged, NotReady

T = TypeVar("T")

MAX_THREADS = 2
"""With the threads of the API these are as many as the pool has connections (`app.db.engines`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RevisionInfo:
    """The revision that an answer is from, the day of the answer, and the newest day of any price."""

    number: int
    digest: str
    created_at: datetime
    day: date
    prices_as_of: date | None

    def to_json(self) -> dict[str, Any]:
        """Return it as JSON data, with the age of the newest prices in days."""
        age = (self.day - self.prices_as_of).days if self.prices_as_of else None
        return {
            "revision": self.number,
            "digest": self.digest,
            "created_at": self.created_at.isoformat(),
            "day": self.day.isoformat(),
            "prices_as_of": self.prices_as_of.isoformat() if self.prices_as_of else None,
            "prices_age_days": age,
        }


class CatalogReader:
    """Runs work that reads the catalog, each with a session of its own in a thread.

    `served` returns the snapshot that the API of this process answers from, if it has one: what was asked of it need
    not be asked a second time.
    """

    def __init__(
        self,
        engine: Engine,
        today: Callable[[], date],
        guard: Guard = wait_for_ever,
        served: Callable[[], CatalogSnapshot | None] = lambda: None,
    ) -> None:
        self._threads, self._today = SessionThreads(engine, MAX_THREADS, name="mcp", guard=guard), today
        self._served = served
        self._lock = threading.Lock()
        self._known: RevisionInfo | None = None
        self._own: CatalogSnapshot | None = None

    async def run(self, work: Callable[[Catalog, RevisionInfo], T]) -> T:
        """Call a function with the catalog in a thread, and again if an ingest commits meanwhile.

        Raises NotReady for an empty catalog, and Busy.
        """
        for _ in range(MAX_ATTEMPTS):
            with suppress(CatalogChanged):
                return await self._threads.run(self._work, work)
        raise changes_too_fast()

    def close(self) -> None:
        """Stop the threads."""
        self._threads.close()

    def _work(self, session: Session, work: Callable[[Catalog, RevisionInfo], T]) -> T:
        revision, snapshot = self._load(session)
        return Catalog(session, snapshot, revision.day).ask(work, revision)

    def _load(self, session: Session) -> tuple[RevisionInfo, CatalogSnapshot]:
        """Return the current revision and its snapshot, which are read again only after a change or a new day."""
        latest, today = latest_revision(session), self._today()
        if latest is None:
            raise NotReady("The catalog is empty; run `vmsizes ingest seeds`.")
        with self._lock:
            if self._known is None or (self._known.digest, self._known.day) != (latest["digest"], today):
                self._known = RevisionInfo(
                    number=latest["number"],
                    digest=latest["digest"],
                    created_at=latest["created_at"],
                    day=today,
                    prices_as_of=load_freshness(session, today).newest_prices_as_of,
                )
            return self._known, self._snapshot(session, revision_id(latest["number"], latest["digest"]))

    def _snapshot(self, session: Session, revision: str) -> CatalogSnapshot:
        served = self._served()
        if served is not None and served.revision == revision:
            self._own = None
            return served
        if self._own is None or self._own.revision != revision:
            self._own = load_snapshot(session)
        return self._own


def is_installed() -> bool:
    """Return whether the official SDK can be imported."""
    return find_spec("mcp") is not None


def require_sdk() -> None:
    """Raise NotReady where the official SDK is not installed."""
    if not is_installed():
        raise NotReady("MCP needs the official SDK, which is not installed; run `pip install 'vmsizes[mcp]'`.")
