"""The metrics of a worker."""

import re
from collections.abc import Iterator

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from app.main import create_asgi_app
from app.settings import PROJECT, Settings
from tests.conftest import TODAY
from tests.servers import open_client, server


@pytest.fixture
def fresh(seeded_url: str) -> Iterator[httpx.Client]:
    """A client of a server that has served no request yet."""
    service = create_asgi_app(Settings(_env_file=None, database_url=seeded_url), today=lambda: TODAY)
    with server(service) as url, open_client(url) as client:
        yield client


def get_metrics(client: httpx.Client) -> dict[str, float]:
    families = text_string_to_metric_families(client.get("/metrics").text)
    return {sample.name: sample.value for family in families for sample in family.samples}


def test_hits_misses_and_cached_responses_are_counted(fresh: httpx.Client) -> None:
    assert get_metrics(fresh)["vmsizes_response_cache_misses_total"] == 0
    bodies = [fresh.get("/sizes?limit=3").content for _ in range(3)]
    now = get_metrics(fresh)
    assert (now["vmsizes_response_cache_misses_total"], now["vmsizes_response_cache_hits_total"]) == (1, 2)
    assert now["vmsizes_db_queries_total"] == 1
    assert now["vmsizes_response_cache_entries"] == 1
    assert now["vmsizes_response_cache_bytes"] > len(bodies[0])


def test_every_metric_that_the_guide_names_is_exposed_and_so_are_those_of_the_process(fresh: httpx.Client) -> None:
    documented = set(re.findall(r"`(vmsizes_\w+)`", (PROJECT / "docs/operations.md").read_text(encoding="utf-8")))
    exposed = get_metrics(fresh).keys()
    assert documented == {name for name in exposed if name.startswith("vmsizes_") and not name.endswith("_created")}
    assert "process_resident_memory_bytes" in exposed
