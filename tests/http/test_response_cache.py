"""The response cache: equal requests share a response, and a new revision replaces it."""

import asyncio
import gzip
import json
import tracemalloc
from contextlib import ExitStack
from datetime import date
from secrets import token_bytes

import brotli  # type: ignore[import-untyped]  # has no type information
import httpx
import pytest
import zstandard

from app.http.cache import (
    ENCODERS,
    NO_CACHE,
    VARY,
    CachedResponse,
    ResponseCache,
    preferred_encoding,
    url_key,
    validator_headers,
)
from app.http.common_headers import DATA_HEADERS
from app.http.middleware import CacheMiddleware
from app.ingest.run import ingest
from app.main import create_asgi_app
from app.settings import Settings
from tests.conftest import TODAY
from tests.databases import writable
from tests.factories import NOW, reading, size
from tests.servers import open_client, server
from tests.waiting import wait_until

JSON = {"content-type": "application/json"}
EQUAL_URLS = [
    "/sizes?min_vcpus=4&gpu_vendor=",
    "/sizes?gpu_vendor=&min_vcpus=4",
    "/sizes?min_vcpus=4&limit=50&os=linux&sort=name",
    "/sizes?min_vcpus=4&status=",
]


def cache_status(answer: httpx.Response) -> str:
    """Return `hit`, or why the response was not served from the cache (RFC 9211)."""
    return answer.headers["cache-status"].removeprefix("vmsizes; ").partition(";")[0]


@pytest.mark.first_database
def test_equal_requests_share_a_response(service: CacheMiddleware) -> None:
    with server(service) as url, open_client(url) as client:
        answers = [client.get(path) for path in EQUAL_URLS]
        assert [cache_status(answer) for answer in answers] == ["fwd=miss", "hit", "hit", "hit"]
        assert len({answer.content for answer in answers}) == 1
        assert len({answer.headers["etag"] for answer in answers}) == 1
        assert cache_status(client.get("/sizes/X1")) == "fwd=miss"
        assert cache_status(client.get("/sizes/x1")) == "hit"
        assert cache_status(client.get("/sizes?name=B,a")) == "fwd=miss"
        assert cache_status(client.get("/sizes?name=A&name=b")) == "hit"
    assert service.app.state.executor.query_count == 3


@pytest.mark.first_database
def test_equal_bodies_share_a_response(service: CacheMiddleware) -> None:
    small = {"architecture": {"params": 8_000_000_000}, "inference": {"dtype": "fp8"}}
    same = '{"inference": {"dtype":"fp8"},   "architecture": {"layers": null, "params": 8000000000}}'
    with server(service) as url, open_client(url) as client:
        first, second = client.post("/estimate", json=small), client.post("/estimate", content=same, headers=JSON)
        assert (first.status_code, cache_status(first)) == (200, "fwd=miss")
        assert (second.content, cache_status(second)) == (first.content, "hit")
        assert cache_status(client.post("/estimate", json=small | {"inference": {}})) == "fwd=miss"
        assert "etag" not in first.headers


@pytest.mark.first_database
def test_an_uncacheable_body_reaches_the_app_complete(service: CacheMiddleware) -> None:
    asked = {"architecture": {"params": 8_000_000_000}, "inference": {}}
    with server(service) as url, open_client(url) as client:
        assert client.post("/estimate", json=asked).status_code == 200
        assert client.post("/estimate", content=json.dumps(asked), headers={"content-type": "text/plain"}).is_error
        assert client.post("/estimate?limit=3", json=asked).status_code == 422
        long = client.post("/estimate", content=json.dumps(asked) + " " * 100_000, headers=JSON)
        assert (long.status_code, "cache-status" in long.headers) == (200, False)
        assert "wrong" in client.post("/estimate", json=asked | {"wrong": 1}).json()["detail"]


