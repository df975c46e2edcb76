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
    _defer_models()
    from app.main import create_service  # noqa: PLC0415  # only after the collector is off
    from app.settings import Settings  # noqa: PLC0415
    from app.telemetry import logs  # noqa: PLC0415

    settings = Settings()
    logs.configure(settings.log_format, settings.log_level)
    application = create_service(settings, logs=logs.BackgroundLogs())
    gc.freeze()
    gc.enable()
    return application


def _defer_models() -> None:
    """Have models of libraries built when they are first used, as those of the service are: 25 ms of each start.

    FastAPI imports pydantic 1 to learn that no parameter is one of its models; None says that there is no such module.
    """
    from pydantic import BaseModel  # noqa: PLC0415  # only after the collector is off

    BaseModel.model_config["defer_build"] = True
    sys.modules["pydantic.v1"] = None  # type: ignore[assignment]  # documented so for imports that have to fail
