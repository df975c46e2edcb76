"""What schemathesis does not know by itself of this document, and of a fair refusal.

What the document allows is refused only for what the document cannot say. A name that the catalog does not have, two
fields that contradict each other, a forged cursor: these are problems of types of their own. A `bad-parameter` says
that the request is not of the document, so it must never answer one that is.
And a list in a URL that has one value is no different from that value.
"""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

import schemathesis

EQUAL_PATTERNS = {
    "^[ -~\u00a0-\U0010ffff]*$": "^[^\x00-\x1f\x7f-\x9f]*$",
    "^[ -+.-~\u00a0-\U0010ffff-]*$": "^[^\x00-\x1f,\x7f-\x9f]*$",
}
"""Patterns of the document, and each by the characters that it excludes.

Hypothesis lists the characters of a class one by one: for each parameter the million that are allowed take it 5 s, and
the 65 that are not, less than a millisecond.
"""


@schemathesis.hook
def before_load_schema(ctx: schemathesis.HookContext, raw_schema: dict[str, Any]) -> None:
    """Replace the patterns that are slow to generate text from."""
    del ctx
    _replace_patterns(raw_schema)


def _replace_patterns(schema: Any) -> None:
    if isinstance(schema, dict):
        pattern = schema.get("pattern")
        if isinstance(pattern, str):
            schema["pattern"] = EQUAL_PATTERNS.get(pattern, pattern)
    for part in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        _replace_patterns(part)


MAX_QUERY_BYTES = 7 * 1024
"""Less than what a URL may have, so that the path has room."""


@schemathesis.check
def refused_only_for_what_the_document_cannot_say(
    ctx: schemathesis.CheckContext, response: schemathesis.Response, case: schemathesis.Case
) -> None:
    """Fail where a request of the document is taken for one that is not."""
    del ctx
    meta = case.meta
    if meta is None or not meta.generation.mode.is_positive or response.status_code != 422:
        return
    kind = response.json().get("type")
    if kind == "/problems/bad-parameter":
        raise AssertionError(f"the document allows this, and it is refused as {kind}")


@schemathesis.hook
def before_add_examples(ctx: schemathesis.HookContext, examples: list[schemathesis.Case]) -> None:
    """Leave `fields` out of examples, which no hook for generated requests sees."""
    del ctx
    for case in examples:
        _without_fields(case)


@schemathesis.hook
def map_case(ctx: schemathesis.HookContext, case: schemathesis.Case) -> schemathesis.Case:
    """Leave `fields` out of valid requests for lists."""
    del ctx
    if case.meta is None or case.meta.generation.mode.is_positive:
        _without_fields(case)
    return case


def _without_fields(case: schemathesis.Case) -> None:
    """Ask for whole items: only those are of the schema that the document has for the list."""
    if case.query and not case.operation.path.endswith((".csv", ".parquet")):
        case.query.pop("fields", None)


@schemathesis.hook
def filter_case(ctx: schemathesis.HookContext, case: schemathesis.Case) -> bool:
    """Leave out requests whose URL is too long (414), and those that are wrong only before they are written.

    `name=false` is a list of one text. A null in a body is absent, which the document does not say of objects,
    lists and enumerations (ADR 11): tests/api/test_nulls.py asks for it.
    """
    del ctx
    query = case.query or {}
    if len(urlencode(query, doseq=True)) > MAX_QUERY_BYTES:
        return False
    if case.meta is None or case.meta.generation.mode.is_positive or not isinstance(query, Mapping):
        return True
    if _has_null(case.body):
        return False
    lists = {one.name for one in case.operation.query if one.definition.get("schema", {}).get("type") == "array"}
    return all(isinstance(query[name], list) for name in lists & set(query))


def _has_null(value: Any) -> bool:
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return value is None or any(map(_has_null, parts))
