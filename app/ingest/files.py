"""Reads files of any kind, CSV row by row or in blocks, and JSON of any length, which is never whole in memory.

Every error names the file, line and column. A pipe may never be written to, and a device may have no end: only regular
files are read.
"""

import codecs
import csv
import gzip
import io
import re
import stat
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import date
from decimal import Decimal, InvalidOperation
from hashlib import file_digest
from itertools import islice, takewhile
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO, TextIO, TypeVar, cast

import ijson  # type: ignore[import-untyped]  # has no type information

from app.catalog.money import SIGNIFICANT_DIGITS, USD_DECIMALS, is_exact
from app.catalog.names import size_key
from app.errors import BadData
from app.nearest import did_you_mean, nearest
from app.validation import plural


def refuse_special_file(path: Path) -> None:
    """Raise BadData for a pipe, a socket or a device; what is missing or a folder is left to the reader."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise BadData("is a pipe, a socket or a device; give a file", file=str(path))


def read_bounded(path: Path, most_bytes: int, reason: str = "") -> bytes:
    """Return what is in a file; raises BadData where it cannot be read, or has more bytes than allowed for a reason."""
    refuse_special_file(path)
    try:
        with path.open("rb") as opened:
            data = opened.read(most_bytes + 1)
    except OSError as error:
        raise BadData(f"cannot be read: {error.strerror}", file=str(path)) from error
    if len(data) > most_bytes:
        raise BadData(f"has more than {most_bytes:,} bytes{reason}", file=str(path))
    return data


_JSON_KEYS: Mapping[str, str] = {
    "numberofcores": "is the JSON of `az vm list-sizes`, which lacks most of a size; "
    "`vmsizes refresh azure-skus --file` reads that of `az vm list-skus`",
    "capabilities": "is the JSON of `az vm list-skus`; `vmsizes refresh azure-skus --file` reads it",
    "retailprice": "is the JSON of the Retail Prices API; `vmsizes refresh azure-prices --file` reads it",
    "hardwareprofile": "is the JSON of `az vm list`; `vmsizes retirements` reads it",
}
"""What JSON of Azure is, by a key in lower case that only it has, and which command reads it."""


def describe_json(keys: Iterable[str]) -> str | None:
    """Return what JSON with these keys is and what reads it; None for none of Azure."""
    lowered = {key.lower() for key in keys}
    return next((detail for key, detail in _JSON_KEYS.items() if key in lowered), None)


MAX_DEPTH = 200
"""Of JSON; what vendors send has eight levels. ijson keeps the path of each: its memory grows with their square."""
_SLICE_BYTES = 256
"""Between two looks at the depth, which may grow by as many levels: less than Python's limit on recursion."""


@contextmanager
def open_json(file: Path) -> Iterator[BinaryIO]:
    """Open a file, unpacked if its name ends with `.gz`; raises BadData, also while it is read, where that fails."""
    refuse_special_file(file)
    try:
        with cast("BinaryIO", gzip.open(file)) if file.suffix == ".gz" else file.open("rb") as opened:
            yield opened
    except OSError as error:
        raise BadData(f"cannot be read: {error.strerror or error}", file=str(file)) from error
    except (EOFError, zlib.error) as error:
        raise BadData(f"cannot be read: {error}", file=str(file)) from error


def json_items(opened: BinaryIO, file: Path, prefix: str) -> Iterator[Any]:
    """Yield the items of the list at a prefix, such as `value.item`; raises BadData for what is not whole JSON."""
    return _read(ijson.items, opened, file, prefix)


def json_pairs(opened: BinaryIO, file: Path, prefix: str) -> Iterator[tuple[str, Any]]:
    """Yield the names and values of the object at a prefix; raises BadData for what is not whole JSON."""
    return _read(ijson.kvitems, opened, file, prefix)


def _read(parse: Callable[..., Iterable[Any]], opened: BinaryIO, file: Path, prefix: str) -> Iterator[Any]:
    json = _ShallowJson(opened, str(file))
    try:
        yield from parse(json, prefix)
    except (ijson.JSONError, ValueError) as error:  # the latter for texts that are not UTF-8
        reason, *_ = str(error).splitlines()  # the others show the place with an arrow
        raise BadData(f"is not whole JSON: {reason} (before byte {json.offset:,})", file=str(file)) from error
    except InvalidOperation as error:  # ijson makes a Decimal of each number
        raise BadData("has a number whose exponent is too long to be read", file=str(file)) from error


