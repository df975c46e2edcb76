"""Examples: questions with the answers that the catalog of the seeds gives, kept as files beside this module."""

import json
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

EXAMPLES = files("app.api.openapi") / "examples"
MAX_ITEMS = 2
"""So many objects of a list are shown; lists of texts, such as `flags`, are whole."""
MAX_STRINGS = 30
"""A list of more texts than this is cut, too: the sources of a revision."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A question, and what is shown of its answer."""

    path: str
    body: dict[str, Any] | None
    answer: Any


def find_example(operation: str) -> Example | None:
    """The example of an operation; None where there is none yet."""
    file = EXAMPLES / f"{operation}.json"
    return Example(**json.loads(file.read_text(encoding="utf-8"))) if file.is_file() else None


def find_problem_example(refusal: str) -> Any:
    """The example of a refusal; None where there is none yet."""
    file = EXAMPLES / "problems" / f"{refusal}.json"
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else None


def with_example(operation: dict[str, Any]) -> dict[str, Any]:
    """Show an operation's example at its answer, and at its body where it takes one."""
    example = find_example(operation["operationId"])
    if example is None:
        return operation
    success = operation["responses"]["200"]
    summary = example.path if example.body is None else "The answer to the example of a body."
    summary += " (of a list of objects two are shown)" if _has_objects(example.answer) else ""
    answer = {**success, "content": _with_value(success["content"], summary, example.answer)}
    whole = {**operation, "responses": {**operation["responses"], "200": answer}}
    if example.body is not None:
        asked = operation["requestBody"]
        whole["requestBody"] = {**asked, "content": _with_value(asked["content"], operation["summary"], example.body)}
    return whole


def _with_value(content: dict[str, Any], summary: str, value: Any) -> dict[str, Any]:
    ((media_type, told),) = content.items()
    return {media_type: with_example_value(told, summary, value)}


def with_example_value(told: dict[str, Any], summary: str, value: Any) -> dict[str, Any]:
    """Show an example of a body beside its schema."""
    return {**told, "examples": {"example": {"summary": summary, "value": value}}}


def _has_objects(answer: Any) -> bool:
    lists = [value for value in answer.values() if isinstance(value, list)] if isinstance(answer, dict) else []
    return any(isinstance(value, dict) for values in lists for value in values)


def shorten(answer: Any) -> Any:
    """Cut every list of objects in an answer, and the lines of a text below its heading, to what an example shows."""
    if isinstance(answer, dict):
        return {name: shorten(value) for name, value in answer.items()}
    if isinstance(answer, list):
        objects = any(isinstance(value, dict | list) for value in answer)
        return [shorten(value) for value in (answer[:MAX_ITEMS] if objects or len(answer) > MAX_STRINGS else answer)]
    if isinstance(answer, str) and "\n" in answer:
        return "".join(answer.splitlines(keepends=True)[: MAX_ITEMS + 1])
    return answer
