"""Maps readings to rows, and reconciles stored facts with new ones into the tables of sizes, series and GPUs."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Column, ColumnElement, Table, func, select, true
from sqlalchemy.orm import Session
from sqlmodel import SQLModel

from app.catalog.column_types import table_of
from app.catalog.fields import FIELDS, to_text
from app.catalog.models import Correction, Fact, Gpu, Series, Size, SizeAlias, Source
from app.catalog.names import size_key
from app.catalog.providers import DEFAULT_PROVIDER, provider_of
from app.catalog.readings import AUTHORITY, Reading, Report, StatedFact
from app.catalog.resolution.reconcile import ResolutionContext, SourceAuthority, Spelling, derive_size, reconcile
from app.catalog.resolution.subjects import SeriesName, SubjectKeys, series_names
from app.catalog.store.revisions import TableChecksum, compute_checksum, select_canonical
from app.catalog.store.upsert import TableChange, among, save_rows

NewRow = dict[str, Any]
FactKey = tuple[str, ...]
FACT_KEY = ("kind", "subject", "field", "source_id")

FirstSpellings = Mapping[str, tuple[str, str]]
"""By the key of a size that a price names: the name as the first such price has it, and the source of that price."""

_LOWEST_AUTHORITY = len(AUTHORITY)
"""The authority of a spelling that only a price list or an alias gives."""


def name_doubtful_sizes(session: Session, reading: Reading, subjects: SubjectKeys) -> Reading:
    """Return a reading whose pages name sizes in doubtful ways only where a list of sizes or an alias has the name.

    `NX4 v1` is then NX4_v1. The facts of other such names are left out, with one report of each name and file. What
    the pages themselves said earlier does not count.
    """
    pages = {file.file for file in reading.files if file.kind == "documents"}
    doubtful = {
        fact.subject
        for fact in reading.facts
        if fact.kind == "size" and fact.file in pages and DEFAULT_PROVIDER.doubtful_size_name.search(fact.subject)
        if size_key(fact.subject) not in subjects.aliases
    }
    if not doubtful:
        return reading
    keys = {name: re.sub(r"\s+", "_", size_key(name)) for name in doubtful}
    listed = {
        size_key(fact.subject): fact.subject for fact in reading.facts if fact.kind == "size" and fact.file not in pages
    }
    fact = table_of(Fact).c
    elsewhere = fact.source_id.not_in([source.id for source in reading.sources])
    for some in among(fact.subject, sorted(keys.values())):
        names = select(fact.subject, fact.written_as).where(fact.kind == "size", some, elsewhere)
        listed |= {row.subject: row.written_as for row in session.execute(names.order_by(fact.source_id))}
    kept: list[StatedFact] = []
    reports: dict[tuple[str, str], Report] = {}
    for stated in reading.facts:
        if stated.kind != "size" or stated.file not in pages or stated.subject not in keys:
            kept.append(stated)
        elif name := listed.get(keys[stated.subject]):
            kept.append(replace(stated, subject=name))
        else:
            detail = "is the name of no size that a list of sizes has, with blanks or a footnote's mark; it is left out"
            report = Report(file=stated.file, line=stated.line, column="name", cell=stated.subject, detail=detail)
            reports.setdefault((stated.file, stated.subject), report)
    return replace(reading, facts=tuple(kept), reports=(*reading.reports, *reports.values()))


def _to_fact_rows(facts: Iterable[StatedFact], subjects: SubjectKeys) -> tuple[dict[FactKey, NewRow], list[Report]]:
    """Map facts to rows by key, without verdicts; of two values of one source the first is kept, the other reported."""
    rows: dict[FactKey, NewRow] = {}
    reports = []
    for fact in facts:
        row = {
            "kind": fact.kind,
            "subject": subjects.key_of(fact),
            "field": fact.field,
            "source_id": fact.source,
            "written_as": fact.subject,
            "value": to_text(fact.value),
            "unit": FIELDS[fact.kind][fact.field].unit,
            "raw": fact.raw,
            "file": fact.file,
            "line": fact.line,
            "note": fact.note,
        }
        first = rows.setdefault(_fact_key(row), row)
        if first["value"] != row["value"]:
            detail = f"says {row['value']} here and {first['value']} at line {first['line']}; the first is kept"
            reports.append(Report(file=fact.file, line=fact.line, column=fact.field, cell=fact.raw, detail=detail))
    return rows, reports


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """The sizes and series that an ingest may change, by their keys; the others need not be read."""

    sizes: frozenset[str]
    series: frozenset[str]


_NAMES = ("aliases", "name")
"""The fields of a series by which sizes and facts of any page may be found to belong to it."""


def reconcile_facts(
    session: Session,
    reading: Reading,
    subjects: SubjectKeys,
    priced: FirstSpellings,
    *,
    scope_sources: Collection[str] | None = None,
) -> tuple[dict[str, TableChange], list[Report], Mapping[str, TableChecksum]]:
    """Resolve stored facts and those of a reading, and write facts, sizes, series and GPUs.

    Returns what changed, what could not be read, and how the checksums of tables changed, by name; none where all facts
    were resolved.

    The facts of files that the reading has read again replace those that were stored of them. With `scope_sources`,
    the sources whose authority changed, only those subjects are resolved that these and the reading may change;
    aliases and corrections must be as they were.
    """
    new, reports = _to_fact_rows(reading.facts, subjects)
    scope = None if scope_sources is None else _find_scope(session, reading, new, subjects, scope_sources)
    stored = _load_all(session, Fact) if scope is None else list(_load_facts(session, scope))
    facts = [_unresolved(fact, subjects) for fact in stored]
    read_again = reading.fact_files
    kept = {_fact_key(fact): fact for fact in facts if (fact["source_id"], fact["file"]) not in read_again}
    corrections = {_fact_key(row): (row["value"], row["reason"]) for row in _load_all(session, Correction)}
    context = ResolutionContext(authorities=load_authorities(session), corrections=corrections, subjects=subjects)
    spellings = _load_spellings(session, reading, context, priced, scope)
    rows = reconcile((kept | new).values(), context, spellings)
    before = {} if scope is None else _checksums(session, scope, spellings)
    changes = {
        "gpu": save_rows(session, Gpu, rows.gpus),
        "series": save_rows(session, Series, rows.series),
        "size": save_rows(session, Size, rows.sizes),
        "fact": save_rows(session, Fact, rows.facts, replaced=stored),
    }
    after = {} if scope is None else _checksums(session, scope, spellings)
    return changes, reports, {name: after[name] - before[name] for name in after}


def _find_scope(
    session: Session,
    reading: Reading,
    new: Mapping[FactKey, NewRow],
    subjects: SubjectKeys,
    sources: Collection[str],
) -> Scope | None:
    """Find the subjects of new, dropped and differently weighed facts, with all sizes of the series that these name.

    None where a GPU changes, or what series a name means: these decide what the facts of any size mean.
    """
    dropped = {_fact_key(row): row for row in _load_facts_of_files(session, reading.fact_files)}
    fact, size = table_of(Fact).c, table_of(Size).c
    weighed = [
        tuple(row)
        for some in among(fact.source_id, sources)
        for row in session.execute(select(fact.kind, fact.subject, fact.field).where(some))
    ]
    if any(kind == "gpu" for kind, *_ in weighed) or _values_of_gpus(dropped) != _values_of_gpus(new):
        return None
    before, now = series_names(_load_series_names(session, but=())), subjects.series_ids
    if any(before.get(key, key) != now.get(key, key) for key in {*before, *now}):  # a new series moves none
        return None
    touched = {key[:2] for key in (*dropped, *new, *weighed)}
    sizes = {subject for kind, subject in touched if kind == "size"}
    series = {subject for kind, subject in touched if kind == "series"}
    claims = [row["value"] for key, row in new.items() if key[0] == "size" and key[2] == "series"]
    for some in among(fact.subject, sorted(sizes)):
        claimed = (fact.kind == "size", fact.field == "series", some)
        claims += session.execute(select(func.coalesce(fact.corrected_value, fact.value)).where(*claimed)).scalars()
    series |= {subjects.series_id(text) for text in claims}
    for some in among(size.key, sorted(sizes)):
        series |= {id_ for id_ in session.execute(select(size.series_id).where(some)).scalars() if id_}
    for some in among(size.series_id, sorted(series)):
        sizes |= set(session.execute(select(size.key).where(some)).scalars())
    return Scope(sizes=frozenset(sizes), series=frozenset(series))


def _values_of_gpus(facts: Mapping[FactKey, Mapping[str, Any]]) -> dict[FactKey, str]:
    return {key: row["value"] for key, row in facts.items() if key[0] == "gpu"}


def _load_facts(session: Session, scope: Scope) -> Iterator[dict[str, Any]]:
    """Load the facts of a scope, and those of all GPUs, in the order of the keys of subjects."""
    fact = table_of(Fact)
    for kind, keys in (("gpu", None), ("series", scope.series), ("size", scope.sizes)):
        for some in [true()] if keys is None else among(fact.c.subject, sorted(keys)):
            rows = session.execute(select(fact).where(fact.c.kind == kind, some)).mappings()
            yield from map(dict, rows)


def _load_facts_of_files(session: Session, files: Iterable[tuple[str, str]]) -> Iterator[dict[str, Any]]:
    """Load the facts that sources state in files."""
    by_source: dict[str, list[str]] = {}
    for source, file in sorted(files):
        by_source.setdefault(source, []).append(file)
    fact = table_of(Fact)
    for source, names in by_source.items():
        for some in among(fact.c.file, names):
            yield from map(dict, session.execute(select(fact).where(fact.c.source_id == source, some)).mappings())


def _checksums(session: Session, scope: Scope, sizes: Iterable[str]) -> dict[str, TableChecksum]:
    """Compute the checksums of the rows in a scope, and of `sizes` without facts, by table."""
    fact, size, series = (table_of(model) for model in (Fact, Size, Series))
    keys = scope.sizes.union(sizes)
    parts: tuple[tuple[Table, Column[Any], Collection[str], ColumnElement[bool]], ...] = (
        (fact, fact.c.subject, scope.sizes, fact.c.kind == "size"),
        (fact, fact.c.subject, scope.series, fact.c.kind == "series"),
        (size, size.c.key, keys, true()),
        (series, series.c.id, scope.series, true()),
    )
    sums = dict.fromkeys((fact.name, size.name, series.name), TableChecksum())
    for table, column, values, condition in parts:
        for some in among(column, sorted(values)):
            sums[table.name] += compute_checksum(session, select_canonical(session, table).where(some, condition))
    return sums


def add_priced_sizes(session: Session, priced: FirstSpellings) -> dict[str, TableChange]:
    """Add the sizes that only prices name; those that are stored stay as they are."""
    stored = set(session.execute(select(table_of(Size).c.key)).scalars())
    authorities = load_authorities(session)
    new = {key: _weak_spelling(*spelling, authorities) for key, spelling in priced.items() if key not in stored}
    return {"size": save_rows(session, Size, [derive_size(key, {}, [by], {}, []) for key, by in new.items()])}


def load_size_providers(session: Session) -> tuple[dict[str, str], frozenset[str]]:
    """Load the provider of each size by key, and the keys of sizes whose provider a source states.

    Of the others it is the default: their sources are of publishers of no provider, such as price lists of your own.
    """
    size, source = table_of(Size).c, table_of(Source).c
    query = select(size.key, size.provider, source.publisher)
    rows = session.execute(query.outerjoin_from(table_of(Size), table_of(Source), source.id == size.source_id)).all()
    by_default = (
        row.key
        for row in rows
        if row.provider == DEFAULT_PROVIDER.id and row.publisher not in DEFAULT_PROVIDER.publishers
    )
    providers = {row.key: row.provider for row in rows}
    return providers, frozenset(providers.keys() - {*by_default})


def load_subject_keys(session: Session, reading: Reading) -> SubjectKeys:
    """Load the keys of sizes by alias and of series by name: the stored ones, and those of a reading.

    Series have the names that facts state, of files that the reading has read again those of the reading. Their rows
    are not read: these also have what an earlier resolution made of the names.
    """
    aliases = {row["alias_key"]: row["size_key"] for row in _load_all(session, SizeAlias)}
    names = _load_series_names(session, but=reading.fact_files)
    names += [
        SeriesName(fact.subject, fact.field, to_text(fact.value))
        for fact in reading.facts
        if fact.kind == "series" and fact.field in _NAMES
    ]
    aliases |= {size_key(row.alias): size_key(row.size) for row in reading.aliases}
    return SubjectKeys(aliases=aliases, series_ids=series_names(names))


def _load_series_names(session: Session, but: Collection[tuple[str, str]]) -> list[SeriesName]:
    """Load what the stored facts say of the names of series, except those of some files of sources."""
    fact = table_of(Fact).c
    columns = (fact.source_id, fact.file, fact.subject, fact.field, fact.value)
    stored = session.execute(select(*columns).where(fact.kind == "series", fact.field.in_(_NAMES)))
    return [SeriesName(*row[2:]) for row in stored if tuple(row[:2]) not in but]


def load_sources(session: Session) -> dict[str, dict[str, Any]]:
    """Load every source, by id."""
    return {row["id"]: row for row in _load_all(session, Source)}


def load_authorities(session: Session) -> dict[str, SourceAuthority]:
    """Load what decides whose claim is accepted, by the id of the source."""
    return {id_: to_authority(source) for id_, source in load_sources(session).items()}


def to_authority(source: Mapping[str, Any]) -> SourceAuthority:
    """Take from a source's row what decides whose claim is accepted."""
    return SourceAuthority(
        kind=source["kind"],
        published_on=source["published_on"],
        pinned=source["pinned"],
        provider=provider_of(source["publisher"]),
    )


