"""A stand-in for the Azure Retail Prices API: a real HTTP server on the loopback, with its faults on request."""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import orjson
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tests.ingest.feeds.meters import Item
from tests.servers import server
from tests.waiting import until

_REGION = re.compile(r"armRegionName eq '(\w+)'")


@dataclass(kw_only=True)
class FakeApi:
    """The API's items by region, and what goes wrong with its answers.

    `fault` gets the region, the number of the page (the first is 1) and how often it was asked for before; it returns a
    status with headers to send instead of the page. `change` may replace the page. No answer is sent before `together`
    requests have been waiting for one at the same time, nor while it is `held`.
    """

    items: Mapping[str, Sequence[Item]]
    page_size: int = 5
    together: int = 1
    held: bool = False
    fault: Callable[[str, int, int], tuple[int, dict[str, str]] | None] = lambda _region, _page, _before: None
    change: Callable[[str, int, dict[str, Any]], Any] = lambda _region, _page, answer: answer
    asked: Counter[tuple[str, int]] = field(default_factory=Counter)
    filters: list[str] = field(default_factory=list)
    running: int = 0
    most_running: int = 0
    url: str = ""

    @property
    def requests(self) -> int:
        return self.asked.total()

    async def answer(self, request: Request) -> Response:
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        try:
            await until(lambda: self.most_running >= self.together and not self.held)
            return self._answer(request)
        finally:
            self.running -= 1

    def _answer(self, request: Request) -> Response:
        condition = request.query_params["$filter"]
        self.filters.append(condition)
        found = _REGION.search(condition)
        assert found
        region, skip = found[1], int(request.query_params.get("$skip", 0))
        page = skip // self.page_size + 1
        before = self.asked[region, page]
        self.asked[region, page] += 1
        if faulty := self.fault(region, page, before):
            status, headers = faulty
            return Response(status_code=status, headers=headers)
        items = self.items.get(region, ())
        chosen, after = items[skip : skip + self.page_size], skip + self.page_size
        following = str(request.url.include_query_params(**{"$skip": after})) if after < len(items) else None
        answer = {
            "BillingCurrency": "USD",
            "CustomerEntityId": "Default",
            "CustomerEntityType": "Retail",
            "Items": chosen,
            "NextPageLink": following,
            "Count": len(chosen),
        }
        changed = self.change(region, page, answer)
        body = changed if isinstance(changed, bytes) else orjson.dumps(changed)
        return Response(body, media_type="application/json")


@contextmanager
def serving(api: FakeApi) -> Iterator[FakeApi]:
    """Serve the stand-in; `url` is then where it is."""
    with server(Starlette(routes=[Route("/api/retail/prices", api.answer)])) as base:
        api.url = f"{base}/api/retail/prices"
        yield api
