"""Counters of worker processes in memory that all of them can read, so that a scrape of any worker returns the sum.

Each process has a file of 64-bit floats, mapped into its memory: to count is to add to a number, without a lock or a
system call. A process holds a lock on its file while it lives, so that others know whose gauges still hold; what the
dead have counted is kept. prometheus_client's own files take some microseconds for each count: docs/adr/0004.
"""

import mmap
import os
import shutil
from array import array
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from tempfile import gettempdir, mkdtemp, mkstemp
from typing import NamedTuple

_BYTES = 8
_ENDED = "ended"
_PREFIX, _ALIVE = "vmsizes-counters-", "alive"


class Totals(NamedTuple):
    """Counters of all processes, the dead too; gauges of those that live, and how many do."""

    counters: list[float]
    gauges: list[float]
    workers: int


class SharedCounters:
    """Counters, then gauges, as floats in `values`; the other processes' are in the same folder.

    `layout` names what is counted: files of another version of the program are left alone. Without a folder nothing is
    shared. Raises OSError where the folder cannot be written; the space is reserved, since a write to a mapped file on
    a full disk would end the process.
    """

    def __init__(self, layout: str, counters: int, gauges: int, folder: Path | None = None) -> None:
        self._counters, self._length = counters, counters + gauges
        self._folder, self._file = folder, -1
        self._version = sha256(f"{layout} {counters} {gauges}".encode()).hexdigest()[:12]
        if folder is None:
            self.values = _floats(bytearray(self._length * _BYTES))
            return
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._locked(exclusive=True):
            self._merge_ended(folder)
            self._file, name = mkstemp(".counters", f"{self._version}-{os.getpid()}-", folder)
            _lock(self._file, exclusive=True)
            os.posix_fallocate(self._file, 0, self._length * _BYTES)
        self._path = Path(name)
        self._map = mmap.mmap(self._file, self._length * _BYTES)
        self.values = _floats(self._map)

    @property
    def is_shared(self) -> bool:
        """Whether other processes read these counters."""
        return self._folder is not None

    def totals(self) -> Totals:
        """Return the sums over all processes; reads a file for each of them."""
        own: list[float] = list(self.values)
        counted, gauges, workers = own[: self._counters], own[self._counters :], 1
        if self._folder is not None:
            with self._locked(exclusive=False):
                for path in self._files(self._folder):
                    if path == self._path:
                        continue
                    values, alive = self._read(path)
                    counted = [a + b for a, b in zip(counted, values, strict=False)]
                    if alive:
                        gauges = [a + b for a, b in zip(gauges, values[self._counters :], strict=True)]
                        workers += 1
        return Totals(counted, gauges, workers)

    def close(self) -> None:
        """Give up the file; what it counts stays for the others."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _files(self, folder: Path) -> list[Path]:
        return sorted(folder.glob(f"{self._version}-*.counters"))

    def _read(self, path: Path) -> tuple[list[float], bool]:
        """Return the values of a file, and whether its process lives."""
        values = array("d")
        with path.open("rb") as file:
            values.frombytes(file.read(self._length * _BYTES))
            try:
                _lock(file.fileno(), exclusive=False, wait=False)
            except BlockingIOError:
                return values.tolist(), True
        return values.tolist(), False

    def _merge_ended(self, folder: Path) -> None:
        """Add the files of dead processes to one, so that there are no more files than processes that live."""
        ended = folder / f"{self._version}-{_ENDED}.counters"
        counted = [0.0] * self._counters
        merged = []
        for path in self._files(folder):
            values, alive = self._read(path)
            if not alive:
                counted = [a + b for a, b in zip(counted, values, strict=False)]
                merged.append(path)
        if len(merged) > (ended in merged):
            part = ended.with_suffix(".part")
            part.write_bytes(array("d", counted).tobytes())
            part.replace(ended)
            for path in merged:
                if path != ended:
                    path.unlink()

    @contextmanager
    def _locked(self, *, exclusive: bool) -> Iterator[None]:
        """Hold the folder's lock: files are merged while no other process reads them."""
        assert self._folder is not None  # noqa: S101  # tells the type checker
        with (self._folder / "lock").open("a") as lock:
            _lock(lock.fileno(), exclusive=exclusive)
            yield


def _floats(buffer: bytearray | mmap.mmap) -> "memoryview[float]":
    return memoryview(buffer).cast("d")


class OwnFolder:
    """A temporary folder; a lock in it says that its process lives, since the system releases locks of dead ones."""

    def __init__(self, prefix: str) -> None:
        self.path = Path(mkdtemp(prefix=prefix))
        self._lock = (self.path / _ALIVE).open("wb")
        _lock(self._lock.fileno(), exclusive=True)

    def remove(self) -> None:
        """Remove the folder with its files."""
        shutil.rmtree(self.path, ignore_errors=True)
        self._lock.close()

    @staticmethod
    def remove_abandoned(prefix: str) -> None:
        """Remove the folders of processes that were killed; those of other users stay."""
        for folder in Path(gettempdir()).glob(f"{prefix}*"):
            with suppress(OSError), (folder / _ALIVE).open("rb+") as lock:
                _lock(lock.fileno(), exclusive=True, wait=False)  # fails where its process lives
                shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def counters_folder() -> Iterator[Path]:
    """Make a temporary folder for the counters of several workers, and remove it at the end."""
    OwnFolder.remove_abandoned(_PREFIX)
    folder = OwnFolder(_PREFIX)
    try:
        yield folder.path
    finally:
        folder.remove()


def _lock(file: int, *, exclusive: bool, wait: bool = True) -> None:
    import fcntl  # noqa: PLC0415  # Windows has none, and runs one worker

    fcntl.flock(file, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | (0 if wait else fcntl.LOCK_NB))
