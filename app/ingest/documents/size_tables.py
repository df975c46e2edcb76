"""Tables of sizes to rows: finds the column of names, assigns cells to fields, joins different spellings of a name."""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from app.catalog.fields import FactValue
from app.catalog.names import size_key
from app.catalog.readings import Report, StatedFact
from app.ingest.documents.columns import ColumnField, TableColumn, to_column_fields, to_columns
from app.ingest.documents.page import Finding, MarkdownTable, SourceDocument, SourcePage, TableCell, TableRow
from app.ingest.documents.series import belongs_to_series, find_series, to_series_name
from app.ingest.documents.values import is_blank

_NAME = re.compile(r"^(?:Standard_|Basic_)?[A-Za-z]+[\w.\-+]*\d[\w.\-+]*$")
_SPACED_NAME = re.compile(r"^[A-Z]{1,4}\d+\w*(?: (?:v\d+|[A-Z]\w*\d\w*))+$")
_PREVIEW_SUFFIX = re.compile(r"\((?:in )?(?:public )?preview\)\W*$", re.IGNORECASE)
_ANNOTATION = re.compile(r"(?:\s*\([^()]*\)|[^\w\s().+-]|\s)+$")
"""What follows a name without being part of it: `(default)`, an asterisk."""
_SERIES = re.compile(
    r"^(?:[A-Za-z]+[vV]\d+|[A-Z]{1,3}[a-z]{1,4}_?[A-Z]+\d\w*|(?:Standard_)?(?!Standard_|Basic_)[A-Z]{1,3}[a-z]*_\w+)$"
)
"""Series such as NCv3, NCasT4_v3, NC_A100_v4: unlike those of a size, their letters are not followed by the vCPUs."""
_MAX_NAME_LENGTH = 60
_NAME_HEADER = re.compile(r"\b(?:sizes?|names?|skus?|instances?|vms?)\b", re.IGNORECASE)
_VENDOR_NAME = re.compile(r"\bStandard_[A-Z]+\d")
_BENCHMARK_HEADER = re.compile(r"\bscores?\b|\bbase rate\b|\bstd ?dev\b", re.IGNORECASE)
_NETWORK_CLASS = re.compile(r"(?<=\d)\s+(?=(?:extremely |very )?(?:low|moderate|high)$)", re.IGNORECASE)
_REMOTE_ONLY = re.compile(r"remote storage only", re.IGNORECASE)
"""What a column of temporary disks says of sizes that have none."""
_CONTROLLER = re.compile(r"\((NVMe|SCSI)\)\W*$", re.IGNORECASE)
_SEVERAL_NAMES = re.compile(r"\s(?:-|–|to|and|,|/)\s|,\s|\v")


PREVIEW_MARK = "preview"
"""Footnote mark of a size whose name is followed by `(preview)`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldCell:
    """The text of a row for one field of a column."""

    column: ColumnField
    text: str
    raw: str
    header: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeRow:
    """A row of a size; `table` is the line of its table, `footnote_marks` are those of the name.

    `controller` is that of remote disks, in lower case, which the heading of a table is about: `Sizes (NVMe)`.
    """

    page: SourcePage
    table: int
    line: int
    name: str
    footnote_marks: tuple[str, ...]
    cells: tuple[FieldCell, ...]
    controller: str | None = None

    def find(self, *fields: str) -> FieldCell | None:
        """Return the cell of the first of `fields` that the row has and that is not blank."""
        cells = (cell for field in fields for cell in self.cells if cell.column.field == field)
        return next((cell for cell in cells if not is_blank(cell.text)), None)

    def fact(self, cell: FieldCell, field: str, value: FactValue, note: str | None = None) -> StatedFact:
        """Build a fact of this row's size that `cell` states."""
        return self.page.size_fact(self.name, field, value, cell.raw, self.line, note)

    def report(self, cell: FieldCell, detail: str) -> Report:
        """Build a report of a cell of this row that is not read."""
        return self.page.report(detail, self.line, cell.header, cell.raw)


