"""What the fields of a result say of themselves, for the documents of the API: the metadata of a dataclass' fields.

Pydantic reads it where it writes a result as JSON; nothing here needs pydantic.
"""

from collections.abc import Mapping
from typing import Any

ALWAYS_WRITTEN: Mapping[str, Any] = {"json_schema_serialization_defaults_required": True}
"""The `__pydantic_config__` of a result whose fields have defaults, which JSON has nevertheless."""


def about(text: str, *, alias: str | None = None) -> Mapping[str, Any]:
    """Describe a field; JSON has it under its alias, if there is one."""
    return {"description": text} | ({"serialization_alias": alias} if alias is not None else {})


def if_known(text: str) -> Mapping[str, Any]:
    """Describe a field that JSON leaves out where it is None."""
    return {"description": text, "exclude_if": _is_none}


def _is_none(value: object) -> bool:
    return value is None


class WrittenAs:
    """Says as which type JSON has a field, whatever type is computed with: "float" or "str"."""

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def __get_pydantic_core_schema__(self, _source: Any, _handler: Any) -> dict[str, Any]:
        if self._kind == "str":
            return {"type": "str"}
        to_float = {"type": "function-plain", "function": float, "return_schema": {"type": "float"}}
        return {"type": "float", "serialization": to_float}
