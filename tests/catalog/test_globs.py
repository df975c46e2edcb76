"""Globs are matched alike in Python and in SQL, and in little time whatever they are."""

from collections.abc import Iterator
from functools import cache
from time import process_time

import psutil
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, Engine, func, literal, select

from app.catalog.names import glob_to_like
from app.catalog.queries.lookups import compile_glob
from app.db.engines import make_engine

GLOBS = st.text("ab_%\\.[*?", max_size=12)
NAMES = st.text("ab_%\\.[", min_size=1, max_size=10)
WORST = ("*?" * 59, "?*" * 59, "*a" * 59, "*a?" * 39 + "b", "a*" * 59, "*aab" * 29, "*" * 119, "?" * 119, "*a*?b" * 23)


@pytest.fixture(scope="module")
def connection(template_url: str) -> Iterator[Connection]:
    engine: Engine = make_engine(template_url, pooled=False)
    with engine.connect() as connected:
        yield connected
    engine.dispose()


def matches(glob: str, text: str) -> bool:
    """Whether a glob matches, by its definition: one character after the other."""

    @cache
    def rest_matches(at: int, place: int) -> bool:
        if at == len(glob):
            return place == len(text)
        if glob[at] == "*":
            return any(rest_matches(at + 1, later) for later in range(place, len(text) + 1))
        return place < len(text) and glob[at] in ("?", text[place]) and rest_matches(at + 1, place + 1)

    return rest_matches(0, 0)


@settings(max_examples=3 * settings().max_examples)
@given(glob=GLOBS, names=st.lists(NAMES, min_size=1, max_size=6, unique=True))
@example(glob="*?*?*?", names=["ab", "aba"])
@example(glob="*a*b", names=["ab", "ba", "aab", "abab", "aba"])
@example(glob="*ab?*b", names=["abb", "abab", "abaab", "aab"])
def test_python_and_sql_match_the_same(connection: Connection, glob: str, names: list[str]) -> None:
    expected = [matches(glob, name) for name in names]
    wanted = compile_glob(glob)
    assert [wanted.fullmatch(name) is not None for name in names] == expected
    in_sql = [literal(name).like(glob_to_like(glob), escape="\\") for name in names]
    assert [bool(one) for one in connection.execute(select(*in_sql)).one()] == expected


@pytest.mark.parametrize("glob", WORST)
@pytest.mark.one_database
def test_no_glob_takes_long(glob: str) -> None:
    begun = process_time()
    compile_glob(glob).fullmatch("a" * 5_000)
    assert process_time() - begun < 0.03


@pytest.mark.parametrize("glob", WORST)
def test_no_glob_takes_a_database_long(connection: Connection, glob: str) -> None:
    query = select(*(literal("a" * length).like(glob_to_like(glob), escape="\\") for length in range(1, 200, 4)))
    before = _seconds(connection)
    connection.execute(query).one()
    assert _seconds(connection) - before < 0.2


def _seconds(connection: Connection) -> float:
    """Return the CPU time that the database has taken, which for SQLite is that of this process."""
    if connection.dialect.name == "sqlite":
        return process_time()
    times = psutil.Process(connection.execute(select(func.pg_backend_pid())).scalar_one()).cpu_times()
    return float(times.user + times.system)
