"""Sizes that one document spells in two ways: with other dashes, or with the digit of a footnote behind the name."""

import re
from collections.abc import Iterator, Mapping, Sequence

from app.catalog.names import size_key
from app.ingest.documents.blocks import Table
from app.ingest.documents.headers import to_columns
from app.ingest.documents.page import Document
from app.ingest.documents.size_tables import name_column, names_of

_NUMBER = re.compile(r"\d+")
_DASHES = re.compile(r"[-_ ]")
_MARKED = re.compile(r"(?P<name>.*[a-z])[1-9]$")


def other_spellings(document: Document) -> Mapping[str, str]:
    """Map the key of a name to the key of the size that it means, where the document's own tables show it.

    Two names are one size if no table has both, and they differ in dashes only; or if one has a digit more, the page
    marks footnotes by digits, and two tables are the same name for name but for these two.
    """
    tables = [names for page in document.pages for table in page.blocks.tables if (names := _names(table))]
    seen = list(dict.fromkeys(name for names in tables for name in names))
    marked = _has_marks(document)
    together = {(one, other) for names in tables for one in names for other in names}
    found: dict[str, str] = {}
    for name in seen:
        for other in seen:
            if (name, other) not in together and _is_other(name, other, seen, tables, marked=marked):
                found[name] = other
    return found


def _is_other(name: str, other: str, seen: Sequence[str], tables: Sequence[Sequence[str]], *, marked: bool) -> bool:
    if _DASHES.sub("", name) == _DASHES.sub("", other):
        return _standing(other, seen) < _standing(name, seen)
    found = _MARKED.match(name)
    return marked and found is not None and found["name"] == other and _same_but(name, other, tables)


def _standing(name: str, seen: Sequence[str]) -> tuple[int, int]:
    """Sorts the spelling to the front that most of the page's sizes are written like, then the one that comes first."""
    return -sum(_NUMBER.sub("#", each) == _NUMBER.sub("#", name) for each in seen), seen.index(name)


def _same_but(name: str, other: str, tables: Sequence[Sequence[str]]) -> bool:
    """Whether a table with the one name is a table with the other name but for these."""
    replaced = [[other if each == name else each for each in names] for names in tables if name in names]
    return any(list(names) in replaced for names in tables if other in names and len(names) > 1)


def _names(table: Table) -> list[str]:
    column = name_column(table, to_columns(table.header)) if not table.in_list else None
    return [size_key(name) for name in names_of(table, column)] if column else []


def _has_marks(document: Document) -> bool:
    return any(mark.isdecimal() or mark in "²³¹" for mark in _marks(document))


def _marks(document: Document) -> Iterator[str]:
    for page in document.pages:
        for passage in page.blocks.passages:
            yield from passage.marks
        for table in page.blocks.tables:
            for cell in (*table.header, *(cell for row in table.rows for cell in row.cells)):
                yield from cell.marks
