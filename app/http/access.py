"""Limits who may use the service, and how much: API keys and rate limits, around the response cache.

It is installed only where keys or a limit are set. Responses to a request with a key are private: no shared cache may
store them, and the response cache inside serves them to holders of keys only.
"""

import math
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from ipaddress import IPv6Address, ip_address
from time import perf_counter
from typing import NamedTuple

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api_keys import ApiKey, find_api_key
from app.http.cache import Headers
from app.http.common_headers import DATA_HEADERS, CommonHeadersMiddleware, ProblemPage
from app.http.headers import HOLDER, REQUEST_ID, parse_headers, resolve_request_id, with_cors
from app.http.observer import RequestObserver
from app.http.problems import problem_response, status_problem

OPEN_PATHS = frozenset({"/healthz", "/readyz"})
"""Probes need no key and are not counted."""

_UNAUTHORIZED, _TOO_MANY = 401, 429
_CHALLENGE = {"WWW-Authenticate": 'Bearer realm="vmsizes"'}
_REFUSALS = (
    "This service needs an API key: send `Authorization: Bearer KEY` or `X-API-Key: KEY`.",
    "The API key that was sent is not valid here.",
    "Two API keys that differ were sent: send one, as `Authorization: Bearer KEY` or `X-API-Key: KEY`.",
)
"""Error texts: no key, an invalid key, several keys."""
_POLICY = "default"

MAX_CLIENTS = 50_000
"""How many clients are counted at once; each takes about 300 bytes."""

_IPV6_NETWORK_BITS = 64


def presented_keys(headers: Iterable[tuple[bytes, bytes]]) -> set[bytes]:
    """Return the key in `Authorization: Bearer` or `X-API-Key`; several different ones count as none."""
    keys = set()
    for name, value in headers:
        if name == b"x-api-key":
            keys.add(value.strip())
        elif name == b"authorization":
            scheme, _, credentials = value.strip().partition(b" ")
            if scheme.lower() == b"bearer":
                keys.add(credentials.strip())
    return keys - {b""}


def client_network(host: str | None) -> str:
    """Return what is counted as one client: an IPv4 address, or the /64 of an IPv6 address, which is one client's."""
    try:
        address = ip_address((host or "").partition("%")[0])
    except ValueError:
        return "unknown"
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped:
            return str(address.ipv4_mapped)
        return f"{IPv6Address(int(address) >> _IPV6_NETWORK_BITS << _IPV6_NETWORK_BITS)}/{_IPV6_NETWORK_BITS}"
    return str(address)


class Allowance(NamedTuple):
    """What a client may still send: whether this request is served, how many more are, and when, in seconds.

    `reset_seconds` is when all requests of the window are available again, `retry_seconds` when the next one is.
    """

    served: bool
    remaining: int
    reset_seconds: int
    retry_seconds: int


