"""Counts the prices of each region, system and purchase model at ingest: the totals of lists of prices.

Only the groups that an ingest may have changed are counted again.
"""

from collections.abc import Sequence
from datetime import date
from typing import Any

from sqlalchemy import CompoundSelect, Date, case, delete, func, insert, literal, select, true, tuple_, union
from sqlalchemy.orm import Session

from app.catalog.column_types import table_of
from app.catalog.in_force import EVER_KNOWN, LIST, PRICE, is_in_force
from app.catalog.models import PriceTotal
from app.catalog.store.bulk import same_key
from app.catalog.store.price_runs import STAGED_LIST
from app.catalog.store.prices import STAGED_PRICE
from app.catalog.store.retract import DROPPED_PRICES

TOTAL = table_of(PriceTotal)
PRICE_GROUP = ("region", "os", "purchase")
"""The columns that prices are counted by: no price in force depends on one of another group."""

Group = tuple[str, str, str]


def save_price_totals(session: Session, today: date, groups: Sequence[Group] | None = None) -> None:
    """Count the prices of all groups, or of some, as they are on a day."""
    if groups is not None and not groups:
        return
    some = true() if groups is None else tuple_(*(PRICE.c[name] for name in PRICE_GROUP)).in_(groups)
    stored = true() if groups is None else tuple_(*(TOTAL.c[name] for name in PRICE_GROUP)).in_(groups)
    session.execute(delete(TOTAL).where(stored))
    day, known = literal(today, Date), literal(EVER_KNOWN, Date)
    group = [PRICE.c[name] for name in PRICE_GROUP]
    begun = PRICE.c.valid_from <= day
    all_runs = (
        select(
            *group,
            func.max(PRICE.c.valid_from).filter(begun).label("since"),
            func.min(PRICE.c.valid_from).filter(~begun).label("until"),
            func.count().filter(begun).label("begun"),
        )
        .where(some)
        .group_by(*group)
        .subquery("every_run")
    )
    in_force = (
        select(*group, func.count().label("number"))
        .where(is_in_force(PRICE.c, day, known), some)
        .group_by(*group)
        .subquery("run_in_force")
    )
    came = LIST.c.day <= day
    lists = (
        select(
            *(LIST.c[name] for name in PRICE_GROUP),
            func.max(LIST.c.day).filter(came).label("since"),
            func.min(LIST.c.day).filter(~came).label("until"),
        )
        .group_by(*(LIST.c[name] for name in PRICE_GROUP))
        .subquery("list_of_group")
    )
    later = lists.c.since > func.coalesce(all_runs.c.since, date.min, type_=Date)
    earlier = lists.c.until < func.coalesce(all_runs.c.until, date.max, type_=Date)
    values: dict[str, Any] = {
        **{name: all_runs.c[name] for name in PRICE_GROUP},
        "since": case((later, lists.c.since), else_=all_runs.c.since),
        "until": case((earlier, lists.c.until), else_=all_runs.c.until),
        "in_force": func.coalesce(in_force.c.number, 0),
        "begun": all_runs.c.begun,
    }
    joined = all_runs.outerjoin(in_force, same_key(all_runs, in_force, PRICE_GROUP)).outerjoin(
        lists, same_key(all_runs, lists, PRICE_GROUP)
    )
    session.execute(insert(TOTAL).from_select([*values], select(*values.values()).select_from(joined)))


def changed_groups(session: Session, today: date, *, read_prices: bool) -> list[Group]:
    """Return the groups whose numbers may be others than at the last ingest, on an earlier day or today.

    `read_prices` says that this ingest changed prices or lists of prices.
    """
    tables = (STAGED_PRICE, STAGED_LIST, DROPPED_PRICES) if read_prices else ()
    outdated = select(*(TOTAL.c[name] for name in PRICE_GROUP)).where(TOTAL.c.until <= literal(today, Date))
    staged = [select(*(table.c[name] for name in PRICE_GROUP)) for table in tables]
    query: CompoundSelect[Any] = union(outdated, *staged)
    return [(region, os, purchase) for region, os, purchase in session.execute(query)]
