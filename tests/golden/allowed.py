"""Intended differences, each with its reason; none may touch items, order, totals, prices or statuses."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.golden.asking import Answer
    from tests.golden.questions import Question

ALLOWED: Mapping[str, Callable[["Question", "Answer", "Answer"], bool]] = {}
"""Whether a difference is of a kind, by the reason for it."""


def reason_of(question: "Question", before: "Answer", after: "Answer") -> str:
    """Return why an answer may differ; empty if it may not."""
    return next((reason for reason, holds in ALLOWED.items() if holds(question, before, after)), "")
