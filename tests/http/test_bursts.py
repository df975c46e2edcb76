"""Bursts of concurrent requests are all answered, and do not delay health checks."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterator
from threading import Event, Thread

import pytest

from tests.databases import first_on_each_kind
from tests.processes import ServiceProcess, run_service
from tests.servers import open_client
from tests.speed import slowness

CONNECTIONS = 200
SOON_CPU_SECONDS = 0.3
"""So much the service may compute before it answers a health check, whatever else the machine does."""
AT_ALL_SECONDS = 20.0
"""A health check that takes longer waits for something, such as a connection: that takes 30 s to fail."""
BURSTS = 3

Asked = Callable[[int], str]
ASKED: dict[str, Asked] = {
    "facts": lambda number: f"/sizes/nd40rs_v2/facts?limit={number + 1}",
    "conflicts": lambda number: f"/conflicts?limit={number + 1}",
    "fit": lambda number: f"/fit?gpu=H100*&min_memory={number + 1}",
    "a size, or not": lambda number: f"/sizes/{'nd40rs_v2' if number % 2 else f'nd40rs_v{number + 3}'}",
}


@pytest.fixture(scope="module")
def running(seeded_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    """A service without a cache, so that a repeated burst runs its queries again."""
    with run_service(seeded_url, tmp_path_factory.mktemp("serve") / "log", VMSIZES_CACHE_MIB="0") as running:
        yield running


async def status_of(port: int, path: str) -> int:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
    answer = await reader.read()
    writer.close()
    return int(answer.split(b" ", 2)[1])


async def burst(port: int, asked: Asked) -> Counter[int]:
    return Counter(await asyncio.gather(*(status_of(port, asked(number)) for number in range(CONNECTIONS))))


def probing(running: ServiceProcess, over: Event, waits: list[tuple[float, float]]) -> None:
    """Request /healthz repeatedly and record how long each took: seconds, and CPU seconds of the service."""
    with open_client(running.url) as client:
        while not over.is_set():
            begun, computed = time.monotonic(), running.cpu_seconds
            assert client.get("/healthz").status_code == 200
            waits.append((time.monotonic() - begun, running.cpu_seconds - computed))
            over.wait(0.02)


def burst_with_probes(running: ServiceProcess, asked: Asked) -> tuple[Counter[int], list[tuple[float, float]]]:
    over, waits = Event(), list[tuple[float, float]]()
    prober = Thread(target=probing, args=(running, over, waits))
    prober.start()
    try:
        statuses = asyncio.run(burst(running.port, asked))
    finally:
        over.set()
        prober.join()
    return statuses, waits


@pytest.mark.takes_seconds
@pytest.mark.parametrize("asked", first_on_each_kind(1, ASKED.values()), ids=ASKED)
def test_two_hundred_concurrent_requests_do_not_delay_health_checks(running: ServiceProcess, asked: Asked) -> None:
    longest = []
    for _ in range(BURSTS):
        statuses, waits = burst_with_probes(running, asked)
        assert statuses.keys() <= {200, 404}
        assert statuses[200] >= CONNECTIONS / 2
        longest.append(tuple(map(max, zip(*waits, strict=True))))
        seconds, cpu_seconds = longest[-1]
        if seconds < AT_ALL_SECONDS and cpu_seconds < SOON_CPU_SECONDS * slowness():
            return
    pytest.fail(f"/healthz took {longest} seconds and CPU seconds in {BURSTS} bursts")
