"""Where endpoints that are asked often take their answers: rows without objects, and no thread for what is short."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from typing import TypeVar

from sqlalchemy import Engine

from app.api.door.watch import Watch
from app.catalog.ask.known import Known
from app.db.engines import reading
from app.db.readers import Reader
from app.db.statements import Question, answer
from app.errors import NotReady

T = TypeVar("T")


class Desk:
    """Asks questions of the catalog for a running server."""

    def __init__(self, engine: Engine, reader: Reader, watch: Watch, today: Callable[[], date]) -> None:
        self._engine, self._reader, self._watch, self.today = engine, reader, watch, today
        self._reckoning = ThreadPoolExecutor(1, thread_name_prefix="reckoning")

    async def ask(self, question: Callable[[Known, date], Question[T]]) -> T:
        """Run a question over what is known of the revision that holds; raises NotReady where there is no catalog."""
        known = await self.known()
        return await self._reader.run(question(known, self.today()), brief=known.small)

    async def ask_beside(self, question: Callable[[Known, date], Question[T]]) -> T:
        """Run a question that the database takes long for in a thread, all of it; raises NotReady as `ask` does."""
        known = await self.known()
        return await asyncio.to_thread(self._wait, question(known, self.today()))

    async def reckon(self, question: Callable[[Known, date], Question[T]]) -> T:
        """Run a question whose arithmetic takes long beside the loop; raises NotReady as `ask` does.

        One after the other: Python computes in one thread at a time, and several only take it from each other.
        """
        known = await self.known()
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._reckoning, self._wait, question(known, self.today()))

    def close(self) -> None:
        """Let the thread go."""
        self._reckoning.shutdown()

    def _wait(self, question: Question[T]) -> T:
        with reading(self._engine) as session:
            return answer(session, question)

    async def known(self) -> Known:
        """What is known of the revision that holds; raises NotReady where there is no catalog."""
        if not self._watch.fresh:
            await self._watch.look()
        known = self._watch.known
        if known is None:
            raise NotReady("The catalog is empty or its tables are missing; GET /readyz says what to do.")
        return known
