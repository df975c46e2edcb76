"""Derives offers and size documents at each ingest, so that lists are read from an index without joining prices.

Only dirty sizes are derived again where possible: those whose row, prices or source URL changed, and those with a price
that came into force or expired since the last ingest.
"""

from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from datetime import date
from functools import cache
from typing import Any

from sqlalchemy import (
    Boolean,
    Column,
    ColumnElement,
    Delete,
    FromClause,
    Insert,
    Select,
    and_,
    delete,
    exists,
    func,
    insert,
    literal,
    or_,
    select,
    true,
    tuple_,
    union_all,
)
from sqlalchemy.orm import Session

from app.catalog.column_types import BYTEWISE, table_of
from app.catalog.in_force import Rules, earliest_spot_day, load_rules, prices_in_force
from app.catalog.models import CompleteList, Offer, Price, PriceTotal, Region, Size, SizeJson, Source
from app.catalog.projections import (
    COPIED_SIZE_COLUMNS,
    PRICE_COLUMNS,
    RANK_COLUMNS,
    rank_usd,
    side_by_side,
    size_json,
    stored_rank,
)
from app.catalog.purchases import ANY_REGION, PURCHASE_MODELS
from app.catalog.statements import cached_statement
from app.catalog.store.changes import collect_changed_offers, collect_lost_offers
from app.catalog.store.price_totals import Group, save_price_days, save_price_totals
from app.catalog.store.prices import OPERATING_SYSTEMS
from app.catalog.store.upsert import (
    TableChange,
    columns_like,
    execute_count,
    execute_sql,
    same_key,
    save_rows,
    temporary_table,
    temporary_tables,
    without_indexes,
)
from app.db.dialects import Dialect

_BATCH_SIZE = 1_000

DIRTY_SIZES = temporary_table(
    "dirty_size",
    Column("size_key", BYTEWISE, primary_key=True),
    Column("row_changed", Boolean, nullable=False),
)
"""The sizes to derive offers of; where `row_changed`, the size document, too."""

_GROUP = ("size_key", "os", "region")
_KEY = ("region", "os", "size_key")


_OFFER, _SIZE = table_of(Offer), table_of(Size)
_STAGED = temporary_table(
    "staged_offer",
    *columns_like(_OFFER, _GROUP, primary_key=True),
    *columns_like(_OFFER, ("priced_in", *PRICE_COLUMNS)),
)
"""The offers that were derived, without what they repeat of the row of the size.

They are in an order in which the regions of each size and system are side by side.
"""

_LEAST = temporary_table(
    "least_price",
    *columns_like(_OFFER, ("size_key", "os"), primary_key=True),
    *columns_like(_OFFER, RANK_COLUMNS),
)
"""The least price of each size and system in any region, by purchase model."""

_FEW_SIZES = 100


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
    price_groups: Sequence[Group] | None = (),
    price_sources: Sequence[str] | None = (),
    may_remove: bool = False,
    collect: bool = False,
) -> TableChange:
    """Derive offers as of `today`, size documents, totals and days of prices; write those that differ.

    Returns the change of offers. With `dirty_only`, only those of DIRTY_SIZES, totals of `price_groups` and days of
    `price_sources`, None for all of them; else of all sizes and prices. `may_remove` says that a dirty size may have
    lost an offer; without it no outdated offers are searched for. With `collect`, offers whose prices change go to
    CHANGED_OFFERS.
    """
    _save_size_docs(session, dirty_only=dirty_only)
    save_price_totals(session, price_groups if dirty_only else None)
    save_price_days(session, price_sources if dirty_only else None)
    with temporary_tables(session, _STAGED, _LEAST):
        days = {"day": today.isoformat(), "spot_since": earliest_spot_day(today).isoformat()}
        execute_sql(session, _stage_regional_offers(load_rules(session), dirty_only=dirty_only), days)
        session.execute(_stage_least())
        execute_sql(session, _stage_cheapest_offers(dirty_only=dirty_only), {})
        removed = 0
        if may_remove or not dirty_only:
            outdated = and_(~exists().where(same_key(_OFFER, _STAGED, _KEY)), _stored_offers(session, dirty_only))
            if collect:
                collect_lost_offers(session, outdated)
            removed = execute_count(session, delete(_OFFER).where(outdated))
        unchanged = execute_count(session, _delete_unchanged())
        if collect:
            collect_changed_offers(session, _STAGED)
        change = _write_staged(session)
    return change + TableChange(unchanged=unchanged, removed=removed)


