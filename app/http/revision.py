"""The generation that cached responses belong to: the catalog's revision, the day, and the program's version."""

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from datetime import date
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar

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
"""A state is read again after this long; requests are answered from it for as long again while that is done."""
PATIENCE_SECONDS = 0.25
"""So long a stored response may wait for the database, once; then it is sent as it is until the database answers."""

P = ParamSpec("P")
T = TypeVar("T")


class CatalogState(NamedTuple):
    """The current generation, snapshot and revision; or `unavailable`, the reason why there is no catalog."""

    generation: str | None = None
    snapshot: CatalogSnapshot | None = None
    revision: Mapping[str, Any] | None = None
    unavailable: str = ""


class RevisionWatcher:
    """Reads the catalog's revision from the database at most twice a second, and only when a request needs it."""

    def __init__(self, engine: Engine, today: Callable[[], date], version: str) -> None:
        self._today, self._version = today, version
        self._threads = SessionThreads(engine, 1, name="watching")  # its own thread: long queries may occupy the others
        self._expires_at = 0.0
        self._began_at = 0.0
        self._reading: asyncio.Task[CatalogState] | None = None
        self._last_outage = ""
        self.state = CatalogState()

    @property
    def generation(self) -> str | None:
        """The name of the current state, part of every ETag; None without a catalog, when nothing may be cached."""
        return self.state.generation

    @property
    def is_fresh(self) -> bool:
        """Whether `state` was read less than REFRESH_SECONDS ago."""
        return time.monotonic() < self._expires_at

    async def refresh(self) -> CatalogState:
        """Return the current state, reading it if it is not fresh; concurrent calls share one read."""
        if self.is_fresh:
            return self.state
        return await asyncio.shield(self._begin())

    async def refresh_soon(self) -> None:
        """Refresh the state for a request that may be answered from it; waits for the database only for a moment.

        A state that has just expired is read again behind the request. After a longer pause the request waits, at most
        PATIENCE_SECONDS from the beginning of the read, so that a database that hangs delays no stored response.
        """
        if self.generation is None:
            await self.refresh()
            return
        reading, now = self._begin(), time.monotonic()
        if now >= self._expires_at + REFRESH_SECONDS:
            await asyncio.wait({reading}, timeout=max(0.0, self._began_at + PATIENCE_SECONDS - now))

    async def read(self, work: Callable[Concatenate[Session, P], T], *args: P.args, **more: P.kwargs) -> T:
        """Call a function with a session in the watcher's thread, where no slow query is waited for."""
        return await self._threads.run(work, *args, **more)

    def _begin(self) -> asyncio.Task[CatalogState]:
        """Return the running read, or begin one."""
        if self._reading is None:
            self._began_at = time.monotonic()
            self._reading = asyncio.create_task(self._refresh())
        return self._reading

    async def _refresh(self) -> CatalogState:
        try:
            self.state = await self._load()
            self._expires_at = time.monotonic() + REFRESH_SECONDS
            return self.state
        finally:
            self._reading = None

    def explain_outage(self, error: DBAPIError) -> str | None:
        """Return why the database cannot be reached, None for any other error; logged once until it answers again."""
        if has_no_tables(error):
            return NO_TABLES
        cause = outage_cause(error)
        if cause is None:
            return None
        outage = f"The database cannot be reached: {cause}."
        self._log_outage(outage, f"{outage} ({driver_message(error)})")
        return outage

    def close(self) -> None:
        """Stop the thread."""
        self._threads.close()

    async def _load(self) -> CatalogState:
        try:
            state = await self._threads.run(self._load_in_session)
        except DBAPIError as error:
            outage = self.explain_outage(error)
            if outage is None:
                _log.exception("reading the revision failed")
            return CatalogState(
                unavailable=outage or "The database does not answer as it should; the log of the service says why."
            )
        self._log_outage("", "The database answers again.")
        return state

    def _log_outage(self, outage: str, line: str) -> None:
        if outage != self._last_outage:
            self._last_outage = outage
            _log.log(logging.ERROR if outage else logging.WARNING, line)

    def _load_in_session(self, session: Session) -> CatalogState:
        outdated = outdated_revision(session)
        if outdated:
            needed = f"and this program needs {newest_revision()}; run `vmsizes migrate`."
            return CatalogState(unavailable=f"The database has the schema {outdated}, {needed}")
        revision = latest_revision(session)
        if revision is None:
            return CatalogState(unavailable="The catalog is empty; run `vmsizes ingest seeds`.")
        generation, snapshot = self._generation_of(revision), self.state.snapshot
        if snapshot is None or generation != self.state.generation:
            snapshot = load_snapshot(session)
        return CatalogState(generation, snapshot, revision)

    def _generation_of(self, revision: Mapping[str, Any]) -> str:
        return f"{revision['number']}-{revision['digest'][:16]}-{self._today():%y%m%d}-{self._version}"
