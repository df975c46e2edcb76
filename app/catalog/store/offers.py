"""Derives offers and size documents at each ingest, so that lists are read from an index without joining prices.

Only dirty sizes are derived again where possible: those whose row, prices or source URL changed, and those with a price
that came into force or expired since the last ingest.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from datetime import date
from functools import cache
from typing import Any

from sqlalchemy import (
    Boolean,
    Column,
    ColumnElement,
    Date,
    Double,
    MetaData,
    Select,
    Table,
    and_,
    delete,
    exists,
    func,
    insert,
    literal,
    null,
    or_,
    select,
    true,
    union_all,
)
from sqlalchemy.orm import Session

from app.catalog.adjustments import load_rules
from app.catalog.column_types import BYTEWISE, table_of
from app.catalog.in_force import EVER_KNOWN, earliest_spot_day, prices_in_force
from app.catalog.models import CompleteList, Offer, Price, PriceTotal, Size, SizeJson, Source
from app.catalog.projections import (
    COPIED_SIZE_COLUMNS,
    PRICE_COLUMNS,
    RANK_COLUMNS,
    UNKNOWN_PRICE_RANK,
    cheapest_offers,
    memory_bucket_sql,
    offer_json,
    side_by_side,
    size_json,
    unit_prices,
)
from app.catalog.purchases import ANY_REGION, PURCHASE_MODELS
from app.catalog.store.bulk import (
    drop_unchanged,
    execute_count,
    same_key,
    staging_table,
    temporary_tables,
    upsert_staged,
    without_indexes,
)
from app.catalog.store.changes import collect_changed_offers, collect_lost_offers
from app.catalog.store.price_days import save_price_days
from app.catalog.store.price_totals import Group, save_price_totals
from app.catalog.store.prices import OPERATING_SYSTEMS
from app.catalog.store.upsert import TableChange, save_rows

_BATCH_SIZE = 1_000

DIRTY_SIZES = Table(
    "dirty_size",
    MetaData(),
    Column("size_key", BYTEWISE, primary_key=True),
    Column("row_changed", Boolean, nullable=False),
    prefixes=["temporary"],
)
"""The sizes to derive offers of; where `row_changed`, the size document, too."""

_PRICE_GROUP = ("size_key", "os", "region")
_KEY = ("region", "os", "size_key")
"""The unique key of an offer; the primary key of its table has the rank, too, only for the order of rows."""

_UNRANKED = literal(UNKNOWN_PRICE_RANK, Double)

_OFFER = table_of(Offer)
_OFFERS = staging_table(_OFFER, _KEY)
_CURRENT_PRICES = Table(
    "current_price",
    MetaData(),
    *(Column(name, table_of(Price).c[name].type, primary_key=True) for name in _PRICE_GROUP),
    *(Column(name, _OFFER.c[name].type) for name in PRICE_COLUMNS),
    prefixes=["temporary"],
    sqlite_with_rowid=False,
)
"""The prices in force, in an order in which the cheapest region of each size and system is found without a sort."""


def mark_dirty(session: Session, sizes: Select[Any], *, row_changed: bool = False) -> None:
    """Mark the sizes of a query as dirty; those that are marked already keep their `row_changed`."""
    keys = sizes.distinct().subquery()
    key = next(iter(keys.c))
    new = select(key, literal(row_changed)).where(~exists().where(DIRTY_SIZES.c.size_key == key))
    session.execute(insert(DIRTY_SIZES).from_select(["size_key", "row_changed"], new))


def mark_changed_rows(session: Session, keys: Iterable[str], sources: Iterable[str]) -> None:
    """Mark the sizes of these keys, and those that cite one of these sources, as dirty with a changed row."""
    rows = [{"size_key": key, "row_changed": True} for key in keys]
    if rows:
        session.execute(insert(DIRTY_SIZES), rows)
    size = table_of(Size).c
    mark_dirty(session, select(size.key).where(size.source_id.in_(list(sources))), row_changed=True)


def sizes_newly_priced(after: date, until: date) -> Select[Any]:
    """Select the sizes whose prices in force may be others on one day than on an earlier one."""
    price, lists = table_of(Price).c, table_of(CompleteList).c
    newer = select(lists.source_id).where(lists.day > after, lists.day <= until)
    begun = and_(price.seen_until > after, price.valid_from <= until)
    return select(price.size_key).where(or_(begun, price.source_id.in_(newer)))


def sizes_with_expired_spot(after: date, until: date) -> Select[Any]:
    """Select the sizes with a spot price that was an offer on one day and is too old to be one on another."""
    price = table_of(Price).c
    expired = (price.seen_until >= earliest_spot_day(after), price.seen_until < earliest_spot_day(until))
    return select(price.size_key).where(price.purchase == "spot", *expired)


def is_derived(session: Session) -> bool:
    """Check whether every size has a document and there are offers and totals; some migrations empty these tables."""
    size, doc = (select(func.count()).select_from(table_of(model)).scalar_subquery() for model in (Size, SizeJson))
    offered, priced, counted = (
        exists(select(table_of(model).c.region)).label(model.__name__) for model in (Offer, Price, PriceTotal)
    )
    sizes, docs, has_offers, has_prices, has_totals = session.execute(select(size, doc, offered, priced, counted)).one()
    return bool(sizes == docs and (has_offers or not sizes) and has_totals == has_prices)


def in_scope(column: ColumnElement[str], *, dirty_only: bool) -> ColumnElement[bool]:
    """Build the condition that a size is dirty; without `dirty_only` it holds for every size."""
    return column.in_(select(DIRTY_SIZES.c.size_key)) if dirty_only else true()


def save_derived(
    session: Session,
    today: date,
    *,
    dirty_only: bool = False,
    price_groups: Sequence[Group] = (),
    price_sources: Sequence[str] = (),
    may_remove: bool = False,
    collect: bool = False,
) -> TableChange:
    """Derive offers as of `today`, size documents, totals and days of prices; write those that differ.

    Returns the change of offers. With `dirty_only`, only those of DIRTY_SIZES, totals of `price_groups` and days of
    `price_sources`; else of all sizes and prices. `may_remove` says that a dirty size may have lost an offer; without
    it no outdated offers are searched for. With `collect`, offers whose prices change go to CHANGED_OFFERS.
    """
    _save_size_docs(session, dirty_only=dirty_only)
    save_price_totals(session, price_groups if dirty_only else None)
    save_price_days(session, price_sources if dirty_only else None)
    offer = _OFFER
    with temporary_tables(session, _OFFERS):
        _derive_offers(session, today, dirty_only=dirty_only)
        outdated = and_(
            ~exists().where(same_key(offer, _OFFERS, _KEY)), in_scope(offer.c.size_key, dirty_only=dirty_only)
        )
        removed = 0
        if may_remove or not dirty_only:
            if collect:
                collect_lost_offers(session, outdated)
            removed = execute_count(session, delete(offer).where(outdated))
        unchanged = drop_unchanged(session, _OFFERS, offer, _KEY)
        if collect:
            collect_changed_offers(session, _OFFERS)
        known = select(func.count()).select_from(_OFFERS.join(offer, same_key(_OFFERS, offer, _KEY)))
        changed: int = session.execute(known).scalar_one()
        with without_indexes(session, offer) if _is_mostly_new(session) else nullcontext():
            written = upsert_staged(session, _OFFERS, offer, _KEY)
    return TableChange(written - changed, changed, unchanged, removed)


def _is_mostly_new(session: Session) -> bool:
    """Check whether more offers are staged than stored."""
    staged, stored = (select(func.count()).select_from(table).scalar_subquery() for table in (_OFFERS, _OFFER))
    return bool(session.execute(select(staged > stored)).scalar_one())


def _save_size_docs(session: Session, *, dirty_only: bool) -> None:
    """Write the documents of all sizes, or of the dirty ones whose row changed."""
    size, source = table_of(Size), table_of(Source)
    some = size.c.key.in_(select(DIRTY_SIZES.c.size_key).where(DIRTY_SIZES.c.row_changed)) if dirty_only else true()
    query = select(*size.columns, source.c.url.label("source_url")).join_from(size, source, isouter=True).where(some)
    result = session.execute(query, execution_options={"yield_per": _BATCH_SIZE})
    for rows in result.mappings().partitions():
        docs = ({"size_key": row["key"], "doc": size_json(dict(row), row["source_url"])} for row in rows)
        save_rows(session, SizeJson, docs)


def _derive_offers(session: Session, today: date, *, dirty_only: bool) -> None:
    """Stage the offers: those of each region with any price, and those in the cheapest region by purchase model."""
    with temporary_tables(session, _CURRENT_PRICES):
        current = _current_prices(session, today, dirty_only=dirty_only)
        session.execute(insert(_CURRENT_PRICES).from_select(current.selected_columns.keys(), current))
        for offers in (
            _regional_offers(),
            *(_cheapest_offers(purchase) for purchase in PURCHASE_MODELS),
            *(_unpriced_offers(purchase, dirty_only=dirty_only) for purchase in PURCHASE_MODELS),
        ):
            session.execute(insert(_OFFERS).from_select(_OFFERS.c.keys(), offers))


@cache
def _regional_offers() -> Select[Any]:
    """Select the offers of each region and system that has a price."""
    size = table_of(Size)
    return _select_offers(_priced_values()).join_from(_CURRENT_PRICES, size, size.c.key == _CURRENT_PRICES.c.size_key)


@cache
def _cheapest_offers(purchase: str) -> Select[Any]:
    """Select the cheapest regional offer of each size and system, as its offer in any region."""
    size, values = table_of(Size), _priced_values() | {"region": literal(ANY_REGION[purchase])}
    if purchase != "on_demand":
        values["doc"] = null()
    best = cheapest_offers(_CURRENT_PRICES, purchase, ("size_key", "os"), columns=_PRICE_GROUP)
    cheapest = best.join(_CURRENT_PRICES, same_key(best, _CURRENT_PRICES, _PRICE_GROUP))
    return _select_offers(values).join_from(cheapest, size, size.c.key == _CURRENT_PRICES.c.size_key)


def _priced_values() -> dict[str, Any]:
    """Build the columns of an offer from prices in force and the row of the size."""
    prices = _CURRENT_PRICES.c
    values: dict[str, Any] = {
        **{name: prices[name] for name in (*_PRICE_GROUP, *PRICE_COLUMNS)},
        "priced_in": prices.region,
        **_copied_columns(),
        **{name: value for purchase in PURCHASE_MODELS for name, value in unit_prices(prices, purchase).items()},
    }
    return values | {"doc": offer_json(values, "on_demand")}


def _copied_columns() -> dict[str, ColumnElement[Any]]:
    size = table_of(Size).c
    copied: dict[str, ColumnElement[Any]] = {name: size[name] for name in COPIED_SIZE_COLUMNS}
    return copied | {"gpu_octave": memory_bucket_sql(size.gpu_memory_gib)}


@cache
def _unpriced_offers(purchase: str, *, dirty_only: bool) -> Select[Any]:
    """Select an offer without a price for each size and system that has none in any region."""
    size = table_of(Size)
    system = union_all(*(select(literal(os).label("os")) for os in OPERATING_SYSTEMS)).subquery().c.os
    prices = _CURRENT_PRICES.c
    priced = exists().where(prices.size_key == size.c.key, prices.os == system).correlate(size, system.table)
    values = {
        **dict.fromkeys(_OFFERS.c.keys(), null()),
        **dict.fromkeys(RANK_COLUMNS, _UNRANKED),
        **_copied_columns(),
        "region": literal(ANY_REGION[purchase]),
        "os": system,
        "size_key": size.c.key,
    }
    return (
        _select_offers(values)
        .join_from(size, system.table, literal(value=True))
        .where(~priced, in_scope(size.c.key, dirty_only=dirty_only))
    )


def _select_offers(values: Mapping[str, Any]) -> Select[Any]:
    """Select these values in the order of the columns of an offer."""
    return select(*(values[name] for name in _OFFERS.c.keys()))  # noqa: SIM118  # a collection of columns is no mapping


def _current_prices(session: Session, today: date, *, dirty_only: bool) -> Select[Any]:
    """Select the prices that are offers today: per size, region and system, those of each purchase model."""
    rules = load_rules(session)
    day, known, spot_since = (literal(each, Date) for each in (today, EVER_KNOWN, earliest_spot_day(today)))
    of_sizes = in_scope(table_of(Price).c.size_key, dirty_only=dirty_only)
    return side_by_side(prices_in_force(day, known, spot_since, of_sizes, rules=rules), adjusted=bool(rules))
