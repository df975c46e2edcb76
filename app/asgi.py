"""Entry point for ASGI servers: `uvicorn --factory app.asgi:service`."""

import gc
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.types import ASGIApp

SWITCH_SECONDS = 0.0005
"""Shorter than the least a request takes, so that arithmetic in threads delays no other request for longer."""

MAX_SCANNED = 5_000
"""The garbage collector goes through this many objects in 1 to 2 ms, during which no thread runs."""

KEPT_BLOCK_BYTES = 2 * 2**20
"""Twice as much free memory is kept: what 16 connections are sent at once takes 2 to 3 MB, and is free soon."""


def service() -> "ASGIApp":
    """Return the ASGI application with settings from the environment.

    A thread that computes hands over to the event loop after SWITCH_SECONDS instead of Python's 5 ms.

    FastAPI would import the models of pydantic's version 1, to refuse them; it does without where there are none.

    Imported modules live as long as the process, so the garbage collector is off during the import and never scans
    them afterwards; nor what requests import and keep, once that is much.
    """
    sys.setswitchinterval(SWITCH_SECONDS)
    gc.disable()
    # Have glibc keep some free memory: to return it, and have it mapped again, took a tenth of the time of a page. It
    # learns its bounds from the largest block that was mapped and freed. To set them (mallopt) would fix them, also for
    # columns of large catalogs.
    block = bytearray(KEPT_BLOCK_BYTES)
    del block
    from pydantic import BaseModel  # noqa: PLC0415  # only after the collector is off

    # Models of libraries are built when they are first used, as those of the service are: 15 ms of each start.
    BaseModel.model_config["defer_build"] = True
    sys.modules["pydantic.v1"] = None  # type: ignore[assignment]  # cannot be imported: only FastAPI asks whether it can
    from app.main import create_service  # noqa: PLC0415
    from app.settings import Settings  # noqa: PLC0415
    from app.telemetry import logs  # noqa: PLC0415

    settings = Settings()
    logs.configure(settings.log_format, settings.log_level)
    application = create_service(settings, logs=logs.BackgroundLogs())
    gc.freeze()
    gc.callbacks.append(freeze_survivors)
    gc.enable()
    return application


def freeze_survivors(phase: str, info: "Mapping[str, int]") -> None:
    """Stop the garbage collector from scanning what a full collection has left, if that is more than MAX_SCANNED.

    These are modules that requests have imported, statements, and what is known of a revision. They are still freed
    when nothing refers to them, unless they refer to each other; nearly all that does so was garbage before.
    """
    if phase == "stop" and info["generation"] == _OLDEST and len(gc.get_objects(_OLDEST)) > MAX_SCANNED:
        gc.freeze()


_OLDEST = 2
"""The generation of objects that survived a full collection."""
