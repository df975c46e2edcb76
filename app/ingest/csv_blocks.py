"""Large CSV files: thousands of rows at a time, a column at a time, for readers that check columns and not cells."""

import csv
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from app.ingest.csv_files import Row, open_csv, read_header, wrong_width

AT_ONCE = 1_000
"""Lines of a block: few enough that their cells stay in the processor's cache."""


Numbered = tuple[int, list[str]]


@dataclass(frozen=True, slots=True)
class Block:
    """Some rows: their lines, their cells by column as they stand there, and what share of the file is read by then."""

    file: str
    lines: Sequence[int]
    cells: Mapping[str, Sequence[str]]
    share: float

    def rows(self) -> Iterator[Row]:
        """Give the rows one by one, to find out which is wrong."""
        for line, *cells in zip(self.lines, *self.cells.values(), strict=True):
            yield Row(self.file, line, dict(zip(self.cells, map(str.strip, cells), strict=True)))


def read_blocks(path: Path, columns: Collection[str]) -> Iterator[Block]:
    """Read a file as `read_rows` does, with the same errors, but in blocks."""
    with open_csv(path) as file:
        reader = csv.reader(file, strict=True)
        header = read_header(reader, str(path), columns)
        size = path.stat().st_size
        while numbered := [(reader.line_num, cells) for cells in islice(reader, AT_ONCE)]:
            fitting, odd = _fitting(numbered, len(header))
            if fitting:
                lines, rows = zip(*fitting, strict=True)
                by_column = dict(zip(header, zip(*rows, strict=True), strict=True))
                yield Block(str(path), lines, by_column, file.buffer.tell() / size)
            if odd:
                line, cells = odd
                raise wrong_width(str(path), line, len(cells), len(header))


def _fitting(numbered: list[Numbered], width: int) -> tuple[list[Numbered], Numbered | None]:
    """Give the rows that are as wide as the header, and the first that is not; empty lines are none."""
    if {len(cells) for _, cells in numbered} == {width}:
        return numbered, None
    filled = [(line, cells) for line, cells in numbered if cells]
    odd = next((index for index, (_, cells) in enumerate(filled) if len(cells) != width), len(filled))
    return filled[:odd], next(iter(filled[odd:]), None)
