"""Asks the catalog for endpoints: what is short on the event loop, where it reads SQLite, all else in threads."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from datetime import date, datetime
from typing import Any, Concatenate, NamedTuple, ParamSpec, TypeVar

from cachetools import LRUCache

from app.catalog.queries.freshness import FeedRefresh, Freshness, load_feed_refreshes, load_freshness, load_last_ingests
from app.catalog.queries.snapshot import (
    COMPUTING,
    MAX_ATTEMPTS,
    SHORT,
    SMALL_CATALOG,
    Catalog,
    CatalogSnapshot,
    changes_too_fast,
    or_busy,
)
from app.db.databases import Database, Replication, load_replication
from app.db.executors import LoopConnection, ReadingThreads
from app.db.sqlite import SqliteDatabase
from app.db.statements import Reader, TakesLong
from app.errors import CatalogChanged, NotReady
from app.http.revision import RevisionWatcher
from app.telemetry import tracing

P = ParamSpec("P")
T = TypeVar("T")

_MAX_KEPT = 64
"""How many answers `ask_once` keeps; those of the search page's filters have about 30 kB each."""


class CatalogHealth(NamedTuple):
    """The revision, how old the newest prices and rates are, and when each source last changed the catalog.

    Also how each feed was refreshed last, and how far the database is behind the one that it follows.
    """

    revision: Mapping[str, Any]
    freshness: Freshness
    last_ingests: Mapping[str, datetime]
    refreshes: Sequence[FeedRefresh]
    replication: Replication


class QueryExecutor:
    """Asks the questions of one server process, each of the current revision of the catalog.

    Every question takes one way, `ask`, and so one of a bounded number of places: `query_count` counts them.
    """

    def __init__(self, database: Database, watcher: RevisionWatcher, today: Callable[[], date]) -> None:
        self._database, self._watcher, self.today = database, watcher, today
        guard = watcher.while_reachable
        self._threads = ReadingThreads(database, guard=guard)
        self._computing = ReadingThreads(database, 1, name="computing", guard=guard)
        self.loop_connection = LoopConnection(database) if isinstance(database, SqliteDatabase) else None
        self.query_count = 0
        self._kept_ages: tuple[str | None, Freshness, Mapping[str, datetime]] | None = None
        self._kept: LRUCache[Hashable, Any] = LRUCache(_MAX_KEPT)
        watcher.on_return = self._reconnect

    async def ask(self, question: Callable[Concatenate[Catalog, P], T], *args: P.args, **more: P.kwargs) -> T:
        """Answer a question from the newest revision, again if an ingest commits meanwhile.

        What is `short` is answered on the event loop, until a statement takes long; what is `computing` in the one
        thread for it, since Python computes in one at a time. Raises NotReady if there is no catalog, and Busy if too
        many questions wait.
        """
        self.query_count += 1
        on_loop = self.loop_connection is not None and question in SHORT and SHORT[question](*args, **more)
        for _ in range(MAX_ATTEMPTS):
            snapshot, today = await self.snapshot(), self.today()

            def work(reader: Reader, snapshot: CatalogSnapshot = snapshot, today: date = today) -> T:
                return Catalog(reader, snapshot, today).ask(question, *args, **more)

            try:
                if on_loop and self.loop_connection is not None:
                    self.loop_connection.small_catalog = snapshot.sizes <= SMALL_CATALOG
                    try:
                        return work(self.loop_connection)
                    except TakesLong:
                        on_loop = False
                if question not in COMPUTING:
                    return await or_busy(self._threads.run(work))
                with tracing.span("fit"):
                    return await or_busy(self._computing.run(work))
            except CatalogChanged:
                self._watcher.expire()
        raise changes_too_fast()

    async def ask_once(self, key: Hashable, question: Callable[[Catalog], T]) -> T:
        """Ask a question once for each key, revision and day; the answer must not be changed.

        The answers to the last 64 are kept.
        """
        kept = (key, (await self.snapshot()).revision, self.today())
        if kept not in self._kept:
            self._kept[kept] = await self.ask(question)
        answer: T = self._kept[kept]
        return answer

    async def compute(self, work: Callable[P, T], *args: P.args, **more: P.kwargs) -> T:
        """Compute something that needs no catalog, in the thread for arithmetic; raises Busy."""
        with tracing.span("fit"):
            return await or_busy(self._computing.compute(work, *args, **more))

    @property
    def queues(self) -> tuple[ReadingThreads, ...]:
        """The threads that questions wait for."""
        return self._threads, self._computing

    def close(self) -> None:
        """Stop the threads and close the connections."""
        self._computing.close()
        self._threads.close()
        if self.loop_connection is not None:
            self.loop_connection.close()

    def _reconnect(self) -> None:
        """Open new connections after an outage: those of before may be broken, or hold pages of a damaged file."""
        if self.loop_connection is not None:
            self.loop_connection.close()
        self._database.dispose()

    async def snapshot(self) -> CatalogSnapshot:
        """Return the snapshot of the current revision; raises NotReady if there is no catalog."""
        state = await self._watcher.refresh()
        if state.snapshot is None:
            raise NotReady(state.unavailable)
        return state.snapshot

    async def health(self) -> CatalogHealth:
        """Return the state of the catalog, read in the watcher's thread; raises NotReady if there is none.

        What an ingest changes is read once for each revision and day.
        """
        revision, generation = await self.revision(), self._watcher.state.generation
        if self._kept_ages is None or self._kept_ages[0] != generation:
            freshness = await self._watcher.read(load_freshness, self.today())
            self._kept_ages = generation, freshness, await self._watcher.read(load_last_ingests)
        _, freshness, last_ingests = self._kept_ages
        refreshes = await self._watcher.read(load_feed_refreshes)
        replication = await self._watcher.read(load_replication)
        return CatalogHealth(revision, freshness, last_ingests, refreshes, replication)

    async def revision(self) -> Mapping[str, Any]:
        """Return the current revision; raises NotReady, which says what to do, if there is no catalog.

        Also where the revision can be read but queries fail, as with a server that has no connection left.
        """
        state = await self._watcher.refresh()
        reason = state.unavailable or self._watcher.outages.recent_cause
        if state.revision is None or reason:
            raise NotReady(reason)
        return state.revision
