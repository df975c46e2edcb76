"""A cell of GPU memory as read: a number with its unit, and of what it is where the cell itself says so."""

import re
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from app.ingest.documents.gpu_text import GpuText
from app.ingest.documents.size_tables import Piece, SizeRow
from app.ingest.documents.units import find_units, rounded, spelled, to_kept
from app.ingest.documents.values import NUMBER, to_amount, to_decimal

_PER_GPU = re.compile(r"\b(?:per|each|/)\s*(?:GPU|card|accelerator)?\b", re.IGNORECASE)
_TOTAL = re.compile(r"\btotal\b|\bper VM\b", re.IGNORECASE)
_BOTH = re.compile(
    rf"^(?P<all>{NUMBER})\s*(?P<unit>Gi?B)\s*\((?:\d+\s*[x×]\s*)?(?P<each>{NUMBER})\s*(?P=unit)(?: each| per GPU)?\)$",
    re.IGNORECASE,
)
"""The memory of all with that of each in brackets: `320GB (40GB each)`."""
_KIND = re.compile(r"\b(?:HBM|GDDR)\w*", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """What the page says of its GPUs outside the sizes' tables: the specs table and the prose."""

    specs: GpuText
    prose_memories: frozenset[Decimal] = frozenset()
    prose_models: tuple[str, ...] = ()
    prose_count: Fraction | None = None
    title: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuRow:
    """A row's count and GPU as read, and its memory cell: a number and, where the cell itself says so, of what."""

    row: SizeRow
    text: GpuText
    count: Fraction | None
    memory: Decimal | None = None
    cell: Piece | None = None
    holder: str | None = None


def to_gpu_row(row: SizeRow, piece: Piece, text: GpuText, host: Host) -> GpuRow | str:
    """Read the cell of a row; gives the reason as text where it is not read."""
    words = spelled(piece.text)
    if (both := _BOTH.match(words)) and text.count is not None:
        if Fraction(to_decimal(both["all"])) != Fraction(to_decimal(both["each"])) * text.count:
            return f"does not agree with the count of {text.count}"
        words = f"{both['all']} {both['unit']} total"
    amount = to_amount(_KIND.sub("", words))
    if amount is None:
        return "is not one number"
    units = find_units(amount.rest)
    unit = units[0] if units else piece.part.unit
    kept = None if unit is None else to_kept(amount.number, unit, "memory")
    if kept is None:
        return "has no unit of memory, neither in the header nor in the cell"
    said = "gpu" if amount.times or _PER_GPU.search(amount.rest) else "vm" if _TOTAL.search(amount.rest) else None
    left = re.sub(
        r"\b(?:[GTM]i?B|of|memory|vram)\b|[\s()]",
        "",
        _TOTAL.sub("", _PER_GPU.sub("", amount.rest)),
        flags=re.IGNORECASE,
    )
    if left:
        return "is not one number"
    count = text.count or (Fraction(amount.times) if amount.times else None) or host.specs.count or host.prose_count
    if amount.times and count != amount.times:
        return f"does not agree with the count of {count}"
    return GpuRow(row=row, text=text, count=count, memory=rounded(kept), cell=piece, holder=said)
