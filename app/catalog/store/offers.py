"""What is derived from prices and sizes at each ingest, so that lists are read as they lie: offers and documents."""

from collections.abc import Iterable
from datetime import date
from typing import Any

from sqlalchemy import (
    Boolean,
    Column,
    ColumnElement,
    Date,
    Double,
    FromClause,
    Integer,
    MetaData,
    Select,
    String,
    Table,
    and_,
    cast,
    delete,
    exists,
    func,
    insert,
    literal,
    null,
    select,
    true,
    union_all,
)
from sqlalchemy.orm import Session

from app.catalog.column_types import BYTEWISE, table_of
from app.catalog.models import Offer, Price, Size, SizeJson, Source
from app.catalog.projections import (
    ANY_REGION,
    COPIED_SIZE_COLUMNS,
    NO_OFFER_JSON,
    PRICE_FIELDS,
    PURCHASE_MODELS,
    UNIT_PRICE_FIELDS,
    UNKNOWN_PRICE_RANK,
    cheapest_offers,
    earliest_spot_day,
    is_offer,
    memory_bucket_sql,
    offer_json,
    size_json,
)
from app.catalog.store.bulk import keep_different, rows_written, same, stage_like, staged, write_staged
from app.catalog.store.upsert import Change, save_rows
from app.db.functions import exact_ratio

TOUCHED = Table(
    "touched_size",
    MetaData(),
    Column("size_key", BYTEWISE, primary_key=True),
    Column("rewritten", Boolean, nullable=False),
    prefixes=["temporary"],
)
"""The sizes whose offers may be others now, and, where `rewritten`, the documents, too."""


def touch(session: Session, sizes: Select[Any], *, rewritten: bool = False) -> None:
    """Add the keys of a query; what is added first tells whether a size is rewritten."""
    keys = sizes.distinct().subquery()
    key = next(iter(keys.c))
    new = select(key, literal(rewritten)).where(~exists().where(TOUCHED.c.size_key == key))
    session.execute(insert(TOUCHED).from_select(["size_key", "rewritten"], new))


def rewritten(session: Session, keys: Iterable[str], sources: Iterable[str]) -> None:
    """Touch sizes whose rows are others, or whose source is."""
    rows = [{"size_key": key, "rewritten": True} for key in keys]
    if rows:
        session.execute(insert(TOUCHED), rows)
    size = table_of(Size).c
    touch(session, select(size.key).where(size.source_id.in_(list(sources))), rewritten=True)


def fallen_due(after: date, until: date) -> Select[Any]:
    """Find the sizes with a price that came into force after one day and until another."""
    price = table_of(Price).c
    return select(price.size_key).where(price.valid_from > after, price.valid_from <= until)


def fallen_behind(after: date, until: date) -> Select[Any]:
    """Find the sizes with a spot price that was an offer on one day, and is too old for it on another."""
    price = table_of(Price).c
    lapsed = (price.valid_from >= earliest_spot_day(after), price.valid_from < earliest_spot_day(until))
    return select(price.size_key).where(price.purchase == "spot", *lapsed)


def is_derived(session: Session) -> bool:
    """Whether every size has its document, and its offers: a migration that changes what is derived empties tables."""
    size, doc = (select(func.count()).select_from(table_of(model)).scalar_subquery() for model in (Size, SizeJson))
    sizes, docs, offered = session.execute(select(size, doc, exists(select(table_of(Offer).c.size_key)))).one()
    return bool(sizes == docs and (offered or not sizes))


def asked(column: ColumnElement[str], *, touched: bool) -> ColumnElement[bool]:
    """The condition that a size is touched; with `touched` false it holds for all."""
    return column.in_(select(TOUCHED.c.size_key)) if touched else true()


_AT_ONCE = 1_000


def save_docs(session: Session, *, touched: bool) -> None:
    """Write the documents of all sizes, or of those that are touched and rewritten."""
    size, source = table_of(Size), table_of(Source)
    some = size.c.key.in_(select(TOUCHED.c.size_key).where(TOUCHED.c.rewritten)) if touched else true()
    query = select(*size.columns, source.c.url.label("source_url")).join_from(size, source, isouter=True).where(some)
    result = session.execute(query, execution_options={"yield_per": _AT_ONCE})
    for rows in result.mappings().partitions():
        docs = ({"size_key": row["key"], "doc": size_json(dict(row), row["source_url"])} for row in rows)
        save_rows(session, SizeJson, docs)


SYSTEMS = ("linux", "windows")
_PLACE = ("size_key", "region", "os")
_KEY = ("region", "os", "purchase", "size_key")
"""What an offer is known by; the rank is in the key of its table only for the order."""

_UNRANKED = literal(UNKNOWN_PRICE_RANK, Double)

_OFFERS = stage_like(table_of(Offer), _KEY)
_IN_FORCE = Table(
    "staged_place",
    MetaData(),
    *(Column(name, table_of(Price).c[name].type, primary_key=True) for name in _PLACE),
    *(Column(name, table_of(Offer).c[name].type) for name in PRICE_FIELDS),
    prefixes=["temporary"],
    sqlite_with_rowid=False,
)
"""The prices in force by size, region and system."""


