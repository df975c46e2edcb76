"""Threads that read the database for a server that must not wait."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Concatenate, ParamSpec, TypeVar

from sqlalchemy import Engine
from sqlmodel import Session

from app.db.engines import reading

P = ParamSpec("P")
T = TypeVar("T")

READERS = 4
"""So many questions are read at once. With one thread that looks for revisions and one that computes, they are fewer
than the pool has connections (`app.db.engines`): who has a thread never waits for a connection, and who waits for a
thread waits in the event loop and holds nothing."""


class ReadingThreads:
    """Runs work that needs a session, all of it in one thread: the session is opened, asked and closed there."""

    def __init__(self, engine: Engine, most: int = READERS, *, name: str = "reading") -> None:
        self._engine = engine
        self._threads = ThreadPoolExecutor(most, thread_name_prefix=name)

    async def run(self, work: Callable[Concatenate[Session, P], T], *args: P.args, **more: P.kwargs) -> T:
        """Do the work as soon as a thread is free, and give what it returns or raises."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, partial(self._with_session, work, *args, **more))

    def close(self) -> None:
        """Let the threads go; what waits for one is not begun any more."""
        self._threads.shutdown(cancel_futures=True)

    def _with_session(self, work: Callable[Concatenate[Session, P], T], *args: P.args, **more: P.kwargs) -> T:
        with reading(self._engine) as session:
            return work(session, *args, **more)
