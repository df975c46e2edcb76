"""Fetching the Retail Prices API: walks from page to page, over a real connection, with everything that goes wrong."""

import asyncio
import gzip
import re
import time
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import orjson
import pytest

from app.catalog.readings import no_progress
from app.errors import BadData
from app.ingest.feeds import fetching
from app.ingest.feeds.azure_prices import AZURE_PAGES, AZURE_PRICES
from app.ingest.feeds.fetching import (
    MAX_PAGE_BYTES,
    FetchedLists,
    Page,
    PriceFeed,
    RetryPolicy,
    fetch_lists,
    read_pages,
    saved_files,
)
from tests.ingest.feeds.fake_api import FakeApi, serving
from tests.ingest.feeds.meters import B16ALS_V2, in_region

DAY = date(2026, 8, 22)
QUICK = RetryPolicy(attempts=4, first_wait=0.001, longest_wait=0.01, longest_retry_after=30.0)
EASTUS = {"eastus": in_region("eastus")}


@pytest.fixture
def store(tmp_path: Path) -> FetchedLists:
    store = FetchedLists(root=tmp_path / "azure-retail-prices", day=DAY)
    store.open_day()
    return store


def fetch(api: FakeApi, store: FetchedLists, regions: Iterable[str] = ("eastus",), **more: Any) -> dict[str, str]:
    progress = more.pop("progress", no_progress)
    feed = PriceFeed(api=AZURE_PRICES, url=api.url, **{"policy": QUICK} | more)
    return asyncio.run(fetch_lists(feed, regions, store, progress))


def items(store: FetchedLists, region: str = "eastus") -> list[Any]:
    return [item for page in read_pages(AZURE_PAGES, [store.file(region)], fetched=True) for item in page.items]


def read_saved(path: Path) -> Iterable[Page]:
    return read_pages(AZURE_PAGES, saved_files(path))


def why(api: FakeApi, store: FetchedLists) -> str:
    """Return why the region failed; nothing of it may have been kept."""
    with serving(api):
        failures = fetch(api, store)
    assert not store.has("eastus")
    assert [*store.root.rglob("*.part")] == []
    return failures["eastus"]


def test_a_region_is_fetched_page_by_page_to_the_last_one(store: FetchedLists) -> None:
    with serving(FakeApi(items=EASTUS)) as api:
        assert fetch(api, store) == {}
    assert items(store) == EASTUS["eastus"]
    assert dict(api.asked) == {("eastus", 1): 1, ("eastus", 2): 1, ("eastus", 3): 1}
    assert api.filters[0] == "serviceName eq 'Virtual Machines' and armRegionName eq 'eastus'"


def test_regions_are_fetched_side_by_side_but_not_all_at_once(store: FetchedLists) -> None:
    regions = [f"region{n}" for n in range(8)]
    with serving(FakeApi(items={name: in_region(name) for name in regions}, together=3)) as api:
        assert fetch(api, store, regions, concurrency=3) == {}
    assert api.most_running == 3
    assert all(store.has(region) for region in regions)


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_failed_request_is_tried_again(store: FetchedLists, status: int) -> None:
    with serving(FakeApi(items=EASTUS, fault=lambda _, page, before: (status, {}) if before < 2 else None)) as api:
        assert fetch(api, store) == {}
    assert items(store) == EASTUS["eastus"]
    assert api.requests == 9


@pytest.mark.takes_seconds
@pytest.mark.parametrize("form", ["seconds", "date"])
def test_a_server_that_says_how_long_to_wait_is_obeyed(store: FetchedLists, form: str) -> None:
    began = time.monotonic()
    until = format_datetime(datetime.now(UTC) + timedelta(seconds=2.2), usegmt=True)
    headers = {"retry-after": "1" if form == "seconds" else until}
    with serving(
        FakeApi(items=EASTUS, fault=lambda _, page, before: (429, headers) if page + before == 1 else None)
    ) as api:
        assert fetch(api, store) == {}
    assert time.monotonic() - began >= 1
    assert api.requests == 4


def test_a_server_that_asks_for_too_long_a_wait_is_not_waited_for(store: FetchedLists) -> None:
    api = FakeApi(items=EASTUS, fault=lambda *_: (429, {"retry-after": "3600"}))
    assert why(api, store) == "127.0.0.1 answered 429 and asked to wait 3600 s, at attempt 1 of 4"


def test_a_server_that_keeps_failing_fails_the_region(store: FetchedLists, caplog: pytest.LogCaptureFixture) -> None:
    assert why(FakeApi(items=EASTUS, fault=lambda *_: (503, {})), store) == "127.0.0.1 answered 503, at attempt 4 of 4"
    assert [record.getMessage() for record in caplog.records] == [
        f"127.0.0.1 answered 503, at attempt {attempt} of 4; it is tried again" for attempt in (1, 2, 3)
    ]


