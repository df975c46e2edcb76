"""Lists of prices, which may have millions of rows: read a block at a time, each block a column for each field."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from datetime import date
from decimal import Decimal


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
        columns = {name: [getattr(row, name) for row in rows] for name in COLUMNS}
        return cls(**columns, share=share)

    def rows(self, file: str) -> Iterator[PriceRow]:
        """Turn columns into rows."""
        for values in zip(*(getattr(self, name) for name in COLUMNS), strict=True):
            yield PriceRow(**dict(zip(COLUMNS, values, strict=True)), file=file)


COLUMNS = tuple(field.name for field in fields(PriceRow) if field.name != "file")


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
