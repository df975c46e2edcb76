"""The generation that cached responses belong to: the catalog's revision, the day, and the program's version.

Also here: whether the database answers at all. While it does not, cached responses go on to be served in the generation
that was read last, and other requests are refused soon instead of waiting for it.
"""

import asyncio
import logging
import math
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import date
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar

from app.catalog.queries.snapshot import CatalogSnapshot, load_snapshot
from app.catalog.revisions import latest_revision
from app.db.databases import Database
from app.db.errors import (
    MISSING,
    DatabaseError,
    driver_message,
    has_no_tables,
    lacks_what_was_asked,
    outage_cause,
)
from app.db.executors import ReadingThreads
from app.db.schema import OlderSchema, newer_schema_text, newest_revision, refuse_older, schema_revision
from app.db.statements import DriverReader
from app.errors import NotReady

_log, _outage_log = logging.getLogger(__name__), logging.getLogger("app.http.outages")

NO_TABLES = "The database has no catalog tables; run `vmsizes migrate`, then `vmsizes ingest seeds`."
NO_ANSWER = "The database cannot be reached: it does not answer in time."
REFRESH_SECONDS = 0.5
"""A state is read again after this long; requests are answered from it for as long again while that is done."""
PATIENCE_SECONDS = 0.25
"""So long a stored response may wait for the database, once; then it is sent as it is until the database answers."""
ANSWER_SECONDS = 1.0
"""A database that takes longer to return the revision does not answer: a few rows, read in a thread of its own."""
SNAPSHOT_SECONDS = 10.0
"""So long it may take to read the snapshot of a new revision, which grows with the catalog."""
LONG_AGO = -math.inf
"""Before any time.monotonic(), which begins at 0 when some machines start: such a state is never sent once more."""
NO_FILE = "There is no database file yet; run `vmsizes migrate`, then `vmsizes ingest seeds`."

QUIET_SECONDS = 2.0
"""An outage has ended when the database has answered for so long: single queries may fail while others do not."""

P = ParamSpec("P")
T = TypeVar("T")


class CatalogState(NamedTuple):
    """The current generation, snapshot and revision; or `unavailable`, the reason why there is no catalog.

    An unavailable catalog keeps the generation that was read last, to which stored responses belong. `unreachable`
    distinguishes a database that does not answer from one that has no catalog.
    """

    generation: str | None = None
    snapshot: CatalogSnapshot | None = None
    revision: Mapping[str, Any] | None = None
    unavailable: str = ""
    unreachable: bool = False


class OutageLog:
    """Logs each outage once when it begins and once when it has ended; `cause` is empty without one.

    Failures before `returned_at`, when the database could be reached again, say nothing about it any more.
    """

    def __init__(self) -> None:
        self.cause = ""
        self._began_at = self._failed_at = self.returned_at = 0.0

    @property
    def recent_cause(self) -> str:
        """The cause of failures in the last moments, where the database answers others meanwhile."""
        recent = self._failed_at > max(self.returned_at, time.monotonic() - QUIET_SECONDS)
        return self.cause if recent else ""

    def note_failure(self, cause: str, detail: str = "") -> None:
        """Note that the database could not be reached; `detail` is for the log alone, which it may name hosts in."""
        self._failed_at = time.monotonic()
        if not self.cause:
            self._began_at = self._failed_at
            _outage_log.error("%s%s", cause, f" ({detail})" if detail else "")
        self.cause = cause

    def note_answer(self) -> None:
        """Note that the database has answered."""
        now = time.monotonic()
        if self.cause and now - self._failed_at >= QUIET_SECONDS:
            lasted = max(1, round(self._failed_at - self._began_at))
            _outage_log.warning("The database answers again, after %d s. The last failure was: %s", lasted, self.cause)
            self.cause = ""


