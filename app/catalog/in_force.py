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
from math import ceil, prod

from app.catalog.names import glob_to_like
from app.catalog.purchases import AdjustmentRule
from app.catalog.statements import Statement
from app.db.dialects import Dialect, Step, all_of, any_of, columns_of, quote
from app.db.statements import BoundStatement, Reader, fetch

MAX_RULES = 200
"""The most rules a catalog can have: each is a condition of every statement that computes prices."""

BASIS_POINTS = 10_000
"""Hundredths of a percent in the whole."""

_RESET = "\x1f"
"""What stands before the name of a rule with a fixed price, which makes the rules before it count no more."""


Rules = tuple[AdjustmentRule, ...]
RULE_COLUMNS = tuple(AdjustmentRule.__dataclass_fields__)


def load_rules(reader: Reader) -> Rules:
    """Load the rules in the order in which they apply."""
    rows = fetch(reader, BoundStatement(_RULES))
    return tuple(AdjustmentRule(**dict(zip(RULE_COLUMNS, row, strict=True))) for row in rows)


_RULES = Statement(f"select {', '.join(RULE_COLUMNS)} from adjustment order by source_id, position")


def adjusted_nano_usd(sql: Dialect, run: str, day: str, rules: Rules) -> str:
    """Write what is paid an hour on a day for the price of a run, in nano-dollars."""
    nano = f"{run}.nano_usd_per_hour"
    return sql.adjusted_nano(nano, [_step(rule, run, day) for rule in rules]) if rules else nano


def adjustment_json(sql: Dialect, run: str, day: str, rules: Rules) -> str:
    """Write `{"list_usd_per_hour":4.0,"rules":["EA discount"]}`, or null where no rule applies.

    A rule that a later fixed price replaces is not named.
    """
    if not rules:
        return "cast(null as text)"
    named = (f"case when {_applies(rule, run, day)} then {quote(_named(rule))} else '' end" for rule in rules)
    names = sql.after_last(" || ".join(named), quote(_RESET))
    usd = sql.json_number(f"cast({sql.usd_of(f'{run}.nano_usd_per_hour')} as double precision)")
    text = f"""'{{"list_usd_per_hour":' || {usd} || ',"rules":[' || substr({names}, 2) || ']}}'"""
    return f"case when {names} <> '' then {text} end"


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

    def names(self, region: str) -> list[str]:
        """Write the conditions that a region is one of those that rules name, of which one must hold."""
        return [f"{region} = {quote(code)}" for code in self.regions]

    def levels(self, size: str, day: str) -> str:
        """Write the condition that all prices of a size, a row with `size_key`, are the same on a day."""
        anywhere = (replace(rule, os=None, purchase=None) for rule in self.levelling)
        return any_of(*(_applies(rule, size, day) for rule in anywhere))


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


def _step(rule: AdjustmentRule, run: str, day: str) -> Step:
    if rule.nano_usd_per_hour is not None:
        return Step(_applies(rule, run, day), "=", f"{rule.nano_usd_per_hour}")
    return Step(_applies(rule, run, day), "*", f"{_factor(rule):f}")


def _applies(rule: AdjustmentRule, run: str, day: str) -> str:
    conditions = [
        f"{run}.{name} = {quote(value)}"
        for name in ("region", "os", "purchase")
        if (value := getattr(rule, name)) is not None
    ]
    if rule.size is not None:
        conditions.append(f"{run}.size_key like {quote(glob_to_like(rule.size))} escape '\\'")
    if rule.valid_from is not None:
        conditions.append(f"{day} >= '{rule.valid_from.isoformat()}'")
    if rule.valid_until is not None:
        conditions.append(f"{day} <= '{rule.valid_until.isoformat()}'")
    return all_of(*conditions)


SERIES = ("size_key", "region", "os", "purchase")
"""The columns of one offer, whose prices follow one another."""

LIST_GROUP = ("source_id", "region", "os", "purchase")
"""The columns that a complete list is for."""

MISSING_LISTS = 3
"""A price is no longer in force once this many complete lists of its source in a row lack it."""

MAX_SPOT_AGE_DAYS = 366
"""A spot price changes from month to month: one that is older is history and no offer."""

KnownDay = str | None
"""The day as known on which prices are looked for, as SQL; None for all that is known now."""

EVER_KNOWN = date.max
"""The day as known on which everything is known that ever was ingested."""


def earliest_spot_day(day: date) -> date:
    """Return the earliest day whose spot prices are still offers on the day."""
    return date.fromordinal(max(day.toordinal() - MAX_SPOT_AGE_DAYS, 1))


def usd_per_hour(sql: Dialect, run: str, day: str, rules: Rules) -> str:
    """Write what is paid on a day for the price of a run, in US dollars; without rules its list price."""
    return sql.usd_of(adjusted_nano_usd(sql, run, day, rules))


