"""Entry point for ASGI servers: `uvicorn --factory app.asgi:service`."""

import gc
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from app.http.middleware import CacheMiddleware

SWITCH_SECONDS = 0.0005
"""Shorter than the least a request takes, so that arithmetic in threads delays no other request for longer."""


def service() -> "CacheMiddleware":
    """Return the ASGI application with settings from the environment.

    A thread that computes hands over to the event loop after SWITCH_SECONDS instead of Python's 5 ms.

    Imported modules live as long as the process, so the garbage collector is off during the import and never scans
    them afterwards.
    """
    sys.setswitchinterval(SWITCH_SECONDS)
    gc.disable()
    from app.main import create_asgi_app  # noqa: PLC0415  # only after the collector is off

    application = create_asgi_app()
    gc.freeze()
    gc.enable()
    return application
