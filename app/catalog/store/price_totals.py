"""Counts prices at ingest: of each offer on every day, for the totals of lists, and of each source by its last day.

Lists have a total for each region, system and purchase model. An offer has a price in force from the day of its first
one on, except in gaps: from the list that is the third to lack its price, or from the day on which it is no longer
sold, until the next day on which any price of it was observed. So the numbers change only where a price begins, and
where a gap begins or ends. Only the groups that an ingest may have changed are counted again.
"""

from collections import Counter
from collections.abc import Sequence
from datetime import date
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    CompoundSelect,
    Date,
    Integer,
    Select,
    String,
    Table,
    and_,
    case,
    cast,
    delete,
    exists,
    func,
    insert,
    literal,
    literal_column,
    or_,
    select,
    true,
    tuple_,
    union,
    union_all,
)
from sqlalchemy.orm import Session

from app.catalog.column_types import table_of
from app.catalog.in_force import EVER_KNOWN, LIST_GROUP, MISSING_LISTS, SERIES, is_in_force, last_observed
from app.catalog.models import PriceDay, PriceTotal, Size
from app.catalog.store.price_runs import STAGED_LIST
from app.catalog.store.prices import LIST, PRICE, PRICE_KEY, STAGED_PRICE
from app.catalog.store.retract import DROPPED_PRICES
from app.catalog.store.upsert import (
    add_counts,
    columns_like,
    condition,
    same_key,
    sql_of,
    temporary_table,
    temporary_tables,
)
from app.db.dialects import quote
from app.db.functions import SEPARATOR

TOTAL = table_of(PriceTotal)
PRICE_GROUP = ("region", "os", "purchase")
"""The columns that prices are counted by: no price in force depends on one of another group."""

Group = tuple[str, str, str]
_FEW_GROUPS = 8
"""The prices of up to this many groups are looked up size by size, as their key begins with the size; else all are
read."""

_ENDED_RUN = temporary_table(
    "ended_run",
    *columns_like(PRICE, PRICE_KEY, primary_key=True),
    *columns_like(PRICE, ("seen_until", "approximate_date", "listed_until", "ends_on")),
    Column("observed", Date),
    Column("missed", Date),
)
"""The runs that end before another one begins: the last day of each, and the day from which it is missed."""

_CHANGE = temporary_table(
    "price_change",
    *columns_like(PRICE, PRICE_GROUP, primary_key=True),
    Column("day", Date, primary_key=True),
    *(Column(name, Integer, nullable=False, server_default="0") for name in ("in_force", "begun")),
)
"""How many prices of each group begin on a day, and how many of these are the first of their offer."""

_EVER = literal(EVER_KNOWN, Date)
_EVER_SQL = quote(EVER_KNOWN.isoformat())
_SEPARATOR = "\x1e"
"""Between the columns of a price that is counted as a text; its day comes last."""
_DAY_CHARACTERS = len("2026-01-31")
_SIZES_AT_ONCE = 50


def save_price_totals(session: Session, groups: Sequence[Group] | None = None) -> None:
    """Count the prices of all groups, or of some."""
    if groups is not None and not groups:
        return
    session.execute(delete(TOTAL).where(_in_groups(TOTAL, groups)))
    some = _in_groups(PRICE, groups)
    if groups is not None and len(groups) <= _FEW_GROUPS:
        parts = (PRICE.c[name].in_(set(values)) for name, *values in zip(PRICE_GROUP, *groups, strict=True))
        some = and_(PRICE.c.size_key.in_(select(table_of(Size).c.key)), *parts, some)
    with temporary_tables(session, _ENDED_RUN, _CHANGE):
        ends = or_(exists(select(LIST.c.day)), exists(select(PRICE.c.ends_on).where(PRICE.c.ends_on.is_not(None))))
        if session.execute(select(ends)).scalar_one():
            session.execute(insert(_ENDED_RUN).from_select(_ENDED_RUN.c.keys(), _ended_runs(some)))
        _count_begun(session, some)
        changes = union_all(select(*_CHANGE.c), *_gaps()).subquery()
        group = [changes.c[name] for name in PRICE_GROUP]
        of_day = (
            select(
                *group,
                changes.c.day,
                func.sum(changes.c.in_force).label("in_force"),
                func.sum(changes.c.begun).label("begun"),
            )
            .group_by(*group, changes.c.day)
            .subquery()
        )
        columns = [of_day.c[name] for name in PRICE_GROUP]
        over: dict[str, Any] = {"partition_by": columns, "order_by": of_day.c.day}
        values: dict[str, ColumnElement[Any]] = {
            **{name: of_day.c[name] for name in PRICE_GROUP},
            "since": of_day.c.day,
            "until": func.lead(of_day.c.day).over(**over),
            **{name: cast(func.sum(of_day.c[name]).over(**over), Integer) for name in ("in_force", "begun")},
        }
        session.execute(insert(TOTAL).from_select([*values], select(*values.values())))


def changed_groups(session: Session) -> list[Group]:
    """Return the groups of which this ingest changed prices or lists of prices."""
    return [(region, os, purchase) for region, os, purchase in session.execute(_of_changed(PRICE_GROUP))]


def _of_changed(names: Sequence[str]) -> CompoundSelect[Any]:
    tables = (STAGED_PRICE, STAGED_LIST, DROPPED_PRICES)
    return union(*(select(*(table.c[name] for name in names)) for table in tables))


def _in_groups(table: Table, groups: Sequence[Group] | None) -> ColumnElement[bool]:
    return true() if groups is None else tuple_(*(table.c[name] for name in PRICE_GROUP)).in_(groups)


