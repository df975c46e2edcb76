"""Saves a reading, or forgets sources: rows, resolution, prices, derived offers and checksums, in one transaction."""

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import date, datetime
from difflib import get_close_matches

from sqlalchemy import exists, select, union
from sqlalchemy.orm import Session
from sqlmodel import SQLModel

from app.catalog.column_types import table_of
from app.catalog.models import Disk, Fact, LanguageModel, Region, Series, Size, Source
from app.catalog.names import codes_by_spelling, explain_unknown_region, explain_unknown_size, model_keys, size_key
from app.catalog.presets import split_names
from app.catalog.readings import ModelRow, Progress, Reading, Report, no_progress
from app.catalog.resolution.subjects import SubjectKeys
from app.catalog.revisions import latest_revision
from app.catalog.store.changes import CHANGE_TABLES, CatalogBefore, insert_tracking, save_changes, start_tracking
from app.catalog.store.facts import (
    add_priced_sizes,
    load_sources,
    load_subject_keys,
    name_doubtful_sizes,
    reconcile_facts,
    to_authority,
)
from app.catalog.store.listed import (
    find_idle_corrections,
    is_rule_edge_between,
    save_adjustments,
    save_availability,
    save_listed,
)
from app.catalog.store.offers import (
    DIRTY_SIZES,
    is_derived,
    mark_changed_rows,
    mark_dirty,
    save_derived,
    sizes_newly_priced,
    sizes_with_expired_spot,
)
from app.catalog.store.page_ids import settle_page_ids
from app.catalog.store.price_checks import (
    CHECK_TABLES,
    count_linux_at_windows_price,
    have_sizes_moved,
    is_retail,
    restore_refused,
    save_checked_prices,
)
from app.catalog.store.price_runs import CUT_RUN, RUN_TABLES, STAGED_LIST, merge_lists
from app.catalog.store.price_totals import changed_groups, changed_sources
from app.catalog.store.prices import (
    MAX_YEARS_AHEAD,
    PRICE,
    STAGED_PRICE,
    PriceStaging,
    check_placements,
    merge_aliases,
    merge_prices,
    stage_prices,
    staged_checksum,
)
from app.catalog.store.retract import (
    DROPPED_PRICES,
    check_nothing_is_in_use,
    drop_orphan_series,
    drop_orphan_sizes,
    drop_prices,
    drop_prices_of_files,
    drop_rows_of_files,
    drop_rows_of_sources,
    drop_sources,
    load_file_keys,
)
from app.catalog.store.revisions import TableChecksum, load_checksums, table_signature
from app.catalog.store.upsert import TableChange, save_rows, temporary_tables
from app.errors import BadData, NotFound

_TEMPORARY_TABLES = (STAGED_PRICE, DROPPED_PRICES, DIRTY_SIZES, *RUN_TABLES, *CHANGE_TABLES, *CHECK_TABLES)


@dataclass(slots=True)
class IngestSummary:
    """What an ingest did to each table, what could not be read, and what the revision is computed from.

    `sources` are the ids that the reading cites, `moved_sources` those whose URL changed. `checksums` are of the tables
    that need not be read again for the digest, by signature; `checksum_changes` are what resolving some of the facts
    changed in those of whole tables, by name. `refused` counts newly refused prices by source and rule.
    `linux_at_windows_price` counts new Linux prices of unchecked lists that equal the Windows price,
    `undated_spot_prices` the spot prices of such lists that are no offers, since their day is a guess.
    `events` is the number of change events; None where there was nothing to compare with: the catalog was empty, or its
    offers not derived.
    """

    changes: dict[str, TableChange] = field(default_factory=dict)
    reports: list[Report] = field(default_factory=list)
    sources: set[str] = field(default_factory=set)
    moved_sources: set[str] = field(default_factory=set)
    checksums: dict[str, TableChecksum] = field(default_factory=dict)
    checksum_changes: Mapping[str, TableChecksum] = field(default_factory=dict)
    refused: Mapping[tuple[str, str], int] = field(default_factory=dict)
    linux_at_windows_price: int = 0
    undated_spot_prices: int = 0
    events: int | None = None

    @property
    def has_changes(self) -> bool:
        """Whether any table was changed."""
        return any(change.has_changes for change in self.changes.values())

    def is_changed(self, *names: str) -> bool:
        """Return whether any of some tables was changed."""
        return any(name in self.changes and self.changes[name].has_changes for name in names)

    def add(self, changes: Mapping[str, TableChange]) -> None:
        """Add further changes to tables."""
        for name, change in changes.items():
            self.changes[name] = self.changes.get(name, TableChange()) + change


