"""Bulk upsert of prices, for lists of millions of rows.

`stage_prices` checks prices while the driver's bulk path loads them into a temporary table, `merge_prices` writes those
that differ by statements over whole tables. Between the two the caller adds the sizes that only prices name. What
belongs to sources with complete lists is left to `app.catalog.store.price_runs`.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from itertools import count
from operator import lt
from typing import Any, NamedTuple

from sqlalchemy import BigInteger, Column, Date, RowMapping, and_, delete, exists, func, insert, literal, select, true
from sqlalchemy.orm import Session

from app.catalog.column_types import table_of
from app.catalog.models import CompleteList, Offer, Price, PriceFile, Region, Size, SizeJson
from app.catalog.money import to_usd_text
from app.catalog.names import explain_unknown_region, explain_unknown_size, size_key
from app.catalog.providers import PROVIDERS
from app.catalog.readings import PriceBlock, PriceList, Progress, Report
from app.catalog.resolution.subjects import SubjectKeys
from app.catalog.store.changes import collect_lost_offers
from app.catalog.store.facts import load_size_providers
from app.catalog.store.listed import move_availability
from app.catalog.store.revisions import TableChecksum, checksum_of, compute_checksum, content_columns, select_canonical
from app.catalog.store.upsert import Columns, TableChange, bulk_load, execute_count, same_key, temporary_table, upsert
from app.errors import BadData

PRICE, LIST = table_of(Price), table_of(CompleteList)
OPERATING_SYSTEMS = ("linux", "windows")
OBSERVATION_KEY = ("size_key", "region", "os", "purchase", "valid_from", "source_id")
PRICE_KEY = (*OBSERVATION_KEY, "known_from")
MAX_YEARS_AHEAD = 2
"""For how long ahead the prices of a contract may be taken in."""
_VALUES = ("nano_usd_per_hour", "approximate_date")
_STAGED_COLUMNS = (*OBSERVATION_KEY, *_VALUES, "file_id")
STAGED_PRICE = temporary_table(
    "staged_price",
    *(Column(name, PRICE.c[name].type, nullable=False) for name in _STAGED_COLUMNS),
    Column("line", BigInteger, nullable=False),
    Column("position", BigInteger, nullable=False),
)
"""The observations of a reading; `position` counts them over all its lists. After the merge: those new or different."""
_CONTENT_COLUMNS = tuple(column.name for column in content_columns(PRICE))


StagedPrices = tuple[int, int, PriceList]
"""The positions of the first price of a list and behind its last, and the list."""


class Placement(NamedTuple):
    """The first price of a size in a provider's regions: both names, and the file and line."""

    size: str
    region: str
    file: str
    line: int


