"""Table headers to columns: the field that a column holds, its unit, and the fields of a joint one (`vCPU / Memory`).

To teach a new spelling of a known header, add a pattern to `column_synonyms`.
"""

import re
from dataclasses import dataclass, replace

from app.ingest.documents.blocks import TableCell
from app.ingest.documents.column_synonyms import find_field
from app.ingest.documents.features import FLAGS, flag_key
from app.ingest.documents.values import find_units, normalize_rates

_UNIT_WORDS = re.compile(
    r"(?<![A-Za-z])(?:[KMGT]i?B(?:ps)?|[kmgt]i?b(?:ps)?|[KMGT]i?b(?:ps)?|[KMGT]BPS|[GM]Hz)(?![A-Za-z])"
)
_COUNT_WORDS = re.compile(
    r"\bqty\b|\bquantity\b|\bcount\b|\bnumber of\b|\bno\. of\b|#|\bmax(?:imum)?\b|\bup to\b", re.IGNORECASE
)
_PRICE = re.compile(
    r"[$€£¥]|\b(?:costs?|prices?|pricing|usd|eur|per[ -]hour|hourly|monthly|pay[- ]as[- ]you[- ]go|"
    r"on[- ]demand|spot|reserved|savings?)\b",
    re.IGNORECASE,
)
_PER_GPU = re.compile(r"\b(v?ram|memory)/gpu\b", re.IGNORECASE)
_GROWN_MARK = re.compile(r"(?<=\))[1-9]\b")
"""The mark of a footnote that is written as a digit behind a parenthesis: `Read (RR)1 IOPS`."""
_WORDS_TWICE = re.compile(r"\b(\w+(?: \w+)+) (?=\1\b)")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z]{2})(?=[A-Z][a-z]{2})")
_QUANTITY = re.compile(r"\bqty\b|\bquantity\b|\bcount\b|\bnumber of\b|#", re.IGNORECASE)
_SHARED_PREFIX = re.compile(
    r"^(.*?)[:(]?\s*IOPS\)?\s*(?:/|and|&|,)\s*(?:speed|throughput)?\s*\(?([KMG]i?Bps)", re.IGNORECASE
)

_READ_WRITE = re.compile(
    r"^(?P<disk>.*?)(?: throughput)?[:(]?\s*IOPS\s*/\s*Read (?P<read>[KMG]i?Bps)\s*/\s*Write (?P<write>[KMG]i?Bps)",
    re.IGNORECASE,
)
_DISKS_AND_RATE = re.compile(r"(?<=data disks)\s*/\s*throughput\b", re.IGNORECASE)

