"""Pagination: by cursor or by link, with every filter, within one revision of the catalog."""

from collections.abc import Iterable
from typing import Any
from urllib.parse import urljoin

import httpx
import pytest
from sqlalchemy import Engine

from app.catalog.readings import Reading
from app.http.middleware import CacheMiddleware
from app.ingest.run import ingest
from tests.databases import first_on_each_kind, writable
from tests.factories import NOW, reading, size
from tests.servers import open_client, server
from tests.waiting import wait_until
from tests.walks import walk

WITH_GAPS = ("usd_per_hour", "usd_per_gpu_hour", "usd_per_vcpu_hour", "gpu_memory_gib", "retirement_date")
"""Sort keys that are null for some sizes."""


@pytest.fixture
def service(service: CacheMiddleware, engine: Engine) -> CacheMiddleware:
    """A service of the test's own, with six sizes in its catalog."""
    ingest(engine, reading_of("ABCDE"), now=NOW)
    return service


def reading_of(names: Iterable[str]) -> Reading:
    """Return a reading of one source; sizes that its next reading does not name are removed."""
    return reading([each for name in ("Standard_X1", *names) for each in size(name, vcpus=8)])


def link(answer: httpx.Response, rel: str) -> str | None:
    return answer.links.get(rel, {}).get("url")


@pytest.mark.first_database
def test_next_links_lead_through_the_list_with_every_filter(client: httpx.Client) -> None:
    query = "limit=3&min_gpu_mem=80&gpu=A100&gpu=H100&verified=true&sort=-gpu_memory_gib,name&max_usd_per_hour=50.5"
    whole = client.get(f"/sizes?{query}&limit=500".replace("limit=3&", "")).json()
    url, walked = f"/sizes?{query}", []
    while url:
        for _ in range(2):
            answer = client.get(url)
            assert answer.json()["total"] == whole["total"]
        walked += answer.json()["items"]
        following = link(answer, "next")
        assert (following is None) == (answer.json()["next_cursor"] is None)
        url = urljoin(url, following) if following else ""
    assert walked == whole["items"]
    assert len(walked) > 6


@pytest.mark.parametrize("sort", first_on_each_kind(2, [f"{sign}{key}" for key in WITH_GAPS for sign in ("", "-")]))
def test_pages_continue_through_unknown_values_to_the_end(client: httpx.Client, sort: str) -> None:
    path = f"/sizes?status=any&sort={sort}"
    whole = [item["name"] for item in walk(client, "/sizes", status="any", sort=sort)]
    following: str | None = f"{path}&limit=50"
    walked = []
    while following is not None:
        answer = client.get(following)
        walked += [item["name"] for item in answer.json()["items"]]
        following = link(answer, "next")
    assert walked == whole


@pytest.mark.parametrize(
    "path", ["/gpus?limit=2", "/sizes/nc4as_t4_v3/similar?limit=2", "/fit?limit=2&min_gpus=1", "/models?limit=2"]
)
def test_every_list_links_to_its_next_page(client: httpx.Client, path: str) -> None:
    first = client.get(path)
    following = link(first, "next")
    assert following is not None
    second = client.get(following).json()
    cursor = first.json()["next_cursor"]
    assert second["items"] == client.get(f"{path}&cursor={cursor}").json()["items"]
    assert second["items"] != first.json()["items"]


@pytest.mark.takes_seconds
@pytest.mark.first_database
@pytest.mark.parametrize("path", ["/sizes?limit=2", "/fit?limit=2", "/sizes/a/similar?limit=2", "/revisions?limit=1"])
def test_a_cursor_is_gone_after_an_ingest(service: CacheMiddleware, path: str) -> None:
    engine = writable(service)
    ingest(engine, reading_of("ABCDEF"), now=NOW)
    with server(service) as url, open_client(url) as client:
        first = client.get(path).json()
        following = {"cursor": first["next_cursor"]}
        assert client.get(path, params=following).status_code == 200
        ingest(engine, reading_of([*"ABCDEF", "Aa"]), now=NOW)
        client.get("/healthz")
        gone = get_until_status(client, path, following, 410)
        assert gone["type"] == "/problems/cursor-gone"
        assert "Start again without cursor" in gone["detail"]
        assert client.get(path).status_code == 200


@pytest.mark.takes_seconds
@pytest.mark.first_database
def test_who_starts_again_after_410_gets_the_first_page_of_now(
    service: CacheMiddleware, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.http.revision.REFRESH_SECONDS", 3600.0)  # the stored first page would be sent for so long
    ingest(writable(service), reading_of("ABCDEF"), now=NOW)
    with server(service) as url, open_client(url) as client:
        old = client.get("/sizes?limit=2").json()
        ingest(writable(service), reading_of([*"ABCDEF", "Aa"]), now=NOW)
        assert client.get("/sizes?limit=2", params={"cursor": old["next_cursor"]}).status_code == 410
        new = client.get("/sizes?limit=2").json()
        assert client.get("/sizes?limit=2", params={"cursor": new["next_cursor"]}).status_code == 200


def get_until_status(client: httpx.Client, path: str, params: dict[str, str], status: int) -> dict[str, Any]:
    """Repeat a request until its status changes; until then it is answered from the old revision."""
    answers: list[httpx.Response] = []

    def has_changed() -> bool:
        answers.append(client.get(path, params=params))
        return answers[-1].status_code == status

    wait_until(has_changed)
    assert {answer.status_code for answer in answers[:-1]} <= {200}
    body: dict[str, Any] = answers[-1].json()
    return body
