"""A service has a connection for each of its threads, so each keeps few pages of SQLite."""

import pytest
from sqlalchemy import make_url

from app.db.engines import make_engine


@pytest.mark.parametrize("pooled", [True, False])
def test_each_connection_of_a_service_keeps_half_a_mebibyte_of_pages(few_sizes_url: str, pooled: bool) -> None:
    if make_url(few_sizes_url).get_backend_name() != "sqlite":
        pytest.skip("PostgreSQL keeps pages in its own processes")
    engine = make_engine(few_sizes_url, serving=True, pooled=pooled)
    with engine.connect() as first, engine.connect() as second:
        kept_kib = [-one.exec_driver_sql("pragma cache_size").scalar_one() for one in (first, second)]
        assert first.exec_driver_sql("select count(*) from size").scalar_one() > 0
    engine.dispose()
    assert kept_kib == [512, 512]
