"""The examples of the OpenAPI document: requests with the responses of a seeded catalog, one file per operation."""

import json
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

EXAMPLES = files("app.api.openapi") / "examples"
MAX_ITEMS = 2
"""Objects of a list that an example shows; lists of strings, such as `flags`, are shown whole."""
MAX_STRINGS = 30
"""Strings of a list that are shown whole; longer lists, such as the sources of a revision, are cut to MAX_ITEMS."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A request, and what is shown of its response."""

    path: str
    body: dict[str, Any] | None
    answer: Any


def find_example(operation: str) -> Example | None:
    """Return the example of an operation; None if it has none."""
    file = EXAMPLES / f"{operation}.json"
    return Example(**json.loads(file.read_text(encoding="utf-8"))) if file.is_file() else None


def find_problem_example(response: str) -> Any:
    """Return the example of an error response; None if it has none."""
    file = EXAMPLES / "problems" / f"{response}.json"
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else None


def with_example(operation: dict[str, Any]) -> dict[str, Any]:
    """Add an operation's example to its response, and to its body if it has one."""
    example = find_example(operation["operationId"])
    if example is None:
        return operation
    success = operation["responses"]["200"]
    summary = example.path if example.body is None else "The response to the example of a body."
    summary += " (two objects of each list are shown)" if _has_objects(example.answer) else ""
    answer = {**success, "content": _with_value(success["content"], summary, example.answer)}
    whole = {**operation, "responses": {**operation["responses"], "200": answer}}
    if example.body is not None:
        request = operation["requestBody"]
        whole["requestBody"] = {
            **request,
            "content": _with_value(request["content"], operation["summary"], example.body),
        }
    return whole


def _with_value(content: dict[str, Any], summary: str, value: Any) -> dict[str, Any]:
    ((media_type, described),) = content.items()
    return {media_type: with_example_value(described, summary, value)}


def with_example_value(media: dict[str, Any], summary: str, value: Any) -> dict[str, Any]:
    """Add an example to a media type object."""
    return {**media, "examples": {"example": {"summary": summary, "value": value}}}


def _has_objects(answer: Any) -> bool:
    lists = [value for value in answer.values() if isinstance(value, list)] if isinstance(answer, dict) else []
    return any(isinstance(value, dict) for values in lists for value in values)


def shorten(answer: Any) -> Any:
    """Cut lists of objects, and the lines of a text below its heading, to what an example shows."""
    if isinstance(answer, dict):
        return {name: shorten(value) for name, value in answer.items()}
    if isinstance(answer, list):
        objects = any(isinstance(value, dict | list) for value in answer)
        return [shorten(value) for value in (answer[:MAX_ITEMS] if objects or len(answer) > MAX_STRINGS else answer)]
    if isinstance(answer, str) and "\n" in answer:
        return "".join(answer.splitlines(keepends=True)[: MAX_ITEMS + 1])
    return answer
