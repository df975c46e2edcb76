"""No single request stops a worker, or gets an answer that grows faster than the request."""

from collections.abc import Callable, Iterator

import httpx
import pytest

from tests.databases import first_on_each_kind
from tests.faults.heavy import REQUESTS, SHORT, Heavy, database_clock, measure, warm
from tests.processes import ServiceProcess, run_service
from tests.servers import open_client
from tests.speed import slowness


@pytest.fixture(scope="module")
def service(seeded_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    log = tmp_path_factory.mktemp("serve") / "log"
    with run_service(seeded_url, log) as running:
        warm(running)
        yield running
        assert "Traceback" not in log.read_text()


@pytest.fixture(scope="module")
def clock(seeded_url: str) -> Iterator[Callable[[], float]]:
    with database_clock(seeded_url) as seconds:
        yield seconds


@pytest.fixture(scope="module")
def client(service: ServiceProcess) -> Iterator[httpx.Client]:
    with open_client(service.url) as client:
        yield client


@pytest.mark.parametrize("request_", first_on_each_kind(len(SHORT), REQUESTS), ids=[one.name for one in REQUESTS])
def test_a_request_costs_little(
    service: ServiceProcess, client: httpx.Client, clock: Callable[[], float], request_: Heavy
) -> None:
    cost = measure(request_, service, client, clock)
    assert cost.status in request_.statuses
    assert cost.size <= request_.max_bytes
    assert cost.cpu_seconds <= request_.cpu_seconds * slowness()
    assert cost.database_seconds <= request_.database_seconds
