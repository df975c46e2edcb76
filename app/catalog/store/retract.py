"""Deletes rows that a file or a source no longer states, and the sizes, series and GPUs that nothing mentions then.

A file that is read again is compared with what it stated before of the sources that it may cite. Prices and facts have
a column with their file; the keys of other rows are stored in `ingested_file`.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date
from typing import Any

from sqlalchemy import Column, ColumnElement, Date, and_, delete, exists, func, insert, or_, select, tuple_, update
from sqlalchemy.orm import Session
from sqlmodel import SQLModel

from app.catalog.column_types import table_of
from app.catalog.models import (
    Adjustment,
    Availability,
    Benchmark,
    CompleteList,
    Correction,
    Disk,
    DiskPrice,
    ExchangeRate,
    Fact,
    Gpu,
    IngestedFile,
    LanguageModel,
    Offer,
    Price,
    PriceFile,
    RefusedPrice,
    Region,
    Series,
    Size,
    SizeAlias,
    SizeJson,
    Source,
)
from app.catalog.readings import FileRead, PriceList, Reading, Report
from app.catalog.resolution.subjects import SubjectKeys
from app.catalog.store.changes import collect_lost_offers
from app.catalog.store.listed import LISTED_TABLES, listed_rows
from app.catalog.store.prices import OBSERVATION_KEY, PRICE, PRICE_KEY, STAGED_PRICE, StagedPrices
from app.catalog.store.revisions import TableChecksum, compute_checksum, select_canonical
from app.catalog.store.upsert import (
    TableChange,
    columns_like,
    execute_count,
    in_batches,
    same_key,
    save_rows,
    temporary_table,
)
from app.errors import BadData, BadQuery
from app.validation import plural

DROPPED_PRICES = temporary_table(
    "dropped_price",
    *columns_like(PRICE, PRICE_KEY, primary_key=True),
)
"""The keys of the prices that this ingest deletes."""

FileKey = tuple[str, ...]
"""The source of a row and its primary key, as texts."""


def load_file_keys(session: Session, kind: str) -> dict[str, list[FileKey]]:
    """Load the files of a kind that were read before, each with the keys of the rows that it listed."""
    table = table_of(IngestedFile)
    rows = session.execute(select(table).where(table.c.kind == kind)).mappings()
    return {row["file"]: [tuple(key) for key in row["keys"]] for row in rows}


# Prices


def drop_prices_of_files(session: Session, lists: Sequence[StagedPrices]) -> tuple[int, TableChecksum]:
    """Delete the prices that a list had when it was read before and has no more; return their number and checksum.

    A file that is read for the first time costs nothing. Raises BadData for a list that had prices and has none: an
    export that failed looks so.
    """
    ingested = load_file_keys(session, "prices")
    file = table_of(PriceFile).c
    of_lists = []
    for first, end, price_list in lists:
        if price_list.file not in ingested or not price_list.sources or price_list.complete:
            continue
        of_file = PRICE.c.file_id == select(file.id).where(file.file == price_list.file).scalar_subquery()
        of_lists.append(and_(of_file, PRICE.c.source_id.in_(sorted(price_list.sources))))
        if first == end:
            _refuse_emptied(session, price_list, of_lists[-1])
    files = [{"file": listed.file, "kind": "prices", "keys": []} for _, _, listed in lists if listed.sources]
    save_rows(session, IngestedFile, files)
    if not of_lists:
        return 0, TableChecksum()
    # A run of several days is of complete lists, which are compared one by one: app.catalog.store.price_runs.
    of_files = and_(or_(*of_lists), PRICE.c.seen_until == PRICE.c.valid_from)
    # Two counts are cheap, and detect the common case that no price went without looking each of them up.
    both = STAGED_PRICE.join(PRICE, same_key(STAGED_PRICE, PRICE, OBSERVATION_KEY))
    had, has = (select(func.count()).select_from(rows).where(of_files) for rows in (PRICE, both))
    if session.execute(had).scalar_one() == session.execute(has).scalar_one():
        return 0, TableChecksum()
    # Without an index each price would be searched for in the whole list.
    columns = ", ".join(OBSERVATION_KEY)
    session.connection().exec_driver_sql(f"create index staged_price_key on staged_price ({columns})")
    return drop_prices(session, and_(of_files, ~exists().where(same_key(STAGED_PRICE, PRICE, OBSERVATION_KEY))))


def _refuse_emptied(session: Session, price_list: PriceList, had: ColumnElement[bool]) -> None:
    """Raise BadData if a list without a price had some when it was read before."""
    counts = select(PRICE.c.source_id, func.count()).where(had).group_by(PRICE.c.source_id)
    if rows := session.execute(counts.order_by(PRICE.c.source_id)).all():
        sources = ", ".join(source for source, _ in rows)
        gone = f"has none of the {plural(sum(count for _, count in rows), 'price')} that it had when it was read before"
        how = f"`vmsizes forget SOURCE` removes what a source states: {sources}"
        raise BadData(f"{gone}, and no other; {how}", file=price_list.file)


def drop_prices(session: Session, condition: ColumnElement[bool]) -> tuple[int, TableChecksum]:
    """Delete prices; return their number and checksum. Their keys stay in DROPPED_PRICES until the ingest ends."""
    columns = DROPPED_PRICES.columns.keys()
    dropped = select(*(PRICE.c[name] for name in columns)).where(condition)
    number = execute_count(session, insert(DROPPED_PRICES).from_select(columns, dropped))
    if not number:
        return 0, TableChecksum()
    checksum = compute_checksum(
        session, select_canonical(session, PRICE).join(DROPPED_PRICES, same_key(DROPPED_PRICES, PRICE, PRICE_KEY))
    )
    session.execute(delete(PRICE).where(exists().where(same_key(DROPPED_PRICES, PRICE, PRICE_KEY))))
    return number, checksum


# Rows of listed tables


def drop_rows_of_files(
    session: Session, kind: str, reading: Reading, subjects: SubjectKeys
) -> tuple[TableChange, list[Report]]:
    """Delete the rows that files of a kind listed when they were last read and list no more, unless another file does.

    A region or disk that prices are for stays, and is reported. Raises BadData for a row that another source states:
    a row has one source, and goes with it. A page under another name takes over what it stated.
    """
    # Documents state benchmarks besides facts, so that their rows are those of two kinds.
    files = [file for file in reading.files if file.kind == kind or (kind, file.kind) == ("benchmarks", "documents")]
    if not files:
        return TableChange(), []
    table = table_of(LISTED_TABLES[kind].model)
    names = [column.name for column in table.primary_key]
    before, pages = load_file_keys(session, kind), {file.file for file in files if file.kind == "documents"}
    # Rows of a source that the file may no longer cite are not dropped: it goes on listing them.
    new = {file.file: [key for key in before.get(file.file, ()) if not _may_drop(file, key[0])] for file in files}
    stated = {key[1:]: key[0] for keys in (before | new).values() for key in keys}
    for entry, row in listed_rows(kind, reading, subjects):
        key = tuple(str(row[name]) for name in names)
        new.setdefault(entry.file, []).append((row["source_id"], *key))
        if (source := stated.setdefault(key, row["source_id"])) != row["source_id"] and entry.file not in pages:
            column = names[0].removesuffix("_key")
            detail = f"the source {source} states it already; leave it out, cite that source, or forget it first"
            raise entry.error(column, f"{row[column]!r}: {detail}")
    kept = {key[1:] for keys in (before | new).values() for key in keys}
    gone = {key[1:] for file in files for key in before.get(file.file, ()) if _may_drop(file, key[0])} - kept
    listed = (
        {"file": file, "kind": kind, "keys": [list(key) for key in keys]}
        for file, keys in new.items()
        if keys or file in before
    )
    save_rows(session, IngestedFile, listed)
    used = _keys_in_use(session, kind, gone)
    detail = f"is not in the file any more, but prices or availability are for it; the {table.name} stays until they go"
    reports = [Report(file=files[0].file, line=None, column=names[0], cell=key, detail=detail) for key in sorted(used)]
    columns, removed = [table.c[name] for name in names], 0
    for keys in in_batches(sorted(gone - {(key,) for key in used})):
        part = [_to_values(key, columns) for key in keys]
        removed += execute_count(session, delete(table).where(tuple_(*columns).in_(part)))
    return TableChange(removed=removed), reports


def _to_values(key: FileKey, columns: Iterable[Column[Any]]) -> tuple[Any, ...]:
    """Return a primary key that is stored as texts in the types of its columns."""
    pairs = zip(key, columns, strict=True)
    return tuple(date.fromisoformat(text) if isinstance(column.type, Date) else text for text, column in pairs)


def _may_drop(file: FileRead, source: str) -> bool:
    return file.kind == "corrections" or source in file.sources


_REFERENCES: Mapping[str, tuple[Column[Any], tuple[Column[Any], ...]]] = {
    "regions": (
        table_of(Region).c.code,
        tuple(table_of(model).c.region for model in (Price, RefusedPrice, Availability, DiskPrice, Adjustment)),
    ),
    "disks": (table_of(Disk).c.id, (table_of(DiskPrice).c.disk_id,)),
}
"""By kind of file: the key of what prices and availability are for, and the columns that refer to it."""


def _keys_in_use(session: Session, kind: str, keys: Iterable[FileKey]) -> set[str]:
    """Return those of the keys that prices or availability are for."""
    if kind not in _REFERENCES:
        return set()
    key, columns = _REFERENCES[kind]
    wanted = [text for (text,) in keys]
    is_in_use = or_(*(exists().where(column == key) for column in columns))
    return set(session.execute(select(key).where(key.in_(wanted), is_in_use)).scalars())


# Orphans


def drop_orphan_sizes(session: Session) -> dict[str, TableChange]:
    """Delete sizes without a fact, price or alias; a refused price is one, too."""
    size, fact, price = table_of(Size), table_of(Fact).c, table_of(Price).c
    mentioned = or_(
        exists().where(fact.kind == "size", fact.subject == size.c.key),
        exists().where(price.size_key == size.c.key),
        exists().where(table_of(RefusedPrice).c.size_key == size.c.key),
        exists().where(table_of(SizeAlias).c.size_key == size.c.key),
        exists().where(table_of(Availability).c.size_key == size.c.key),
    )
    orphans = select(size.c.key).where(~mentioned)
    keys = list(session.execute(orphans).scalars())
    if keys:
        collect_lost_offers(session, table_of(Offer).c.size_key.in_(orphans))
        for table in (table_of(Offer), table_of(SizeJson)):
            session.execute(delete(table).where(table.c.size_key.in_(orphans)))
        session.execute(delete(size).where(~mentioned))
    return {"size": TableChange(removed=len(keys), keys=frozenset((key,) for key in keys))}


def drop_orphan_series(session: Session) -> dict[str, TableChange]:
    """Delete series and GPUs without a fact, size or benchmark."""
    size, fact, series, gpu = table_of(Size), table_of(Fact).c, table_of(Series), table_of(Gpu)
    of_series = or_(
        exists().where(fact.kind == "series", fact.subject == series.c.id),
        exists().where(size.c.series_id == series.c.id),
        exists().where(table_of(Benchmark).c.series_id == series.c.id),
    )
    of_gpu = or_(
        exists().where(fact.kind == "gpu", fact.subject == gpu.c.id), exists().where(size.c.gpu_id == gpu.c.id)
    )
    return {"series": _drop(session, series, ~of_series), "gpu": _drop(session, gpu, ~of_gpu)}


def _drop(session: Session, table: Any, condition: ColumnElement[bool]) -> TableChange:
    return TableChange(removed=execute_count(session, delete(table).where(condition)))


# A whole source

_TABLES_BY_SOURCE: tuple[type[SQLModel], ...] = (
    *(SizeAlias, Availability, Correction, Benchmark, LanguageModel, ExchangeRate, Fact, CompleteList, DiskPrice),
    Adjustment,
)


def check_nothing_is_in_use(session: Session, sources: Collection[str]) -> None:
    """Check that no prices or availability of other sources are for a region or disk of these; raises BadQuery."""
    for key, columns in _REFERENCES.values():
        others = or_(*(exists().where(column == key, column.table.c.source_id.not_in(sources)) for column in columns))
        source_id = key.table.c.source_id
        rows = session.execute(select(key, source_id).where(source_id.in_(sources), others).order_by(key)).all()
        if rows:
            used, source = rows[0]
            more = f" and {len(rows) - 1} more" if len(rows) > 1 else ""
            which = f"{key.table.name} {used}{more}"
            of_others = "prices or availability of other sources are for"
            detail = f"names the {which}, which {of_others}; forget those sources first"
            raise BadQuery("source", source, detail)


def drop_rows_of_sources(session: Session, sources: Collection[str]) -> dict[str, TableChange]:
    """Delete all rows of sources but prices of sizes, disks and regions.

    Sizes that cite one cite a source of their prices instead.
    """
    size, price = table_of(Size), table_of(Price).c
    another = select(func.min(price.source_id)).where(price.size_key == size.c.key).scalar_subquery()
    session.execute(update(size).where(size.c.source_id.in_(sources)).values(source_id=another))
    return {
        table.name: _drop(session, table, table.c.source_id.in_(sources)) for table in map(table_of, _TABLES_BY_SOURCE)
    }


def drop_sources(session: Session, sources: Collection[str]) -> dict[str, TableChange]:
    """Delete sources, their regions and disks; nothing may refer to them any more."""
    ids = (table_of(Disk).c.source_id, table_of(Region).c.source_id, table_of(Source).c.id)
    return {id_.table.name: _drop(session, id_.table, id_.in_(sources)) for id_ in ids}
