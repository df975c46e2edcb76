"""Intended differences, each with its reason; none may touch items, order, totals, prices or statuses."""

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.golden.asking import Answer
    from tests.golden.questions import Question

_NAMES = {b"Premium storage": b"Premium Storage", b"Ultra disk": b"Ultra Disk"}


def _only_names(question: "Question", before: "Answer", after: "Answer") -> bool:
    body = before.body
    for name, written in _NAMES.items():
        body = body.replace(name, written)
    was, is_now = ({**one.headers, "etag": "", "content-length": ""} for one in (before, after))
    return "/ui/" in question.target and before.status == after.status and body == after.body and was == is_now


def _only_descriptions(question: "Question", before: "Answer", after: "Answer") -> bool:
    was, is_now = (_DESCRIPTION.sub(b"", one.body) for one in (before, after))
    return "/openapi" in question.target and before.status == after.status and was == is_now


def _only_kept(question: "Question", before: "Answer", after: "Answer") -> bool:
    is_kept = before.headers.get("cache-control") == "no-store" and "cache-control" not in after.headers
    same = (before.status, before.body) == (after.status, after.body)
    return question.method == "POST" and '"architecture"' in question.body and is_kept and same


_DESCRIPTION = re.compile(rb'"description": ?"(?:[^"\\]|\\.)*"')


ALLOWED: Mapping[str, Callable[["Question", "Answer", "Answer"], bool]] = {
    "Figures are described by the table of fields, alike in sizes and facets": _only_descriptions,
    "Names of features are written alike on all pages, whose ETags change with any template": _only_names,
    "Answers about an architecture are kept like those about models": _only_kept,
}
"""Whether a difference is of a kind, by the reason for it."""


def reason_of(question: "Question", before: "Answer", after: "Answer") -> str:
    """Return why an answer may differ; empty if it may not."""
    return next((reason for reason, holds in ALLOWED.items() if holds(question, before, after)), "")
