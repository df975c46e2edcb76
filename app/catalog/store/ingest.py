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
from app.catalog.resolution.subjects import Subjects
from app.catalog.store import facts
from app.catalog.store.bulk import staged
from app.catalog.store.facts import add_named, author_of, find_sources, find_subjects, judge_facts
from app.catalog.store.offers import TOUCHED, fallen_behind, fallen_due, is_derived, rewritten, save_derived, touch
from app.catalog.store.prices import PRICE, STAGED_PRICE, Staging, merge_aliases, merge_prices, stage_prices
from app.catalog.store.retract import (
    DROPPED_PRICE,
    check_regions_of_source,
    drop_prices,
    drop_prices_of_files,
    drop_rows_of_files,
    drop_rows_of_source,
    drop_source,
    drop_unspoken,
)
from app.catalog.store.revisions import Content, canonical, content_of, heading, kept_contents, latest_revision
from app.catalog.store.upsert import Change, save_rows
from app.errors import BadData, NotFound


def check_references(session: Session, reading: Reading, subjects: Subjects) -> None:
    """Refuse a correction of an unknown source, a benchmark of an unknown series, a name that two models have.

    Sources of the reading itself are written before; prices are checked as they pass. Raises BadData for the first.
    """
    sources = _all(session, Source, "id")
    for correction in reading.corrections:
        if correction.source not in sources:
            raise _unknown("source", correction.source, correction.file, correction.line)
    series = _all(session, Series, "id") | set(subjects.series.values())
    for benchmark in reading.benchmarks:
        if subjects.series_id(benchmark.series) not in series:
            raise _unknown("series", benchmark.series, benchmark.file, benchmark.line)
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
                _claim(owners, name, column, model)


def _claim(owners: dict[str, ModelRow | str], name: str, column: str, model: ModelRow) -> None:
    for key in model_keys([name]):
        owner = owners.setdefault(key, model)
        if owner is not model:
            other = owner if isinstance(owner, str) else owner.preset.id
            said = f"{name!r}: already means {other!r}; every name and alias must be one model's"
            raise BadData(said, file=model.file, line=model.line, column=column)


def _all(session: Session, model: type[Any], column: str) -> set[str]:
    return set(session.execute(select(table_of(model).c[column])).scalars())


def _unknown(kind: str, name: str, file: str, line: int) -> BadData:
    return BadData(f"there is no {kind} {name!r}; bring it in first", file=file, line=line, column=kind)


@dataclass(slots=True)
class Tally:
    """What an intake did to each table, what could not be taken, and what the revision starts from.

    `sources` are those of the reading, `readdressed` the kept ones that have another URL now; `contents` are of the
    tables that need not be read for the digest.
    """

    changes: dict[str, Change] = field(default_factory=dict)
    reports: list[Report] = field(default_factory=list)
    sources: set[str] = field(default_factory=set)
    readdressed: set[str] = field(default_factory=set)
    contents: dict[str, Content] = field(default_factory=dict)

    @property
    def any(self) -> bool:
        """Whether the catalog is different now."""
        return any(change.any for change in self.changes.values())

    def add(self, changes: Mapping[str, Change]) -> None:
        """Add what else was done to tables."""
        for name, change in changes.items():
            self.changes[name] = self.changes.get(name, Change()) + change


