"""The prices of a size over time: each price of each source, with the days between which the source has it."""

from collections.abc import Iterator
from datetime import timedelta

import httpx
import pytest
from sqlalchemy import Engine

from app.http.middleware import CacheMiddleware
from app.ingest.run import ingest
from tests.catalog.test_price_runs import X1, on, one_list
from tests.conftest import TODAY
from tests.factories import NOW
from tests.servers import open_client, server

PATH = "/sizes/x1/price-history"


@pytest.fixture
def history(service: CacheMiddleware, engine: Engine) -> Iterator[httpx.Client]:
    """A service with lists of three days: 2, 2 and 3 USD an hour. The last was ingested two days later."""
    for number, usd in ((1, 2), (2, 2), (3, 3)):
        known = NOW + timedelta(days=2 * (number == 3))
        ingest(engine, one_list(number, {X1: usd}, file=f"{number}.csv"), now=known)
    with server(service) as url, open_client(url) as client:
        yield client


def points(client: httpx.Client, **params: str) -> list[tuple[str, str, float]]:
    answer = client.get(PATH, params={"region": "eastus", **params})
    assert answer.status_code == 200, answer.text
    assert answer.json()["total"] == len(answer.json()["items"])
    return [(one["valid_from"], one["seen_until"], one["usd_per_hour"]) for one in answer.json()["items"]]


@pytest.mark.takes_seconds
@pytest.mark.first_database
def test_a_price_is_one_point_from_its_first_day_to_its_last(history: httpx.Client) -> None:
    first, second, third = (on(day).isoformat() for day in (1, 2, 3))
    assert points(history) == [(first, second, 2), (third, third, 3)]
    assert points(history, since=third) == [(third, third, 3)]
    assert points(history, until=first) == [(first, first, 2)]
    assert points(history, purchase="spot") == []
    assert points(history, known_at=NOW.date().isoformat()) == [(first, second, 2)]
    assert points(history, known_at="2026-08-31") == []


def test_a_page_goes_on_where_the_last_one_ended(history: httpx.Client) -> None:
    first = history.get(PATH, params={"region": "eastus", "limit": 1, "since": on(1).isoformat()}).json()
    after = {"cursor": first["next_cursor"]}
    then = history.get(PATH, params={"region": "eastus", "limit": 1, "since": on(1).isoformat(), **after}).json()
    assert [one["usd_per_hour"] for page in (first, then) for one in page["items"]] == [2, 3]
    assert (first["total"], then["next_cursor"]) == (2, None)
    other = history.get(PATH, params={"region": "eastus", "limit": 1, "since": on(2).isoformat(), **after})
    assert other.status_code == 400


@pytest.mark.first_database
@pytest.mark.parametrize(
    ("params", "detail"),
    [
        ({}, "region"),
        ({"region": "mars"}, "no such region"),
        ({"region": "eastus", "since": "2026"}, "since=2026"),
        (
            {"region": "eastus", "since": "2026-01-03", "until": "2026-01-02"},
            "since=2026-01-03: must not be later than until=2026-01-02",
        ),
        (
            {"region": "eastus", "until": "2030-01-01"},
            f"until=2030-01-01: must not be later than {TODAY}, which is today (UTC)",
        ),
        (
            {"region": "eastus", "since": "2030-01-01"},
            f"since=2030-01-01: must not be later than until={TODAY}, which is today (UTC)",
        ),
    ],
)
def test_what_it_does_not_understand_is_refused(history: httpx.Client, params: dict[str, str], detail: str) -> None:
    answer = history.get(PATH, params=params)
    assert answer.status_code == 422
    assert detail in answer.text
