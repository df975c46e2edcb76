"""What is recorded of each request: its latency by route and status, its problem, and a line in the access log.

A response from the cache costs two additions; the layout of all counters is fixed at the start, so that neither memory
nor a scrape grows with what clients send.
"""

import asyncio
import logging
from bisect import bisect_left
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, Literal, NamedTuple

from starlette.types import Message, Receive, Send

from app.http.headers import REQUEST_ID, SECRETS
from app.telemetry import tracing
from app.telemetry.counters import SharedCounters
from app.telemetry.logs import REQUEST_ID as LOGGED_REQUEST_ID

Scope = MutableMapping[str, Any]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
AccessLog = Literal["off", "errors", "misses", "all"]

RECORD = "vmsizes.record"
"""The key of a request's RequestRecord in its scope; a request whose stored response is sent at once has none."""

BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""The upper bounds of the buckets of latencies, seconds."""

OTHER = "other"
"""The route of a path that has none, and the type of a problem that is not in the list."""

SAMPLE_SECONDS = 1.0
"""How often a worker publishes its gauges to the others."""

_SUM = len(BUCKETS) + 1
_WIDTH = _SUM + 1
_KINDS = (
    *(("hit", "2xx"), ("hit", "3xx"), ("miss", "2xx"), ("miss", "3xx")),
    *(("none", "2xx"), ("none", "3xx"), ("none", "4xx"), ("none", "5xx")),
)
"""How the cache took part, and the class of the status: one histogram of each for a route."""
_FIRST_OF = {kind: place * _WIDTH for place, kind in enumerate(_KINDS)}
_HIT, _NOT_MODIFIED = _FIRST_OF["hit", "2xx"], _FIRST_OF["hit", "3xx"]

_COUNTED_ONLY = {"busy", "not-ready"}
"""Problems without lines of their own: there may be thousands a second, and the log reports an outage once."""

_PROBES = {"/healthz", "/readyz", "/metrics"}
CLIENT_GONE = 499
_MAX_LOGGED_CHARS = 500
_log = logging.getLogger("vmsizes.access")


@dataclass(slots=True)
class RequestRecord:
    """What becomes known of a request while it is answered; `cache` is hit, miss or none."""

    started: float
    route: tuple[str, str] = (OTHER, OTHER)
    cache: Literal["hit", "miss", "none"] = "none"
    status: int = 0
    problem: str = ""


class Metric(NamedTuple):
    """The name of a metric, what it measures, and its labels with their values."""

    name: str
    text: str
    labels: tuple[tuple[str, str], ...] = ()


Read = Mapping[Metric, Callable[[], float]]

IN_FLIGHT = Metric("vmsizes_http_requests_in_flight", "Requests that are being answered, but for those of the cache.")


class Latencies(NamedTuple):
    """A histogram: how many requests were in each bucket, the last without a bound; the sum of seconds."""

    method: str
    route: str
    cache: str
    status: str
    counts: list[float]
    seconds: float


class Measurements(NamedTuple):
    """What all workers together have counted, and what their gauges add up to."""

    latencies: list[Latencies]
    problems: dict[str, float]
    counters: dict[Metric, float]
    gauges: dict[Metric, float]
    workers: int


class RequestObserver:
    """Counts requests by route, method and status, problems by type, and publishes a worker's other figures.

    `routes` are (method, path) pairs; `counters` and `gauges` are read for a scrape, of other workers once a second.
    """

    def __init__(
        self,
        routes: Iterable[tuple[str, str]],
        problems: Iterable[str],
        *,
        counters: Read,
        gauges: Read,
        revision: Callable[[], int | None],
        access_log: AccessLog = "off",
        folder: Path | None = None,
    ) -> None:
        self.in_flight = 0
        self._revision, self._access_log = revision, access_log
        self._log_all = access_log == "all"
        # Sorted: sets are in another order in each process, and workers add up only what is laid out alike.
        self._problems = [*sorted(problems), OTHER]
        self._counters, self._gauges = counters, {**gauges, IN_FLIGHT: lambda: self.in_flight}
        self._series = dict.fromkeys((*sorted(routes), (OTHER, OTHER)), 0)
        for place, pair in enumerate(self._series):
            self._series[pair] = place * _WIDTH * len(_KINDS)
        self._first_problem = len(self._series) * _WIDTH * len(_KINDS)
        self._first_counter = self._first_problem + len(self._problems)
        count = self._first_counter + len(counters)
        layout = repr((self._series, self._problems, list(counters), list(self._gauges), BUCKETS))
        try:
            self._shared = SharedCounters(layout, count, len(self._gauges), folder)
        except OSError:
            logging.getLogger(__name__).exception("counters are not shared: %s cannot be written", folder)
            self._shared = SharedCounters(layout, count, len(self._gauges))
        self._values = self._shared.values

    def series_of(self, method: str, path: str) -> int:
        """Return where the histograms of a route begin, to count its stored responses with."""
        return self._series.get((method, path), self._series[OTHER, OTHER])

    def count_hit(self, series: int, started: float, scope: Scope, status: int) -> None:
        """Count a stored response, or a 304, that was sent without any other work; `started` by perf_counter."""
        seconds = perf_counter() - started
        first = series + (_HIT if status == 200 else _NOT_MODIFIED)  # noqa: PLR2004  # a stored response or a 304
        values = self._values
        values[first + bisect_left(BUCKETS, seconds)] += 1.0
        values[first + _SUM] += seconds
        if self._log_all:
            (route,) = [pair for pair, place in self._series.items() if place == series]
            self._write(RequestRecord(started, route, "hit", status), seconds, scope)

    def count_refusal(self, problem: str, status: int, seconds: float) -> None:
        """Count a request that the server refused before it had a route, such as one whose headers did not end."""
        self._count(RequestRecord(0.0, status=status, problem=problem), seconds)

    async def observe(self, app: App, started: float, scope: Scope, receive: Receive, send: Send) -> None:
        """Run an application, and count the request when it ends; `started` by perf_counter."""
        record = scope[RECORD] = RequestRecord(started)
        LOGGED_REQUEST_ID.set(scope[REQUEST_ID].decode())

        async def send_recorded(message: Message) -> None:
            if message["type"] == "http.response.start":
                record.status = message["status"]
            await send(message)

        self.in_flight += 1
        with tracing.request_span(scope["method"], scope["headers"]):
            try:
                await app(scope, receive, send_recorded)
            except Exception:
                record.status = record.status or 500
                raise
            finally:
                self.in_flight -= 1
                seconds = perf_counter() - record.started
                record.status = record.status or CLIENT_GONE
                if record.status >= 400:  # noqa: PLR2004
                    record.cache = "none"  # errors are not stored
                self._count(record, seconds)
                if tracing.is_on():
                    attributes: dict[str, str | int] = {
                        "http.request.method": scope["method"],
                        "http.route": record.route[1],
                        "url.path": scope["path"],
                        "http.response.status_code": record.status,
                        "vmsizes.cache": record.cache,
                        "vmsizes.request_id": scope[REQUEST_ID].decode(),
                        "vmsizes.revision": self._revision() or 0,
                    }
                    tracing.describe_request(f"{scope['method']} {record.route[1]}", attributes)
                if self._access_log == "misses":
                    is_logged = record.cache != "hit" and record.route[1] not in _PROBES
                else:
                    is_error = record.status >= 500 and record.problem not in _COUNTED_ONLY  # noqa: PLR2004
                    is_logged = self._log_all or (self._access_log == "errors" and is_error)
                if is_logged:
                    self._write(record, seconds, scope)

    def _count(self, record: RequestRecord, seconds: float) -> None:
        place = _FIRST_OF[record.cache, f"{record.status // 100}xx"]
        first = self.series_of(*record.route) + place
        self._values[first + bisect_left(BUCKETS, seconds)] += 1.0
        self._values[first + _SUM] += seconds
        if record.problem:
            problem = record.problem if record.problem in self._problems else OTHER
            self._values[self._first_problem + self._problems.index(problem)] += 1.0

    def _write(self, record: RequestRecord, seconds: float, scope: Scope) -> None:
        query = SECRETS.sub(r"\1=…", scope["query_string"].decode("latin-1"))
        url = f"{scope['path']}?{query}" if query else scope["path"]
        fields = {
            "request_id": scope[REQUEST_ID].decode(),
            "method": scope["method"],
            "route": record.route[1],
            "url": url[:_MAX_LOGGED_CHARS],
            "status": record.status,
            "duration_ms": round(seconds * 1000, 3),
            "cache": "304" if record.cache == "hit" and record.status == 304 else record.cache,  # noqa: PLR2004
            "revision": self._revision(),
        }
        if record.problem:
            fields["problem"] = record.problem
        level = logging.ERROR if record.status >= 500 else logging.INFO  # noqa: PLR2004
        _log.log(level, "request", extra={"fields": fields})

    # Scrapes

    def sample(self) -> None:
        """Publish this worker's counters and gauges."""
        for place, metric in enumerate((*self._counters, *self._gauges), self._first_counter):
            read = self._counters.get(metric) or self._gauges[metric]
            self._values[place] = float(read())

    async def keep_sampling(self) -> None:
        """Publish for the other workers until cancelled; returns at once where there are none."""
        while self._shared.is_shared:
            self.sample()
            await asyncio.sleep(SAMPLE_SECONDS)

    def measure(self) -> Measurements:
        """Return the sums of all workers; reads a file for each of the others."""
        self.sample()
        totals = self._shared.totals()
        counted = totals.counters
        return Measurements(
            [
                Latencies(method, route, cache, status, counts, counted[first + _SUM])
                for (method, route), series in self._series.items()
                for (cache, status), place in _FIRST_OF.items()
                for first in (series + place,)
                if any(counts := counted[first : first + _SUM])
            ],
            dict(zip(self._problems, counted[self._first_problem :], strict=False)),
            dict(zip(self._counters, counted[self._first_counter :], strict=True)),
            dict(zip(self._gauges, totals.gauges, strict=True)),
            totals.workers,
        )

    def close(self) -> None:
        """Publish for the last time."""
        self.sample()
        self._shared.close()


def note_route(scope: Scope) -> None:
    """Record the route that the app chose for a request, if it is observed."""
    record, route = scope.get(RECORD), scope.get("route")
    if record is not None and route is not None:
        record.route = (scope["method"], route.path)


def note_problem(scope: Scope, slug: str) -> None:
    """Record the type of problem that a request is answered with, if it is observed."""
    record = scope.get(RECORD)
    if record is not None:
        record.problem = slug
