"""Inline Markdown to plain text: links keep their words, footnote marks are taken out, `<br>` becomes a break."""

import re
from collections.abc import Sequence

from markdown_it.token import Token

from app.ingest.documents.blocks import BREAK, LINE, Cell

_TAG = re.compile(r"<\s*(/?)\s*([a-zA-Z]+)")
_FOOTNOTE = re.compile(r"^[\s(]*(\d{1,2}|[*†‡§]+|[a-e])(?:\s*,\s*\d{1,2})*[\s)]*$")
_NAME_MARK = re.compile(r"[\s*†‡§¹²³⁴⁵⁶⁷⁸⁹]+$")


def to_plain(tokens: Sequence[Token]) -> tuple[str, tuple[str, ...]]:
    """Give the text and the footnote marks of an inline token's children.

    A superscript of a digit or sign is a footnote mark; any other is text, as in `24<sup>vCores` (left open).
    """
    parts: list[str] = []
    marks: list[str] = []
    raised: list[str] | None = None
    for token in tokens:
        if token.type == "html_inline" and (tag := _TAG.match(token.content)) and tag[2].lower() == "sup":
            _lower(raised, parts, marks)
            raised = None if tag[1] else []
            continue
        (parts if raised is None else raised).append(_text(token))
    _lower(raised, parts, marks)
    return "".join(parts), tuple(marks)


def to_cell(tokens: Sequence[Token], raw: str) -> Cell:
    """Read a table's cell; breaks become spaces, a trailing asterisk is a mark."""
    text, marks = to_plain(tokens)
    text = re.sub(r"[ \t\n]+", " ", text).strip(" \v")
    if found := _NAME_MARK.search(text):
        marks = (*marks, *found[0].replace(" ", ""))
        text = text[: found.start()]
    return Cell(text=text, raw=raw.strip(), marks=marks)


def to_bold(tokens: Sequence[Token]) -> tuple[str, ...]:
    """Give the runs of bold text."""
    runs: list[str] = []
    depth = 0
    for token in tokens:
        if token.type == "strong_open":
            depth += 1
            runs.append("")
        elif token.type == "strong_close":
            depth -= 1
        elif depth:
            runs[-1] += _text(token)
    return tuple(run.strip(" :.") for run in runs)


def _text(token: Token) -> str:
    if token.type in ("softbreak", "hardbreak"):
        return LINE
    if token.type == "html_inline":
        tag = _TAG.match(token.content)
        return BREAK if tag and tag[2].lower() == "br" else ""
    return token.content


def _lower(raised: list[str] | None, parts: list[str], marks: list[str]) -> None:
    if raised is None:
        return
    text = "".join(raised)
    if _FOOTNOTE.match(text):
        marks.append(text.strip(" ()"))
    elif text.strip():
        parts.append(f" {text}")