def _fact_key(row: Mapping[str, Any]) -> FactKey:
    return tuple(row[name] for name in FACT_KEY)


def _unresolved(row: Mapping[str, Any], subjects: SubjectKeys) -> NewRow:
    """Take the verdict from a stored fact, and key its size or series again: it may have got an alias since."""
    fact = {name: value for name, value in row.items() if name not in {"verdict", "reason", "corrected_value"}}
    if fact["kind"] == "size":
        fact["subject"] = subjects.size_key(fact["written_as"])
    elif fact["kind"] == "series":
        fact["subject"] = subjects.series_id(fact["written_as"])
    return fact


def _load_all(session: Session, model: type[SQLModel]) -> list[dict[str, Any]]:
    return [dict(row) for row in session.execute(select(table_of(model))).mappings()]


def _load_spellings(
    session: Session, reading: Reading, context: ResolutionContext, priced: FirstSpellings, scope: Scope | None
) -> dict[str, Spelling]:
    """Load how sizes are spelled for which there may be no fact: stored ones, and those an alias or a price names.

    Of a scope only its own sizes, and those that are new.
    """
    subjects, authorities, size = context.subjects, context.authorities, table_of(Size)
    outside = set(session.execute(select(size.c.key)).scalars()) - scope.sizes if scope is not None and priced else ()
    by_price = {key: _weak_spelling(*spelling, authorities) for key, spelling in priced.items() if key not in outside}
    by_alias = {
        subjects.size_key(alias.size): _weak_spelling(alias.size, alias.source, authorities)
        for alias in reversed(reading.aliases)
        if size_key(alias.size) not in subjects.aliases
    }
    stored = {
        row["key"]: _weak_spelling(row["name"], row["source_id"], authorities)
        for some in ([true()] if scope is None else among(size.c.key, sorted(scope.sizes)))
        for row in session.execute(select(size.c.key, size.c.name, size.c.source_id).where(some)).mappings()
        if row["key"] not in subjects.aliases
    }
    return by_price | by_alias | stored


def _weak_spelling(name: str, source: str | None, authorities: Mapping[str, SourceAuthority]) -> Spelling:
    authority = authorities.get(source or "")
    provider = authority.provider if authority else DEFAULT_PROVIDER
    return Spelling(name=name, authority=_LOWEST_AUTHORITY, source=source, provider=provider)
