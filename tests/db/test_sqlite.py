"""An SQLite database is read at the URL that SQLAlchemy writes it at, on connections that follow its file."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import URL, make_url, text

from app.db.databases import Database, open_database
from app.db.engines import make_engine
from app.db.errors import MISSING, DatabaseError, UnsupportedUrl
from app.db.sqlite import SqliteUrl
from app.db.statements import BoundStatement, Statement

pytestmark = pytest.mark.one_database

URLS = (
    *("sqlite://", "sqlite:///:memory:", "sqlite:///x.db", "sqlite:////a/b.db", "sqlite:///a@b@c,d.db"),
    *("sqlite:///a%20%23%3F%25+b.db?timeout=5", "sqlite:///file:a.db?uri=true&mode=ro&cache=shared"),
)
FIGURE = BoundStatement(Statement(lambda _dialect: "select figure from written"), {})


def write(file: Path, figure: int) -> None:
    engine = make_engine(URL.create("sqlite", database=str(file)).render_as_string(), pooled=False)
    with engine.begin() as connection:
        connection.execute(text(f"create table written as select {figure} as figure"))


def read(database: Database) -> int:
    with database.connect() as reader:
        return int(reader.fetch(FIGURE)[0][0])


@pytest.mark.parametrize("url", URLS)
def test_a_url_means_what_it_means_to_sqlalchemy(url: str) -> None:
    parsed, expected = SqliteUrl.parse(url), make_url(url)
    assert parsed == (expected.database or "", expected.query)
    assert str(parsed) == expected.render_as_string()


@pytest.mark.parametrize("url", ["sqlite://host/x.db", "sqlite+aiosqlite:///x.db", "sqlite:x.db", "mysql:///x"])
def test_urls_of_other_forms_are_refused(url: str) -> None:
    with pytest.raises(UnsupportedUrl):
        open_database(url)


@pytest.mark.parametrize("serving", [False, True])
@pytest.mark.parametrize("name", ["x.db", "a %41#?&=+é.db"])
def test_a_file_of_any_name_is_read(tmp_path: Path, name: str, serving: bool) -> None:
    file = tmp_path / name
    write(file, 7)
    plain = URL.create("sqlite", database=str(file))
    for url in (
        plain,
        plain.set(drivername="sqlite+pysqlite"),
        plain.set(database=file.as_uri(), query={"uri": "true"}),
    ):
        assert read(open_database(url.render_as_string(), serving=serving, pool_size=0)) == 7


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[Database]:
    """A database whose connections are kept."""
    write(tmp_path / "x.db", 1)
    database = open_database(f"sqlite:///{tmp_path / 'x.db'}", serving=True, pool_size=2)
    yield database
    database.dispose()


def test_up_to_so_many_connections_are_kept(pool: Database) -> None:
    readers = [pool.connect() for _ in range(3)]
    assert pool.connections == (3, 0)
    for reader in readers:
        reader.close()
    assert pool.connections == (0, 2)
    with pool.connect() as again:
        assert again in readers


def test_a_replaced_file_is_opened_again_also_where_the_old_one_was_in_use(pool: Database, tmp_path: Path) -> None:
    write(tmp_path / "y.db", 2)
    in_use = pool.connect()
    (tmp_path / "y.db").replace(tmp_path / "x.db")
    assert read(pool) == 2
    assert in_use.fetch(FIGURE) == [(1,)]
    in_use.close()
    assert pool.connections == (0, 1)
    assert read(pool) == 2


def test_a_missing_file_is_not_created(pool: Database, tmp_path: Path) -> None:
    (tmp_path / "x.db").unlink()
    with pytest.raises(DatabaseError, match=MISSING):
        pool.connect()
    assert not (tmp_path / "x.db").exists()


def test_connections_that_are_in_use_when_all_are_given_up_are_closed_afterwards(pool: Database) -> None:
    reader = pool.connect()
    pool.dispose()
    assert reader.fetch(FIGURE) == [(1,)]
    reader.close()
    assert pool.connections == (0, 0)


def test_nothing_can_be_written(pool: Database, tmp_path: Path) -> None:
    for database in (pool, open_database(pool.url, pool_size=0)):
        with database.connect() as reader, pytest.raises(DatabaseError, match="readonly"):
            reader.fetch(BoundStatement(Statement(lambda _dialect: "delete from written"), {}))
    assert [file.name for file in tmp_path.iterdir() if not file.name.startswith("x.db")] == []
