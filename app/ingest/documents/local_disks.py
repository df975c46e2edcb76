"""Tells local NVMe disks from temporary disks on pages that call both "temp disk"."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from app.catalog.readings import StatedFact
from app.ingest.documents.document_tables import DocumentTables
from app.ingest.documents.features import FeatureFlag, find_flags, find_table_flags, flag_key, is_supported
from app.ingest.documents.page import Finding, SourceDocument

_FEATURE = "temporary local nvme disks"
_ARE_NVME = re.compile(
    r"\btemp(?:orary)? (?:disks?|storage) (?:refers? to|means?|is|are) (?:the )?(?:local )?NVMe\b", re.IGNORECASE
)
_NVME_FIELDS = {
    "temp_disk_gib": "nvme_disk_gib",
    "temp_disk_count": "nvme_disk_count",
}


def find_nvme_statement(document: SourceDocument, tables: DocumentTables) -> int | None:
    """Return the line on which a page says that what it calls temporary disks is local NVMe; None if it does not.

    A feature, a sentence or the host specifications say so. A page with columns of NVMe beside those of temporary disks
    has both kinds, so that nothing it says is about the latter.
    """
    if any(cell.column.field in ("nvme", "nvme_size") for row in tables.rows for cell in row.cells):
        return None
    for page in document.pages:
        flags: list[FeatureFlag] = [*find_flags(page.blocks.passages)]
        flags += [flag for table in page.blocks.tables for flag in find_table_flags(table)]
        for flag in flags:
            if flag_key(flag.name) == _FEATURE and is_supported(flag):
                return flag.line
    for sentence in document.sentences():
        if _ARE_NVME.search(sentence.text):
            return sentence.line
    return tables.specs.nvme_line


def call_nvme_by_its_name(findings: Iterable[Finding], line: int | None) -> Iterator[Finding]:
    """Yield findings whose temporary disks are NVMe disks where a page says so in `line`; none at all stays none."""
    for finding in findings:
        field = _NVME_FIELDS.get(finding.field) if line and isinstance(finding, StatedFact) and finding.value else None
        if field and isinstance(finding, StatedFact):
            notes = [finding.note] if finding.note else []
            yield replace(finding, field=field, note="; ".join([*notes, f"NVMe, as line {line} says"]))
        else:
            yield finding
