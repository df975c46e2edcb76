"""Decides whether the newest list of a region may replace the last accepted one.

A vendor's API sometimes loses most of its rows for days, or sends figures of another kind; both look like news. A list
that shrinks or moves more than lists do is refused, with everything that is odd about it; of another list the prices
that jump are held back, until a list of another day has the same. Those are remembered in a file beside the fetched
lists and not in the catalog, which has the values that were accepted.

The last accepted list is what the catalog has of the source, or of other retail prices where it has nothing.
"""

import csv
import os
import re
from collections import Counter
from collections.abc import Collection, Generator, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import closing
from datetime import date
from decimal import Decimal
from fractions import Fraction
from heapq import merge
from itertools import groupby
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.catalog.column_types import table_of
from app.catalog.models import Price, Region
from app.catalog.money import to_nano_usd, to_usd_text
from app.catalog.providers import DEFAULT_PROVIDER
from app.catalog.store.price_checks import is_retail
from app.errors import BadData


class PriceKey(NamedTuple):
    """What a price in a region is of; `size` is the key of a size."""

    size: str
    os: str
    purchase: str


PriceMap = Mapping[PriceKey, int]
"""The prices of a region, nano-USD an hour."""


_LOST_IN_REGION, _LOST_IN_SERIES = Fraction(20, 100), Fraction(50, 100)
"""The shares of its prices that a region, or a series of at least _SERIES_PRICES, may lose; promotions end at once."""
_SERIES_PRICES = 8
_FACTOR, _SPOT_FACTOR = 5, 10
"""How many times higher or lower a single price may become."""
_MOVED, _MOVED_FACTOR = Fraction(5, 100), 2
"""The share of the prices that both lists have, that may change by more than a factor."""
_EXAMPLES = 3
_SIZE = re.compile(r"([a-z]+)\d+(?:-\d+)?")


def series_of(size: str) -> str:
    """Return a size's name without its number of vCPUs: what sizes that come and go together have in common."""
    return _SIZE.sub(r"\1", size, count=1)


def check_list(previous: PriceMap, new: PriceMap) -> tuple[str, ...]:
    """Return what is wrong with the new list of a region as a whole, compared with the one before; empty: nothing."""
    both = [key for key in new if key in previous]
    moved = [key for key in both if _exceeds(previous[key], new[key], _MOVED_FACTOR)]
    losses, moves = (*_find_losses(previous, new),), list[str]()
    if len(moved) > _MOVED * len(both):
        moves.append(f"{_part(len(moved), len(both))} changed more than {_MOVED_FACTOR} times")
    return (*losses, *_describe_jumps(previous, new), *moves) if losses or moves else ()


def find_jumps(previous: PriceMap, new: PriceMap) -> list[PriceKey]:
    """Return the prices that changed more than a single price does, sorted."""
    return sorted(key for key, nano in new.items() if _exceeds(previous.get(key), nano, _factor(key)))


def _factor(key: PriceKey) -> int:
    return _SPOT_FACTOR if key.purchase == "spot" else _FACTOR


def _find_losses(previous: PriceMap, new: PriceMap) -> Iterable[str]:
    lost = [key for key in previous if key not in new]
    if len(lost) > _LOST_IN_REGION * len(previous):
        yield f"{_part(len(lost), len(previous))} are gone"
    before = Counter(series_of(key.size) for key in previous)
    for series, gone in sorted(Counter(series_of(key.size) for key in lost).items()):
        lasting = before[series] >= _SERIES_PRICES and not series.endswith("_promo")
        if lasting and gone > _LOST_IN_SERIES * before[series]:
            yield f"{gone} of {before[series]} prices of {series} are gone"


def _describe_jumps(previous: PriceMap, new: PriceMap) -> Iterable[str]:
    all_jumps = find_jumps(previous, new)
    for spot, factor in ((False, _FACTOR), (True, _SPOT_FACTOR)):
        if jumps := [key for key in all_jumps if (key.purchase == "spot") is spot]:
            examples = "; ".join(
                f"{key.size} {key.os} {key.purchase} {to_usd_text(previous[key])} -> {to_usd_text(new[key])}"
                for key in jumps[:_EXAMPLES]
            )
            kind = "spot price" if spot else "price"
            yield f"{len(jumps)} {kind}{'' if len(jumps) == 1 else 's'} changed more than {factor} times: {examples}"


def _exceeds(old: int | None, new: int, factor: int) -> bool:
    return old is not None and (new > factor * old or old > factor * new)


def _part(number: int, of: int) -> str:
    return f"{number} of {of} prices ({min(round(100 * number / of), 99 + number // of)} %)"  # 100 % are all


def find_loss(what: str, before: AbstractSet[object], now: AbstractSet[object]) -> str | None:
    """Return what is wrong with a list that is not of prices; None where it lost no more than a region may."""
    gone = len(before - now)
    return f"{gone} of {len(before)} {what} are gone" if gone > _LOST_IN_REGION * len(before) else None


# What is held back

_COLUMNS = ("region", "size", "os", "purchase", "old_usd_per_hour", "new_usd_per_hour", "day")


