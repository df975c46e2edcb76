"""GET /changes and its feeds."""

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any
from xml.etree import ElementTree as ET

import httpx
import pytest
from sqlalchemy import Engine

from app.db.engines import make_engine
from app.formats.feeds import ATOM
from app.ingest.run import forget, ingest
from app.main import create_asgi_app
from app.settings import Settings
from tests.conftest import TODAY
from tests.databases import Databases
from tests.factories import NOW, price, reading, size, source
from tests.servers import open_client, server

JULY, AUGUST = date(2026, 7, 1), date(2026, 8, 1)
DAYS = [NOW - timedelta(days=days) for days in (4, 3, 2, 1)]


@pytest.fixture(scope="module")
def changed_url(databases: Databases, template_url: str) -> Iterator[str]:
    """Four revisions, of 2026-08-28 and the days after: sizes, prices, other prices, and another value of a size."""
    url = databases.copy(template_url)
    engine = make_engine(url)
    facts = [*size("Standard_X1", vcpus=8, series="X"), *size("Standard_Y1", vcpus=16, series="Y")]
    prices = [price(name, "2", region=region) for name in ("x1", "y1") for region in ("eastus", "westus")]
    ingest(engine, reading(facts, regions=["eastus", "westus"], prices=prices), now=DAYS[0])
    dearer = [price("x1", "3", valid_from=JULY), price("y1", "1.9", region="westus", valid_from=JULY)]
    ingest(engine, reading(prices=dearer), now=DAYS[1])
    ingest(engine, reading(prices=[price("x1", "2.5", valid_from=AUGUST)]), now=DAYS[2])
    other = source("other", on=date(2026, 5, 1))
    ingest(engine, reading(size("Standard_X1", by="other", vcpus=9), sources=[other]), now=DAYS[3])
    engine.dispose()
    yield url
    databases.drop(url)


@pytest.fixture
def database_url(databases: Databases, changed_url: str) -> Iterator[str]:
    """A copy of the catalog with changes."""
    url = databases.copy(changed_url)
    yield url
    databases.drop(url)


@pytest.fixture
def api(database_url: str) -> Iterator[httpx.Client]:
    app = create_asgi_app(Settings(_env_file=None, database_url=database_url), today=lambda: TODAY)
    with server(app) as url, open_client(url) as client:
        yield client


def get(client: httpx.Client, path: str = "/changes", **params: Any) -> Any:
    response = client.get(path, params=params)
    assert response.status_code == 200, response.text
    return response.json()


def kinds(client: httpx.Client, **params: Any) -> list[tuple[int, str, str]]:
    return [(one["revision"], one["kind"], one["size"]) for one in get(client, **params)["items"]]


@pytest.mark.takes_seconds
@pytest.mark.first_database
def test_events_come_the_oldest_first_with_the_newest_revision_and_since_when_they_are_known(
    api: httpx.Client,
) -> None:
    listed = get(api)
    assert kinds(api)[:3] == [
        (2, "price_up", "Standard_X1"),
        (2, "price_down", "Standard_Y1"),
        (3, "price_down", "Standard_X1"),
    ]
    assert listed["revision"] == 4
    assert datetime.fromisoformat(listed["tracked_since"]) == DAYS[0]
    first = listed["items"][0]
    assert datetime.fromisoformat(first["at"]).astimezone(UTC) == DAYS[1]
    assert {name: first[name] for name in first if name != "at"} == {
        "id": 1,
        "revision": 2,
        "kind": "price_up",
        "size": "Standard_X1",
        "region": "eastus",
        "os": "linux",
        "purchase": "on_demand",
        "field": None,
        "old": "2",
        "new": "3",
        "percent": 50.0,
        "valid_from": "2026-07-01",
        "source_id": "prices",
    }


@pytest.mark.takes_seconds
def test_since_is_a_revision_or_a_day(api: httpx.Client) -> None:
    total = get(api)["total"]
    assert get(api, since="0")["total"] == get(api, since="2026-08-29")["total"] == total
    assert get(api, since="2")["items"] == get(api, since="2026-08-30")["items"] == get(api)["items"][2:]
    assert get(api, since=get(api)["revision"])["items"] == get(api, since=TODAY.isoformat())["items"] == []
    assert {one["revision"] for one in get(api, revision=3)["items"]} == {3}


@pytest.mark.parametrize(
    ("params", "found"),
    [
        ({"kind": "price_up"}, [2]),
        ({"kind": "price_up,price_down", "min_percent": 10}, [2, 3]),
        ({"kind": "price_up,price_down", "size": "y1"}, [2]),
        ({"size": "Standard_y*"}, [2]),
        ({"size": "*1", "region": "westus"}, [2]),
        ({"series": "x", "os": "linux"}, [2, 3]),
        ({"purchase": "spot"}, []),
        ({"min_percent": 16.7}, [2]),
    ],
)
def test_filters_choose_events(api: httpx.Client, params: dict[str, Any], found: list[int]) -> None:
    assert [revision for revision, *_ in kinds(api, **params)] == found
    assert get(api, **params)["total"] == len(found)


