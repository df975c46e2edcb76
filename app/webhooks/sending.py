"""Signs messages and posts them to addresses that a webhook may be at: a few attempts, each with a time limit.

Whoever sets up a webhook may be tricked, and a name may resolve to another address each time: a request must not reach
what only the machine of the service can reach. So the transport connects to exactly the addresses that were checked.
Answers are not read.
"""

import asyncio
import base64
import binascii
import re
import secrets
import socket
import ssl
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

import httpx
import stamina
from standardwebhooks import Webhook

from app.errors import BadData, BadQuery, VmsizesError
from app.ingest.feeds.fetching import RETRIED_STATUSES, USER_AGENT, network_reason, retry_after, tls_context
from app.networks import network_hint

Address = IPv4Address | IPv6Address
MAX_URL_CHARACTERS = 2_000
MAX_ADDRESSES = 4
"""How many addresses of a name are tried at most; all of them are checked."""

ALLOWED_SETTING = "VMSIZES_WEBHOOK_ALLOWED_NETWORKS"
_NAME = re.compile(r"(?=.{1,253}$)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*\.?")
_NAT64 = ip_network("64:ff9b::/96")
_OF_CLOUD_HOSTS = (ip_network("168.63.129.16/32"), ip_network("192.0.0.0/24"))
"""Azure's host agent has an address of the public Internet, Oracle's metadata (192.0.0.192) one that older Pythons
take for one; both are reached from inside a VM only."""


class RefusedAddress(VmsizesError):
    """A webhook is at an address that is not public, and that no setting allows."""


class UnknownHost(VmsizesError):
    """The name in the URL of a webhook has no address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AllowedTargets:
    """The hosts and networks that are allowed although their addresses are not public; none by default."""

    hosts: frozenset[str] = frozenset()
    networks: tuple[IPv4Network | IPv6Network, ...] = ()

    @staticmethod
    def parse(text: str) -> "AllowedTargets":
        """Read names and networks separated by commas: `10.1.0.0/16,hooks.internal`; raises BadQuery."""
        hosts, networks = set(), []
        for word in filter(None, (part.strip().lower() for part in text.split(","))):
            try:
                networks.append(ip_network(word))
            except ValueError:
                if not _NAME.fullmatch(word) or re.fullmatch(r"[\d.]+", word):
                    allowed = "names of hosts and networks are allowed, as in 10.1.0.0/16,hooks.internal"
                    raise BadQuery(ALLOWED_SETTING, word, network_hint(word) or allowed) from None
                hosts.add(word.rstrip("."))
        return AllowedTargets(hosts=frozenset(hosts), networks=tuple(networks))

    def check(self, host: str, address: Address) -> None:
        """Raise RefusedAddress for an address that is neither public nor allowed."""
        if host.lower().rstrip(".") in self.hosts or any(address in network for network in self.networks):
            return
        if not is_public(address):
            place = f"{host} is at {address}, which" if host != str(address) else host
            raise RefusedAddress(f"{place} is not a public address; {ALLOWED_SETTING} can allow it")


def is_public(address: Address) -> bool:
    """Return whether an address is of the public Internet; an address that stands for one of IPv4 is what that is."""
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            return is_public(address.ipv4_mapped)
        if address in _NAT64:
            return is_public(IPv4Address(address.packed[-4:]))
        if address.sixtofour or address.teredo or address.is_site_local:  # tunnels to IPv4, and what was private once
            return False
    if any(address in network for network in _OF_CLOUD_HOSTS):
        return False
    return address.is_global and not (address.is_multicast or address.is_reserved)


def check_url(text: str) -> httpx.URL:
    """Return the URL of a webhook; raises BadQuery for one that is not https, or has a password or a fragment."""
    try:
        url = httpx.URL(text)
    except httpx.InvalidURL:
        raise BadQuery("URL", text, "is not a URL") from None
    if url.scheme != "https" or not url.host:
        raise BadQuery("URL", text, "must begin with https:// and name a host")
    if url.port is not None and url.port not in range(1, 65536):
        raise BadQuery("URL", text, "its port must be from 1 to 65535")
    if url.userinfo or url.fragment:
        raise BadQuery("URL", str(url), "must have no password and no fragment (#)")
    if len(text) > MAX_URL_CHARACTERS:
        raise BadQuery("URL", f"{text[:40]}…", f"at most {MAX_URL_CHARACTERS:,} characters are allowed")
    return url


async def resolve(url: httpx.URL, allowed: AllowedTargets) -> list[str]:
    """Return the addresses of a URL's host, all of them checked; raises RefusedAddress or UnknownHost."""
    host = url.raw_host.decode("ascii")
    try:
        loop = asyncio.get_running_loop()
        resolved = await loop.getaddrinfo(host, url.port or 443, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise UnknownHost(f"the name {host} cannot be resolved: {error}") from error
    addresses = list(dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in resolved))
    for address in addresses:
        allowed.check(host, ip_address(address))
    return addresses


