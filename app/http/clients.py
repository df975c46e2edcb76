"""Who sends a request, and how many requests each client may send."""

import math
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable
from ipaddress import IPv6Address, ip_address
from typing import NamedTuple

MAX_CLIENTS = 50_000
"""How many clients are counted at once; each takes about 300 bytes."""

_IPV6_NETWORK_BITS = 64


def presented_key(headers: Iterable[tuple[bytes, bytes]]) -> bytes | None:
    """Return the key in `Authorization: Bearer` or `X-API-Key`; None if there is none, or several that differ."""
    found = set()
    for name, value in headers:
        if name == b"x-api-key":
            found.add(value.strip())
        elif name == b"authorization":
            scheme, _, credentials = value.strip().partition(b" ")
            if scheme.lower() == b"bearer":
                found.add(credentials.strip())
    return found.pop() if len(found) == 1 else None


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
