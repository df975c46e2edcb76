"""A statement as one object of JSON lines, for scripts."""

from datetime import date
from decimal import Decimal
from fractions import Fraction

from app.catalog.fields import FIELDS
from app.catalog.readings import Statement

JsonValue = int | float | bool | str
_DIGITS = 4


def as_json_line(statement: Statement) -> dict[str, JsonValue | None]:
    """Write a statement with its unit; a fraction is a number of four digits, a whole number has none."""
    field = FIELDS[statement.kind][statement.field]
    return {
        "subject": statement.subject,
        "field": statement.field,
        "value": _value(statement.value),
        "unit": field.unit,
        "raw": statement.raw,
        "file": statement.file,
        "line": statement.line,
    }


def _value(value: int | Decimal | Fraction | str | bool | date) -> JsonValue:  # a value, not a switch
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Decimal | Fraction):
        return int(value) if value == int(value) else round(float(value), _DIGITS)
    return value