def save_derived(session: Session, today: date, *, touched: bool = False, shrunk: bool = False) -> Change:
    """Derive the offers that hold on a day, and the documents; write those that differ, and tell it of the offers.

    With `touched` only those of the sizes in TOUCHED, else those of all; `shrunk` says that a price of theirs went,
    or is no offer any more.
    """
    save_docs(session, touched=touched)
    offer = table_of(Offer)
    with staged(session, _OFFERS):
        _derive_offers(session, today, touched=touched)
        outdated = delete(offer).where(
            ~exists().where(same(offer, _OFFERS, _KEY)), asked(offer.c.size_key, touched=touched)
        )
        removed = rows_written(session, outdated) if shrunk or not touched else 0
        unchanged = keep_different(session, _OFFERS, offer, _KEY)
        known = select(func.count()).select_from(_OFFERS.join(offer, same(_OFFERS, offer, _KEY)))
        changed: int = session.execute(known).scalar_one()
        written = write_staged(session, _OFFERS, offer, _KEY)
    return Change(written - changed, changed, unchanged, removed)


def _derive_offers(session: Session, today: date, *, touched: bool) -> None:
    """Stage what is asked for by each purchase model: where there is any price, and, for every size, anywhere."""
    with staged(session, _IN_FORCE):
        session.execute(insert(_IN_FORCE).from_select(_IN_FORCE.c.keys(), _in_force(today, touched=touched)))
        for purchase in PURCHASE_MODELS:
            for offers in (_here(purchase), _cheapest(purchase), _nowhere(purchase, touched=touched)):
                session.execute(insert(_OFFERS).from_select(_OFFERS.c.keys(), offers))


def _here(purchase: str) -> Select[Any]:
    """The offers of the regions: every place that has a price, ranked by one purchase model."""
    place, size = _IN_FORCE.c, table_of(Size)
    usd = place[f"{purchase}_usd_per_hour"]
    rank = func.coalesce(cast(usd, Double), _UNRANKED)
    row = (place.region, place.os, literal(purchase), rank, place.size_key, place.region)
    prices = {name: place[name] for name in PRICE_FIELDS} | dict(zip(UNIT_PRICE_FIELDS, _ratios(usd), strict=True))
    told = prices | {name: size.c[name] for name in COPIED_SIZE_COLUMNS}
    doc = offer_json({**prices, "priced_in": place.region}, purchase)
    return select(*row, *told.values(), memory_bucket_sql(size.c.gpu_memory_gib), doc).join_from(
        _IN_FORCE, size, size.c.key == place.size_key
    )


def _ratios(usd: ColumnElement[Any]) -> tuple[ColumnElement[float], ...]:
    """What a GPU costs, a sixth of one at six times the price, and what a GiB of its memory."""
    size = table_of(Size).c
    parts = ((size.gpu_count_denominator, size.gpu_count_numerator), (literal(1, Integer), size.gpu_memory_gib))
    return tuple(exact_ratio(usd, denominator, numerator) for denominator, numerator in parts)


def _cheapest(purchase: str) -> Select[Any]:
    """Of the offers of the regions, each size's cheapest."""
    best = cheapest_offers(select(_OFFERS).where(_OFFERS.c.purchase == purchase).subquery(), ("size_key", "os")).c
    return select(literal(ANY_REGION), *(best[name] for name in _OFFERS.c.keys()[1:]))


def _nowhere(purchase: str, *, touched: bool) -> Select[Any]:
    """The offers of the sizes that have no price."""
    size = table_of(Size)
    system = union_all(*(select(literal(os).label("os")) for os in SYSTEMS)).subquery().c.os
    of_size = and_(_OFFERS.c.region == ANY_REGION, _OFFERS.c.os == system, _OFFERS.c.purchase == purchase)
    row = (
        literal(ANY_REGION),
        system,
        literal(purchase),
        _UNRANKED,
        size.c.key,
        *(null() for _ in ("region", *PRICE_FIELDS, *UNIT_PRICE_FIELDS)),
    )
    derived = (memory_bucket_sql(size.c.gpu_memory_gib), literal(NO_OFFER_JSON, String))
    priced = exists().where(of_size, _OFFERS.c.size_key == size.c.key).correlate(size, system.table)
    return (
        select(*row, *(size.c[name] for name in COPIED_SIZE_COLUMNS), *derived)
        .join_from(size, system.table, literal(value=True))
        .where(~priced, asked(size.c.key, touched=touched))
    )


def _in_force(today: date, *, touched: bool) -> Select[Any]:
    """Of each price the newest that is an offer, one row a place with a price and its day for each purchase model."""
    price = table_of(Price)
    days = {p: func.max(price.c.valid_from).filter(price.c.purchase == p).label(f"{p}_as_of") for p in PURCHASE_MODELS}
    place = [price.c[name] for name in _PLACE]
    some = asked(price.c.size_key, touched=touched)
    held = (price.c.valid_from <= today, is_offer(price.c, literal(earliest_spot_day(today), Date)))
    newest = select(*place, *days.values()).where(*held, some).group_by(*place).subquery()
    columns: list[ColumnElement[Any]] = [newest.c[name] for name in _PLACE]
    joined: FromClause = newest
    for purchase in PURCHASE_MODELS:
        of_day, day = price.alias(purchase), newest.c[f"{purchase}_as_of"]
        known = and_(same(of_day, newest, _PLACE), of_day.c.purchase == purchase, of_day.c.valid_from == day)
        joined = joined.join(of_day, known, isouter=True)
        columns += [of_day.c.usd_per_hour, day, of_day.c.approximate_date]
    return select(*columns).select_from(joined)