def is_size_name(text: str) -> bool:
    """Return whether a text can be the name of one size."""
    if len(text) > _MAX_NAME_LENGTH or _SERIES.match(text):
        return False
    return bool(_NAME.match(text) or _SPACED_NAME.match(text))


def find_name_column(table: MarkdownTable, columns: tuple[TableColumn, ...]) -> TableColumn | None:
    """Return the column of the sizes' names: its header says so and at least half of its cells look like names."""
    for column in columns:
        cells = [row.cells[column.index].text for row in table.rows]
        filled = [cell for cell in cells if not is_blank(cell)]
        names = sum(is_size_name(_ANNOTATION.sub("", cell)) for cell in filled)
        if column.is_for("name") and names and 2 * names >= len(filled):
            return column
    return None


def find_names(table: MarkdownTable, column: TableColumn) -> list[str]:
    """Return the names of sizes in a column."""
    names = (_ANNOTATION.sub("", row.cells[column.index].text) for row in table.rows)
    return [name for name in names if is_size_name(name)]


def is_benchmark_table(table: MarkdownTable) -> bool:
    """Return whether a table holds measurements: its memory is what a guest saw, and a size has a row for each CPU."""
    return any(_BENCHMARK_HEADER.search(cell.text) for cell in table.header)


_HOST_HEADER = re.compile(r"^(?:#|no\.?|number of|max(?:imum|\.)?(?: number of)?) ?(?:of )?VMs\b", re.IGNORECASE)


def is_host_table(table: MarkdownTable) -> bool:
    """Return whether a table says how many VMs a dedicated host has: its cores and memory are those of the host."""
    return any(_HOST_HEADER.search(cell.text.strip()) for cell in table.header)


def read_size_table(page: SourcePage, table: MarkdownTable) -> Iterator[SizeRow | Finding]:
    """Yield the rows of a table of sizes, and reports of what is not read; nothing for another kind of table."""
    columns = to_columns(table.header)
    names = find_name_column(table, columns)
    if names is None:
        yield from _report_unread_table(page, table, columns)
        return
    if not any(column.fields for column in columns if column is not names):
        yield page.report_table("names sizes, but has no other known column", table)
        return
    yield from _report_unread_columns(page, table, columns)
    for row in table.rows:
        yield from _read_row(page, table, row, columns, names)


def _read_row(
    page: SourcePage, table: MarkdownTable, row: TableRow, columns: tuple[TableColumn, ...], names: TableColumn
) -> Iterator[SizeRow | Finding]:
    cell = row.cells[names.index]
    name = _ANNOTATION.sub("", cell.text)
    marks = (*cell.footnote_marks, PREVIEW_MARK) if _PREVIEW_SUFFIX.search(cell.text) else cell.footnote_marks
    # A row with nothing but a name is a group heading inside the table.
    if all(is_blank(other.text) for other in row.cells if other is not cell):
        return
    if row.extra_cells:
        detail = "has more cells than the table has columns, the row is skipped"
        yield page.report(detail, row.line, None, " | ".join(row.extra_cells))
    elif not is_size_name(name):
        detail = "names more than one size" if _SEVERAL_NAMES.search(cell.text) else "is not the name of a size"
        yield page.report(f"{detail}, the row is skipped", row.line, names.header, cell.raw)
    else:
        reports, cells = [], []
        for column in columns:
            if column is not names:
                field_cells = to_field_cells(column, row.cells[column.index], page.remote_only)
                cells.extend(field_cells)
                if not field_cells and column.fields and not is_blank(row.cells[column.index].text):
                    detail = f"does not have the {len(column.fields)} values that the header names"
                    reports.append(page.report(detail, row.line, column.header, row.cells[column.index].raw))
        yield from reports
        controller = _CONTROLLER.search(table.heading)
        yield SizeRow(
            page=page,
            table=table.line,
            line=row.line,
            name=name,
            footnote_marks=marks,
            cells=tuple(cells),
            controller=controller[1].lower() if controller else None,
        )


