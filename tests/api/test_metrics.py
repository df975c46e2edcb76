"""What a worker tells of itself."""

from collections.abc import Iterator

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from app.api.routes.system import COUNTERS, GAUGES
from app.main import create_asgi_app
from app.settings import Settings
from tests.conftest import TODAY
from tests.servers import server


@pytest.fixture
def fresh(seeded_url: str) -> Iterator[httpx.Client]:
    """A client of a server that was asked nothing yet."""
    service = create_asgi_app(Settings(_env_file=None, database_url=seeded_url), today=lambda: TODAY)
    with server(service) as url, httpx.Client(base_url=url) as client:
        yield client


def get_metrics(client: httpx.Client) -> dict[str, float]:
    families = text_string_to_metric_families(client.get("/metrics").text)
    return {sample.name: sample.value for family in families for sample in family.samples}


def test_hits_misses_and_what_is_kept_are_counted(fresh: httpx.Client) -> None:
    assert get_metrics(fresh)["vmsizes_response_cache_misses_total"] == 0
    bodies = [fresh.get("/sizes?limit=3").content for _ in range(3)]
    now = get_metrics(fresh)
    assert (now["vmsizes_response_cache_misses_total"], now["vmsizes_response_cache_hits_total"]) == (1, 2)
    assert now["vmsizes_db_queries_total"] == 1
    assert now["vmsizes_response_cache_entries"] == 1
    assert now["vmsizes_response_cache_bytes"] > len(bodies[0])


def test_every_metric_of_ours_is_told_and_so_is_the_process(fresh: httpx.Client) -> None:
    names = set(get_metrics(fresh))
    assert {f"{name}_total" for name in COUNTERS} | set(GAUGES) <= names
    assert "process_resident_memory_bytes" in names
