"""Which price of an offer is in force on a day, as it was known on a day, and what is paid: the one definition of both.

Of all runs that began by the day and were known, the one that was last observed is in force; of several that were last
observed on the same day one with an exact date, then the source that is first by id, then what was known last. A price
ends when the next three complete lists of its source lack the offer (a refused price does not count as lacking it), or
when the vendor stops selling it.

The reader's own rules apply in their order: a discount to what the rules before it left, a fixed price in the place of
it. The result is exact and rounded once, to a billionth of a dollar, half away from zero. An unknown price stays
unknown.
"""

import json
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from fractions import Fraction
from functools import reduce
from math import ceil, prod
from operator import add
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Date,
    Double,
    FromClause,
    Integer,
    Numeric,
    ScalarSelect,
    Select,
    String,
    and_,
    case,
    cast,
    exists,
    false,
    func,
    literal,
    literal_column,
    or_,
    select,
    true,
    tuple_,
    type_coerce,
)
from sqlalchemy.orm import Session

from app.catalog.column_types import UsdColumn, table_of
from app.catalog.models import Adjustment, CompleteList, Price, Source
from app.catalog.names import glob_to_like
from app.catalog.purchases import AdjustmentRule
from app.db.functions import adjusted_nano, after_last, json_text, usd_of

MAX_RULES = 200
"""The most rules a catalog can have: each is a condition of every statement that computes prices."""

BASIS_POINTS = 10_000
"""Hundredths of a percent in the whole."""

_RESET = "\x1f"
"""What stands before the name of a rule with a fixed price, which makes the rules before it count no more."""


Rules = tuple[AdjustmentRule, ...]
RULE_COLUMNS = tuple(AdjustmentRule.__dataclass_fields__)


def load_rules(session: Session) -> Rules:
    """Load the rules in the order in which they apply."""
    table = table_of(Adjustment)
    query = select(*(table.c[name] for name in RULE_COLUMNS)).order_by(table.c.source_id, table.c.position)
    return tuple(AdjustmentRule(**row) for row in session.execute(query).mappings())


def adjusted_nano_usd(run: Any, day: ColumnElement[date], rules: Rules) -> ColumnElement[int]:
    """Return what is paid an hour on a day for the price of a run, in nano-dollars."""
    nano: ColumnElement[int] = run.nano_usd_per_hour
    if not rules:
        return nano
    pairs = [part for rule in rules for part in (_applies(rule, run, day), _step(rule))]
    return adjusted_nano(nano, *pairs)


def adjustment_json(run: Any, day: ColumnElement[date], rules: Rules) -> ColumnElement[str | None]:
    """Return `{"list_usd_per_hour":4.0,"rules":["EA discount"]}`, or null where no rule applies.

    A rule that a later fixed price replaces is not named.
    """
    nothing: ColumnElement[str | None] = literal_column("null", String)
    if not rules:
        return nothing
    named = (case((_applies(rule, run, day), literal(_named(rule), String)), else_="") for rule in rules)
    names = after_last(reduce(add, named), literal(_RESET, String))
    usd = json_text(cast(usd_of(run.nano_usd_per_hour), Double))
    start, middle, end = (literal(text, String) for text in ('{"list_usd_per_hour":', ',"rules":[', "]}"))
    return case((names != "", start + usd + middle + func.substr(names, 2) + end), else_=nothing)


@dataclass(frozen=True, slots=True)
class UnevenRules:
    """Where the rules of a system and purchase model may change the order of the prices of one size among regions.

    Elsewhere all regions have the same rules, and what is paid rises with the list price: list prices that differ by
    more than `tie_nano_usd` nano-dollars are not rounded to one amount.
    """

    regions: tuple[str, ...]
    levelling: Rules
    tie_nano_usd: int

    @staticmethod
    def of(rules: Rules, os: str, purchase: str) -> "UnevenRules":
        """Find the regions that rules name, and the rules without a region that make all prices of a size the same."""
        ours = [rule for rule in rules if rule.os in (None, os) and rule.purchase in (None, purchase)]
        everywhere = [rule for rule in ours if rule.region is None]
        levelling = tuple(rule for rule in everywhere if not _factor(rule))
        least = prod(
            (Fraction(min(_factor(rule), Decimal(1))) for rule in everywhere if _factor(rule)), start=Fraction(1)
        )
        regions = sorted({rule.region for rule in ours if rule.region is not None})
        return UnevenRules(regions=tuple(regions), levelling=levelling, tie_nano_usd=ceil(1 / least))

    def names(self, region: ColumnElement[str]) -> list[ColumnElement[bool]]:
        """Return the conditions that a region is one of those that rules name, of which one must hold."""
        return [region == literal(code, String) for code in self.regions]

    def levels(self, size: Any, day: ColumnElement[date]) -> ColumnElement[bool]:
        """Return the condition that all prices of a size, a row with `size_key`, are the same on a day."""
        anywhere = (replace(rule, os=None, purchase=None) for rule in self.levelling)
        return or_(false(), *(_applies(rule, size, day) for rule in anywhere))


def _factor(rule: AdjustmentRule) -> Decimal:
    """Return what a rule multiplies a price by; zero for a fixed price, which does not depend on it either."""
    return (
        Decimal(0)
        if rule.nano_usd_per_hour is not None
        else 1 - Decimal(rule.discount_basis_points or 0) / BASIS_POINTS
    )


def _named(rule: AdjustmentRule) -> str:
    comma = f",{json.dumps(rule.name, ensure_ascii=False)}"
    return comma if rule.nano_usd_per_hour is None else _RESET + comma


def _step(rule: AdjustmentRule) -> ColumnElement[Any]:
    """Return a rule's step of `adjusted_nano`; figures are written into the statement."""
    if rule.nano_usd_per_hour is not None:
        return literal_column(str(rule.nano_usd_per_hour), BigInteger)
    return literal_column(f"{_factor(rule):f}", Numeric)


def _applies(rule: AdjustmentRule, run: Any, day: ColumnElement[date]) -> ColumnElement[bool]:
    conditions = [
        run[name] == literal(value, String)
        for name in ("region", "os", "purchase")
        if (value := getattr(rule, name)) is not None
    ]
    if rule.size is not None:
        conditions.append(run.size_key.like(literal(glob_to_like(rule.size), String), escape="\\"))
    if rule.valid_from is not None:
        conditions.append(day >= literal_column(f"'{rule.valid_from.isoformat()}'", Date))
    if rule.valid_until is not None:
        conditions.append(day <= literal_column(f"'{rule.valid_until.isoformat()}'", Date))
    return and_(true(), *conditions)


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
    rival = [*(other[name] == run[name] for name in SERIES), known_on(other, day, known_at)]
    is_offer: ColumnElement[bool] = true()
    if spot_since is not None:
        rival.append(or_(other.purchase != "spot", other.approximate_date.is_(False)))  # whatever its age
        recent = and_(run.approximate_date.is_(False), last_observed(run, day, known_at) >= spot_since)
        is_offer = or_(run.purchase != "spot", recent)
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
        is_offer,
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
