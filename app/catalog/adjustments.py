"""The rules by which the reader's own prices differ from list prices, as SQL: the one definition of what is paid.

Rules apply in their order: a discount to what the rules before it left, a fixed price in the place of it. The result
is exact and rounded once, to a billionth of a dollar, half away from zero. An unknown price stays unknown.
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
    Numeric,
    String,
    and_,
    case,
    cast,
    false,
    func,
    literal,
    literal_column,
    or_,
    select,
    true,
)
from sqlalchemy.orm import Session

from app.catalog.column_types import table_of
from app.catalog.models import Adjustment
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