@pytest.mark.first_database
def test_different_requests_have_different_responses(service: CacheMiddleware) -> None:
    with server(service) as url, open_client(url) as client:
        paths = ["/sizes", "/sizes?limit=1", "/sizes?sort=-name", "/sizes?min_vcpus=9", "/fit?min_vcpus=9", "/gpus"]
        assert {cache_status(client.get(path)) for path in paths} == {"fwd=miss"}
        assert len({client.get(path).headers["etag"] for path in paths}) == len(paths)


@pytest.mark.first_database
def test_revalidation_runs_no_query(service: CacheMiddleware) -> None:
    with server(service) as url, open_client(url) as client:
        etag = client.get("/sizes").headers["etag"]
        assert etag.startswith('W/"')
        asked = service.app.state.executor.query_count
        for mark in (etag, etag.removeprefix("W/"), f'"other", {etag}', "*"):
            confirmed = client.get("/sizes", headers={"if-none-match": mark})
            assert (confirmed.status_code, confirmed.content) == (304, b"")
            assert confirmed.headers["etag"] == etag
        assert service.app.state.executor.query_count == asked
        assert client.get("/sizes", headers={"if-none-match": '"other"'}).status_code == 200
        assert client.get("/sizes/nope", headers={"if-none-match": "*"}).status_code == 404
        assert client.get("/gpus", headers={"if-none-match": "*"}).status_code == 304


@pytest.mark.first_database
def test_every_encoding_decodes_to_the_same_bytes(client: httpx.Client) -> None:
    def sent(encoding: str) -> bytes:
        with client.stream("GET", "/sizes?status=any", headers={"accept-encoding": encoding}) as response:
            assert response.headers.get("content-encoding", "identity") == encoding
            assert response.headers["vary"] == "accept-encoding, origin"
            body = b"".join(response.iter_raw())
            assert int(response.headers["content-length"]) == len(body)
            return body

    plain = sent("identity")
    assert gzip.decompress(sent("gzip")) == plain
    assert brotli.decompress(sent("br")) == plain
    assert zstandard.ZstdDecompressor().decompress(sent("zstd")) == plain


@pytest.mark.parametrize(
    ("header", "encoding"),
    [
        (b"", None),
        (b"identity", None),
        (b"gzip, deflate, br, zstd", "zstd"),
        (b"gzip, deflate, br", "br"),
        (b"gzip;q=1.0, br;q=0.5", "gzip"),
        (b"br;q=0, gzip;q=0.1", "gzip"),
        (b"*", "zstd"),
        (b"*;q=0", None),
        (b"gzip;q=nonsense", None),
    ],
)
def test_the_preferred_encoding_is_sent(header: bytes, encoding: str | None) -> None:
    assert preferred_encoding(header) == encoding


@pytest.mark.first_database
def test_head_has_the_headers_and_no_body(client: httpx.Client) -> None:
    whole, head = client.get("/sizes"), client.head("/sizes")
    assert head.status_code == 200
    assert head.content == b""
    same = ("etag", "content-length", "content-type", "cache-control")
    assert [head.headers[name] for name in same] == [whole.headers[name] for name in same]


@pytest.mark.first_database
def test_a_cache_of_no_bytes_stores_nothing(database_url: str) -> None:
    service = create_asgi_app(Settings(_env_file=None, database_url=database_url, cache_mib=0), today=lambda: TODAY)
    ingest(writable(service), reading(size("Standard_X1", vcpus=8)), now=NOW)
    with server(service) as url, open_client(url) as client:
        assert [client.get("/sizes").json()["total"] for _ in range(3)] == [1, 1, 1]
    service.app.state.database.dispose()
    assert service.app.state.executor.query_count == 3