def save_reading(session: Session, reading: Reading, *, today: date, progress: Progress = no_progress) -> IngestSummary:
    """Write a reading and all that is derived from it; offers are those in force on `today`. Does not commit.

    Raises BadData for an unknown size, region, source or series, a name that two language models have, and a
    header alone that is read for the first time.
    """
    summary, derived_on = IngestSummary(), _last_derived_on(session)
    with temporary_tables(session, *_TEMPORARY_TABLES):
        before, stored = start_tracking(session), _stored_checksums(session)
        reading = settle_page_ids(session, reading)
        is_empty = bool(reading.files) and replace(reading, files=(), citable=()) == Reading()
        is_new = is_empty and not any(file.file in load_file_keys(session, file.kind) for file in reading.files)
        # Aliases go first: prices and facts are keyed by what a name means after this reading, not before.
        unnamed, _ = drop_rows_of_files(session, "aliases", reading, SubjectKeys(aliases={}, series_ids={}))
        summary.changes = {"source": TableChange(), "region": TableChange(), "size_alias": unnamed}
        subjects = load_subject_keys(session, reading)
        known_sizes = _load_size_names(session, reading)
        _check_aliases(session, reading, subjects, known_sizes)
        reading = name_doubtful_sizes(session, reading, subjects)
        summary.reports += reading.reports
        retail_before = _retail_sources(session)
        retail = retail_before.union(source.id for source in (*reading.citable, *reading.sources) if source.retail)
        is_restored = bool(reading.aliases) or any(price_list.sources & retail for price_list in reading.prices)
        if is_restored:
            restore_refused(session)
        regions = (*session.execute(select(*table_of(Region).c["code", "name", "provider"])), *reading.regions)
        prices = PriceStaging(
            subjects=subjects,
            regions={region.code: region.provider for region in regions},
            region_codes=codes_by_spelling((region.code, region.name) for region in regions),
            progress=progress,
            last_start=date(today.year + MAX_YEARS_AHEAD, 12, 31),
            known_sizes=known_sizes,
        )
        summary.reports += stage_prices(session, reading.prices, prices)
        own_undated = (rows for source, rows in prices.undated_spot.items() if source not in retail)
        summary.undated_spot_prices = sum(own_undated)
        dropped, dropped_checksum = drop_prices_of_files(session, prices.lists)
        progress("facts", None)
        _save_rows(session, reading, subjects, prices, summary)
        check_placements(session, prices)
        merged = merge_aliases(session, subjects)
        summary.changes["size"] += merged
        progress("writing prices", None, prices.rows)
        of_runs, lists = merge_lists(session, prices, today)
        written, overwritten_checksum = merge_prices(session, prices, today)
        summary.add({"price": written + of_runs + TableChange(removed=dropped), "price_list": lists})
        summary.linux_at_windows_price = count_linux_at_windows_price(session)
        if is_restored or derived_on is None or _are_rules_moved(session, summary, retail_before):
            _check_prices(session, summary, today, progress, is_restored=is_restored)
        _derive(session, summary, None if merged.has_changes else derived_on, today, progress)
        for table, kind in (("disk", "disks"), ("region", "regions")):  # after the prices that are for them
            closed, reports = drop_rows_of_files(session, kind, reading, subjects)
            summary.changes[table] += closed
            summary.reports += reports
        _save_events(session, summary, before if derived_on else None, today)
        progress("digest", None)
        moved = merged.has_changes or of_runs.has_changes or "refused_price" in summary.changes
        added_checksum = None if moved else staged_checksum(session, prices, written.added + written.changed)
        replaced = overwritten_checksum + dropped_checksum
        summary.checksums = _known_checksums(summary, stored, replaced, added_checksum)
        if is_new and not summary.has_changes:
            raise BadData("has no rows below its header: there is nothing to read", file=reading.files[0].file)
    return summary


