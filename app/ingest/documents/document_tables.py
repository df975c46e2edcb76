"""The documents of a page, one for each section about a series, and all tables of a document.

A page of several series is split where a section names a series and has a table of sizes: features, GPUs and retirement
in a section apply to its sizes only. Text above the first section is about all series at once, so it is not read as
facts of any of them; host specifications there are those of each of them. The tables of a document are sorted by kind,
and their rows joined by the size's name. Of host specifications (Part, Quantity, Specs) single figures hold for every
size, ranges for none.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from fractions import Fraction
from itertools import chain
from pathlib import PurePath
from typing import Any, TypeVar

from app.catalog.fields import SIZE_FIELDS, FactValue
from app.catalog.names import series_key, size_key
from app.catalog.readings import Report, StatedFact
from app.ingest.documents.cells import read_cell
from app.ingest.documents.columns import header_key, to_columns
from app.ingest.documents.features import find_table_flags
from app.ingest.documents.hardware import GpuText, MissingUnit, UnreadableCell, to_cpus, to_gpu_text
from app.ingest.documents.page import (
    MAX_COLUMNS,
    MAX_TEXT_CHARS,
    Blocks,
    Finding,
    FrontMatter,
    MarkdownTable,
    NetworkUnit,
    Passage,
    SourceDocument,
    SourcePage,
    TableRow,
)
from app.ingest.documents.series import (
    belongs_to_series,
    is_retirement_table,
    is_retiring,
    read_retirement_table,
    to_series_name,
)
from app.ingest.documents.size_tables import (
    SizeRow,
    find_alternate_spellings,
    find_name_column,
    find_names,
    is_benchmark_table,
    is_host_table,
    read_size_table,
)
from app.ingest.documents.values import (
    NUMBER,
    Dimension,
    find_units,
    is_blank,
    normalize_rates,
    rounded,
    to_amount,
    to_base_unit,
    to_fraction,
    to_integer,
)

_RANGE = re.compile(rf"{NUMBER}\s*(?:[-–—]|to)\s*\d|\bup\s?to\b|\bfrom\b", re.IGNORECASE)
OTHER_ACCELERATOR = re.compile(r"\b(?:FPGAs?|VPUs?|NPUs?|TPUs?|ASICs?|Xilinx|Alveo|U250)\b", re.IGNORECASE)
_NONE = re.compile(r"none|0|no (?:accelerators?|gpus?|disks?)", re.IGNORECASE)
_ABSENT_FIELDS: dict[str, tuple[str, FactValue]] = {
    "accelerators": ("gpu_count", Fraction(0)),
    "local": ("temp_disk_gib", Decimal(0)),
}
"""What a part that a host does not have states of all sizes; `N/A` and an empty cell state nothing."""
_PARTS: tuple[tuple[str, str], ...] = (
    (r"processors?|cpus?", "processor"),
    (r"memory|ram", "memory"),
    (r"local (?:storage|disks?)|temp(?:orary)? (?:storage|disks?)", "local"),
    (r"remote (?:storage|disks?)|data disks?|disks?|storage", "remote"),
    (r"network(?:ing)?", "network"),
    (r"accelerators?|gpus?", "accelerators"),
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFact:
    """A field value that holds for every size of the page."""

    page: SourcePage
    field: str
    value: FactValue
    raw: str
    line: int


@dataclass(slots=True, kw_only=True)
class HostSpecs:
    """All host specifications of a document; `nvme_gib` is the total size of its drives.

    `absent` states 0 GPUs or 0 GiB of local disks; `other_accelerators` states 0 GPUs because the accelerators are of
    another kind, so that no count of them is one of GPUs.
    """

    facts: list[HostFact] = field(default_factory=list)
    absent: list[HostFact] = field(default_factory=list)
    other_accelerators: HostFact | None = None
    gpu: GpuText = field(default_factory=GpuText)
    nvme_gib: Decimal | None = None
    nvme_line: int | None = None
    """The line that says that local disks are NVMe, and names no others."""


def is_specs_table(table: MarkdownTable) -> bool:
    """Return whether a table has the headers of host specifications."""
    keys = [cell.text.lower().strip() for cell in table.header]
    return len(keys) >= 3 and header_key(keys[0]) in ("part", "component") and keys[2].startswith("spec")  # noqa: PLR2004  # three columns


def read_specs(page: SourcePage, table: MarkdownTable, specs: HostSpecs) -> None:
    """Add the rows of a table to the specifications."""
    for row in table.rows:
        part = row.cells[0].text.strip().lower()
        name = next((name for pattern, name in _PARTS if re.fullmatch(pattern, part)), None)
        if name in _ABSENT_FIELDS and _NONE.fullmatch(row.cells[1].text.strip()):
            specs.absent.append(_host_fact(page, row, *_ABSENT_FIELDS[name], row.cells[1].raw))
        elif name == "accelerators":
            _read_accelerators(page, row, specs)
        elif name is not None:
            quantity, texts = (_single_values(cell.text) for cell in row.cells[1:3])
            specs.facts.extend(_host_fact(page, row, *fact) for fact in _READERS[name](quantity, texts))
        if name == "processor":
            text = row.cells[2].text.strip()
            specs.facts.extend(
                _host_fact(page, row, key, value, text.replace("\v", " ")) for key, value in to_cpus(text).items()
            )
        if name == "local":
            sizes = _drive_sizes(row.cells[2].text)
            specs.nvme_gib = next((gib for gib, text in sizes if "nvme" in text.lower()), None)
            words = " ".join(cell.text for cell in row.cells[1:]).lower()
            if "nvme" in words and not re.search(r"\btemp|scsi", words):
                specs.nvme_line = row.line


FieldsWithRaw = Iterable[tuple[str, FactValue, str]]
"""Field, value and the text that states it."""


def _single_values(text: str) -> list[str]:
    pieces = (piece.strip() for piece in normalize_rates(text).split("\v"))
    return [piece for piece in pieces if piece and not _RANGE.search(piece)]


def _local(quantity: list[str], texts: list[str]) -> FieldsWithRaw:
    for text in quantity:
        yield from _counts("nvme_disk_count" if "nvme" in text.lower() else "temp_disk_count", [text])
    for text in texts:
        is_nvme = re.search(r"nvme disks?", text, re.IGNORECASE) is not None
        # A size of NVMe disks without their number may be of one disk or of all.
        if not is_nvme or any("nvme" in piece.lower() for piece in quantity):
            yield from _amounts("nvme_disk_gib" if is_nvme else "temp_disk_gib", [text], "disk")


def _remote(quantity: list[str], texts: list[str]) -> FieldsWithRaw:
    yield from _counts("max_data_disks", quantity)
    for text in (piece for joint in texts for piece in joint.split("/")):
        yield from _amounts("uncached_disk_iops", [text], "iops")
        yield from _amounts("uncached_disk_mbps", [text], "throughput")


_READERS: dict[str, Callable[[list[str], list[str]], FieldsWithRaw]] = {
    "processor": lambda quantity, _: _counts("vcpus", quantity),
    "memory": lambda quantity, _: _amounts("memory_gib", quantity, "memory"),
    "local": _local,
    "remote": _remote,
    "network": lambda quantity, texts: chain(_counts("max_nics", quantity), _amounts("network_mbps", texts, "network")),
}


def _counts(name: str, texts: list[str]) -> FieldsWithRaw:
    for text in texts:
        amount = to_amount(text)
        count = to_integer(amount.number) if amount and amount.times is None and not amount.unit() else None
        if count is not None:
            yield name, count, text


def _amounts(name: str, texts: list[str], dimension: Dimension) -> FieldsWithRaw:
    for text in texts:
        amount = to_amount(text)
        unit = amount.unit() if amount else None
        kept = to_base_unit(amount.total, unit, dimension) if amount and unit else None
        if kept is not None:
            whole = to_integer(kept)
            yield name, rounded(kept) if SIZE_FIELDS[name].kind == "number" or whole is None else whole, text


def _drive_sizes(text: str) -> Iterator[tuple[Decimal, str]]:
    for piece in _single_values(text):
        for _, value, raw in _amounts("nvme_disk_gib", [piece], "disk"):
            if isinstance(value, Decimal):
                yield value, raw


def _read_accelerators(page: SourcePage, row: TableRow, specs: HostSpecs) -> None:
    quantity, text = normalize_rates(row.cells[1].text), row.cells[2].text.split("\v")[0].strip()
    if OTHER_ACCELERATOR.search(f"{quantity} {text}"):
        cell = next(cell for cell in row.cells[1:] if OTHER_ACCELERATOR.search(cell.text))
        specs.other_accelerators = _host_fact(page, row, "gpu_count", Fraction(0), cell.raw)
        return
    single = _single_values(quantity)
    count = to_fraction(re.sub(r"[^\d./⁄½⅓¼⅙⅛]+", " ", single[0]).strip()) if single else None
    gpu = (to_gpu_text(text, counted=False) if text else None) or GpuText()
    specs.gpu = GpuText(count=count, vendor=gpu.vendor, model=gpu.model, memory_gib=gpu.memory_gib)
    values: dict[str, FactValue | None] = {"gpu_vendor": gpu.vendor, "gpu_model": gpu.model}
    for name, value in values.items():
        if value is not None:
            specs.facts.append(_host_fact(page, row, name, value, row.cells[2].raw))
    if gpu.memory_gib is not None:
        specs.facts.append(_host_fact(page, row, "gpu_memory_gib_per_gpu", gpu.memory_gib, row.cells[2].raw))
    if isinstance(count, Fraction):
        specs.facts.append(_host_fact(page, row, "gpu_count", count, row.cells[1].raw))


def _host_fact(page: SourcePage, row: TableRow, name: str, value: FactValue, raw: str) -> HostFact:
    return HostFact(page=page, field=name, value=value, raw=raw, line=row.line)


Item = TypeVar("Item")


@dataclass(frozen=True, slots=True, kw_only=True)
class _PageSection:
    """The lines of a page from `start` to before `end`; `series` is that of its heading, if sizes of it follow."""

    page: SourcePage
    heading: Passage | None
    start: int
    end: int
    series: str | None = None

    def cut(self, items: Sequence[Item]) -> tuple[Item, ...]:
        """Return what is in the section, of blocks or lines in the order of the page."""
        first = bisect_left(items, self.start, key=_line_of)
        return (*items[first : bisect_left(items, self.end, lo=first, key=_line_of)],)


def _line_of(item: Any) -> int:
    line: int = item if isinstance(item, int) else item.line
    return line


def split_by_series(document: SourceDocument) -> list[SourceDocument]:
    """Return a document for each section of a page of several series, else the document itself."""
    if document.page.front.first("series"):
        return [document]
    sections = [section for page in document.pages for section in _sections(page)]
    if len({series_key(section.series) for section in sections if section.series}) <= 1:
        return [document]
    several = {section.page.file for section in sections if section.series}
    own = [section for section in sections if section.page.file in several and section.heading]
    parts = [SourceDocument(page=_to_page(section), included=_included(section, document)) for section in own]
    used = {page.file for part in parts for page in part.included} | several
    rest = tuple(page for page in document.included if page.file not in used)
    if document.page.file in several:
        first = _cut(next(section for section in sections if section.page is document.page))
        return [SourceDocument(page=first, included=rest), *(_with_opening(part, first) for part in parts)]
    return [SourceDocument(page=document.page, included=rest), *parts]


def _sections(page: SourcePage) -> Iterator[_PageSection]:
    headings = [passage for passage in page.blocks.passages if passage.kind == "heading"]
    blocks = page.blocks
    lines = [item.line for items in (blocks.tables, blocks.passages, blocks.includes) for item in items]
    last = max([*lines, *blocks.html_tables, *blocks.wide_tables], default=0) + 1
    opening = _PageSection(page=page, heading=None, start=0, end=last)
    depth = 0
    for at, heading in enumerate(headings):
        later = (headings[index] for index in range(at + 1, len(headings)))
        until = next((section.line for section in later if section.level <= heading.level), last)
        series = _section_series(page, heading, until)
        named = series is not None or _names_series(heading.text)
        # A second heading with the same name, such as `NDv2-series (NVMe)`, continues the section.
        if (
            depth
            and named
            and _heading_series(heading.text) == _heading_series(opening.heading.text if opening.heading else "")
        ):
            opening = replace(opening, series=opening.series or series)
            continue
        if named or (depth and heading.level <= depth):
            yield replace(opening, end=heading.line)
            opening = _PageSection(page=page, heading=heading, start=heading.line, end=last, series=series)
            depth = heading.level
    yield opening


def _section_series(page: SourcePage, heading: Passage, until: int) -> str | None:
    """Return the series of a heading if a table of its sizes follows before line `until`."""
    name = _heading_series(heading.text)
    if name is None:
        return None
    section = _PageSection(page=page, heading=heading, start=heading.line, end=until)
    sizes = [
        size for table in section.cut(page.blocks.tables)
        for column in [find_name_column(table, to_columns(table.header))] if column
        for size in find_names(table, column)
    ]  # fmt: skip
    fitting = [size for size in sizes if belongs_to_series(name, size)]
    return name if sizes and (_names_series(heading.text) or len(fitting) == len(sizes)) else None


def _heading_series(text: str) -> str | None:
    """Return the series of a heading, ignoring parentheses after it such as `(NVMe)`."""
    return to_series_name(text) or to_series_name(
        re.sub(r"(?<=series)\s*\([^()]*\)\s*$", "", text, flags=re.IGNORECASE)
    )


def _names_series(text: str) -> bool:
    return "series" in text.lower() and _heading_series(text) is not None


def _to_page(section: _PageSection) -> SourcePage:
    heading = section.heading.text if section.heading else None
    return replace(_cut(section), front=FrontMatter(), heading=heading)


def _with_opening(part: SourceDocument, opening: SourcePage) -> SourceDocument:
    """Add what is above the first section to a section: host specifications, and retirements that name their series."""
    specs = tuple(table for table in opening.blocks.tables if is_specs_table(table))
    retirements = tuple(
        passage for passage in opening.blocks.passages if passage.kind != "heading" and is_retiring(passage.text)
    )
    if not (specs or retirements) or part.page.file != opening.file:
        return part
    own = part.page.blocks
    blocks = replace(own, tables=(*specs, *own.tables), passages=(*own.passages, *retirements))
    return replace(part, page=replace(part.page, blocks=blocks))


def _cut(section: _PageSection) -> SourcePage:
    blocks = section.page.blocks
    kept = {kind.name: section.cut(getattr(blocks, kind.name)) for kind in fields(blocks)}
    return replace(section.page, blocks=Blocks(**kept))


def _included(section: _PageSection, document: SourceDocument) -> tuple[SourcePage, ...]:
    names = {PurePath(item.target).name for item in section.cut(section.page.blocks.includes)}
    return tuple(page for page in document.included if PurePath(page.file).name in names and page != section.page)


_WHOLE_ROW_FIELDS = {
    *("gpu", "gpu_model", "gpu_memory", "temp_disk_gib", "nvme", "nvme_size", "local_ssd", "local_ssd_size"),
    *("parent_size", "scale_nics", "scale_bandwidth"),
}
"""Columns whose cells need the rest of the row; `gpu_rows` and `cells` read them."""

_STATES_UNIT = re.compile(
    r"\bnetwork bandwidths?\b[^.;]*?\b(?:in|units? of)\s+(?:units? of\s+)?([KMGT]b(?:ps|/s))\b", re.IGNORECASE
)


@dataclass(slots=True, kw_only=True)
class DocumentTables:
    """The rows of sizes, host specifications and other findings of all tables of a document."""

    rows: list[SizeRow] = field(default_factory=list)
    specs: HostSpecs = field(default_factory=HostSpecs)
    findings: list[Finding] = field(default_factory=list)

    @property
    def subjects(self) -> list[str]:
        """Return the names of the sizes in the order of the page, each in its first spelling."""
        names: dict[str, str] = {}
        for row in self.rows:
            names.setdefault(size_key(row.name), row.name)
        return list(names.values())


def read_tables(document: SourceDocument) -> DocumentTables:
    """Read all tables by their kind, and give each size one spelling."""
    tables = DocumentTables()
    for page in document.pages:
        _read_page(page, tables)
    _choose_controllers(tables)
    others = find_alternate_spellings(document)
    spellings = _all_names(document) | {size_key(name): name for name in reversed(tables.subjects)}
    spellings |= {
        right: spellings[wrong].removesuffix(wrong.removeprefix(right))
        for wrong, right in others.items()
        if wrong in spellings and right not in spellings
    }
    keys = {size_key(row.name) for row in tables.rows}
    reported: set[str] = set()
    for at, row in enumerate(tables.rows):
        key = size_key(row.name)
        spelling = spellings.get(others.get(key, key), row.name)
        if key in others and key not in reported:
            reported.add(key)
            reason = (
                "its spelling in other tables of the page" if size_key(spelling) in keys else "like its other sizes"
            )
            detail = f"is read as {spelling}, {reason}"
            tables.findings.append(row.page.report(detail, row.line, None, row.name))
        tables.rows[at] = replace(row, name=spelling)
    return tables


def _read_page(page: SourcePage, tables: DocumentTables) -> None:
    for line in page.blocks.html_tables:
        tables.findings.append(page.report("has a table in HTML, which is not read", line))
    for line in page.blocks.wide_tables:
        detail = f"has a table of more than {MAX_COLUMNS} columns, which is not read"
        tables.findings.append(page.report(detail, line))
    for line in page.blocks.long_texts:
        detail = f"has a text of more than {MAX_TEXT_CHARS:,} characters, which is not read"
        tables.findings.append(page.report(detail, line))
    for table in page.blocks.tables:
        if is_specs_table(table):
            read_specs(page, table, tables.specs)
        elif is_benchmark_table(table) or is_host_table(table):
            detail = "holds results of a benchmark, which are not specifications"
            if is_host_table(table):
                detail = "is about dedicated hosts, whose figures are not those of their sizes; it is not read"
            tables.findings.append(page.report_table(detail, table))
        elif is_retirement_table(table):
            tables.findings.extend(read_retirement_table(page, table))
        elif not table.in_list and not any(find_table_flags(table)):
            for item in read_size_table(page, table):
                if isinstance(item, SizeRow):
                    tables.rows.append(item)
                else:
                    tables.findings.append(item)


def _choose_controllers(tables: DocumentTables) -> None:
    """Take the figures with NVMe of sizes that have a table for each controller of disks, and state that both work."""
    keys = {name: {size_key(row.name) for row in tables.rows if row.controller == name} for name in ("nvme", "scsi")}
    with_both = keys["nvme"] & keys["scsi"]
    with_nvme = {
        (size_key(row.name), cell.column.field): cell.text
        for row in tables.rows
        if row.controller == "nvme"
        for cell in row.cells
    }
    reported: set[int] = set()
    for at, row in enumerate(tables.rows):
        key = size_key(row.name)
        if row.controller is None or key not in with_both:
            continue
        raw = f"({row.controller.upper()})"
        tables.findings.append(row.page.size_fact(row.name, f"{row.controller}_interface", True, raw, row.line))
        if row.controller == "scsi":
            alike = [cell for cell in row.cells if with_nvme.get((key, cell.column.field), cell.text) == cell.text]
            tables.rows[at] = replace(row, cells=tuple(alike))
            if len(alike) < len(row.cells) and row.table not in reported:
                reported.add(row.table)
                detail = "is of disks with SCSI; where the figures of the same sizes with NVMe differ, these are read"
                tables.findings.append(row.page.report(detail, row.table))


def _all_names(document: SourceDocument) -> dict[str, str]:
    """Return the names in all tables by their keys, including tables of which nothing else is read."""
    names: dict[str, str] = {}
    for page in document.pages:
        for table in page.blocks.tables:
            if column := find_name_column(table, to_columns(table.header)):
                for name in find_names(table, column):
                    names.setdefault(size_key(name), name)
    return names


def find_network_unit(document: SourceDocument) -> NetworkUnit | None:
    """Return the unit that a page states of network bandwidths in a sentence, else in headers or host specifications.

    It is that of the columns without a unit; a page whose headers name different units has none.
    """
    for sentence in document.sentences():
        if (match := _STATES_UNIT.search(sentence.text)) and (units := find_units(match[1])):
            return NetworkUnit(unit=units[0], line=sentence.line)
    headers = {
        part.unit: table.line
        for page in document.pages for table in page.blocks.tables for column in to_columns(table.header)
        for part in column.fields if part.field == "network_mbps" and part.unit
    } or {
        unit: row.line
        for page in document.pages for table in page.blocks.tables if is_specs_table(table) for row in table.rows
        if row.cells[0].text.strip().lower() == "network" for unit in find_units(row.cells[2].text)
    }  # fmt: skip
    return NetworkUnit(unit=next(iter(headers)), line=next(iter(headers.values()))) if len(headers) == 1 else None


def read_cells(rows: Sequence[SizeRow], network_unit: NetworkUnit | None = None) -> Iterator[Finding]:
    """Yield the facts of the cells that can be read by themselves, and one report for each column without a unit."""
    without_unit: set[tuple[str, int, str]] = set()
    for row in rows:
        for cell in row.cells:
            column, note = cell.column, None
            if column.field in _WHOLE_ROW_FIELDS or is_blank(cell.text):
                continue
            if network_unit and column.field == "network_mbps" and not (column.unit or find_units(cell.text)):
                column, note = replace(column, unit=network_unit.unit), network_unit.note
            try:
                values = read_cell(column, cell.text)
            except MissingUnit as problem:
                place = (row.page.file, row.table, cell.header)
                if place not in without_unit:
                    without_unit.add(place)
                    yield row.report(cell, f"{problem}; no cell of the column is read")
                continue
            except UnreadableCell as problem:
                yield row.report(cell, str(problem))
                continue
            for value in values:
                yield row.fact(cell, value.field, value.value, value.note or note)


_SINGLE_PORT_GBPS = frozenset({Decimal(200), Decimal(400), Decimal(800)})
"""Gbps of one port since HDR: from then on sizes with several GPUs have a port for each, older ones one port in all.

