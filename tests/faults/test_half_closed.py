"""Clients that end their side of a connection after the request get their answer; those that are gone cost nothing."""

import asyncio
import socket
from collections.abc import Iterator
from typing import Any

import psutil
import pytest

from tests.faults.connections import connect, read_to_end, status_of
from tests.processes import ServiceProcess, run_service
from tests.waiting import until

pytestmark = pytest.mark.one_database  # connections do not depend on the database

NO_BODY = b"POST /fit HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n"
BODY = b'{"model": "llama-3.1-8b", "inference": {}, "limit": %d}'
REQUESTS = {
    "a kept page": b"GET /regions HTTP/1.1\r\nHost: x\r\n\r\n",
    "a new list": b"GET /sizes?min_vcpus=%d HTTP/1.1\r\nHost: x\r\n\r\n",
    "HTTP/1.0": b"GET /sizes?min_memory=%d HTTP/1.0\r\n\r\n",
    "an export": b"GET /sizes.csv?min_vcpus=%d HTTP/1.1\r\nHost: x\r\nAccept-Encoding: identity\r\n\r\n",
    "POST /fit": b"POST /fit HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: "
    + str(len(BODY % 1)).encode() + b"\r\n\r\n" + BODY,
}  # fmt: skip


@pytest.fixture(scope="module")
def running(seeded_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    """A service."""
    log = tmp_path_factory.mktemp("serve") / "log"
    with run_service(seeded_url, log) as running:
        yield running
        assert "Traceback" not in log.read_text()


async def ask_half_closed(port: int, request: bytes) -> bytes:
    connection = await connect(port, request)
    connection.shutdown(socket.SHUT_WR)
    return await read_to_end(connection)


@pytest.mark.takes_seconds
@pytest.mark.parametrize("kind", REQUESTS)
def test_a_client_that_sends_no_more_gets_its_answer(running: ServiceProcess, kind: str) -> None:
    async def run() -> None:
        for number in range(1, 10):
            request = REQUESTS[kind].replace(b"%d", b"%d" % number)
            response = await ask_half_closed(running.port, request)
            head, _, body = response.partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200 OK\r\n"), response[:200]
            assert body.endswith((b"}", b"0\r\n\r\n")) or b"HTTP/1.0" in request

    asyncio.run(run())


def test_every_request_of_a_pipeline_is_answered_before_the_connection_ends(running: ServiceProcess) -> None:
    request = b"".join(
        b"GET /sizes?limit=1&min_vcpus=%d HTTP/1.1\r\nHost: x\r\n\r\n" % number for number in (91, 92, 93)
    )
    response = asyncio.run(ask_half_closed(running.port, request))
    assert response.count(b"HTTP/1.1 200 OK\r\n") == 3
    assert response.startswith(b"HTTP/1.1 200 OK\r\n")


@pytest.mark.parametrize(
    "sent",
    [b"", b"GET /regions HTTP/1.1\r\nHo", NO_BODY],
    ids=["nothing", "half headers", "no body"],
)
def test_a_client_that_ends_in_the_middle_of_a_request_is_not_waited_for(running: ServiceProcess, sent: bytes) -> None:
    received = asyncio.run(ask_half_closed(running.port, sent))
    assert received == b"" or status_of(received) == 400  # which is sent where the end came before it was accepted


def test_a_client_that_waited_for_a_busy_service_gets_its_answer_although_it_sends_no_more(
    running: ServiceProcess,
) -> None:
    async def run() -> None:
        served = psutil.Process(running.process.pid)
        served.suspend()
        connection = await connect(running.port, b"GET /sizes?min_vcpus=77 HTTP/1.1\r\nHost: x\r\n\r\n")
        connection.shutdown(socket.SHUT_WR)
        served.resume()
        assert status_of(await read_to_end(connection)) == 200

    asyncio.run(run())


@pytest.mark.parametrize("sent", [b"GET /regions HTTP/1.1\r\nHo", NO_BODY])
def test_a_client_that_waited_after_half_a_request_gets_a_whole_response(running: ServiceProcess, sent: bytes) -> None:
    async def run() -> bytes:
        served = psutil.Process(running.process.pid)
        served.suspend()
        connection = await connect(running.port, sent)
        connection.shutdown(socket.SHUT_WR)
        served.resume()
        return await read_to_end(connection)

    response = asyncio.run(run())
    assert status_of(response) == 400
    assert response.endswith(b"}")


def test_a_client_that_leaves_a_pipeline_is_no_error(running: ServiceProcess) -> None:
    lists = b"".join(
        b"GET /sizes?limit=500&min_memory=%d HTTP/1.1\r\nHost: x\r\n\r\n" % number for number in range(100)
    )

    async def run() -> None:
        for _ in range(4):
            connection = await connect(running.port, lists)
            await asyncio.get_running_loop().sock_recv(connection, 1)
            connection.close()
        assert status_of(await ask_half_closed(running.port, REQUESTS["a kept page"])) == 200

    asyncio.run(run())  # the log has no traceback, as the fixture checks


def test_the_connection_of_a_client_that_is_gone_ends_while_its_answer_is_computed(running: ServiceProcess) -> None:
    service = psutil.Process(running.process.pid)

    def connections() -> list[Any]:
        return [held for held in service.net_connections("tcp") if held.status != psutil.CONN_LISTEN]

    async def run() -> None:
        opened = [
            await connect(
                running.port, b"GET /fit?min_gpus=8&max_nodes=8&min_vcpus=%d HTTP/1.1\r\nHost: x\r\n\r\n" % number
            )
            for number in range(1, 20)
        ]
        for connection in opened:
            connection.close()
        await until(lambda: not connections())

    asyncio.run(run())
