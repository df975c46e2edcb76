"""Cursors: where the next page begins, opaque, and of use for one question to one revision of the catalog only."""

import base64
import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from math import isfinite
from typing import Any

import orjson

from app.errors import BadCursor


@dataclass(frozen=True, slots=True)
class Place:
    """Where a page begins: behind these values of its order, in the list as a revision has it."""

    revision: str
    values: list[Any]


def fingerprint(question: str) -> str:
    """What ties a cursor to its question."""
    return hashlib.sha256(question.encode()).hexdigest()[:12]


def write_cursor(question: str, revision: str, values: Sequence[Any]) -> str:
    """Write the place after which the next page begins."""
    kept = [fingerprint(question), revision, *(_write(value) for value in values)]
    return base64.urlsafe_b64encode(orjson.dumps(kept)).decode().rstrip("=")


def read_cursor(cursor: str, question: str, count: int) -> Place:
    """Read the place back; raises BadCursor for one that is damaged or of another question."""
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        mark, revision, *kept = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
        values = [_read(value) for value in kept]
    except (ValueError, TypeError, ArithmeticError, KeyError, RecursionError):
        mark, revision, values = None, "", []
    if mark != fingerprint(question) or len(values) != count or not isinstance(revision, str):
        raise BadCursor(cursor)
    return Place(revision, values)


def start_of(place: Place | None, cursor: str | None) -> int:
    """Where a page of a list begins that is made anew each time, so that the place is a number."""
    if place is None:
        return 0
    (start,) = place.values
    if type(start) is not int or start < 0:
        raise BadCursor(cursor or "")
    return start


def _write(value: Any) -> Any:
    if isinstance(value, Decimal):
        return {"decimal": str(value)}
    if isinstance(value, date):
        return {"date": value.isoformat()}
    if isinstance(value, float) and not isfinite(value):
        return {"float": str(value)}  # the rank of an unknown price; JSON has no such number
    return value


_READ: dict[str, Callable[[str], Any]] = {"decimal": Decimal, "date": date.fromisoformat, "float": float}


def _read(value: Any) -> Any:
    if isinstance(value, dict):
        ((kind, text),) = value.items()
        return _READ[kind](text)
    if value is not None and not isinstance(value, str | int | float):
        raise TypeError
    return value
