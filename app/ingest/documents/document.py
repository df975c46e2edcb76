"""One document to facts: its tables, host specifications, flags and sentences, put together size by size."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from app.catalog.readings import BenchmarkRow, Report, Statement
from app.ingest.documents.accelerators import no_gpus
from app.ingest.documents.features import find_flags, find_table_flags, to_flag_findings
from app.ingest.documents.gpu_cells import Host
from app.ingest.documents.gpu_memory import GpuMemories
from app.ingest.documents.gpu_rows import read_gpus
from app.ingest.documents.infiniband import with_infiniband
from app.ingest.documents.lists import SEPARATOR, find_listed
from app.ingest.documents.merging import merged
from app.ingest.documents.page import Document, Finding
from app.ingest.documents.page_facts import footnotes, preview, previews, retirement, said, specified, stated_values
from app.ingest.documents.prose_gpus import find_mentions, only_model
from app.ingest.documents.racks import find_benchmarks, find_rack_facts, find_vm_facts
from app.ingest.documents.restrictions import find_restrictions, restrict
from app.ingest.documents.row_facts import read_nvme
from app.ingest.documents.scale_network import is_per_nic, read_scale_networks
from app.ingest.documents.sentences import Sentence, to_sentences
from app.ingest.documents.series import SeriesTitle, find_series, fits
from app.ingest.documents.sizes import Tables, read_cells, read_tables
from app.ingest.documents.temp_disks import read_temp_disks


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentFacts:
    """What a document gives before it is known whose its sizes are."""

    document: Document
    series: SeriesTitle | None
    subjects: tuple[str, ...]
    statements: tuple[Statement, ...]
    reports: tuple[Report, ...]


def read_document(document: Document, memories: GpuMemories) -> DocumentFacts:
    """Read everything that a document says of sizes."""
    tables, sentences = read_tables(document), list(to_sentences(document))
    series = find_series(document.page)
    subjects = tables.subjects
    findings: list[Finding] = [*tables.findings]
    if not subjects and series:
        announced = list(find_vm_facts(sentences, series.name))
        subjects = [series.name] if announced else []
        findings += announced
    spoken = sentences if _is_of_series(series, subjects) else []
    findings += _from_tables(document, tables, spoken, memories)
    findings += _from_page(document, subjects, sentences, series)
    findings += said(spoken, subjects)
    if not subjects and not findings:
        findings += _nothing_read(document)
    statements, reports = merged(with_infiniband(findings))
    return DocumentFacts(
        document=document, series=series, subjects=tuple(subjects), statements=tuple(statements), reports=tuple(reports)
    )


def series_findings(facts: DocumentFacts, series: str) -> tuple[list[Finding], list[BenchmarkRow]]:
    """State what a document says of its series under the name that the series goes by."""
    sentences = list(to_sentences(facts.document))
    findings: list[Finding] = [*find_rack_facts(sentences, series)]
    items: dict[tuple[str, str], tuple[list[str], Statement]] = {}
    for page, field, item, raw, line in find_listed(facts.document, sentences):
        first = page.states_of_series(series, field, item, raw, line)
        listed, _ = items.setdefault((page.file, field), ([], first))
        if item.lower() not in (other.lower() for other in listed):
            listed.append(item)
    findings += [_joined(first, listed) for listed, first in items.values()]
    return findings, list(find_benchmarks(sentences, series))


def _from_tables(
    document: Document, tables: Tables, sentences: list[Sentence], memories: GpuMemories
) -> Iterator[Finding]:
    mentions = list(find_mentions(sentences))
    model = only_model(mentions)
    host = Host(
        specs=tables.specs.gpu,
        prose_memories=frozenset(mention.memory_gib for mention in mentions if mention.memory_gib),
        prose_models=tuple(dict.fromkeys(mention.model for mention in mentions)),
        prose_count=model.count if model else None,
        title=document.page.title if sentences else "",
    )
    cells = [*read_cells(tables.rows), *read_temp_disks(tables.rows)]
    yield from cells
    decided: dict[str, object] = {}
    doubt = no_gpus(document, tables, host, sentences, memories)
    if doubt:
        yield document.page.report(doubt, 1)
    for found in read_gpus(tables.rows, host, memories) if not doubt else ():
        if isinstance(found, tuple):
            decided[found[0].name] = found[1]
        else:
            yield found
    yield from read_nvme(tables.rows, tables.specs.nvme_gib)
    per_nic = is_per_nic(passage for _, passage in document.passages())
    yield from read_scale_networks(tables.rows, per_nic=per_nic)
    yield from footnotes(document, tables.rows)
    yield from previews(tables.rows)
    yield from specified(tables.specs, tables.subjects, decided, stated_values(cells))


def _from_page(
    document: Document, subjects: list[str], sentences: list[Sentence], series: SeriesTitle | None
) -> Iterator[Finding]:
    restricted = {found.field: found for found in find_restrictions(sentences, subjects)}
    for page in document.pages:
        flags = list(find_flags(page.blocks.passages))
        flags += [flag for table in page.blocks.tables for flag in find_table_flags(table)]
        yield from restrict(to_flag_findings(page, iter(flags), subjects), restricted)
    yield from preview(document, subjects)
    yield from retirement(sentences, subjects, series.name if series else None)


def _is_of_series(series: SeriesTitle | None, subjects: list[str]) -> bool:
    """Say whether most sizes are of the page's series, so that its sentences speak of them; notes list any sizes."""
    own = [subject for subject in subjects if series and (series.stated or fits(series.name, subject))]
    return 2 * len(own) > len(subjects)


def _joined(first: Statement, items: list[str]) -> Statement:
    value = SEPARATOR.join(items)
    return Statement(
        kind="series", subject=first.subject, field=first.field, value=value, raw=first.raw, file=first.file,
        line=first.line, source=first.source, note=first.note,
    )  # fmt: skip


def _nothing_read(document: Document) -> Iterator[Report]:
    for page, passage in document.passages():
        if re.search(r"\bStandard_[A-Z]+\d", passage.text):
            yield page.report("names sizes in its text only, nothing is read of them", passage.line, None, None)
            return
