"""ROOF: what a server starts: `uvicorn --factory app.server:service`."""

import gc
import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from app.api.door.answers import Answers


def service() -> "Answers":
    """Make the service, with its settings from the environment.

    What is imported here stays for good: the garbage collector is not let through it, neither meanwhile nor later.
    """
    gc.disable()
    from pydantic.warnings import UnsupportedFieldAttributeWarning  # noqa: PLC0415  # nothing before this

    from app.main import create_service  # noqa: PLC0415

    # FastAPI gives models an alias and silences what pydantic says of it, but not where they are built when first used.
    warnings.filterwarnings("ignore", "The 'alias' attribute", UnsupportedFieldAttributeWarning)
    made = create_service()
    gc.freeze()
    gc.enable()
    return made
