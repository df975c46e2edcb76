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
from app.db.engines import cause_of, first_line, has_no_tables
from app.db.executors import ReadingThreads
from app.db.migrations import newest, older_than_needed

_log = logging.getLogger(__name__)

NO_TABLES = "The database has no catalog tables; run `vmsizes migrate`, then `vmsizes ingest seeds`."
PERIOD_SECONDS = 0.5
"""A new revision is seen after at most this and the time of the request that looks."""


class State(NamedTuple):
    """What a look found: the stamp, what is known, the revision; else `trouble`, which is why there is no catalog."""

    stamp: str | None = None
    known: CatalogSnapshot | None = None
    revision: Mapping[str, Any] | None = None
    trouble: str = ""


class Watch:
    """Looks for a new revision at most twice a second, and only when somebody asks.

    `state.stamp` names the state that holds, `state.known` is what questions need to know of it.
    """

    def __init__(self, engine: Engine, today: Callable[[], date], version: str) -> None:
        self._today, self._version = today, version
        self._thread = ReadingThreads(engine, 1, name="watching")  # its own: others may be busy for long
        self._due = 0.0
        self._looking: asyncio.Task[State] | None = None
        self._told = ""
        self.state = State()

    @property
    def stamp(self) -> str | None:
        """What names the state that holds; None where there is no catalog, so that nothing may be kept."""
        return self.state.stamp

    @property
    def fresh(self) -> bool:
        """Whether the stamp was looked at just now, so that it may be taken without looking."""
        return time.monotonic() < self._due

    async def look(self) -> State:
        """Return the state that holds."""
        if self.fresh:
            return self.state
        if self._looking is None:
            self._looking = asyncio.create_task(self._look())
        try:
            self.state = await asyncio.shield(self._looking)
        finally:
            self._looking = None
        self._due = time.monotonic() + PERIOD_SECONDS
        return self.state

    def outage(self, error: DBAPIError) -> str | None:
        """Why the database cannot be asked, where that is what an error means; logged once, until it answers again."""
        if has_no_tables(error):
            return NO_TABLES
        cause = cause_of(error)
        if cause is None:
            return None
        told = f"The database cannot be reached: {cause}."
        self._tell(told, f"{told} ({first_line(error)})")
        return told

    def close(self) -> None:
        """Let the thread go."""
        self._thread.close()

    async def _look(self) -> State:
        try:
            state = await self._thread.run(self._read)
        except DBAPIError as error:
            told = self.outage(error)
            if told is None:
                _log.exception("the database did not answer")
            return State(trouble=told or "The database does not answer as it should; the log of the service says why.")
        self._tell("", "The database answers again.")
        return state

    def _tell(self, told: str, line: str) -> None:
        if told != self._told:
            self._told = told
            _log.log(logging.ERROR if told else logging.WARNING, line)

    def _read(self, session: Session) -> State:
        older = older_than_needed(session)
        if older:
            needed = f"and this program needs {newest()}; run `vmsizes migrate`."
            return State(trouble=f"The database has the schema {older}, {needed}")
        revision = latest_revision(session)
        if revision is None:
            return State(trouble="The catalog is empty; run `vmsizes ingest seeds`.")
        stamp, known = self._stamp(revision), self.state.known
        if known is None or stamp != self.state.stamp:
            known = load_snapshot(session)
        return State(stamp, known, revision)

    def _stamp(self, revision: Mapping[str, Any]) -> str:
        return f"{revision['number']}-{revision['digest'][:16]}-{self._today():%y%m%d}-{self._version}"
