"""Runs a real HTTP server on a free loopback port, in a thread of the test process, and opens clients of it."""

import socket
import ssl
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import httpx
import uvicorn

from tests.waiting import LONGEST_SECONDS

CLIENT_TIMEOUT = 120.0  # seconds: httpx's 5 are too few on a machine that does much else

TLS = ssl.create_default_context()
"""Shared by all clients: to read the certificates of the machine takes longer than most requests."""


@contextmanager
def server(app: Any, **options: Any) -> Iterator[str]:
    """Serve an ASGI application: yields its base URL once it is ready, and shuts it down at the end.

    `options` are those of uvicorn.
    """
    config = uvicorn.Config(app, log_level="warning", lifespan="on", timeout_graceful_shutdown=5, **options)
    uvicorn_server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listener, ThreadPoolExecutor(max_workers=1) as thread:
        running = thread.submit(uvicorn_server.run, sockets=[listener])
        try:
            while not uvicorn_server.started:
                if running.done():
                    raise RuntimeError("the server did not start; its log says why") from running.exception()
                time.sleep(0.005)
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            uvicorn_server.should_exit = True
        running.result(timeout=LONGEST_SECONDS)


def open_client(url: str, **options: Any) -> httpx.Client:
    """Return an HTTP client of the service at a URL; `options` are those of httpx."""
    return httpx.Client(base_url=url, trust_env=False, timeout=CLIENT_TIMEOUT, verify=TLS, **options)


def get(url: str) -> httpx.Response:
    """Send one request on a connection of its own."""
    return httpx.get(url, trust_env=False, timeout=CLIENT_TIMEOUT, verify=TLS)