def forget_sources(
    session: Session, sources: Collection[str], *, today: date, progress: Progress = no_progress
) -> IngestSummary:
    """Delete sources and every row that only they state, then resolve and derive again. Does not commit.

    Raises NotFound with the nearest ids for an unknown source, BadQuery where prices of other sources are for one
    of their regions or disks.
    """
    source_ids = load_sources(session)
    for source in sources:
        if source not in source_ids:
            raise NotFound("source", source, suggestions=tuple(get_close_matches(source, source_ids, 2)))
    check_nothing_is_in_use(session, sources)
    summary, derived_on = IngestSummary(sources={*sources}), _last_derived_on(session)
    with temporary_tables(session, *_TEMPORARY_TABLES):
        before, stored = start_tracking(session), _stored_checksums(session)
        progress("prices", None)
        retail_before = _retail_sources(session)
        if is_retail := not retail_before.isdisjoint(sources):
            restore_refused(session)
        dropped, dropped_checksum = drop_prices(session, PRICE.c.source_id.in_(sources))
        summary.changes = drop_rows_of_sources(session, sources)
        summary.add(drop_orphan_sizes(session))  # before the others are resolved, which counts those that stay
        progress("facts", None)
        changes, *_ = reconcile_facts(session, Reading(), load_subject_keys(session, Reading()), {})
        summary.add(changes | {"price": TableChange(removed=dropped)})
        if is_retail or _are_rules_moved(session, summary, retail_before):
            _check_prices(session, summary, today, progress, is_restored=is_retail)
        _derive(session, summary, derived_on, today, progress)
        summary.add(drop_sources(session, sources))
        _save_events(session, summary, before if derived_on else None, today)
        progress("digest", None)
        added_checksum = None if "refused_price" in summary.changes else TableChecksum()
        summary.checksums = _known_checksums(summary, stored, dropped_checksum, added_checksum)
    return summary


def _retail_sources(session: Session) -> frozenset[str]:
    """Load the ids of the sources whose prices are checked."""
    source = table_of(Source).c
    return frozenset(session.execute(select(source.id).where(source.retail.is_(True))).scalars())


def _are_rules_moved(session: Session, summary: IngestSummary, retail_before: frozenset[str]) -> bool:
    """Return whether an ingest changed what prices are checked by, besides prices: retail sources, series, parents."""
    return summary.is_changed("series") or _retail_sources(session) != retail_before or have_sizes_moved(session)


def _check_prices(
    session: Session, summary: IngestSummary, today: date, progress: Progress, *, is_restored: bool
) -> None:
    """Check all retail prices again, those that were refused before among them."""
    if not is_restored:
        restore_refused(session)
    progress("checking prices", None)
    change, summary.refused = save_checked_prices(session, today)
    summary.add({"refused_price": change})


def _save_events(session: Session, summary: IngestSummary, before: CatalogBefore | None, today: date) -> None:
    """Write the change events of an ingest; without a catalog `before` it there are none."""
    if before is not None:
        summary.events = save_changes(session, before, today)
    session.execute(insert_tracking())


