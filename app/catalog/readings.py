"""What reading source files returns: typed rows for the store, whatever the format of the source."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Literal, Protocol

from app.catalog.fields import FactValue, SubjectKind
from app.catalog.money import to_nano_usd
from app.catalog.names import Continent
from app.catalog.presets import Preset
from app.catalog.providers import DEFAULT_PROVIDER
from app.catalog.purchases import AdjustmentRule
from app.errors import BadData


class Progress(Protocol):
    """Callback for progress: what is being done, the share that is done (0 to 1, None if unknown), and its rows."""

    def __call__(self, doing: str, share: float | None, rows: int = 0) -> None:
        """Report progress."""


def no_progress(doing: str, share: float | None, rows: int = 0) -> None:
    """Ignore progress."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CitedRow:
    """A row of a file, and the source that it cites."""

    source: str
    file: str
    line: int

    def error(self, column: str, detail: str) -> BadData:
        """Return the error for a column of the row."""
        return BadData(detail, file=self.file, line=self.line, column=column)


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceRow(CitedRow):
    """The price of a size an hour, as a source has it on a day; of an undated source, the first day of its year."""

    size: str
    region: str
    os: str
    purchase: str
    usd_per_hour: Decimal
    valid_from: date
    approximate_date: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceBlock:
    """Consecutive rows of a price list as columns, all of one length: lists have millions of rows.

    Each row is one observation: the price that a source has on the day `valid_from`.
    """

    size: Sequence[str]
    region: Sequence[str]
    os: Sequence[str]
    purchase: Sequence[str]
    nano_usd_per_hour: Sequence[int]
    """A billionth of a US dollar an hour."""
    valid_from: Sequence[date]
    approximate_date: Sequence[bool]
    source: Sequence[str]
    line: Sequence[int]
    share: float | None = None
    """The share of the list that is read with this block, 0 to 1."""

    @classmethod
    def of(cls, rows: Sequence[PriceRow], share: float | None = None) -> "PriceBlock":
        """Return rows as columns."""
        columns = {name: [getattr(row, name) for row in rows] for name in _SHARED_COLUMNS}
        return cls(**columns, nano_usd_per_hour=[to_nano_usd(row.usd_per_hour) for row in rows], share=share)


