"""Merges the prices of sources with complete lists into runs, one day of lists after another.

A complete list says of every price of its source that it was observed on a day or that it was not. Days come in any
order, so a list may fall inside runs that are stored already. For each day

1. runs that hold on the day but are not in the list are cut: one part ends at the list before, another begins at the
   list after;
2. a run that ends at the list before and has the same price is extended;
3. what is observed and in no run becomes a run of one day, known from today.

So a run never spans a list that lacks it, and never begins before the list that it was first known from. A price that
was known since an earlier day and is observed differently today stays; the run of today beside it is the one that
counts from now on.
"""

from collections.abc import Collection, Sequence
from datetime import date
from typing import Any

from sqlalchemy import (
    Boolean,
    Column,
    ColumnElement,
    Date,
    Integer,
    Select,
    and_,
    between,
    case,
    delete,
    exists,
    false,
    func,
    insert,
    literal,
    null,
    or_,
    select,
    tuple_,
    union,
    update,
)
from sqlalchemy.orm import Session

from app.catalog.in_force import LIST_GROUP
from app.catalog.readings import PriceList
from app.catalog.store.prices import LIST, OBSERVATION_KEY, PRICE, PRICE_KEY, STAGED_PRICE, PriceStaging, StagedPrices
from app.catalog.store.upsert import TableChange, columns_like, execute_count, same_key, temporary_table

_SERIES = ("size_key", *("region", "os", "purchase", "source_id"))
_VALUES = ("nano_usd_per_hour", "approximate_date")
_STORED = (*PRICE_KEY, "seen_until", *_VALUES, "file_id")

STAGED_LIST = temporary_table(
    "staged_list",
    *columns_like(LIST, (*LIST_GROUP, "day"), primary_key=True),
    Column("complete", Boolean, nullable=False),
    Column("withdrawn", Boolean, nullable=False),
    Column("rows", Integer, nullable=False),
    Column("file", LIST.c.file.type),
)
"""The lists of a reading. Withdrawn are those that their file had when it was read before and has no more."""

OBSERVED = temporary_table(
    "observed_price",
    # By day first, since each day is merged by itself.
    Column("valid_from", Date, primary_key=True),
    *columns_like(PRICE, _SERIES, primary_key=True),
    *(Column(name, PRICE.c[name].type, nullable=False) for name in _VALUES),
    Column("file_id", PRICE.c.file_id.type),
)
"""The prices of a reading that are of sources with complete lists."""

_DAY_LIST = temporary_table(
    "day_list",
    *columns_like(LIST, LIST_GROUP, primary_key=True),
    Column("complete", Boolean, nullable=False),
    Column("withdrawn", Boolean, nullable=False),
    Column("known_from", Date),
    Column("previous", Date),
)
"""The lists of the day that is merged: since when the list is known, if it is, and the day of the list before."""

CUT_RUN = temporary_table(
    "cut_run",
    Column("cut_on", Date, primary_key=True),
    *columns_like(PRICE, PRICE_KEY, primary_key=True),
    *columns_like(PRICE, ("seen_until", *_VALUES, "file_id")),
    Column("ended", Date),
)
"""The runs that were cut: as they were, and the last day of what is left of them before the cut."""

_EXTENDED = temporary_table(
    "extended_run",
    *columns_like(PRICE, PRICE_KEY, primary_key=True),
)

RUN_TABLES = (STAGED_LIST, OBSERVED, _DAY_LIST, CUT_RUN, _EXTENDED)
"""The temporary tables that a merge needs."""


def merge_lists(session: Session, staging: PriceStaging, today: date) -> tuple[TableChange, TableChange]:
    """Take the prices of sources with complete lists out of the staged ones, and merge them into runs.

    Returns the changes of the tables `price` and `price_list`.
    """
    prices = lists = TableChange()
    complete = [staged for staged in staging.lists if staged[-1].complete]
    if not complete and not session.execute(select(exists(select(LIST.c.source_id)))).scalar_one():
        return prices, lists
    _stage_lists(session, complete)
    _move_observed(session)
    # The sources of which some run is known since today, from an earlier ingest.
    of_today = select(PRICE.c.source_id).where(
        PRICE.c.known_from == today, PRICE.c.source_id.in_(select(STAGED_LIST.c.source_id))
    )
    known_today = frozenset(session.execute(of_today.distinct()).scalars())
    days = session.execute(select(STAGED_LIST.c.day).distinct().order_by(STAGED_LIST.c.day)).scalars().all()
    for number, day in enumerate(days):
        staging.progress("price lists", number / len(days))
        prices += _merge_day(session, day, today, known_today)
        lists += _save_lists(session, day, today)
    return prices, lists


