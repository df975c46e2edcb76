"""Several documents together: which series a size belongs to when pages disagree, and everything they state."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date

from app.catalog.names import series_key, size_key
from app.catalog.readings import BenchmarkRow, Reading, Report
from app.ingest.documents.document import DocumentFacts, read_document, series_findings
from app.ingest.documents.gpu_memory import GpuMemories
from app.ingest.documents.merging import merged
from app.ingest.documents.page import Document, Finding
from app.ingest.documents.sections import split
from app.ingest.documents.series import SeriesTitle, fits

_NAMED = 5
"""Sizes that a report names; it only counts the others."""


@dataclass(slots=True)
class _Owners:
    """The series of each size, and the file that gave it first."""

    by_size: dict[str, tuple[str, str]] = field(default_factory=dict)


def read_batch(documents: Sequence[Document], memories: GpuMemories) -> Reading:
    """Read documents, the oldest first: who names a size first, gives it its series."""
    owners = _Owners()
    findings: list[Finding] = []
    benchmarks: list[BenchmarkRow] = []
    parts = [part for whole in documents for part in split(whole)]
    for document in sorted(parts, key=_age):
        facts = read_document(document, memories)
        findings += [*facts.statements, *facts.reports]
        name, owned = _own(facts, owners)
        findings += owned
        if name and (facts.subjects or not document.page.blocks.tables):
            of_series, results = series_findings(facts, name)
            findings += of_series
            benchmarks += results
    statements, reports = merged(findings)
    unique = {row.id: row for row in reversed(benchmarks)}
    return Reading(statements=tuple(statements), reports=tuple(reports), benchmarks=tuple(unique.values()))


def _age(document: Document) -> tuple[date, str]:
    return document.page.source.published_on or date.max, document.page.file


def _own(facts: DocumentFacts, owners: _Owners) -> tuple[str | None, list[Finding]]:
    """Give the name that the document's series goes by, and the statements of what belongs to it."""
    page, series = facts.document.page, facts.series
    if series is None:
        if facts.subjects:
            return None, [page.report("names sizes, but no series can be read from its title", 1)]
        return None, []
    fitting = [subject for subject in facts.subjects if series.stated or fits(series.name, subject)]
    findings: list[Finding] = _unfitting(facts, series, fitting)
    if facts.subjects and not fitting:
        return None, findings
    theirs: set[str] = set()
    for subject in fitting:
        owner, file = owners.by_size.setdefault(size_key(subject), (series.name, page.file))
        if series_key(owner) == series_key(series.name):
            findings.append(page.states(subject, "series", series.name, series.raw, series.line))
            continue
        theirs.add(owner)
        detail = f"claims {subject} for {series.name}, which {file} already gave to {owner}"
        findings.append(page.report(detail, series.line, None, series.raw))
    if len(theirs) == 1 and len(findings) == _reports(findings):
        return theirs.pop(), findings
    if facts.subjects:
        findings.append(page.states_of_series(series.name, "name", series.name, series.raw, series.line))
    return series.name, findings


def _unfitting(facts: DocumentFacts, series: SeriesTitle, fitting: Sequence[str]) -> list[Finding]:
    others = [subject for subject in facts.subjects if subject not in fitting]
    if not others:
        return []
    more = f" and {len(others) - _NAMED} more" if len(others) > _NAMED else ""
    detail = f"does not fit {', '.join(others[:_NAMED])}{more}, whose series is left open"
    return [facts.document.page.report(detail, series.line, "series", series.raw)]


def _reports(findings: Sequence[Finding]) -> int:
    return sum(isinstance(finding, Report) for finding in findings)
