"""Facts in and sizes out: what is kept is judged together with what is new, where anything that is judged is new."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.catalog.column_types import table_of
from app.catalog.fields import FIELDS, to_text
from app.catalog.models import Correction, Fact, Gpu, Series, Size, SizeAlias, Source
from app.catalog.names import series_key, size_key
from app.catalog.readings import (
    AUTHORITY,
    AliasRow,
    BenchmarkRow,
    CorrectionRow,
    ModelRow,
    Reading,
    RegionRow,
    Report,
    StatedFact,
)
from app.catalog.resolution.derive import Spelling, derive_size
from app.catalog.resolution.reconcile import ResolutionContext, SourceAuthority, reconcile
from app.catalog.resolution.subjects import SubjectKeys, alias_map, series_names
from app.catalog.store.upsert import TableChange, save_rows

Row = dict[str, Any]
PRICE_KEY = ("size_key", "region", "os", "purchase", "valid_from")
FACT_KEY = ("kind", "subject", "field", "source_id")


def to_fact_row(statement: StatedFact, subjects: SubjectKeys) -> Row:
    """One statement as a row of the fact table, before it is judged."""
    return {
        "kind": statement.kind,
        "subject": subjects.key_of(statement),
        "field": statement.field,
        "source_id": statement.source,
        "written_as": statement.subject,
        "value": to_text(statement.value),
        "unit": FIELDS[statement.kind][statement.field].unit,
        "raw": statement.raw,
        "file": statement.file,
        "line": statement.line,
        "note": statement.note,
    }


def to_fact_rows(
    statements: Iterable[StatedFact], subjects: SubjectKeys
) -> tuple[dict[tuple[str, ...], Row], list[Report]]:
    """All statements as rows by key; a source that says two things of one field is reported, its first word stands."""
    rows: dict[tuple[str, ...], Row] = {}
    reports = []
    for statement in statements:
        row = to_fact_row(statement, subjects)
        first = rows.setdefault(tuple(row[name] for name in FACT_KEY), row)
        if first["value"] != row["value"]:
            said = f"says {row['value']} here and {first['value']} at line {first['line']}; the first is kept"
            reports.append(
                Report(file=row["file"], line=row["line"], column=row["field"], cell=row["raw"], detail=said)
            )
    return rows, reports


def to_unresolved_fact(row: Mapping[str, Any], subjects: SubjectKeys) -> Row:
    """A fact that is already kept; an alias learnt since then may have told whom it speaks of."""
    kept = {name: value for name, value in row.items() if name not in {"verdict", "reason", "corrected_value"}}
    if kept["kind"] == "size":
        kept["subject"] = subjects.size_key(kept["written_as"])
    return kept


def to_alias_row(alias: AliasRow) -> Row:
    """An alias as a row."""
    return {
        "alias_key": size_key(alias.alias),
        "alias": alias.alias,
        "size_key": size_key(alias.size),
        "source_id": alias.source,
        "reason": alias.reason,
    }


def to_correction_row(correction: CorrectionRow, subjects: SubjectKeys) -> Row:
    """A correction as a row."""
    row = _cited_row(correction)
    if correction.kind == "size":
        row["subject"] = subjects.size_key(correction.subject)
    return row


def to_region_row(region: RegionRow) -> Row:
    """A region as a row."""
    return _cited_row(region)


def _cited_row(row: RegionRow | CorrectionRow | BenchmarkRow) -> Row:
    """The fields of a row, its source by id, without the place where it was read."""
    fields = asdict(row)
    return {"source_id": fields.pop("source")} | {k: v for k, v in fields.items() if k not in {"file", "line"}}


def to_benchmark_row(benchmark: BenchmarkRow, subjects: SubjectKeys) -> Row:
    """A benchmark as a row."""
    row = _cited_row(benchmark)
    row["series_id"] = subjects.series_id(row.pop("series"))
    row["value"] = float(benchmark.value)
    return row


def to_model_row(model: ModelRow) -> Row:
    """A language model as a row."""
    return model.preset.model_dump() | {"aliases": "; ".join(model.preset.aliases) or None}


FirstSpellings = Mapping[str, tuple[str, str]]
"""By the key of a size that a price names, how it is spelled there and the price's source."""

