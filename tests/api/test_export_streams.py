"""Exports of a large catalog: bounded memory, clients that disconnect, and errors half-way."""

import gc
import io
import tracemalloc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pyarrow.parquet as pq  # type: ignore[import-untyped]  # has no type information
import pytest
from sqlalchemy import Engine, insert, literal, select, true, update
from sqlalchemy.orm import Session

from app.api import exports
from app.api.exports import MAX_CONCURRENT
from app.catalog.column_types import table_of
from app.catalog.models import Price, Region, Revision, Size, SizeJson, Source
from app.catalog.money import NANO_USD
from app.catalog.store.offers import save_derived
from app.db.engines import analyze, make_engine
from app.http.middleware import CacheMiddleware
from app.main import create_asgi_app
from app.settings import Settings
from tests.conftest import TODAY
from tests.databases import Databases
from tests.factories import NOW
from tests.servers import open_client, server
from tests.waiting import wait_until

SIZES, REGIONS = 1500, 40
PRICES = SIZES * REGIONS


def fill(engine: Engine) -> None:
    """1,500 sizes, each priced in 40 regions: 60,000 prices, 11 MB as NDJSON."""
    size, price, region = table_of(Size), table_of(Price), table_of(Region)
    cited = {"title": "t", "publisher": "p", "kind": "third_party", "sha256": "0"}
    about = {"provider": "azure", "verified": True, "disputed": False, "disputed_fields": "", "search_text": ""}
    with Session(engine) as session, session.begin():
        session.execute(insert(table_of(Source)), [{"id": "s", **cited}])
        session.execute(insert(region), [{"code": f"r{n:02}", "name": "r", "source_id": "s"} for n in range(REGIONS)])
        session.execute(insert(size), [{"key": f"x{n:04}", "name": f"Standard_X{n:04}", **about} for n in range(SIZES)])
        every = (size.c.key, region.c.code, literal("linux"), literal("on_demand"), literal(TODAY))
        values = (literal(NANO_USD), literal(value=False), literal("s"), literal(TODAY), literal(TODAY))
        priced = select(*every, *values)
        columns = (
            "size_key",
            "region",
            "os",
            "purchase",
            "valid_from",
            "nano_usd_per_hour",
            "approximate_date",
            "source_id",
            "known_from",
            "seen_until",
        )
        session.execute(insert(price).from_select(columns, priced.join_from(size, region, true())))
        save_derived(session, TODAY)
        revision = {"number": 1, "created_at": NOW, "digest": "0" * 64, "source_ids": ["s"], "counts": {}}
        session.execute(insert(table_of(Revision)), [revision])
        analyze(session)


@pytest.fixture(scope="module")
def filled_url(databases: Databases, template_url: str) -> Iterator[str]:
    url = databases.copy(template_url)
    engine = make_engine(url)
    fill(engine)
    engine.dispose()
    yield url
    databases.drop(url)


@pytest.fixture
def service(filled_url: str) -> CacheMiddleware:
    return create_asgi_app(Settings(_env_file=None, database_url=filled_url), today=lambda: TODAY)


@pytest.fixture
def large(service: CacheMiddleware) -> Iterator[httpx.Client]:
    with server(service) as url, open_client(url) as client:
        yield client


def lines(client: httpx.Client, path: str) -> int:
    with client.stream("GET", path, headers={"accept-encoding": "identity"}) as answer:
        assert answer.status_code == 200
        return sum(chunk.count(b"\n") for chunk in answer.iter_raw())


@pytest.mark.takes_seconds
def test_every_row_is_exported(large: httpx.Client) -> None:
    assert lines(large, "/prices.csv") == PRICES + 1
    assert lines(large, "/prices.ndjson") == PRICES
    assert lines(large, "/sizes.csv?sort=-usd_per_hour") == SIZES + 1


@pytest.mark.takes_seconds
@pytest.mark.first_database
def test_a_parquet_file_has_every_row_in_groups(large: httpx.Client) -> None:
    file = pq.ParquetFile(io.BytesIO(large.get("/prices.parquet").content))
    groups = [file.metadata.row_group(number).num_rows for number in range(file.num_row_groups)]
    assert (len(groups), sum(groups)) == (2, PRICES)
    listed = [(f"Standard_X{size:04}", f"r{region:02}") for size in range(SIZES) for region in range(REGIONS)]
    read = file.read(["size", "region"])
    assert list(zip(*(column.to_pylist() for column in read.columns), strict=True)) == listed


@pytest.mark.takes_seconds
def test_an_export_takes_the_memory_of_a_few_blocks(large: httpx.Client) -> None:
    lines(large, "/prices.csv?region=r01")
    gc.collect()
    tracemalloc.start()
    try:
        lines(large, "/prices.csv")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 3 * 2**20


def test_a_client_that_disconnects_stops_the_query(large: httpx.Client, service: CacheMiddleware) -> None:
    streams = service.app.state.streams
    with large.stream("GET", "/prices.ndjson") as answer:
        chunks = answer.iter_raw()
        next(chunks)
        assert len(streams.running) == 1
        assert "vmsizes_exports_running 1.0" in large.get("/metrics").text
    wait_until(lambda: not streams.running)


