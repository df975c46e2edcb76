"""Maps the rows that files list one by one to tables; a file that is read again replaces what it said before."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import date
from difflib import get_close_matches
from typing import Any

from sqlalchemy import delete, exists, or_, select, update
from sqlalchemy.orm import Session
from sqlmodel import SQLModel

from app.catalog.column_types import table_of
from app.catalog.in_force import MAX_RULES
from app.catalog.models import (
    Adjustment,
    Availability,
    Benchmark,
    Correction,
    Disk,
    DiskPrice,
    ExchangeRate,
    Fact,
    Gpu,
    LanguageModel,
    Region,
    Series,
    Size,
    SizeAlias,
)
from app.catalog.names import codes_by_spelling, explain_unknown_region, glob_to_like, size_key
from app.catalog.readings import (
    AliasRow,
    BenchmarkRow,
    CitedRow,
    CorrectionRow,
    DiskPriceRow,
    DiskRow,
    ModelRow,
    Reading,
    Report,
)
from app.catalog.resolution.subjects import SubjectKeys
from app.catalog.store.upsert import DbRow, TableChange, save_rows
from app.db.functions import NANO
from app.errors import BadData

NewRow = dict[str, Any]


def _to_alias(alias: AliasRow, _subjects: SubjectKeys) -> NewRow:
    keys = {"alias_key": size_key(alias.alias), "size_key": size_key(alias.size)}
    return keys | {"alias": alias.alias, "source_id": alias.source, "reason": alias.reason}


def _to_correction(correction: CorrectionRow, subjects: SubjectKeys) -> NewRow:
    row = _cited_row(correction)
    if correction.kind == "size":
        row["subject"] = subjects.size_key(correction.subject)
    return row


def _to_benchmark(benchmark: BenchmarkRow, subjects: SubjectKeys) -> NewRow:
    row = _cited_row(benchmark)
    row["series_id"] = subjects.series_id(row.pop("series"))
    row["value"] = float(benchmark.value)
    return row


def _to_model(model: ModelRow, _subjects: SubjectKeys) -> NewRow:
    config = model.preset.config
    return model.preset.model_dump() | {
        "aliases": "; ".join(model.preset.aliases) or None,
        "config": json.dumps(config, separators=(",", ":")) if config else None,
    }


def _to_disk(disk: DiskRow, _subjects: SubjectKeys) -> NewRow:
    row = _cited_row(disk)
    return row | {"mbps_per_iops": float(disk.mbps_per_iops) if disk.mbps_per_iops is not None else None}


def _to_disk_price(price: DiskPriceRow, _subjects: SubjectKeys) -> NewRow:
    row = _cited_row(price)
    return {"disk_id": row.pop("disk"), "nano_usd": int(row.pop("usd") * NANO)} | row


def _cited_row(entry: CitedRow) -> NewRow:
    fields = asdict(entry)
    return {"source_id": fields.pop("source")} | {k: v for k, v in fields.items() if k not in {"file", "line"}}


@dataclass(frozen=True, slots=True)
class ListedTable:
    """A table whose rows are listed in files of one kind: its model, and what maps an entry of a reading to a row."""

    model: type[SQLModel]
    to_row: Callable[[Any, SubjectKeys], NewRow]


LISTED_TABLES: Mapping[str, ListedTable] = {
    "aliases": ListedTable(SizeAlias, _to_alias),
    "corrections": ListedTable(Correction, _to_correction),
    "regions": ListedTable(Region, lambda region, _: _cited_row(region)),
    "benchmarks": ListedTable(Benchmark, _to_benchmark),
    "models": ListedTable(LanguageModel, _to_model),
    "disks": ListedTable(Disk, _to_disk),
    "disk_prices": ListedTable(DiskPrice, _to_disk_price),
    "exchange_rates": ListedTable(ExchangeRate, lambda rate, _: _cited_row(rate)),
}
"""By kind of file, which is also the field of a reading that holds the entries."""


def listed_rows(kind: str, reading: Reading, subjects: SubjectKeys) -> Iterator[tuple[CitedRow, NewRow]]:
    """Yield the entries that a reading has of a kind, each with its row."""
    to_row = LISTED_TABLES[kind].to_row
    return ((entry, to_row(entry, subjects)) for entry in getattr(reading, kind))


def save_listed(session: Session, kind: str, reading: Reading, subjects: SubjectKeys) -> TableChange:
    """Write the rows that a reading has of a kind."""
    rows = (row for _, row in listed_rows(kind, reading, subjects))
    return save_rows(session, LISTED_TABLES[kind].model, rows)


_NAMES = {
    "size": (table_of(Size).c.key, table_of(Size).c.name),
    "series": (table_of(Series).c.id, table_of(Series).c.id),
    "gpu": (table_of(Gpu).c.id, table_of(Gpu).c.id),
}
"""The key and the name of what corrections are of, by its kind."""


def find_idle_corrections(session: Session, reading: Reading, subjects: SubjectKeys) -> Iterator[Report]:
    """Yield a report of each correction of what its source does not state, with the nearest name of a wrong subject."""
    fact = table_of(Fact).c
    columns = {"kind": fact.kind, "subject": fact.subject, "field": fact.field, "source_id": fact.source_id}
    for entry in reading.corrections:
        row, (key, name) = _to_correction(entry, subjects), _NAMES[entry.kind]
        if session.execute(select(exists().where(*(c == row[n] for n, c in columns.items())))).scalar_one():
            continue
        column, cell, detail = "field", entry.field, f"{entry.source} does not state it of {entry.subject}"
        names = {known.key: known.name for known in session.execute(select(key.label("key"), name.label("name")))}
        if row["subject"] not in names:
            near = get_close_matches(row["subject"], names, 1)
            column, cell = "subject", entry.subject
            detail = f"there is no such {entry.kind}" + (f" (did you mean {names[near[0]]}?)" if near else "")
        detail = f"{detail}; the correction is kept, and changes nothing yet"
        yield Report(file=entry.file, line=entry.line, column=column, cell=cell, detail=detail)


ADJUSTMENT = table_of(Adjustment)


def save_adjustments(session: Session, reading: Reading, subjects: SubjectKeys) -> tuple[TableChange, list[Report]]:
    """Write the rules of a reading; a rule for sizes that the catalog lacks is reported.

    Raises BadData for an unknown region, and where there are more than MAX_RULES rules.
    """
    files = [file for file in reading.files if file.kind == "adjustments"]
    if not files:
        return TableChange(), []
    codes = codes_by_spelling((row.code, row.name) for row in session.execute(select(table_of(Region))))
    rows: list[DbRow] = []
    reports: list[Report] = []
    for entry in reading.adjustments:
        rule = entry.rule
        if rule.region is not None:
            if rule.region not in codes:
                raise entry.error("region", explain_unknown_region(rule.region, dict.fromkeys(codes.values())))
            rule = replace(rule, region=codes[rule.region])
        if rule.size is not None:
            is_glob = "*" in rule.size or "?" in rule.size
            glob = rule.size if is_glob else subjects.size_key(rule.size)  # another name of a size means the size
            rule = replace(rule, size=glob)
            named = exists().where(table_of(Size).c.key.like(glob_to_like(glob), escape="\\"))
            if not session.execute(select(named)).scalar_one():
                detail = "matches no size of the catalog; the rule is kept for sizes to come"
                cell = entry.size or rule.size
                reports.append(Report(file=entry.file, line=entry.line, column="size", cell=cell, detail=detail))
        rows.append({"source_id": entry.source, "position": entry.position, **asdict(rule)})
    replaced = frozenset[str]().union(*(file.sources for file in files))
    kept = session.execute(select(ADJUSTMENT).where(ADJUSTMENT.c.source_id.not_in(replaced))).mappings()
    others = [dict(row) for row in kept]
    if len(others) + len(rows) > MAX_RULES:
        raise BadData(f"makes {len(others) + len(rows)} rules in all; at most {MAX_RULES} are kept", file=files[0].file)
    return save_rows(session, Adjustment, [*others, *rows], replace_all=True), reports


def is_rule_edge_between(session: Session, after: date, until: date) -> bool:
    """Check whether a rule began or ended after one day and by another."""
    rule = ADJUSTMENT.c
    began = (rule.valid_from > after) & (rule.valid_from <= until)
    ended = (rule.valid_until >= after) & (rule.valid_until < until)
    return bool(session.execute(select(exists().where(or_(began, ended)))).scalar_one())


AVAILABILITY = table_of(Availability)


def save_availability(session: Session, reading: Reading, subjects: SubjectKeys) -> TableChange:
    """Write the availability of a reading; raises BadData for a size or region that the catalog lacks."""
    files = [file for file in reading.files if file.kind == "availability"]
    if not files:
        return TableChange()
    sizes = set(session.execute(select(table_of(Size).c.key)).scalars())
    regions = set(session.execute(select(table_of(Region).c.code)).scalars())
    rows = []
    for entry in reading.availability:
        key = subjects.size_key(entry.size)
        if key not in sizes:
            raise entry.error("size", f"unknown size {entry.size!r}; ingest it first")
        if entry.region not in regions:
            raise entry.error(entry.region, explain_unknown_region(entry.region, regions))
        row = {"size_key": key, "region": entry.region, "zones": entry.zones, "source_id": entry.source}
        rows.append(row | {"file": entry.file})
    table = AVAILABILITY.c
    replaced = or_(*((table.file == file.file) & table.source_id.in_(file.sources) for file in files))
    others = session.execute(select(AVAILABILITY).where(~replaced)).mappings()
    return save_rows(session, Availability, [*others, *rows], replace_all=True)


def move_availability(session: Session, alias: str, key: str) -> None:
    """Give a size the availability of a size that turned out to be an alias of it; its own is kept."""
    own = AVAILABILITY.alias("own").c
    table = AVAILABILITY.c
    both = exists().where(own.size_key == key, own.region == table.region, own.source_id == table.source_id)
    session.execute(delete(AVAILABILITY).where(table.size_key == alias, both))
    session.execute(update(AVAILABILITY).where(table.size_key == alias).values(size_key=key))
