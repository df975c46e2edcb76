"""A stream takes rows as they come, and lets go of the database whenever it is told to, or breaks."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy import Engine, Integer, Select, bindparam, func, literal_column, select, true, union_all
from sqlalchemy.exc import DBAPIError

from app.db.engines import make_engine
from app.db.executors import BLOCK_ROWS, Stream, StreamStopped
from app.db.statements import BoundStatement, Statement
from tests.waiting import LONGEST_SECONDS

DIGITS = union_all(*(select(literal_column(str(digit), Integer).label("digit")) for digit in range(10)))


def numbers(places: int) -> tuple[Any, Select[Any]]:
    """A query with ten to the power of `places` rows, each with its number."""
    digits = [DIGITS.subquery(f"d{place}") for place in range(places)]
    number = sum((table.c.digit * 10**place for place, table in enumerate(digits)), literal_column("0", Integer))
    joined: Any = digits[0]
    for table in digits[1:]:
        joined = joined.join(table, true())
    return number, select(number.label("number")).select_from(joined)


def rows_of(stream: Stream) -> int:
    return sum(len(block) for block in stream.blocks())


@pytest.fixture
def unpooled(database_url: str) -> Iterator[Engine]:
    engine = make_engine(database_url, pooled=False)
    yield engine
    engine.dispose()


def ask(places: int, below: int) -> BoundStatement:
    number, query = numbers(places)
    return BoundStatement(
        Statement(lambda: query.where(number < bindparam("below", type_=Integer)).order_by(number)), {"below": below}
    )


def test_a_stream_gives_every_row_once_in_blocks(unpooled: Engine) -> None:
    running: set[Stream] = set()
    blocks = list(Stream(unpooled, ask(4, 2500), running).blocks())
    assert [len(block) for block in blocks] == [BLOCK_ROWS, BLOCK_ROWS, 500]
    assert [row for block in blocks for row in block] == [(number,) for number in range(2500)]
    assert not running


def test_a_stream_at_its_end_stays_there(unpooled: Engine) -> None:
    stream = Stream(unpooled, ask(1, 3))
    assert len(stream.fetch_block()) == 3
    assert [stream.fetch_block(), stream.fetch_block()] == [[], []]


def test_a_stream_that_was_stopped_does_not_look_as_if_it_had_ended(unpooled: Engine) -> None:
    running: set[Stream] = set()
    stream = Stream(unpooled, ask(4, 2500), running)
    stream.fetch_block()
    stream.stop()
    assert not running
    with pytest.raises(StreamStopped):
        stream.fetch_block()


def test_a_query_that_runs_is_interrupted(unpooled: Engine) -> None:
    running: set[Stream] = set()
    _, endless = numbers(12)
    counted = Statement(lambda: select(func.count()).select_from(endless.subquery()))
    stream = Stream(unpooled, BoundStatement(counted, {}), running)
    with ThreadPoolExecutor(1) as thread:
        taken = thread.submit(stream.fetch_block)
        for _ in range(10):  # not at once: a pause of the whole process takes one of them
            time.sleep(0.05)
        assert not taken.done()
        stream.stop()
        with pytest.raises(DBAPIError):
            taken.result(timeout=LONGEST_SECONDS)
    assert not running


def test_what_the_database_refuses_leaves_nothing_behind(unpooled: Engine) -> None:
    running: set[Stream] = set()
    nowhere = Statement(lambda: select(literal_column("nothing", Integer)))
    with pytest.raises(DBAPIError):
        Stream(unpooled, BoundStatement(nowhere, {}), running).fetch_block()
    assert not running


@pytest.mark.parametrize("wait_seconds", [0, 0.001, 0.005, 0.02])
def test_it_may_be_stopped_at_any_moment(unpooled: Engine, wait_seconds: float) -> None:
    running: set[Stream] = set()
    with ThreadPoolExecutor(4) as threads:
        for _ in range(10):
            stream = Stream(unpooled, ask(4, 3500), running)
            taken = threads.submit(rows_of, stream)
            time.sleep(wait_seconds)
            for stopping in [threads.submit(stream.stop) for _ in range(3)]:
                assert stopping.result(timeout=LONGEST_SECONDS) is None
            error = taken.exception(timeout=LONGEST_SECONDS)
            assert isinstance(error, StreamStopped | DBAPIError) if error is not None else taken.result() == 3500
    assert not running
