"""The pages of the documentation taken apart: sections, links, and the examples of their fenced blocks."""

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
    """One thing that a reader does: keeps a file, or types a command and compares what it prints."""

    line: int
    file: str = ""
    command: str = ""
    text: str = ""


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def examples(page: str) -> Iterator[Example]:
    """The files (fences that name one) and console sessions of a page, in its order."""
    for fence in _FENCE.finditer(page):
        line = page.count("\n", 0, fence.start()) + 1
        if fence["file"]:
            yield Example(line=line, file=fence["file"], text=fence["text"])
        elif fence["language"] == "console":
            yield from _session(fence["text"], line + 1)


def _session(text: str, line: int) -> Iterator[Example]:
    for typed in re.finditer(r"^\$ (?P<command>.+)\n(?P<output>(?:(?!\$ ).*\n)*)", text, re.MULTILINE):
        yield Example(line=line + text.count("\n", 0, typed.start()), command=typed["command"], text=typed["output"])


def prose(page: str) -> str:
    """A page without its fenced blocks."""
    return _FENCE.sub("", page)


def sections(page: str) -> dict[str, str]:
    """The text below each heading, up to the next heading of any level; fences are left out."""
    text = prose(page)
    headings = list(_HEADING.finditer(text))
    ends = [heading.start() for heading in headings[1:]] + [len(text)]
    return {heading["title"]: text[heading.end() : end] for heading, end in zip(headings, ends, strict=True)}


def anchor(title: str) -> str:
    """The anchor that a heading gets."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def links(page: str) -> list[str]:
    """What a page links to."""
    return [link["target"] for link in _LINK.finditer(re.sub(r"`[^`]*`", "", prose(page)))]


def first_column(section: str) -> list[str]:
    """The code words in the first cells of a section's tables: `a`, or `a` and `b` in one cell."""
    cells = re.findall(r"^\|([^|]*)\|", section, re.MULTILINE)
    return [word for cell in cells for word in re.findall(r"`([^`]+)`", cell)]