So such a rate, stated of a size with several GPUs, may be that of one port.
"""


def add_infiniband_totals(findings: Sequence[Finding]) -> Iterator[Finding]:
    """Yield the findings with InfiniBand per GPU multiplied by the GPUs; report rates that may be of one port."""
    counts: dict[str, Fraction] = {}
    for finding in findings:
        if isinstance(finding, StatedFact) and finding.field == "gpu_count" and isinstance(finding.value, Fraction):
            counts.setdefault(size_key(finding.subject), finding.value)
    for finding in findings:
        count = counts.get(size_key(finding.subject)) if isinstance(finding, StatedFact) else None
        yield from _with_total(finding, count) if isinstance(finding, StatedFact) and count else [finding]


def _with_total(finding: StatedFact, count: Fraction) -> Iterator[Finding]:
    if finding.field == "infiniband_gbps" and count > 1 and not finding.note and finding.value in _SINGLE_PORT_GBPS:
        detail = f"may be the rate of one of several links of {finding.subject} or of all of them"
        yield Report(file=finding.file, line=finding.line, column=finding.field, cell=finding.raw, detail=detail)
        return
    yield finding
    if finding.field == "infiniband_gbps_per_gpu" and count.denominator == 1 and isinstance(finding.value, Decimal):
        note = f"{count} x {finding.value} Gbps, one link a GPU"
        yield replace(finding, field="infiniband_gbps", value=finding.value * int(count), note=note)
