"""Headers to columns: which field a column holds, in which unit, and the two fields of a joint column."""

import re
from dataclasses import dataclass, replace

from app.ingest.documents.blocks import Cell
from app.ingest.documents.features import FLAGS, key_of_flag
from app.ingest.documents.synonyms import find_field
from app.ingest.documents.values import find_units, spelled

_UNIT_WORDS = re.compile(r"(?<![A-Za-z])(?:[KMGT]i?B(?:ps)?|[kmgt]i?b(?:ps)?|[KMGT]i?b(?:ps)?|[KMGT]BPS)(?![A-Za-z])")
_COUNT_WORDS = re.compile(
    r"\bqty\b|\bquantity\b|\bcount\b|\bnumber of\b|\bno\. of\b|#|\bmax(?:imum)?\b|\bup to\b", re.IGNORECASE
)
_PRICE = re.compile(
    r"[$€£¥]|\b(?:costs?|prices?|pricing|usd|eur|per[ -]hour|hourly|monthly|pay[- ]as[- ]you[- ]go|"
    r"on[- ]demand|spot|reserved|savings?)\b",
    re.IGNORECASE,
)
_PER_GPU = re.compile(r"\b(v?ram|memory)/gpu\b", re.IGNORECASE)
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z]{2})(?=[A-Z][a-z]{2})")
_QUANTITY = re.compile(r"\bqty\b|\bquantity\b|\bcount\b|\bnumber of\b|#", re.IGNORECASE)
_SHARED_PREFIX = re.compile(
    r"^(.*?)[:(]?\s*IOPS\)?\s*(?:/|and|&|,)\s*(?:speed|throughput)?\s*\(?([KMG]i?Bps)", re.IGNORECASE
)

RATES = frozenset(
    {
        "uncached_disk",
        "uncached_disk_burst",
        "ultra_disk",
        "ultra_disk_burst",
        "cached_disk",
        "temp_disk_read",
        "temp_disk_write",
    }
)
"""Columns that hold operations or bytes a second: their field ends in `_iops` or `_mbps`, as their unit says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One field of a column: its unit as the header states it, and whether the header says that it is a count."""

    field: str
    unit: str | None = None
    counts: bool = False
    side: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column by its place, its header as written, and its parts; without parts it is not read, `doubt` says why."""

    index: int
    header: str
    parts: tuple[Part, ...]
    doubt: str = "is a column that nobody knows"

    def is_for(self, field: str) -> bool:
        """Say whether it holds this field and nothing else."""
        return len(self.parts) == 1 and self.parts[0].field == field


def to_columns(header: tuple[Cell, ...]) -> tuple[Column, ...]:
    """Recognise every column of a table; what stands beside a column may make its own header ambiguous."""
    columns = tuple(
        Column(index=index, header=cell.text.replace("\v", " "), parts=to_parts(cell.text))
        for index, cell in enumerate(header)
    )
    fields = {part.field for column in columns for part in column.parts}
    return tuple(_doubted(column, fields) for column in columns)


def _doubted(column: Column, fields: set[str]) -> Column:
    key = key_of(column.header)
    if key == "bandwidth" and "infiniband" in fields:
        doubt = "may be the bandwidth of the InfiniBand beside it or of the other network"
    elif (
        key == "memory"
        and "gpu" in fields | {_kind(field) for field in fields}
        and not fields & {"vcpus", "gpu_memory"}
    ):
        doubt = "may be the memory of the machine or of the GPU beside it"
    else:
        return column
    return replace(column, parts=(), doubt=doubt)


def _kind(field: str) -> str:
    return "gpu" if field == "gpu_model" else field


def to_parts(header: str) -> tuple[Part, ...]:
    """Recognise a header, joint ones too: `Max NICs / network bandwidth (MBps)`, `vCPU / Memory (GiB)`."""
    text = _PER_GPU.sub(r"\1 per GPU", spelled(header.replace("\v", " ")))
    if found := _SHARED_PREFIX.match(text):
        first, second = _part(f"{found[1]} IOPS"), _part(f"{found[1]} {found[2]}")
        if first and second:
            return (first, second)
    whole = _part(text)
    if whole and "/" not in text:
        return (whole,)
    pieces = re.split(r"\s*/\s*|\s+and\s+|\s*&\s*|\s*,\s*", text)
    parts = [part for piece in pieces if (part := _part(piece))]
    if len(parts) == len(pieces) == len({part.field for part in parts}) and len(pieces) > 1:
        return tuple(_of_gpu(part) if parts[0].field in ("gpu", "gpu_model") else part for part in parts)
    return (whole,) if whole else ()


def _of_gpu(part: Part) -> Part:
    """Take the memory of `GPU / Memory` for the GPU's, not the machine's."""
    return replace(part, field="gpu_memory") if part.field == "memory_gib" else part


def key_of(header: str) -> str:
    """Reduce a header to what it is about: lower case, no units, counts, footnotes, punctuation."""
    text = re.sub(r"[¹²³⁴⁵⁶⁷⁸⁹]", "", spelled(header))
    text = _COUNT_WORDS.sub(" ", _UNIT_WORDS.sub(" ", text)).lower()
    return re.sub(r"\s+", " ", re.sub(r"[^a-z0-9]+", " ", text)).strip()


def _part(text: str) -> Part | None:
    if _PRICE.search(text):
        return Part(field="price")
    found = find_field(key_of(text)) or find_field(key_of(_CAMEL.sub(" ", text)))
    if not found:
        flag = FLAGS.get(key_of_flag(text))
        return Part(field="flag", side=text) if flag else None
    field, side = found
    units = find_units(text)
    counts = bool(_QUANTITY.search(text))
    if field in RATES:
        field = f"{field}_{'iops' if 'IOPS' in units or 'iops' in text.lower() else 'mbps'}"
    elif field == "temp_disk":
        plural = bool(re.search(r"disks\b", text, re.IGNORECASE))
        field = "temp_disk_count" if not units and (counts or plural) else "temp_disk_gib"
    return Part(field=field, unit=units[0] if units else None, counts=counts, side=side)