@pytest.mark.takes_seconds
def test_an_export_whose_client_takes_too_long_is_broken(filled_url: str) -> None:
    settings = Settings(_env_file=None, database_url=filled_url, export_seconds=1)
    service = create_asgi_app(settings, today=lambda: TODAY)
    with server(service) as url, open_client(url) as client:

        def read_too_slowly() -> None:
            with client.stream("GET", "/prices.ndjson", headers={"accept-encoding": "identity"}) as answer:
                for _ in answer.iter_raw(1000):
                    wait_until(lambda: not service.app.state.streams.running)

        with pytest.raises(httpx.RemoteProtocolError):
            read_too_slowly()
        assert client.get("/sizes?limit=1").status_code == 200


@pytest.mark.first_database
def test_only_so_many_files_are_written_and_sent(
    large: httpx.Client, service: CacheMiddleware, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exports, "MAX_WAITING_FILES", 0)
    refused = large.get("/prices.parquet?region=r01")
    assert (refused.status_code, refused.json()["type"]) == (503, "/problems/busy")
    monkeypatch.undo()
    assert large.get("/prices.parquet?region=r01").status_code == 200
    monkeypatch.setattr(exports, "MAX_FILE_READERS", 0)
    assert large.get("/prices.parquet?region=r01").status_code == 503
    assert large.get("/prices.csv?region=r01").status_code == 200


def test_a_truncated_stream_does_not_look_complete(large: httpx.Client, service: CacheMiddleware) -> None:
    with large.stream("GET", "/prices.ndjson") as answer:
        chunks = answer.iter_raw()
        next(chunks)
        for stream in tuple(service.app.state.streams.running):
            stream.stop()
        with pytest.raises(httpx.RemoteProtocolError):
            list(chunks)


@pytest.mark.first_database
@pytest.mark.parametrize(("key", "begun"), [("x0000", False), (f"x{SIZES - 1:04}", True)])
def test_an_error_before_the_first_rows_is_a_problem_and_a_later_one_breaks_the_connection(
    databases: Databases, filled_url: str, key: str, *, begun: bool
) -> None:
    url = databases.copy(filled_url)
    engine = make_engine(url)
    with engine.begin() as connection:
        doc = table_of(SizeJson)
        connection.execute(update(doc).where(doc.c.size_key == key).values(doc='{"name":'))
    engine.dispose()
    service = create_asgi_app(Settings(_env_file=None, database_url=url), today=lambda: TODAY)
    with server(service) as base, open_client(base) as client:
        if begun:
            with pytest.raises(httpx.RemoteProtocolError):
                client.get("/sizes.csv")
        else:
            answer = client.get("/sizes.csv")
            assert answer.status_code == 500
            assert answer.headers["content-type"] == "application/problem+json"
        wait_until(lambda: not service.app.state.streams.running)
    databases.drop(url)


@pytest.mark.takes_seconds
@pytest.mark.first_database
def test_too_many_exports_at_once_get_retry_after(large: httpx.Client, service: CacheMiddleware) -> None:
    streams = service.app.state.streams
    slow = [large.stream("GET", "/prices.ndjson") for _ in range(MAX_CONCURRENT)]
    try:
        for answer in slow:
            assert answer.__enter__().status_code == 200  # left open, and not read
        refused = large.get("/prices.csv")
        assert refused.status_code == 503
        assert refused.headers["content-type"] == "application/problem+json"
        assert large.get("/prices.csv?size=nothing").status_code == 503  # before its size is looked for
        assert large.get("/regions").status_code == 200
    finally:
        for answer in slow:
            answer.__exit__(None, None, None)
    wait_until(lambda: not streams.running)
    assert large.get("/prices.csv?region=r01").status_code == 200


@pytest.mark.first_database
def test_the_files_of_a_worker_are_bounded_and_deleted_when_it_stops(filled_url: str) -> None:
    settings = Settings(_env_file=None, database_url=filled_url, exports_mib=0)
    service = create_asgi_app(settings, today=lambda: TODAY)
    files = service.app.state.files
    with server(service) as url, open_client(url) as client:
        folders = set()
        for region in ("r01", "r02", "r03"):
            size_bytes = len(client.get(f"/prices.parquet?region={region}").content)
            assert files.size_bytes == size_bytes
            folders |= {file.path.parent for file in files}
        (folder,) = folders
        assert len(list(folder.glob("*.parquet"))) == 1
    assert not folder.exists()


@pytest.mark.takes_seconds
@pytest.mark.first_database
def test_a_parquet_file_is_written_once_for_concurrent_requests(large: httpx.Client, service: CacheMiddleware) -> None:
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda _: large.get("/prices.parquet"), range(8)))
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.content for answer in answers}) == 1
    assert len({answer.headers["etag"] for answer in answers}) == 1
    assert len(list(service.app.state.files)) == 1


@pytest.mark.first_database
def test_a_new_revision_has_files_of_its_own(databases: Databases, filled_url: str) -> None:
    url = databases.copy(filled_url)
    service = create_asgi_app(Settings(_env_file=None, database_url=url), today=lambda: TODAY)
    with server(service) as base, open_client(base) as client:
        first = client.get("/prices.parquet?region=r01")
        engine = make_engine(url)
        with engine.begin() as connection:
            revision = {"number": 2, "created_at": NOW, "digest": "1" * 64, "source_ids": ["s"], "counts": {}}
            connection.execute(insert(table_of(Revision)), [revision])
        engine.dispose()
        later = "/prices.parquet?region=r01"
        wait_until(lambda: client.get(later).headers["etag"] != first.headers["etag"])
    databases.drop(url)