_SHARED_COLUMNS = tuple(field.name for field in fields(PriceRow) if field.name not in ("file", "usd_per_hour"))
"""What a row and a block have by the same name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceList:
    """The prices of one file; each call of `blocks` reads them again.

    `sources` are those that it may cite: their earlier prices from this file that it no longer has are deleted.
    Without `new_sizes` a size that the catalog lacks is an error.

    `complete` says that for each source, OS, purchase model and day that it has, it has every price of the source in
    the `regions`; None means all regions that the source has prices for. What such a list lacks was not offered.
    """

    file: str
    blocks: Callable[[], Iterator[PriceBlock]]
    sources: frozenset[str] = frozenset()
    new_sizes: bool = True
    complete: bool = False
    regions: frozenset[str] | None = None


SourceKind = Literal["vendor_page", "vendor_api", "vendor_announcement", "third_party"]

AUTHORITY: tuple[SourceKind, ...] = ("vendor_page", "vendor_api", "vendor_announcement", "third_party")
"""Kinds of sources, the one whose facts are accepted first when sources disagree first."""


def url_problem(url: str | None) -> str | None:
    """Return what is wrong with the URL of a source, which pages make a link of; None where nothing is."""
    return None if url is None or url.startswith("https://") else "must start with https://"


def day_problem(day: date | None) -> str | None:
    """Return what is wrong with a day on which something was published; clocks and time zones differ by a day."""
    is_future = day is not None and day > datetime.now(UTC).date() + timedelta(days=1)
    return "is in the future" if is_future else None


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRow:
    """A document, feed or data set that was read; `sha256` is of the bytes that were read.

    The facts of a pinned one stay accepted, whatever other sources state later.
    """

    id: str
    title: str
    publisher: str
    kind: SourceKind
    url: str | None
    published_on: date | None
    sha256: str
    pinned: bool = False
    retail: bool = False
    """Whether its prices are those that the vendor publishes for everybody."""
    formula: str | None = None
    """How its prices were computed, where no list states them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatedFact(CitedRow):
    """The value that one source states for one field of one subject.

    `subject` is spelled as in the source; `raw` is the cell verbatim; `note` says how a value was derived that is
    not simply that of the cell (`8 x 32`).
    """

    kind: SubjectKind
    subject: str
    field: str
    value: FactValue
    raw: str
    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Something that was not read: its place, its text and the reason."""

    file: str
    line: int | None
    column: str | None
    cell: str | None
    detail: str

    def __str__(self) -> str:
        """Format as one line of text, with the beginning of a long cell."""
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        column = f" column {self.column!r}:" if self.column else ""
        cell = f" (cell {_cut(self.cell, 100)!r})" if self.cell is not None else ""
        return f"{place}:{column} {_cut(self.detail, 500)}{cell}"


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}…"


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionRow(CitedRow):
    """A region as a source names it; `code` is lower case without spaces, `country` by ISO 3166-1, degrees north, east.

    Where a price is for all regions of a provider, they are one region here, without a place.
    """

    code: str
    name: str
    geography: str | None
    provider: str = DEFAULT_PROVIDER.id
    place: str | None = None
    country: str | None = None
    continent: Continent | None = None
    latitude: float | None = None
    longitude: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AvailabilityRow(CitedRow):
    """A region in which a size is offered.

    `zones` are joined by spaces, empty where none can be chosen, UNKNOWN_ZONES where the source does not name them.
    """

    size: str
    region: str
    zones: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AliasRow(CitedRow):
    """Another name of a size, and the source that uses it.

    Without `new_size` a size that the catalog lacks is an error, and so is an alias that vendors name a size by.
    """

    alias: str
    size: str
    reason: str
    new_size: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectionRow(CitedRow):
    """A fact that is known to be wrong: the value to use instead, in the field's unit, and why."""

    kind: SubjectKind
    subject: str
    field: str
    value: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkRow(CitedRow):
    """A published result; `scope` is gpu, vm or rack."""

    id: str
    series: str
    scope: str
    workload: str
    metric: str
    value: Decimal
    unit: str
    comparison: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeRateRow(CitedRow):
    """How many units of a currency (ISO 4217) one euro was worth on a day."""

    currency: str
    day: date
    units_per_euro: Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskRow(CitedRow):
    """A managed disk; `size` and the rates of included performance are of one of the two kinds only (docs/costs.md)."""

    id: str
    type: str
    redundancy: str
    size: str | None
    sku: str
    min_gib: int | None
    max_gib: int
    max_iops: int | None
    max_mbps: int | None
    burst_iops: int | None
    burst_mbps: int | None
    included_iops: int | None
    included_mbps: int | None
    iops_per_gib: int | None
    mbps_per_iops: Decimal | None
    max_shares: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskPriceRow(CitedRow):
    """The price of a disk in a region from a date on, in USD per month, GiB-hour, IOPS-hour or MBps-hour."""

    disk: str
    region: str
    per: str
    usd: Decimal
    valid_from: date


@dataclass(frozen=True, slots=True, kw_only=True)
class AdjustmentRow(CitedRow):
    """A rule at its place in a file, from 1."""

    rule: AdjustmentRule
    position: int
    size: str | None = None
    """As the file spells it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRow(CitedRow):
    """A language model's configuration, and where it was read."""

    preset: Preset


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRead:
    """A file that was read, and the sources it may cite: their earlier rows that it no longer has are deleted."""

    kind: str
    file: str
    sources: frozenset[str]
    states_facts: bool = False
    """Whether its facts of these sources replace those that were stored when it was last read."""
    id_line: int | None = None
    """The line of a page that states the id of its source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Everything that was read from some files; what they do not have is empty.

    Prices are read while they are stored. `citable` are the sources they may cite; those they do cite are stored.
    """

    sources: tuple[SourceRow, ...] = ()
    citable: tuple[SourceRow, ...] = ()
    facts: tuple[StatedFact, ...] = ()
    regions: tuple[RegionRow, ...] = ()
    prices: tuple[PriceList, ...] = ()
    aliases: tuple[AliasRow, ...] = ()
    availability: tuple[AvailabilityRow, ...] = ()
    corrections: tuple[CorrectionRow, ...] = ()
    benchmarks: tuple[BenchmarkRow, ...] = ()
    models: tuple[ModelRow, ...] = ()
    exchange_rates: tuple[ExchangeRateRow, ...] = ()
    disks: tuple[DiskRow, ...] = ()
    disk_prices: tuple[DiskPriceRow, ...] = ()
    adjustments: tuple[AdjustmentRow, ...] = ()
    reports: tuple[Report, ...] = ()
    files: tuple[FileRead, ...] = ()

    @property
    def fact_files(self) -> frozenset[tuple[str, str]]:
        """Return the sources and files whose stored facts are replaced by those of this reading."""
        stated = {(fact.source, fact.file) for fact in self.facts}
        read = {(source, file.file) for file in self.files if file.states_facts for source in file.sources}
        return frozenset(stated | read)

    def __add__(self, other: "Reading") -> "Reading":
        """Concatenate two readings."""
        return Reading(**{f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self)})
