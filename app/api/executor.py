"""Runs catalog queries for endpoints: short ones on the event loop, long ones and those with a session in threads."""

import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from datetime import date, datetime
from functools import partial
from typing import Any, Concatenate, ParamSpec, TypeVar

from sqlalchemy import Engine
from sqlmodel import Session

from app.catalog.queries.freshness import Freshness, load_freshness
from app.catalog.queries.ingests import FeedRefresh, load_feed_refreshes, load_last_ingests
from app.catalog.queries.params import SizeFilter, SizeSearch
from app.catalog.queries.sizes import JsonPage, find_sizes
from app.catalog.queries.snapshot import MAX_ATTEMPTS, CatalogSnapshot, changes_too_fast
from app.db.executors import QueueFull, SessionThreads, make_plan_executor
from app.db.replication import Replication, load_replication
from app.db.statements import QueryPlan, run_plan
from app.errors import Busy, CatalogChanged, NotReady
from app.http.late_models import LateModel
from app.http.revision import RevisionWatcher
from app.telemetry import tracing

P = ParamSpec("P")
T = TypeVar("T")
_log = logging.getLogger(__name__)
MakePlan = Callable[[CatalogSnapshot, date], QueryPlan[T]]
"""Makes a plan for the snapshot of a revision and a day; called again where a connection breaks."""

_MAX_KEPT = 64
"""How many results `run_and_keep` keeps; those of the search page's filters have about 30 kB each."""


