"""Stored responses that the server sends by itself are those that the application sends, and nothing is bypassed."""

import asyncio
import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from app.lifespan import FIND_STORED
from app.main import create_service
from app.server.protocol import BoundedProtocol
from app.settings import Settings
from tests.faults.connections import connect, read_to_end
from tests.servers import get, open_client, server

pytestmark = pytest.mark.one_database  # responses from memory

PAGE = "/sizes?min_gpu_mem=80&limit=3"
ESTIMATE = b'{"model": "llama-3.1-70b", "inference": {"context_tokens": 8192, "concurrency": 8}}'
VARYING = re.compile(rb"^date: .*\r\n|[0-9a-f]{12}-[0-9a-f]+|(?<=age )\d+|^content-length: .*\r\n", re.MULTILINE)
"""What two responses to equal requests may differ in: the time, the id of the request, its length, and an age."""


def request(*headers: str, method: str = "GET", target: str = PAGE, version: str = "1.1", body: bytes = b"") -> bytes:
    """Return the bytes of a request."""
    length = [f"Content-Length: {len(body)}"] if body else []
    lines = [f"{method} {target} HTTP/{version}", "Host: x", *headers, *length, "", ""]
    return "\r\n".join(lines).encode() + body


REQUESTS = {
    "plain": request(),
    "gzip": request("Accept-Encoding: gzip"),
    "br": request("Accept-Encoding: gzip, deflate, br;q=0.9"),
    "an encoding that is too long": request(f"Accept-Encoding: br{', x' * 100}"),
    "own id": request("X-Request-ID: mine"),
    "an id that is not valid": request("X-Request-ID: <b>"),
    "an ETag of something else": request('If-None-Match: "other"'),
    "any ETag": request("If-None-Match: *"),
    "two headers of encodings": request("Accept-Encoding: gzip", "Accept-Encoding: x"),
    "two headers of ETags": request('If-None-Match: "a"', "If-None-Match: *"),
    "another origin": request("Origin: http://127.0.0.1"),
    "HEAD": request(method="HEAD"),
    "another spelling": request(target="/sizes?limit=3&min_gpu_mem=80"),
    "headers that are too long": request(*(f"X-{number}: {'x' * 4000}" for number in range(5))),
    "a GET with a body": request(body=b"abc"),
    "the page of the start": request("Accept: text/html", target="/"),
    "the links of the start": request("Accept: application/json", target="/"),
    "probe": request(target="/healthz"),
    "an error": request(target="/sizes?limit=0"),
    "POST": request("Content-Type: application/json", method="POST", target="/estimate", body=ESTIMATE),
    "POST with another media type": request(
        "Content-Type: text/plain", method="POST", target="/estimate", body=ESTIMATE
    ),
    "POST with an ETag": request(
        "Content-Type: application/json", "If-None-Match: *", method="POST", target="/estimate", body=ESTIMATE
    ),
}


@pytest.fixture(scope="module")
def running(seeded_url: str) -> Iterator[int]:
    """The port of the service under its own server."""
    yield from serve(seeded_url, BoundedProtocol)


@pytest.fixture(scope="module")
def plain(seeded_url: str) -> Iterator[int]:
    """The port of the service under uvicorn's server, which knows nothing of stored responses."""
    yield from serve(seeded_url, "httptools")


def serve(database_url: str, http: object) -> Iterator[int]:
    """Run the service until the test is over."""
    with server(create_service(Settings(database_url=database_url)), http=http, server_header=False) as url:
        yield httpx.URL(url).port or 0


async def last_of_three(port: int, sent: bytes) -> bytes:
    """Return the third response to the same request, which is stored by then, with what may differ taken out."""
    sent = sent.replace(b"Host", b"Connection: close\r\nHost", 1)
    for _ in range(2):
        await read_to_end(await connect(port, sent.replace(b"HEAD", b"GET", 1)))
    answer = VARYING.sub(b"", await read_to_end(await connect(port, sent)))
    return answer.replace(f"127.0.0.1:{port}".encode(), b"HOST")  # commands that a page shows


