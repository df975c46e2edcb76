"""CSV files as rows that know their file and line, so that every problem can name its place."""

import csv
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from hashlib import file_digest
from itertools import islice
from pathlib import Path
from typing import TextIO, TypeVar

from app.catalog.column_types import SIGNIFICANT_DIGITS, USD_DECIMALS, is_exact
from app.errors import BadData

ChoiceText = TypeVar("ChoiceText", bound=str)

_NUMBER = re.compile(r"[0-9]+(\.[0-9]+)?")
_INTEGER = re.compile(r"[0-9]{1,18}")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


@dataclass(frozen=True, slots=True)
class CsvRow:
    """One row: its cells by column, without the spaces around them; a blank cell is the empty text."""

    file: str
    line: int
    cells: Mapping[str, str]

    def error(self, column: str, detail: str) -> BadData:
        """What is wrong with a cell, as an error that quotes it; a column that is left out is a blank cell."""
        return BadData(f"{self.cells.get(column, '')!r}: {detail}", file=self.file, line=self.line, column=column)

    def text(self, column: str) -> str:
        """Return the cell; it must not be blank."""
        if not self.cells[column]:
            raise self.error(column, "must not be blank")
        return self.cells[column]

    def optional(self, column: str) -> str | None:
        """Return the cell, or None where it is blank."""
        return self.cells[column] or None

    def choice(self, column: str, allowed: Collection[ChoiceText]) -> ChoiceText:
        """Return the cell, which must be one of the allowed words."""
        for word in allowed:
            if word == self.cells[column]:
                return word
        raise self.error(column, f"must be one of {', '.join(allowed)}")

    def positive(self, column: str) -> Decimal:
        """Return the cell as an exact number; it must be above zero, in plain notation."""
        if not _NUMBER.fullmatch(self.cells[column]) or not (number := Decimal(self.cells[column])):
            raise self.error(column, "must be a number above 0, written like 3.673")
        return number

    def usd(self, column: str) -> Decimal:
        """Return the cell as a price, which must be one that every database keeps to its last digit."""
        usd = self.positive(column)
        if not is_exact(usd):
            allowed = f"at most {USD_DECIMALS} decimals and {SIGNIFICANT_DIGITS} significant digits"
            raise self.error(column, f"must be below a billion, with {allowed}")
        return usd

    def integer(self, column: str) -> int:
        """Return the cell as a whole number; zero is one."""
        if not _INTEGER.fullmatch(self.cells[column]):
            raise self.error(column, "must be a whole number, written like 4096")
        return int(self.cells[column])

    def optional_date(self, column: str) -> date | None:
        """Return the cell as a date, or None where it is blank."""
        if not (cell := self.cells[column]):
            return None
        try:
            if _DATE.fullmatch(cell):
                return date.fromisoformat(cell)
        except ValueError:
            pass
        raise self.error(column, "must be a date written as YYYY-MM-DD")

    def date(self, column: str) -> date:
        """Return the cell as a date; it must not be blank."""
        if (day := self.optional_date(column)) is None:
            raise self.error(column, "must be a date written as YYYY-MM-DD")
        return day

    def flag(self, column: str) -> bool:
        """Return the cell as a yes or no."""
        return self.choice(column, ("true", "false")) == "true"


def read_rows(path: Path, columns: Collection[str], *, optional: Collection[str] = ()) -> Iterator[CsvRow]:
    """Read a file's rows one by one; its header must have each of the columns, in any order, and no unknown one."""
    with open_csv(path) as file:
        reader = csv.reader(file, strict=True)
        header = read_header(reader, str(path), columns, optional)
        for cells in reader:
            if not cells:
                continue
            if len(cells) != len(header):
                raise wrong_width(str(path), reader.line_num, len(cells), len(header))
            yield CsvRow(str(path), reader.line_num, dict(zip(header, map(str.strip, cells), strict=True)))


@contextmanager
def open_csv(path: Path) -> Iterator[TextIO]:
    """Open a file; while it is open, what is no CSV in UTF-8 becomes BadData."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            yield file
    except OSError as error:
        raise BadData(f"cannot be read: {error.strerror}; give the path of a CSV file", file=str(path)) from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise BadData(f"is not a CSV file in UTF-8: {error}", file=str(path)) from error


def read_header(
    lines: Iterator[list[str]], name: str, columns: Collection[str], optional: Collection[str] = ()
) -> list[str]:
    """Read the first line, which must name each of the columns and no unknown one."""
    header = [column.strip() for column in next(lines, [])]
    _check_header(header, name, columns, optional)
    return header


def wrong_width(name: str, line: int, cells: int, columns: int) -> BadData:
    """What is wrong with a row that has more or fewer cells than the header."""
    return BadData(f"has {cells} cells where the header names {columns} columns", file=name, line=line)


def _check_header(header: list[str], name: str, columns: Collection[str], optional: Collection[str]) -> None:
    known = [*columns, *optional]
    problems: tuple[tuple[list[str], str], ...] = (
        ([column for column in columns if column not in header], "is missing from the header"),
        ([column for column in header if column not in known], f"is unknown; the columns are {', '.join(known)}"),
        ([column for column in header if header.count(column) > 1], "stands in the header twice"),
    )
    for found, detail in problems:
        if found:
            raise BadData(detail, file=name, line=1, column=found[0])


def sha256_of(path: Path) -> str:
    """Return the digest of a file's bytes."""
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


BLOCK_LINES = 1_000
"""Lines of a block: few enough that their cells stay in the processor's cache."""


NumberedCells = tuple[int, list[str]]


@dataclass(frozen=True, slots=True)
class CsvBlock:
    """Some rows: their lines, their cells by column as they stand there, and what share of the file is read by then."""

    file: str
    lines: Sequence[int]
    cells: Mapping[str, Sequence[str]]
    share: float

    def rows(self) -> Iterator[CsvRow]:
        """Give the rows one by one, to find out which is wrong."""
        for line, *cells in zip(self.lines, *self.cells.values(), strict=True):
            yield CsvRow(self.file, line, dict(zip(self.cells, map(str.strip, cells), strict=True)))


def read_blocks(path: Path, columns: Collection[str]) -> Iterator[CsvBlock]:
    """Read a file as `read_rows` does, with the same errors, but in blocks."""
    with open_csv(path) as file:
        reader = csv.reader(file, strict=True)
        header = read_header(reader, str(path), columns)
        size = path.stat().st_size
        while numbered := [(reader.line_num, cells) for cells in islice(reader, BLOCK_LINES)]:
            fitting, odd = _split_at_wrong_width(numbered, len(header))
            if fitting:
                lines, rows = zip(*fitting, strict=True)
                by_column = dict(zip(header, zip(*rows, strict=True), strict=True))
                yield CsvBlock(str(path), lines, by_column, file.buffer.tell() / size)
            if odd:
                line, cells = odd
                raise wrong_width(str(path), line, len(cells), len(header))


def _split_at_wrong_width(
    numbered: list[NumberedCells], width: int
) -> tuple[list[NumberedCells], NumberedCells | None]:
    """Give the rows that are as wide as the header, and the first that is not; empty lines are none."""
    if {len(cells) for _, cells in numbered} == {width}:
        return numbered, None
    filled = [(line, cells) for line, cells in numbered if cells]
    odd = next((index for index, (_, cells) in enumerate(filled) if len(cells) != width), len(filled))
    return filled[:odd], next(iter(filled[odd:]), None)
