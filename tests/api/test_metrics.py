"""The metrics of a worker, and of several."""

import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import httpx
import psutil
import pytest
from prometheus_client.parser import text_string_to_metric_families

from app.main import create_asgi_app
from app.settings import PROJECT, Settings
from tests.conftest import TODAY
from tests.processes import ServiceProcess, run_service
from tests.servers import get, open_client, server
from tests.waiting import wait_until

pytestmark = pytest.mark.first_database


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
    *_, last = (fresh.get("/sizes?limit=3") for _ in range(3))
    now = get_metrics(fresh)
    assert (now["vmsizes_response_cache_misses_total"], now["vmsizes_response_cache_hits_total"]) == (1, 2)
    assert now["vmsizes_db_queries_total"] == 1
    assert now["vmsizes_workers"] == 1
    assert now["vmsizes_response_cache_entries"] == 1
    assert now["vmsizes_response_cache_bytes"] > int(last.headers["content-length"])


def test_every_metric_that_the_guide_names_is_exposed_and_so_are_those_of_the_process(fresh: httpx.Client) -> None:
    documented = set(re.findall(r"`(vmsizes_\w+)`", (PROJECT / "docs/operations.md").read_text(encoding="utf-8")))
    families = text_string_to_metric_families(fresh.get("/metrics").text)
    exposed = {f"{one.name}_total" if one.type == "counter" else one.name for one in families}
    of_replicas = {"vmsizes_database_is_receiving", "vmsizes_database_replay_age_seconds"}
    of_refreshes = {name for name in documented if name.startswith("vmsizes_refresh_")}  # tests/cli/test_refresh.py
    assert documented - of_replicas - of_refreshes == {name for name in exposed if name.startswith("vmsizes_")}
    assert "process_resident_memory_bytes" in exposed


def samples_of(client: httpx.Client, name: str) -> dict[tuple[str, ...], float]:
    families = text_string_to_metric_families(client.get("/metrics").text)
    samples = [one for family in families for one in family.samples if one.name == name]
    return {tuple(one.labels[label] for label in LABELS if label in one.labels): one.value for one in samples}


LABELS = ("method", "route", "cache", "status", "le", "type", "source", "feed")


LATENCIES = "vmsizes_http_request_duration_seconds"


def test_requests_are_counted_by_route_status_and_cache(fresh: httpx.Client) -> None:
    for _ in range(3):
        etag = fresh.get("/sizes/nc6s_v3").headers["etag"]
    fresh.get("/sizes/NC24S_v3", headers={"if-none-match": "*"})
    fresh.get("/sizes/nc6s_v3", headers={"if-none-match": etag})
    fresh.get("/sizes/none_such")
    fresh.get("/sizes/nc6s_v3/nothing")
    fresh.delete("/sizes")
    fresh.get("/sizes.csv?limit=1")
    counts = samples_of(fresh, f"{LATENCIES}_count")
    assert counts["GET", "/sizes/{name}", "hit", "2xx"] == 2
    assert counts["GET", "/sizes/{name}", "hit", "3xx"] == 1
    assert counts["GET", "/sizes/{name}", "miss", "2xx"] == 1
    assert counts["GET", "/sizes/{name}", "miss", "3xx"] == 1, "rendered, since only that tells that it exists"
    assert counts["GET", "/sizes/{name}", "none", "4xx"] == 1
    assert counts["other", "other", "none", "4xx"] == 2


def test_the_buckets_of_a_route_add_up_and_the_sum_is_in_seconds(fresh: httpx.Client) -> None:
    for _ in range(20):
        fresh.get("/regions")
    buckets = samples_of(fresh, f"{LATENCIES}_bucket")
    hits = {one[4]: value for one, value in buckets.items() if one[:4] == ("GET", "/regions", "hit", "2xx")}
    assert hits["+Inf"] == 19
    assert list(hits.values()) == sorted(hits.values())
    assert 0 < samples_of(fresh, f"{LATENCIES}_sum")["GET", "/regions", "hit", "2xx"] < 10


def test_problems_are_counted_by_their_type(fresh: httpx.Client) -> None:
    fresh.get("/sizes?gpu=none_such")
    fresh.get("/sizes?cursor=x")
    fresh.get("/sizes?" + "x" * 9000)
    problems = samples_of(fresh, "vmsizes_http_problems_total")
    counted = {slug: count for (slug,), count in problems.items() if count}
    assert counted == {"unknown-value": 1, "bad-cursor": 1, "url-too-long": 1}


def test_the_revision_and_the_last_ingest_of_each_source_are_told(fresh: httpx.Client) -> None:
    (newest, *_) = fresh.get("/revisions").json()["items"]
    now = get_metrics(fresh)
    assert now["vmsizes_catalog_revision"] == newest["number"]
    last = samples_of(fresh, "vmsizes_last_ingest_timestamp_seconds")
    moment = datetime.fromisoformat(newest["created_at"]).timestamp()
    assert now["vmsizes_catalog_revision_timestamp_seconds"] == pytest.approx(moment)
    assert {source for (source,) in last} == set(newest["source_ids"])
    assert all(one == pytest.approx(moment) for one in last.values())


def test_what_clients_send_makes_no_new_series(fresh: httpx.Client) -> None:
    fresh.get("/metrics")
    before = len(fresh.get("/metrics").text.splitlines())
    for number in range(50):
        fresh.get(f"/{number}/x")
        fresh.request(f"M{number}", "/sizes")
    after = len(fresh.get("/metrics").text.splitlines())
    assert after <= before + 2 * 18, "a histogram of unknown paths, and one of another route at most"


@pytest.mark.takes_seconds
@pytest.mark.one_database  # workers add up files of their own
def test_a_scrape_tells_the_sum_of_two_workers_and_of_one_that_was_killed(seeded_url: str, tmp_path: Path) -> None:
    settings = {"VMSIZES_WORKERS": "2", "TMPDIR": str(tmp_path)}
    with run_service(seeded_url, tmp_path / "log", **settings) as service:
        sent = _ask_until_both_workers_have_answered(service.url)
        wait_until(lambda: _answers_of_the_cache(service.url) == sent)  # counted when it has been sent
        killed = _workers_of(service)[0]
        killed.kill()
        wait_until(lambda: killed not in _workers_of(service))
        assert _answers_of_the_cache(service.url) == sent, "what the killed one has counted is kept"
    assert not list(tmp_path.glob("vmsizes-counters-*")), "removed at the end"


def _workers_of(service: ServiceProcess) -> list[psutil.Process]:
    children = psutil.Process(service.process.pid).children()
    alive = [one for one in children if one.status() != psutil.STATUS_ZOMBIE]
    return [one for one in alive if "spawn_main" in " ".join(one.cmdline())]


def _ask_until_both_workers_have_answered(url: str) -> int:
    """Send requests on new connections, and return how many: an id begins with what is of its worker."""
    workers: set[str] = set()
    sent = 0

    def both_have() -> bool:
        nonlocal sent
        answer = get(f"{url}/regions")
        assert answer.status_code == 200, answer.text
        workers.add(answer.headers["x-request-id"].partition("-")[0])
        sent += 1
        return len(workers) == 2

    wait_until(both_have, "one worker answers everything")
    return sent


def _scrape(url: str) -> dict[str, float]:
    with open_client(url) as client:
        return get_metrics(client)


def _answers_of_the_cache(url: str) -> float:
    now = _scrape(url)
    return now["vmsizes_response_cache_hits_total"] + now["vmsizes_response_cache_misses_total"]
