"""Values of a body that are not what they look like: JSON tells a truth, a number and a text apart, and so do we."""

from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from functools import cache
from typing import Any, get_args

from pydantic_core import PydanticCustomError

_NUMBERS = {int, float, Decimal}
_TEXTS = {str, date}
_DUE = {
    "boolean": "true or false without quotes",
    "number": "a number without quotes",
    "text": "a text in quotes",
}


def refuse_lookalike(value: bool | float | str, annotation: Any) -> None:
    """Refuse "8" or true where a number is due, 1 or "yes" where a truth is, and a number where a date is."""
    kinds = _kinds(annotation)
    if kinds and _kind(value) not in kinds:
        raise PydanticCustomError(
            "lookalike", "expected {due}", {"due": " or ".join(_DUE[kind] for kind in sorted(kinds))}
        )


def _kind(value: bool | float | str) -> str:
    if isinstance(value, bool):
        return "boolean"
    return "text" if isinstance(value, str) else "number"


@cache
def _kinds(annotation: Any) -> frozenset[str]:
    """Which kinds of plain values an annotation takes; none where it takes only others, which pydantic refuses well."""
    return frozenset(_each_kind(annotation))


def _each_kind(annotation: Any) -> Iterator[str]:
    if annotation is bool:
        yield "boolean"
    elif annotation in _NUMBERS:
        yield "number"
    elif annotation in _TEXTS or isinstance(annotation, str):
        yield "text"
    else:
        for part in get_args(annotation):
            yield from _each_kind(part)
