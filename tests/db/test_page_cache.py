"""A service has a connection for each of its threads, so each keeps few pages of SQLite."""

import pytest
from sqlalchemy import make_url

from app.db.databases import open_database
from app.db.statements import BoundStatement, DriverReader, Statement


def ask(reader: DriverReader, sql: str) -> int:
    return int(reader.fetch(BoundStatement(Statement(lambda _dialect: sql), {}))[0][0])


@pytest.mark.parametrize("pool_size", [9, 0])
def test_each_connection_of_a_service_keeps_half_a_mebibyte_of_pages(few_sizes_url: str, pool_size: int) -> None:
    if make_url(few_sizes_url).get_backend_name() != "sqlite":
        pytest.skip("PostgreSQL keeps pages in its own processes")
    database = open_database(few_sizes_url, serving=True, pool_size=pool_size)
    with database.connect() as first, database.connect() as second:
        kept_kib = [-ask(reader, "pragma cache_size") for reader in (first, second)]
        assert ask(first, "select count(*) from size") > 0
    database.dispose()
    assert kept_kib == [512, 512]
