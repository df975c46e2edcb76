"""Runs catalog queries for endpoints: short ones on the event loop, long ones and those with a session in threads."""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable, Mapping
from datetime import date
from typing import Any, Concatenate, ParamSpec, TypeVar

from pydantic import BaseModel
from sqlalchemy import Engine
from sqlmodel import Session

from app.catalog.queries.freshness import Freshness, load_freshness
from app.catalog.queries.snapshot import CatalogSnapshot
from app.db.executors import QueueFull, SessionThreads, make_plan_executor
from app.db.statements import QueryPlan, run_plan
from app.errors import Busy, NotReady
from app.http.revision import RevisionWatcher

P = ParamSpec("P")
T = TypeVar("T")

_MAX_KEPT = 64
"""How many results `run_and_keep` keeps; those of the search page's filters have about 30 kB each."""


class QueryExecutor:
    """Runs the catalog queries of one server process, each over the current revision of the catalog."""

    def __init__(self, engine: Engine, watcher: RevisionWatcher, today: Callable[[], date]) -> None:
        self._watcher, self.today = watcher, today
        self._io_threads, self._cpu_thread = SessionThreads(engine), SessionThreads(engine, 1, name="computing")
        self._column_thread = SessionThreads(engine, 1, name="counting")  # does not wait for fits, which take longer
        self._freshness: tuple[str, Freshness] | None = None
        self._kept: OrderedDict[Hashable, Any] = OrderedDict()
        self.plan_executor = make_plan_executor(engine, self._io_threads)

    async def run(self, make_plan: Callable[[CatalogSnapshot, date], QueryPlan[T]]) -> T:
        """Run a query that takes the database little time; raises NotReady if there is no catalog."""
        snapshot = await self.snapshot()
        return await _or_busy(self.plan_executor.run(make_plan(snapshot, self.today()), small_catalog=snapshot.small))

    async def run_in_thread(self, make_plan: Callable[[CatalogSnapshot, date], QueryPlan[T]]) -> T:
        """Run a query that takes the database long, in a thread; raises NotReady if there is no catalog."""
        snapshot = await self.snapshot()
        return await _or_busy(self._io_threads.run(run_plan, make_plan(snapshot, self.today())))

    async def run_on_columns(self, make_plan: Callable[[CatalogSnapshot, date], QueryPlan[T]]) -> T:
        """Run a query on the columns of all sizes, in the one thread for such queries, which also loads them.

        Raises NotReady if there is no catalog.
        """
        snapshot = await self.snapshot()
        return await _or_busy(self._column_thread.run(run_plan, make_plan(snapshot, self.today())))

    async def run_and_keep(self, key: Hashable, make_plan: Callable[[CatalogSnapshot, date], QueryPlan[T]]) -> T:
        """Run a query as `run_on_columns` does, once for each key, revision and day; the result must not be changed.

        The results of the last 64 are kept. Raises NotReady if there is no catalog.
        """
        kept = (key, (await self.snapshot()).revision, self.today())
        if kept not in self._kept:
            result = await self.run_on_columns(make_plan)
            self._kept[kept] = result
            if len(self._kept) > _MAX_KEPT:
                self._kept.popitem(last=False)
            return result
        self._kept.move_to_end(kept)
        found: T = self._kept[kept]
        return found

    async def run_cpu_bound(self, make_plan: Callable[[CatalogSnapshot, date], QueryPlan[T]]) -> T:
        """Run a query with long arithmetic in the one thread for such queries; raises NotReady if there is no catalog.

        There is one thread because Python computes in one at a time: several would only compete for it.
        """
        snapshot = await self.snapshot()
        return await _or_busy(self._cpu_thread.run(run_plan, make_plan(snapshot, self.today())))

    async def run_in_session(self, work: Callable[Concatenate[Session, P], T], *args: P.args, **more: P.kwargs) -> T:
        """Call a function with a session, in a thread, without checking that there is a catalog."""
        return await _or_busy(self._io_threads.run(work, *args, **more))

    async def to_json(
        self, model: type[BaseModel], work: Callable[Concatenate[Session, P], Any], *args: P.args, **more: P.kwargs
    ) -> str:
        """Call a function with a session, in a thread, and serialize its result there as a model."""

        def serialize(session: Session) -> str:
            result = model.model_validate(work(session, *args, **more), from_attributes=True)
            return result.model_dump_json(by_alias=True)

        return await _or_busy(self._io_threads.run(serialize))

    async def close(self) -> None:
        """Stop the threads and close the connections."""
        self._cpu_thread.close()
        self._column_thread.close()
        self._io_threads.close()
        await self.plan_executor.close()

    async def snapshot(self) -> CatalogSnapshot:
        """Return the snapshot of the current revision; raises NotReady if there is no catalog."""
        state = await self._watcher.refresh()
        if state.snapshot is None:
            raise NotReady(state.unavailable)
        return state.snapshot

    async def freshness(self) -> Freshness:
        """Return how old the newest prices and rates are; read once for each revision and day, in the watcher's thread.

        Raises NotReady if there is no catalog.
        """
        generation = (await self._watcher.refresh()).generation
        if generation is None:
            raise NotReady(self._watcher.state.unavailable)
        if self._freshness is None or self._freshness[0] != generation:
            self._freshness = generation, await self._watcher.read(load_freshness, self.today())
        return self._freshness[1]

    async def revision(self) -> Mapping[str, Any]:
        """Return the current revision; raises NotReady, which says what to do, if there is no catalog."""
        state = await self._watcher.refresh()
        if state.revision is None:
            raise NotReady(state.unavailable)
        return state.revision


async def _or_busy(answer: Awaitable[T]) -> T:
    """Wait for an answer; raises Busy if it cannot be queued."""
    try:
        return await answer
    except QueueFull:
        raise Busy("Too many requests wait for the database. Retry in some seconds.") from None