class CheckedTransport(httpx.AsyncBaseTransport):
    """Resolves the host of each request, checks its addresses, and connects to one of these.

    The name stays in the Host header, and TLS verifies the certificate for it. No proxy is used: it would resolve the
    name again.
    """

    def __init__(self, allowed: AllowedTargets, tls: ssl.SSLContext) -> None:
        self._allowed, self._inner = allowed, httpx.AsyncHTTPTransport(verify=tls, trust_env=False)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request to the first address that accepts a connection."""
        failure: httpx.TransportError | None = None
        for address in (await resolve(request.url, self._allowed))[:MAX_ADDRESSES]:
            pinned = httpx.Request(
                request.method,
                request.url.copy_with(host=address),
                headers=request.headers,
                stream=request.stream,
                extensions={**request.extensions, "sni_hostname": request.url.raw_host.decode("ascii")},
            )
            try:
                return await self._inner.handle_async_request(pinned)
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                failure = error
        assert failure is not None  # noqa: S101  # a name that resolves has an address
        raise failure

    async def aclose(self) -> None:
        """Close the connections."""
        await self._inner.aclose()


SECRET_PREFIX = "whsec_"  # noqa: S105  # what secrets begin with
SECRET_BYTES = 32
_ALLOWED_SECRET_BYTES = range(24, 65)
"""How long the convention lets a secret be."""


def new_secret() -> str:
    """Return a new random secret."""
    return f"{SECRET_PREFIX}{base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()}"


def check_secret(text: str, file: str) -> str:
    """Return a secret without the white space around it; raises BadData naming the file, but not the secret."""
    secret = text.strip()
    try:
        length = len(base64.b64decode(secret.removeprefix(SECRET_PREFIX), validate=True))
    except (binascii.Error, ValueError):
        length = 0
    if not secret.startswith(SECRET_PREFIX) or length not in _ALLOWED_SECRET_BYTES:
        raise BadData("must be whsec_ and the base64 of 24 to 64 random bytes", file=file)
    return secret


@dataclass(frozen=True, slots=True, kw_only=True)
class SendPolicy:
    """How often a message is tried in one run, how long to wait in between, and the limit of an attempt, seconds."""

    attempts: int = 3
    first_wait: float = 1.0
    longest_wait: float = 5.0
    timeout: float = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SendResult:
    """The outcome of the attempts of one run: the last status, if any, and why the message was not delivered."""

    attempts: int
    status_code: int | None
    error: str | None = None
    retry_after: float | None = None

    @property
    def delivered(self) -> bool:
        """Whether the receiver took the message."""
        return self.error is None

    @property
    def gone(self) -> bool:
        """Whether the receiver wants no more messages."""
        return self.status_code == HTTPStatus.GONE


class _NotDelivered(Exception):
    def __init__(self, error: str, response: httpx.Response | None = None, *, is_temporary: bool) -> None:
        super().__init__(error)
        self.status_code = response.status_code if response is not None else None
        self.retry_after = retry_after(response) if response is not None else None
        self.is_temporary = is_temporary and self.retry_after is None


class Sender:
    """Posts messages to webhooks whose addresses are public or allowed."""

    def __init__(self, allowed: AllowedTargets, policy: SendPolicy | None = None) -> None:
        self._allowed, self._policy = allowed, policy or SendPolicy()
        self._tls = tls_context()

    def send(self, url: str, secret: str, message_id: str, body: str, *, once: bool = False) -> SendResult:
        """Post a message as `post` does, where no event loop runs."""
        return asyncio.run(self.post(url, secret, message_id, body, once=once))

    async def post(self, url: str, secret: str, message_id: str, body: str, *, once: bool = False) -> SendResult:
        """Post a message until the receiver takes it, as often as the policy allows, or `once`."""
        policy, tries = self._policy, 0
        retries = stamina.retry_context(
            on=lambda error: isinstance(error, _NotDelivered) and error.is_temporary,
            attempts=1 if once else policy.attempts,
            timeout=None,
            wait_initial=policy.first_wait,
            wait_max=policy.longest_wait,
            wait_jitter=policy.first_wait,
        )
        # A transport of its own for each message: connections are not kept, so each is to addresses checked just now.
        transport = CheckedTransport(self._allowed, self._tls)
        async with httpx.AsyncClient(transport=transport, timeout=policy.timeout, trust_env=False) as client:
            try:
                async for attempt in retries:
                    with attempt:
                        tries = attempt.num
                        status = await self._post_once(client, url, secret, message_id, body)
                        return SendResult(attempts=tries, status_code=status)
            except _NotDelivered as failure:
                return SendResult(
                    attempts=tries,
                    status_code=failure.status_code,
                    error=str(failure),
                    retry_after=failure.retry_after,
                )
        raise AssertionError("unreachable: the last attempt returns or raises")

    async def _post_once(self, client: httpx.AsyncClient, url: str, secret: str, message_id: str, body: str) -> int:
        """Post once and return the status, 200 to 299; raises _NotDelivered."""
        headers = signed_headers(secret, message_id, body, datetime.now(UTC))
        try:
            async with (
                asyncio.timeout(self._policy.timeout),
                client.stream("POST", url, content=body.encode(), headers=headers) as response,
            ):
                # The body of the answer is not read; leaving the block closes the connection.
                if response.is_success:
                    return response.status_code
                raise _NotDelivered(
                    f"it answered {response.status_code}{', and redirects are not followed' * response.is_redirect}",
                    response,
                    is_temporary=response.status_code in RETRIED_STATUSES,
                )
        except (TimeoutError, httpx.TimeoutException) as error:
            text = f"it did not answer in {self._policy.timeout:g} s"
            raise _NotDelivered(text, is_temporary=True) from error
        except httpx.HTTPError as error:
            raise _NotDelivered(f"it cannot be reached: {network_reason(error)}", is_temporary=True) from error
        except (RefusedAddress, UnknownHost) as error:
            raise _NotDelivered(str(error), is_temporary=False) from error


def signed_headers(secret: str, message_id: str, body: str, sent_at: datetime) -> dict[str, str]:
    """Return the headers of an attempt; the signature covers the id, the time of the attempt and the body."""
    return {
        "content-type": "application/json",
        "user-agent": USER_AGENT,
        "webhook-id": message_id,
        "webhook-timestamp": str(int(sent_at.timestamp())),
        "webhook-signature": Webhook(secret).sign(message_id, sent_at, body),
    }