class HeldPrice(NamedTuple):
    """A price that was held back: what the list of a day had, and the price before; `size` is a name of the size."""

    region: str
    size: str
    os: str
    purchase: str
    old_nano: int
    new_nano: int
    day: date


def load_held(path: Path) -> list[HeldPrice]:
    """Load the prices that were held back, sorted; raises BadData for a file that is none of ours."""
    if not path.is_file():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        try:
            return [_to_held(row) for row in csv.DictReader(file, strict=True)]
        except (KeyError, TypeError, ValueError, ArithmeticError, csv.Error) as error:
            detail = f"is not a list of prices that were held back ({', '.join(_COLUMNS)}): delete it"
            raise BadData(detail, file=str(path)) from error


def _to_held(row: dict[str, str]) -> HeldPrice:
    region, size, system, purchase, old, new, day = (row[name] for name in _COLUMNS)
    old_nano, new_nano = (to_nano_usd(Decimal(usd)) for usd in (old, new))
    return HeldPrice(region, size, system, purchase, old_nano, new_nano, date.fromisoformat(day))


def save_held(path: Path, regions: Collection[str], held: Sequence[HeldPrice]) -> None:
    """Replace what is remembered of some regions; a file is written only where that differs."""
    before = load_held(path)
    after = sorted([*(price for price in before if price.region not in regions), *held])
    if after == before:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    with part.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(_COLUMNS)
        for price in after:
            figures = to_usd_text(price.old_nano), to_usd_text(price.new_nano)
            writer.writerow((price.region, price.size, price.os, price.purchase, *figures, price.day))
    part.replace(path)


PRICE = table_of(Price).c


def load_region_codes(session: Session, provider: str = DEFAULT_PROVIDER.id) -> tuple[str, ...]:
    """Return the codes of the regions of a provider, sorted."""
    region = table_of(Region).c
    codes = select(region.code).where(region.provider == provider)
    return tuple(session.execute(codes.order_by(region.code)).scalars())


RegionList = tuple[str, dict[tuple[str, str, str], int]]
"""A region with the prices of a list: nano-USD an hour by size key, system and purchase model."""


def load_newest_lists(session: Session, source: str) -> Generator[RegionList]:
    """Yield each region with its newest list of a source, or of other sources where that one has none; by code.

    The rows come from open cursors, so that a caller who stops early must close the generator.
    """
    with closing(_load_own_lists(session, source)) as own, closing(_load_retail_lists(session, source)) as others:
        yield from merge(own, others, key=itemgetter(0))


def _load_own_lists(session: Session, source: str) -> Generator[RegionList]:
    newest = (
        select(PRICE.region, func.max(PRICE.seen_until).label("day"))
        .where(PRICE.source_id == source)
        .group_by(PRICE.region)
        .subquery()
    )
    query = (
        select(PRICE.region, PRICE.size_key, PRICE.os, PRICE.purchase, PRICE.nano_usd_per_hour)
        .join(newest, (newest.c.region == PRICE.region) & (newest.c.day == PRICE.seen_until))
        .where(PRICE.source_id == source)
        .order_by(PRICE.region)
        .execution_options(yield_per=10_000)
    )
    with session.execute(query) as result:
        for region, rows in groupby(result, key=attrgetter("region")):
            yield region, {(row.size_key, row.os, row.purchase): row.nano_usd_per_hour for row in rows}


def _load_retail_lists(session: Session, but: str) -> Generator[RegionList]:
    """Yield the regions that a source has no price for, with retail prices of the others.

    Those of each system and purchase model are from one list of one source. Lists of several sources are never mixed:
    what an older one has beside the newest may not be sold any more.
    """
    columns = (PRICE.size_key, PRICE.os, PRICE.purchase, PRICE.source_id, PRICE.seen_until, PRICE.nano_usd_per_hour)
    query = (
        select(PRICE.region, *columns)
        .where(
            is_retail(PRICE),
            PRICE.approximate_date.is_(False),
            PRICE.region.not_in(select(PRICE.region).where(PRICE.source_id == but)),
        )
        .order_by(PRICE.region, PRICE.known_from)
        .execution_options(yield_per=10_000)
    )
    with session.execute(query) as result:
        for region, rows in groupby(result, key=attrgetter("region")):
            lists: dict[tuple[str, str], dict[tuple[date, str], dict[str, int]]] = {}
            for row in rows:
                of_kind = lists.setdefault((row.os, row.purchase), {})
                of_kind.setdefault((row.seen_until, row.source_id), {})[row.size_key] = row.nano_usd_per_hour
            prices = {kind: _newest_large(of_kind) for kind, of_kind in lists.items()}
            yield region, {(size, *kind): nano for kind, of_kind in prices.items() for size, nano in of_kind.items()}


def _newest_large(lists: Mapping[tuple[date, str], dict[str, int]]) -> dict[str, int]:
    """Return the newest list, of those that have at least half as many prices as the longest.

    Some sources have prices of a few sizes only; what ended before a source's newest list is a short list, too.
    """
    most = max(map(len, lists.values()))
    large = {key: prices for key, prices in lists.items() if 2 * len(prices) >= most}
    return max(large.items(), key=lambda item: (item[0][0], len(item[1]), item[0][1]))[1]