# Staging

_LIST_KEY = (*LIST_GROUP, "day")
_BOTH = (PRICE, LIST)
ListKey = tuple[str, str, str, str, date]
"""The values of _LIST_KEY."""


def _stage_lists(session: Session, complete: Sequence[StagedPrices]) -> None:
    """Stage the complete lists of a reading, and those that their files have no more."""
    lists: dict[ListKey, dict[str, Any]] = {}
    for first, end, price_list in complete:
        for key, number in _rows_by_list(session, price_list, between(STAGED_PRICE.c.position, first, end - 1)).items():
            row = lists.setdefault(key, _list_row(key, price_list.file))
            row["rows"] += number
    for *_, price_list in complete:
        of_file = select(*(LIST.c[name] for name in _LIST_KEY)).where(
            LIST.c.file == price_list.file, LIST.c.source_id.in_(sorted(price_list.sources))
        )
        for key_row in session.execute(of_file):
            lists.setdefault(tuple(key_row), _list_row(tuple(key_row), price_list.file, withdrawn=True))
    if lists:
        session.execute(insert(STAGED_LIST), [*lists.values()])


def _list_row(key: ListKey, file: str, *, withdrawn: bool = False) -> dict[str, Any]:
    return {**dict(zip(_LIST_KEY, key, strict=True)), "complete": True, "withdrawn": withdrawn, "rows": 0, "file": file}


def _rows_by_list(session: Session, price_list: PriceList, of_list: ColumnElement[bool]) -> dict[ListKey, int]:
    """Return how many staged prices each list has, zero for a region that it covers and has no price for."""
    staged = STAGED_PRICE.c
    group = [*(staged[name] for name in LIST_GROUP), staged.valid_from]
    counted: list[Any] = list(session.execute(select(*group, func.count()).where(of_list).group_by(*group)))
    covered = {} if price_list.regions is not None else _known_regions(session, {row.source_id for row in counted})
    for row in counted:
        covered.setdefault((row.source_id, row.os, row.purchase), set(price_list.regions or ())).add(row.region)
    rows: dict[ListKey, int] = {}
    for row in counted:
        of_kind = covered[row.source_id, row.os, row.purchase]
        rows |= {(row.source_id, region, row.os, row.purchase, row.valid_from): 0 for region in of_kind}
    return rows | {tuple(row[:-1]): row[-1] for row in counted}


def _known_regions(session: Session, sources: Collection[str]) -> dict[tuple[str, str, str], set[str]]:
    """Return the regions that sources have prices or complete lists for, by source, system and purchase model."""
    regions: dict[tuple[str, str, str], set[str]] = {}
    groups = (select(*(table.c[name] for name in LIST_GROUP)).where(table.c.source_id.in_(sources)) for table in _BOTH)
    for source, region, os, purchase in session.execute(union(*groups)):
        regions.setdefault((source, os, purchase), set()).add(region)
    return regions


def _move_observed(session: Session) -> None:
    """Move the staged prices of sources with complete lists, and stage the days that no complete list has."""
    sources = union(select(STAGED_LIST.c.source_id), select(LIST.c.source_id)).subquery()
    ours = STAGED_PRICE.c.source_id.in_(select(sources.c.source_id))
    columns = OBSERVED.c.keys()
    moved = select(*(STAGED_PRICE.c[name] for name in columns)).where(ours)
    in_order = moved.order_by(*(STAGED_PRICE.c[column.name] for column in OBSERVED.primary_key))
    session.execute(insert(OBSERVED).from_select(columns, in_order))
    session.execute(delete(STAGED_PRICE).where(ours))
    group = [*(OBSERVED.c[name] for name in LIST_GROUP), OBSERVED.c.valid_from]
    incomplete = select(*group, false(), false(), literal(0), null()).where(
        ~exists().where(_of_group(STAGED_LIST, OBSERVED), STAGED_LIST.c.day == OBSERVED.c.valid_from)
    )
    session.execute(insert(STAGED_LIST).from_select(STAGED_LIST.c.keys(), incomplete.distinct()))


# Merging one day

_DAY_VALUES = ("complete", "withdrawn")


def _merge_day(session: Session, day: date, today: date, known_today: Collection[str]) -> TableChange:
    """Merge what is staged of one day.

    A run that this ingest added and now extends is no changed row: before it, there was none. Such runs are known since
    today, and of a source that had none such before (`known_today`).
    """
    _stage_day(session, day)
    observed: int = session.execute(select(func.count()).where(OBSERVED.c.valid_from == day)).scalar_one()
    cut = _cut_runs(session, day, today)
    extended = _extend_runs(session, day, today)
    added = _add_runs(session, day, today)
    run = _EXTENDED.c
    new = and_(run.known_from == today, run.source_id.not_in(sorted(known_today)))
    changed: int = session.execute(select(func.count()).select_from(_EXTENDED).where(~new)).scalar_one()
    return cut + TableChange(added=added, changed=changed, unchanged=observed - added - extended)