def known_on(run: str, day: str, known_at: KnownDay) -> str:
    """Write the condition that a run had begun by a day, as known on another."""
    return f"{run}.valid_from <= {day}{_known_by(run, known_at)}"


def _known_by(row: str, known_at: KnownDay) -> str:
    return "" if known_at is None else f" and {row}.known_from <= {known_at}"


def _lists_of(run: str, day: str, known_at: KnownDay) -> str:
    """Write from which complete lists, the newest first, a run could be in: what follows a selection of `listed`."""
    same = " and ".join(f"listed.{name} = {run}.{name}" for name in LIST_GROUP)
    return f"from price_list as listed where {same} and listed.day <= {day}{_known_by('listed', known_at)}"


def last_observed(run: str, day: str, known_at: KnownDay) -> str:
    """Write the last day up to `day` on which the price of a run is known to have been observed."""
    observed = f"""select listed.day {_lists_of(run, day, known_at)}
        and listed.day > {run}.valid_from and listed.day <= {run}.seen_until order by listed.day desc limit 1"""
    return f"""case when {run}.seen_until = {run}.valid_from then {run}.valid_from
        else coalesce(({observed}), {run}.valid_from) end"""


def is_in_force(run: str, day: str, known_at: KnownDay, spot_since: str | None = None) -> str:
    """Write the condition that a run is in force.

    With `spot_since` only prices that are offers count: a spot price must have an exact date, not before that day.
    """
    same = " and ".join(f"other.{name} = {run}.{name}" for name in SERIES)
    rival, is_offer = f"{same} and {known_on('other', day, known_at)}", "true"
    observed, of_other = last_observed(run, day, known_at), last_observed("other", day, known_at)
    if spot_since is not None:
        rival += " and (other.purchase <> 'spot' or other.approximate_date is false)"  # whatever its age
        is_offer = f"({run}.purchase <> 'spot' or {run}.approximate_date is false and {observed} >= {spot_since})"
    # A run that begins after this one ended was observed later, and one that ended before this one began was not: that
    # is known without looking at any list. Most runs overlap with themselves alone, which is known likewise. The last
    # row value compares what counts most first; where less is better, the two sides are swapped.
    # It is one condition, which PostgreSQL evaluates for each run. Two it turns into joins, which read all prices for
    # a page of 50, and lose the order of a sorted subquery (price_scope._first_in_force).
    return f"""{known_on(run, day, known_at)} and {is_offer} and not (
        exists (select 1 from price as other where {rival} and other.valid_from > {run}.seen_until)
        or exists (
            select 1 from price as other where {rival}
            and other.valid_from <= {run}.seen_until and other.seen_until >= {run}.valid_from
            and (other.valid_from, other.source_id, other.known_from)
                <> ({run}.valid_from, {run}.source_id, {run}.known_from)
            and ({of_other}, {run}.approximate_date, {run}.source_id, other.known_from, other.valid_from)
                > ({observed}, other.approximate_date, other.source_id, {run}.known_from, {run}.valid_from)
        )
    ) and {_is_listed(run, day, known_at)} and ({run}.ends_on is null or {run}.ends_on > {day})"""


def _is_listed(run: str, day: str, known_at: KnownDay) -> str:
    """Write the condition that fewer than MISSING_LISTS complete lists came since a run was last observed."""
    first_missing = f"""select listed.day {_lists_of(run, day, known_at)}
        order by listed.day desc limit 1 offset {MISSING_LISTS - 1}"""
    # Most sources have no complete lists: one set settles them, without reading the lists for each run.
    return f"""({run}.source_id not in (select source_id from price_list)
        or coalesce(({first_missing}), {run}.valid_from)
            <= coalesce({run}.listed_until, {last_observed(run, day, known_at)}))"""


def prices_in_force(
    sql: Dialect, day: str, known_at: KnownDay, spot_since: str, *conditions: str, rules: Rules, beside: str = ""
) -> str:
    """Write a query of the prices that are offers on a day: SERIES, usd_per_hour, as_of, approximate_date, marks.

    `as_of` is the last day up to `day` on which the price was observed; a price with a `formula` is computed from
    others, and no list states it. Conditions are on columns of `price`, and of what is selected `beside` it. Prices are
    those that are paid by the rules of that day.
    """
    return f"""select {columns_of("price", SERIES)}, {usd_per_hour(sql, "price", day, rules)} as usd_per_hour,
        {last_observed("price", day, known_at)} as as_of, price.approximate_date,
        {adjustment_json(sql, "price", day, rules)} as adjustment, price.median_nano_usd, price.disputed,
        (select formula from source where source.id = price.source_id) as formula
        from price{beside and f", {beside}"}
        where {" and ".join((is_in_force("price", day, known_at, spot_since), *conditions))}"""
