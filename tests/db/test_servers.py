"""URLs of several PostgreSQL servers."""

from contextlib import ExitStack

import pytest
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import make_url

from app.db.databases import open_database
from app.db.engines import choice_of, make_engine, parse_url
from app.db.errors import UnsupportedUrl

SEVERAL = {
    "postgresql://u@a:5432,b:5433/n": ("a,b", "5432,5433"),
    "postgresql://a,b/n?target_session_attrs=read-write": ("a,b", ","),
    "postgresql+psycopg://u:p%40@a,b:1/n": ("a,b", ",1"),
    "postgres://[::1]:5432,10.0.0.1:5433/n": ("::1,10.0.0.1", "5432,5433"),
    "postgresql://u@/n?host=a,b&port=1,2": ("a,b", "1,2"),
}


@pytest.mark.parametrize(("url", "servers"), SEVERAL.items())
def test_servers_of_a_url_reach_libpq_in_their_order(url: str, servers: tuple[str, str]) -> None:
    engine = make_engine(url)
    _, arguments = engine.dialect.create_connect_args(engine.url)
    assert (arguments["host"], arguments["port"]) == servers
    assert arguments["dbname"] == "n"
    text = engine.url.set(drivername="postgresql").render_as_string(hide_password=False)
    told = conninfo_to_dict(text)
    assert (told["host"], told["port"]) == servers
    assert told.get("user") == (engine.url.username or None)


@pytest.mark.parametrize(
    "rest", ["s3c@ret@h/n", "s3c@ret/x@h:5432/n", "s3c@ret?x=y@h/n", "s3c@ret,x@h1:1,h2:2/n", "s3c@ret:x@h/n"]
)
def test_a_password_with_an_at_sign_is_refused_and_not_shown(rest: str) -> None:
    with pytest.raises(UnsupportedUrl, match="an @ in the password is written %40") as refused:
        make_engine(f"postgresql://u:{rest}")
    assert not any(part in str(refused.value) for part in ("s3c", "ret", "x@"))


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://u@corp:s3c%40ret/x@h/n?sslpassword=s3c", "postgresql://u%40corp:***@h/n"),
        ("postgresql://u@h:5432,i/n?password=s3c", "postgresql://u@/n?host=h%2Ci&port=5432%2C"),
        ("sqlite:///a@b@c.db", "sqlite:///a%40b%40c.db"),
    ],
)
def test_a_url_is_shown_without_its_passwords(url: str, shown: str) -> None:
    assert open_database(url).shown_url == shown


@pytest.mark.parametrize("url", ["postgresql://u@a:5432/n", "postgresql:///n?host=/run/pg", "sqlite:///a,b.db"])
def test_a_url_of_one_server_is_as_it_was(url: str) -> None:
    assert choice_of(parse_url(url)) is None


def test_the_current_server_is_tried_first_by_all_engines_of_a_url() -> None:
    url = parse_url("postgresql://a:1,b:2,c:3/n")
    choice = choice_of(url)
    assert choice is not None
    assert choice is choice_of(parse_url("postgresql://a:1,b:2,c:3/n"))
    assert choice.in_order() == {"host": "a,b,c", "port": "1,2,3"}
    choice.current = ("b", "2")
    assert choice.in_order() == {"host": "b,a,c", "port": "2,1,3"}
    choice.current = None


def test_all_connections_move_when_one_is_opened_to_another_server(database_url: str) -> None:
    url = make_url(database_url)
    if url.get_backend_name() != "postgresql":
        pytest.skip("SQLite has no servers")
    folder = url.query["host"]
    first, second = (f"{folder}", ""), (f"{folder}/.", "")  # one server by two names
    engine = make_engine(str(url.update_query_dict({"host": f"{first[0]},{second[0]}", "port": ","})))
    choice = choice_of(engine.url)
    assert choice is not None
    with ExitStack() as open_connections:
        pooled = [open_connections.enter_context(engine.connect()) for _ in range(3)]
        assert choice.current == first
        choice.current = second
        opened = open_connections.enter_context(engine.connect())
        assert choice.server_of(opened.connection.dbapi_connection) == second, (
            "the server that was chosen is tried first"
        )
    del pooled
    with engine.connect() as connection:
        assert choice.server_of(connection.connection.dbapi_connection) == second
    choice.current = first
    with engine.connect() as connection:
        assert choice.server_of(connection.connection.dbapi_connection) == first
    engine.dispose()
