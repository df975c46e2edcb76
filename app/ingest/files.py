"""Which files are read, and what other files of Azure are, which were given in their place.

A pipe may never be written to, and a device may have no end: only regular files are read.
"""

import re
import stat
from collections.abc import Iterable, Mapping
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


_JSON_KEYS: Mapping[str, str] = {
    "numberofcores": "is the JSON of `az vm list-sizes`, which lacks most of a size; "
    "`vmsizes refresh azure-skus --file` reads that of `az vm list-skus`",
    "capabilities": "is the JSON of `az vm list-skus`; `vmsizes refresh azure-skus --file` reads it",
    "retailprice": "is the JSON of the Retail Prices API; `vmsizes refresh azure-prices --file` reads it",
    "hardwareprofile": "is the JSON of `az vm list`; `vmsizes retirements` reads it",
}
"""What JSON of Azure is, by a key in lower case that only it has, and which command reads it."""
_KEY = re.compile(r'"(\w{1,40})"\s*:')


def describe_json(keys: Iterable[str]) -> str | None:
    """Return what JSON with these keys is and what reads it; None for none of Azure."""
    lowered = {key.lower() for key in keys}
    return next((detail for key, detail in _JSON_KEYS.items() if key in lowered), None)


def refuse_json(start: bytes, name: str) -> None:
    """Raise BadData for a file that begins as JSON does, where CSV is expected, saying what it is."""
    text = start.decode("utf-8-sig", errors="replace").lstrip()
    if text[:1] in ("[", "{"):
        raise BadData(describe_json(_KEY.findall(text)) or "is JSON, where a CSV file is expected", file=name)
