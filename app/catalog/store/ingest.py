"""Taking in a reading: everything it says is kept, judged and written, in the caller's one transaction."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import date, datetime
from difflib import get_close_matches
from typing import Any

from sqlalchemy import exists, select
from sqlalchemy.orm import Session

from app.catalog.column_types import table_of
from app.catalog.models import Benchmark, Correction, LanguageModel, Region, Series, Size, SizeAlias, Source
from app.catalog.names import model_keys, size_key
from app.catalog.presets import split_names
from app.catalog.readings import ModelRow, Progress, Reading, Report, no_progress
from app.catalog.resolution.subjects import SubjectKeys
from app.catalog.store import facts
from app.catalog.store.bulk import temporary_tables
from app.catalog.store.facts import add_priced_sizes, load_sources, load_subject_keys, reconcile_facts, to_authority
from app.catalog.store.offers import (
    DIRTY_SIZES,
    is_derived,
    mark_changed_rows,
    mark_dirty,
    save_derived,
    sizes_newly_priced,
    sizes_with_expired_spot,
)
from app.catalog.store.prices import PRICE, STAGED_PRICE, PriceStaging, merge_aliases, merge_prices, stage_prices
from app.catalog.store.retract import (
    DROPPED_PRICES,
    check_regions_of_source,
    drop_orphans,
    drop_prices,
    drop_prices_of_files,
    drop_rows_of_files,
    drop_rows_of_source,
    drop_source,
)
from app.catalog.store.revisions import (
    TableChecksum,
    compute_checksum,
    latest_revision,
    load_checksums,
    select_canonical,
    table_signature,
)
from app.catalog.store.upsert import TableChange, save_rows
from app.errors import BadData, NotFound


def check_references(session: Session, reading: Reading, subjects: SubjectKeys) -> None:
    """Refuse a correction of an unknown source, a benchmark of an unknown series, a name that two models have.

    Sources of the reading itself are written before; prices are checked as they pass. Raises BadData for the first.
    """
    sources = _load_column(session, Source, "id")
    for correction in reading.corrections:
        if correction.source not in sources:
            raise _unknown_reference("source", correction.source, correction.file, correction.line)
    series = _load_column(session, Series, "id") | set(subjects.series_ids.values())
    for benchmark in reading.benchmarks:
        if subjects.series_id(benchmark.series) not in series:
            raise _unknown_reference("series", benchmark.series, benchmark.file, benchmark.line)
    _check_model_names(session, reading.models)


def _check_model_names(session: Session, models: Iterable[ModelRow]) -> None:
    """Refuse a language model that is called what another is called, be that one new or kept."""
    new = {model.preset.id: model for model in models}
    table = table_of(LanguageModel).c
    named = select(table.id, table.name, table.hf_repo, table.aliases).where(table.id.not_in(new))
    owners: dict[str, ModelRow | str] = {
        key: row.id
        for row in session.execute(named)
        for key in model_keys((row.id, row.name, row.hf_repo or "", *split_names(row.aliases)))
    }
    for model in models:
        for column, names in model.preset.names.items():
            for name in names:
                _check_name_is_unique(owners, name, column, model)


def _check_name_is_unique(owners: dict[str, ModelRow | str], name: str, column: str, model: ModelRow) -> None:
    for key in model_keys([name]):
        owner = owners.setdefault(key, model)
        if owner is not model:
            other = owner if isinstance(owner, str) else owner.preset.id
            said = f"{name!r}: already means {other!r}; every name and alias must be one model's"
            raise BadData(said, file=model.file, line=model.line, column=column)


def _load_column(session: Session, model: type[Any], column: str) -> set[str]:
    return set(session.execute(select(table_of(model).c[column])).scalars())


def _unknown_reference(kind: str, name: str, file: str, line: int) -> BadData:
    return BadData(f"there is no {kind} {name!r}; bring it in first", file=file, line=line, column=kind)


@dataclass(slots=True)
class IngestSummary:
    """What an intake did to each table, what could not be taken, and what the revision starts from.

    `sources` are those of the reading, `readdressed` the kept ones that have another URL now; `contents` are of the
    tables that need not be read for the digest.
    """

    changes: dict[str, TableChange] = field(default_factory=dict)
    reports: list[Report] = field(default_factory=list)
    sources: set[str] = field(default_factory=set)
    moved_sources: set[str] = field(default_factory=set)
    checksums: dict[str, TableChecksum] = field(default_factory=dict)

    @property
    def has_changes(self) -> bool:
        """Whether the catalog is different now."""
        return any(change.has_changes for change in self.changes.values())

    def add(self, changes: Mapping[str, TableChange]) -> None:
        """Add what else was done to tables."""
        for name, change in changes.items():
            self.changes[name] = self.changes.get(name, TableChange()) + change


def save_reading(session: Session, reading: Reading, *, today: date, progress: Progress = no_progress) -> IngestSummary:
    """Write a reading and all that follows from it; `today` says which prices are in force. Commits nothing."""
    tally, derived_on = IngestSummary(reports=list(reading.reports)), _last_derived_on(session)
    with temporary_tables(session, STAGED_PRICE, DROPPED_PRICES, DIRTY_SIZES):
        unnamed, _ = drop_rows_of_files(session, "aliases", reading, SubjectKeys(aliases={}, series_ids={}))
        tally.changes = {"source": TableChange(), "region": TableChange(), "size_alias": unnamed}
        subjects = load_subject_keys(session, reading)
        prices = PriceStaging(
            subjects=subjects,
            regions=_region_codes(session, reading),
            progress=progress,
            known_sizes=_load_size_names(session, reading),
        )
        tally.reports += stage_prices(session, reading.prices, prices)
        dropped, content = drop_prices_of_files(session, reading.prices)
        progress("facts", None)
        _save_facts(session, reading, subjects, prices, tally)
        _save_others(session, reading, subjects, tally)
        merged = merge_aliases(session, subjects)
        tally.changes["size"] += merged
        progress("writing prices", None, prices.rows)
        written, overwritten = merge_prices(session, prices)
        tally.changes["price"] = written + TableChange(removed=dropped)
        _derive(session, tally, None if merged.has_changes else derived_on, today, progress)
        closed, reports = drop_rows_of_files(session, "regions", reading, subjects)
        tally.changes["region"] += closed
        tally.reports += reports
        progress("digest", None)
        tally.checksums = _known_checksums(session, tally, overwritten + content, moved=merged.has_changes)
    return tally


def forget_source(session: Session, source: str, *, today: date, progress: Progress = no_progress) -> IngestSummary:
    """Take away a source and what only it said; what follows is decided and derived anew. Commits nothing.

    Raises NotFound naming the nearest for an unknown source, BadQuestion where others' prices need its regions.
    """
    known = load_sources(session)
    if source not in known:
        raise NotFound("source", source, suggestions=tuple(get_close_matches(source, known, 2)))
    check_regions_of_source(session, source)
    tally, derived_on = IngestSummary(sources={source}), _last_derived_on(session)
    with temporary_tables(session, STAGED_PRICE, DROPPED_PRICES, DIRTY_SIZES):
        progress("prices", None)
        dropped, content = drop_prices(session, PRICE.c.source_id == source)
        tally.changes = drop_rows_of_source(session, source)
        progress("facts", None)
        judged, _ = reconcile_facts(session, Reading(), load_subject_keys(session, Reading()), {})
        tally.add(judged | {"price": TableChange(removed=dropped)})
        _derive(session, tally, derived_on, today, progress)
        tally.add(drop_source(session, source))
        progress("digest", None)
        tally.checksums = _known_checksums(session, tally, content, moved=False)
    return tally


def _load_size_names(session: Session, reading: Reading) -> dict[str, str]:
    """The names of all sizes that are kept, or that this reading states, by key."""
    if all(each.new_sizes for each in reading.prices.lists):
        return {}
    size = table_of(Size).c
    stated = {size_key(each.subject): each.subject for each in reading.facts if each.kind == "size"}
    return stated | {row.key: row.name for row in session.execute(select(size.key, size.name))}


def _region_codes(session: Session, reading: Reading) -> frozenset[str]:
    kept = session.execute(select(table_of(Region).c.code)).scalars()
    return frozenset(kept).union(region.code for region in reading.regions)


def _save_facts(
    session: Session, reading: Reading, subjects: SubjectKeys, prices: PriceStaging, summary: IngestSummary
) -> None:
    """Write sources, regions and corrections; then judge, unless nothing came that could change a judgement."""
    cited = [source for source in reading.citable if source.id in prices.sources]
    sources = {source.id: source for source in (*reading.sources, *cited)}
    old, done = load_sources(session), summary.changes
    done["source"] = save_rows(session, Source, map(asdict, sources.values()))
    done["region"] = save_rows(session, Region, map(facts.to_region_row, reading.regions))
    for name, kind in (("correction", "corrections"), ("benchmark", "benchmarks"), ("model", "models")):
        done[name], _ = drop_rows_of_files(session, kind, reading, subjects)
    check_references(session, reading, subjects)
    corrections = (facts.to_correction_row(correction, subjects) for correction in reading.corrections)
    done["correction"] += save_rows(session, Correction, corrections)
    new = load_sources(session)
    weighed_anew = any(to_authority(source) != to_authority(new[id_]) for id_, source in old.items())
    corrected = done["correction"].has_changes or done["size_alias"].has_changes
    if reading.fact_files or reading.aliases or corrected or weighed_anew:
        judged, twice = reconcile_facts(session, reading, subjects, prices.first_spellings)
        summary.reports += twice
    else:
        judged = add_priced_sizes(session, prices.first_spellings)
    done |= judged
    summary.sources |= sources.keys()
    summary.moved_sources |= {id_ for id_, source in old.items() if source["url"] != new[id_]["url"]}


def _save_others(session: Session, reading: Reading, subjects: SubjectKeys, summary: IngestSummary) -> None:
    done = summary.changes
    done["size_alias"] += save_rows(session, SizeAlias, map(facts.to_alias_row, reading.aliases))
    benchmarks = (facts.to_benchmark_row(benchmark, subjects) for benchmark in reading.benchmarks)
    done["benchmark"] += save_rows(session, Benchmark, benchmarks)
    done["model"] += save_rows(session, LanguageModel, map(facts.to_model_row, reading.models))


def _known_checksums(
    session: Session, summary: IngestSummary, overwritten: TableChecksum, *, moved: bool
) -> dict[str, TableChecksum]:
    """Find the content of the tables that need not be read for it: those that did not change, and the prices."""
    kept = load_checksums(session)
    changed = {name for name, change in summary.changes.items() if change.has_changes}
    known = {name: content for name, content in kept.items() if name.partition("(")[0] not in changed}
    prices = table_signature(PRICE)
    if moved:
        known.pop(prices, None)
    elif prices in kept and PRICE.name in changed:
        written = compute_checksum(session, select_canonical(session, PRICE, STAGED_PRICE))
        known[prices] = kept[prices] - overwritten + written
    return known


def _last_derived_on(session: Session) -> date | None:
    """The day of the last ingest, of which offers and documents are; None where they are not there."""
    revision = latest_revision(session)
    moment: datetime | None = revision["created_at"] if revision and is_derived(session) else None
    return moment.date() if moment else None


def _derive(session: Session, summary: IngestSummary, since: date | None, today: date, progress: Progress) -> None:
    """Derive offers and documents; where those of a day not after today are there, only of the sizes touched.

    What nobody speaks of any more goes before, where anything was taken away.
    """
    shrunk = any(summary.changes[name].removed for name in ("fact", "size_alias", "price") if name in summary.changes)
    if shrunk:
        summary.add(drop_orphans(session))
    progress("offers", None)
    if since is None or since > today:
        summary.changes["offer"] = save_derived(session, today)
        return
    mark_changed_rows(session, (key for (key,) in summary.changes["size"].keys), summary.moved_sources)
    mark_dirty(session, select(STAGED_PRICE.c.size_key))
    mark_dirty(session, select(DROPPED_PRICES.c.size_key))
    undated = select(exists().where(STAGED_PRICE.c.purchase == "spot", STAGED_PRICE.c.approximate_date.is_(True)))
    lapsed = session.execute(undated).scalar_one()
    if since < today:
        mark_dirty(session, sizes_newly_priced(since, today))
        behind = sizes_with_expired_spot(since, today)
        lapsed = lapsed or session.execute(select(behind.exists())).scalar_one()
        mark_dirty(session, behind)
    summary.changes["offer"] = save_derived(session, today, dirty_only=True, may_remove=shrunk or lapsed)