def check_references(session: Session, reading: Reading, subjects: SubjectKeys) -> None:
    """Check that corrections cite known sources, benchmarks known series, prices of disks known regions and disks.

    No two models may share a name. Sources, regions and disks of the reading itself must be written before; prices of
    sizes are checked while they are staged. Raises BadData for the first that is wrong.
    """
    sources = _load_column(session, Source, "id")
    for correction in reading.corrections:
        if correction.source not in sources:
            raise correction.error("source", f"unknown source {correction.source!r}; ingest it first")
    series = _load_column(session, Series, "id") | set(subjects.series_ids.values())
    for benchmark in reading.benchmarks:
        if subjects.series_id(benchmark.series) not in series:
            raise benchmark.error("series", f"unknown series {benchmark.series!r}; ingest it first")
    _check_disk_prices(session, reading)
    _check_model_names(session, reading)


def _check_disk_prices(session: Session, reading: Reading) -> None:
    """Check that prices of disks are for known regions and disks, a month of a size or else by what is provisioned."""
    if not reading.disk_prices:
        return
    regions, disk = _load_column(session, Region, "code"), table_of(Disk).c
    sizes = {row.id: row.size for row in session.execute(select(disk.id, disk.size))}
    for price in reading.disk_prices:
        if price.region not in regions:
            raise price.error("region", explain_unknown_region(price.region, regions))
        if price.disk not in sizes:
            raise price.error("disk", f"unknown disk {price.disk!r}; ingest it first")
        if (price.per == "month") != (sizes[price.disk] is not None):
            kind = "is of one size, and priced per month" if sizes[price.disk] else "is of any size, and priced by GiB"
            raise price.error("per", f"{price.per!r}: {price.disk} {kind}")


def _check_model_names(session: Session, reading: Reading) -> None:
    """Check that every name of a new language model is free, among the stored ones and those of this reading."""
    new = {model.preset.id: model for model in reading.models}
    table = table_of(LanguageModel).c
    stored = select(table.id, table.name, table.hf_repo, table.aliases).where(table.id.not_in(new))
    owners: dict[str, ModelRow | str] = {
        key: row.id
        for row in session.execute(stored)
        for key in model_keys((row.id, row.name, row.hf_repo or "", *split_names(row.aliases)))
    }
    names = (
        (model, column, name)
        for model in reading.models
        for column, names in model.preset.names.items()
        for name in names
    )
    for model, column, name in names:
        for key in model_keys([name]):
            owner = owners.setdefault(key, model)
            if owner is not model:
                other = owner if isinstance(owner, str) else owner.preset.id
                detail = f"{name!r}: already means {other!r}; every name and alias must be one model's"
                raise model.error(column, detail)


def _load_column(session: Session, model: type[SQLModel], column: str) -> set[str]:
    return set(session.execute(select(table_of(model).c[column])).scalars())


def _check_aliases(session: Session, reading: Reading, subjects: SubjectKeys, known_sizes: Mapping[str, str]) -> None:
    """Raise BadData for an alias of an alias: which of the two names is the size's, nothing says.

    So it does for an alias that may not add a size, where its size is unknown, or the alias is one of its own.
    """
    named_by = {key: alias for alias, key in subjects.aliases.items()}
    for row in reading.aliases:
        if size_key(row.size) in subjects.aliases:
            detail = f"{row.size!r}: is itself another name, of {subjects.aliases[size_key(row.size)]}; name that size"
            raise row.error("size", detail)
        if other := named_by.get(size_key(row.alias)):
            detail = f"is the size that the alias {other} means; make {other} an alias of {row.size}, too"
            raise row.error("alias", f"{row.alias!r}: {detail}")
        if not row.new_size and size_key(row.size) not in known_sizes:
            raise row.error("size", explain_unknown_size(row.size, known_sizes, "An alias needs a known one"))
        if not row.new_size and (source := _find_own_source(session, size_key(row.alias), size_key(row.size))):
            detail = f"is a size of its own, which {source} describes, not another name of {row.size}"
            raise row.error("alias", f"{row.alias!r}: {detail}")


def _find_own_source(session: Session, alias: str, key: str) -> str | None:
    """Find a source by which an alias is a size of its own: a vendor's, or one that describes its size, too."""
    fact, source = table_of(Fact).c, table_of(Source).c
    of_both = fact.source_id.in_(select(fact.source_id).where(fact.kind == "size", fact.subject == key))
    is_own = (fact.kind == "size") & (fact.subject == alias) & ((source.kind != "third_party") | of_both)
    found = select(source.id).join(table_of(Fact), fact.source_id == source.id).where(is_own).order_by(source.id)
    return session.execute(found.limit(1)).scalar()