def _stage_day(session: Session, day: date) -> None:
    for table in (_DAY_LIST, _EXTENDED):
        session.execute(delete(table))
    earlier = LIST.alias("earlier")
    previous = select(func.max(earlier.c.day)).where(_of_group(earlier, STAGED_LIST), earlier.c.day < day)
    columns = [STAGED_LIST.c[name] for name in (*LIST_GROUP, *_DAY_VALUES)]
    lists = select(*columns, LIST.c.known_from, previous.scalar_subquery()).select_from(
        STAGED_LIST.join(LIST, same_key(STAGED_LIST, LIST, _LIST_KEY), isouter=True)
    )
    session.execute(insert(_DAY_LIST).from_select(_DAY_LIST.c.keys(), lists.where(STAGED_LIST.c.day == day)))


def _cut_runs(session: Session, day: date, today: date) -> TableChange:
    """Cut the runs that hold on a day on which their list does not have them; return the change of the table."""
    run, lists, observed = PRICE.c, _DAY_LIST.c, OBSERVED.c
    listed = lists.known_from.is_not(None)
    absent = observed.size_key.is_(None)
    differs = and_(~absent, ~_same_price(OBSERVED, PRICE))
    # A new list inside a run: the run does not hold there, unless the list has the same price.
    in_between = and_(lists.complete, ~listed, run.valid_from < day)
    # The first observation of a run is known with the run; a later one with its list, which may be newer.
    known_today = or_(run.known_from >= today, and_(lists.known_from >= today, run.valid_from < day))
    wrong = or_(
        and_(absent, lists.complete, or_(listed, in_between)),
        and_(differs, or_(known_today, in_between)),
    )
    ended = case((lists.previous >= run.valid_from, lists.previous), else_=run.valid_from)
    stored = [run[name] for name in _STORED]
    tables = PRICE.join(_DAY_LIST, _of_group(_DAY_LIST, PRICE)).join(
        OBSERVED, and_(observed.valid_from == day, same_key(OBSERVED, PRICE, _SERIES)), isouter=True
    )
    cut = select(literal(day, Date), *stored, ended).select_from(tables).where(_holds_on(run, day, lists), wrong)
    number = execute_count(session, insert(CUT_RUN).from_select(CUT_RUN.c.keys(), cut))
    if not number:
        return TableChange()
    added = execute_count(session, insert(PRICE).from_select(_STORED, _parts_after(day)))
    same = and_(CUT_RUN.c.cut_on == day, same_key(CUT_RUN, PRICE, PRICE_KEY))
    session.execute(update(PRICE).values(seen_until=CUT_RUN.c.ended).where(same, CUT_RUN.c.valid_from < day))
    removed = execute_count(session, delete(PRICE).where(run.valid_from == day, exists().where(same)))
    return TableChange(added=added, changed=number - removed, removed=removed)


def _parts_after(day: date) -> Select[Any]:
    """Select what is left after a day of the runs that are cut there.

    A part begins at the list after the day. Where a later list of it was known earlier, another part begins there, so
    that each is known from the day on which its first list was.
    """
    cut, lists = CUT_RUN.c, LIST.c
    known_from = case((lists.known_from > cut.known_from, lists.known_from), else_=cut.known_from)
    run = [cut[name] for name in PRICE_KEY]
    known_before = func.min(known_from).over(partition_by=run, order_by=lists.day, rows=(None, -1))
    later = (
        select(*cut, lists.day, known_from.label("list_known_from"), known_before.label("known_before"))
        .select_from(CUT_RUN.join(LIST, _of_group(LIST, CUT_RUN)))
        .where(cut.cut_on == day, lists.day > day, lists.day <= cut.seen_until)
        .subquery()
    )
    begins = or_(later.c.known_before.is_(None), later.c.list_known_from < later.c.known_before)
    next_begin = func.lead(later.c.day).over(partition_by=[later.c[name] for name in PRICE_KEY], order_by=later.c.day)
    part = select(later, next_begin.label("next_begin")).where(begins).subquery()
    until = LIST.alias("until")
    last = select(func.max(until.c.day)).where(_of_group(until, part), until.c.day < part.c.next_begin)
    columns: dict[str, ColumnElement[Any]] = {name: part.c[name] for name in _STORED}
    columns["valid_from"], columns["known_from"] = part.c.day, part.c.list_known_from
    columns["seen_until"] = case(
        (part.c.next_begin.is_(None), part.c.seen_until), else_=last.correlate(part).scalar_subquery()
    )
    return select(*columns.values())


