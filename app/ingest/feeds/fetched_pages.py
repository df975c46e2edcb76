"""Keeps fetched pages on disk, so that a refresh that was stopped goes on where it was.

A folder has one file for each region, `REGION.jsonl.gz`, with a page of the API a line, as it was sent. Pages of
one day are never continued on another: prices of two days are not one list.
"""

import gzip
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import cast

_LEVEL = 1
"""Of compression: pages are repetitive, and a higher level costs more time than their transfer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedPages:
    """The fetched pages of a feed: of one day while the refresh is under way, `accepted` those last written."""

    root: Path
    day: date

    @property
    def _fetched(self) -> Path:
        return self.root / self.day.isoformat()

    @property
    def _refused(self) -> Path:
        return self.root / f"{self.day.isoformat()}-refused"

    def open_day(self) -> None:
        """Create the folder of the day, and delete what refreshes of other days left."""
        self._fetched.mkdir(parents=True, exist_ok=True)
        for folder in self.root.iterdir():
            if folder.is_dir() and folder not in (self._fetched, self._refused, self.root / "accepted"):
                shutil.rmtree(folder)

    def has(self, region: str) -> bool:
        """Check whether all pages of a region were fetched on this day."""
        return self._file(region).is_file()

    @contextmanager
    def write(self, region: str) -> Iterator[Callable[[bytes], None]]:
        """Write the pages of a region; without an error they are kept, otherwise nothing is."""
        part = self._fetched / f"{region}.{os.getpid()}.part"
        try:
            with gzip.open(part, "wb", compresslevel=_LEVEL) as file:
                yield lambda page: cast("None", file.write(page.translate(_ONE_LINE) + b"\n"))
            part.replace(self._file(region))
        finally:
            part.unlink(missing_ok=True)

    def pages(self, region: str) -> Iterator[bytes]:
        """Yield the pages of a region."""
        with gzip.open(self._file(region), "rb") as file:
            yield from file

    def refuse(self, region: str) -> None:
        """Move the pages of a region to those refused; the next refresh fetches it again unless it accepts them."""
        _move(self._file(region), self._refused)

    def restore_refused(self, regions: Iterable[str]) -> None:
        """Move pages that were refused on this day back to those fetched, since they are accepted now."""
        for region in regions:
            _move(self._refused / self._file(region).name, self._fetched)

    def accept(self, regions: Iterable[str]) -> None:
        """Move the pages of regions to those accepted, replacing earlier ones; the next refresh fetches them again."""
        for region in regions:
            _move(self._file(region), self.root / "accepted")

    def _file(self, region: str) -> Path:
        return self._fetched / f"{region}.jsonl.gz"


def _move(file: Path, folder: Path) -> None:
    if file.is_file():
        folder.mkdir(exist_ok=True)
        file.replace(folder / file.name)


_ONE_LINE = bytes.maketrans(b"\r\n", b"  ")
"""Line breaks in JSON only stand between values, so that spaces do as well."""