def _save_size_docs(session: Session, *, dirty_only: bool) -> None:
    """Write the documents of all sizes, or of the dirty ones whose row changed."""
    size, source = table_of(Size), table_of(Source)
    some = size.c.key.in_(select(DIRTY_SIZES.c.size_key).where(DIRTY_SIZES.c.row_changed)) if dirty_only else true()
    query = select(*size.columns, source.c.url.label("source_url")).join_from(size, source, isouter=True).where(some)
    result = session.execute(query, execution_options={"yield_per": _BATCH_SIZE})
    for rows in result.mappings().partitions():
        docs = ({"size_key": row["key"], "doc": size_json(dict(row), row["source_url"])} for row in rows)
        save_rows(session, SizeJson, docs)


# Offers


_STAGED_COLUMNS = (*_GROUP, "priced_in", *PRICE_COLUMNS)
_DIRTY = "in (select size_key from dirty_size)"


@cached_statement(4)
def _stage_regional_offers(sql: Dialect, rules: Rules, *, dirty_only: bool) -> str:
    """Write the statement that stages an offer for each region and system in which a size has a price today."""
    of_sizes = (f"price.size_key {_DIRTY}",) if dirty_only else ()
    in_force = prices_in_force(sql, sql.day("day"), None, sql.day("spot_since"), *of_sizes, rules=rules)
    offers = side_by_side(sql, in_force, adjusted=bool(rules))
    names = ", ".join(PRICE_COLUMNS)
    return f"""insert into staged_offer (size_key, region, os, priced_in, {names})
        select size_key, region, os, region, {names} from ({offers}) as offers"""


@cache
def _stage_least() -> Insert:
    """Build the statement that looks for the least prices: once for all purchase models, without unusual ones."""
    least = (func.min(_STAGED.c[f"{model}_rank_usd"]).filter(_is_usual(_STAGED, model)) for model in PURCHASE_MODELS)
    key = (_STAGED.c.size_key, _STAGED.c.os)
    return insert(_LEAST).from_select(_LEAST.c.keys(), select(*key, *least).group_by(*key))


@cached_statement(2)
def _stage_cheapest_offers(sql: Dialect, *, dirty_only: bool) -> str:
    """Write the statement that stages the offers of each size and system in any region, one by purchase model.

    Each is the offer where it is cheapest, in the first such region, but never for an unusual price; where no region
    has a price by that model, the offer where it is cheapest on demand. The least price of each is known, and its
    region is looked for: no offers are sorted.
    """

    def is_least_by(model: str) -> str:
        least = f"{rank_usd(sql, 'same', model)} = {rank_usd(sql, 'least_price', model)}"
        return f"{least} and same.{model}_median_usd is null"

    no_price = f"coalesce({rank_usd(sql, 'least_price', 'on_demand')}, {sql.infinity}) = {sql.infinity}"
    on_demand = f"({no_price} or {is_least_by('on_demand')})"
    is_least = " ".join(
        f"when bought.purchase = '{model}' then {is_least_by(model)} and "
        + (
            "true"
            if model == "on_demand"
            else f"({rank_usd(sql, 'least_price', model)} < {sql.infinity} or {on_demand})"
        )
        for model in PURCHASE_MODELS
    )
    prices = {name: f"cheapest.{name}" for name in ("priced_in", *PRICE_COLUMNS)}
    prices |= {rank: stored_rank(sql, prices[rank], rank.removesuffix("_rank_usd")) for rank in RANK_COLUMNS}
    bought = " union all ".join(
        f"select '{model}' as purchase, '{any_}' as region" for model, any_ in ANY_REGION.items()
    )
    return f"""insert into staged_offer (size_key, os, region, {", ".join(prices)})
        select size.key, system.os, bought.region, {", ".join(prices.values())}
        from size cross join ({" union all ".join(f"select '{os}' as os" for os in OPERATING_SYSTEMS)}) as system
        cross join ({bought}) as bought
        left join least_price on least_price.size_key = size.key and least_price.os = system.os
        left join staged_offer as cheapest on cheapest.size_key = size.key and cheapest.os = system.os
            and cheapest.region = (
                select min(same.region) from staged_offer as same
                where same.size_key = size.key and same.os = system.os and case {is_least} end
            )
        where {f"size.key {_DIRTY}" if dirty_only else "true"}"""