def _count_begun(session: Session, some: ColumnElement[bool]) -> None:
    """Count the prices of each group and first day, and those among them that are the first of their offer.

    They are counted here, by texts that have the prices of a size each: a database would sort all of them, or look up
    the row of its group for each.
    """
    key = " || ".join(f"{name} || {quote(_SEPARATOR)}" for name in PRICE_GROUP)
    joined = literal_column(sql_of(session).joined_texts(f"{key} || cast(valid_from as text)"), String)
    query = select(joined).select_from(PRICE).where(some).group_by(PRICE.c.size_key)
    begun: Counter[str] = Counter()
    first: Counter[str] = Counter()
    for (texts,) in session.execute(query, execution_options={"yield_per": _SIZES_AT_ONCE}):
        prices = sorted(texts.split(SEPARATOR))  # as a rule they are
        begun.update(prices)
        offers = [price[:-_DAY_CHARACTERS] for price in prices]
        first.update(price for price, of, before in zip(prices, offers, ["", *offers], strict=False) if of != before)
    rows = []
    for price, number in begun.items():
        region, os, purchase, day = price.split(_SEPARATOR)
        group = {"region": region, "os": os, "purchase": purchase}
        rows.append({**group, "day": date.fromisoformat(day), "in_force": first[price], "begun": number})
    if rows:
        session.execute(insert(_CHANGE), rows)


def _ended_runs(some: ColumnElement[bool]) -> Select[Any]:
    """Select the runs of _ENDED_RUN among some."""
    run, lists, other = PRICE.c, LIST.alias("missing"), PRICE.alias("later")
    columns = [run[name] for name in (*PRICE_KEY, "seen_until", "approximate_date", "listed_until", "ends_on")]
    observed = literal_column(last_observed("price", _EVER_SQL, None), Date).label("observed")
    may_end = or_(run.source_id.in_(select(LIST.c.source_id)), run.ends_on.is_not(None))
    listed = select(*columns, observed).where(some, may_end).subquery("may_end").c
    third = (
        select(lists.c.day)
        .where(
            *(lists.c[name] == listed[name] for name in LIST_GROUP),
            lists.c.day > func.coalesce(listed.listed_until, listed.observed),
        )
        .order_by(lists.c.day)
        .limit(1)
        .offset(MISSING_LISTS - 1)
        .scalar_subquery()
    )
    third_missed = select(*listed, third.label("third")).subquery("third_missed").c
    kept = [third_missed[name] for name in _ENDED_RUN.c.keys() if name != "missed"]  # noqa: SIM118
    missed = case((third_missed.third <= func.coalesce(third_missed.ends_on, _EVER), third_missed.third))
    ended = select(*kept, func.coalesce(missed, third_missed.ends_on).label("missed")).subquery("ended").c
    same = [other.c[name] == ended[name] for name in SERIES]
    begins = exists().where(*same, other.c.valid_from > ended.observed, other.c.valid_from <= ended.missed)
    return select(*ended).where(ended.missed.is_not(None), ~begins.correlate_except(other))


def _gaps() -> tuple[Select[Any], Select[Any]]:
    """Select the changes where a gap begins, and where it ends."""
    run = _ENDED_RUN.c
    # It is missed if no other price was observed on that day, too.
    in_force = condition(is_in_force("ended_run", "ended_run.observed", None))
    ends = _next_observed().label("ends")
    gaps = select(*(run[name] for name in (*PRICE_GROUP, "missed")), ends).where(in_force).subquery("gap")
    group = [gaps.c[name] for name in PRICE_GROUP]
    begun, ended = (
        select(*group, day, literal(change, Integer), literal(0, Integer))
        for day, change in ((gaps.c.missed, -1), (gaps.c.ends, 1))
    )
    is_gap = gaps.c.ends > gaps.c.missed
    return begun.where(or_(gaps.c.ends.is_(None), is_gap)), ended.where(is_gap)


def _next_observed() -> ColumnElement[Any]:
    """Build the first day after the last one of an ended run on which a price of its offer was observed, or null."""
    run, later, others, lists = _ENDED_RUN.c, PRICE.alias("later"), PRICE.alias("others"), LIST.alias("next")
    begins = select(func.min(later.c.valid_from)).where(
        *(later.c[name] == run[name] for name in SERIES), later.c.valid_from > run.observed
    )
    goes_on = (
        select(func.min(lists.c.day))
        .select_from(others.join(lists, same_key(others, lists, LIST_GROUP)))
        .where(
            *(others.c[name] == run[name] for name in SERIES),
            others.c.valid_from <= run.observed,
            lists.c.day > run.observed,
            lists.c.day <= others.c.seen_until,
        )
    )
    first, second = (query.correlate(_ENDED_RUN).scalar_subquery() for query in (begins, goes_on))
    return case((func.coalesce(first <= second, second.is_(None)), first), else_=second)


DAY = table_of(PriceDay)


def save_price_days(session: Session, sources: Sequence[str] | None = None) -> None:
    """Count the prices of all sources, or of some."""
    if sources is not None and not sources:
        return
    stored, some = (true() if sources is None else table.c.source_id.in_(sources) for table in (DAY, PRICE))
    session.execute(delete(DAY).where(stored))
    add_counts(
        session, DAY, "prices", select(PRICE.c.source_id, PRICE.c.seen_until, PRICE.c.approximate_date).where(some)
    )


def changed_sources(session: Session) -> list[str]:
    """Return the sources of which this ingest changed prices or lists of prices."""
    return list(session.execute(_of_changed(("source_id",))).scalars())
