"""Which price of an offer is in force on a day, as it was known on a day: the one definition of it.

Of all runs that began by the day and were known, the one that was last observed is in force; of several that were last
observed on the same day one with an exact date, then the source that is first by id, then what was known last. A price
ends when the next three complete lists of its source lack the offer (a refused price does not count as lacking it), or
when the vendor stops selling it.
"""

from datetime import date
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Date,
    FromClause,
    Integer,
    ScalarSelect,
    Select,
    and_,
    case,
    exists,
    func,
    literal_column,
    or_,
    select,
    true,
    tuple_,
    type_coerce,
)

from app.catalog.adjustments import Rules, adjusted_nano_usd, adjustment_json
from app.catalog.column_types import UsdColumn, table_of
from app.catalog.models import CompleteList, Price, Source
from app.db.functions import usd_of

PRICE, LIST = table_of(Price), table_of(CompleteList)
_SOURCE = table_of(Source).c
SERIES = ("size_key", "region", "os", "purchase")
"""The columns of one offer, whose prices follow one another."""

LIST_GROUP = ("source_id", "region", "os", "purchase")
"""The columns that a complete list is for."""

MISSING_LISTS = 3
"""A price is no longer in force once this many complete lists of its source in a row lack it."""

MAX_SPOT_AGE_DAYS = 366
"""A spot price changes from month to month: one that is older is history and no offer."""

KnownDay = ColumnElement[date] | None
"""The day as known on which prices are looked for; None for all that is known now, which no row is compared for."""

EVER_KNOWN = date.max
"""The day as known on which everything is known that ever was ingested."""


def earliest_spot_day(day: date) -> date:
    """Return the earliest day whose spot prices are still offers on the day."""
    return date.fromordinal(max(day.toordinal() - MAX_SPOT_AGE_DAYS, 1))


def usd_per_hour(run: Any, day: ColumnElement[date], rules: Rules) -> ColumnElement[Any]:
    """Return what is paid on a day for the price of a run, in US dollars; without rules its list price."""
    return type_coerce(usd_of(adjusted_nano_usd(run, day, rules)), UsdColumn())


def known_on(run: Any, day: ColumnElement[date], known_at: KnownDay) -> ColumnElement[bool]:
    """Return the condition that a run had begun by a day, as known on another."""
    return and_(run.valid_from <= day, _known_by(run, known_at))


def last_observed(run: Any, day: ColumnElement[date], known_at: KnownDay) -> ColumnElement[date]:
    """Return the last day up to `day` on which the price of a run is known to have been observed."""
    lists = LIST.alias()
    in_run = (lists.c.day > run.valid_from, lists.c.day <= run.seen_until)
    observed = _newest_list(lists, run, day, known_at).where(*in_run)
    return case(
        (run.seen_until == run.valid_from, run.valid_from),
        else_=func.coalesce(_first(observed), run.valid_from, type_=Date),
    )


def is_in_force(
    run: Any, day: ColumnElement[date], known_at: KnownDay, spot_since: ColumnElement[date] | None = None
) -> ColumnElement[bool]:
    """Return the condition that a run is in force.

    With `spot_since` only prices that are offers count: a spot price must have an exact date, not before that day.
    """
    others = PRICE.alias()
    other = others.c
    rival = [*(other[name] == run[name] for name in SERIES), known_on(other, day, known_at), _counts(other, spot_since)]
    # The row value compares what counts most first; where less is better, the two sides are swapped.
    ours = (last_observed(run, day, known_at), other.approximate_date, other.source_id, run.known_from, run.valid_from)
    theirs = (
        last_observed(other, day, known_at),
        run.approximate_date,
        run.source_id,
        other.known_from,
        other.valid_from,
    )
    # A run that begins after this one ended was observed later, and one that ended before this one began was not: that
    # is known without looking at any list.
    later = exists().where(*rival, other.valid_from > run.seen_until).correlate_except(others)
    better = (
        exists()
        .where(
            *rival,
            other.valid_from <= run.seen_until,
            other.seen_until >= run.valid_from,
            # Most runs overlap with themselves alone, which is known without reading any list.
            tuple_(other.valid_from, other.source_id, other.known_from)
            != tuple_(run.valid_from, run.source_id, run.known_from),
            tuple_(*theirs) > tuple_(*ours),
        )
        .correlate_except(others)
    )
    return and_(
        known_on(run, day, known_at),
        _is_offer(run, day, known_at, spot_since),
        # One condition, which PostgreSQL evaluates for each run. Two it turns into joins, which read all prices for
        # a page of 50, and lose the order of a sorted subquery (price_scope._first_in_force).
        ~or_(later, better.correlate_except(others)),
        _is_listed(run, day, known_at),
        or_(run.ends_on.is_(None), run.ends_on > day),
    )