class RateLimiter:
    """At most `requests` in `window_seconds` for each client, with bursts up to all of them.

    The generic cell rate algorithm: one number for each client, the moment at which its requests are paid off. A client
    whose requests are paid off is the same as one never seen, and is forgotten. Where MAX_CLIENTS are in the middle of
    theirs, the one seen longest ago is forgotten, so the memory has a bound.
    """

    def __init__(
        self,
        requests: int,
        window_seconds: int,
        *,
        max_clients: int = MAX_CLIENTS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.requests, self.window_seconds = requests, window_seconds
        self._interval = window_seconds / requests
        self._max_clients, self._clock = max_clients, clock
        self._paid_off: OrderedDict[str, float] = OrderedDict()

    def __len__(self) -> int:
        return len(self._paid_off)

    def count(self, client: str) -> Allowance:
        """Count a request of a client; one that is refused is not counted."""
        now = self._clock()
        debt = max(0.0, self._paid_off.get(client, now) - now)
        after = debt + self._interval
        # A thousandth of an interval absorbs the rounding of sums of intervals.
        if after > self.window_seconds + self._interval / 1000:
            return Allowance(False, 0, math.ceil(debt), max(1, math.ceil(after - self.window_seconds)))
        self._paid_off[client] = now + after
        self._paid_off.move_to_end(client)
        self._forget(now)
        remaining = int((self.window_seconds - after) / self._interval + 0.001)
        return Allowance(True, remaining, math.ceil(after), 0)

    def _forget(self, now: float) -> None:
        """Forget clients from the one seen longest ago on: those that are paid off, and those over the bound."""
        while self._paid_off:
            client, paid_off = next(iter(self._paid_off.items()))
            if paid_off > now and len(self._paid_off) <= self._max_clients:
                return
            del self._paid_off[client]


class AccessMiddleware:
    """Refuses requests without a valid key (401) and requests over the limit (429); passes on all others."""

    def __init__(
        self,
        app: ASGIApp,
        observer: RequestObserver,
        *,
        keys: Sequence[ApiKey] = (),
        limiter: RateLimiter | None = None,
        public_url: str = "",
        security_headers: Headers = DATA_HEADERS,
        problem_page: ProblemPage | None = None,
    ) -> None:
        self._app, self._observer, self._keys, self._limiter = app, observer, tuple(keys), limiter
        self._common = public_url, security_headers, problem_page

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check the key, count the request, and pass it on."""
        if scope["type"] != "http" or scope["path"] in OPEN_PATHS:
            await self._app(scope, receive, send)
            return
        presented = presented_keys(scope["headers"]) if self._keys else set()
        key = find_api_key(next(iter(presented)), self._keys) if len(presented) == 1 else None
        if key is not None:
            scope[HOLDER] = key.name
        # A wrong key is counted by address, so that guessing is limited, too.
        client = f"key {key.name}" if key else client_network((scope.get("client") or (None,))[0])
        allowance = self._limiter.count(client) if self._limiter is not None else None
        send = self._with_access_headers(send, allowance)
        if allowance is not None and not allowance.served:
            await self._refuse(_TOO_MANY, scope, receive, send, {"Retry-After": str(allowance.retry_seconds)})
        # A browser asks without credentials which methods it may use from another origin (CORS preflight).
        elif self._keys and key is None and scope["method"] != "OPTIONS":
            await self._refuse(_UNAUTHORIZED, scope, receive, send, _CHALLENGE)
        else:
            await self._app(scope, receive, send)

    async def _refuse(self, status: int, scope: Scope, receive: Receive, send: Send, headers: dict[str, str]) -> None:
        parsed = parse_headers(scope["headers"])
        scope[REQUEST_ID] = resolve_request_id(parsed)

        detail = _REFUSALS[min(len(presented_keys(scope["headers"])), 2)]  # no key is repeated, as a log may keep it
        if status == _TOO_MANY and self._limiter is not None:
            allowed = f"{self._limiter.requests:,} requests in {self._limiter.window_seconds:,} s"
            detail = f"You may send {allowed}; Retry-After says when the next one is served."

        async def refusal(scope: Scope, receive: Receive, send: Send) -> None:
            problem = problem_response(Request(scope), status_problem(status), detail, headers=headers)
            await problem(scope, receive, send)

        if parsed.get(b"origin"):
            send = with_cors(send)
        refused = CommonHeadersMiddleware(refusal, *self._common)
        await self._observer.observe(refused, perf_counter(), scope, receive, send)

    def _with_access_headers(self, send: Send, allowance: Allowance | None) -> Send:
        """Wrap `send` to say what is left of the limit, and to keep responses to keys out of shared caches."""

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": list(message["headers"])}  # those of a kept response are shared
                headers = MutableHeaders(scope=message)
                if self._keys:
                    said = headers.get("Cache-Control", "")
                    if "no-store" not in said and "private" not in said:  # forbid shared caches to store it
                        kept = (part.strip() for part in said.split(",") if part.strip() not in ("", "public"))
                        said = ", ".join(["private", *kept])
                    headers["Cache-Control"] = said
                    headers.add_vary_header("Authorization, X-API-Key")
                if allowance is not None and self._limiter is not None:
                    window = self._limiter.window_seconds
                    headers["RateLimit-Policy"] = f'"{_POLICY}";q={self._limiter.requests};w={window}'
                    headers["RateLimit"] = f'"{_POLICY}";r={allowance.remaining};t={allowance.reset_seconds}'
            await send(message)

        return send_with_headers
