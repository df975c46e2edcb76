"""The page of changes over HTTP: the events of the API, the newest revision first."""

import re
from collections.abc import Iterator
from datetime import timedelta
from html import unescape

import httpx
import pytest

from app.http.middleware import CacheMiddleware
from app.ingest.run import ingest
from tests.databases import writable
from tests.factories import NOW, price, reading, size
from tests.servers import open_client, server

HTML = {"accept": "text/html"}


@pytest.fixture
def changed(service: CacheMiddleware) -> Iterator[httpx.Client]:
    """Three revisions: two sizes with prices, one dearer and one cheaper, then other words of the same source."""
    engine = writable(service)
    facts = [*size("Standard_X1", vcpus=8), *size("Standard_Y1", vcpus=16)]
    prices = [price(name, "2", region="eastus") for name in ("x1", "y1")]
    ingest(engine, reading(facts, regions=["eastus"], prices=prices), now=NOW - timedelta(days=3))
    ingest(engine, reading(prices=[price("x1", "3"), price("y1", "1.5")]), now=NOW - timedelta(days=2))
    ingest(engine, reading(size("Standard_Z1", vcpus=9)), now=NOW - timedelta(days=1))
    with server(service) as url, open_client(url) as client:
        yield client


def page(client: httpx.Client, url: str, status: int = 200) -> str:
    answer = client.get(url, headers=HTML)
    assert answer.status_code == status, answer.text
    return unescape(answer.text)


def events(text: str) -> list[str]:
    """Return the events as text."""
    return [
        " ".join(re.sub(r"<[^>]+>", " ", item.partition("</li>")[0]).split())
        for part in text.split('<ul class="events">')[1:]
        for item in part.partition("</ul>")[0].split("<li>")[1:]
    ]


def test_events_are_those_of_the_api_with_the_newest_revision_first(changed: httpx.Client) -> None:
    text = page(changed, "/ui/changes")
    answer = changed.get("/changes").json()
    assert f"<h1>{answer['total']} changes</h1>" in text
    assert len(events(text)) == answer["total"]
    numbers = [int(number) for number in re.findall(r'id="revision-(\d+)"', text)]
    assert numbers == sorted(numbers, reverse=True)
    assert any(line.startswith("price rose X1 eastus, Linux, on demand 2 → to 3") for line in events(text))
    assert "value changed Y1 vCPUs 16 → to unknown" in events(text)


def test_a_filter_of_the_page_is_that_of_the_api_and_of_the_feeds(changed: httpx.Client) -> None:
    text = page(changed, "/ui/changes?kind=price_up,price_down&min_percent=30")
    answer = changed.get("/changes?kind=price_up,price_down&min_percent=30").json()
    assert len(events(text)) == answer["total"] == 1
    feed = re.search(r'href="\.\./(changes\.atom\?[^"]+)"', text)
    assert feed is not None
    assert changed.get(f"/{feed[1]}").text.count("<entry>") == 1


def test_what_is_wrong_is_said_at_its_field(changed: httpx.Client) -> None:
    text = page(changed, "/ui/changes?since=tomorrow&size=x9", 422)
    assert "must be the number of a revision, or a date" in text
    assert page(changed, "/ui/changes?size=x1&purchase=spot").count("No change matches all of this") == 1


def test_before_the_first_change_there_are_those_of_lists_of_the_last_year(client: httpx.Client) -> None:
    text = page(client, "/ui/changes")
    assert "<h1>Prices that changed in the last year</h1>" in text
    days = re.findall(r'<h2 id="day-([\d-]+)">', text)
    assert days == sorted(days, reverse=True)
    rose = re.compile(r"price (?:rose|fell) (\S+) (\S+), Linux, on demand ([\d.]+) → to ([\d.]+) USD an hour (\S+) %")
    found = [rose.fullmatch(event) for event in events(text)]
    assert len(found) > 20
    for change in filter(None, found):
        _, _, old, new, percent = change.groups()
        assert float(percent.replace("−", "-")) == pytest.approx(100 * float(new) / float(old) - 100, abs=0.06)
    size, region, _, new, _ = next(filter(None, found)).groups()
    asked = {"region": region, "os": "linux", "purchase": "on_demand"}
    runs = client.get(f"/sizes/{size}/price-history", params=asked).json()["items"]
    assert (days[0], float(new)) in [(run["valid_from"], run["usd_per_hour"]) for run in runs]
    assert "No change matches all of this" in page(client, "/ui/changes?kind=price_up")
