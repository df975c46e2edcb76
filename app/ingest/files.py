"""Which files are read: regular ones, since a pipe may never be written to, and a device may have no end."""

import stat
from pathlib import Path

from app.errors import BadData


def refuse_special_file(path: Path) -> None:
    """Raise BadData for a pipe, a socket or a device; what is missing or a folder is left to the reader."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise BadData("is a pipe, a socket or a device; give a file", file=str(path))
