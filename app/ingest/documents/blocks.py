"""What a page consists of once its Markdown is parsed: tables, passages of text, includes; each knows its line."""

from dataclasses import dataclass
from typing import Literal

LINE, BREAK = "\n", "\v"
"""In a passage's text: the end of a source line, and a `<br>` (which ends no source line)."""


PassageKind = Literal["heading", "paragraph", "item"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A cell of a table: `text` is without markup, `raw` as in the file, `marks` its footnote marks (`*`, `1`)."""

    text: str
    raw: str
    marks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A row as wide as the header; `surplus` are the cells beyond the last column."""

    line: int
    cells: tuple[Cell, ...]
    surplus: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table, and whether it stands inside a list."""

    line: int
    header: tuple[Cell, ...]
    rows: tuple[Row, ...]
    in_list: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A heading, paragraph or list item without markup; `bold` are its words in bold, `heading` what it is under.

    `level` is that of a heading, 1 to 6, and 0 of anything else.
    """

    kind: PassageKind
    text: str
    line: int
    heading: str
    bold: tuple[str, ...] = ()
    marks: tuple[str, ...] = ()
    level: int = 0

    def line_at(self, offset: int) -> int:
        """Find the source line of a place in the text."""
        return self.line + self.text.count(LINE, 0, offset)


@dataclass(frozen=True, slots=True, kw_only=True)
class Include:
    """A reference to another file whose text belongs here."""

    target: str
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Blocks:
    """The parsed body of a page; `unread` are places where a table stands that is no Markdown table."""

    tables: tuple[Table, ...]
    passages: tuple[Passage, ...]
    includes: tuple[Include, ...]
    unread: tuple[int, ...]
