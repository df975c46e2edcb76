"""Documents to facts: joins what the tables, host specifications, flags and sentences of each page state."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal

from app.catalog.names import series_key, size_key
from app.catalog.readings import BenchmarkRow, Reading, Report, StatedFact
from app.ingest.documents.document_tables import (
    DocumentTables,
    add_infiniband_totals,
    find_network_unit,
    read_cells,
    read_tables,
    split_by_series,
)
from app.ingest.documents.features import (
    apply_restrictions,
    find_flag_facts,
    find_flags,
    find_restrictions,
    find_table_flags,
)
from app.ingest.documents.gpu_rows import GpuMemoryIndex, PageGpus, read_gpus
from app.ingest.documents.hardware import find_mentions, find_only_model
from app.ingest.documents.page import Finding, Sentence, SourceDocument
from app.ingest.documents.page_facts import (
    OTHER_ACCELERATORS,
    call_nvme_by_its_name,
    find_absence_facts,
    find_footnote_facts,
    find_gpu_sentence_facts,
    find_host_spec_facts,
    find_non_gpu_reason,
    find_nvme_statement,
    find_other_accelerators,
    find_page_preview_facts,
    find_retirement_facts,
    find_row_preview_facts,
    find_sentence_facts,
    is_migration_advice,
    to_row_values,
)
from app.ingest.documents.row_facts import (
    LOCAL_SSD,
    NVME,
    PER_DISK,
    PER_NIC,
    read_drives,
    read_parent_sizes,
    read_scale_networks,
    read_temp_disks,
)
from app.ingest.documents.sentences import find_benchmarks, find_rack_facts, find_vm_facts
from app.ingest.documents.series import LIST_SEPARATOR, SeriesTitle, belongs_to_series, find_listed, find_series
from app.ingest.documents.specs import HostFact

_MAX_NAMED_SIZES = 5
"""Number of sizes that a report names; it counts the others."""


def merge_findings(findings: Iterable[Finding]) -> tuple[list[StatedFact], list[Report]]:
    """Return one fact for each subject, field and source, and the reports; contradictions become reports.

    The first fact wins, except that a text with more words wins over one whose words it includes. The contradictions
    of a file on one field, as of two tables of the same sizes, are one report.
    """
    kept: dict[tuple[str, str, str, str], StatedFact] = {}
    reports: dict[Report, None] = {}
    contradictions: dict[tuple[str, str], list[tuple[StatedFact, StatedFact]]] = {}
    for finding in findings:
        if isinstance(finding, Report):
            reports[finding] = None
            continue
        subject = (size_key if finding.kind == "size" else series_key)(finding.subject)
        key = (finding.kind, subject, finding.field, finding.source)
        earlier = kept.setdefault(key, finding)
        if earlier.value == finding.value:
            continue
        if isinstance(earlier.value, str) and isinstance(finding.value, str):
            words, fewer = finding.value.lower().split(), earlier.value.lower().split()
            if len(words) > len(fewer) and all(word in words for word in fewer):
                kept[key] = finding
            continue
        contradictions.setdefault((finding.file, finding.field), []).append((finding, earlier))
    return list(kept.values()), [*reports, *map(_report_contradictions, contradictions.values())]


def _report_contradictions(pairs: Sequence[tuple[StatedFact, StatedFact]]) -> Report:
    (finding, earlier), *others = pairs
    detail = f"says {finding.value} for {finding.subject}, where line {earlier.line} says {earlier.value}; that is kept"
    if lines := sorted({other.line for other, _ in others} - {finding.line}):
        detail += f", and so it is for line{'s' if len(lines) > 1 else ''} {', '.join(map(str, lines))}"
    return Report(file=finding.file, line=finding.line, column=finding.field, cell=finding.raw, detail=detail)


_AT_MOST = tuple(
    (f"{less}_{unit}", f"{most}_{unit}")
    for unit in ("iops", "mbps")
    for less, most in (
        *((disk, f"{disk}_burst") for disk in ("uncached_disk", "ultra_disk", "temp_disk")),
        ("temp_disk_write", "temp_disk_read"),
        ("temp_disk_sequential_write", "temp_disk_sequential_read"),
    )
)
"""Rates of disks of which the first is at most the second: without and with burst, of writing and of reading."""


def check_rates(facts: Sequence[StatedFact]) -> tuple[list[StatedFact], list[Report]]:
    """Return the facts that can be read, and reports of rates of disks that contradict each other.

    No disk moves a megabyte at once, that is, has as many MBps as IOPS: where a page says so of a size, its columns are
    mixed up, and none of their cells is read. Of two other rates that contradict each other either may be wrong, so
    that both are kept.
    """
    rates: dict[str, dict[tuple[str, str], StatedFact]] = {}
    for fact in facts:
        if fact.field.endswith(("_iops", "_mbps")):
            rates.setdefault(fact.field, {})[fact.file, fact.subject] = fact
    reports: list[Report] = []
    swapped: set[tuple[str, str]] = set()
    for field, iops in rates.items():
        mbps = rates.get(field.removesuffix("iops") + "mbps", {}) if field.endswith("_iops") else {}
        for file, above in _find_above(mbps, iops, or_equal=True).items():
            detail = f"is not below the IOPS, {_name_sizes(above)}: the columns are mixed up, and neither is read"
            first = above[0][0]
            reports.append(Report(file=file, line=first.line, column=first.field, cell=first.raw, detail=detail))
            swapped |= {(file, field), (file, first.field)}
    for less, most in _AT_MOST:
        for file, above in _find_above(rates.get(less, {}), rates.get(most, {})).items():
            first = above[0][0]
            if not swapped & {(file, less), (file, most)}:
                detail = f"is above {most}, {_name_sizes(above)}: one of them is wrong"
                reports.append(Report(file=file, line=first.line, column=less, cell=first.raw, detail=detail))
    return [fact for fact in facts if (fact.file, fact.field) not in swapped], reports


def _find_above(
    less: Mapping[tuple[str, str], StatedFact], most: Mapping[tuple[str, str], StatedFact], *, or_equal: bool = False
) -> dict[str, list[tuple[StatedFact, StatedFact]]]:
    """Return by file the pairs of rates of a size of which the first is above the second."""
    contradictions: dict[str, list[tuple[StatedFact, StatedFact]]] = {}
    for key, fact in less.items():
        other = most.get(key)
        above = Decimal(str(fact.value)) - Decimal(str(other.value)) if other else Decimal(-1)
        if other and (above > 0 or (or_equal and above == 0)):
            contradictions.setdefault(fact.file, []).append((fact, other))
    return contradictions


def _name_sizes(pairs: Sequence[tuple[StatedFact, StatedFact]]) -> str:
    named = [f"{fact.value} and {other.value} of {fact.subject}" for fact, other in pairs[:_MAX_NAMED_SIZES]]
    return ", ".join(named) + (f" and {len(pairs) - len(named)} more" if len(pairs) > len(named) else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentFacts:
    """The facts of a document before its sizes are assigned to series."""

    document: SourceDocument
    series: SeriesTitle | None
    subjects: tuple[str, ...]
    facts: tuple[StatedFact, ...]
    reports: tuple[Report, ...]


def read_document(document: SourceDocument, memories: GpuMemoryIndex) -> DocumentFacts:
    """Read everything that a document states of its sizes."""
    tables, sentences = read_tables(document), list(document.sentences())
    series = find_series(document.page)
    subjects = tables.subjects
    findings: list[Finding] = [*tables.findings]
    if not subjects and series:
        announced = list(find_vm_facts(sentences, series.name))
        subjects = [series.name] if announced else []
        # An announcement has no table of sizes; its facts are kept under the name of the series.
        findings += announced
    rows = [row.name for row in tables.rows] or subjects
    own_rows = [name for name in rows if series and _is_of(series, name)]
    # Sentences are about the page's series; pages such as collected notes list sizes of any series.
    own_sentences = sentences if 2 * len(own_rows) > len(rows) else []
    if own_sentences:
        subjects = [subject for subject in subjects if subject in own_rows]
    without_gpus = find_other_accelerators(tables.specs, own_sentences)
    findings += _find_row_facts(document, tables, subjects, own_sentences, memories, without_gpus=without_gpus)
    findings += _find_page_facts(document, subjects, sentences, series)
    findings += find_sentence_facts(own_sentences, subjects)
    if without_gpus is None:
        findings += find_gpu_sentence_facts(own_sentences, subjects)
    findings += find_absence_facts(tables.specs, own_sentences, without_gpus, subjects, series)
    if not subjects and not findings:
        findings += _report_nothing_read(document)
    findings = [*call_nvme_by_its_name(findings, find_nvme_statement(document, tables))]
    facts, reports = merge_findings(add_infiniband_totals(findings))
    facts, contradictions = check_rates(facts)
    return DocumentFacts(
        document=document,
        series=series,
        subjects=tuple(tables.subjects or subjects),
        facts=tuple(facts),
        reports=(*reports, *contradictions),
    )


def read_series(facts: DocumentFacts, series: str) -> tuple[list[Finding], list[BenchmarkRow]]:
    """Return findings and benchmarks of the series of a document under the name `series`."""
    sentences = list(facts.document.sentences())
    findings: list[Finding] = [*find_rack_facts(sentences, series)]
    items: dict[tuple[str, str], tuple[list[str], StatedFact]] = {}
    for page, name, item, raw, line in find_listed(facts.document, sentences):
        first = page.series_fact(series, name, item, raw, line)
        listed, _ = items.setdefault((page.file, name), ([], first))
        if item.lower() not in (other.lower() for other in listed):
            listed.append(item)
    findings += [replace(first, value=LIST_SEPARATOR.join(listed)) for listed, first in items.values()]
    return findings, list(find_benchmarks(sentences, series))


def _find_row_facts(
    document: SourceDocument,
    tables: DocumentTables,
    subjects: list[str],
    sentences: list[Sentence],
    memories: GpuMemoryIndex,
    *,
    without_gpus: HostFact | None,
) -> Iterator[Finding]:
    mentions = list(find_mentions(sentence for sentence in sentences if not is_migration_advice(sentence)))
    model = find_only_model(mentions)
    page_gpus = PageGpus(
        from_specs=tables.specs.gpu,
        prose_memories=frozenset(mention.memory_gib for mention in mentions if mention.memory_gib),
        prose_models=tuple(dict.fromkeys(mention.model for mention in mentions)),
        prose_count=model.count if model else None,
        # Where no sentences apply, the sizes need not be of the series that the title names.
        title=document.page.title if sentences else "",
    )
    temp_disks = read_temp_disks(tables.rows, per_disk=document.says(PER_DISK))
    cells = [*read_cells(tables.rows, document.network_unit), *temp_disks]
    yield from cells
    per_gpu_gib: dict[str, Decimal] = {}
    if without_gpus:
        yield without_gpus.page.report(OTHER_ACCELERATORS, without_gpus.line, None, without_gpus.raw)
    elif reason := find_non_gpu_reason(document, tables, page_gpus, sentences, memories):
        yield document.page.report(reason, 1)
    else:
        findings, per_gpu_gib = read_gpus(tables.rows, page_gpus, memories)
        yield from findings
    yield from read_drives(tables.rows, NVME, tables.specs.nvme_gib)
    yield from read_drives(tables.rows, LOCAL_SSD, None)
    yield from read_parent_sizes(tables.rows)
    yield from read_scale_networks(tables.rows, per_nic=document.says(PER_NIC))
    yield from find_footnote_facts(document, tables.rows)
    yield from find_row_preview_facts(tables.rows)
    yield from find_host_spec_facts(tables.specs, subjects, per_gpu_gib, to_row_values(cells))


def _find_page_facts(
    document: SourceDocument, subjects: list[str], sentences: list[Sentence], series: SeriesTitle | None
) -> Iterator[Finding]:
    restricted = {restriction.field: restriction for restriction in find_restrictions(sentences, subjects)}
    for page in document.pages:
        flags = list(find_flags(page.blocks.passages))
        flags += [flag for table in page.blocks.tables for flag in find_table_flags(table)]
        yield from apply_restrictions(find_flag_facts(page, iter(flags), subjects), restricted)
    yield from find_page_preview_facts(document, subjects)
    yield from find_retirement_facts(sentences, subjects, series.name if series else None)


def _is_of(series: SeriesTitle, subject: str) -> bool:
    return series.stated or belongs_to_series(series.name, subject)


def _report_nothing_read(document: SourceDocument) -> Iterator[Report]:
    for page, passage in document.passages():
        if re.search(r"\bStandard_[A-Z]+\d", passage.text):
            yield page.report("names sizes only in its text, where they are not read", passage.line, None, None)
            return


def read_batch(documents: Sequence[SourceDocument], memories: GpuMemoryIndex) -> Reading:
    """Read documents in order of publication: the first that names a size decides its series."""
    owners: dict[str, tuple[str, str]] = {}
    findings: list[Finding] = []
    benchmarks: list[BenchmarkRow] = []
    parts = [
        replace(part, network_unit=unit)
        for whole in documents
        for unit in (find_network_unit(whole),)
        for part in split_by_series(whole)
    ]
    for document in sorted(parts, key=lambda part: (part.page.source.published_on or date.max, part.page.file)):
        facts = read_document(document, memories)
        findings += [*facts.facts, *facts.reports]
        name, owned = _assign_series(facts, owners)
        findings += owned
        # A page with tables but without sizes, such as a list of retired series, is not about one series.
        if name and (facts.subjects or not document.page.blocks.tables):
            of_series, results = read_series(facts, name)
            findings += of_series
            benchmarks += results
    merged, reports = merge_findings(findings)
    # Reversed, so that the oldest page wins where several publish the same result.
    unique = {row.id: row for row in reversed(benchmarks)}
    return Reading(facts=tuple(merged), reports=tuple(reports), benchmarks=tuple(unique.values()))


def _assign_series(facts: DocumentFacts, owners: dict[str, tuple[str, str]]) -> tuple[str | None, list[Finding]]:
    """Return the series name of a document, and the findings that assign its sizes to it.

    The name is that of an earlier document if it has already claimed all the sizes.
    """
    page, series = facts.document.page, facts.series
    if series is None:
        if facts.subjects:
            return None, [page.report("names sizes, but no series can be read from its title", 1)]
        return None, []
    fitting = [subject for subject in facts.subjects if _is_of(series, subject)]
    reports = _report_mismatches(facts, series, fitting)
    if facts.subjects and not fitting:
        return None, [*reports]
    assigned: list[Finding] = []
    other_owners: set[str] = set()
    for subject in fitting:
        owner, file = owners.setdefault(size_key(subject), (series.name, page.file))
        if series_key(owner) == series_key(series.name):
            assigned.append(page.size_fact(subject, "series", series.name, series.raw, series.line))
            continue
        other_owners.add(owner)
        detail = f"claims {subject} for {series.name}, which {file} already assigned to {owner}"
        reports.append(page.report(detail, series.line, None, series.raw))
    if len(other_owners) == 1 and not assigned:
        return other_owners.pop(), [*reports]
    if facts.subjects:
        assigned.append(page.series_fact(series.name, "name", series.name, series.raw, series.line))
    return series.name, [*assigned, *reports]


def _report_mismatches(facts: DocumentFacts, series: SeriesTitle, fitting: Sequence[str]) -> list[Report]:
    others = [subject for subject in facts.subjects if subject not in fitting]
    if not others:
        return []
    more = f" and {len(others) - _MAX_NAMED_SIZES} more" if len(others) > _MAX_NAMED_SIZES else ""
    detail = f"does not fit {', '.join(others[:_MAX_NAMED_SIZES])}{more}, whose series stays unknown"
    return [facts.document.page.report(detail, series.line, "series", series.raw)]