class QueryExecutor:
    """Runs the catalog queries of one server process, each over the current revision of the catalog."""

    def __init__(self, engine: Engine, watcher: RevisionWatcher, today: Callable[[], date]) -> None:
        self._engine, self._watcher, self.today = engine, watcher, today
        guard = watcher.while_reachable
        self._io_threads = SessionThreads(engine, guard=guard)
        self._cpu_thread = SessionThreads(engine, 1, name="computing", guard=guard)
        self._freshness: tuple[str, Freshness] | None = None
        self._last_ingests: tuple[int, Mapping[str, datetime]] | None = None
        self._kept: OrderedDict[Hashable, Any] = OrderedDict()
        self.plan_executor = make_plan_executor(engine, self._io_threads, guard)
        watcher.on_return(self._reconnect)

    async def run(self, make_plan: MakePlan[T]) -> T:
        """Run a query that takes the database little time; raises NotReady if there is no catalog."""

        async def ask(snapshot: CatalogSnapshot) -> T:
            make = partial(make_plan, snapshot, self.today())
            return await _or_busy(self.plan_executor.run(make, small_catalog=snapshot.small))

        return await self._ask(ask)

    async def find_sizes(self, search: SizeSearch, *, offset: int = 0) -> JsonPage:
        """Find a page of sizes, as `app.catalog.queries.sizes` does; raises NotReady if there is no catalog."""
        find = partial(find_sizes, search, offset=offset)
        return await (self.run_in_thread(find) if search.names_a_day else self.run(find))

    async def _ask(self, ask: Callable[[CatalogSnapshot], Awaitable[T]]) -> T:
        """Ask a question of the newest revision, and again if an ingest commits meanwhile; raises Busy."""
        for _ in range(MAX_ATTEMPTS):
            try:
                return await ask(await self.snapshot())
            except CatalogChanged:
                self._watcher.expire()
        raise changes_too_fast()

    async def run_in_thread(self, make_plan: MakePlan[T]) -> T:
        """Run a query that takes the database long, in a thread; raises NotReady if there is no catalog."""

        async def ask(snapshot: CatalogSnapshot) -> T:
            return await _or_busy(self._io_threads.run(_run, partial(make_plan, snapshot, self.today())))

        return await self._ask(ask)

    async def run_and_keep(self, search: SizeFilter, make_plan: MakePlan[T]) -> T:
        """Run a query in a thread once for each search, revision and day; the result must not be changed.

        The results of the last 64 are kept. Raises NotReady if there is no catalog.
        """
        kept = (search, (await self.snapshot()).revision, self.today())
        if kept not in self._kept:
            result = await self.run_in_thread(make_plan)
            self._kept[kept] = result
            if len(self._kept) > _MAX_KEPT:
                self._kept.popitem(last=False)
            return result
        self._kept.move_to_end(kept)
        found: T = self._kept[kept]
        return found

    async def run_cpu_bound(self, make_plan: MakePlan[T]) -> T:
        """Run a query with long arithmetic in the one thread for such queries; raises NotReady if there is no catalog.

        There is one thread because Python computes in one at a time: several would only compete for it.
        """

        async def ask(snapshot: CatalogSnapshot) -> T:
            return await _or_busy(self._cpu_thread.run(_run, partial(make_plan, snapshot, self.today())))

        with tracing.span("fit"):
            return await self._ask(ask)

    async def run_in_session(self, work: Callable[Concatenate[Session, P], T], *args: P.args, **more: P.kwargs) -> T:
        """Call a function with a session, in a thread; raises NotReady if there is no catalog."""
        await self.snapshot()
        return await _or_busy(self._io_threads.run(work, *args, **more))

    async def run_with_snapshot(self, work: Callable[[Session, CatalogSnapshot], T]) -> T:
        """Call a function with a session and the snapshot of the newest revision, in a thread, as `run` does."""

        async def ask(snapshot: CatalogSnapshot) -> T:
            return await _or_busy(self._io_threads.run(work, snapshot))

        return await self._ask(ask)

    async def to_json(self, model: LateModel, make_plan: Callable[[CatalogSnapshot], QueryPlan[Any]]) -> str:
        """Run a query that depends on no day as `run` does, and serialize its result as a model."""
        return model.to_json(await self.run(lambda snapshot, _: make_plan(snapshot)))

    @property
    def queues(self) -> tuple[SessionThreads, ...]:
        """The threads that queries wait for."""
        return self._io_threads, self._cpu_thread

    async def close(self) -> None:
        """Stop the threads and close the connections."""
        self._cpu_thread.close()
        self._io_threads.close()
        await self.plan_executor.close()

    def _reconnect(self) -> None:
        """Open new connections after an outage: those of before may be broken, or hold pages of a damaged file."""
        self.plan_executor.reconnect()
        self._engine.dispose()

    async def snapshot(self) -> CatalogSnapshot:
        """Return the snapshot of the current revision; raises NotReady if there is no catalog."""
        state = await self._watcher.refresh()
        if state.snapshot is None:
            raise NotReady(state.unavailable)
        return state.snapshot

    async def freshness(self) -> Freshness:
        """Return how old the newest prices and rates are; read once for each revision and day, in the watcher's thread.

        Raises NotReady if there is no catalog; what has been read is known also while the database is away.
        """
        state = await self._watcher.refresh()
        if self._freshness is None or self._freshness[0] != state.generation:
            if state.generation is None or state.unavailable:
                raise NotReady(state.unavailable)
            self._freshness = state.generation, await self._watcher.read(load_freshness, self.today())
        return self._freshness[1]

    async def last_ingests(self) -> Mapping[str, datetime]:
        """Return when each source last changed the catalog; read once for each revision, in the watcher's thread.

        Raises NotReady if there is no catalog.
        """
        number = (await self.revision())["number"]
        if self._last_ingests is None or self._last_ingests[0] != number:
            self._last_ingests = number, await self._watcher.read(load_last_ingests)
        return self._last_ingests[1]

    async def feed_refreshes(self) -> Sequence[FeedRefresh]:
        """Return how each feed was refreshed last; read each time, since one that failed makes no revision."""
        return await self._watcher.read(load_feed_refreshes)

    async def replication(self) -> Replication:
        """Return how far the database is behind the one that it follows, read each time in the watcher's thread."""
        return await self._watcher.read(load_replication)

    async def revision(self) -> Mapping[str, Any]:
        """Return the current revision; raises NotReady, which says what to do, if there is no catalog.

        Also where the revision can be read but queries fail, as with a server that has no connection left.
        """
        state = await self._watcher.refresh()
        reason = state.unavailable or self._watcher.recent_failure
        if state.revision is None or reason:
            raise NotReady(reason)
        return state.revision


def _run(session: Session, make_plan: Callable[[], QueryPlan[T]]) -> T:
    return run_plan(session, make_plan())


async def _or_busy(answer: Awaitable[T]) -> T:
    """Wait for an answer; raises Busy if it cannot be queued."""
    try:
        return await answer
    except QueueFull:
        raise Busy("Too many requests wait for the database. Retry in some seconds.") from None
