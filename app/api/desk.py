"""Where endpoints that are asked often take their answers: rows without objects, and no thread for what is short."""

from collections.abc import Callable, Mapping
from datetime import date
from typing import Any, Concatenate, ParamSpec, TypeVar

from pydantic import BaseModel
from sqlalchemy import Engine
from sqlmodel import Session

from app.api.door.watch import Watch
from app.catalog.ask.known import Known
from app.db.readers import make_reader
from app.db.statements import Question, answer
from app.db.threads import ReadingThreads
from app.errors import NotReady

P = ParamSpec("P")
T = TypeVar("T")


class Desk:
    """Asks questions of the catalog for a running server."""

    def __init__(self, engine: Engine, watch: Watch, today: Callable[[], date]) -> None:
        self._watch, self.today = watch, today
        self._reading, self._reckoning = ReadingThreads(engine), ReadingThreads(engine, 1, name="reckoning")
        self.reader = make_reader(engine, self._reading)

    async def ask(self, question: Callable[[Known, date], Question[T]]) -> T:
        """Run a question over what is known of the revision that holds; raises NotReady where there is no catalog."""
        known = await self.known()
        return await self.reader.run(question(known, self.today()), brief=known.small)

    async def ask_beside(self, question: Callable[[Known, date], Question[T]]) -> T:
        """Run a question that the database takes long for in a thread, all of it; raises NotReady as `ask` does."""
        known = await self.known()
        return await self._reading.run(answer, question(known, self.today()))

    async def reckon(self, question: Callable[[Known, date], Question[T]]) -> T:
        """Run a question whose arithmetic takes long beside the loop; raises NotReady as `ask` does.

        One after the other: Python computes in one thread at a time, and several only take it from each other.
        """
        known = await self.known()
        return await self._reckoning.run(answer, question(known, self.today()))

    async def read(self, work: Callable[Concatenate[Session, P], T], *args: P.args, **more: P.kwargs) -> T:
        """Do what needs a session in a thread, whether there is a catalog or not."""
        return await self._reading.run(work, *args, **more)

    async def text(
        self, shape: type[BaseModel], work: Callable[Concatenate[Session, P], Any], *args: P.args, **more: P.kwargs
    ) -> str:
        """Do what needs a session in a thread, and write there what it found as JSON of a shape."""

        def written(session: Session) -> str:
            found = shape.model_validate(work(session, *args, **more), from_attributes=True)
            return found.model_dump_json(by_alias=True)

        return await self._reading.run(written)

    async def close(self) -> None:
        """Let the threads and the connections go."""
        self._reckoning.close()
        self._reading.close()
        await self.reader.close()

    async def known(self) -> Known:
        """What is known of the revision that holds; raises NotReady where there is no catalog."""
        state = await self._watch.look()
        if state.known is None:
            raise NotReady(state.trouble)
        return state.known

    async def revision(self) -> Mapping[str, Any]:
        """The revision that holds; raises NotReady where there is no catalog, with what to do."""
        state = await self._watch.look()
        if state.revision is None:
            raise NotReady(state.trouble)
        return state.revision
