"""A real HTTP server on a free loopback port, in a thread of the tests' own process."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn


@contextmanager
def server(app: Any) -> Iterator[str]:
    """Serve an ASGI application; yields its base URL once it is ready, stops it cleanly at the end."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        uvicorn_server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="on"))
        thread = threading.Thread(target=uvicorn_server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        try:
            while not uvicorn_server.started:
                if not thread.is_alive():
                    raise RuntimeError("the server did not start; its log says why")
                time.sleep(0.005)
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            uvicorn_server.should_exit = True
            thread.join(timeout=10)
        assert not thread.is_alive(), "the server did not stop within 10 s"