class _ShallowJson:
    """A file whose reader raises BadData where JSON is nested too deeply; brackets in texts count too, and are rare."""

    def __init__(self, opened: BinaryIO, name: str) -> None:
        self._opened, self._name, self._depth, self.offset = opened, name, 0, 0

    def read(self, size: int) -> bytes:
        data = self._opened.read(size)
        self.offset += len(data)
        for start in range(0, len(data), _SLICE_BYTES):
            piece = data[start : start + _SLICE_BYTES]
            self._depth += piece.count(b"[") + piece.count(b"{") - piece.count(b"]") - piece.count(b"}")
            if self._depth > MAX_DEPTH:
                raise BadData(f"is nested deeper than {MAX_DEPTH} levels", file=self._name)
        return data


ChoiceText = TypeVar("ChoiceText", bound=str)

BLOCK_LINES = 1_000
"""Lines per block: few enough that their cells stay in the processor's cache."""

MAX_LINE_BYTES = 4 * 2**20
"""Of a line of a file; the longest of the seeds has some 2 kB."""
_BUFFER_BYTES = 64 * 1024
_MAX_RATIO, _MIN_BOMB_BYTES = 200, 64 * 2**20
"""How many times as long as a compressed file its content may be, beyond this many bytes; price lists reach 30."""

_CONTROL = re.compile("[\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f-\\x9f\u202a-\u202e\u2066-\u2069]")
"""Control characters but tabs and line ends, and those that reverse the order in which text is shown."""
NUMBER = re.compile(r"[0-9]{1,30}(\.[0-9]{1,30})?")
_INTEGER = re.compile(r"[0-9]{1,18}")
_JSON_KEY = re.compile(r'"(\w{1,40})"\s*:')
_QUOTED_CHARACTERS = 100
_UTF_16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
SEPARATORS = ",;\t"
"""What separates cells, whichever the header has most of: spreadsheets copy tabs, and some save semicolons."""
_SIZE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,99}")
SIZE_NAME_RULE = "must be the name of a size: up to 100 letters, digits, `_`, `-`, `.` and `+`"
_FIRST_YEAR, _LAST_YEAR = 2006, 2099
"""Virtual machines are sold since 2006; a date outside of these years is a typing error."""
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def is_size_name(name: str) -> bool:
    """Return whether a text may be the name of a size, as `SIZE_NAME_RULE` says."""
    return bool(_SIZE_NAME.fullmatch(name) and size_key(name))