def save_reading(session: Session, reading: Reading, *, today: date, progress: Progress = no_progress) -> Tally:
    """Write a reading and all that follows from it; `today` says which prices are in force. Commits nothing."""
    tally, derived_on = Tally(reports=list(reading.reports)), _derived_on(session)
    with staged(session, STAGED_PRICE, DROPPED_PRICE, TOUCHED):
        unnamed, _ = drop_rows_of_files(session, "aliases", reading, Subjects(sizes={}, series={}))
        tally.changes = {"source": Change(), "region": Change(), "size_alias": unnamed}
        subjects = find_subjects(session, reading)
        prices = Staging(
            subjects=subjects, regions=_regions(session, reading), progress=progress, sizes=_sizes(session, reading)
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
        tally.changes["price"] = written + Change(removed=dropped)
        _derive(session, tally, None if merged.any else derived_on, today, progress)
        closed, reports = drop_rows_of_files(session, "regions", reading, subjects)
        tally.changes["region"] += closed
        tally.reports += reports
        progress("digest", None)
        tally.contents = _contents(session, tally, overwritten + content, moved=merged.any)
    return tally


def forget_source(session: Session, source: str, *, today: date, progress: Progress = no_progress) -> Tally:
    """Take away a source and what only it said; what follows is decided and derived anew. Commits nothing.

    Raises NotFound naming the nearest for an unknown source, BadQuestion where others' prices need its regions.
    """
    known = find_sources(session)
    if source not in known:
        raise NotFound("source", source, nearest=tuple(get_close_matches(source, known, 2)))
    check_regions_of_source(session, source)
    tally, derived_on = Tally(sources={source}), _derived_on(session)
    with staged(session, STAGED_PRICE, DROPPED_PRICE, TOUCHED):
        progress("prices", None)
        dropped, content = drop_prices(session, PRICE.c.source_id == source)
        tally.changes = drop_rows_of_source(session, source)
        progress("facts", None)
        judged, _ = judge_facts(session, Reading(), find_subjects(session, Reading()), {})
        tally.add(judged | {"price": Change(removed=dropped)})
        _derive(session, tally, derived_on, today, progress)
        tally.add(drop_source(session, source))
        progress("digest", None)
        tally.contents = _contents(session, tally, content, moved=False)
    return tally


def _sizes(session: Session, reading: Reading) -> dict[str, str]:
    """The names of all sizes that are kept, or that this reading states, by key."""
    if all(each.new_sizes for each in reading.prices.lists):
        return {}
    size = table_of(Size).c
    stated = {size_key(each.subject): each.subject for each in reading.facts if each.kind == "size"}
    return stated | {row.key: row.name for row in session.execute(select(size.key, size.name))}


def _regions(session: Session, reading: Reading) -> frozenset[str]:
    kept = session.execute(select(table_of(Region).c.code)).scalars()
    return frozenset(kept).union(region.code for region in reading.regions)


def _save_facts(session: Session, reading: Reading, subjects: Subjects, prices: Staging, tally: Tally) -> None:
    """Write sources, regions and corrections; then judge, unless nothing came that could change a judgement."""
    cited = [source for source in reading.citable if source.id in prices.sources]
    sources = {source.id: source for source in (*reading.sources, *cited)}
    old, done = find_sources(session), tally.changes
    done["source"] = save_rows(session, Source, map(asdict, sources.values()))
    done["region"] = save_rows(session, Region, map(facts.region_row, reading.regions))
    for name, kind in (("correction", "corrections"), ("benchmark", "benchmarks"), ("model", "models")):
        done[name], _ = drop_rows_of_files(session, kind, reading, subjects)
    check_references(session, reading, subjects)
    corrections = (facts.correction_row(correction, subjects) for correction in reading.corrections)
    done["correction"] += save_rows(session, Correction, corrections)
    new = find_sources(session)
    weighed_anew = any(author_of(source) != author_of(new[id_]) for id_, source in old.items())
    corrected = done["correction"].any or done["size_alias"].any
    if reading.fact_files or reading.aliases or corrected or weighed_anew:
        judged, twice = judge_facts(session, reading, subjects, prices.named)
        tally.reports += twice
    else:
        judged = add_named(session, prices.named)
    done |= judged
    tally.sources |= sources.keys()
    tally.readdressed |= {id_ for id_, source in old.items() if source["url"] != new[id_]["url"]}


def _save_others(session: Session, reading: Reading, subjects: Subjects, tally: Tally) -> None:
    done = tally.changes
    done["size_alias"] += save_rows(session, SizeAlias, map(facts.alias_row, reading.aliases))
    benchmarks = (facts.benchmark_row(benchmark, subjects) for benchmark in reading.benchmarks)
    done["benchmark"] += save_rows(session, Benchmark, benchmarks)
    done["model"] += save_rows(session, LanguageModel, map(facts.model_row, reading.models))


def _contents(session: Session, tally: Tally, overwritten: Content, *, moved: bool) -> dict[str, Content]:
    """Find the content of the tables that need not be read for it: those that did not change, and the prices."""
    kept = kept_contents(session)
    changed = {name for name, change in tally.changes.items() if change.any}
    known = {name: content for name, content in kept.items() if name.partition("(")[0] not in changed}
    prices = heading(PRICE)
    if moved:
        known.pop(prices, None)
    elif prices in kept and PRICE.name in changed:
        written = content_of(session, canonical(session, PRICE, STAGED_PRICE))
        known[prices] = kept[prices] - overwritten + written
    return known


def _derived_on(session: Session) -> date | None:
    """The day of the last ingest, of which offers and documents are; None where they are not there."""
    revision = latest_revision(session)
    moment: datetime | None = revision["created_at"] if revision and is_derived(session) else None
    return moment.date() if moment else None


def _derive(session: Session, tally: Tally, since: date | None, today: date, progress: Progress) -> None:
    """Derive offers and documents; where those of a day not after today are there, only of the sizes touched.

    What nobody speaks of any more goes before, where anything was taken away.
    """
    shrunk = any(tally.changes[name].removed for name in ("fact", "size_alias", "price") if name in tally.changes)
    if shrunk:
        tally.add(drop_unspoken(session))
    progress("offers", None)
    if since is None or since > today:
        tally.changes["offer"] = save_derived(session, today)
        return
    rewritten(session, (key for (key,) in tally.changes["size"].keys), tally.readdressed)
    touch(session, select(STAGED_PRICE.c.size_key))
    touch(session, select(DROPPED_PRICE.c.size_key))
    undated = select(exists().where(STAGED_PRICE.c.purchase == "spot", STAGED_PRICE.c.approximate_date.is_(True)))
    lapsed = session.execute(undated).scalar_one()
    if since < today:
        touch(session, fallen_due(since, today))
        behind = fallen_behind(since, today)
        lapsed = lapsed or session.execute(select(behind.exists())).scalar_one()
        touch(session, behind)
    tally.changes["offer"] = save_derived(session, today, touched=True, shrunk=shrunk or lapsed)