def _extend_runs(session: Session, day: date, today: date) -> int:
    """Extend the runs that end at the list before a day to that day, where its list has the same price."""
    lists, run, other = _DAY_LIST.c, PRICE.c, PRICE.alias("other")
    fresh = and_(lists.complete, or_(lists.known_from.is_(None), lists.known_from >= today))

    def reaches(row: Any) -> ColumnElement[bool]:
        return and_(row.c.seen_until < day, or_(lists.previous.is_(None), row.c.seen_until >= lists.previous))

    held = exists().where(same_key(other, OBSERVED, _SERIES), _holds_on(other.c, day, lists))
    begins_later = tuple_(other.c.valid_from, other.c.known_from) > tuple_(run.valid_from, run.known_from)
    nearer = exists().where(
        same_key(other, OBSERVED, _SERIES), _same_price(OBSERVED, other), reaches(other), begins_later
    )
    tables = OBSERVED.join(_DAY_LIST, _of_group(_DAY_LIST, OBSERVED)).join(PRICE, same_key(OBSERVED, PRICE, _SERIES))
    extended = (
        select(*(run[name] for name in PRICE_KEY))
        .select_from(tables)
        .where(OBSERVED.c.valid_from == day, fresh, _same_price(OBSERVED, PRICE), reaches(PRICE))
        .where(~held.correlate_except(other), ~nearer.correlate_except(other))
    )
    number = execute_count(session, insert(_EXTENDED).from_select(_EXTENDED.c.keys(), extended))
    if number:
        session.execute(update(PRICE).values(seen_until=day).where(same_key(_EXTENDED, PRICE, PRICE_KEY)))
    return number


def _add_runs(session: Session, day: date, today: date) -> int:
    """Add what was observed on a day and is not what was known last of that day, as runs of one day."""
    lists, held, later = _DAY_LIST.c, PRICE.alias("held"), PRICE.alias("later")
    same = same_key(held, OBSERVED, _SERIES)
    superseded = exists().where(
        same_key(later, OBSERVED, _SERIES), _holds_on(later.c, day, lists), later.c.known_from > held.c.known_from
    )
    stored = exists().where(
        same, _holds_on(held.c, day, lists), _same_price(OBSERVED, held), ~superseded.correlate_except(later)
    )
    values: dict[str, Any] = {name: OBSERVED.c[name] for name in (*OBSERVATION_KEY, *_VALUES, "file_id")}
    values |= {"known_from": literal(today, Date), "seen_until": OBSERVED.c.valid_from}
    new = select(*values.values()).select_from(OBSERVED.join(_DAY_LIST, _of_group(_DAY_LIST, OBSERVED)))
    new = new.where(OBSERVED.c.valid_from == day, ~stored.correlate_except(held))
    return execute_count(session, insert(PRICE).from_select([*values], new))


def _save_lists(session: Session, day: date, today: date) -> TableChange:
    """Write the complete lists of a day, and delete the withdrawn ones."""
    columns = [*_LIST_KEY, "rows", "file"]
    ours, same = STAGED_LIST.c, same_key(STAGED_LIST, LIST, _LIST_KEY)
    of_day = and_(ours.day == day, ours.complete)
    wanted = and_(of_day, ~ours.withdrawn)
    new = select(*(ours[name] for name in columns), literal(today, Date)).where(wanted, ~exists().where(same))
    added = execute_count(session, insert(LIST).from_select([*columns, "known_from"], new))
    different = and_(same, wanted, ours.rows != LIST.c.rows)
    changed = execute_count(session, update(LIST).values(rows=ours.rows, file=ours.file).where(different))
    removed = execute_count(session, delete(LIST).where(exists().where(same, of_day, ours.withdrawn)))
    return TableChange(added=added, changed=changed, removed=removed)


def _of_group(lists: Any, rows: Any) -> ColumnElement[bool]:
    return same_key(lists, rows, LIST_GROUP)


def _same_price(observed: Any, run: Any) -> ColumnElement[bool]:
    return same_key(observed, run, _VALUES)


def _holds_on(run: Any, day: date, lists: Any) -> ColumnElement[bool]:
    """Return the condition that a run was observed on a day, or that a new complete list of the day falls inside it."""
    a_list = or_(lists.complete, lists.known_from.is_not(None))
    return and_(run.valid_from <= day, run.seen_until >= day, or_(a_list, run.valid_from == day))