@pytest.mark.first_database
def test_max_age_applies_except_to_pages_with_a_next_page(
    database_url: str,
) -> None:
    settings = Settings(_env_file=None, database_url=database_url, max_age_seconds=60)
    service = create_asgi_app(settings, today=lambda: TODAY)
    ingest(writable(service), reading([*size("X1", vcpus=8), *size("X2", vcpus=8)]), now=NOW)
    lasting = {"/sizes": "public, max-age=60", "/sizes?limit=1": "no-cache", "/sizes.csv": "public, max-age=60"}
    with server(service) as url, open_client(url) as client:
        for path, told in lasting.items():
            first = client.get(path)
            assert (first.status_code, first.headers["cache-control"]) == (200, told)
            again = client.get(path, headers={"if-none-match": first.headers["etag"]})
            assert (again.status_code, again.headers["cache-control"]) == (304, told)
        assert client.get("/sizes/nope").headers["cache-control"] == "no-store"
    service.app.state.database.dispose()


@pytest.mark.first_database
def test_copies_are_revalidated_by_default(client: httpx.Client) -> None:
    for path in ("/sizes", "/sizes?limit=1", "/sizes/nd96isr_h100_v5", "/prices?limit=2", "/sizes.csv", "/gpus"):
        assert client.get(path).headers["cache-control"] == "no-cache"


@pytest.mark.first_database
def test_errors_are_never_cached(service: CacheMiddleware) -> None:
    with server(service) as url, open_client(url) as client:
        for path in ("/sizes/nope", "/sizes?region=mars", "/sizes?nonsense=1", "/sizes?limit=1&limit=2"):
            first, second = client.get(path), client.get(path)
            assert first.status_code == second.status_code in (404, 422)
            assert "cache-status" not in second.headers
            assert "etag" not in second.headers


@pytest.mark.first_database
def test_a_crash_is_a_problem_and_not_cached(service: CacheMiddleware, monkeypatch: pytest.MonkeyPatch) -> None:
    def break_down() -> date:
        raise RuntimeError("no calendar")

    with server(service) as url, open_client(url) as client:
        assert client.get("/gpus").status_code == 200
        monkeypatch.setattr(service.app.state.executor, "today", break_down)
        for _ in range(2):
            crashed = client.get("/sizes")
            assert (crashed.status_code, crashed.headers["content-type"]) == (500, "application/problem+json")
            assert "cache-status" not in crashed.headers


@pytest.mark.first_database
def test_a_new_revision_is_served_soon(service: CacheMiddleware) -> None:
    with server(service) as url, open_client(url) as client:
        before = client.get("/sizes")
        ingest(writable(service), reading([*size("X1", vcpus=8), *size("X2", vcpus=16)]), now=NOW)
        wait_until(lambda: client.get("/sizes").json()["total"] != before.json()["total"])
        assert client.get("/sizes").headers["etag"] != before.headers["etag"]


@pytest.mark.takes_seconds
def test_every_worker_serves_a_new_revision_soon_with_the_same_etag(
    service: CacheMiddleware, database_url: str
) -> None:
    other = create_asgi_app(Settings(_env_file=None, database_url=database_url), today=lambda: TODAY)
    with ExitStack() as stack:
        urls = [stack.enter_context(server(worker)) for worker in (service, other)]
        workers = [stack.enter_context(open_client(url)) for url in urls]
        before = [worker.get("/sizes").headers["etag"] for worker in workers]
        ingest(writable(service), reading([*size("X1", vcpus=8), *size("X2", vcpus=16)]), now=NOW)
        wait_until(lambda: [worker.get("/sizes").json()["total"] for worker in workers] == [2, 2])
        answers = [worker.get("/sizes") for worker in workers]
        assert len(set(before)) == len({answer.headers["etag"] for answer in answers}) == 1
        assert answers[0].headers["etag"] not in before


