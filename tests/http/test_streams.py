"""Streamed responses: never cached, but validated and encoded like others, and stopped when the client leaves."""

import gzip
import time
from collections.abc import Iterator
from typing import Annotated

import brotli  # type: ignore[import-untyped]  # has no type information
import httpx
import pytest
import zstandard
from fastapi import FastAPI, Query, Request
from fastapi.responses import FileResponse, StreamingResponse

from app.catalog.queries.params import QueryParams
from app.http.cache import ETAG_KEY
from app.http.canonical import cacheable_endpoints
from app.http.middleware import CacheMiddleware
from app.main import create_asgi_app
from app.settings import Settings
from tests.conftest import TODAY
from tests.servers import open_client, server

pytestmark = pytest.mark.one_database  # the streams are of rows that no database has

ROWS = 4_000


class Csv(StreamingResponse):
    media_type = "text/csv"


class Many(QueryParams):
    rows: int = ROWS


@pytest.fixture
def made() -> list[int]:
    """The rows that were generated."""
    return []


@pytest.fixture
def client(seeded_url: str, made: list[int]) -> Iterator[httpx.Client]:
    """A service with a streaming endpoint and a file, over the seeded catalog."""
    service = create_asgi_app(Settings(_env_file=None, database_url=seeded_url), today=lambda: TODAY)
    app: FastAPI = service.app

    def rows(count: int) -> Iterator[str]:
        for number in range(count):
            made.append(number)
            yield f"{number},x\r\n"
            if number == ROWS:
                raise RuntimeError("the database went away")

    @app.get("/rows.csv", response_class=Csv)
    def rows_csv(asked: Annotated[Many, Query()]) -> Csv:
        return Csv(rows(asked.rows))

    @app.get("/file.bin", response_class=FileResponse)
    def file_bin(request: Request) -> FileResponse:
        return FileResponse(__file__, media_type="application/octet-stream", headers={"etag": request.scope[ETAG_KEY]})

    known = cacheable_endpoints([app.router], {})
    watched = CacheMiddleware(app, known, app.state.watcher, app.state.observer, max_bytes=2**20)
    with server(watched) as url, open_client(url) as client:
        yield client
    app.state.database.dispose()


WHOLE = "".join(f"{number},x\r\n" for number in range(ROWS)).encode()


def test_a_stream_has_an_etag_and_is_revalidated_without_rows(client: httpx.Client, made: list[int]) -> None:
    answer = client.get("/rows.csv")
    assert answer.content == WHOLE
    assert answer.headers["etag"].startswith('W/"')
    assert answer.headers["cache-control"] == "no-cache"
    assert answer.headers["x-content-type-options"] == "nosniff"
    made.clear()
    for _ in range(2):
        confirmed = client.get("/rows.csv?rows=", headers={"if-none-match": answer.headers["etag"]})
        assert (confirmed.status_code, confirmed.content) == (304, b"")
    assert made == []
    assert client.get("/rows.csv?rows=3").headers["etag"] != answer.headers["etag"]


@pytest.mark.parametrize(
    ("encoding", "decode"),
    [
        ("gzip", gzip.decompress),
        ("br", brotli.decompress),
        ("zstd", lambda body: zstandard.ZstdDecompressor().decompressobj().decompress(body)),
    ],
)
def test_a_stream_is_encoded_chunk_by_chunk(client: httpx.Client, encoding: str, decode: object) -> None:
    assert callable(decode)
    with client.stream("GET", "/rows.csv", headers={"accept-encoding": encoding}) as answer:
        assert answer.headers["content-encoding"] == encoding
        body = b"".join(answer.iter_raw())
    assert decode(body) == WHOLE
    assert len(body) < len(WHOLE) / 3


def test_head_of_a_stream_generates_few_rows(client: httpx.Client, made: list[int]) -> None:
    head = client.head("/rows.csv?rows=1000000")
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-type"].startswith("text/csv")
    time.sleep(0.05)
    assert len(made) < 100


def test_a_failing_stream_breaks_the_connection(client: httpx.Client) -> None:
    with pytest.raises(httpx.RemoteProtocolError):
        client.get(f"/rows.csv?rows={ROWS + 5}")


def test_a_stream_that_is_refused_is_a_problem(client: httpx.Client) -> None:
    refused = client.get("/rows.csv?rows=x")
    assert (refused.status_code, refused.headers["content-type"]) == (422, "application/problem+json")
    assert "etag" not in refused.headers


def test_a_range_has_the_etag_of_the_file(client: httpx.Client) -> None:
    whole = client.get("/file.bin", headers={"accept-encoding": "identity"})
    part = client.get("/file.bin", headers={"range": "bytes=4-9", "accept-encoding": "gzip"})
    assert (part.status_code, part.content) == (206, whole.content[4:10])
    assert part.headers["etag"] == whole.headers["etag"]
    assert "content-encoding" not in part.headers
    assert client.head("/file.bin").headers["content-length"] == str(len(whole.content))
