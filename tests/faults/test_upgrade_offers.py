"""Offers to change to another protocol are declined: a body stays a body, and is never taken for a next request."""

import json
import re
import socket
import time
from collections.abc import Iterator

import pytest

from tests.processes import ServiceProcess, run_service

pytestmark = pytest.mark.one_database  # connections do not depend on the database

OFFER = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n"
LAST = b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
NEEDS = json.dumps({"resources": {"min_gpus": 1}, "limit": 1}).encode()
REQUEST = b"GET /regions HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.fixture(scope="module")
def running(seeded_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    """A service."""
    log = tmp_path_factory.mktemp("serve") / "log"
    with run_service(seeded_url, log) as running:
        yield running
        assert "pgrade" not in log.read_text()


def ask(running: ServiceProcess, *parts: bytes) -> list[bytes]:
    """Send parts of requests one after the other and return the statuses of the answers."""
    with socket.create_connection(("127.0.0.1", running.port), timeout=20) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for part in parts:
            connection.sendall(part)
            time.sleep(0.05)
        answers = b"".join(iter(lambda: connection.recv(65536), b""))
    return re.findall(rb"HTTP/1.1 (\d+)", answers)


@pytest.mark.parametrize("split", ["together", "after the head", "in the body"])
@pytest.mark.parametrize("framing", ["length", "chunked"])
@pytest.mark.parametrize(("body", "status"), [(NEEDS, b"200"), (REQUEST, b"400")], ids=["needs", "a request"])
def test_the_body_after_an_offer_is_read(
    running: ServiceProcess, framing: str, split: str, body: bytes, status: bytes
) -> None:
    length = b"Content-Length: %d" % len(body) if framing == "length" else b"Transfer-Encoding: chunked"
    head = b"POST /fit HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n%s\r\n%s\r\n" % (length, OFFER)
    sent = body if framing == "length" else b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
    parts = {"together": [head + sent], "after the head": [head, sent], "in the body": [head + sent[:20], sent[20:]]}
    assert ask(running, *parts[split], LAST) == [status, b"200"]


def test_requests_in_one_packet_with_offers_are_all_answered(running: ServiceProcess) -> None:
    offered = b"GET /regions HTTP/1.1\r\nHost: x\r\n%s\r\n" % OFFER
    assert ask(running, offered + offered + LAST) == [b"200", b"200", b"200"]
