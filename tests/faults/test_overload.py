"""Under more than it can take the service refuses, and is as before when the load ends."""

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.faults.connections import ask, connect, read_to_end, status_of
from tests.processes import ServiceProcess, run_service

CLIENTS = 80
SOON = 15.0  # seconds, on a machine that does much else
FIT = {"model": "llama-3.1-70b", "inference": {"context_tokens": 8192, "concurrency": 32}, "include": ["rejected"]}


@pytest.fixture
def serve(few_prices_url: str, tmp_path: Path) -> Iterator[Callable[..., ServiceProcess]]:
    """Starts a service with settings; its log has no traceback."""
    log = tmp_path / "log"
    with ExitStack() as stack:

        def start(**settings: str) -> ServiceProcess:
            return stack.enter_context(run_service(few_prices_url, log, **settings))

        yield start
    assert "Traceback" not in log.read_text()


def fit_request(number: int) -> bytes:
    """A request that takes the service a while; each number is another question."""
    body = json.dumps(FIT | {"inference": {"context_tokens": 8192 + number, "concurrency": 32}}).encode()
    head = "POST /fit HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


async def fit(port: int, number: int) -> bytes:
    return await read_to_end(await connect(port, fit_request(number)), within=60)


async def fit_all(port: int, numbers: range) -> list[bytes]:
    return await asyncio.gather(*(fit(port, number) for number in numbers))


def test_more_requests_than_a_worker_takes_are_refused(serve: Callable[..., ServiceProcess]) -> None:
    running = serve(VMSIZES_MAX_REQUESTS="4")

    async def run() -> None:
        answers = await fit_all(running.port, range(CLIENTS))
        statuses = Counter(map(status_of, answers))
        assert statuses.keys() == {200, 503}
        refused = next(answer for answer in answers if status_of(answer) == 503)
        assert b"\r\nretry-after: 5\r\n" in refused
        assert b"\r\nx-request-id: " in refused
        problem = json.loads(refused.partition(b"\r\n\r\n")[2])
        assert (problem["type"], problem["status"]) == ("/problems/busy", 503)
        assert problem["detail"].startswith("4 other requests are being answered")
        assert status_of(await fit(running.port, CLIENTS)) == 200

    asyncio.run(run())


def test_an_answer_that_takes_too_long_is_refused_and_its_work_stopped(serve: Callable[..., ServiceProcess]) -> None:
    running = serve(VMSIZES_REQUEST_SECONDS="1")

    async def run() -> None:
        async with asyncio.timeout(SOON):
            answers = await fit_all(running.port, range(CLIENTS))
        statuses = Counter(map(status_of, answers))
        assert statuses.keys() <= {200, 503}
        assert statuses[503]
        refused = next(answer for answer in answers if status_of(answer) == 503)
        assert b"The answer takes longer than 1 seconds" in refused
        assert await answers_again(running.port, within=5)

    asyncio.run(run())


def test_clients_that_leave_take_their_work_with_them(serve: Callable[..., ServiceProcess]) -> None:
    running = serve()

    async def run() -> None:
        opened = [await connect(running.port, fit_request(number)) for number in range(CLIENTS)]
        await asyncio.sleep(0.5)
        assert status_of(await ask(running.port)) == 200
        for connection in opened:
            connection.close()
        assert await answers_again(running.port, within=5)

    asyncio.run(run())


async def answers_again(port: int, *, within: float) -> bool:
    """Whether a request of the same kind is answered in time, which it would not be behind the others."""
    async with asyncio.timeout(within):
        number = CLIENTS
        while status_of(await fit(port, number)) != 200:
            number += 1
    return True