def test_a_request_that_is_refused_is_not_repeated(store: FetchedLists) -> None:
    api = FakeApi(items=EASTUS, fault=lambda *_: (400, {}))
    assert why(api, store) == "127.0.0.1 answered 400, at attempt 1 of 4"
    assert api.requests == 1


def test_a_server_that_is_not_there_fails_every_region(store: FetchedLists) -> None:
    failures = fetch(FakeApi(items={}, url="http://127.0.0.1:9/prices"), store, ["eastus", "westus"])
    assert set(failures) == {"eastus", "westus"}
    assert all("127.0.0.1 cannot be reached" in failure for failure in failures.values())


def test_where_nothing_answers_the_other_regions_are_not_tried(store: FetchedLists) -> None:
    regions = [f"region{n}" for n in range(9)]
    with serving(FakeApi(items={}, fault=lambda *_: (404, {}))) as api:
        failures = fetch(api, store, regions, concurrency=2)
    assert api.requests == 2
    assert failures["region8"] == "not tried: 127.0.0.1 answered 404, at attempt 1 of 4"


def test_one_failing_region_leaves_the_others_alone(store: FetchedLists) -> None:
    both = {name: in_region(name) for name in ("eastus", "westus")}
    with serving(FakeApi(items=both, fault=lambda region, *_: (500, {}) if region == "eastus" else None)) as api:
        assert [*fetch(api, store, both)] == ["eastus"]
    assert items(store, "westus") == both["westus"]


def test_a_region_without_items_is_a_failure_and_not_an_empty_list(store: FetchedLists) -> None:
    assert why(FakeApi(items={}), store) == "page 1 has no items"


def test_a_last_page_may_be_empty(store: FetchedLists) -> None:
    def add_empty_page(_: str, page: int, answer: dict[str, Any]) -> dict[str, Any]:
        link = f"{api.url}?$filter=armRegionName eq 'eastus'&$skip=15" if page == 3 else answer["NextPageLink"]
        return answer | {"NextPageLink": link}

    with serving(FakeApi(items=EASTUS, change=add_empty_page)) as api:
        assert fetch(api, store) == {}
    assert api.asked["eastus", 4] == 1
    assert items(store) == EASTUS["eastus"]


def test_a_page_that_links_to_itself_is_an_error(store: FetchedLists) -> None:
    def link_to_itself(_: str, page: int, answer: dict[str, Any]) -> dict[str, Any]:
        return answer | {"NextPageLink": f"{api.url}?$filter=armRegionName eq 'eastus'&$skip=5"}

    api = FakeApi(items=EASTUS, change=link_to_itself)
    assert why(api, store).startswith("page 2 links to a page that was read already")


def test_pages_without_an_end_are_an_error(store: FetchedLists, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "PAGE_LIMIT", 50)

    def go_on(_: str, page: int, answer: dict[str, Any]) -> dict[str, Any]:
        link = f"{api.url}?$filter=armRegionName eq 'eastus'&$skip={page * 5}"
        return answer | {"Items": EASTUS["eastus"][:1], "Count": 1, "NextPageLink": link}

    api = FakeApi(items=EASTUS, change=go_on)
    assert why(api, store) == "there are more than 50 pages"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"Count": 1000}, "a page was cut: its Count is 1000, and it has 5 items"),
        ({"Count": None}, "a page was cut: it has no Count, and it has 5 items"),
        ({"BillingCurrency": None}, "a page has no BillingCurrency"),
        ({"BillingCurrency": "EUR"}, "a page is in 'EUR', not in USD"),
        ({"Items": None}, "a page has no list Items"),
        ({"Items": ["x"] * 5}, "a page has no list Items"),
        ({"NextPageLink": "more"}, "a page has the NextPageLink 'more', which has no query"),
    ],
)
def test_a_page_that_is_not_whole_fails_the_region(store: FetchedLists, change: dict[str, Any], said: str) -> None:
    assert why(FakeApi(items=EASTUS, change=lambda _, __, answer: answer | change), store) == said


@pytest.mark.parametrize("body", [b"", b"<html>busy</html>", b'{"Items": ['])
def test_a_page_that_is_not_json_fails_the_region(store: FetchedLists, body: bytes) -> None:
    assert why(FakeApi(items=EASTUS, change=lambda *_: body), store).startswith("a page is not JSON")


def test_a_finished_region_is_not_fetched_again_and_an_unfinished_one_from_its_start(store: FetchedLists) -> None:
    both = {name: in_region(name) for name in ("eastus", "westus")}
    with serving(
        FakeApi(items=both, fault=lambda region, page, _: (500, {}) if (region, page) == ("westus", 3) else None)
    ) as api:
        assert [*fetch(api, store, both)] == ["westus"]
    with serving(FakeApi(items=both)) as api:
        assert fetch(api, store, both) == {}
    assert dict(api.asked) == {("westus", page): 1 for page in (1, 2, 3)}
    assert items(store, "westus") == both["westus"]


