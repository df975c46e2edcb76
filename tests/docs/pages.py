"""Parses the pages of the documentation: sections, links, and the examples in fenced blocks."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from app.settings import PROJECT

PAGES = [PROJECT / name for name in ("README.md", "CHANGELOG.md", "seeds/README.md")] + sorted(
    (PROJECT / "docs").rglob("*.md")
)
_FENCE = re.compile(r"^```(?P<language>\w*) ?(?P<file>\S*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\[[^\]]*\]\((?P<target>[^)\s]+)\)")
_HEADING = re.compile(r"^(?P<level>#+) (?P<title>.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """One step of an example: a file to save, or a command to run and its expected output."""

    line: int
    file: str = ""
    command: str = ""
    text: str = ""


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def examples(page: str) -> Iterator[Example]:
    """Yield the files (fences that name one) and console commands of a page, in order."""
    for fence in _FENCE.finditer(page):
        line = page.count("\n", 0, fence.start()) + 1
        if fence["file"]:
            yield Example(line=line, file=fence["file"], text=fence["text"])
        elif fence["language"] == "console":
            yield from _session(fence["text"], line + 1)


def _session(text: str, line: int) -> Iterator[Example]:
    for match in re.finditer(r"^\$ (?P<command>.+)\n(?P<output>(?:(?!\$ ).*\n)*)", text, re.MULTILINE):
        yield Example(line=line + text.count("\n", 0, match.start()), command=match["command"], text=match["output"])


def prose(page: str) -> str:
    """Return a page without its fenced blocks."""
    return _FENCE.sub("", page)


def sections(page: str) -> dict[str, str]:
    """Return the text below each heading, up to the next heading of any level, without fenced blocks."""
    text = prose(page)
    headings = list(_HEADING.finditer(text))
    ends = [heading.start() for heading in headings[1:]] + [len(text)]
    return {heading["title"]: text[heading.end() : end] for heading, end in zip(headings, ends, strict=True)}


def anchor(title: str) -> str:
    """Return the anchor of a heading."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def links(page: str) -> list[str]:
    """Return the targets of the links of a page."""
    return [link["target"] for link in _LINK.finditer(re.sub(r"`[^`]*`", "", prose(page)))]


def first_column(section: str) -> list[str]:
    """Return the code words in the first column of a section's tables; a cell may have several."""
    cells = re.findall(r"^\|([^|]*)\|", section, re.MULTILINE)
    return [word for cell in cells for word in re.findall(r"`([^`]+)`", cell)]
