"""The requests of each case; they are built when its server runs, because some depend on a response."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from benchmarks.page_query import PRICED_TARGET
from benchmarks.servers import LoadRequest, Server
from benchmarks.sides import NotMeasurable, RequestFactory, SideContext

MEMORY_REQUESTS = 100_000
"""Number of distinct requests after which the memory of a worker is measured."""
MAX_FILES, FILES_AT_ONCE = 30, 5
"""Number of files that are never written twice, and of those that make a figure."""
PRICED_REQUEST = LoadRequest(targets=(PRICED_TARGET,))


def request_to(*targets: str) -> RequestFactory:
    """Build a request for these targets in turn."""
    return lambda _server, _place: LoadRequest(targets=targets)


def distinct_requests(count: int) -> RequestFactory:
    """Build a request for `count` distinct targets, each with a full page."""
    return request_to(*distinct_targets(count))


def distinct_targets(count: int) -> list[str]:
    """Return `count` distinct targets with the same full page."""
    return [f"{PRICED_TARGET}&max_usd_per_hour={1000 + number}" for number in range(count)]


def never_repeated(_server: Server, _place: SideContext) -> LoadRequest:
    """Build a request that no server gets twice."""
    return LoadRequest(targets=tuple(distinct_targets(2 * MEMORY_REQUESTS)), fresh=True)


def first_files(_server: Server, _place: SideContext) -> LoadRequest:
    """Build a request for all prices as Parquet by a different day each time, so that no file is there already.

    The synthetic prices are older, so that the rows are the same.
    """
    today = datetime.now(UTC).date()
    days = (today - timedelta(days=number) for number in range(MAX_FILES))
    return LoadRequest(targets=tuple(f"/prices.parquet?history=true&as_of={day}" for day in days), fresh=True)


def post(target: str, body: Mapping[str, Any]) -> RequestFactory:
    """Build a POST request with a JSON body."""
    question = LoadRequest(
        targets=(target,), method="POST", headers=(("Content-Type", "application/json"),), body=json.dumps(body)
    )
    return lambda _server, _place: question


def encoded(encoding: str) -> RequestFactory:
    """Build a request for the compressed page, sent twice before: compression may wait for a second request."""
    question = LoadRequest(targets=(PRICED_TARGET,), headers=(("Accept-Encoding", encoding),))

    def make(server: Server, _place: SideContext) -> LoadRequest:
        server.request(question, PRICED_TARGET)
        if ("content-encoding", encoding) not in server.request(question, PRICED_TARGET).headers:
            raise NotMeasurable(f"the service does not answer in {encoding}")
        return question

    return make


def not_modified(server: Server, _place: SideContext) -> LoadRequest:
    """Build a conditional request for the page by its ETag."""
    etag = dict(server.request(PRICED_REQUEST, PRICED_TARGET).headers).get("etag")
    if etag is None:
        raise NotMeasurable("the service gives no ETag")
    return LoadRequest(targets=(PRICED_TARGET,), headers=(("If-None-Match", etag),))
