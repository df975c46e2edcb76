"""Which state of the world answers hold for: the revision of the catalog, the day, and this version of the program."""

import asyncio
import time
from collections.abc import Callable
from datetime import date
from typing import Any

from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError
from sqlmodel import Session

from app.catalog.ask.known import Known, read_known
from app.catalog.keep.revisions import latest_revision
from app.db.threads import ReadingThreads
from app.schema import older_than_needed

PERIOD_SECONDS = 0.5
"""A new revision is seen after at most this and the time of the request that looks."""


class Watch:
    """Looks for a new revision at most twice a second, and only when somebody asks.

    `stamp` names the state that holds, `known` is what questions need to know of it; None where there is no catalog.
    """

    def __init__(self, engine: Engine, today: Callable[[], date], version: str) -> None:
        self._today, self._version = today, version
        self._thread = ReadingThreads(engine, 1, name="watching")  # its own: others may be busy for long
        self._due = 0.0
        self._looking: asyncio.Task[tuple[str | None, Known | None]] | None = None
        self.stamp: str | None = None
        self.known: Known | None = None

    @property
    def fresh(self) -> bool:
        """Whether the stamp was looked at just now, so that it may be taken without looking."""
        return time.monotonic() < self._due

    async def look(self) -> str | None:
        """Return the stamp that holds; None where there is no catalog, so that nothing may be kept."""
        if self.fresh:
            return self.stamp
        if self._looking is None:
            self._looking = asyncio.create_task(self._look())
        try:
            self.stamp, self.known = await asyncio.shield(self._looking)
        finally:
            self._looking = None
        self._due = time.monotonic() + PERIOD_SECONDS
        return self.stamp

    def close(self) -> None:
        """Let the thread go."""
        self._thread.close()

    async def _look(self) -> tuple[str | None, Known | None]:
        try:
            return await self._thread.run(self._read)
        except SQLAlchemyError:
            return None, None

    def _read(self, session: Session) -> tuple[str | None, Known | None]:
        if older_than_needed(session):
            return None, None
        stamp = self._stamp(latest_revision(session))
        if stamp is None or (stamp == self.stamp and self.known is not None):
            return stamp, self.known if stamp else None
        return stamp, read_known(session)

    def _stamp(self, revision: dict[str, Any] | None) -> str | None:
        if revision is None:
            return None
        return f"{revision['number']}-{revision['digest'][:16]}-{self._today():%y%m%d}-{self._version}"
