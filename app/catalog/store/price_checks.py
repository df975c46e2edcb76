"""Applies the price checks during an ingest: moves refused prices to their own table, and marks the others.

The result depends only on the prices, not on the order of ingests: refused prices return to `price` before a merge, and
all prices are checked again afterwards. So a price is refused once there is evidence against it, and counts again once
the evidence is gone.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, timedelta
from itertools import groupby
from operator import attrgetter, itemgetter
from statistics import median
from typing import Any, NamedTuple

from sqlalchemy import (
    Column,
    ColumnElement,
    Date,
    and_,
    delete,
    exists,
    func,
    insert,
    literal,
    null,
    or_,
    select,
    tuple_,
    update,
)
from sqlalchemy.orm import Session

from app.catalog.column_types import table_of
from app.catalog.in_force import SERIES, earliest_spot_day, is_in_force
from app.catalog.models import RefusedPrice, Series, Size, Source
from app.catalog.price_checks import MIN_REGIONS, ListedPrice, Refusal, check_prices, find_unusual
from app.catalog.store.changes import PREVIOUS_SIZES
from app.catalog.store.prices import PRICE, PRICE_KEY, STAGED_PRICE
from app.catalog.store.upsert import (
    TableChange,
    bulk_load,
    columns_like,
    condition,
    execute_count,
    same_key,
    temporary_table,
)
from app.db.dialects import quote

REFUSED = table_of(RefusedPrice)
_SIZE, _SERIES, _SOURCE = table_of(Size), table_of(Series), table_of(Source)
_MOVED = (*PRICE_KEY, "seen_until", "nano_usd_per_hour", "approximate_date", "file_id")

_IN_PARTS = {"yield_per": 1_000}
"""Lets a query be read in parts, so that not all of its rows are in memory."""

DISPUTED_DAYS = 60
"""Two lists dispute a price if they differ and were last seen within this many days of each other."""

_FOUND = temporary_table(
    "found_price",
    *columns_like(PRICE, PRICE_KEY, primary_key=True),
    *columns_like(REFUSED, ("rule", "evidence")),
)
"""The prices that fail a check."""

_MARKED = temporary_table(
    "marked_price",
    *columns_like(PRICE, PRICE_KEY, primary_key=True),
    Column("day", Date),
    Column("nano", PRICE.c.nano_usd_per_hour.type),
)
"""Prices to mark, with the day or the amount to store."""

_BEFORE = temporary_table(
    "refused_before",
    *columns_like(PRICE, PRICE_KEY, primary_key=True),
    *columns_like(REFUSED, ("seen_until", "nano_usd_per_hour", "rule", "evidence")),
)
"""The refused prices before this ingest."""

CHECK_TABLES = (_FOUND, _MARKED, _BEFORE)
"""The temporary tables of the checks."""


def have_sizes_moved(session: Session) -> bool:
    """Return whether an ingest changed the series or parent of a size, which decide what prices are compared."""
    old = PREVIOUS_SIZES.c
    differs = or_(*(old[name].is_distinct_from(_SIZE.c[name]) for name in ("series_id", "parent_size")))
    moved = select(_SIZE.c.key).join(PREVIOUS_SIZES, old.key == _SIZE.c.key, isouter=True).where(differs)
    return bool(session.execute(select(moved.exists())).scalar_one())


def restore_refused(session: Session) -> None:
    """Return refused prices to `price` until the next check, and clear all marks."""
    before = [REFUSED.c[name] for name in _BEFORE.c.keys()]  # noqa: SIM118  # a collection of columns is no mapping
    session.execute(insert(_BEFORE).from_select(_BEFORE.c.keys(), select(*before)))
    session.execute(insert(PRICE).from_select(_MOVED, select(*(REFUSED.c[name] for name in _MOVED))))
    session.execute(delete(REFUSED))
    for name in ("median_nano_usd", "disputed", "listed_until", "ends_on"):
        session.execute(update(PRICE).values({name: null()}).where(PRICE.c[name].is_not(None)))


def save_checked_prices(session: Session, today: date) -> tuple[TableChange, Mapping[tuple[str, str], int]]:
    """Check all retail prices after `restore_refused`: move refused ones to `refused_price`, and mark others.

    Returns the change of `refused_price`, and how many prices are newly refused by source and rule.
    """
    listed: list[tuple[Any, ...]] = []
    ended: list[tuple[Any, ...]] = []
    found_rows = [*_check_by_series(session, listed, ended)]
    if found_rows:
        bulk_load(session, _FOUND, [list(zip(*found_rows, strict=True))])
    moved = select(*(PRICE.c[name] for name in _MOVED), _FOUND.c.rule, _FOUND.c.evidence)
    moved = moved.join_from(_FOUND, PRICE, same_key(_FOUND, PRICE, PRICE_KEY))
    refused = execute_count(session, insert(REFUSED).from_select([*_MOVED, "rule", "evidence"], moved))
    if refused:
        session.execute(delete(PRICE).where(exists().where(same_key(_FOUND, PRICE, PRICE_KEY))))
    _mark(session, "listed_until", listed)
    _mark(session, "ends_on", ended)
    _mark(session, "median_nano_usd", _unusual_prices(session, today))
    _mark(session, "disputed", _disputed_prices(session))
    same = same_key(_BEFORE, REFUSED, _BEFORE.c.keys())
    newly_refused = select(REFUSED.c.source_id, REFUSED.c.rule, func.count()).where(~exists().where(same))
    counted = session.execute(newly_refused.group_by(REFUSED.c.source_id, REFUSED.c.rule))
    by_rule = {(source, rule): number for source, rule, number in counted}
    before: int = session.execute(select(func.count()).select_from(_BEFORE)).scalar_one()
    unchanged = refused - (added := sum(by_rule.values()))
    return TableChange(added=added, unchanged=unchanged, removed=before - unchanged), by_rule


# Checks


class SeriesPrices(NamedTuple):
    """The prices of a series, or of a size without one, with what `check_prices` takes.

    `parents` are by constrained size, `metered` the series by the sizes that have meters of Cloud Services, `ends` the
    last day of reservations by purchase model, None where they are sold.
    """

    series: str
    prices: list[ListedPrice]
    parents: Mapping[str, str]
    metered: Mapping[str, str]
    ends: Mapping[str, date | None]


def prices_by_series(session: Session, *conditions: ColumnElement[bool]) -> Iterator[SeriesPrices]:
    """Yield the prices that meet some conditions on PRICE and sources, one series at a time."""
    parent = _SIZE.alias("parent")
    group = func.coalesce(parent.c.series_id, _SIZE.c.series_id, parent.c.key, _SIZE.c.key)
    query = (
        select(group, parent.c.key.label("parent"), _SERIES.c.cloud_services)
        .add_columns(_SERIES.c.reserved_1y_until, _SERIES.c.reserved_3y_until)
        .add_columns(*(PRICE.c[name] for name in ListedPrice._fields[:-1]), PRICE.c.nano_usd_per_hour)
        .join_from(PRICE, _SOURCE, _SOURCE.c.id == PRICE.c.source_id)
        .join(_SIZE, _SIZE.c.key == PRICE.c.size_key)
        .join(parent, parent.c.name == _SIZE.c.parent_size, isouter=True)
        .join(_SERIES, _SERIES.c.id == func.coalesce(parent.c.series_id, _SIZE.c.series_id), isouter=True)
        .where(*conditions)
        .order_by(group)
    )
    for series, rows in groupby(session.execute(query, execution_options=_IN_PARTS), key=itemgetter(0)):
        prices: list[ListedPrice] = []
        parents: dict[str, str] = {}
        has_cloud_services, ends = False, dict[str, date | None]()
        for _, of_parent, cloud_services, end_1y, end_3y, *values in rows:
            price = ListedPrice(*values)
            prices.append(price)
            has_cloud_services, ends = bool(cloud_services), {"reserved_1y": end_1y, "reserved_3y": end_3y}
            if of_parent is not None:
                parents[price.size_key] = of_parent
        sizes = {*(price.size_key for price in prices), *parents.values()} if has_cloud_services else ()
        yield SeriesPrices(series, prices, parents, dict.fromkeys(sizes, series), ends)


def _check_by_series(
    session: Session, listed: list[tuple[Any, ...]], ended: list[tuple[Any, ...]]
) -> Iterator[tuple[Any, ...]]:
    """Yield the key, rule and evidence of prices to refuse, one series at a time.

    Appends to `listed` the keys of prices that a refused price of the same list follows, with the last day of that, and
    to `ended` the keys of reservations with the first day on which they are no longer sold.
    """
    for of_series in prices_by_series(session, _SOURCE.c.retail.is_(True), PRICE.c.purchase != "spot"):
        for price in of_series.prices:
            end = of_series.ends.get(price.purchase)
            if end is not None and price.seen_until <= end:
                ended.append((*_key_of(price), end + timedelta(days=1), None))
        refusals = check_prices(of_series.prices, parents=of_series.parents, series=of_series.metered)
        listed += _listed_until(of_series.prices, refusals)
        for refusal in refusals:
            yield (*_key_of(refusal.price), refusal.rule, refusal.evidence)


def _key_of(price: ListedPrice) -> tuple[Any, ...]:
    return tuple(getattr(price, name) for name in PRICE_KEY)


def _listed_until(prices: Iterable[ListedPrice], refusals: Iterable[Refusal]) -> Iterator[tuple[Any, ...]]:
    """Yield the keys of accepted prices that refused ones of the same list follow, with the last day of those."""
    refused = {refusal.price for refusal in refusals}
    offer_of = itemgetter(*(ListedPrice._fields.index(name) for name in (*SERIES, "source_id")))
    offers = {offer_of(price) for price in refused}
    of_offers: dict[tuple[str, ...], list[ListedPrice]] = defaultdict(list)
    for price in prices:
        if (offer := offer_of(price)) in offers:
            of_offers[offer].append(price)
    for of_offer in of_offers.values():
        last: ListedPrice | None = None
        until: date | None = None
        for price in sorted(of_offer, key=attrgetter("valid_from", "seen_until")):
            if price in refused:
                until = max(until or price.seen_until, price.seen_until)
                continue
            if last is not None and until is not None:
                yield (*_key_of(last), until, None)
            last, until = price, None
        if last is not None and until is not None:
            yield (*_key_of(last), until, None)


# Marks


def _mark(session: Session, name: str, rows: Iterable[tuple[Any, ...]]) -> None:
    """Set a column of prices from rows of PRICE_KEY, a day and an amount; the column takes one of the two."""
    session.execute(delete(_MARKED))
    values = {row[: len(PRICE_KEY)]: dict(zip(_MARKED.c.keys(), row, strict=True)) for row in rows}
    if not values:
        return
    session.execute(insert(_MARKED), [*values.values()])
    mark = {
        "median_nano_usd": _MARKED.c.nano,
        "disputed": literal(True),
        "listed_until": _MARKED.c.day,
        "ends_on": _MARKED.c.day,
    }[name]
    session.execute(update(PRICE).values({name: mark}).where(same_key(_MARKED, PRICE, PRICE_KEY)))


def count_linux_at_windows_price(session: Session) -> int:
    """Count the staged on-demand Linux prices of unchecked lists that equal the Windows price."""
    staged, windows = STAGED_PRICE.c, PRICE.alias("windows").c
    of_windows = (windows.os == "windows", windows.purchase == "on_demand")
    same = exists().where(
        windows.size_key == staged.size_key,
        windows.region == staged.region,
        *of_windows,
        windows.nano_usd_per_hour == staged.nano_usd_per_hour,
    )
    own = and_(staged.os == "linux", staged.purchase == "on_demand", ~is_retail(staged))
    return session.execute(select(func.count()).select_from(STAGED_PRICE).where(own, same)).scalar_one()


def is_retail(run: Any) -> ColumnElement[bool]:
    """Return the condition that a price is of a source of the vendor's retail prices."""
    retail: ColumnElement[bool] = run.source_id.in_(select(_SOURCE.c.id).where(_SOURCE.c.retail.is_(True)))
    return retail


