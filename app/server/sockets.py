"""The sockets that the service listens on."""

import errno
import socket
from contextlib import suppress
from typing import Any

BACKLOG = 2048
"""Connections that the system keeps until a worker accepts them."""

UNSENT_BYTES = 128 * 1024
"""What the system buffers of a response beyond what is on its way, so that slow readers hold little memory."""


def listen(host: str, port: int) -> list[socket.socket]:
    """Listen on every address of a host; raises OSError where none of them can be listened on."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    listeners: list[socket.socket] = []
    unavailable: OSError | None = None
    for family, address in dict.fromkeys((family, address) for family, _, _, _, address in found):
        try:
            listeners.append(_listen(family, address))
        except OSError as error:
            # localhost may stand for an address of IPv6 that the machine does not have
            if error.errno in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
                unavailable = error
                continue
            for listener in listeners:
                listener.close()
            raise
    if not listeners and unavailable is not None:
        raise unavailable
    return listeners


def _listen(family: int, address: tuple[Any, ...]) -> socket.socket:
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        with suppress(AttributeError, OSError):  # Linux and macOS; connections inherit it
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, UNSENT_BYTES)
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError:
        listener.close()
        raise
    return listener
