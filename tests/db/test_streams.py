"""A stream takes rows as they come, and lets go of the database whenever it is told to, or breaks."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from app.db.databases import Database, open_database
from app.db.errors import DatabaseError
from app.db.executors import BLOCK_ROWS, Stream, StreamStopped
from app.db.statements import BoundStatement, Statement
from tests.waiting import LONGEST_SECONDS


def numbers(places: int) -> tuple[str, str]:
    """A number, and what it is selected from: ten to the power of `places` rows."""
    digits = " union all ".join(f"select {digit} as digit" for digit in range(10))
    joined = " cross join ".join(f"({digits}) as d{place}" for place in range(places))
    return " + ".join(f"d{place}.digit * {10**place}" for place in range(places)), joined


def rows_of(stream: Stream) -> int:
    return sum(len(block) for block in stream.blocks())


@pytest.fixture
def unpooled(database_url: str) -> Iterator[Database]:
    database = open_database(database_url, serving=True, pool_size=0)
    yield database
    database.dispose()


def ask(places: int, below: int) -> BoundStatement:
    number, source = numbers(places)
    sql = f"select {number} as number from {source} where {number} < :below order by number"
    return BoundStatement(Statement(lambda _dialect: sql), {"below": below})


def test_a_stream_gives_every_row_once_in_blocks(unpooled: Database) -> None:
    running: set[Stream] = set()
    blocks = list(Stream(unpooled, ask(4, 2500), running).blocks())
    assert [len(block) for block in blocks] == [BLOCK_ROWS, BLOCK_ROWS, 500]
    assert [row for block in blocks for row in block] == [(number,) for number in range(2500)]
    assert not running


def test_a_stream_at_its_end_stays_there(unpooled: Database) -> None:
    stream = Stream(unpooled, ask(1, 3))
    assert len(stream.fetch_block()) == 3
    assert [stream.fetch_block(), stream.fetch_block()] == [[], []]


def test_a_stream_that_was_stopped_does_not_look_as_if_it_had_ended(unpooled: Database) -> None:
    running: set[Stream] = set()
    stream = Stream(unpooled, ask(4, 2500), running)
    stream.fetch_block()
    stream.stop()
    assert not running
    with pytest.raises(StreamStopped):
        stream.fetch_block()


def test_a_query_that_runs_is_interrupted(unpooled: Database) -> None:
    running: set[Stream] = set()
    _, endless = numbers(12)
    counted = Statement(lambda _dialect: f"select count(*) from {endless}")
    stream = Stream(unpooled, BoundStatement(counted), running)
    with ThreadPoolExecutor(1) as thread:
        taken = thread.submit(stream.fetch_block)
        for _ in range(10):  # not at once: a pause of the whole process takes one of them
            time.sleep(0.05)
        assert not taken.done()
        stream.stop()
        with pytest.raises(DatabaseError):
            taken.result(timeout=LONGEST_SECONDS)
    assert not running


def test_what_the_database_refuses_leaves_nothing_behind(unpooled: Database) -> None:
    running: set[Stream] = set()
    nowhere = Statement(lambda _dialect: "select nothing")
    with pytest.raises(DatabaseError):
        Stream(unpooled, BoundStatement(nowhere), running).fetch_block()
    assert not running


@pytest.mark.parametrize("wait_seconds", [0, 0.001, 0.005, 0.02])
def test_it_may_be_stopped_at_any_moment(unpooled: Database, wait_seconds: float) -> None:
    running: set[Stream] = set()
    with ThreadPoolExecutor(4) as threads:
        for _ in range(10):
            stream = Stream(unpooled, ask(4, 3500), running)
            taken = threads.submit(rows_of, stream)
            time.sleep(wait_seconds)
            for stopping in [threads.submit(stream.stop) for _ in range(3)]:
                assert stopping.result(timeout=LONGEST_SECONDS) is None
            error = taken.exception(timeout=LONGEST_SECONDS)
            assert isinstance(error, StreamStopped | DatabaseError) if error is not None else taken.result() == 3500
    assert not running