@dataclass(frozen=True, slots=True)
class CsvRow:
    """A row of a CSV file: its cells by column, stripped; a blank cell is the empty string."""

    file: str
    line: int
    cells: Mapping[str, str]

    def error(self, column: str, detail: str) -> BadData:
        """Return the error for a cell, whose beginning it quotes; a missing column counts as a blank cell."""
        cell = self.cells.get(column, "")
        quoted = repr(cell) if len(cell) <= _QUOTED_CHARACTERS else f"{cell[:_QUOTED_CHARACTERS]!r}…"
        return BadData(f"{quoted}: {detail}", file=self.file, line=self.line, column=column)

    def text(self, column: str) -> str:
        """Return the cell; it must not be blank."""
        if not self.cells[column]:
            raise self.error(column, "must not be blank")
        return self.cells[column]

    def cited(self) -> dict[str, Any]:
        """Return the fields of a `CitedRow`: the source that the row names, the file and the line."""
        return {"source": self.text("source"), "file": self.file, "line": self.line}

    def size_name(self, column: str) -> str:
        """Return the cell as the name of a size."""
        name = self.text(column)
        if not is_size_name(name):
            raise self.error(column, SIZE_NAME_RULE)
        return name

    def optional(self, column: str) -> str | None:
        """Return the cell, or None where it is blank."""
        return self.cells[column] or None

    def choice(self, column: str, allowed: Collection[ChoiceText]) -> ChoiceText:
        """Return the cell, which must be one of the allowed values."""
        for value in allowed:
            if value == self.cells[column]:
                return value
        raise self.error(column, f"must be one of {', '.join(allowed)}")

    def positive(self, column: str) -> Decimal:
        """Return the cell as an exact number above zero; exponents and signs are refused."""
        if not NUMBER.fullmatch(self.cells[column]) or not (number := Decimal(self.cells[column])):
            raise self.error(column, "must be a number above 0, written like 3.673")
        return number

    def usd(self, column: str) -> Decimal:
        """Return the cell as a price in US dollars; it must be one that every database stores exactly."""
        usd = self.positive(column)
        if not is_exact(usd):
            allowed = f"at most {USD_DECIMALS} decimals and {SIGNIFICANT_DIGITS} significant digits"
            raise self.error(column, f"must be below a billion, with {allowed}")
        return usd

    def integer(self, column: str, least: int = 0, most: int = 10**18) -> int:
        """Return the cell as an integer from the least to the most."""
        if not _INTEGER.fullmatch(cell := self.cells[column]):
            raise self.error(column, f"must be a whole number from {least}, written like 4096")
        if int(cell) < least:
            raise self.error(column, f"must be at least {least}")
        if int(cell) > most:
            raise self.error(column, f"must be at most {most}")
        return int(cell)

    def optional_date(self, column: str, first_year: int = _FIRST_YEAR) -> date | None:
        """Return the cell as a date, or None where it is blank."""
        if not (cell := self.cells[column]):
            return None
        try:
            day = date.fromisoformat(cell) if _DATE.fullmatch(cell) else None
        except ValueError:
            day = None
        if day is None:
            raise self.error(column, "must be a date written as YYYY-MM-DD")
        if not first_year <= day.year <= _LAST_YEAR:
            raise self.error(column, f"must be a date from {first_year} to {_LAST_YEAR}")
        return day

    def date(self, column: str, first_year: int = _FIRST_YEAR) -> date:
        """Return the cell as a date; it must not be blank."""
        if (day := self.optional_date(column, first_year)) is None:
            raise self.error(column, "must be a date written as YYYY-MM-DD")
        return day

    def flag(self, column: str) -> bool:
        """Return the cell as a boolean."""
        return self.choice(column, ("true", "false")) == "true"

    def optional_flag(self, column: str) -> bool:
        """Return the cell as a boolean; false where it is blank or there is no such column."""
        if (cell := self.cells.get(column, "")) not in ("true", "false", ""):
            raise self.error(column, "must be true, false or blank")
        return cell == "true"


def read_rows(path: Path, columns: Collection[str], *, optional: Collection[str] = ()) -> Iterator[CsvRow]:
    """Yield the rows of a file; its header must have every column, in any order, and no unknown one."""
    with open_csv(path) as file:
        reader = open_reader(file, str(path))
        header = read_header(reader, str(path), columns, optional)
        for line, cells in whole_rows(reader, str(path), len(header)):
            row = CsvRow(str(path), line, dict(zip(header, map(str.strip, cells), strict=True)))
            if _CONTROL.search("".join(cells)):
                column = next(name for name, cell in zip(header, cells, strict=True) if _CONTROL.search(cell))
                raise row.error(column, "has a control character, which a terminal would obey")
            yield row


@contextmanager
def open_csv(path: Path) -> Iterator[TextIO]:
    """Open a file in UTF-8, or in UTF-16 with its mark, as Windows PowerShell writes it; by gzip if it ends in `.gz`.

    Raises BadData, also while it is read, for what is no CSV.
    """
    refuse_special_file(path)
    try:
        with path.open("rb") as packed, _unpacked(path, packed) as raw:
            bounded = io.BufferedReader(_BoundedLines(raw, packed, str(path)), _BUFFER_BYTES)
            encoding = "utf-16" if bounded.peek(2)[:2] in _UTF_16_MARKS else "utf-8-sig"
            with io.TextIOWrapper(bounded, encoding=encoding, newline="") as file:
                yield file
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise BadData(f"is not a whole gzip file: {error}", file=str(path)) from error
    except OSError as error:
        raise BadData(f"cannot be read: {error.strerror}; give the path of a CSV file", file=str(path)) from error
    except UnicodeDecodeError as error:
        if encoding == "utf-16":
            raise BadData(f"is not a CSV file in UTF-8 or UTF-16: {error.reason}", file=str(path)) from error
        detail = f"is not UTF-8 (byte 0x{error.object[error.start]:02x}); save it as CSV in UTF-8"
        raise BadData(detail, file=str(path), line=_line_not_in_utf8(path)) from error
    except csv.Error as error:
        raise not_csv(error, str(path), _line_not_in_csv(path)) from error


