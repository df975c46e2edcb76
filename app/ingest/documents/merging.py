"""One statement a field from each source: repetitions are dropped, a page that contradicts itself is reported."""

from collections.abc import Iterable

from app.catalog.names import series_key, size_key
from app.catalog.readings import Report, Statement
from app.ingest.documents.page import Finding


def merged(findings: Iterable[Finding]) -> tuple[list[Statement], list[Report]]:
    """Keep the first statement of each field; of two texts the one that says more, in whatever order they stand."""
    kept: dict[tuple[str, str, str, str], Statement] = {}
    reports: dict[Report, None] = {}
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
            if _says_more(finding.value, earlier.value):
                kept[key] = finding
            continue
        detail = (
            f"says {finding.value} for {finding.subject}, where line {earlier.line} says {earlier.value}; that is kept"
        )
        report = Report(file=finding.file, line=finding.line, column=finding.field, cell=finding.raw, detail=detail)
        reports[report] = None
    return list(kept.values()), list(reports)


def _says_more(text: str, than: str) -> bool:
    words, fewer = text.lower().split(), than.lower().split()
    return len(words) > len(fewer) and all(word in words for word in fewer)
