"""What the service is asked in each case: made once its server is up, because some questions follow from an answer."""

import json
import time
from collections.abc import Mapping
from typing import Any

from benchmarks.page_query import PAGE, PRICED_TARGET
from benchmarks.servers import LoadRequest, Server
from benchmarks.sides import NotMeasurable, RequestFactory, SideContext

PAGING_SECONDS = 60.0  # seconds
MAX_LIMIT = 500
MEMORY_REQUESTS = 100_000
"""As many different ones as a worker's memory is judged after."""
PRICED_REQUEST = LoadRequest(targets=(PRICED_TARGET,))


def request_to(*targets: str) -> RequestFactory:
    """These targets in turn."""
    return lambda _server, _place: LoadRequest(targets=targets)


def distinct_requests(count: int) -> RequestFactory:
    """So many different questions, all with a full page."""
    return request_to(*distinct_targets(count))


def distinct_targets(count: int) -> list[str]:
    """So many different questions, all with the same full page."""
    return [f"{PRICED_TARGET}&max_usd_per_hour={1000 + number}" for number in range(count)]


def never_repeated(_server: Server, _place: SideContext) -> LoadRequest:
    """Ever new questions: no two requests of a server's life are the same."""
    return LoadRequest(targets=tuple(distinct_targets(2 * MEMORY_REQUESTS)), fresh=True)


def post(target: str, body: Mapping[str, Any]) -> RequestFactory:
    """A body in JSON."""
    question = LoadRequest(
        targets=(target,), method="POST", headers=(("Content-Type", "application/json"),), body=json.dumps(body)
    )
    return lambda _server, _place: question


def encoded(encoding: str) -> RequestFactory:
    """The page, compressed; it is asked for twice before, because compressing may wait for a second question."""
    question = LoadRequest(targets=(PRICED_TARGET,), headers=(("Accept-Encoding", encoding),))

    def make(server: Server, _place: SideContext) -> LoadRequest:
        server.request(question, PRICED_TARGET)
        if ("content-encoding", encoding) not in server.request(question, PRICED_TARGET).headers:
            raise NotMeasurable(f"the service does not answer in {encoding}")
        return question

    return make


def not_modified(server: Server, _place: SideContext) -> LoadRequest:
    """The page, by a client that has it."""
    etag = dict(server.request(PRICED_REQUEST, PRICED_TARGET).headers).get("etag")
    if etag is None:
        raise NotMeasurable("the service gives no ETag")
    return LoadRequest(targets=(PRICED_TARGET,), headers=(("If-None-Match", etag),))


def last_page(server: Server, _place: SideContext) -> LoadRequest:
    """The last full page of the list, or as near to it as large steps lead in the time."""
    page = json.loads(server.request(PRICED_REQUEST, PRICED_TARGET).body)
    passed, deadline = PAGE, time.monotonic() + PAGING_SECONDS
    while page["total"] - passed > PAGE and time.monotonic() < deadline:
        step = min(MAX_LIMIT, page["total"] - passed - PAGE)
        target = f"{PRICED_TARGET.replace(f'limit={PAGE}', f'limit={step}')}&cursor={page['next_cursor']}"
        page = json.loads(server.request(PRICED_REQUEST, target).body)
        passed += step
    return LoadRequest(targets=(f"{PRICED_TARGET}&cursor={page['next_cursor']}",))
