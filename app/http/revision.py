"""Which state of the world answers hold for: the revision of the catalog, the day, and this version of the program."""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from datetime import date
from typing import Any, NamedTuple

from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError
from sqlmodel import Session

from app.catalog.queries.snapshot import CatalogSnapshot, load_snapshot
from app.catalog.store.revisions import latest_revision
from app.db.engines import driver_message, has_no_tables, outage_cause
from app.db.executors import SessionThreads
from app.db.migrations import newest_revision, outdated_revision

_log = logging.getLogger(__name__)

NO_TABLES = "The database has no catalog tables; run `vmsizes migrate`, then `vmsizes ingest seeds`."
REFRESH_SECONDS = 0.5
"""A new revision is seen after at most this and the time of the request that looks."""


class CatalogState(NamedTuple):
    """What a look found: the stamp, what is known, the revision; else `trouble`, which is why there is no catalog."""

    generation: str | None = None
    snapshot: CatalogSnapshot | None = None
    revision: Mapping[str, Any] | None = None
    unavailable: str = ""


class RevisionWatcher:
    """Looks for a new revision at most twice a second, and only when somebody asks.

    `state.stamp` names the state that holds, `state.known` is what questions need to know of it.
    """

    def __init__(self, engine: Engine, today: Callable[[], date], version: str) -> None:
        self._today, self._version = today, version
        self._threads = SessionThreads(engine, 1, name="watching")  # its own: others may be busy for long
        self._expires_at = 0.0
        self._refreshing: asyncio.Task[CatalogState] | None = None
        self._last_outage = ""
        self.state = CatalogState()

    @property
    def generation(self) -> str | None:
        """What names the state that holds; None where there is no catalog, so that nothing may be kept."""
        return self.state.generation

    @property
    def is_fresh(self) -> bool:
        """Whether the stamp was looked at just now, so that it may be taken without looking."""
        return time.monotonic() < self._expires_at

    async def refresh(self) -> CatalogState:
        """Return the state that holds."""
        if self.is_fresh:
            return self.state
        if self._refreshing is None:
            self._refreshing = asyncio.create_task(self._load())
        try:
            self.state = await asyncio.shield(self._refreshing)
        finally:
            self._refreshing = None
        self._expires_at = time.monotonic() + REFRESH_SECONDS
        return self.state

    def explain_outage(self, error: DBAPIError) -> str | None:
        """Why the database cannot be asked, where that is what an error means; logged once, until it answers again."""
        if has_no_tables(error):
            return NO_TABLES
        cause = outage_cause(error)
        if cause is None:
            return None
        told = f"The database cannot be reached: {cause}."
        self._log_outage(told, f"{told} ({driver_message(error)})")
        return told

    def close(self) -> None:
        """Let the thread go."""
        self._threads.close()

    async def _load(self) -> CatalogState:
        try:
            state = await self._threads.run(self._load_in_session)
        except DBAPIError as error:
            told = self.explain_outage(error)
            if told is None:
                _log.exception("the database did not answer")
            return CatalogState(
                unavailable=told or "The database does not answer as it should; the log of the service says why."
            )
        self._log_outage("", "The database answers again.")
        return state

    def _log_outage(self, told: str, line: str) -> None:
        if told != self._last_outage:
            self._last_outage = told
            _log.log(logging.ERROR if told else logging.WARNING, line)

    def _load_in_session(self, session: Session) -> CatalogState:
        older = outdated_revision(session)
        if older:
            needed = f"and this program needs {newest_revision()}; run `vmsizes migrate`."
            return CatalogState(unavailable=f"The database has the schema {older}, {needed}")
        revision = latest_revision(session)
        if revision is None:
            return CatalogState(unavailable="The catalog is empty; run `vmsizes ingest seeds`.")
        stamp, known = self._generation_of(revision), self.state.snapshot
        if known is None or stamp != self.state.generation:
            known = load_snapshot(session)
        return CatalogState(stamp, known, revision)

    def _generation_of(self, revision: Mapping[str, Any]) -> str:
        return f"{revision['number']}-{revision['digest'][:16]}-{self._today():%y%m%d}-{self._version}"