def _is_usual(offers: FromClause, purchase: str) -> ColumnElement[bool]:
    """Return the condition that a price may be the cheapest of all regions."""
    return offers.c[f"{purchase}_median_usd"].is_(None)


def _stored_offers(session: Session, dirty_only: bool) -> ColumnElement[bool]:
    """Build the condition of stored offers that are derived again; those of a few sizes are found by their key."""
    of_sizes = in_scope(_OFFER.c.size_key, dirty_only=dirty_only)
    if not dirty_only:
        return of_sizes
    few = select(func.count() <= _FEW_SIZES).select_from(DIRTY_SIZES)
    if not session.execute(few).scalar_one():
        return of_sizes
    regions = union_all(select(table_of(Region).c.code), *(select(literal(region)) for region in ANY_REGION.values()))
    return and_(_OFFER.c.region.in_(regions), _OFFER.c.os.in_(OPERATING_SYSTEMS), of_sizes)


@cache
def _delete_unchanged() -> Delete:
    """Build the statement that deletes the staged offers of which all is stored that the others follow from."""
    alike = (_STAGED.c[name].is_not_distinct_from(_OFFER.c[name]) for name in ("priced_in", *PRICE_COLUMNS))
    copied = (_SIZE.c[name].is_not_distinct_from(_OFFER.c[name]) for name in COPIED_SIZE_COLUMNS)
    same = same_key(_STAGED, _OFFER, _KEY)
    return delete(_STAGED).where(exists().where(same, _SIZE.c.key == _OFFER.c.size_key, *alike, *copied))


def _write_staged(session: Session) -> TableChange:
    """Write the staged offers in the place of those with their keys; indexes of mostly new ones are made at the end."""
    key = [_OFFER.c[name] for name in _KEY]
    replaced = tuple_(*key).in_(select(*(_STAGED.c[name] for name in _KEY)))
    staged, stored = (select(func.count()).select_from(table).scalar_subquery() for table in (_STAGED, _OFFER))
    is_mostly_new = session.execute(select(2 * staged > stored)).scalar_one()
    whole = _whole_offers(session.connection().dialect.name)
    with without_indexes(session, _OFFER) if is_mostly_new else nullcontext():
        changed = execute_count(session, delete(_OFFER).where(replaced))
        written = execute_count(session, insert(_OFFER).from_select(_OFFER.c.keys(), whole))
    return TableChange(added=written - changed, changed=changed)


@cache
def _whole_offers(kind: str) -> Select[Any]:
    """Select the staged offers with all columns, for PostgreSQL in the order of the table's key, in which it is read.

    SQLite keeps that order itself. In the order of the staged offers each one goes to the end of those of its region
    and system, on pages that are in the cache: that takes two thirds of sorting them, and fills the pages better.
    """
    values: dict[str, ColumnElement[Any]] = {
        **{name: _STAGED.c[name] for name in (*_GROUP, "priced_in", *PRICE_COLUMNS)},
        **{name: _SIZE.c[name] for name in COPIED_SIZE_COLUMNS},
    }
    whole = select(*(values[name] for name in _OFFER.c.keys()))  # noqa: SIM118  # a collection of columns is no mapping
    whole = whole.join_from(_STAGED, _SIZE, _SIZE.c.key == _STAGED.c.size_key)
    return whole.order_by(*(_STAGED.c[name] for name in _KEY)) if kind == "postgresql" else whole
