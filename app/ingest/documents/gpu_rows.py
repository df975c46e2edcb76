"""The GPUs of every size: count, model and memory from its rows, with the evidence of its table, page and model."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from app.ingest.documents.gpu_memory import Decision, Evidence, GpuMemories, decide, from_column, settle
from app.ingest.documents.gpu_text import GpuText, to_gpu_text
from app.ingest.documents.page import Finding
from app.ingest.documents.size_tables import Piece, SizeRow
from app.ingest.documents.values import NUMBER, find_units, rounded, spelled, to_amount, to_decimal, to_kept

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


def read_gpus(
    rows: Sequence[SizeRow], host: Host, memories: GpuMemories
) -> Iterator[tuple[SizeRow, Decimal] | Finding]:
    """State the GPUs of every row; gives, too, the memory of one GPU where a row's cell has decided it."""
    texts: dict[str, GpuText] = {}
    for row in rows:
        yield from _state_text(row, texts)
    yield from settle(rows, texts, memories)
    read: list[GpuRow] = []
    for row in rows:
        if piece := row.find("gpu_memory"):
            found = to_gpu_row(row, piece, texts.get(row.name, GpuText()), host)
            if isinstance(found, GpuRow):
                read.append(found)
            else:
                yield row.page.report(found, row.line, piece.header, piece.raw)
    for gpu in read:
        column = [
            (other.count, other.memory) for other in read
            if other.row.table == gpu.row.table and other.count and other.memory and other.text.model == gpu.text.model
        ]  # fmt: skip
        yield from _state_memory(gpu, _levels(gpu, column, host, memories))
    stated = {gpu.row.name for gpu in read}
    for row in rows:
        if row.name not in stated and (piece := row.find("gpu", "gpu_model")):
            yield from _memory_of_text(row, piece, texts[row.name] if row.name in texts else GpuText())


def _state_text(row: SizeRow, texts: dict[str, GpuText]) -> Iterator[Finding]:
    for field in ("gpu", "gpu_model"):
        piece = row.find(field)
        if piece is None:
            continue
        text = to_gpu_text(spelled(piece.text), counted=field == "gpu")
        if text is None:
            yield row.page.report("names neither a count nor a model of GPU", row.line, piece.header, piece.raw)
            continue
        texts[row.name] = _merged(texts.get(row.name, GpuText()), text)
        yield from _parts(row, piece, text)


def _parts(row: SizeRow, piece: Piece, text: GpuText) -> Iterator[Finding]:
    values = {"gpu_vendor": text.vendor, "gpu_model": text.model, "gpu_interconnect": text.interconnect}
    for field, value in values.items():
        if value is not None:
            yield row.page.states(row.name, field, value, piece.raw, row.line)
    if re.search(r"\+\s*(?:IB|InfiniBand)\b", piece.text):
        yield row.page.states(row.name, "infiniband", True, piece.raw, row.line)
    if text.interconnect and text.interconnect.startswith("NVLink"):
        yield row.page.states(row.name, "nvlink", True, piece.raw, row.line)
    if text.count is not None:
        yield row.page.states(row.name, "gpu_count", text.count, piece.raw, row.line)
        if text.count.denominator != 1:
            yield row.page.states(row.name, "gpu_fraction", str(text.count), piece.raw, row.line)


def _levels(
    gpu: GpuRow, column: list[tuple[Fraction, Decimal]], host: Host, memories: GpuMemories
) -> Iterator[Evidence]:
    own = gpu.text.memory_gib
    yield Evidence(by="the row's own text", per_gpu=frozenset() if own is None else frozenset({own}))
    yield Evidence(by="the column", per_gpu=from_column(column))
    specs = host.specs.memory_gib
    yield Evidence(by="the host specifications", per_gpu=frozenset() if specs is None else frozenset({specs}))
    yield Evidence(by="the page's text", per_gpu=host.prose_memories)
    models = [gpu.text.model] if gpu.text.model else [host.specs.model] if host.specs.model else host.prose_models
    known = {size for model in models if model for size in memories.find(model)}
    yield Evidence(by="the GPU model", per_gpu=frozenset(known))
    yield Evidence(by="the GPU in the title", per_gpu=frozenset(memories.find_in_title(host.title)))


def _state_memory(gpu: GpuRow, levels: Iterator[Evidence]) -> Iterator[tuple[SizeRow, Decimal] | Finding]:
    row, cell, memory, count = gpu.row, gpu.cell, gpu.memory, gpu.count
    if cell is None or memory is None or count == 0:
        return
    decision = None
    if count is not None:
        decision = _said(gpu, count, memory) or decide(count, memory, levels)
    if count is None or decision is None:
        detail = "may be the memory of one GPU or of all, nothing on the page or known of the GPU decides it"
        yield row.page.report(detail, row.line, cell.header, cell.raw)
        return
    total = rounded(Decimal(count.numerator) * decision.per_gpu / Decimal(count.denominator))
    yield row, decision.per_gpu
    if decision.holder == "gpu":
        yield row.page.states(row.name, "gpu_memory_gib_per_gpu", memory, cell.raw, row.line)
        yield row.page.states(row.name, "gpu_memory_gib", total, cell.raw, row.line, f"{count} x {memory} GiB")
        return
    yield row.page.states(row.name, "gpu_memory_gib", memory, cell.raw, row.line)
    if total == memory:
        note = f"{memory} GiB / {count}, by {decision.by}"
        yield row.page.states(row.name, "gpu_memory_gib_per_gpu", decision.per_gpu, cell.raw, row.line, note)


def _said(gpu: GpuRow, count: Fraction, memory: Decimal) -> Decision | None:
    if gpu.holder == "gpu":
        return Decision(holder="gpu", per_gpu=memory, by="the cell itself")
    if gpu.holder == "vm":
        share = rounded(memory * count.denominator / count.numerator)
        return Decision(holder="vm", per_gpu=share, by="the cell itself")
    return None


def _memory_of_text(row: SizeRow, piece: Piece, text: GpuText) -> Iterator[Finding]:
    if text.memory_gib is None:
        return
    yield row.page.states(row.name, "gpu_memory_gib_per_gpu", text.memory_gib, piece.raw, row.line)
    if text.count:
        total = rounded(text.memory_gib * text.count.numerator / text.count.denominator)
        note = f"{text.count} x {text.memory_gib} GiB"
        yield row.page.states(row.name, "gpu_memory_gib", total, piece.raw, row.line, note)


def _merged(first: GpuText, second: GpuText) -> GpuText:
    return GpuText(
        count=first.count if first.count is not None else second.count,
        vendor=first.vendor or second.vendor,
        model=first.model or second.model,
        memory_gib=first.memory_gib or second.memory_gib,
        holder=first.holder or second.holder,
        interconnect=first.interconnect or second.interconnect,
    )