def _load_size_names(session: Session, reading: Reading) -> dict[str, str]:
    """Load the names of all sizes that are stored or stated by this reading, by key.

    Empty where every price list and alias may add sizes: then none needs a known size.
    """
    if all(price_list.new_sizes for price_list in reading.prices) and all(row.new_size for row in reading.aliases):
        return {}
    size = table_of(Size).c
    stated = {size_key(fact.subject): fact.subject for fact in reading.facts if fact.kind == "size"}
    return stated | {row.key: row.name for row in session.execute(select(size.key, size.name))}


_FREE_TABLES = {
    "correction": "corrections",
    "benchmark": "benchmarks",
    "model": "models",
    "exchange_rate": "exchange_rates",
    "disk_price": "disk_prices",
}
"""Tables that no other refers to, by name, and the kind of file that lists their rows."""


def _save_rows(
    session: Session, reading: Reading, subjects: SubjectKeys, prices: PriceStaging, summary: IngestSummary
) -> None:
    """Write all of a reading but its prices; resolve every fact, unless nothing in it can change a resolution."""
    cited = [source for source in reading.citable if source.id in prices.sources]
    sources = {source.id: source for source in (*reading.sources, *cited)}
    old, changes = load_sources(session), summary.changes
    changes["source"] = save_rows(session, Source, map(asdict, sources.values()))
    changes["region"] = save_listed(session, "regions", reading, subjects)
    changes["disk"] = save_listed(session, "disks", reading, subjects)
    for table, kind in _FREE_TABLES.items():
        changes[table], _ = drop_rows_of_files(session, kind, reading, subjects)
    check_references(session, reading, subjects)
    changes["correction"] += save_listed(session, "corrections", reading, subjects)
    new = load_sources(session)
    weighed = [id_ for id_, source in old.items() if to_authority(source) != to_authority(new[id_])]
    of_all = summary.is_changed("correction", "size_alias") or bool(reading.aliases)
    # The date of a list of prices decides between no facts.
    are_weighed = select(exists().where(table_of(Fact).c.source_id.in_(weighed)))
    if reading.fact_files or of_all or (weighed and session.execute(are_weighed).scalar_one()):
        of_facts, reports, summary.checksum_changes = reconcile_facts(
            session, reading, subjects, prices.first_spellings, scope_sources=None if of_all else weighed
        )
        summary.reports += reports
        changes |= of_facts
    else:
        changes |= add_priced_sizes(session, prices.first_spellings)
    summary.reports += find_idle_corrections(session, reading, subjects)
    changes["size_alias"] += save_listed(session, "aliases", reading, subjects)
    for table in ("benchmark", "model", "exchange_rate", "disk_price"):
        changes[table] += save_listed(session, _FREE_TABLES[table], reading, subjects)
    changes["availability"] = save_availability(session, reading, subjects)
    changes["adjustment"], reports = save_adjustments(session, reading, subjects)
    summary.reports += reports
    summary.sources |= sources.keys()
    summary.moved_sources |= {id_ for id_, source in old.items() if source["url"] != new[id_]["url"]}


def _stored_checksums(session: Session) -> dict[str, TableChecksum]:
    """Load the checksums of the tables before an ingest, by signature; that of a catalog without prices is known."""
    stored = load_checksums(session)
    if not session.execute(select(exists(select(PRICE.c.size_key)))).scalar_one():
        stored[table_signature(PRICE)] = TableChecksum()
    return stored