_LOWEST_AUTHORITY = len(AUTHORITY)
"""The authority of a spelling that only a price list or an alias gives."""


def load_subject_keys(session: Session, reading: Reading) -> SubjectKeys:
    """Say who is who: by the aliases and series that are kept, and by those of this reading."""
    aliases = {row["alias_key"]: row["size_key"] for row in _load_all(session, SizeAlias)}
    series = {
        series_key(name): row["id"]
        for row in _load_all(session, Series)
        for name in (row["id"], row["name"], *(row["aliases"] or "").split("; "))
    }
    return SubjectKeys(aliases=aliases | alias_map(reading.aliases), series_ids=series | series_names(reading.facts))


def load_sources(session: Session) -> dict[str, dict[str, Any]]:
    """Get every source by its id."""
    return {row["id"]: row for row in _load_all(session, Source)}


def to_authority(source: Mapping[str, Any]) -> SourceAuthority:
    """Take from a source what counts when words are weighed."""
    return SourceAuthority(kind=source["kind"], published_on=source["published_on"], pinned=source["pinned"])


def reconcile_facts(
    session: Session, reading: Reading, subjects: SubjectKeys, named: FirstSpellings
) -> tuple[dict[str, TableChange], list[Report]]:
    """Judge what is kept together with what is new, and write the facts and the rows that follow."""
    new, twice = to_fact_rows(reading.facts, subjects)
    read_again = reading.fact_files
    kept = [to_unresolved_fact(fact, subjects) for fact in _load_all(session, Fact)]
    facts = [fact for fact in kept if (fact["source_id"], fact["file"]) not in read_again]
    known = {tuple(fact[name] for name in FACT_KEY): fact for fact in facts} | new
    judgement = reconcile(
        known.values(), _load_context(session, subjects), _spellings(session, reading, subjects, named)
    )
    done = {
        "gpu": save_rows(session, Gpu, judgement.gpus),
        "series": save_rows(session, Series, judgement.series),
        "size": save_rows(session, Size, judgement.sizes),
        "fact": save_rows(session, Fact, judgement.facts, replace_all=True),
    }
    return done, twice


def add_priced_sizes(session: Session, named: FirstSpellings) -> dict[str, TableChange]:
    """Add the sizes that only prices name; those that are there stay as they are."""
    there = set(session.execute(select(table_of(Size).c.key)).scalars())
    new = {key: _spelling(*spelled) for key, spelled in named.items() if key not in there}
    return {"size": save_rows(session, Size, [derive_size(key, {}, [by], {}, []) for key, by in new.items()])}


def _spelling(name: str, source: str | None) -> Spelling:
    return Spelling(name=name, authority=_LOWEST_AUTHORITY, source=source)


def _load_all(session: Session, model: type[Any]) -> list[dict[str, Any]]:
    return [dict(row) for row in session.execute(select(table_of(model))).mappings()]


def _load_context(session: Session, subjects: SubjectKeys) -> ResolutionContext:
    corrections = {
        (row["kind"], row["subject"], row["field"], row["source_id"]): (row["value"], row["reason"])
        for row in _load_all(session, Correction)
    }
    authors = {id_: to_authority(source) for id_, source in load_sources(session).items()}
    return ResolutionContext(authorities=authors, corrections=corrections, subjects=subjects)


def _spellings(session: Session, reading: Reading, subjects: SubjectKeys, named: FirstSpellings) -> dict[str, Spelling]:
    """Sizes that exist though no fact may speak of them: kept ones, and those that an alias or a price names."""
    by_price = {key: _spelling(*spelled) for key, spelled in named.items()}
    by_alias = {
        subjects.size_key(alias.size): _spelling(alias.size, alias.source)
        for alias in reversed(reading.aliases)
        if size_key(alias.size) not in subjects.aliases
    }
    kept = {
        row["key"]: _spelling(row["name"], row["source_id"])
        for row in _load_all(session, Size)
        if row["key"] not in subjects.aliases
    }
    return by_price | by_alias | kept
