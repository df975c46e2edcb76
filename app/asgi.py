"""ROOF: what a server starts: `uvicorn --factory app.asgi:service`."""

import gc
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from app.http.middleware import CacheMiddleware


def service() -> "CacheMiddleware":
    """Make the service, with its settings from the environment.

    What is imported here stays for good: the garbage collector is not let through it, neither meanwhile nor later.
    """
    gc.disable()
    from app.main import create_asgi_app  # noqa: PLC0415  # not before the collector is still

    made = create_asgi_app()
    gc.freeze()
    gc.enable()
    return made
