"""Raw connections of clients that are silent, slow, or send halves of requests."""

import asyncio
import re
import socket

from tests.waiting import LONGEST_SECONDS, until

HOST = "127.0.0.1"
SMALL_BUFFER = 4096
"""What a slow reader's own system takes for it; the rest stays with the service."""

SILENT = b""
HALF_HEAD = b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-More: "
HALF_BODY = b"POST /fit HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"
IDLE = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
EMPTY_LINES = b"\r\n\r\n"
_LENGTH = re.compile(rb"\r\ncontent-length: (\d+)\r\n(?:.+\r\n)*\r\n", re.IGNORECASE)
"""The end of a head, from its header that says how long the body is."""
EXPORT = b"GET /prices.csv HTTP/1.1\r\nHost: x\r\nAccept-Encoding: identity\r\n\r\n"


async def connect(port: int, sent: bytes = b"", *, reads: bool = True) -> socket.socket:
    """Open a connection, and send something."""
    loop = asyncio.get_running_loop()
    opened = socket.socket()
    opened.setblocking(False)
    if not reads:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL_BUFFER)
    try:
        await loop.sock_connect(opened, (HOST, port))
    except BaseException:
        opened.close()
        raise
    if sent:
        await loop.sock_sendall(opened, sent)
    return opened


async def read_response(connection: socket.socket) -> bytes:
    """Read one response of a connection that stays open; head and body may come apart. Empty where it is closed."""
    loop, received = asyncio.get_running_loop(), b""
    while not (length := _LENGTH.search(received)) or len(received) < length.end() + int(length[1]):
        chunk = await loop.sock_recv(connection, 4096)
        if not chunk:
            break
        received += chunk
    return received


async def read_to_end(connection: socket.socket) -> bytes:
    """Read until the service closes the connection."""
    loop, received = asyncio.get_running_loop(), b""
    async with asyncio.timeout(LONGEST_SECONDS):
        try:
            while chunk := await loop.sock_recv(connection, 65_536):
                received += chunk
        except ConnectionResetError:
            pass
        finally:
            connection.close()
    return received


async def until_closed(connection: socket.socket) -> None:
    """Wait until the service has closed a connection that is not read."""
    assert connection.fileno() >= 0
    await until(lambda: connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1) != b"\x01")  # ESTABLISHED


async def ask(port: int, path: str = "/healthz") -> bytes:
    """Send one request over a new connection and return the whole response."""
    request = f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode()
    return await read_to_end(await connect(port, request))


def status_of(response: bytes) -> int:
    """Return the status of a response; 0 for none."""
    return int(response.split(b" ", 2)[1]) if response else 0
