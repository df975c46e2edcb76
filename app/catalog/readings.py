"""What a source says, as values: the form in which every reader hands its findings on."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from datetime import date
from decimal import Decimal
from typing import Literal, Protocol

from app.catalog.fields import FactValue, SubjectKind
from app.catalog.presets import Preset


class Progress(Protocol):
    """Told what is being done, what share of it is done (0 to 1, None where nobody knows), and of how many rows."""

    def __call__(self, doing: str, share: float | None, rows: int = 0) -> None:
        """Tell it."""


def no_progress(doing: str, share: float | None, rows: int = 0) -> None:
    """Tell nobody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceRow:
    """What a size costs an hour, from a date on; where the source is undated the date is only its year's."""

    size: str
    region: str
    os: str
    purchase: str
    usd_per_hour: Decimal
    valid_from: date
    approximate_date: bool
    source: str
    file: str
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceBlock:
    """Some rows of one list in their order: the fields of a row, each a column; all are of one length."""

    size: Sequence[str]
    region: Sequence[str]
    os: Sequence[str]
    purchase: Sequence[str]
    usd_per_hour: Sequence[Decimal]
    valid_from: Sequence[date]
    approximate_date: Sequence[bool]
    source: Sequence[str]
    line: Sequence[int]
    share: float | None = None
    """What share of its list is read when the block is, 0 to 1."""

    @classmethod
    def of(cls, rows: Sequence[PriceRow], share: float | None = None) -> "PriceBlock":
        """Turn rows into columns."""
        columns = {name: [getattr(row, name) for row in rows] for name in PRICE_BLOCK_COLUMNS}
        return cls(**columns, share=share)

    def rows(self, file: str) -> Iterator[PriceRow]:
        """Turn columns into rows."""
        for values in zip(*(getattr(self, name) for name in PRICE_BLOCK_COLUMNS), strict=True):
            yield PriceRow(**dict(zip(PRICE_BLOCK_COLUMNS, values, strict=True)), file=file)


PRICE_BLOCK_COLUMNS = tuple(field.name for field in fields(PriceRow) if field.name != "file")


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceList:
    """The prices of one file: `blocks` reads them anew each time that it is called.

    `sources` are those that it may cite: what it said of them before and says no more goes. Without `new_sizes` a
    size that nobody knows is refused.
    """

    file: str
    blocks: Callable[[], Iterator[PriceBlock]]
    sources: frozenset[str] = frozenset()
    new_sizes: bool = True


@dataclass(frozen=True, slots=True)
class Prices:
    """Lists of prices, one after another; iterating reads their rows anew each time."""

    lists: tuple[PriceList, ...] = ()

    def __add__(self, other: "Prices") -> "Prices":
        """Put the lists of another behind these."""
        return Prices(self.lists + other.lists)

    def __iter__(self) -> Iterator[PriceRow]:
        """Read every row."""
        return (row for each in self.lists for block in each.blocks() for row in block.rows(each.file))


NO_PRICES = Prices()


SourceKind = Literal["vendor_page", "vendor_api", "vendor_announcement", "third_party"]

AUTHORITY: tuple[SourceKind, ...] = ("vendor_page", "vendor_api", "vendor_announcement", "third_party")
"""Whose word counts first when sources disagree."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRow:
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
class StatedFact:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRead:
    """A file that was read, and the sources that it may cite: what it said of them before and says no more goes."""

    kind: str
    file: str
    sources: frozenset[str]
    states_facts: bool = False
    """Whether its facts of these sources replace those that were stored when it was last read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Everything that reading some files gave; what a kind of file does not speak of stays empty.

    Prices are read while they are written. `citable` are the sources that they may cite; those that they do are kept.
    """

    sources: tuple[SourceRow, ...] = ()
    citable: tuple[SourceRow, ...] = ()
    facts: tuple[StatedFact, ...] = ()
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
        said = {(statement.source, statement.file) for statement in self.facts}
        read = {(source, each.file) for each in self.files if each.states_facts for source in each.sources}
        return frozenset(said | read)

    def __add__(self, other: "Reading") -> "Reading":
        """Put two readings together, the left one's findings first."""
        return Reading(**{f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self)})
