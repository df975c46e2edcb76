"""The memory in the text of several GPUs: `8 V100 32 GB` is of each, `4x V100 (64GB)` of all, as the model shows."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

from app.catalog.readings import Report
from app.ingest.documents.gpu_decision import TOLERANCE
from app.ingest.documents.gpu_memory import GpuMemories
from app.ingest.documents.gpu_text import GpuText
from app.ingest.documents.size_tables import SizeRow


def settle(rows: Sequence[SizeRow], texts: dict[str, GpuText], memories: GpuMemories) -> Iterator[Report]:
    """Make the memory of every text that of one GPU; what stays open is taken out and reported."""
    possible = {name: _possible(text, memories) for name, text in texts.items()}
    tables = {row.name: (row.page.file, row.table) for row in rows if row.find("gpu", "gpu_model")}
    for name, text in list(texts.items()):
        found = possible[name]
        if len(found) > 1:
            beside = {other: possible[other] for other in texts if tables.get(other) == tables.get(name)}
            found = found & _shown(text, beside, texts)
        if len(found) == 1:
            texts[name] = replace(text, memory_gib=next(iter(found)))
        elif text.memory_gib is not None:
            texts[name] = replace(text, memory_gib=None)
            yield from _report(name, rows)


def _possible(text: GpuText, memories: GpuMemories) -> set[Decimal]:
    """Give the memories that one GPU has by its text: as it stands, or a share of it where the model is made so."""
    memory, count = text.memory_gib, text.count
    if memory is None:
        return set()
    if count is None or count <= 1 or text.holder == "gpu":
        return {memory}
    if text.holder == "vm":
        return {memory * count.denominator / count.numerator}
    known = memories.find(text.model) if text.model else ()
    if not known:
        return {memory}
    shares = {size for size in known if abs(Fraction(memory) - count * Fraction(size)) <= TOLERANCE * Fraction(memory)}
    return ({memory} & set(known)) | shares


def _shown(text: GpuText, possible: dict[str, set[Decimal]], texts: dict[str, GpuText]) -> set[Decimal]:
    """Give what the table's other sizes with the same model leave no doubt about."""
    return {
        size for name, found in possible.items() if len(found) == 1 and texts[name].model == text.model
        for size in found
    }  # fmt: skip


def _report(name: str, rows: Sequence[SizeRow]) -> Iterator[Report]:
    for row in rows:
        piece = row.find("gpu", "gpu_model")
        if row.name == name and piece:
            detail = "may be the memory of one GPU or of all, nothing on the page or known of the GPU decides it"
            yield row.page.report(detail, row.line, piece.header, piece.raw)
            return