def to_field_cells(column: TableColumn, cell: TableCell, remote_only: Collection[str] = ()) -> list[FieldCell]:
    """Split a cell like the header of its column; return an empty list if it has another number of parts.

    `remote_only` are what the page writes for sizes without temporary disks.
    """
    if column.is_for("temp_disk_gib") and (_REMOTE_ONLY.fullmatch(cell.text) or cell.text in remote_only):
        return [FieldCell(column=column.fields[0], text="0 GiB", raw=cell.raw, header=column.header)]
    if not column.fields or is_blank(cell.text):
        return []
    texts = [cell.text]
    if len(column.fields) > 1:
        # `2 high` is a count and a class of network.
        text = _NETWORK_CLASS.sub(" / ", cell.text)
        texts = re.split(r"\s+/\s+" if re.search(r"\s/\s", text) else r"\s*[/\v]\s*|\s*,\s+", text)
    if len(texts) != len(column.fields):
        return []
    return [
        FieldCell(column=part, text=text, raw=cell.raw, header=column.header)
        for part, text in zip(column.fields, texts, strict=True)
    ]


def _report_unread_columns(
    page: SourcePage, table: MarkdownTable, columns: tuple[TableColumn, ...]
) -> Iterator[Report]:
    for column in columns:
        filled = [row.cells[column.index] for row in table.rows if not is_blank(row.cells[column.index].text)]
        if not column.fields and filled:
            yield page.report(
                f"{column.unread_reason}, none of its cells is read", table.line, column.header, filled[0].raw
            )
    if prices := [column for column in columns if column.is_for("price")]:
        header = ", ".join(column.header for column in prices)
        cell = next((row.cells[prices[0].index].raw for row in table.rows if row.cells[prices[0].index].text), None)
        yield page.report("states prices, which are not facts of a size", table.line, header, cell)


def _report_unread_table(page: SourcePage, table: MarkdownTable, columns: tuple[TableColumn, ...]) -> Iterator[Report]:
    first = [row.cells[0].text for row in table.rows]
    if any(_lists_series(table, column) for column in columns):
        return
    sizes = [cell.text for cell in table.header[1:] if is_size_name(cell.text) and not to_column_fields(cell.text)]
    if sizes and any(to_column_fields(text) for text in first):
        yield page.report_table("has sizes as columns; such a table is not read", table)
        return
    specs = sum(bool(column.fields) and not (column.is_for("name") or column.is_for("price")) for column in columns)
    named = sum(any(_VENDOR_NAME.search(cell.text) for cell in row.cells) for row in table.rows)
    may_name = any(_NAME_HEADER.search(column.header) for column in columns)
    if (named and (named > 1 or specs) and not table.in_list) or (specs > 1 and may_name):
        yield page.report_table("seems to be about sizes, but has no column with their names", table)


def _lists_series(table: MarkdownTable, column: TableColumn) -> bool:
    if not (column.is_for("name") or re.search(r"\bseries\b|\bfamily\b", column.header, re.IGNORECASE)):
        return False
    cells = [row.cells[column.index].text for row in table.rows if not is_blank(row.cells[column.index].text)]
    series = [cell for cell in cells if not is_size_name(cell) and (_SERIES.match(cell) or to_series_name(cell))]
    return bool(cells) and 2 * len(series) >= len(cells)


_NUMBER = re.compile(r"\d+")
_DASHES = re.compile(r"[-_ ]")
_ENDS_WITH_DIGIT = re.compile(r"(?P<name>.*[a-z])[1-9]$")
_LONG_VERSION = re.compile(r"(?P<name>.*(?P<version>_v\d))[1-9]$")


