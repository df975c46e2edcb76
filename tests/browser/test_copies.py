"""What a page of another origin gets while the catalog changes, with the browser's own HTTP cache in between."""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page
from starlette.applications import Starlette
from starlette.responses import HTMLResponse
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from app.db import migrations
from app.http.middleware import CacheMiddleware
from app.ingest.run import ingest
from app.main import create_asgi_app
from app.settings import Settings
from tests.browser.conftest import RecordedPage
from tests.conftest import TODAY
from tests.databases import writable
from tests.factories import NOW, price, reading, size
from tests.servers import get, server
from tests.waiting import wait_until

FETCH = "async (url) => { const answer = await fetch(url); return await answer.json() }"
WALK = """async (url) => {
  let names = [], cursor = null, gone = 0
  do {
    const answer = await fetch(cursor ? `${url}&cursor=${cursor}` : url)
    const page = await answer.json()
    if (answer.status === 410) {
      if (++gone === 5) return { gone, names: null }
      names = []
      cursor = null
      continue
    }
    names.push(...page.items.map((item) => item.name))
    cursor = page.next_cursor
    if (window.pause) await window.pause(names.length)
  } while (cursor || names.length === 0)
  return { gone, names }
}"""


@pytest.fixture
def service(empty_url: str) -> Iterator[CacheMiddleware]:
    """A service with its own database of three sizes, one of them with a price."""
    service = create_asgi_app(Settings(_env_file=None, database_url=empty_url), today=lambda: TODAY)
    migrations.upgrade(writable(service))
    ingest(writable(service), costing("3.5"), now=NOW)
    yield service
    service.app.state.database.dispose()


@pytest.fixture
def elsewhere(watched: RecordedPage) -> Iterator[Page]:
    """A page of another origin than the service."""
    page = Starlette(routes=[Route("/", lambda _: HTMLResponse("<!doctype html><title>A dashboard</title>"))])
    with server(page) as url:
        watched.page.goto(url)
        yield watched.page


def costing(usd: str) -> Any:
    sizes = [statement for name in "ABC" for statement in size(f"Standard_{name}", vcpus=8)]
    return reading(sizes, regions=["eastus"], prices=[price("Standard_A", usd)])


def shown(page: Page, url: str) -> float:
    usd: float = page.evaluate(FETCH, url)["items"][0]["usd_per_hour"]
    return usd


@pytest.mark.takes_seconds
def test_a_page_sees_the_new_price_soon_after_an_ingest(service: CacheMiddleware, elsewhere: Page) -> None:
    with server(service) as url:
        page_url = f"{url}/sizes?limit=1"
        assert [shown(elsewhere, page_url) for _ in range(2)] == [3.5, 3.5]
        ingest(writable(service), costing("2.7008"), now=NOW)
        wait_until(lambda: shown(elsewhere, page_url) == 2.7008)
        elsewhere.reload()
        assert shown(elsewhere, page_url) == 2.7008


@pytest.mark.takes_seconds
def test_a_copy_in_the_browser_is_revalidated_and_not_sent_twice(service: CacheMiddleware, elsewhere: Page) -> None:
    statuses: list[int] = []

    async def recording(scope: Scope, receive: Receive, send: Send) -> None:
        async def noted(message: Message) -> None:
            if message["type"] == "http.response.start":
                statuses.append(message["status"])
            await send(message)

        await service(scope, receive, noted)

    with server(recording) as url:
        assert [shown(elsewhere, f"{url}/sizes") for _ in range(3)] == [3.5, 3.5, 3.5]
    assert statuses == [200, 304, 304]


@pytest.mark.takes_seconds
def test_a_walk_that_gets_410_starts_over_and_finishes(service: CacheMiddleware, elsewhere: Page) -> None:
    def pause(read: int) -> None:
        if read == 1 and not done:
            done.append(True)
            ingest(writable(service), costing("2.7008"), now=NOW)
            wait_until(lambda: get(f"{served[0]}/sizes").json()["items"][0]["usd_per_hour"] == 2.7008)

    done: list[bool] = []
    served: list[str] = []
    elsewhere.expose_function("pause", pause)
    with server(service) as url:
        served.append(url)
        walked = elsewhere.evaluate(WALK, f"{url}/sizes?limit=1")
    assert walked == {"gone": 1, "names": ["Standard_A", "Standard_B", "Standard_C"]}
