"""Entry point for ASGI servers: `uvicorn --factory app.asgi:service`."""

import gc
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.types import ASGIApp

SWITCH_SECONDS = 0.0005
"""Shorter than the least a request takes, so that arithmetic in threads delays no other request for longer."""


def service() -> "ASGIApp":
    """Return the ASGI application with settings from the environment.

    A thread that computes hands over to the event loop after SWITCH_SECONDS instead of Python's 5 ms.

    Imported modules live as long as the process, so the garbage collector is off during the import and never scans
    them afterwards.
    """
    sys.setswitchinterval(SWITCH_SECONDS)
    gc.disable()
    from app.main import create_service  # noqa: PLC0415  # only after the collector is off
    from app.settings import Settings  # noqa: PLC0415
    from app.telemetry import logs  # noqa: PLC0415

    settings = Settings()
    logs.configure(settings.log_format, settings.log_level)
    application = create_service(settings, logs=logs.BackgroundLogs())
    gc.freeze()
    gc.enable()
    return application
