"""The service ends within a bound, and its workers are replaced and restarted without a failed request."""

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import mean

import psutil
import pytest

from tests.databases import one_in
from tests.faults.connections import EXPORT, IDLE, ask, connect, read_response, read_to_end, status_of
from tests.processes import ServiceProcess, free_port, run_service
from tests.waiting import LONGEST_SECONDS, until

pytestmark = pytest.mark.one_database  # processes do not depend on the database

WORKERS = 2
FIT = b'{"resources": {"min_vcpus": 4}}'
FIT_HEAD = b"POST /fit HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(FIT)


@pytest.fixture
def running(seeded_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServiceProcess]:
    """A service that gives requests two seconds when it ends, and ten minutes before; its files are in `tmp_path`."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    settings = {"VMSIZES_SHUTDOWN_SECONDS": "2", "VMSIZES_WRITE_SECONDS": "600"}
    with run_service(seeded_url, tmp_path / "log", **settings) as running:
        yield running


@pytest.fixture
def patient(seeded_url: str, tmp_path: Path) -> Iterator[ServiceProcess]:
    """A service that gives requests longer when it ends than one takes on a machine that does much else."""
    with run_service(seeded_url, tmp_path / "log", VMSIZES_SHUTDOWN_SECONDS="60") as running:
        yield running


@contextmanager
def run_workers(url: str, folder: Path) -> Iterator[ServiceProcess]:
    settings = {"VMSIZES_WORKERS": str(WORKERS), "VMSIZES_SHUTDOWN_SECONDS": "2"}
    with run_service(url, folder / "log", **settings) as running:
        yield running


@pytest.fixture(scope="module")
def workers(seeded_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    """A service with two workers, which goes on after each test."""
    with run_workers(seeded_url, tmp_path_factory.mktemp("workers")) as running:
        yield running


def end(running: ServiceProcess, number: signal.Signals = signal.SIGTERM) -> None:
    """Have the service end: where its bound does not end it, nothing does in these tests."""
    running.process.send_signal(number)
    running.process.wait(timeout=LONGEST_SECONDS)


async def until_not_listening(port: int) -> None:
    async with asyncio.timeout(LONGEST_SECONDS):
        while True:
            try:
                (await connect(port)).close()
            except OSError:
                return
            await asyncio.sleep(0.02)


@pytest.mark.takes_seconds
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_service_with_slow_readers_ends_within_its_bound(
    running: ServiceProcess, number: signal.Signals, tmp_path: Path
) -> None:
    async def run() -> None:
        loop = asyncio.get_running_loop()
        readers = [await connect(running.port, EXPORT, reads=False) for _ in range(20)]
        begun = await asyncio.gather(*(loop.sock_recv(reader, 12) for reader in readers))
        assert {bytes(head) for head in begun} <= {b"HTTP/1.1 200", b"HTTP/1.1 503"}
        end(running, number)
        endings = await asyncio.gather(*(read_to_end(reader) for reader in readers))
        streamed = [end for head, end in zip(begun, endings, strict=True) if head.endswith(b"200")]
        assert streamed
        assert not any(end.endswith(b"0\r\n\r\n") for end in streamed)  # none looks complete

    asyncio.run(run())
    assert "Traceback" not in (tmp_path / "log").read_text()


@pytest.mark.takes_seconds
def test_no_temporary_files_are_left(running: ServiceProcess, tmp_path: Path) -> None:
    assert status_of(asyncio.run(ask(running.port, "/sizes.parquet"))) == 200
    assert list(tmp_path.glob("vmsizes-exports-*/*.parquet"))
    end(running)
    assert not list(tmp_path.glob("vmsizes-*"))


@pytest.mark.takes_seconds
def test_requests_in_progress_end_with_their_answer_and_an_export_leaves_room_for_one_more_request(
    patient: ServiceProcess,
) -> None:
    async def run() -> tuple[bytes, list[bytes]]:
        loop = asyncio.get_running_loop()
        begun, idle = await connect(patient.port, FIT_HEAD + FIT[:5]), await connect(patient.port, IDLE)
        assert status_of(await read_response(idle)) == 200
        reader = await connect(patient.port, EXPORT.replace(b"/prices.csv", b"/sizes.ndjson"))
        received = bytes(await loop.sock_recv(reader, 4096))
        patient.process.terminate()
        await until_not_listening(patient.port)
        async with asyncio.timeout(LONGEST_SECONDS):
            while not received.endswith(b"\r\n0\r\n\r\n"):
                received += await loop.sock_recv(reader, 65_536)
        await loop.sock_sendall(reader, IDLE)
        await loop.sock_sendall(idle, IDLE)
        await loop.sock_sendall(begun, FIT[5:])
        return received, [await read_to_end(one) for one in (reader, idle, begun)]

    export, responses = asyncio.run(run())
    assert b"\r\nconnection: close\r\n" not in export.partition(b"\r\n\r\n")[0]
    for response in responses:
        assert status_of(response) == 200
        assert b"\r\nconnection: close\r\n" in response
    patient.process.wait(timeout=LONGEST_SECONDS)


async def load(port: int, over: asyncio.Event) -> Counter[str]:
    """Send requests over connections that stay open; counts statuses, and requests that had no whole response."""
    counted: Counter[str] = Counter()
    loop = asyncio.get_running_loop()

    async def work() -> None:
        connection = None
        while not over.is_set():
            connection = connection or await connect(port)
            try:
                await loop.sock_sendall(connection, b"GET /sizes?limit=1 HTTP/1.1\r\nHost: x\r\n\r\n")
                response = b""
                while not response.endswith(b"}"):
                    chunk = await asyncio.wait_for(loop.sock_recv(connection, 65_536), LONGEST_SECONDS)
                    if not chunk:
                        raise ConnectionResetError
                    response += chunk
                counted[str(status_of(response))] += 1
                last = b"\r\nconnection: close\r\n" in response
            except ConnectionError:
                counted["reset"] += 1
                last = True
            if last:
                connection.close()
                connection = None
        if connection is not None:
            connection.close()

    await asyncio.gather(*(work() for _ in range(8)))
    return counted


@pytest.mark.slow
def test_workers_are_restarted_one_after_the_other_without_a_failed_request(workers: ServiceProcess) -> None:
    async def run() -> Counter[str]:
        await until(lambda: len(workers.workers) == WORKERS)
        before, over = workers.workers, asyncio.Event()
        loading = asyncio.create_task(load(workers.port, over))
        workers.process.send_signal(signal.SIGHUP)
        await until(lambda: len(workers.workers) == WORKERS and not workers.workers & before)
        over.set()
        return await loading

    counted = asyncio.run(run())
    assert counted.keys() == {"200"}


@pytest.mark.takes_seconds
@pytest.mark.parametrize(
    "number", one_in(3, [signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2]), ids=lambda number: number.name
)
def test_signals_of_no_meaning_end_no_single_worker_and_sigquit_ends_it_as_sigterm_does(
    patient: ServiceProcess, tmp_path: Path, number: signal.Signals
) -> None:
    async def run() -> None:
        patient.process.send_signal(number)
        await until(lambda: f"{number.name} is ignored" in (tmp_path / "log").read_text())
        assert status_of(await ask(patient.port, "/sizes?limit=1")) == 200

    asyncio.run(run())
    end(patient, signal.SIGQUIT)
    assert patient.process.returncode == -signal.SIGTERM
    assert "Application shutdown complete" in (tmp_path / "log").read_text()


@pytest.mark.takes_seconds
def test_a_worker_that_dies_is_replaced(workers: ServiceProcess) -> None:
    async def run() -> None:
        await until(lambda: len(workers.workers) == WORKERS)
        killed = min(workers.workers)
        os.kill(killed, signal.SIGKILL)
        assert status_of(await ask(workers.port, "/sizes?limit=1")) == 200
        await until(lambda: killed not in workers.workers and len(workers.workers) == WORKERS)

    asyncio.run(run())


def connections_of(pid: int) -> int:
    return sum(one.status == psutil.CONN_ESTABLISHED for one in psutil.Process(pid).net_connections(kind="tcp"))


@pytest.mark.takes_seconds
def test_connections_that_are_opened_at_once_are_shared_by_the_workers(workers: ServiceProcess) -> None:
    async def least_of_16() -> int:
        opened = await asyncio.gather(*(connect(workers.port, IDLE) for _ in range(16)))
        await until(lambda: sum(map(connections_of, workers.workers)) == 16)
        least = min(map(connections_of, workers.workers))
        for one in opened:
            one.close()
        await until(lambda: sum(map(connections_of, workers.workers)) == 0)
        return least

    async def run() -> list[int]:
        await until(lambda: len(workers.workers) == WORKERS)
        async with asyncio.timeout(LONGEST_SECONDS):
            while await least_of_16() == 0:  # a process that has just started does not accept yet
                pass
        return [await least_of_16() for _ in range(6)]

    assert mean(asyncio.run(run())) >= 5  # a machine that is busy does not wake each worker in time


def test_a_worker_that_hangs_does_not_keep_others_from_accepting(workers: ServiceProcess) -> None:
    async def run() -> list[int]:
        await until(lambda: len(workers.workers) == WORKERS)
        hanging = psutil.Process(min(workers.workers))
        hanging.suspend()
        try:
            async with asyncio.timeout(LONGEST_SECONDS):
                return [status_of(await ask(workers.port, "/healthz")) for _ in range(20)]
        finally:
            hanging.resume()

    assert asyncio.run(run()) == [200] * 20


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_workers_end_with_their_parent(seeded_url: str, tmp_path: Path, number: signal.Signals) -> None:
    async def run(running: ServiceProcess) -> None:
        await until(lambda: len(running.workers) == WORKERS)
        processes = [psutil.Process(pid) for pid in running.workers]
        end(running, number)
        await until(lambda: not any(process.is_running() for process in processes))

    with run_workers(seeded_url, tmp_path) as running:
        asyncio.run(run(running))


@pytest.mark.slow
@pytest.mark.parametrize("number", [1, WORKERS])
def test_the_port_is_listened_on_when_its_address_is_printed(seeded_url: str, number: int) -> None:
    program = str(Path(sys.executable).with_name("vmsizes"))
    command = [program, "serve", "--port", str(free_port()), "--workers", str(number)]
    environment = {**os.environ, "VMSIZES_DATABASE_URL": seeded_url, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        printed = process.stdout.readline().decode()
        try:
            assert printed == f"Serving http://127.0.0.1:{command[3]}\n"
            assert status_of(asyncio.run(ask(int(command[3])))) == 200
        finally:
            process.terminate()
            process.stdout.read()


@pytest.mark.slow
def test_temporary_files_of_a_killed_service_are_removed_by_the_next(running: ServiceProcess, tmp_path: Path) -> None:
    assert status_of(asyncio.run(ask(running.port, "/sizes.parquet"))) == 200
    (left,) = tmp_path.glob("vmsizes-exports-*")
    running.process.kill()
    running.process.wait(timeout=LONGEST_SECONDS)
    assert left.exists()
    with run_service("sqlite://", tmp_path / "next"):
        assert not left.exists()
