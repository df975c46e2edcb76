"""The kinds of change events, and which fields of a size are compared."""

from collections.abc import Mapping
from typing import Literal, get_args

from app.catalog.fields import SIZE_FIELDS

ChangeKind = Literal[
    "price_up",
    "price_down",
    "price_new",
    "price_gone",
    "size_new",
    "size_gone",
    "field_changed",
    "dispute_opened",
    "dispute_closed",
    "retirement_announced",
]
"""What an event tells of."""

CHANGE_KINDS: tuple[ChangeKind, ...] = get_args(ChangeKind)

CHANGE_FIELDS: Mapping[str, str] = {
    "name": "name",
    "verified": "verified",
    "category": "category",
    **{name: name for name, field in SIZE_FIELDS.items() if field.column},
    "series": "series_id",
}
"""The fields of a size whose accepted values are compared, each with its column."""
