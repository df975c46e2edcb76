"""Slips of layout that would make a Markdown parser miss a table, put right without losing count of the lines."""

import re
from collections.abc import Iterator, Sequence

_PIPE = re.compile(r"(?<!\\)\|")
_DELIMITER = re.compile(r"^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$")
_SPACER = re.compile(r"^\s*(<br\s*/?>\s*)+$|^\s*:::", re.IGNORECASE)


def split_row(line: str) -> list[str]:
    """Split a table's line into its cells, with or without the outer pipes."""
    cells = [cell.strip() for cell in _PIPE.split(line.strip().removeprefix(">").strip())]
    if cells and not cells[0]:
        cells = cells[1:]
    return cells[:-1] if cells and not cells[-1] else cells


def numbered(lines: Sequence[str], first: int) -> tuple[list[str], list[int]]:
    """Give the mended lines and, for each, the number of the source line that it stands for.

    A table is set apart from what stands directly above or below it, a delimiter row is made as wide as its header,
    and a line of nothing but `<br>` (which would swallow the lines below it as HTML) is made blank.
    """
    texts: list[str] = []
    numbers: list[int] = []
    for number, text in _mended(lines, first):
        texts.append(text)
        numbers.append(number)
    return texts, numbers


def _mended(lines: Sequence[str], first: int) -> Iterator[tuple[int, str]]:
    inside = False
    for at, source in enumerate(lines):
        line, number = source, first + at
        opens = not inside and _opens_table(lines, at)
        if inside and not _PIPE.search(line):
            inside = False
            yield number, ""
        if opens:
            inside = True
            yield number, ""
        elif inside and _DELIMITER.match(line) and _opens_table(lines, at - 1):
            line = _as_wide(line, len(split_row(lines[at - 1])))
        yield number, "" if _SPACER.match(line) else line


def _opens_table(lines: Sequence[str], at: int) -> bool:
    if at < 0 or at + 1 >= len(lines) or not _PIPE.search(lines[at]):
        return False
    return bool(_DELIMITER.match(lines[at + 1]) and "|" in lines[at + 1]) and not _DELIMITER.match(lines[at])


def _as_wide(line: str, width: int) -> str:
    cells = split_row(line)
    if len(cells) == width:
        return line
    indent = line[: len(line) - len(line.lstrip())]
    return f"{indent}|{'|'.join(['---'] * width)}|"