DISK_RATES = {
    **{
        name: name
        for name in (
            "uncached_disk",
            "uncached_disk_burst",
            "ultra_disk",
            "ultra_disk_burst",
            "cached_disk",
            "temp_disk_burst",
            "temp_disk_read",
            "temp_disk_write",
            "temp_disk_sequential_read",
            "temp_disk_sequential_write",
        )
    },
    "temp_disk_rate": "temp_disk",
    "nvme_disk_rate": "nvme_disk",
}
"""Columns that hold IOPS or bytes per second, and their fields, to which `_iops` or `_mbps` is appended by the unit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnField:
    """A field of a column; `unit` is that of the header.

    `qualifier` is a part of the header that the field name lacks: `up` of scale-up, the name of a feature.
    """

    field: str
    unit: str | None = None
    qualifier: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableColumn:
    """A column of a table; without fields it is not read, for `unread_reason`."""

    index: int
    header: str
    fields: tuple[ColumnField, ...]
    unread_reason: str = "is an unknown column"

    def is_for(self, field: str) -> bool:
        """Return whether the column holds this field and no other."""
        return len(self.fields) == 1 and self.fields[0].field == field


def to_columns(header: tuple[TableCell, ...]) -> tuple[TableColumn, ...]:
    """Recognise every column of a table; a column whose neighbours make its header ambiguous gets no fields."""
    columns = tuple(
        TableColumn(index=index, header=cell.text.replace("\v", " "), fields=to_column_fields(cell.text))
        for index, cell in enumerate(header)
    )
    fields = {part.field for column in columns for part in column.fields}
    return tuple(_clear_if_ambiguous(column, fields) for column in columns)


def _clear_if_ambiguous(column: TableColumn, fields: set[str]) -> TableColumn:
    key = header_key(column.header)
    if key == "bandwidth" and "infiniband" in fields:
        reason = "may be the bandwidth of the InfiniBand beside it or of the other network"
    elif key == "memory" and fields & {"gpu", "gpu_model"} and not fields & {"vcpus", "gpu_memory"}:
        reason = "may be the memory of the machine or of the GPU beside it"
    else:
        return column
    return replace(column, fields=(), unread_reason=reason)


def to_column_fields(header: str) -> tuple[ColumnField, ...]:
    """Return the fields of a header, several for a joint one: `Max NICs / network bandwidth (MBps)`."""
    text = _PER_GPU.sub(r"\1 per GPU", normalize_rates(header.replace("\v", " ")))
    # `Max data disks / throughput: IOPS`: the throughput is that of the disks.
    text = _DISKS_AND_RATE.sub(" / data disk throughput", text)
    # `Temp storage throughput: IOPS / Read MBps / Write MBps`: all share the words before IOPS.
    if match := _READ_WRITE.match(text):
        disk = match["disk"]
        names = (f"{disk} throughput IOPS", f"{disk} read {match['read']}", f"{disk} write {match['write']}")
        fields = tuple(field for name in names if (field := _column_field(name)))
        if len(fields) == len(names):
            return fields
    # `Uncached disk IOPS / MBps`: both fields share the words before IOPS.
    if match := _SHARED_PREFIX.match(text):
        first, second = _column_field(f"{match[1]} IOPS"), _column_field(f"{match[1]} {match[2]}")
        if first and second:
            return (first, second)
    whole = _column_field(text)
    if whole and "/" not in text:
        return (whole,)
    pieces = re.split(r"\s*/\s*|\s+and\s+|\s*&\s*|\s*,\s*", text)
    parts = [part for piece in pieces if (part := _column_field(piece))]
    if len(parts) == len(pieces) == len({part.field for part in parts}) and len(pieces) > 1:
        return tuple(_as_gpu_memory(part) if parts[0].field in ("gpu", "gpu_model") else part for part in parts)
    return (whole,) if whole else ()


def _as_gpu_memory(part: ColumnField) -> ColumnField:
    """Read the memory of `GPU / Memory` as that of the GPU, not of the VM."""
    return replace(part, field="gpu_memory") if part.field == "memory_gib" else part


def header_key(header: str) -> str:
    """Return a header in lower case without units, words of counting, footnote marks, punctuation and repetitions."""
    text = _GROWN_MARK.sub("", re.sub(r"[¹²³⁴⁵⁶⁷⁸⁹]", "", normalize_rates(header)))
    text = _COUNT_WORDS.sub(" ", _UNIT_WORDS.sub(" ", text)).lower()
    return _WORDS_TWICE.sub("", re.sub(r"[^a-z0-9]+", " ", text).strip())


def _column_field(text: str) -> ColumnField | None:
    if _PRICE.search(text):
        return ColumnField(field="price")
    synonym = find_field(header_key(text)) or find_field(header_key(_CAMEL.sub(" ", text)))
    if not synonym:
        flag = FLAGS.get(flag_key(text))
        return ColumnField(field="flag", qualifier=text) if flag else None
    field, qualifier = synonym
    units = find_units(text)
    if field in DISK_RATES:
        field = f"{DISK_RATES[field]}_{'iops' if 'IOPS' in units or 'iops' in text.lower() else 'mbps'}"
    elif field == "temp_disk":
        counts = _QUANTITY.search(text) or re.search(r"disks\b", text, re.IGNORECASE)
        field = "temp_disk_count" if counts and not units else "temp_disk_gib"
    return ColumnField(field=field, unit=units[0] if units else None, qualifier=qualifier)