@pytest.mark.takes_seconds
def test_a_thousand_concurrent_misses_run_one_query(service: CacheMiddleware) -> None:
    async def get(url: httpx.URL) -> bytes:
        reader, writer = await asyncio.open_connection(url.host, url.port)
        writer.write(b"GET /sizes?min_vcpus=1 HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        answer = await reader.read()
        writer.close()
        return answer

    async def all_at_once(url: str) -> list[bytes]:
        return await asyncio.gather(*(get(httpx.URL(url)) for _ in range(1000)))

    with server(service) as url:
        answers = asyncio.run(all_at_once(url))
    assert {answer.partition(b"\r\n")[0] for answer in answers} == {b"HTTP/1.1 200 OK"}
    assert len({answer.partition(b"\r\n\r\n")[2] for answer in answers}) == 1
    assert service.app.state.executor.query_count == 1


@pytest.mark.first_database
def test_a_page_is_kept_in_the_encodings_that_clients_accept_and_no_other(seeded_url: str) -> None:
    service = create_asgi_app(Settings(_env_file=None, database_url=seeded_url), today=lambda: TODAY)

    def sent(encoding: str) -> bytes:
        with client.stream("GET", "/sizes", headers={"accept-encoding": encoding}) as response:
            return b"".join(response.iter_raw())

    with server(service) as url, open_client(url) as client:
        encoded = sent("gzip")
        first, plain = service.responses.size_bytes, gzip.decompress(encoded)
        assert len(encoded) < first < len(plain)
        assert sent("gzip") == encoded
        assert service.responses.size_bytes == first
        assert sent("identity") == plain
        assert first + len(plain) <= service.responses.size_bytes < first + len(plain) + 1_000
    service.app.state.database.dispose()


def response_of(number: int, body: bytes, encoding: str | None = None) -> CachedResponse:
    etag = b'W/"%024x"' % number
    response = CachedResponse(
        key=b"%d" % number,
        etag=etag,
        validators=validator_headers(etag, NO_CACHE),
        headers=[NO_CACHE, VARY, *DATA_HEADERS],
        link=token_bytes(100),
        length=len(body),
        created_at=float(number),
    )
    response.add_variant(body, encoding)
    return response


def test_the_cache_is_bounded_and_evicts_the_least_recently_used() -> None:
    cache = ResponseCache(max_bytes=100_000)
    for number in range(100):
        stored = response_of(number, token_bytes(1000))
        cache.put(stored)
        cache.get(b"0")
        cache.remember_url(url_key("GET", "/sizes", stored.key), stored)
        cache.remember_url(url_key("GET", "/sizes", stored.key * 4000), stored)
    assert 80_000 < cache.size_bytes <= 100_000
    assert cache.get(b"0") is not None
    assert cache.get(b"1") is None
    response = cache.get(b"99")
    assert response is not None
    assert cache.find(url_key("GET", "/sizes", b"1")) is None
    assert cache.find(url_key("GET", "/sizes", b"99")) is response
    assert cache.find(url_key("GET", "/sizes", b"99" * 4000)) is response
    before = response.size_bytes
    encoded = response.make_variant("gzip")
    assert response.size_bytes > before + len(encoded.body)
    cache.recount(response)
    assert cache.size_bytes <= 100_000
    cache.clear()
    assert (len(cache), cache.size_bytes, cache.get(b"0")) == (0, 0, None)
    assert cache.find(url_key("GET", "/sizes", b"99")) is None


def test_a_response_that_is_longer_than_the_cache_is_not_stored() -> None:
    page = page_of(1)[:12_000]
    cache, response = ResponseCache(max_bytes=10_000), response_of(1, page)
    cache.put(response)
    cache.remember_url(b"/", response)
    assert (len(cache), cache.size_bytes) == (0, 0)
    encoded = response_of(1, page, "br")
    cache.put(encoded)
    encoded.make_variant(None)
    cache.recount(encoded)
    assert (len(cache), cache.size_bytes) == (0, 0)


def test_spellings_of_requests_take_a_part_of_the_cache_and_no_more() -> None:
    cache, response = ResponseCache(max_bytes=50_500), response_of(1, b"{}")
    cache.put(response)
    urls = [url_key("GET", "/sizes", b"min_vcpus=%d" % number) for number in range(1_000)]
    for url in urls:
        cache.remember_url(url, response)
    found = [number for number, url in enumerate(urls) if cache.find(url) is response]
    assert found == list(range(1_000 - len(found), 1_000))
    assert 10 < len(found) < 30
    assert cache.size_bytes < 10_000
    cache.put(response_of(1, b"[]"))
    cache.remember_url(b"/sizes", response)  # a response that is stored no more
    assert cache.find(b"/sizes") is None


def test_no_two_requests_have_the_same_key() -> None:
    asked: list[tuple[str, str, bytes, bytes]] = [
        ("GET", "/fit", b"", b""),
        ("GET", "/fit", b"a", b""),
        ("GET", "/fi", b"t", b""),
        ("GET", "/fit", b"a" * 300, b""),
        ("POST", "/fit", b"", b""),
        ("POST", "/fit", b"", b"a"),
        ("POST", "/fit", b"a", b""),
        ("POST", "/fit", b"a" * 300, b""),
    ]
    assert len({url_key(*request) for request in asked}) == len(asked)


@pytest.mark.parametrize("length", [40, 2_000])
@pytest.mark.parametrize("spellings", [1, 4])
def test_the_cache_counts_what_it_takes(length: int, spellings: int) -> None:
    cache, responses = ResponseCache(max_bytes=100_000_000), 5_000
    tracemalloc.start()
    try:
        for number in range(responses):
            response = response_of(number, token_bytes(length))
            cache.put(response)
            for spelling in range(spellings):
                url = b"region=westeurope&vcpus=%d&max_usd=%d" % (spelling, number)
                cache.remember_url(url_key("GET", "/sizes", url), response)
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert 0.9 * taken < cache.size_bytes < 1.2 * taken


def page_of(number: int) -> bytes:
    return b"[%s]" % b",".join(b'{"name":"Standard_%d_%d"}' % (number, item) for item in range(1000))


@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip"])
def test_a_response_in_another_encoding_is_made_of_the_one_that_is_kept(encoding: str) -> None:
    page = page_of(1)
    response = response_of(1, page, encoding)
    assert response.size_bytes < len(page) / 2
    asked = "gzip" if encoding == "br" else "br"
    assert response.find_variant(asked) is None
    plain, other = response.make_variant(None), response.make_variant(asked)
    assert response.find_variant(asked) is other
    assert plain.body == page
    assert b"content-encoding" not in dict(plain.headers)
    assert dict(other.headers)[b"content-length"] == b"%d" % len(other.body)
    assert response.find_variant(None) == plain


def test_long_plain_bodies_make_room_for_each_other_and_are_kept_as_zstd() -> None:
    cache, pages = ResponseCache(max_bytes=800_000), [page_of(number) for number in range(10)]  # 3 of 27 kB stay plain
    stored = [response_of(number, page) for number, page in enumerate(pages)]
    for response in stored:
        cache.put(response)
        assert cache.get(b"0") is stored[0]
    assert [number for number, response in enumerate(stored) if None in response.variants] == [0, 8, 9]
    assert len(cache) == 10
    assert 3 * len(pages[0]) < cache.size_bytes < 5 * len(pages[0])
    plain = stored[5].find_variant(None)
    assert plain is not None
    assert (plain.body, dict(plain.headers)[b"content-length"]) == (pages[5], b"%d" % len(pages[5]))
    assert list(stored[5].variants) == ["zstd"]
    cache.clear()
    assert (len(cache), cache.size_bytes) == (0, 0)


@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip"])
def test_an_encoded_body_takes_no_more_memory_than_it_has_bytes(encoding: str) -> None:
    page = page_of(1)
    tracemalloc.start()
    try:
        kept = [ENCODERS[encoding](page) for _ in range(50)]
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken < 50 * (len(kept[0]) + 200)
