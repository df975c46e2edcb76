"""Reads files of any kind and JSON of any length, which is never whole in memory; tells what other files of Azure are.

A pipe may never be written to, and a device may have no end: only regular files are read.

"""

import gzip
import stat
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from decimal import InvalidOperation
from pathlib import Path
from typing import Any, BinaryIO, cast

import ijson  # type: ignore[import-untyped]  # has no type information

from app.errors import BadData


def refuse_special_file(path: Path) -> None:
    """Raise BadData for a pipe, a socket or a device; what is missing or a folder is left to the reader."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise BadData("is a pipe, a socket or a device; give a file", file=str(path))


def read_bounded(path: Path, most_bytes: int, reason: str = "") -> bytes:
    """Return what is in a file; raises BadData where it cannot be read, or has more bytes than allowed for a reason."""
    refuse_special_file(path)
    try:
        with path.open("rb") as opened:
            data = opened.read(most_bytes + 1)
    except OSError as error:
        raise BadData(f"cannot be read: {error.strerror}", file=str(path)) from error
    if len(data) > most_bytes:
        raise BadData(f"has more than {most_bytes:,} bytes{reason}", file=str(path))
    return data


_JSON_KEYS: Mapping[str, str] = {
    "numberofcores": "is the JSON of `az vm list-sizes`, which lacks most of a size; "
    "`vmsizes refresh azure-skus --file` reads that of `az vm list-skus`",
    "capabilities": "is the JSON of `az vm list-skus`; `vmsizes refresh azure-skus --file` reads it",
    "retailprice": "is the JSON of the Retail Prices API; `vmsizes refresh azure-prices --file` reads it",
    "hardwareprofile": "is the JSON of `az vm list`; `vmsizes retirements` reads it",
}
"""What JSON of Azure is, by a key in lower case that only it has, and which command reads it."""


def describe_json(keys: Iterable[str]) -> str | None:
    """Return what JSON with these keys is and what reads it; None for none of Azure."""
    lowered = {key.lower() for key in keys}
    return next((detail for key, detail in _JSON_KEYS.items() if key in lowered), None)


MAX_DEPTH = 200
"""Of JSON; what vendors send has eight levels. ijson keeps the path of each: its memory grows with their square."""
_SLICE_BYTES = 256
"""Between two looks at the depth, which may grow by as many levels: less than Python's limit on recursion."""


@contextmanager
def open_json(file: Path) -> Iterator[BinaryIO]:
    """Open a file, unpacked if its name ends with `.gz`; raises BadData, also while it is read, where that fails."""
    refuse_special_file(file)
    try:
        with cast("BinaryIO", gzip.open(file)) if file.suffix == ".gz" else file.open("rb") as opened:
            yield opened
    except OSError as error:
        raise BadData(f"cannot be read: {error.strerror or error}", file=str(file)) from error
    except (EOFError, zlib.error) as error:
        raise BadData(f"cannot be read: {error}", file=str(file)) from error


def json_items(opened: BinaryIO, file: Path, prefix: str) -> Iterator[Any]:
    """Yield the items of the list at a prefix, such as `value.item`; raises BadData for what is not whole JSON."""
    return _read(ijson.items, opened, file, prefix)


def json_pairs(opened: BinaryIO, file: Path, prefix: str) -> Iterator[tuple[str, Any]]:
    """Yield the names and values of the object at a prefix; raises BadData for what is not whole JSON."""
    return _read(ijson.kvitems, opened, file, prefix)


def _read(parse: Callable[..., Iterable[Any]], opened: BinaryIO, file: Path, prefix: str) -> Iterator[Any]:
    json = _ShallowJson(opened, str(file))
    try:
        yield from parse(json, prefix)
    except (ijson.JSONError, ValueError) as error:  # the latter for texts that are not UTF-8
        reason, *_ = str(error).splitlines()  # the others show the place with an arrow
        raise BadData(f"is not whole JSON: {reason} (before byte {json.offset:,})", file=str(file)) from error
    except InvalidOperation as error:  # ijson makes a Decimal of each number
        raise BadData("has a number whose exponent is too long to be read", file=str(file)) from error


class _ShallowJson:
    """A file whose reader raises BadData where JSON is nested too deeply; brackets in texts count too, and are rare."""

    def __init__(self, opened: BinaryIO, name: str) -> None:
        self._opened, self._name, self._depth, self.offset = opened, name, 0, 0

    def read(self, size: int) -> bytes:
        data = self._opened.read(size)
        self.offset += len(data)
        for start in range(0, len(data), _SLICE_BYTES):
            piece = data[start : start + _SLICE_BYTES]
            self._depth += piece.count(b"[") + piece.count(b"{") - piece.count(b"]") - piece.count(b"}")
            if self._depth > MAX_DEPTH:
                raise BadData(f"is nested deeper than {MAX_DEPTH} levels", file=self._name)
        return data
