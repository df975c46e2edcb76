"""Sentences of a page with the line each starts on."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from app.ingest.documents.blocks import Passage
from app.ingest.documents.page import SourceDocument, SourcePage

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z“\"(])|\v")
_ALERT_MARKER = re.compile(r"^\[!\w+\]\s*")
_MAX_RAW_LENGTH = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """One sentence on one line; `raw` is what is kept of it as the source's words."""

    page: SourcePage
    passage: Passage
    text: str
    line: int

    @property
    def raw(self) -> str:
        """Give the sentence, cut where it is very long."""
        return self.text if len(self.text) <= _MAX_RAW_LENGTH else f"{self.text[:_MAX_RAW_LENGTH]}…"


def to_sentences(document: SourceDocument) -> Iterator[Sentence]:
    """Give all sentences of paragraphs and list items."""
    for page, passage in document.passages():
        if passage.kind == "heading":
            continue
        start = 0
        for end in [*(found.end() for found in _SENTENCE_END.finditer(passage.text)), len(passage.text)]:
            text = _ALERT_MARKER.sub("", re.sub(r"\s+", " ", passage.text[start:end]).strip())
            if text:
                lead = len(passage.text[start:end]) - len(passage.text[start:end].lstrip())
                yield Sentence(page=page, passage=passage, text=text, line=passage.line_at(start + lead))
            start = end
