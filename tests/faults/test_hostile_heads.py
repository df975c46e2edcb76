"""Requests that two readers of HTTP may understand differently are refused, and their connection is closed."""

import asyncio
from collections.abc import Iterator

import pytest

from tests.faults.connections import connect, read_to_end, status_of
from tests.processes import ServiceProcess, run_service

pytestmark = pytest.mark.one_database  # connections do not depend on the database

CHUNKED = b"Content-Type: application/json\r\nTransfer-Encoding: "


@pytest.fixture(scope="module")
def running(seeded_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    """A service."""
    with run_service(seeded_url, tmp_path_factory.mktemp("serve") / "log") as running:
        yield running


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"GET /regions HTTP/1.1\r\n", 400),
        (b"GET /regions HTTP/1.1\r\nHost: a\r\nHost: b\r\n", 400),
        (b"GET /regions HTTP/1.0\r\nHost: a\r\nHost: b\r\n", 400),
        (b"GET /regions HTTP/1.0\r\n", 200),
        (b"GET /regions HTTP/1.1\r\nHost: a b\r\n", 400),
        (b"GET /regions HTTP/1.1\r\nHost: a/b\r\n", 400),
        (b"GET /regions HTTP/1.1\r\nHost: user@a\r\n", 400),
        (b"GET /regions HTTP/1.1\r\nHost: a:b\r\n", 400),
        (b"GET /regions HTTP/1.0\r\nHost: [::1\r\n", 400),
        (b"GET /regions HTTP/1.1\r\nHost: a_b.example:8000\r\n", 200),
        (b"GET /regions HTTP/1.1\r\nHost: [::1]:8000\r\n", 200),
        (b"GET /regions HTTP/1.1\r\nHost:\r\n", 200),
        (b"GET /regions HTTP/2.0\r\nHost: x\r\n", 505),
        (b"GET /regions HTTP/1.1\r\nHost: x\r\n", 200),
        (b"POST /fit HTTP/1.1\r\nHost: x\r\n" + CHUNKED + b"gzip, chunked\r\n", 501),
        (b"POST /fit HTTP/1.1\r\nHost: x\r\n" + CHUNKED + b"gzip\r\nTransfer-Encoding: chunked\r\n", 501),
        (b"POST /fit HTTP/1.0\r\nHost: x\r\n" + CHUNKED + b"chunked\r\n", 400),
        (b"POST /fit HTTP/1.1\r\nHost: x\r\n" + CHUNKED + b"Chunked\r\n", 400),
    ],
)
def test_a_head_that_is_no_http_1_1_is_refused(running: ServiceProcess, head: bytes, status: int) -> None:
    async def run() -> bytes:
        body = b"1\r\n{\r\n0\r\n\r\n" if b"chunked" in head.lower() else b""
        return await read_to_end(await connect(running.port, head + b"Connection: close\r\n\r\n" + body))

    response = asyncio.run(run())
    assert status_of(response) == status
    assert response.count(b"\r\ndate: ") == 1, "nothing else is answered"
    if b"{\r\n" in response:
        assert b"application/problem+json" in response


@pytest.mark.parametrize("target", [b"/regions", b"/sizes?min_vcpus=7", b"/sizes.csv?min_vcpus=8"])
@pytest.mark.parametrize(
    "behind", [b"no HTTP\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\nX: " + b"a" * 70_000]
)
def test_what_is_refused_leaves_the_requests_before_it_their_responses(
    running: ServiceProcess, target: bytes, behind: bytes
) -> None:
    async def run() -> bytes:
        head = b" HTTP/1.1\r\nHost: x\r\nAccept-Encoding: identity\r\n\r\n"
        return await read_to_end(await connect(running.port, b"GET " + target + head + behind))

    response = asyncio.run(run())
    assert status_of(response) == 200
    whole = response.partition(b"HTTP/1.1 4")[0]
    assert whole.endswith((b"}", b"0\r\n\r\n"))
    assert response[len(whole) :].startswith(b"HTTP/1.1 4")


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"Content-Length: 9000000\r\nContent-Type: application/json\r\n", b"413"),
        (b"Content-Length: 9\r\nContent-Type: text/csv\r\n", b"415"),
        (b"Content-Length: 9\r\n", b"415"),
        (b"Transfer-Encoding: chunked\r\nContent-Type: text/csv\r\n", b"415"),
        (b"Content-Length: 9\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\n", b"415"),
        (b"Content-Length: 9\r\nContent-Type: application/json\r\n", b"100"),
    ],
)
def test_only_a_body_that_is_taken_is_asked_for(running: ServiceProcess, head: bytes, status: bytes) -> None:
    async def run() -> bytes:
        connection = await connect(
            running.port, b"POST /fit HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n" + head + b"\r\n"
        )
        with connection:
            return await asyncio.get_running_loop().sock_recv(connection, 12)

    assert asyncio.run(run()) == b"HTTP/1.1 " + status


def test_a_client_of_http_1_0_is_not_asked_to_go_on(running: ServiceProcess) -> None:
    async def run() -> bytes:
        head = (
            b"POST /fit HTTP/1.0\r\nExpect: 100-continue\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n"
        )
        return await read_to_end(await connect(running.port, head + b"{}"))

    assert status_of(asyncio.run(run())) == 422
