"""Temporary folders that do not outlive their process for long, even if it is killed."""

import fcntl
import shutil
from contextlib import suppress
from pathlib import Path
from tempfile import gettempdir, mkdtemp

_PREFIX = "vmsizes-exports-"
_LOCK = "lock"


class ExportFolder:
    """A temporary folder; a lock in it says that its process lives, since the system releases locks of dead ones."""

    def __init__(self) -> None:
        self.path = Path(mkdtemp(prefix=_PREFIX))
        self._lock = (self.path / _LOCK).open("wb")
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def remove(self) -> None:
        """Remove the folder with its files."""
        shutil.rmtree(self.path, ignore_errors=True)
        self._lock.close()


def remove_abandoned_folders() -> None:
    """Remove the folders of processes that were killed; those of other users stay."""
    for folder in Path(gettempdir()).glob(f"{_PREFIX}*"):
        with suppress(OSError), (folder / _LOCK).open("rb+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # fails where its process lives
            shutil.rmtree(folder, ignore_errors=True)
