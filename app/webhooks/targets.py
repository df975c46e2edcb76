"""Which addresses a webhook may be at, and a transport that connects to exactly the addresses that were checked.

Whoever sets up a webhook may be tricked, and a name may resolve to another address each time: a request must not reach
what only the machine of the service can reach.
"""

import asyncio
import re
import socket
import ssl
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

import httpx

from app.errors import BadQuery, VmsizesError

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
                    raise BadQuery(ALLOWED_SETTING, word, allowed) from None
                hosts.add(word.rstrip("."))
        return AllowedTargets(hosts=frozenset(hosts), networks=tuple(networks))

    def check(self, host: str, address: Address) -> None:
        """Raise RefusedAddress for an address that is neither public nor allowed."""
        if host.lower().rstrip(".") in self.hosts or any(address in network for network in self.networks):
            return
        if not is_public(address):
            where = f"{host} is at {address}" if host != str(address) else host
            raise RefusedAddress(f"{where}, which is not a public address; {ALLOWED_SETTING} can allow it")


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
        raise BadQuery("URL", text, "is no URL") from None
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
        found = await loop.getaddrinfo(host, url.port or 443, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise UnknownHost(f"the name {host} cannot be resolved: {error}") from error
    addresses = list(dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in found))
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