@dataclass(slots=True, kw_only=True)
class PriceStaging:
    """Checks prices while they are staged, and collects what the rest of the ingest needs of them."""

    subjects: SubjectKeys
    regions: Mapping[str, str]
    """The provider of each region, by code."""
    region_codes: Mapping[str, str] = field(default_factory=dict)
    """The codes of regions by their spellings: see `codes_by_spelling`."""
    progress: Progress
    last_start: date = date.max
    """The last day from which a price may hold; a later one is a typing error, and no answer would show it."""
    known_sizes: Mapping[str, str] = field(default_factory=dict)
    """The names of known sizes by key, for lists that may not add sizes."""
    first_spellings: dict[str, tuple[str, str]] = field(default_factory=dict)
    """By the key of each size without an alias: its name in the first price, and the source of that price."""
    placements: dict[tuple[str, str], Placement] = field(default_factory=dict)
    """The first price of each size in each provider's regions, by size key and provider."""
    sources: set[str] = field(default_factory=set)
    undated_spot: Counter[str] = field(default_factory=Counter)
    """The number of undated spot prices of each source; they are no offers."""
    rows: int = 0
    in_order: bool = True
    """Whether each key is greater than the one before: then there are no duplicates, and nothing need be sorted."""
    lists: list[StagedPrices] = field(default_factory=list)

    file_ids: Mapping[str, int] = field(default_factory=dict)
    """The numbers of the files of the lists."""
    checksum: TableChecksum | None = None
    """Of the rows that all staged prices become, summed up while they are staged; None where it is not.

    It is of use where each of them is written, as those of files that were never read before are as a rule.
    """

    _keys: dict[str, str] = field(default_factory=dict)
    _last: tuple[Any, ...] = ()

    def staged_columns(self, prices: Sequence[PriceList]) -> Iterator[Columns]:
        """Yield the columns of the staged table block by block; raises BadData for an unknown region or size."""
        for price_list in prices:
            first = self.rows
            for block in price_list.blocks():
                yield self._columns(price_list, block)
                self.progress("prices", block.share, self.rows)
            self.lists.append((first, self.rows, price_list))

    def _columns(self, price_list: PriceList, block: PriceBlock) -> Columns:
        codes = {written: self.region_codes.get(written, str(written)) for written in set(block.region)}
        if unknown := codes.values() - self.regions.keys():
            line, region = next((n, code) for n, code in zip(block.line, block.region, strict=True) if code in unknown)
            detail = explain_unknown_region(region, self.regions)
            raise BadData(detail, file=price_list.file, line=line, column="region")
        block = replace(block, region=[*map(codes.__getitem__, block.region)])
        if max(block.valid_from) > self.last_start:
            line, day = next(
                (n, day) for n, day in zip(block.line, block.valid_from, strict=True) if day > self.last_start
            )
            detail = f"'{day}': must not be after {self.last_start}: a later start is taken for a typing error"
            raise BadData(detail, file=price_list.file, line=line, column="valid_from")
        self._resolve_sizes(price_list, block)
        keys = [*map(self._keys.__getitem__, block.size)]
        self._note_placements(price_list, block, keys)
        if True in block.approximate_date:
            rows = zip(block.source, block.purchase, block.approximate_date, strict=True)
            self.undated_spot.update(source for source, purchase, is_guess in rows if is_guess and purchase == "spot")
        of_each = [*zip(keys, block.region, block.os, block.purchase, block.valid_from, block.source, strict=True)]
        if self.in_order:
            self.in_order = all(map(lt, (self._last, *of_each), of_each))
            self._last = of_each[-1]
        first, self.rows = self.rows, self.rows + len(keys)
        by_name: dict[str, Any] = {
            **{name: getattr(block, name) for name in ("region", "os", "purchase", "valid_from", *_VALUES, "line")},
            "size_key": keys,
            "source_id": block.source,
            "file_id": [self.file_ids[price_list.file]] * len(keys),
            "position": range(first, self.rows),
        }
        if self.checksum is not None:
            written = by_name | {"seen_until": block.valid_from, "approximate_date": map(int, block.approximate_date)}
            self.checksum += checksum_of([*zip(*(written[name] for name in _CONTENT_COLUMNS), strict=True)])
        return [by_name[column.name] for column in STAGED_PRICE.columns]

    def _note_placements(self, price_list: PriceList, block: PriceBlock, keys: Sequence[str]) -> None:
        """Note in which provider's regions each size is priced; its own provider is known once facts are resolved."""
        pairs = [*zip(keys, map(self.regions.__getitem__, block.region), strict=True)]
        for pair in dict.fromkeys(pairs):
            if pair not in self.placements:
                first = pairs.index(pair)
                place = Placement(block.size[first], block.region[first], price_list.file, block.line[first])
                self.placements[pair] = place

    def _resolve_sizes(self, price_list: PriceList, block: PriceBlock) -> None:
        """Find the key of each name that is new in this ingest; raises BadData for a size that must be known."""
        self.sources.update(block.source)
        for name in dict.fromkeys(block.size):
            if name in self._keys:
                continue
            key = self.subjects.size_key(name)
            if size_key(name) not in self.subjects.aliases:
                first = block.size.index(name)
                if not price_list.new_sizes and key not in self.known_sizes:
                    needed = "With --new-sizes it becomes one"
                    detail = explain_unknown_size(name, self.known_sizes, needed)
                    raise BadData(detail, file=price_list.file, line=block.line[first], column="size")
                self.first_spellings.setdefault(key, (name, block.source[first]))
            self._keys[name] = key


