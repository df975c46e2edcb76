"""Entry point for ASGI servers: `uvicorn --factory app.asgi:service`."""

import gc
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from app.http.middleware import CacheMiddleware


def service() -> "CacheMiddleware":
    """Return the ASGI application with settings from the environment.

    Imported modules live as long as the process, so the garbage collector is off during the import and never scans
    them afterwards.
    """
    gc.disable()
    from app.main import create_asgi_app  # noqa: PLC0415  # only after the collector is off

    application = create_asgi_app()
    gc.freeze()
    gc.enable()
    return application
