"""Compares an output with a documented example: JSON as JSON, text by its words; `…` matches anything."""

import json
import re
from collections.abc import Iterator
from typing import Any

REST = "…"
_TOKEN = re.compile(r'\s*(?P<token>"(?:[^"\\]|\\.)*"|[{}\[\]:]|…|[^\s,:{}\[\]"]+)[\s,]*')


def matches(example: str, output: str) -> bool:
    """Return whether an output matches an example."""
    if example.lstrip().startswith(("{", "[")):
        try:
            return _alike(_value(_tokens(example)), json.loads(output))
        except ValueError:  # several objects, one a line
            pass
    return re.fullmatch(_pattern(_lines(example)), _lines(output), re.DOTALL) is not None


def _lines(text: str) -> str:
    return "\n".join(" ".join(line.split()) for line in text.strip().splitlines())


def _pattern(text: str) -> str:
    """Return the regular expression of an example: a line `…` matches any lines, elsewhere it stays within its line."""
    whole = re.sub(r"(?m)^…$", "\x00", text)
    parts = [re.escape(part).replace("…", "[^\n]*") for part in whole.split("\x00")]
    return ".*".join(parts)


def _tokens(example: str) -> Iterator[str]:
    return (found["token"] for found in _TOKEN.finditer(example))


def _value(tokens: Iterator[str], first: str | None = None) -> Any:
    token = first or next(tokens)
    if token == REST:
        return REST
    if token == "{":
        return _object(tokens)
    if token == "[":
        return [_value(tokens, item) for item in iter(tokens.__next__, "]")]
    return json.loads(token)


def _object(tokens: Iterator[str]) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for token in iter(tokens.__next__, "}"):
        if token == REST:
            members[REST] = REST
        else:
            assert next(tokens) == ":"
            members[json.loads(token)] = _value(tokens)
    return members


def _alike(shown: Any, actual: Any) -> bool:
    if shown == REST:
        return True
    if isinstance(shown, dict) and isinstance(actual, dict):
        named = shown.keys() - {REST}
        complete = REST in shown or named == actual.keys()
        return complete and named <= actual.keys() and all(_alike(shown[name], actual[name]) for name in named)
    if isinstance(shown, list) and isinstance(actual, list):
        return _alike_lists(shown, actual)
    if isinstance(shown, str) and isinstance(actual, str):
        return re.fullmatch(".*".join(map(re.escape, shown.split(REST))), actual, re.DOTALL) is not None
    return bool(shown == actual) and isinstance(shown, bool) == isinstance(actual, bool)


def _alike_lists(shown: list[Any], actual: list[Any]) -> bool:
    if not shown:
        return not actual
    if shown[0] == REST:
        return any(_alike_lists(shown[1:], actual[at:]) for at in range(len(actual) + 1))
    return bool(actual) and _alike(shown[0], actual[0]) and _alike_lists(shown[1:], actual[1:])