def stage_prices(session: Session, prices: Sequence[PriceList], staging: PriceStaging) -> list[Report]:
    """Fill the staged table; of two prices with one key the first is kept, and the other reported if it differs."""
    if not prices:
        return []
    files = [price_list.file for price_list in prices]
    numbers = {row.file: row.id for row in session.execute(select(table_of(PriceFile)))}
    new = [file for file in dict.fromkeys(files) if file not in numbers]
    new_numbers = dict(zip(new, count(max(numbers.values(), default=0) + 1), strict=False))
    if new:
        session.execute(
            insert(table_of(PriceFile)), [{"id": number, "file": file} for file, number in new_numbers.items()]
        )
    staging.file_ids = numbers | new_numbers
    if numbers.keys().isdisjoint(files) and not any(price_list.complete for price_list in prices):
        staging.checksum = TableChecksum()
    bulk_load(session, STAGED_PRICE, staging.staged_columns(prices))
    return [] if staging.in_order else _drop_duplicates(session, staging)


def check_placements(session: Session, staging: PriceStaging) -> None:
    """Check that no size is priced in another provider's region; call it after sizes are written, before prices are.

    A size that no source of a provider describes may be of any, so it is of that in whose regions it has prices. Raises
    BadData for the first price that is elsewhere.
    """
    providers, stated = load_size_providers(session)
    for (key, provider), place in staging.placements.items():
        own = providers[key]
        if provider != own and (key in stated or (key, own) in staging.placements or _has_price_of(session, key, own)):
            detail = f"{place.region!r}: is a region of {PROVIDERS[provider].name}, and {place.size} a size of"
            raise BadData(f"{detail} {PROVIDERS[own].name}", file=place.file, line=place.line, column="region")


def _has_price_of(session: Session, key: str, provider: str) -> bool:
    """Return whether a size has a stored price in a provider's region."""
    region = table_of(Region).c
    there = PRICE.c.region.in_(select(region.code).where(region.provider == provider))
    return bool(session.execute(select(exists().where(PRICE.c.size_key == key, there))).scalar_one())


def _drop_duplicates(session: Session, staging: PriceStaging) -> list[Report]:
    staged, first = STAGED_PRICE.c, STAGED_PRICE.alias("first")
    key = [staged[name] for name in OBSERVATION_KEY]
    several = (
        select(*key, func.min(staged.position).label("position")).group_by(*key).having(func.count() > 1).subquery()
    )
    later = and_(same_key(STAGED_PRICE, several, OBSERVATION_KEY), staged.position > several.c.position)
    query = (
        select(staged.position, staged.line, staged.nano_usd_per_hour, first.c.nano_usd_per_hour.label("kept"))
        .join_from(STAGED_PRICE, several, later)
        .join(first, first.c.position == several.c.position)
        .order_by(staged.position)
    )
    duplicates = session.execute(query).all()
    if duplicates:
        positions = select(staged.position).join_from(STAGED_PRICE, several, later)
        session.execute(delete(STAGED_PRICE).where(staged.position.in_(positions)))
    return [
        Report(
            file=next(price_list.file for start, end, price_list in staging.lists if start <= row.position < end),
            line=row.line,
            column="usd_per_hour",
            cell=to_usd_text(row.nano_usd_per_hour),
            detail=f"is another price for the same size, region and day; {to_usd_text(row.kept)} is kept",
        )
        for row in duplicates
        if row.nano_usd_per_hour != row.kept
    ]