def not_csv(error: csv.Error, name: str, line: int) -> BadData:
    """Return the error for a file whose row that begins on this line the parser refuses."""
    detail = next((text for words, text in _CSV_ERRORS.items() if words in str(error)), f"is not CSV: {error}")
    return BadData(detail, file=name, line=line)


_CSV_ERRORS: Mapping[str, str] = {
    "unexpected end of data": "a quote that is opened here is not closed",
    "larger than field limit": f"a cell has more than {csv.field_size_limit():,} characters, or a quote is not closed",
}
"""What is wrong with a row, by words of the parser's error."""


def _line_not_in_utf8(path: Path) -> int:
    """Return the number of the first line that is not UTF-8."""
    with path.open("rb") as packed, _unpacked(path, packed) as raw:
        bounded = io.BufferedReader(_BoundedLines(raw, packed, str(path)), _BUFFER_BYTES)
        for number, line in enumerate(bounded, 1):
            try:
                line.decode()
            except UnicodeDecodeError as error:
                return number + line.count(b"\r", 0, error.start)  # some files have no other line ends
    return 1


def _line_not_in_csv(path: Path) -> int:
    """Return the number of the line on which the first row begins that the parser refuses."""
    last = 0
    with open_csv(path) as file, suppress(csv.Error):
        reader = open_reader(file, str(path))
        for _ in reader:
            last = reader.line_num
    return last + 1


def _unpacked(path: Path, packed: BinaryIO) -> BinaryIO:
    return cast("BinaryIO", gzip.GzipFile(fileobj=packed, mode="rb")) if path.suffix == ".gz" else packed


class _BoundedLines(io.RawIOBase):
    """The bytes of a file; raises BadData for a line, or a compressed file, that would fill the memory or the day.

    A line is in memory before its cells are parsed, so its length is bounded here.
    """

    def __init__(self, raw: BinaryIO, packed: BinaryIO, name: str) -> None:
        self._raw, self._packed, self._name = raw, packed, name
        self._read_bytes = self._line_bytes = 0
        self._lines = 1

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        """Return how far the file itself has been read, which of a compressed one is less than what came out."""
        return self._packed.tell()

    def readinto(self, buffer: Any, /) -> int:
        data = self._raw.read(len(buffer))
        buffer[: len(data)] = data
        self._read_bytes += len(data)
        lines = data.count(b"\n") or data.count(b"\r")
        self._line_bytes = (
            len(data) - 1 - max(data.rfind(b"\n"), data.rfind(b"\r")) if lines else self._line_bytes + len(data)
        )
        self._lines += lines
        if self._line_bytes > MAX_LINE_BYTES:
            raise BadData(f"has a line of more than {MAX_LINE_BYTES:,} bytes", file=self._name, line=self._lines)
        if self._read_bytes > _MIN_BOMB_BYTES and self._read_bytes > _MAX_RATIO * self._packed.tell():
            detail = f"unpacks to more than {_MAX_RATIO} times its length"
            raise BadData(detail, file=self._name, line=self._lines)
        return len(data)


