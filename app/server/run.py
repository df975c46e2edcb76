"""Serves the application: one process, or a supervisor with several workers."""

import socket
import sys
from contextlib import suppress
from typing import Any

from uvicorn.config import STARTUP_FAILURE

from app.server.limits import Limits
from app.server.supervisor import Supervisor
from app.server.worker import BoundedServer, ServerConfig, handle_other_signals

APPLICATION = "app.asgi:service"


def serve(sockets: list[socket.socket], limits: Limits, *, workers: int, **options: Any) -> None:
    """Serve on bound sockets until a signal ends it; `options` are uvicorn's.

    Exits with 3 if the service cannot be started.
    """
    config = ServerConfig(APPLICATION, factory=True, limits=limits, workers=workers, log_level="info", **options)
    handle_other_signals()
    if workers > 1:
        sys.exit(Supervisor(config, sockets).run())
    config.load_app()
    server = BoundedServer(config)
    with suppress(KeyboardInterrupt):
        server.run(sockets)
    if not server.started:
        sys.exit(STARTUP_FAILURE)
