"""Connections that are silent, slow or too many are closed in time, and others are served meanwhile."""

import asyncio
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from app.errors import Busy
from app.http.problems import DOMAIN_PROBLEMS, STATUS_PROBLEMS
from app.server.protocol import LEAST_IDLE_SECONDS, PROBLEMS
from tests.faults.connections import (
    EMPTY_LINES,
    EXPORT,
    HALF_BODY,
    HALF_HEAD,
    IDLE,
    SILENT,
    ask,
    connect,
    read_response,
    read_to_end,
    status_of,
    until_closed,
)
from tests.processes import ServiceProcess, run_service
from tests.waiting import LONGEST_SECONDS, until

pytestmark = pytest.mark.one_database  # connections do not depend on the database

LIMIT = 120
EACH = 30
SECONDS = {f"VMSIZES_{name}_SECONDS": "1" for name in ("KEEP_ALIVE", "HEADER", "BODY", "WRITE")}


@pytest.fixture(scope="module")
def running(seeded_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    """A service whose clients have a second for everything."""
    log = tmp_path_factory.mktemp("serve") / "log"
    with run_service(seeded_url, log, VMSIZES_MAX_CONNECTIONS=str(LIMIT), **SECONDS) as running:
        yield running
        assert "Traceback" not in log.read_text()


@pytest.fixture(scope="module")
def patient(seeded_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    """A service that takes ten minutes to close anything."""
    ten_minutes = dict.fromkeys(SECONDS, "600")
    log = tmp_path_factory.mktemp("serve") / "log"
    with run_service(seeded_url, log, VMSIZES_MAX_CONNECTIONS=str(LIMIT), **ten_minutes) as running:
        yield running


@pytest.mark.takes_seconds
@pytest.mark.parametrize(
    ("sent", "status"),
    [(SILENT, 0), (EMPTY_LINES, 0), (HALF_HEAD, 408), (HALF_BODY, 408), (IDLE, 200), (IDLE + HALF_HEAD, 200)],
    ids=["silent", "empty lines", "half headers", "half a body", "idle", "half headers of a second request"],
)
def test_connections_that_send_nothing_more_are_closed_in_time(
    running: ServiceProcess, sent: bytes, status: int
) -> None:
    async def run() -> None:
        opened = [await connect(running.port, sent) for _ in range(EACH)]
        closing = [asyncio.create_task(read_to_end(connection)) for connection in opened]
        while not all(task.done() for task in closing):
            assert status_of(await ask(running.port)) == 200
            await asyncio.sleep(0.05)
        assert Counter(status_of(task.result()) for task in closing) == {status: EACH}

    asyncio.run(run())


@pytest.mark.takes_seconds
def test_a_problem_says_why_the_connection_was_closed(running: ServiceProcess) -> None:
    async def run() -> bytes:
        return await read_to_end(await connect(running.port, HALF_HEAD))

    response = asyncio.run(run())
    assert b"\r\nconnection: close\r\n" in response
    assert b"\r\ncontent-type: application/problem+json\r\n" in response
    assert b'"type":"/problems/request-timeout"' in response


@pytest.mark.takes_seconds
def test_a_problem_of_a_connection_is_like_any_other(seeded_url: str, tmp_path: Path) -> None:
    sent = {
        b"no HTTP\r\n\r\n": "",
        b"GET /regions?a=1 HTTP/1.1\r\nX-Request-ID: mine\r\n\r\n": "/regions",
        b"GET /" + b"a" * 70_000: "/aaa",
        HALF_HEAD: "/healthz",
        HALF_BODY: "/fit",
        IDLE + b"no HTTP\r\n\r\n": "",
    }
    url = "https://vms.example/api"

    async def run(port: int) -> None:
        for request, path in sent.items():
            response = await read_to_end(await connect(port, request))
            head, _, body = response.rpartition(b"HTTP/1.1 4")[2].partition(b"\r\n\r\n")
            headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n")[1:])
            problem = json.loads(body)
            assert problem["type"].startswith(f"{url}/problems/")
            assert problem["instance"].startswith(f"/api{path}")
            assert problem["errors"] == []
            assert (
                problem["request_id"]
                == headers["x-request-id"]
                == ("mine" if b"mine" in request else problem["request_id"])
            )
            assert headers["strict-transport-security"] == "max-age=60"
            assert (headers["cache-control"], headers["connection"]) == ("no-store", "close")

    with run_service(
        seeded_url, tmp_path / "log", VMSIZES_PUBLIC_URL=url, VMSIZES_HSTS_SECONDS="60", **SECONDS
    ) as running:
        asyncio.run(run(running.port))


def test_the_service_explains_these_problems() -> None:
    explained = {(status, slug, title) for status, (slug, title, _) in PROBLEMS.items()}
    assert explained <= {(status, *named) for status, named in STATUS_PROBLEMS.items()} | {DOMAIN_PROBLEMS[Busy]}


def test_a_client_that_sends_a_byte_now_and_then_has_no_more_time(running: ServiceProcess) -> None:
    async def run() -> bytes:
        loop, connection = asyncio.get_running_loop(), await connect(running.port, HALF_HEAD)

        async def drip() -> None:
            while True:
                await asyncio.sleep(0.2)
                await loop.sock_sendall(connection, b"x")

        dripping = asyncio.create_task(drip())
        try:
            return await read_to_end(connection)
        finally:
            dripping.cancel()

    assert status_of(asyncio.run(run())) == 408


@pytest.mark.parametrize(
    ("begin", "more", "statuses"),
    [
        (b"GET / HTTP/1.1\r\nHost: x\r\n", b"X-A: " + b"a" * 1000 + b"\r\n", {431}),
        (b"GET / HTTP/1.1\r\nX: ", b"a" * 1000, {431}),
        (b"GET /", b"a" * 1000, {431}),
        (b"POST /fit HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n",
         b"3e8\r\n" + b"a" * 1000 + b"\r\n", {413}),
        (b"POST /fit HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n",
         b"X-A: " + b"a" * 1000 + b"\r\n", {413, 415, 431}),
    ],
    ids=["headers", "one header", "a request line", "a body", "trailers"],
)  # fmt: skip
def test_a_request_without_an_end_is_refused(
    patient: ServiceProcess, begin: bytes, more: bytes, statuses: set[int]
) -> None:
    async def run() -> tuple[bytes, int]:
        loop, connection, sent = asyncio.get_running_loop(), await connect(patient.port, begin), 0
        reading = asyncio.create_task(read_to_end(connection))
        try:
            while not reading.done() and sent < 50_000_000:
                await asyncio.wait_for(loop.sock_sendall(connection, more * 20), LONGEST_SECONDS)
                sent += 20 * len(more)
                await asyncio.sleep(0)
        except OSError:  # closed by the service
            pass
        return await reading, sent

    response, sent = asyncio.run(run())
    assert status_of(response) in {0, *statuses}  # 0: reset while it was still sending
    assert response.count(b"HTTP/1.1") <= 1
    assert sent < 50_000_000


@pytest.mark.takes_seconds
def test_slow_readers_are_disconnected(running: ServiceProcess) -> None:
    async def run() -> None:
        readers = [await connect(running.port, EXPORT, reads=False) for _ in range(10)]
        closed = asyncio.gather(*(until_closed(reader) for reader in readers))
        while not closed.done():
            assert status_of(await ask(running.port)) == 200
            await asyncio.sleep(0.05)
        await closed
        for reader in readers:
            reader.close()

    asyncio.run(run())


@pytest.mark.slow
def test_a_slow_but_steady_reader_gets_all_of_an_export(running: ServiceProcess) -> None:
    async def run() -> bytes:
        loop = asyncio.get_running_loop()
        connection = await connect(running.port, EXPORT.replace(b"/prices.csv", b"/sizes.csv"), reads=False)
        received, last = b"", loop.time()
        while not received.endswith(b"0\r\n\r\n"):
            chunk = await asyncio.wait_for(loop.sock_recv(connection, 32_768), LONGEST_SECONDS)
            assert chunk, f"cut off after {len(received)} bytes and {loop.time() - last} s"
            received += chunk
            await asyncio.sleep(0.02)
        connection.close()
        return received

    assert len(asyncio.run(run())) > 200_000


def test_over_the_limit_health_checks_are_answered_and_all_else_is_refused(patient: ServiceProcess) -> None:
    async def run() -> None:
        loop = asyncio.get_running_loop()
        before = await problems_of(patient.port)
        # Each has begun another request, so that none is idle and would be closed for others.
        held = [await connect(patient.port, IDLE + HALF_HEAD) for _ in range(LIMIT)]
        for connection in held:
            assert status_of(await read_response(connection)) == 200
        refused = await asyncio.gather(*(ask(patient.port, "/sizes?limit=1") for _ in range(EACH)))
        assert (await problems_of(patient.port) - before)["busy"] == EACH
        assert {status_of(response) for response in refused} == {503}
        for response in refused:
            assert b"\r\nretry-after: 5\r\n" in response
            assert b"\r\nconnection: close\r\n" in response
            assert b'"type":"/problems/busy"' in response
        assert status_of(await ask(patient.port)) == 200
        await loop.sock_sendall(held[0], b"x\r\n\r\n")
        assert status_of(await read_response(held[0])) == 200
        for connection in held:
            connection.close()

        async with asyncio.timeout(LONGEST_SECONDS):
            while status_of(await ask(patient.port, "/sizes?limit=1")) != 200:  # noqa: ASYNC110  # the service's state
                await asyncio.sleep(0.05)

    asyncio.run(run())


@pytest.mark.takes_seconds
def test_a_connection_that_has_been_idle_for_long_makes_room_for_another(seeded_url: str, tmp_path: Path) -> None:
    async def run(running: ServiceProcess) -> None:
        loop, held = asyncio.get_running_loop(), []
        try:
            for _ in range(16):
                held.append(await connect(running.port, IDLE))
                assert status_of(await read_response(held[-1])) == 200
            await asyncio.sleep(LEAST_IDLE_SECONDS)
            await loop.sock_sendall(held[0], IDLE)
            assert status_of(await read_response(held[0])) == 200
            assert status_of(await ask(running.port, "/sizes?limit=1")) == 200
            assert await read_response(held[1]) == b"", "idle for longest, since the first has asked again"
            await loop.sock_sendall(held[2], IDLE)
            assert status_of(await read_response(held[2])) == 200
        finally:
            for connection in held:
                connection.close()

    settings = {"VMSIZES_MAX_CONNECTIONS": "16", "VMSIZES_KEEP_ALIVE_SECONDS": "600"}
    with run_service(seeded_url, tmp_path / "log", **settings) as running:
        asyncio.run(run(running))


@pytest.mark.takes_seconds
@pytest.mark.skipif(sys.platform != "linux", reason="the state of a connection is read as Linux tells it")
def test_requests_of_clients_that_left_before_they_were_accepted_are_not_computed(
    seeded_url: str, tmp_path: Path
) -> None:
    async def run(running: ServiceProcess) -> None:
        served = psutil.Process(running.process.pid)
        served.suspend()
        for number in range(50):
            request = f"GET /sizes?min_vcpus={number} HTTP/1.1\r\nHost: x\r\n\r\n".encode()
            (await connect(running.port, request)).close()
        served.resume()
        assert status_of(await ask(running.port, "/regions")) == 200
        assert '"/sizes"' not in (await ask(running.port, "/metrics")).decode()

    with run_service(seeded_url, tmp_path / "log") as running:
        asyncio.run(run(running))


@pytest.mark.takes_seconds
def test_requests_that_connections_refuse_are_in_the_metrics(seeded_url: str, tmp_path: Path) -> None:
    async def run(running: ServiceProcess) -> None:
        leaving = await connect(running.port, HALF_BODY)
        assert status_of(await ask(running.port)) == 200
        leaving.close()  # which is no problem
        sent = {b"no HTTP\r\n\r\n": 400, HALF_HEAD: 408, HALF_BODY: 408, b"GET /" + b"a" * 70_000: 431}
        for request, status in sent.items():
            assert status_of(await read_to_end(await connect(running.port, request))) == status
        counted = await problems_of(running.port)
        assert counted == {"bad-request": 1, "request-timeout": 2, "headers-too-long": 1}
        metrics = (await ask(running.port, "/metrics")).decode()
        labels = 'cache="none",method="other",route="other",status="4xx"'
        assert f"vmsizes_http_request_duration_seconds_count{{{labels}}} 3.0" in metrics, "two have a route"
        (seconds,) = re.findall(rf"duration_seconds_sum{{{labels}}} (.+)", metrics)
        assert float(seconds) >= 1, "so long the service waited for the rest of the headers"

    with run_service(seeded_url, tmp_path / "log", **SECONDS) as running:
        asyncio.run(run(running))


async def problems_of(port: int) -> Counter[str]:
    """Return how many requests got a problem, by its type."""
    metrics = (await ask(port, "/metrics")).decode()
    found = re.findall(r'^vmsizes_http_problems_total{type="(.+)"} (.+)$', metrics, re.MULTILINE)
    return +Counter({slug: int(float(count)) for slug, count in found})


@pytest.mark.slow
def test_far_more_connections_than_files_may_be_open_exhaust_nothing(seeded_url: str, tmp_path: Path) -> None:
    files, log = 512, tmp_path / "log"

    async def run(running: ServiceProcess) -> Counter[int]:
        first = await connect(running.port, IDLE)
        loop = asyncio.get_running_loop()
        opened = [await connect(running.port) for _ in range(2 * files)]
        assert running.open_files < files
        for _ in range(5):
            await read_response(first)
            await loop.sock_sendall(first, IDLE)
        first.close()
        reading = await asyncio.gather(*(read_to_end(connection) for connection in opened))
        await until(lambda: running.open_files < 40)
        assert status_of(await ask(running.port, "/sizes?limit=1")) == 200
        return Counter(map(status_of, reading))

    with run_service(seeded_url, log, files, **SECONDS) as running:
        statuses = asyncio.run(run(running))
    assert statuses.keys() <= {0, 503}
    assert statuses[503] > files
    assert "connections       192 a worker instead of 2000" in log.read_text()
    assert "Traceback" not in log.read_text()


@pytest.mark.takes_seconds
def test_a_service_that_may_open_too_few_files_does_not_start(seeded_url: str) -> None:
    program = str(Path(sys.executable).with_name("vmsizes"))
    command = ["sh", "-c", 'ulimit -n 300 && exec "$@"', "sh", program, "serve", "--port", "1"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LONGEST_SECONDS)
    assert done.returncode != 0
    assert "the limit is 300 (ulimit -n)" in done.stderr