@pytest.mark.first_database
@pytest.mark.parametrize(
    ("params", "detail"),
    [
        ({"since": "yesterday"}, "must be the number of a revision, or a date"),
        ({"since": "2026-13-01"}, "must be the number of a revision, or a date"),
        ({"since": "999999"}, "since=999999: must not be greater than 4, the newest revision"),
        ({"since": "5"}, "since=5: must not be greater than 4, the newest revision"),
        ({"revision": "5"}, "revision=5: must not be greater than 4, the newest revision"),
        ({"since": "2026-09-02"}, "since=2026-09-02: must not be later than 2026-09-01, which is today (UTC)"),
        ({"size": "x2"}, "size=x2: no such size; GET /sizes lists them"),
        ({"region": "eastsu"}, "did you mean eastus?"),
        ({"kind": "price"}, "kind"),
        ({"min_percent": "-1"}, "min_percent"),
    ],
)
@pytest.mark.parametrize("path", ["/changes", "/changes.atom", "/changes.json"])
def test_a_wrong_filter_is_refused(api: httpx.Client, path: str, params: dict[str, str], detail: str) -> None:
    refused = api.get(path, params=params)
    assert refused.status_code == 422
    assert detail in refused.text


@pytest.mark.first_database
@pytest.mark.parametrize("params", [{"since": "5"}, {"revision": "5"}, {"since": "2030-01-01"}])
def test_a_revision_or_a_day_to_come_is_an_unknown_value(api: httpx.Client, params: dict[str, str]) -> None:
    assert api.get("/changes", params=params).json()["type"] == "/problems/unknown-value"


def test_pages_have_every_event_once(api: httpx.Client) -> None:
    items: list[dict[str, Any]] = []
    cursor: str | None = ""
    while cursor is not None:
        page = get(api, limit=1, fields="id,kind", cursor=cursor)
        items += page["items"]
        cursor = page["next_cursor"]
    assert items == [{"id": one["id"], "kind": one["kind"]} for one in get(api)["items"]]


@pytest.mark.takes_seconds
def test_a_size_that_is_gone_is_still_found_by_its_name(api: httpx.Client, engine: Engine) -> None:
    later = source("later", kind="third_party")
    ingest(engine, reading(sources=[later], prices=[price("x9", "2", source="later")]), now=NOW)
    forget(engine, "later", now=NOW)
    assert [kind for _, kind, _ in kinds(api, size="X9", since=4)] == [
        "size_new",
        "price_new",
        "size_gone",
        "price_gone",
    ]


@pytest.mark.first_database
def test_an_answer_is_revalidated_until_the_next_revision(api: httpx.Client) -> None:
    for path in ("/changes?since=1", "/changes.atom?region=eastus", "/changes.json"):
        etag = api.get(path).headers["etag"]
        assert api.get(path, headers={"if-none-match": etag}).status_code == 304


# Feeds


def test_the_atom_feed_has_an_entry_for_each_revision_the_newest_first(api: httpx.Client) -> None:
    answer = api.get("/changes.atom", params={"size": "x1"})
    assert answer.headers["content-type"].partition(";")[0] == "application/atom+xml"
    feed = ET.fromstring(answer.text)  # our own
    assert feed.tag == f"{{{ATOM}}}feed"
    for required in ("id", "title", "updated", "author/{*}name"):
        assert feed.findtext(f"{{*}}{required}"), required
    entries = feed.findall("{*}entry")
    assert [entry.findtext("{*}title") for entry in entries][1:] == [
        "Revision 3: 1 price fell",
        "Revision 2: 1 price rose",
    ]
    assert len({entry.findtext("{*}id") for entry in entries}) == len(entries) == 3
    for entry in entries:
        assert datetime.fromisoformat(str(entry.findtext("{*}updated"))).tzinfo
        assert str(entry.findtext("{*}id")).startswith("urn:uuid:")
    assert entries[1].findtext("{*}content") == (
        "Standard_X1 in eastus, linux, on_demand: price fell, 3 -> 2.5 USD an hour (-16.7 %)"
    )
    link = entries[1].find("{*}link")
    assert link is not None
    assert [one["revision"] for one in api.get(link.attrib["href"]).json()["items"]] == [3]
    assert api.get("/changes.atom", params={"size": "x1"}).text == answer.text


@pytest.mark.first_database
def test_the_json_feed_says_the_same(api: httpx.Client) -> None:
    answer = api.get("/changes.json?kind=price_up,price_down")
    assert answer.headers["content-type"].partition(";")[0] == "application/feed+json"
    feed = answer.json()
    assert (feed["version"], feed["title"]) == ("https://jsonfeed.org/version/1.1", "Changes of VM sizes and prices")
    assert [item["title"] for item in feed["items"]] == [
        "Revision 3: 1 price fell",
        "Revision 2: 1 price rose, 1 price fell",
    ]
    for item in feed["items"]:
        assert item["id"]
        assert item["content_text"]
        assert datetime.fromisoformat(item["date_published"]) in [day.replace(microsecond=0) for day in DAYS]
        assert api.get(item["url"]).json()["items"]


@pytest.mark.first_database
def test_an_entry_has_a_bounded_number_of_lines(api: httpx.Client, engine: Engine) -> None:
    prices = [price(f"z{number}", "1") for number in range(40)]
    ingest(engine, reading(prices=prices), now=NOW)
    (item, *_) = get(api, "/changes.json", kind="price_new")["items"]
    lines = item["content_text"].splitlines()
    assert (item["title"], len(lines), lines[-1]) == ("Revision 5: 40 new prices", 21, "and 20 more")


@pytest.mark.first_database
def test_a_feed_without_events_is_a_feed(api: httpx.Client) -> None:
    feed = ET.fromstring(api.get("/changes.atom?purchase=spot").text)  # our own
    assert feed.findall("{*}entry") == []
    assert feed.findtext("{*}updated")
    assert get(api, "/changes.json", purchase="spot")["items"] == []
