"""Messages for pydantic's validation errors, the same for the API, the command line and settings."""

import codecs
import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, get_args

from pydantic_core.core_schema import ErrorType

from app.nearest import did_you_mean, nearest

Error = Mapping[str, Any]
"""One error as `ValidationError.errors()` lists it: type, loc, input, ctx, msg."""


MAX_ERRORS = 10
"""How many errors are listed; of the others, only the number is reported."""


def explain(error: Error) -> str:
    """Return what is wrong and what is allowed.

    Errors that this program raises keep their own message. A pydantic error type that is not in the table gets a
    generic message, because pydantic's own would mention Python types.
    """
    text = _TEXTS.get(error["type"])
    if text is None:
        return "is invalid" if error["type"] in _PYDANTIC_TYPES else str(error["msg"])
    return text(error) if callable(text) else text.format(**error.get("ctx", {}))


def field_path(loc: Sequence[int | str]) -> str:
    """Return a field's path: `status` for any item of that list, `lora_matrices[1].rank` for a field of an item."""
    steps = list(loc)
    while steps and isinstance(steps[-1], int):
        steps.pop()
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps).removeprefix(".")


def display_value(value: Any) -> str | None:
    """Return a value as JSON or a query writes it; None for an object or nothing, which would not help the reader.

    Nor would infinity, which 1e400 is read as, or a list of more than a thousand values.
    """
    if value is None or isinstance(value, dict) or value in ([], (), float("inf"), -float("inf")):
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        plain = len(value) <= _MAX_DISPLAYED and not any(isinstance(item, dict | list | tuple) for item in value)
        return ", ".join(filter(None, map(display_value, value))) if plain else None
    return str(value)


_MAX_DISPLAYED = 1_000


def truncate(text: str, most: int) -> str:
    """Return a text that can be sent, cut to as many characters: errors repeat what was sent, maybe a megabyte."""
    text = text.encode(errors="backslashreplace").decode()  # half of a surrogate pair cannot be sent
    return text if len(text) <= most else f"{text[:most]}… ({len(text):,} characters)"


def plural(number: int, noun: str) -> str:
    """Return a number with its noun: `1 fact`, `2,000 facts`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def decode_text(raw: bytes, errors: str = "strict") -> str:
    """Return the text of a file in UTF-8, or in UTF-16 with its mark, as Windows PowerShell writes it."""
    marked = raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return raw.decode("utf-16" if marked else "utf-8-sig", errors)


def check_encodable(value: Any) -> None:
    """Check that the texts of a JSON value can be encoded; raises ValueError for half of a surrogate pair.

    JSON can escape it (RFC 8259, section 8.2), but no answer, log or database can hold it.
    """
    try:
        for text in json.JSONEncoder(ensure_ascii=False).iterencode(value):  # in steps, so that other threads run
            text.encode()
    except UnicodeEncodeError as error:
        half = f"\\u{ord(error.object[error.start]):x}"
        raise ValueError(f"{half} is half of a surrogate pair, which is no character") from None


def _bound(error: Error) -> str:
    bound = next(iter(error["ctx"].values()))
    return f"{bound:,}" if isinstance(bound, int) else f"{float(bound):,.10g}"


def _at_least(error: Error) -> str:
    """Return the lower bound in words; one that only leaves out zero as that."""
    return "greater than 0" if 0 < error["ctx"]["ge"] <= _LEAST else f"at least {_bound(error)}"


_LEAST = 1e-9
"""The least amount of what must be more than zero."""


def _allowed_values(error: Error) -> str:
    """Return the allowed values, after a suggestion if one of them is close."""
    words = re.findall(r"'([^']*)'", str(error["ctx"]["expected"]))
    hint = did_you_mean(nearest(str(error.get("input")), words), " ")
    return f"{hint}allowed are {', '.join(words)}"


def _raised_message(error: Error) -> str:
    """Return the message of a ValueError that one of our validators raised."""
    raised = error.get("ctx", {}).get("error")
    return str(raised) if raised is not None else str(error["msg"]).partition(", ")[2]


def _too_few(error: Error, unit: str) -> str:
    least = error["ctx"]["min_length"]
    return f"at least {least} {unit} is needed" if least == 1 else f"at least {least} {unit}s are needed"


_TEXTS: Mapping[str, str | Callable[[Error], str]] = {
    "missing": "is required",
    "missing_argument": "is required",
    "extra_forbidden": "there is no such field",
    **dict.fromkeys(("string_type", "string_sub_type"), "expected a string"),
    "string_unicode": "expected text in Unicode",
    "string_too_short": partial(_too_few, unit="character"),
    "string_too_long": "at most {max_length} characters are allowed",
    "string_pattern_mismatch": "must be of the form {pattern}",
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "expected a whole number"),
    "int_parsing_size": "the number is too large",
    **dict.fromkeys(("float_type", "float_parsing", "decimal_type", "decimal_parsing"), "expected a number"),
    "finite_number": "expected a finite number",
    **dict.fromkeys(("bool_type", "bool_parsing"), "expected true or false"),
    **dict.fromkeys(("list_type", "tuple_type", "set_type", "frozen_set_type", "iterable_type"), "expected a list"),
    "too_short": partial(_too_few, unit="value"),
    "too_long": "at most {max_length} values are allowed",
    **dict.fromkeys(
        ("model_type", "model_attributes_type", "dict_type", "mapping_type", "dataclass_type"), "expected a JSON object"
    ),
    **dict.fromkeys(
        ("date_type", "date_parsing", "date_from_datetime_parsing", "date_from_datetime_inexact"),
        "must be a date such as 2026-09-01",
    ),
    "greater_than": lambda error: f"must be greater than {_bound(error)}",
    "greater_than_equal": lambda error: f"must be {_at_least(error)}",
    "less_than": lambda error: f"must be less than {_bound(error)}",
    "less_than_equal": lambda error: f"must be at most {_bound(error)}",
    "multiple_of": lambda error: f"must be a multiple of {_bound(error)}",
    **dict.fromkeys(("literal_error", "enum"), _allowed_values),
    **dict.fromkeys(("value_error", "assertion_error"), _raised_message),
}
"""The message for each of pydantic's error types that a query, a body, an option or a setting can cause."""

_PYDANTIC_TYPES = frozenset(get_args(ErrorType))
