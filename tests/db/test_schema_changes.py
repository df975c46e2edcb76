"""A service goes on after a migration has changed the type of a column that its connections read."""

import asyncio

from sqlalchemy import Engine, text

from app.db.databases import open_database
from app.db.engines import make_engine
from app.db.executors import LoopConnection, ReadingThreads
from app.db.sqlite import SqliteDatabase
from app.db.statements import BoundStatement, DriverReader, Statement

TIMES_UNTIL_PREPARED = 10
"""The driver of PostgreSQL prepares a statement when it is run for the sixth time."""


BOUND = BoundStatement(Statement(lambda _dialect: "select figure from changing", short=True), {})


def read(reader: DriverReader) -> str:
    return str(reader.fetch(BOUND)[0][0])


def test_a_column_whose_type_has_changed_is_read_by_threads_and_by_the_event_loop(database_url: str) -> None:
    writer, serving = make_engine(database_url), open_database(database_url, serving=True)

    async def ask() -> list[tuple[str, str]]:
        threads = ReadingThreads(serving, 1)
        loop = LoopConnection(serving) if isinstance(serving, SqliteDatabase) else None
        found = []
        try:
            for kind, written in (("integer", "7"), ("text", "'eight'"), ("integer", "9")):
                change_type(writer, kind, written)
                for _ in range(TIMES_UNTIL_PREPARED):
                    by_thread = await threads.run(read)
                    ((figure,),) = loop.fetch(BOUND) if loop is not None else [(by_thread,)]
                found.append((by_thread, str(figure)))
        finally:
            if loop is not None:
                loop.close()
            threads.close()
        return found

    try:
        assert asyncio.run(ask()) == [("7", "7"), ("eight", "eight"), ("9", "9")]
    finally:
        writer.dispose()
        serving.dispose()


def change_type(writer: Engine, kind: str, figure: str) -> None:
    with writer.begin() as connection:
        connection.execute(text("drop table if exists changing"))
        connection.execute(text(f"create table changing as select cast({figure} as {kind}) figure"))