def read_header(
    lines: Iterator[list[str]], name: str, columns: Collection[str], optional: Collection[str] = ()
) -> list[str]:
    """Return the columns of the header; raises BadData for one that is missing, unknown or repeated."""
    header = [column.strip() for column in next(lines, [])]
    names, times = [*columns, *optional], Counter(header)
    unknown = [column for column in header if column not in names]
    hint = did_you_mean(nearest(unknown[0], names), " ") if unknown else ""
    problems: tuple[tuple[list[str], str], ...] = (
        (unknown[:1] if hint else [], f"is unknown; {hint.strip()}"),
        (
            [column for column in columns if column not in header],
            "is missing from the header" + ("" if header else ": the file, or its first line, is empty"),
        ),
        (unknown, f"is unknown; the columns are {', '.join(names)}"),
        ([column for column in header if times[column] > 1], "is in the header twice"),
    )
    for wrong, detail in problems:
        if wrong:
            raise BadData(detail, file=name, line=1, column=wrong[0])
    return header


def whole_rows(reader: Any, name: str, columns: int) -> Iterator[tuple[int, list[str]]]:
    """Yield the number and the cells of each line that is not empty; raises BadData for one of another width."""
    for cells in reader:
        if cells:
            if len(cells) != columns:
                raise wrong_width(name, reader.line_num, len(cells), columns)
            yield reader.line_num, cells


def wrong_width(name: str, line: int, cells: int, columns: int) -> BadData:
    """Return the error for a row with more or fewer cells than the header."""
    return BadData(
        f"has {plural(cells, 'cell')} where the header names {plural(columns, 'column')}", file=name, line=line
    )


def separator_of(header: str) -> str:
    """Return what separates the cells of a file, by the line of its header."""
    return max(SEPARATORS, key=header.count)


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file's bytes, in hexadecimal."""
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


@dataclass(frozen=True, slots=True)
class CsvBlock:
    """Consecutive rows: line numbers, unstripped cells by column, and the share of the file read so far, 0 to 1."""

    file: str
    lines: Sequence[int]
    cells: Mapping[str, Sequence[str]]
    share: float

    def rows(self) -> Iterator[CsvRow]:
        """Yield the rows one by one, as `read_rows` does."""
        for line, *cells in zip(self.lines, *self.cells.values(), strict=True):
            yield CsvRow(self.file, line, dict(zip(self.cells, map(str.strip, cells), strict=True)))


def columns_of(path: Path) -> list[str]:
    """Return the columns that the header of a file names, whatever they are."""
    with open_csv(path) as file:
        return [column.strip() for column in next(open_reader(file, str(path)), [])]


def read_blocks(
    path: Path, columns: Collection[str], defaults: Mapping[str, str] = MappingProxyType({})
) -> Iterator[CsvBlock]:
    """Yield the rows of a file in blocks, with the errors of `read_rows`; for files of millions of rows.

    A column of `defaults` may be missing from the header: each of its cells is the default then.
    """
    with open_csv(path) as file:
        reader = open_reader(file, str(path))
        needed = [column for column in columns if column not in defaults]
        header = read_header(reader, str(path), needed, [*defaults])
        missing = {column: cell for column, cell in defaults.items() if column not in header}
        size = path.stat().st_size
        while numbered := [(reader.line_num, cells) for cells in islice(reader, BLOCK_LINES)]:
            filled = [row for row in numbered if row[1]]
            fitting = [*takewhile(lambda row: len(row[1]) == len(header), filled)]
            if fitting:
                lines, rows = zip(*fitting, strict=True)
                by_column = dict(zip(header, zip(*rows, strict=True), strict=True))
                by_column |= {column: (cell,) * len(rows) for column, cell in missing.items()}
                read_bytes = cast("io.BufferedReader", file.buffer).raw.tell()
                yield CsvBlock(str(path), lines, by_column, read_bytes / size)
            for line, cells in filled[len(fitting) :]:
                raise wrong_width(str(path), line, len(cells), len(header))


def open_reader(file: TextIO, name: str) -> Any:  # the class of readers has no public name
    """Return the reader of a file from which nothing has been read; raises BadData for JSON."""
    start = cast("io.BufferedReader", file.buffer).peek()
    text = start.decode("utf-8-sig", errors="replace").lstrip()
    if text[:1] in ("[", "{"):
        raise BadData(describe_json(_JSON_KEY.findall(text)) or "is JSON, where a CSV file is expected", file=name)
    return csv.reader(file, strict=True, delimiter=separator_of(start.partition(b"\n")[0].decode("latin-1")))