def test_pages_of_another_day_are_not_continued(store: FetchedLists) -> None:
    with serving(FakeApi(items=EASTUS)) as api:
        fetch(api, store)
    later = FetchedLists(root=store.root, day=DAY + timedelta(days=1))
    later.open_day()
    assert not later.has("eastus")
    assert not store.has("eastus")


def test_accepted_pages_are_kept_and_fetched_again(store: FetchedLists) -> None:
    with serving(FakeApi(items=EASTUS)) as api:
        fetch(api, store)
        store.accept(["eastus"])
        assert not store.has("eastus")
        assert (store.root / "accepted" / "eastus.jsonl.gz").is_file()
        fetch(api, store)
    assert api.requests == 6


def test_refused_pages_are_fetched_again_unless_they_are_accepted(store: FetchedLists) -> None:
    with serving(FakeApi(items=EASTUS)) as api:
        fetch(api, store)
    store.refuse("eastus")
    assert not store.has("eastus")
    store.restore_refused(["eastus", "westus"])
    assert items(store) == EASTUS["eastus"]


def test_progress_is_told_with_the_share_that_is_fetched(store: FetchedLists) -> None:
    told: list[tuple[float | None, int]] = []
    regions = [f"region{n}" for n in range(4)]
    with serving(FakeApi(items={name: in_region(name) for name in regions})) as api:
        fetch(api, store, regions, concurrency=1, progress=lambda _, share, rows=0: told.append((share, rows)))
    assert [share for share, _ in told[:4]] == [None] * 4
    assert told[4] == (4 / 12, 18)
    assert told[-1][1] == 52


# Saved pages


def saved(folder: Path, api: FakeApi, store: FetchedLists) -> list[Path]:
    """Save the pages of a region as files of a page each."""
    with serving(api):
        fetch(api, store)
    paths = [folder / f"page{number}.json" for number in range(8, 11)]
    with gzip.open(store.file("eastus")) as pages:
        for path, page in zip(paths, pages, strict=True):
            path.write_bytes(page)
    return paths


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "saved"
    folder.mkdir()
    return folder


def test_saved_pages_are_read_from_a_folder_in_the_order_of_their_numbers(folder: Path, store: FetchedLists) -> None:
    saved(folder, FakeApi(items=EASTUS), store)
    assert [item for page in read_saved(folder) for item in page.items] == EASTUS["eastus"]


@pytest.mark.parametrize("name", ["eastus.jsonl", "eastus.jsonl.gz"])
def test_saved_pages_are_read_from_one_file_with_a_page_a_line(folder: Path, store: FetchedLists, name: str) -> None:
    pages = b"".join(path.read_bytes() for path in saved(folder, FakeApi(items=EASTUS), store))
    (folder / name).write_bytes(gzip.compress(pages) if name.endswith(".gz") else pages)
    assert sum(len(page.items) for page in read_saved(folder / name)) == len(B16ALS_V2)


@pytest.mark.parametrize(
    ("number", "said"),
    [(0, "a page is missing: 5 items are there, and the next page begins after 10"), (2, "the last page is missing")],
)
def test_a_missing_page_is_an_error(folder: Path, store: FetchedLists, number: int, said: str) -> None:
    saved(folder, FakeApi(items=EASTUS), store)[number].unlink()
    with pytest.raises(BadData, match=said):
        list(read_saved(folder))


def test_a_folder_without_pages_is_refused(folder: Path) -> None:
    with pytest.raises(BadData, match=r"has no saved pages; give a file or a folder of \.json"):
        list(read_saved(folder))


def test_a_saved_page_that_is_wrong_is_named_with_its_line(folder: Path) -> None:
    page = {"Items": [], "Count": 1, "BillingCurrency": "USD", "NextPageLink": None}
    (folder / "pages.jsonl").write_bytes(b"\n" + orjson.dumps(page))
    with pytest.raises(BadData, match=r"pages\.jsonl:2: a page was cut"):
        list(read_saved(folder))


def test_a_file_that_is_cut_is_refused(folder: Path) -> None:
    (folder / "pages.jsonl.gz").write_bytes(gzip.compress(b"{}")[:-6])
    with pytest.raises(BadData, match="cannot be read"):
        list(read_saved(folder))


@pytest.mark.parametrize(
    ("name", "place"), [("pages.json.gz", "pages.json.gz"), ("pages.jsonl.gz", "pages.jsonl.gz:1")]
)
def test_a_saved_page_that_unpacks_without_end_is_refused(tmp_path: Path, name: str, place: str) -> None:
    (tmp_path / name).write_bytes(gzip.compress(bytes(MAX_PAGE_BYTES + 2**20), 1))
    with pytest.raises(BadData, match=rf"{re.escape(place)}: has a page of more than 67,108,864 bytes"):
        list(read_saved(tmp_path / name))