def find_alternate_spellings(document: SourceDocument) -> Mapping[str, str]:
    """Map the key of each alternate spelling of a size to the key of its main spelling.

    Two names are one size if no table has both and they differ in dashes only; or if one has an extra digit at its end,
    two tables have the same names except for these two, and the page marks footnotes by digits or all its other sizes
    have the version that is left without the digit; or if one is a misprint.
    """
    tables = [names for page in document.pages for table in page.blocks.tables if (names := _size_keys(table))]
    ranks = _spelling_ranks(list(dict.fromkeys(name for names in tables for name in names)))
    marked = any(mark.isdecimal() or mark in "²³¹" for mark in _footnote_marks(document))
    by_letters: dict[str, list[str]] = defaultdict(list)
    for name in ranks:
        by_letters[_DASHES.sub("", name)].append(name)
    tables_of: dict[str, set[int]] = defaultdict(set)
    for number, names in enumerate(tables):
        for name in names:
            tables_of[name].add(number)
    spellings = _find_misprints(document, tables)
    for name in ranks:
        apart = [other for other in by_letters[_DASHES.sub("", name)] if tables_of[name].isdisjoint(tables_of[other])]
        better = [other for other in apart if ranks[other] < ranks[name]]
        unmarked = _without_footnote(name, ranks, marked=marked)
        if better:
            spellings[name] = better[-1]
        elif unmarked in ranks and _is_same_table(name, unmarked, tables):
            spellings[name] = unmarked
    return spellings


def _find_misprints(document: SourceDocument, tables: Sequence[Sequence[str]]) -> dict[str, str]:
    """Return the names of no size of the page's series, each with the name that it stands for.

    That is the name at its place in another table of the same sizes; or, where all tables have it, the name without the
    digit after the version of the series, which is the mark of a footnote.
    """
    series = find_series(document.page)
    if series is None:
        return {}
    fitting = {name for names in tables for name in names if belongs_to_series(series.name, name)}
    spellings: dict[str, str] = {}
    for names in tables:
        others = [name for name in names if name not in fitting]
        # Where fewer than two thirds of the names fit, the title may not be that of these sizes.
        if not others or 3 * len(others) > len(names):
            continue
        for table in tables:
            if len(table) == len(names) and fitting.issuperset(table):
                pairs = [(name, right) for name, right in zip(names, table, strict=True) if name != right]
                if len(pairs) == len(others) and all(name not in fitting for name, _ in pairs):
                    spellings.update(pairs)
        for name in others:
            unmarked = _LONG_VERSION.match(name)
            if unmarked and belongs_to_series(series.name, unmarked["name"]):
                spellings.setdefault(name, unmarked["name"])
    return spellings


def _without_footnote(name: str, seen: Collection[str], *, marked: bool) -> str:
    """Return a name without the digit at its end that may be a footnote's mark; empty where it is none."""
    match = _LONG_VERSION.match(name)
    if match is None:
        match = _ENDS_WITH_DIGIT.match(name) if marked else None
    elif not marked and not all(other == name or other.endswith(match["version"]) for other in seen):
        return ""
    return match["name"] if match else ""


def _spelling_ranks(seen: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Return the sort key of each name: the spelling that most of the page's sizes follow first, then the earliest."""
    shapes = [_NUMBER.sub("#", name) for name in seen]
    counts = Counter(shapes)
    return {name: (-counts[shape], at) for at, (name, shape) in enumerate(zip(seen, shapes, strict=True))}


def _is_same_table(name: str, other: str, tables: Sequence[Sequence[str]]) -> bool:
    """Return whether a table with `name` has the same names as one with `other`, except for these two."""
    replaced = [[other if spelling == name else spelling for spelling in names] for names in tables if name in names]
    return any(list(names) in replaced for names in tables if other in names and len(names) > 1)


def _size_keys(table: MarkdownTable) -> list[str]:
    column = find_name_column(table, to_columns(table.header)) if not table.in_list else None
    return [size_key(name) for name in find_names(table, column)] if column else []


def _footnote_marks(document: SourceDocument) -> Iterator[str]:
    for page in document.pages:
        for passage in page.blocks.passages:
            yield from passage.footnote_marks
        for table in page.blocks.tables:
            for cell in (*table.header, *(cell for row in table.rows for cell in row.cells)):
                yield from cell.footnote_marks
