"""What a source says, as values: the form in which every reader hands its findings on."""

from dataclasses import dataclass, fields
from datetime import date
from decimal import Decimal
from typing import Literal

from app.catalog.fields import FactValue, SubjectKind
from app.catalog.presets import Preset
from app.catalog.price_lists import NO_PRICES, Prices

SourceKind = Literal["vendor_page", "vendor_api", "vendor_announcement", "third_party"]

AUTHORITY: tuple[SourceKind, ...] = ("vendor_page", "vendor_api", "vendor_announcement", "third_party")
"""Whose word counts first when sources disagree."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceNote:
    """A document, feed or data set that was read; `sha256` is of the bytes that were read.

    What a pinned one says stays accepted, whatever others say later.
    """

    id: str
    title: str
    publisher: str
    kind: SourceKind
    url: str | None
    published_on: date | None
    sha256: str
    pinned: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """What one source says of one field of one subject.

    `subject` is spelled as in the source; `raw` is the cell verbatim; `note` says how a value was derived where it
    is not simply what the cell says (`8 x 32`).
    """

    kind: SubjectKind
    subject: str
    field: str
    value: FactValue
    raw: str
    file: str
    line: int
    source: str
    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Something that could not be read: where it stands, what it says, why it was not taken."""

    file: str
    line: int | None
    column: str | None
    cell: str | None
    detail: str

    def __str__(self) -> str:
        """One line for a person."""
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        column = f" column {self.column!r}:" if self.column else ""
        cell = f" (cell {self.cell!r})" if self.cell is not None else ""
        return f"{place}:{column} {self.detail}{cell}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionRow:
    """A region as a source names it; `code` is lower case without spaces."""

    code: str
    name: str
    geography: str | None
    source: str
    file: str
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AliasRow:
    """Another name of a size, and who uses it."""

    alias: str
    size: str
    source: str
    reason: str
    file: str
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectionRow:
    """A source's word that is known to be wrong: the value to take instead, in the field's unit, and why."""

    kind: SubjectKind
    subject: str
    field: str
    source: str
    value: str
    reason: str
    file: str
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkRow:
    """A published result; `scope` is gpu, vm or rack."""

    id: str
    series: str
    scope: str
    workload: str
    metric: str
    value: Decimal
    unit: str
    comparison: str | None
    source: str
    file: str
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRow:
    """A language model's configuration, and where it was read."""

    preset: Preset
    file: str
    line: int


FACT_FILES = ("documents", "gpus", "series")
"""Kinds of files whose statements are facts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRead:
    """A file that was read, and the sources that it may cite: what it said of them before and says no more goes."""

    kind: str
    file: str
    sources: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Everything that reading some files gave; what a kind of file does not speak of stays empty.

    Prices are read while they are written. `citable` are the sources that they may cite; those that they do are kept.
    """

    sources: tuple[SourceNote, ...] = ()
    citable: tuple[SourceNote, ...] = ()
    statements: tuple[Statement, ...] = ()
    regions: tuple[RegionRow, ...] = ()
    prices: Prices = NO_PRICES
    aliases: tuple[AliasRow, ...] = ()
    corrections: tuple[CorrectionRow, ...] = ()
    benchmarks: tuple[BenchmarkRow, ...] = ()
    models: tuple[ModelRow, ...] = ()
    reports: tuple[Report, ...] = ()
    files: tuple[FileRead, ...] = ()

    @property
    def fact_files(self) -> frozenset[tuple[str, str]]:
        """The sources and files whose facts are those of this reading and no others."""
        said = {(statement.source, statement.file) for statement in self.statements}
        read = {(source, each.file) for each in self.files if each.kind in FACT_FILES for source in each.sources}
        return frozenset(said | read)

    def __add__(self, other: "Reading") -> "Reading":
        """Put two readings together, the left one's findings first."""
        return Reading(**{f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self)})
