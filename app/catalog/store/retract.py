"""What a file or a source no longer says, taken out of the catalog; and the sizes of which nobody speaks any more.

A file that is read again is compared with what it said before of the sources that it may cite: prices and facts know
their file, the keys of other rows are kept in `ingested_file`.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    MetaData,
    Table,
    and_,
    delete,
    exists,
    func,
    insert,
    or_,
    select,
    tuple_,
    update,
)
from sqlalchemy.orm import Session
from sqlmodel import SQLModel

from app.catalog.column_types import table_of
from app.catalog.models import (
    Benchmark,
    Correction,
    Fact,
    Gpu,
    IngestedFile,
    LanguageModel,
    Offer,
    Price,
    Region,
    Series,
    Size,
    SizeAlias,
    SizeJson,
    Source,
)
from app.catalog.readings import FileRead, Prices, Reading, Report
from app.catalog.resolution.subjects import SubjectKeys
from app.catalog.store import facts
from app.catalog.store.bulk import execute_count, same_key
from app.catalog.store.facts import PRICE_KEY
from app.catalog.store.prices import PRICE, STAGED_PRICE
from app.catalog.store.revisions import TableChecksum, compute_checksum, select_canonical
from app.catalog.store.upsert import TableChange, save_rows
from app.errors import BadQuery

DROPPED_PRICES = Table(
    "dropped_price",
    MetaData(),
    *(Column(name, PRICE.c[name].type, primary_key=True) for name in PRICE_KEY),
    prefixes=["temporary"],
    sqlite_with_rowid=False,
)
"""The keys of the prices that this ingest takes away."""

Key = tuple[str, ...]


def load_file_keys(session: Session, kind: str) -> dict[str, list[Key]]:
    """Get the files of a kind that were read, each with the source and the key of every row that it had."""
    table = table_of(IngestedFile)
    found = session.execute(select(table).where(table.c.kind == kind)).mappings()
    return {row["file"]: [tuple(key) for key in row["keys"]] for row in found}


# Prices


def drop_prices_of_files(session: Session, prices: Prices) -> tuple[int, TableChecksum]:
    """Take away the prices that a list had when it was read before, and has no more; say how many, and what they were.

    The staged prices must be those of the lists. Files that are read for the first time cost nothing.
    """
    known = load_file_keys(session, "prices")
    of_lists = [
        and_(PRICE.c.file == each.file, PRICE.c.source_id.in_(sorted(each.sources)))
        for each in prices.lists
        if each.file in known and each.sources
    ]
    files = [{"file": each.file, "kind": "prices", "keys": []} for each in prices.lists if each.sources]
    save_rows(session, IngestedFile, files)
    if not of_lists:
        return 0, TableChecksum()
    of_files = or_(*of_lists)
    had = select(func.count()).select_from(PRICE).where(of_files)
    has = (
        select(func.count())
        .select_from(STAGED_PRICE.join(PRICE, same_key(STAGED_PRICE, PRICE, PRICE_KEY)))
        .where(of_files)
    )
    if session.execute(had).scalar_one() == session.execute(has).scalar_one():
        return 0, TableChecksum()
    # Without an index each price would be looked for in the whole list.
    session.connection().exec_driver_sql(f"create index staged_price_key on staged_price ({', '.join(PRICE_KEY)})")
    return drop_prices(session, and_(of_files, ~exists().where(same_key(STAGED_PRICE, PRICE, PRICE_KEY))))


def drop_prices(session: Session, condition: ColumnElement[bool]) -> tuple[int, TableChecksum]:
    """Take prices away; their keys stay in DROPPED_PRICE until the end of the ingest."""
    columns = DROPPED_PRICES.columns.keys()
    dropped = select(*(PRICE.c[name] for name in columns)).where(condition)
    number = execute_count(session, insert(DROPPED_PRICES).from_select(columns, dropped))
    if not number:
        return 0, TableChecksum()
    content = compute_checksum(
        session, select_canonical(session, PRICE).join(DROPPED_PRICES, same_key(DROPPED_PRICES, PRICE, PRICE_KEY))
    )
    session.execute(delete(PRICE).where(exists().where(same_key(DROPPED_PRICES, PRICE, PRICE_KEY))))
    return number, content


# Rows of small tables

_BATCH_SIZE = 1_000

_RowsOfReading = Callable[[Reading, SubjectKeys], Iterable[tuple[str, dict[str, Any]]]]

_ROWS_BY_KIND: Mapping[str, tuple[type[SQLModel], _RowsOfReading]] = {
    "aliases": (SizeAlias, lambda reading, _: ((each.file, facts.to_alias_row(each)) for each in reading.aliases)),
    "corrections": (
        Correction,
        lambda reading, subjects: (
            (each.file, facts.to_correction_row(each, subjects)) for each in reading.corrections
        ),
    ),
    "regions": (Region, lambda reading, _: ((each.file, facts.to_region_row(each)) for each in reading.regions)),
    "benchmarks": (
        Benchmark,
        lambda reading, subjects: ((each.file, facts.to_benchmark_row(each, subjects)) for each in reading.benchmarks),
    ),
    "models": (LanguageModel, lambda reading, _: ((each.file, facts.to_model_row(each)) for each in reading.models)),
}
"""By kind of file: the table, and the rows of a reading with the file of each."""


def drop_rows_of_files(
    session: Session, kind: str, reading: Reading, subjects: SubjectKeys
) -> tuple[TableChange, list[Report]]:
    """Take away the rows that a file had when it was read before, and has no more, unless another file has them."""
    files = [file for file in reading.files if file.kind == kind or (kind, file.kind) == ("benchmarks", "documents")]
    if not files:
        return TableChange(), []
    model, of_reading = _ROWS_BY_KIND[kind]
    table = table_of(model)
    names = [column.name for column in table.primary_key]
    new: dict[str, list[Key]] = {file.file: [] for file in files}
    for file, row in of_reading(reading, subjects):
        new.setdefault(file, []).append((row["source_id"], *(str(row[name]) for name in names)))
    before = load_file_keys(session, kind)
    for each in files:  # what it may not drop, because it no longer lists the source, it goes on having said
        new[each.file] += [key for key in before.get(each.file, ()) if not _owns(each, key[0])]
    kept = {key[1:] for keys in (before | new).values() for key in keys}
    gone = {key[1:] for each in files for key in before.get(each.file, ()) if _owns(each, key[0])} - kept
    save_rows(
        session,
        IngestedFile,
        ({"file": file, "kind": kind, "keys": [list(key) for key in keys]} for file, keys in new.items()
         if keys or file in before),
    )  # fmt: skip
    used = _used_regions(session, gone) if kind == "regions" else set()
    reports = [
        Report(file=files[0].file, line=None, column="code", cell=code,
               detail="is not in the file any more, but prices are for it; the region stays until they go")
        for code in sorted(used)
    ]  # fmt: skip
    return _delete(session, table, names, gone - {(code,) for code in used}), reports


def _owns(file: FileRead, source: str) -> bool:
    return file.kind == "corrections" or source in file.sources


def _used_regions(session: Session, keys: Iterable[Key]) -> set[str]:
    region, price = table_of(Region).c.code, table_of(Price).c.region
    codes = [code for (code,) in keys]
    return set(session.execute(select(region).where(region.in_(codes), exists().where(price == region))).scalars())


def _delete(session: Session, table: Table, names: list[str], keys: Iterable[Key]) -> TableChange:
    columns, wanted = [table.c[name] for name in names], sorted(keys)
    parts = [wanted[start : start + _BATCH_SIZE] for start in range(0, len(wanted), _BATCH_SIZE)]
    return TableChange(
        removed=sum(execute_count(session, delete(table).where(tuple_(*columns).in_(part))) for part in parts)
    )


# What nobody speaks of


def drop_orphans(session: Session) -> dict[str, TableChange]:
    """Take away sizes without a fact, a price or an alias, and series and GPUs without a fact, a size or a result."""
    size, fact, price = table_of(Size), table_of(Fact).c, table_of(Price).c
    series, gpu = table_of(Series), table_of(Gpu)
    spoken = or_(
        exists().where(fact.kind == "size", fact.subject == size.c.key),
        exists().where(price.size_key == size.c.key),
        exists().where(table_of(SizeAlias).c.size_key == size.c.key),
    )
    unspoken = select(size.c.key).where(~spoken)
    keys = list(session.execute(unspoken).scalars())
    if keys:
        for table in (table_of(Offer), table_of(SizeJson)):
            session.execute(delete(table).where(table.c.size_key.in_(unspoken)))
        session.execute(delete(size).where(~spoken))
    of_series = or_(
        exists().where(fact.kind == "series", fact.subject == series.c.id),
        exists().where(size.c.series_id == series.c.id),
        exists().where(table_of(Benchmark).c.series_id == series.c.id),
    )
    of_gpu = or_(
        exists().where(fact.kind == "gpu", fact.subject == gpu.c.id), exists().where(size.c.gpu_id == gpu.c.id)
    )
    return {
        "size": TableChange(removed=len(keys), keys=frozenset((key,) for key in keys)),
        "series": TableChange(removed=execute_count(session, delete(series).where(~of_series))),
        "gpu": TableChange(removed=execute_count(session, delete(gpu).where(~of_gpu))),
    }


# A whole source

_TABLES_BY_SOURCE: tuple[type[SQLModel], ...] = (SizeAlias, Correction, Benchmark, LanguageModel, Fact)


def check_regions_of_source(session: Session, source: str) -> None:
    """Refuse to take away regions that prices of other sources are for."""
    region, price = table_of(Region).c, table_of(Price).c
    others = exists().where(price.region == region.code, price.source_id != source)
    used = session.execute(
        select(region.code).where(region.source_id == source, others).order_by(region.code)
    ).scalars()
    if codes := list(used):
        more = f" and {len(codes) - 1} more" if len(codes) > 1 else ""
        said = f"names the region {codes[0]}{more}, which prices of other sources are for; forget those sources first"
        raise BadQuery("source", source, said)


def drop_rows_of_source(session: Session, source: str) -> dict[str, TableChange]:
    """Take away the facts and other rows of a source, but for its regions; sizes of its spelling find another."""
    size, price = table_of(Size), table_of(Price).c
    another = select(func.min(price.source_id)).where(price.size_key == size.c.key).scalar_subquery()
    session.execute(update(size).where(size.c.source_id == source).values(source_id=another))
    done = {}
    for table in map(table_of, _TABLES_BY_SOURCE):
        done[table.name] = TableChange(removed=execute_count(session, delete(table).where(table.c.source_id == source)))
    return done


def drop_source(session: Session, source: str) -> dict[str, TableChange]:
    """Take away a source's regions and its own row, once nothing points to it."""
    region, row = table_of(Region), table_of(Source)
    return {
        "region": TableChange(removed=execute_count(session, delete(region).where(region.c.source_id == source))),
        "source": TableChange(removed=execute_count(session, delete(row).where(row.c.id == source))),
    }
