"""Under more than it can take the service refuses, and is as before when the load ends."""

import asyncio
import json
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import httpx
import pytest

from tests.faults.connections import ask, connect, read_to_end, status_of
from tests.faults.worlds import mount
from tests.processes import ServiceProcess, run_service
from tests.waiting import LONGEST_SECONDS

CLIENTS = 80
FIT = {"model": "llama-3.1-70b", "inference": {"context_tokens": 8192, "concurrency": 32}, "include": ["rejected"]}


@pytest.fixture
def serve(seeded_url: str, tmp_path: Path) -> Iterator[Callable[..., ServiceProcess]]:
    """Starts a service with settings; its log has no traceback."""
    log = tmp_path / "log"
    with ExitStack() as stack:

        def start(**settings: str) -> ServiceProcess:
            return stack.enter_context(run_service(seeded_url, log, **settings))

        yield start
    assert "Traceback" not in log.read_text()


def fit_request(number: int) -> bytes:
    """A request that takes the service a while; each number is another question."""
    body = json.dumps(FIT | {"inference": {"context_tokens": 8192 + number, "concurrency": 32}}).encode()
    head = "POST /fit HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


async def fit(port: int, number: int) -> bytes:
    return await read_to_end(await connect(port, fit_request(number)))


async def fit_all(port: int, numbers: range) -> list[bytes]:
    return await asyncio.gather(*(fit(port, number) for number in numbers))


@pytest.mark.takes_seconds
@pytest.mark.first_database
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


@pytest.mark.takes_seconds
@pytest.mark.first_database
def test_an_answer_that_takes_too_long_is_refused_and_its_work_stopped(serve: Callable[..., ServiceProcess]) -> None:
    running = serve(VMSIZES_REQUEST_SECONDS="1")

    async def run() -> None:
        each, begun = await cpu_seconds_of_a_fit(running), running.cpu_seconds
        answers = await fit_all(running.port, range(CLIENTS))
        statuses = Counter(map(status_of, answers))
        assert statuses.keys() <= {200, 503}
        assert statuses[503]
        refused = next(answer for answer in answers if status_of(answer) == 503)
        assert b"The answer takes longer than 1 seconds" in refused
        await until_answered_again(running.port)
        assert running.cpu_seconds - begun < CLIENTS * each / 2

    asyncio.run(run())


@pytest.mark.takes_seconds
def test_clients_that_leave_take_their_work_with_them(serve: Callable[..., ServiceProcess]) -> None:
    running = serve()

    async def run() -> None:
        each, begun = await cpu_seconds_of_a_fit(running), running.cpu_seconds
        opened = [await connect(running.port, fit_request(number)) for number in range(CLIENTS)]
        assert status_of(await ask(running.port)) == 200
        for connection in opened:
            connection.close()
        await until_answered_again(running.port)
        assert running.cpu_seconds - begun < CLIENTS * each / 2

    asyncio.run(run())


async def cpu_seconds_of_a_fit(running: ServiceProcess, requests: int = 4) -> float:
    """Return how much CPU time an answer takes: unlike time, it does not depend on what else the machine does."""
    await fit(running.port, 2 * CLIENTS)
    begun = running.cpu_seconds
    for number in range(1, 1 + requests):
        await fit(running.port, 2 * CLIENTS + number)
    return (running.cpu_seconds - begun) / requests


async def until_answered_again(port: int) -> None:
    """Wait until a request of the same kind is answered, which comes behind what is still being computed."""
    async with asyncio.timeout(LONGEST_SECONDS):
        number = CLIENTS
        while status_of(await fit(port, number)) != 200:
            number += 1


@pytest.mark.takes_seconds
@pytest.mark.first_database
def test_a_full_folder_for_temporary_files_refuses_parquet_alone(
    serve: Callable[..., ServiceProcess], tmp_path: Path
) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    if not mount(folder, "256k"):
        pytest.skip("only root can mount a small file system")
    try:
        url = serve(TMPDIR=str(folder)).url
        filler = folder / "filler"
        with suppress(OSError):
            filler.write_bytes(b"x" * 2**20)
        for path in ("/sizes.parquet", "/prices.parquet"):
            refused = httpx.get(url + path, timeout=LONGEST_SECONDS)
            assert (refused.status_code, refused.json()["type"]) == (503, "/problems/busy")
            assert refused.json()["detail"].endswith(
                "folder for temporary files: No space left on device. CSV and NDJSON need no file."
            )
        assert httpx.get(f"{url}/sizes.csv", timeout=LONGEST_SECONDS).status_code == 200
        filler.unlink()
        assert httpx.get(f"{url}/sizes.parquet", timeout=LONGEST_SECONDS).status_code == 200
    finally:
        subprocess.run(["umount", "-l", folder], check=False)