def _known_checksums(
    summary: IngestSummary,
    stored: Mapping[str, TableChecksum],
    replaced: TableChecksum,
    added: TableChecksum | None,
) -> dict[str, TableChecksum]:
    """Return the checksums that are known without reading their table: of unchanged tables, and of the prices.

    Prices are by far the largest table, so their checksum is computed from the one that was `stored`: less the rows
    that were `replaced` or dropped, plus the `added` ones. It is unknown where an alias or a complete list moved some.
    """
    changed = {name for name, change in summary.changes.items() if change.has_changes}
    checksums = {
        signature: checksum for signature, checksum in stored.items() if signature.partition("(")[0] not in changed
    }
    for signature in stored:
        name = signature.partition("(")[0]
        # Sizes and series that nothing mentions any more were deleted later.
        if name in summary.checksum_changes and (name == "fact" or not summary.changes[name].removed):
            checksums[signature] = stored[signature] + summary.checksum_changes[name]
    prices = table_signature(PRICE)
    if added is None:
        checksums.pop(prices, None)
    elif prices in stored and PRICE.name in changed:
        checksums[prices] = stored[prices] - replaced + added
    return checksums


def _last_derived_on(session: Session) -> date | None:
    """Return the day for which offers and size documents are derived; None where they are not."""
    revision = latest_revision(session)
    moment: datetime | None = revision["created_at"] if revision and is_derived(session) else None
    return moment.date() if moment else None


def _derive(session: Session, summary: IngestSummary, since: date | None, today: date, progress: Progress) -> None:
    """Derive offers and size documents: of the dirty sizes, or of all where none are derived for a day up to `today`.

    All are derived, too, where rules changed, began or ended. Changed rules are no news of the sources: they make no
    events of prices.

    Sizes, series and GPUs that nothing mentions any more are dropped first.
    """
    removed = (summary.changes[name].removed for name in ("fact", "size_alias", "price") if name in summary.changes)
    is_checked = "refused_price" in summary.changes
    may_remove = any(removed) or summary.is_changed("refused_price")
    if may_remove:
        summary.add(drop_orphan_sizes(session))
    if may_remove or summary.is_changed("size"):  # a size may have left its series, or its GPU
        summary.add(drop_orphan_series(session))
    progress("offers", None)
    new_rules = summary.is_changed("adjustment")
    if since is None or since > today or new_rules or is_rule_edge_between(session, since, today):
        summary.changes["offer"] = save_derived(session, today, collect=not new_rules)
        return
    mark_changed_rows(session, (key for (key,) in summary.changes["size"].keys), summary.moved_sources)
    mark_dirty(session, select(STAGED_PRICE.c.size_key))
    mark_dirty(session, select(DROPPED_PRICES.c.size_key))
    if is_checked:
        mark_dirty(session, select(PRICE.c.size_key).where(is_retail(PRICE.c)))
    # An undated spot price is no offer, so staging one may end the offer of the price that it overwrote.
    undated = select(exists().where(STAGED_PRICE.c.purchase == "spot", STAGED_PRICE.c.approximate_date.is_(True)))
    may_remove = may_remove or session.execute(undated).scalar_one()
    if "price_list" in summary.changes:
        may_remove = may_remove or summary.is_changed("price_list", "price")
        if session.execute(select(exists(select(STAGED_LIST.c.day)))).scalar_one():
            of_sources = select(PRICE.c.size_key).where(PRICE.c.source_id.in_(select(STAGED_LIST.c.source_id)))
            mark_dirty(session, select(union(select(CUT_RUN.c.size_key), of_sources).subquery().c.size_key))
    if since < today:
        mark_dirty(session, sizes_newly_priced(since, today))
        expired = sizes_with_expired_spot(since, today)
        may_remove = may_remove or session.execute(select(expired.exists())).scalar_one()
        mark_dirty(session, expired)
    read_prices = summary.is_changed("price", "price_list", "refused_price")
    summary.changes["offer"] = save_derived(
        session,
        today,
        dirty_only=True,
        price_groups=None if is_checked else changed_groups(session) if read_prices else (),
        price_sources=None if is_checked else changed_sources(session) if read_prices else (),
        may_remove=may_remove,
        collect=True,
    )
