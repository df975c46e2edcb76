"""Writes what an ingest changed as events: prices in force, sizes, their accepted values, and disputes about them.

Events compare the catalog before an ingest with the catalog after it. Prices are compared where offers are written,
since they are many: the offers whose prices differ, or that are deleted, are collected in CHANGED_OFFERS.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from functools import cache
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    Double,
    FromClause,
    Insert,
    RowMapping,
    Table,
    and_,
    exists,
    func,
    insert,
    literal,
    or_,
    select,
    union_all,
)
from sqlalchemy.orm import Session

from app.catalog.column_types import BYTEWISE, table_of
from app.catalog.fields import CHANGE_FIELDS
from app.catalog.in_force import SERIES, earliest_spot_day, is_in_force
from app.catalog.models import Change, Fact, Offer, PriceTotal, PriceTracking, Revision, Size
from app.catalog.projections import RANK_COLUMNS, UNKNOWN_PRICE_RANK
from app.catalog.purchases import PURCHASE_MODELS
from app.catalog.statements import cached_statement
from app.catalog.store.upsert import count_rows, execute_sql, in_batches, same_key, temporary_table
from app.db.dialects import Dialect, columns_of
from app.db.statements import ALL_ROWS

CHANGE, SIZE, OFFER, TRACKING = table_of(Change), table_of(Size), table_of(Offer), table_of(PriceTracking)
TOTAL = table_of(PriceTotal)
_KEY = ("size_key", "region", "os")
_UNRANKED = literal(UNKNOWN_PRICE_RANK, Double)

CHANGED_OFFERS = temporary_table(
    "changed_offer",
    *(Column(name, BYTEWISE, primary_key=True) for name in _KEY),
    *(Column(f"{state}_{rank}", Double, nullable=False) for state in ("old", "new") for rank in RANK_COLUMNS),
)
"""The offers of regions whose prices this ingest changes, with the ranks before and after it."""

PREVIOUS_SIZES = temporary_table(
    "previous_size",
    *(Column(column.name, column.type, primary_key=column.primary_key) for column in SIZE.columns),
)
"""The sizes as they were before this ingest."""

CHANGE_TABLES = (CHANGED_OFFERS, PREVIOUS_SIZES)
_ANY_CHANGED = select(exists(select(CHANGED_OFFERS.c.size_key)))

Event = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Dispute:
    """A value that a source states for a field of a size, and that is not accepted."""

    size_key: str
    field: str
    source_id: str
    value: str


@dataclass(frozen=True, slots=True)
class CatalogBefore:
    """What is compared, besides CHANGE_TABLES, after an ingest: the disputes before it, and the revision it makes."""

    revision: int
    disputes: frozenset[Dispute]


# Before


def start_tracking(session: Session) -> CatalogBefore:
    """Remember what an ingest may change; CHANGE_TABLES must be there."""
    session.execute(insert(PREVIOUS_SIZES).from_select(PREVIOUS_SIZES.c.keys(), select(*SIZE.columns)))
    newest = session.execute(select(func.max(table_of(Revision).c.number))).scalar_one() or 0
    return CatalogBefore(revision=newest + 1, disputes=frozenset(_load_disputes(session)))


def collect_lost_offers(session: Session, condition: ColumnElement[bool]) -> None:
    """Collect the offers that are about to be deleted."""
    after = dict.fromkeys(RANK_COLUMNS, _UNRANKED)
    _collect(session, OFFER.c, _ranks(OFFER), after, select_from=OFFER, condition=condition)


def collect_changed_offers(session: Session, staged: Table) -> None:
    """Collect the offers that are about to be written, where their prices differ from the stored ones.

    Those of regions without tracked prices would make no event.
    """
    before, after = _ranks(OFFER), _ranks(staged)
    differs = or_(*(after[rank] != before[rank] for rank in RANK_COLUMNS))
    tracked = exists().where(TRACKING.c.region == staged.c.region, TRACKING.c.os == staged.c.os)
    joined = staged.outerjoin(OFFER, same_key(staged, OFFER, _KEY))
    condition = and_(differs, or_(OFFER.c.size_key.is_not(None), tracked))
    _collect(session, staged.c, before, after, select_from=joined, condition=condition)


def _ranks(offers: Table) -> dict[str, ColumnElement[float]]:
    """Return the prices of offers by the names of RANK_COLUMNS; infinity where one is unknown, or there is no offer."""
    return {rank: func.coalesce(offers.c[rank], _UNRANKED) for rank in RANK_COLUMNS}


def _collect(
    session: Session, key: Any, before: Any, after: Any, *, select_from: FromClause, condition: ColumnElement[bool]
) -> None:
    ranks = [state[rank] for state in (before, after) for rank in RANK_COLUMNS]
    of_regions = key.priced_in == key.region
    rows = select(*(key[name] for name in _KEY), *ranks).select_from(select_from).where(of_regions, condition)
    session.execute(insert(CHANGED_OFFERS).from_select(CHANGED_OFFERS.c.keys(), rows))


# After


def save_changes(session: Session, before: CatalogBefore, today: date) -> int:
    """Write the events of an ingest; return how many they are. Prices are those in force on `today`."""
    first = (session.execute(select(func.max(CHANGE.c.id))).scalar_one() or 0) + 1
    events = [*_size_events(session), *_dispute_events(session, before)]
    empty = dict.fromkeys(CHANGE.c.keys()) | {"revision": before.revision}
    rows = [empty | {"id": number} | event for number, event in enumerate(events, first)]
    for batch in in_batches(rows):
        session.execute(insert(CHANGE), batch)
    return len(rows) + _save_price_events(session, before.revision, today, first + len(rows))


@cache
def insert_tracking() -> Insert:
    """Build the statement that notes which regions, systems and purchase models have prices: further ones are new.

    Only of what has totals of prices, which are few rows, offers are looked for.
    """
    group = [TOTAL.c[column.name] for column in TRACKING.columns]
    counted = select(*group).where(~exists().where(same_key(TRACKING, TOTAL, TRACKING.c.keys()))).distinct().subquery()
    new = []
    for purchase in PURCHASE_MODELS:
        offered = exists().where(
            same_key(OFFER, counted, ("region", "os")), OFFER.c[f"{purchase}_rank_usd"] < _UNRANKED
        )
        new.append(select(*counted.c).where(counted.c.purchase == literal(purchase), offered))
    return insert(TRACKING).from_select(TRACKING.c.keys(), union_all(*new))


# Sizes


def _size_events(session: Session) -> Iterator[Event]:
    old, new, fact = PREVIOUS_SIZES, SIZE, table_of(Fact).c
    same = same_key(old, new, ("key",))
    for kind, table in (("size_new", new), ("size_gone", old)):
        query = select(table.c.key, table.c.name).where(~exists().where(same).correlate(table)).order_by(table.c.key)
        for row in session.execute(query):
            yield {"kind": kind, "size_key": row.key, "size": row.name}
    differs = or_(*(old.c[name].is_distinct_from(new.c[name]) for name in CHANGE_FIELDS.values()))
    keys = select(new.c.key).join_from(old, new, same).where(differs).order_by(new.c.key)
    for batch in in_batches(session.execute(keys).scalars().all()):
        rows_before, rows_after = (
            {row["key"]: row for row in session.execute(select(table).where(table.c.key.in_(batch))).mappings()}
            for table in (old, new)
        )
        accepted = (fact.kind == "size", fact.verdict == "accepted", fact.subject.in_(batch))
        stated = session.execute(select(fact.subject, fact.field, fact.source_id).where(*accepted))
        sources = {(row.subject, row.field): row.source_id for row in stated}
        for key in batch:
            yield from _field_events(rows_before[key], rows_after[key], sources)


def _field_events(old: RowMapping, new: RowMapping, sources: Mapping[tuple[str, str], str]) -> Iterator[Event]:
    """Yield the fields that differ; `sources` are those of accepted values, by the key of the size and the field."""
    for field in CHANGE_FIELDS:
        before, after = _value_text(field, old), _value_text(field, new)
        if before != after:
            announced = field == "retirement_date" and after is not None
            yield {
                "kind": "retirement_announced" if announced else "field_changed",
                "size_key": new["key"],
                "size": new["name"],
                "field": field,
                "old": before,
                "new": after,
                "source_id": sources.get((new["key"], field)),
            }


def _value_text(field: str, row: RowMapping) -> str | None:
    """Return a value of a size as facts write it: `1/6`, `27.5`, `true`, `2026-09-30`; None where it is unknown."""
    value = row[CHANGE_FIELDS[field]]
    if value is None:
        return None
    if field == "gpu_count" and row["gpu_count_denominator"]:
        return str(Fraction(row["gpu_count_numerator"], row["gpu_count_denominator"]))
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value).removesuffix(".0") if isinstance(value, float) else str(value)


# Disputes


def _load_disputes(session: Session) -> Iterator[Dispute]:
    fact = table_of(Fact).c
    value = func.coalesce(fact.corrected_value, fact.value)
    disputed = (fact.verdict == "disputed", fact.kind == "size")
    for row in session.execute(select(fact.subject, fact.field, fact.source_id, value).where(*disputed)):
        yield Dispute(*row)


def _dispute_events(session: Session, before: CatalogBefore) -> Iterator[Event]:
    """Yield the disputes that began and ended; those of sizes that are new or gone are left out."""
    disputes = frozenset(_load_disputes(session))
    both = select(SIZE.c.key, SIZE.c.name).join_from(SIZE, PREVIOUS_SIZES, same_key(SIZE, PREVIOUS_SIZES, ("key",)))
    for kind, state, disputed in (
        ("dispute_closed", "old", before.disputes - disputes),
        ("dispute_opened", "new", disputes - before.disputes),
    ):
        names: dict[str, str] = {}
        for batch in in_batches(sorted({dispute.size_key for dispute in disputed})):
            names |= {row.key: row.name for row in session.execute(both.where(SIZE.c.key.in_(batch)))}
        for dispute in sorted(disputed, key=lambda item: (item.size_key, item.field, item.source_id)):
            if dispute.size_key in names:
                yield {
                    "kind": kind,
                    "size_key": dispute.size_key,
                    "size": names[dispute.size_key],
                    "field": dispute.field,
                    state: dispute.value,
                    "source_id": dispute.source_id,
                }


# Prices


def _save_price_events(session: Session, revision: int, today: date, first: int) -> int:
    """Write the events of CHANGED_OFFERS, with the source of each new price and the day from which it holds."""
    if not session.execute(_ANY_CHANGED).scalar_one():
        return 0
    count_rows(session, CHANGED_OFFERS)
    days = {"day": today.isoformat(), "spot_since": earliest_spot_day(today).isoformat()}
    return execute_sql(session, _insert_price_events(), days | {"revision": revision, "before": first - 1})


@cached_statement(1)
def _insert_price_events(sql: Dialect) -> str:
    """Write the statement of the events; the first prices that a region has by a purchase model are none."""
    infinity, series = sql.infinity, ", ".join(SERIES)
    changed = " union all ".join(
        f"""select size_key, region, os, '{purchase}' as purchase,
            old_{purchase}_rank_usd as old, new_{purchase}_rank_usd as new
        from changed_offer as offer
        where old_{purchase}_rank_usd <> new_{purchase}_rank_usd and (
            old_{purchase}_rank_usd < {infinity} or exists (
                select 1 from price_tracking as tracked
                where tracked.region = offer.region and tracked.os = offer.os and tracked.purchase = '{purchase}'
            )
        )"""
        for purchase in PURCHASE_MODELS
    )
    in_force = is_in_force("price", sql.day("day"), None, sql.day("spot_since"))
    percent = sql.exact_ratio("changed.new - changed.old", "100.0", "changed.old")
    return f"""insert into change
        (id, revision, kind, size, {series}, field, old, new, percent, valid_from, source_id)
        select :before + row_number() over (order by {columns_of("changed", SERIES)}), cast(:revision as integer),
            case when changed.old = {infinity} then 'price_new' when changed.new = {infinity} then 'price_gone'
            when changed.new > changed.old then 'price_up' else 'price_down' end,
            coalesce(size.name, previous_size.name), {columns_of("changed", SERIES)}, cast(null as text),
            case when changed.old < {infinity} then {sql.usd_text("changed.old")} end,
            case when changed.new < {infinity} then {sql.usd_text("changed.new")} end,
            case when changed.old < {infinity} and changed.new < {infinity} then {percent} end,
            price.valid_from, price.source_id
        from (select * from ({changed}) as changed limit {ALL_ROWS}) as changed
        left join size on size.key = changed.size_key
        left join previous_size on previous_size.key = changed.size_key
        left join price on {" and ".join(f"price.{name} = changed.{name}" for name in SERIES)}
            and {in_force} and changed.new < {infinity}"""
