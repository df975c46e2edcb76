"""Which state of the world answers hold for: the revision of the catalog, the day, and this version of the program."""

import asyncio
import time
from collections.abc import Callable
from datetime import date

from sqlalchemy import Engine
from sqlalchemy.exc import SQLAlchemyError

from app.catalog.keep.revisions import latest_revision
from app.db import reading

PERIOD_SECONDS = 0.5
"""A new revision is seen after at most this and the time of the request that looks."""


class Watch:
    """Looks for a new revision at most twice a second, and only when somebody asks."""

    def __init__(self, engine: Engine, today: Callable[[], date], version: str) -> None:
        self._engine, self._today, self._version = engine, today, version
        self._due = 0.0
        self._looking: asyncio.Task[str | None] | None = None
        self.stamp: str | None = None

    @property
    def fresh(self) -> bool:
        """Whether the stamp was looked at just now, so that it may be taken without looking."""
        return time.monotonic() < self._due

    async def look(self) -> str | None:
        """Return the stamp that holds; None where there is no catalog, so that nothing may be kept."""
        if self.fresh:
            return self.stamp
        if self._looking is None:
            self._looking = asyncio.create_task(asyncio.to_thread(self._read))
        try:
            self.stamp = await asyncio.shield(self._looking)
        finally:
            self._looking = None
        self._due = time.monotonic() + PERIOD_SECONDS
        return self.stamp

    def _read(self) -> str | None:
        try:
            with reading(self._engine) as session:
                revision = latest_revision(session)
        except SQLAlchemyError:
            return None
        return f"{revision['digest'][:16]}-{self._today():%y%m%d}-{self._version}" if revision else None