def merge_prices(session: Session, staging: PriceStaging, today: date) -> tuple[TableChange, TableChecksum]:
    """Write the staged prices that are new or different; return the change and the checksum of overwritten rows.

    A price that differs from what was known of the same day since an earlier day becomes a row beside that one. One
    that does not differ is of the file that has it last.
    """
    if not staging.rows:
        return TableChange(), TableChecksum()
    known_today = and_(same_key(STAGED_PRICE, PRICE, OBSERVATION_KEY), PRICE.c.known_from == today)
    later = PRICE.alias("later")
    alike = (STAGED_PRICE.c[name] == PRICE.c[name] for name in _VALUES)
    newest = ~exists().where(same_key(later, PRICE, OBSERVATION_KEY), later.c.known_from > PRICE.c.known_from)
    is_stored = and_(same_key(STAGED_PRICE, PRICE, OBSERVATION_KEY), *alike, newest)
    in_other_file = PRICE.c.file_id != STAGED_PRICE.c.file_id
    session.execute(PRICE.update().values(file_id=STAGED_PRICE.c.file_id).where(is_stored, in_other_file))
    unchanged = execute_count(session, delete(STAGED_PRICE).where(exists().where(is_stored)))
    old = compute_checksum(session, select_canonical(session, PRICE).join(STAGED_PRICE, known_today))
    day, staged = literal(today, Date), STAGED_PRICE.c
    columns = {name: staged[name] for name in _STAGED_COLUMNS} | {"known_from": day, "seen_until": staged.valid_from}
    new = select(*columns.values()).where(true())
    if not staging.in_order:
        new = new.order_by(*(staged[name] for name in OBSERVATION_KEY))
    written = upsert(session, PRICE, [*columns], new, PRICE_KEY)
    return TableChange(added=written - old.rows, changed=old.rows, unchanged=unchanged), old


def staged_checksum(session: Session, staging: PriceStaging, written: int) -> TableChecksum:
    """Return the checksum of the rows that the merge has written of the staged prices; it takes their number."""
    if staging.checksum is not None and staging.checksum.rows == written:
        return staging.checksum
    rows = select(*STAGED_PRICE.c, STAGED_PRICE.c.valid_from.label("seen_until")).subquery()
    return compute_checksum(session, select_canonical(session, PRICE, rows))


def merge_aliases(session: Session, subjects: SubjectKeys) -> TableChange:
    """Move the prices of sizes that turned out to be aliases, and delete those sizes.

    Where both names have a price of the same source on the same day, the size's own is kept. Facts must have been moved
    before; offers of all sizes must be derived afterwards.
    """
    price, size = table_of(Price), table_of(Size)
    stored = set(session.execute(select(size.c.key)).scalars())
    merged = {alias: key for alias, key in subjects.aliases.items() if alias in stored and key in stored}
    for alias, key in merged.items():
        rows = session.execute(select(price).where(price.c.size_key == alias)).mappings().all()
        own: dict[tuple[Any, ...], list[RowMapping]] = {}
        for row in session.execute(select(price).where(price.c.size_key == key)).mappings():
            own.setdefault(_series_of(row), []).append(row)
        move_availability(session, alias, key)
        new = [dict(row) | {"size_key": key} for row in rows if not _overlaps(row, own.get(_series_of(row), ()))]
        collect_lost_offers(session, table_of(Offer).c.size_key == alias)
        for table in (price, table_of(Offer), table_of(SizeJson)):
            session.execute(delete(table).where(table.c.size_key == alias))
        if new:
            session.execute(insert(price), new)
        session.execute(delete(size).where(size.c.key == alias))
    return TableChange(removed=len(merged))


def _series_of(run: RowMapping) -> tuple[Any, ...]:
    return tuple(run[name] for name in ("region", "os", "purchase", "source_id"))


def _overlaps(run: RowMapping, others: Iterable[RowMapping]) -> bool:
    return any(
        run["valid_from"] <= other["seen_until"] and other["valid_from"] <= run["seen_until"] for other in others
    )