def prices_in_force(
    day: ColumnElement[date],
    known_at: KnownDay,
    spot_since: ColumnElement[date],
    *conditions: ColumnElement[bool],
    rules: Rules,
) -> Select[Any]:
    """Select the prices that are offers on a day, by SERIES: usd_per_hour, as_of, approximate_date, adjustment, marks.

    `as_of` is the last day up to `day` on which the price was observed; a price with a `formula` is computed from
    others, and no list states it. Conditions are on columns of PRICE. Prices are those that are paid by the rules of
    that day.
    """
    run = PRICE.c
    formula = select(_SOURCE.formula).where(_SOURCE.id == run.source_id).correlate(PRICE).scalar_subquery()
    return select(
        *(run[name] for name in SERIES),
        usd_per_hour(run, day, rules).label("usd_per_hour"),
        last_observed(run, day, known_at).label("as_of"),
        run.approximate_date,
        adjustment_json(run, day, rules).label("adjustment"),
        run.median_nano_usd,
        run.disputed,
        formula.label("formula"),
    ).where(is_in_force(run, day, known_at, spot_since), *conditions)


def _known_by(row: Any, known_at: KnownDay) -> ColumnElement[bool]:
    return true() if known_at is None else row.known_from <= known_at


def _newest_list(lists: FromClause, run: Any, day: ColumnElement[date], known_at: KnownDay) -> Select[Any]:
    """Select the days of the complete lists that a run could be in, the newest first."""
    same = [lists.c[name] == run[name] for name in LIST_GROUP]
    by_then = (lists.c.day <= day, _known_by(lists.c, known_at))
    return select(lists.c.day).where(*same, *by_then).order_by(lists.c.day.desc()).correlate_except(lists)


def _first(query: Select[Any], offset: int = 0) -> ScalarSelect[Any]:
    # Literals: each parameter of a statement takes PostgreSQL's driver a microsecond.
    first = query.limit(literal_column("1", Integer))
    return (first.offset(literal_column(str(offset), Integer)) if offset else first).scalar_subquery()


def _is_listed(run: Any, day: ColumnElement[date], known_at: KnownDay) -> ColumnElement[bool]:
    """Return the condition that fewer than MISSING_LISTS complete lists came since a run was last observed."""
    first_missing = _first(_newest_list(LIST.alias(), run, day, known_at), MISSING_LISTS - 1)
    listed = func.coalesce(run.listed_until, last_observed(run, day, known_at), type_=Date)
    still_listed = func.coalesce(first_missing, run.valid_from, type_=Date) <= listed
    # Most sources have no complete lists: one set settles them, without reading the lists for each run.
    return or_(run.source_id.not_in(select(LIST.c.source_id)), still_listed)


def _counts(run: Any, spot_since: ColumnElement[date] | None) -> ColumnElement[bool]:
    """Return the condition that a run can be an offer, whatever its age."""
    return true() if spot_since is None else or_(run.purchase != "spot", run.approximate_date.is_(False))


def _is_offer(
    run: Any, day: ColumnElement[date], known_at: KnownDay, spot_since: ColumnElement[date] | None
) -> ColumnElement[bool]:
    """Return the condition that a run is an offer: a spot price must have an exact date, not before `spot_since`."""
    if spot_since is None:
        return true()
    recent = and_(run.approximate_date.is_(False), last_observed(run, day, known_at) >= spot_since)
    return or_(run.purchase != "spot", recent)