@pytest.mark.parametrize("sent", REQUESTS.values(), ids=REQUESTS)
def test_a_repeated_request_gets_the_same_bytes_from_this_server_as_from_any_other(
    running: int, plain: int, sent: bytes
) -> None:
    ours, theirs = (asyncio.run(last_of_three(port, sent)) for port in (running, plain))
    # uvicorn writes `connection: close` where its server does not, after the headers of the application.
    close = b"connection: close\r\n"
    assert ours.replace(close, b"") == theirs.replace(close, b"")
    assert close in ours
    assert ours.startswith(b"HTTP/1.1 ")


def test_the_repeated_requests_above_get_stored_responses(running: int) -> None:
    for name in ("plain", "gzip", "br", "own id", "POST"):
        assert b"cache-status: vmsizes; hit" in asyncio.run(last_of_three(running, REQUESTS[name])), name


def test_several_headers_of_encodings_are_one_list(running: int) -> None:
    assert b"content-encoding: gzip" in asyncio.run(last_of_three(running, REQUESTS["two headers of encodings"]))


def test_a_client_with_the_stored_response_gets_304_with_the_same_headers_as_at_first(running: int) -> None:
    with open_client(f"http://127.0.0.1:{running}") as client:
        first = client.get(PAGE)
        again = client.get(PAGE, headers={"if-none-match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    for name in ("etag", "cache-control", "vary"):
        assert again.headers[name] == first.headers[name]


def test_stored_responses_to_many_requests_at_once_come_in_their_order(running: int) -> None:
    paths = [f"/sizes?min_gpu_mem=80&limit={1 + number % 3}" for number in range(600)]
    expected = [get(f"http://127.0.0.1:{running}{path}").json()["items"] for path in paths[:3]]

    async def run() -> bytes:
        connection = await connect(running)
        sent = [request(target=path) for path in paths[:-1]] + [request("Connection: close", target=paths[-1])]
        reading = asyncio.create_task(read_to_end(connection))
        await asyncio.get_running_loop().sock_sendall(connection, b"".join(sent))
        return await reading

    bodies = [response.partition(b"\r\n\r\n")[2] for response in asyncio.run(run()).split(b"HTTP/1.1 200 OK\r\n")[1:]]
    found = [httpx.Response(200, content=body).json()["items"] for body in bodies]
    assert found == [expected[number % 3] for number in range(600)]


def test_a_request_may_arrive_in_two_parts_or_begin_behind_another(running: int) -> None:
    sent = request() + request()
    get(f"http://127.0.0.1:{running}{PAGE}")

    async def run(cut: int) -> list[bytes]:
        loop, connection = asyncio.get_running_loop(), await connect(running)
        await loop.sock_sendall(connection, sent[:cut])
        await asyncio.sleep(0)
        await loop.sock_sendall(connection, sent[cut:] + request("Connection: close"))
        return (await read_to_end(connection)).split(b"HTTP/1.1 200 OK\r\n")[1:]

    for cut in (5, len(sent) // 2 - 2, len(sent) // 2 + 10, len(sent) - 1):
        assert len(asyncio.run(run(cut))) == 3, cut


def test_a_connection_stays_open_after_a_stored_response_only_where_http_says_so(running: int) -> None:
    get(f"http://127.0.0.1:{running}{PAGE}")

    async def run(sent: bytes) -> bytes:
        return await read_to_end(await connect(running, sent))

    for sent in (request(version="1.0"), request("Connection: close")):
        assert b"connection: close\r\n" in asyncio.run(run(sent))


@pytest.mark.parametrize(
    ("settings", "offered"), [({}, True), ({"rate_limit_requests": 5}, False), ({"api_keys": "me:" + "a" * 64}, False)]
)
def test_stored_responses_are_offered_to_the_server_only_where_nothing_has_to_see_each_request(
    seeded_url: str, settings: dict[str, Any], offered: bool
) -> None:
    service: Any = create_service(Settings(database_url=seeded_url, **settings))
    app = service.app if offered else service._app.app

    async def run() -> bool:
        async with app.router.lifespan_context(app) as state:
            return FIND_STORED in state

    assert asyncio.run(run()) is offered