def _unusual_prices(session: Session, today: date) -> Iterator[tuple[Any, ...]]:
    """Yield the keys of unusual prices with the median over regions, nano-dollars an hour.

    A price is compared with those in force today, or, if it has ended, on the day it was last seen.
    """
    run, offer_of = PRICE.c, attrgetter("size_key", "os", "purchase")
    columns = [run[name] for name in PRICE_KEY]
    for day, offers in _days_of_outliers(session, today).items():
        on, spot_since = (quote(bound.isoformat()) for bound in (day, earliest_spot_day(day)))
        in_force = condition(is_in_force("price", on, None, spot_since))
        of_offers = tuple_(run.size_key, run.os, run.purchase).in_(offers)
        query = select(*columns, run.seen_until, run.nano_usd_per_hour).where(of_offers, is_retail(run))
        rows = session.execute(query.where(in_force).order_by(*offer_of(run)), execution_options=_IN_PARTS)
        for _, of_offer in groupby(rows, key=offer_of):
            by_region = {row.region: row for row in of_offer}
            for region, usual in find_unusual({name: row.nano_usd_per_hour for name, row in by_region.items()}).items():
                row = by_region[region]
                if day in (row.seen_until, today):
                    yield (*row[: len(PRICE_KEY)], None, usual)


def _days_of_outliers(session: Session, today: date) -> Mapping[date, list[tuple[str, str, str]]]:
    """Return the offers that may have unusual prices, by the day on which to compare regions.

    Exact medians are slow, so a past day is included only for an ended price that is far from the median of all prices
    ever listed for the size, by a bound half as wide.
    """
    run = PRICE.c
    offer = (run.size_key, run.os, run.purchase)
    spread = 2 * func.max(run.nano_usd_per_hour) > 5 * func.min(run.nano_usd_per_hour)
    several = func.count(run.region.distinct()) >= MIN_REGIONS
    wide = select(*offer).where(is_retail(run)).group_by(*offer).having(several, spread)
    columns = (*offer, run.region, run.seen_until, run.nano_usd_per_hour)
    query = select(*columns).where(tuple_(*offer).in_(wide), is_retail(run))
    days: dict[date, set[tuple[str, str, str]]] = defaultdict(set)
    rows = session.execute(query.order_by(*offer), execution_options=_IN_PARTS)
    for key, of_offer in groupby(rows, key=itemgetter(0, 1, 2)):
        listed = [(row.region, row.seen_until, row.nano_usd_per_hour) for row in of_offer]
        newest = dict(sorted((region, day) for region, day, _ in listed))
        middle = median(nano for *_, nano in listed)
        days[today].add(key)
        for region, day, nano in listed:
            if day < newest[region] and not 3 * middle <= 5 * nano <= 8 * middle:
                days[day].add(key)
    return {day: sorted(offers) for day, offers in sorted(days.items())}