class RevisionWatcher:
    """Reads the catalog's revision from the database at most twice a second, when requests need it.

    While the catalog is unavailable it is tried again without requests. `on_return` is called when the database can be
    reached again: connections of before may be broken. `confirmed_at` is when the catalog was read last. `database`
    should have a connection for it alone: a server that is gone is not one whose connections are all taken.
    """

    def __init__(self, database: Database, today: Callable[[], date], version: str) -> None:
        self._today, self._version = today, version
        self._database = database
        self._threads = ReadingThreads(database, 1, name="watching")  # long queries may occupy other threads
        self._expires_at = self._began_at = self._heard_at = self.confirmed_at = self._outdated_at = 0.0
        self._reading: asyncio.Task[CatalogState] | None = None
        self._retry: asyncio.TimerHandle | None = None
        self._known = CatalogState()
        self._newer_schema = ""
        self.outages = OutageLog()
        self.on_return: Callable[[], None] = lambda: None
        self._waiting: set[asyncio.Future[Any]] = set()
        self._checking: asyncio.Task[None] | None = None
        self.state = CatalogState()

    @property
    def is_fresh(self) -> bool:
        """Whether `state` was read less than REFRESH_SECONDS ago."""
        return time.monotonic() < self._expires_at

    async def refresh(self) -> CatalogState:
        """Return the current state, reading it if it is not fresh; concurrent calls share one read.

        Takes at most ANSWER_SECONDS: then the database is unreachable until the read ends.
        """
        if not self.is_fresh:
            reading = self._begin()
            while not reading.done() and not self._note_silence():
                await asyncio.wait({reading}, timeout=max(0.0, self._deadline() - time.monotonic()))
        return self.state

    def expire(self) -> None:
        """Have the next request wait for the newest revision: a query has found that there is a newer one."""
        self._expires_at, self._outdated_at = LONG_AGO, time.monotonic()

    async def refresh_soon(self) -> None:
        """Refresh the state for a request that may be answered from it; waits for the database only for a moment.

        A state that has just expired is read again behind the request. After a longer pause the request waits, at most
        PATIENCE_SECONDS from the beginning of the read, so that a database that hangs delays no stored response.
        """
        if self.state.generation is None:
            await self.refresh()
            return
        reading, now = self._begin(), time.monotonic()
        if now >= self._expires_at + REFRESH_SECONDS:
            await asyncio.wait({reading}, timeout=max(0.0, self._began_at + PATIENCE_SECONDS - now))
        self._note_silence()

    async def read(self, work: Callable[Concatenate[DriverReader, P], T], *args: P.args, **more: P.kwargs) -> T:
        """Call a function with a reader in the watcher's thread, where no slow query is waited for."""
        return await self.while_reachable(self._threads.run(work, *args, **more))

    async def while_reachable(self, answer: Awaitable[T]) -> T:
        """Wait for an answer of the database as long as it takes, but only while the revision can be read, too.

        Raises NotReady about REFRESH_SECONDS + ANSWER_SECONDS after the database has stopped to answer; what it was
        asked goes on in its thread or connection, until the database answers that or the connection ends.
        """
        asked = asyncio.ensure_future(answer)
        waiting = asyncio.shield(asked)
        self._waiting.add(waiting)
        if self._checking is None:
            self._checking = asyncio.create_task(self._check_while_waiting())
        try:
            return await waiting
        except asyncio.CancelledError:
            if waiting in self._waiting:  # the request was cancelled, as by a client that is gone
                asked.cancel()
                raise
            # Its outcome is taken, so that it is not reported as forgotten.
            asked.add_done_callback(lambda abandoned: abandoned.cancelled() or abandoned.exception())
            raise NotReady(self.state.unavailable or NO_ANSWER) from None
        finally:
            self._waiting.discard(waiting)

    async def _check_while_waiting(self) -> None:
        """Read the revision as long as anybody waits for the database; give all of them up when it does not answer."""
        try:
            while self._waiting:
                await asyncio.sleep(PATIENCE_SECONDS)
                if self._waiting and (await self.refresh()).unreachable:
                    given_up = tuple(self._waiting)
                    self._waiting.clear()
                    for waiting in given_up:
                        waiting.cancel()
        finally:
            self._checking = None

    def explain_outage(self, error: DatabaseError) -> str | None:
        """Return why the database cannot be reached, None for any other error; logged once until it answers again."""
        if self._newer_schema and lacks_what_was_asked(error):
            return f"{newer_schema_text(self._newer_schema)} Replace it by the version that migrated the database."
        if has_no_tables(error):
            self.outages.note_failure(NO_TABLES)
            return NO_TABLES
        cause = outage_cause(error)
        if cause is None:
            return None
        outage = f"The database cannot be reached: {cause[0]}."
        if self._known.generation is None and MISSING in str(error.orig):
            outage = NO_FILE
        self.outages.note_failure(outage, driver_message(error))
        return outage

    def close(self) -> None:
        """Stop the thread and close its connection."""
        for pending in (self._retry, self._checking, self._reading):
            if pending is not None:
                pending.cancel()
        self._threads.close()
        self._database.dispose()

    def _begin(self) -> asyncio.Task[CatalogState]:
        """Return the running read, or begin one."""
        if self._reading is None:
            self._began_at = time.monotonic()
            self._reading = asyncio.create_task(self._refresh())
        return self._reading

    async def _refresh(self) -> CatalogState:
        was_unreachable = self.state.unreachable
        try:
            state = await self._load()
            if self.state.unavailable and not state.unavailable:
                self.outages.returned_at = time.monotonic()
            if not state.unreachable and (was_unreachable or self.state.unreachable):
                self.on_return()
            self.state = state
            self._expires_at = time.monotonic() + REFRESH_SECONDS if self._began_at >= self._outdated_at else LONG_AGO
            if not state.unavailable:
                self._known, self.confirmed_at = state, time.monotonic()
            if state.unavailable or self.outages.cause:
                # Read again without a request, so that the end of an outage is found, and logged, by itself.
                if self._retry is not None:
                    self._retry.cancel()
                self._retry = asyncio.get_running_loop().call_later(REFRESH_SECONDS, self._begin)
            return state
        finally:
            self._reading = None

    def _deadline(self) -> float:
        """Return the time until which the running read may take."""
        if self._heard_at > self._began_at:
            return self._heard_at + SNAPSHOT_SECONDS
        return self._began_at + ANSWER_SECONDS

    def _note_silence(self) -> bool:
        """Take the database for unreachable where a read has been running for too long; return whether it has."""
        silent = self._reading is not None and time.monotonic() >= self._deadline()
        if silent and not self.state.unreachable:
            self.outages.note_failure(NO_ANSWER)
            self.state = self._without_catalog(NO_ANSWER, unreachable=True)
        return silent

    def _without_catalog(self, reason: str, *, unreachable: bool = False) -> CatalogState:
        return CatalogState(self._known.generation, unavailable=reason, unreachable=unreachable)

    async def _load(self) -> CatalogState:
        try:
            state = await self._threads.run(self._read)
        except DatabaseError as error:
            outage = self.explain_outage(error)
            if outage is not None:
                return self._without_catalog(outage, unreachable=outage != NO_TABLES)
            _log.exception("reading the revision failed")
            return self._without_catalog(
                "The database does not answer as it should; the log of the service says why.", unreachable=True
            )
        if state.unavailable:
            self.outages.note_failure(state.unavailable)
        else:
            self.outages.note_answer()
        return state

    def _read(self, reader: DriverReader) -> CatalogState:
        schema = schema_revision(reader)
        try:
            refuse_older(schema)
        except OlderSchema as error:
            return self._without_catalog(str(error))
        newer = schema if schema > newest_revision() else ""
        if newer and newer != self._newer_schema:  # once: what this program reads is served as before
            _log.warning("%s It serves what it still finds; replace it soon.", newer_schema_text(newer))
        self._newer_schema = newer
        revision = latest_revision(reader)
        self._heard_at = time.monotonic()
        if revision is None:
            return self._without_catalog("The catalog is empty; run `vmsizes ingest seeds`.")
        generation = f"{revision['number']}-{revision['digest'][:16]}-{self._today():%y%m%d}-{self._version}"
        snapshot = self._known.snapshot
        if snapshot is None or generation != self._known.generation:
            snapshot = load_snapshot(reader)
        return CatalogState(generation, snapshot, revision)