def _disputed_prices(session: Session) -> Iterator[tuple[Any, ...]]:
    """Yield the keys of the newest prices of lists that differ on an offer within DISPUTED_DAYS.

    The list that counts by the rule of prices in force is compared with each of the others.
    """
    run, later = PRICE.c, PRICE.alias("later")
    superseded = exists().where(
        *(later.c[name] == run[name] for name in (*SERIES, "source_id")),
        tuple_(later.c.seen_until, later.c.known_from) > tuple_(run.seen_until, run.known_from),
    )
    dated = and_(is_retail(run), run.approximate_date.is_(False), ~superseded.correlate_except(later))
    offer = [run[name] for name in SERIES]
    differ = func.min(run.nano_usd_per_hour) < func.max(run.nano_usd_per_hour)
    several = select(*offer).where(dated).group_by(*offer).having(differ).subquery()
    rows = session.execute(
        select(*(run[name] for name in PRICE_KEY), run.seen_until, run.nano_usd_per_hour)
        .join_from(several, PRICE, same_key(several, PRICE, SERIES))
        .where(dated)
    ).all()
    for _, of_offer in groupby(sorted(rows, key=attrgetter(*SERIES)), key=attrgetter(*SERIES)):
        first, *others = sorted(
            sorted(of_offer, key=attrgetter("source_id")), key=attrgetter("seen_until"), reverse=True
        )
        disputing = [
            price
            for price in others
            if price.nano_usd_per_hour != first.nano_usd_per_hour
            and (first.seen_until - price.seen_until).days <= DISPUTED_DAYS
        ]
        for row in [first, *disputing] if disputing else []:
            yield (*row[: len(PRICE_KEY)], None, None)
