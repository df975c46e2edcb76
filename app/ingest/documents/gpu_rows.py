"""GPU facts of every size: count, model and memory from its row, with evidence from its table, page and model.

A memory may be of one GPU or of the whole VM. Headers do not decide it, because pages use the same words for both;
arithmetic and other evidence do.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from itertools import islice
from typing import Literal

from app.catalog.readings import Report
from app.ingest.documents.hardware import GpuText, to_gpu_text
from app.ingest.documents.page import Finding
from app.ingest.documents.size_tables import FieldCell, SizeRow
from app.ingest.documents.values import NUMBER, normalize_rates, rounded, to_amount, to_base_unit, to_decimal

TOLERANCE = Fraction(5, 1000)
"""Relative error that a total may have: eight times 192 GB are stated as 1,535."""

UNDECIDED = "may be the memory of one GPU or of all; neither the page nor the GPU model decides it"
"""Report of a figure that no evidence explains in one way only."""

Holder = Literal["vm", "gpu", "both"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HolderDecision:
    """Whether a cell is of one GPU or of the VM, the GiB of one GPU, and the evidence that decided it."""

    holder: Holder
    per_gpu: Decimal
    evidence: str


MemoryEvidence = tuple[str, Iterable[Decimal]]
"""A kind of evidence, and the GiB that one GPU may have by it."""


def decide_holder(count: Fraction, memory: Decimal, evidence: Iterable[MemoryEvidence]) -> HolderDecision | None:
    """Decide by the first evidence, in order of weight, that explains the cell in one way only; None if none does."""
    if count == 1:
        return HolderDecision(holder="both", per_gpu=memory, evidence="a single GPU")
    for name, possible in evidence:
        ways = {(holder, per_gpu) for per_gpu in possible for holder in _possible_holders(count, memory, per_gpu)}
        if len({holder for holder, _ in ways}) == 1:
            holder, per_gpu = min(ways, key=lambda way: abs(Fraction(memory) - count * Fraction(way[1])))
            return HolderDecision(holder=holder, per_gpu=per_gpu, evidence=name)
    return None


def _possible_holders(count: Fraction, memory: Decimal, per_gpu: Decimal) -> set[Holder]:
    total = count * Fraction(per_gpu)
    if total > 0 and abs(Fraction(memory) - total) <= TOLERANCE * total:
        return {"vm"}
    return {"gpu"} if memory == per_gpu else set()


def find_per_gpu_in_column(rows: Sequence[tuple[Fraction, Decimal]]) -> frozenset[Decimal]:
    """Return the possible GiB of one GPU by a column of counts and memories.

    A row with one GPU shows it; without one, memories that grow with the count, or stay the same while it grows, do.
    """
    singles = {memory for count, memory in rows if count == 1}
    if singles:
        return frozenset(singles)
    shares, memories = {Fraction(memory) / count for count, memory in rows if count}, {memory for _, memory in rows}
    if len({count for count, _ in rows}) < 2:  # noqa: PLR2004  # one count shows nothing
        return frozenset()
    if len(shares) == 1:
        share = next(iter(shares))
        return frozenset({Decimal(share.numerator) / Decimal(share.denominator)})
    return frozenset(memories) if len(memories) == 1 else frozenset()


_NOISE = re.compile(
    r"\b(?:nvidia|amd|tesla|radeon|instinct|intel|gpus?|tensor|core|cores|card|ampere|hopper)\b", re.IGNORECASE
)
_MEMORY = re.compile(r"\b\d+\s*-?\s*GI?B\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuMemoryIndex:
    """The GiB that each GPU model is made with, by the words of its names, the longest names first."""

    by_words: tuple[tuple[tuple[str, ...], tuple[Decimal, ...]], ...] = ()

    @classmethod
    def from_mapping(cls, memories: Mapping[str, Sequence[int | str | Decimal]]) -> "GpuMemoryIndex":
        """Build from names of models and their GiB: `{"V100": [16, 32]}`."""
        sizes_of: dict[tuple[str, ...], set[Decimal]] = {}
        for name, sizes in memories.items():
            if words := _words(name):
                sizes_of.setdefault(words, set()).update(Decimal(size) for size in sizes)
        ordered = sorted(sizes_of.items(), key=lambda item: (-len(item[0]), item[0]))
        return cls(by_words=tuple((words, tuple(sorted(sizes))) for words, sizes in ordered))

    @classmethod
    def from_rows(cls, rows: Iterable[Mapping[str, str]]) -> "GpuMemoryIndex":
        """Build from rows with `model`, `family`, `aliases` (separated by `;`) and `memory_gib`."""
        memories: dict[str, list[int | str | Decimal]] = {}
        for row in rows:
            if not (size := (row.get("memory_gib") or "").strip()):
                continue
            names = [row.get("model") or "", row.get("family") or "", *(row.get("aliases") or "").split(";")]
            for name in {name.strip() for name in names} - {""}:
                memories.setdefault(name, []).append(size)
        return cls.from_mapping(memories)

    def find(self, text: str) -> tuple[Decimal, ...]:
        """Return the possible GiB of the model that a text names, `()` if it names no known model."""
        words = _words(text)
        for name, sizes in self.by_words:
            if all(word in words for word in name):
                return sizes
        return ()

    def find_in_title(self, title: str) -> tuple[Decimal, ...]:
        """Return the possible GiB of a model named inside a word of a title, as A100 in `NDasrA100_v4`."""
        for name, sizes in self.by_words:
            if len(name) == 1 and re.search(rf"(?<![A-Z0-9]){name[0].upper()}(?![A-Za-z0-9])", title.replace("_", " ")):
                return sizes
        return ()


def _words(text: str) -> tuple[str, ...]:
    bare = _NOISE.sub(" ", _MEMORY.sub(" ", text))
    return tuple(re.findall(r"[a-z0-9]+", bare.lower()))


def resolve_text_memories(
    rows: Sequence[SizeRow], texts: dict[str, GpuText], memories: GpuMemoryIndex
) -> Iterator[Report]:
    """Replace the memory in each of `texts` by that of one GPU; yield a report and remove it where that is undecided.

    `8 V100 32 GB` is of each, `4x V100 (64GB)` of all: the memories that the model is made with show it.
    """
    possible = {name: _possible_memories(text, memories) for name, text in texts.items()}
    tables = {row.name: (row.page.file, row.table) for row in rows if row.find("gpu", "gpu_model")}
    for name, text in list(texts.items()):
        candidates = possible[name]
        if len(candidates) > 1:
            # Of other sizes of the table with the same model the memory may be unambiguous.
            of_table = [other for other in texts if tables.get(other) == tables.get(name)]
            alike = [possible[other] for other in of_table if texts[other].model == text.model]
            candidates = candidates & {size for sizes in alike if len(sizes) == 1 for size in sizes}
        if len(candidates) == 1:
            texts[name] = replace(text, memory_gib=next(iter(candidates)))
        elif text.memory_gib is not None:
            texts[name] = replace(text, memory_gib=None)
            cells = ((row, cell) for row in rows if row.name == name and (cell := row.find("gpu", "gpu_model")))
            yield from (row.report(cell, UNDECIDED) for row, cell in islice(cells, 1))


def _possible_memories(text: GpuText, memories: GpuMemoryIndex) -> set[Decimal]:
    """Return the GiB that one GPU can have by its text: the figure, or its share where the model is made with that."""
    memory, count = text.memory_gib, text.count
    if memory is None:
        return set()
    if count is None or count <= 1 or text.holder == "gpu":
        return {memory}
    if text.holder == "vm":
        return {memory * count.denominator / count.numerator}
    sizes = memories.find(text.model) if text.model else ()
    # An unknown model has nothing to compare with: the figure is read as that of one GPU.
    if not sizes:
        return {memory}
    shares = {size for size in sizes if abs(Fraction(memory) - count * Fraction(size)) <= TOLERANCE * Fraction(memory)}
    return ({memory} & set(sizes)) | shares


_PER_GPU = re.compile(r"\b(?:per|each|/)\s*(?:GPU|card|accelerator)?\b", re.IGNORECASE)
_TOTAL = re.compile(r"\btotal\b|\bper VM\b", re.IGNORECASE)
_TOTAL_AND_EACH = re.compile(
    rf"^(?P<all>{NUMBER})\s*(?P<unit>Gi?B)\s*\((?:\d+\s*[x×]\s*)?(?P<each>{NUMBER})\s*(?P=unit)(?: each| per GPU)?\)$",
    re.IGNORECASE,
)
"""The memory of all GPUs with that of each in parentheses: `320GB (40GB each)`."""
_MEMORY_TYPE = re.compile(r"\b(?:HBM|GDDR)\w*", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class PageGpus:
    """The GPUs of a page as host specifications, sentences and the title name them, outside the tables of sizes."""

    from_specs: GpuText
    prose_memories: frozenset[Decimal] = frozenset()
    prose_models: tuple[str, ...] = ()
    prose_count: Fraction | None = None
    title: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuRow:
    """The GPU, count and memory (GiB) of a row; `holder` is `gpu` or `vm` if the memory cell says so."""

    row: SizeRow
    text: GpuText
    count: Fraction | None
    memory: Decimal
    cell: FieldCell
    holder: str | None = None


def to_gpu_row(row: SizeRow, cell: FieldCell, text: GpuText, page_gpus: PageGpus) -> GpuRow | str:
    """Parse the memory cell of a row; return the reason as text if it is not understood."""
    words = normalize_rates(cell.text)
    if (both := _TOTAL_AND_EACH.match(words)) and text.count is not None:
        if Fraction(to_decimal(both["all"])) != Fraction(to_decimal(both["each"])) * text.count:
            return f"does not agree with the count of {text.count}"
        words = f"{both['all']} {both['unit']} total"
    amount = to_amount(_MEMORY_TYPE.sub("", words))
    if amount is None:
        return "is not one number"
    unit = amount.unit(cell.column.unit)
    kept = None if unit is None else to_base_unit(amount.number, unit, "memory")
    if kept is None:
        return "has no unit of memory, neither in the header nor in the cell"
    holder = "gpu" if amount.times or _PER_GPU.search(amount.suffix) else "vm" if _TOTAL.search(amount.suffix) else None
    left = re.sub(
        r"\b(?:[GTM]i?B|of|memory|vram)\b|[\s()]",
        "",
        _TOTAL.sub("", _PER_GPU.sub("", amount.suffix)),
        flags=re.IGNORECASE,
    )
    if left:
        return "is not one number"
    times = Fraction(amount.times) if amount.times else None
    count = text.count or times or page_gpus.from_specs.count or page_gpus.prose_count
    if amount.times and count != amount.times:
        return f"does not agree with the count of {count}"
    return GpuRow(row=row, text=text, count=count, memory=rounded(kept), cell=cell, holder=holder)


def read_gpus(
    rows: Sequence[SizeRow], page_gpus: PageGpus, memories: GpuMemoryIndex
) -> tuple[list[Finding], dict[str, Decimal]]:
    """Return the GPU facts of every row, and the GiB of one GPU by size where a memory cell decided it."""
    findings: list[Finding] = []
    texts: dict[str, GpuText] = {}
    for row in rows:
        findings += _read_text(row, texts)
    findings += resolve_text_memories(rows, texts, memories)
    gpu_rows: list[GpuRow] = []
    for row in rows:
        if cell := row.find("gpu_memory"):
            gpu_row = to_gpu_row(row, cell, texts.get(row.name, GpuText()), page_gpus)
            if isinstance(gpu_row, GpuRow):
                gpu_rows.append(gpu_row)
            else:
                findings.append(row.report(cell, gpu_row))
    per_gpu_gib: dict[str, Decimal] = {}
    for gpu in gpu_rows:
        column = [
            (other.count, other.memory) for other in gpu_rows
            if other.row.table == gpu.row.table and other.count and other.memory and other.text.model == gpu.text.model
        ]  # fmt: skip
        if gpu.count == 0:
            continue
        decision = None
        if gpu.count is not None:
            evidence = _evidence(gpu, column, page_gpus, memories)
            decision = _decide_by_cell(gpu, gpu.count) or decide_holder(gpu.count, gpu.memory, evidence)
        if gpu.count is None or decision is None:
            findings.append(gpu.row.report(gpu.cell, UNDECIDED))
            continue
        per_gpu_gib[gpu.row.name] = decision.per_gpu
        findings += _memory_facts(gpu, gpu.count, decision)
    with_memory = {gpu.row.name for gpu in gpu_rows}
    for row in rows:
        if row.name not in with_memory and (cell := row.find("gpu", "gpu_model")):
            findings += _text_memory_facts(row, cell, texts.get(row.name, GpuText()))
    return findings, per_gpu_gib


def _read_text(row: SizeRow, texts: dict[str, GpuText]) -> Iterator[Finding]:
    for field in ("gpu", "gpu_model"):
        cell = row.find(field)
        if cell is None:
            continue
        text = to_gpu_text(normalize_rates(cell.text), counted=field == "gpu")
        if text is None:
            yield row.report(cell, "names neither a count nor a model of GPUs")
            continue
        texts[row.name] = _combine(texts.get(row.name, GpuText()), text)
        yield from _text_facts(row, cell, text)


def _text_facts(row: SizeRow, cell: FieldCell, text: GpuText) -> Iterator[Finding]:
    values = {"gpu_vendor": text.vendor, "gpu_model": text.model, "gpu_interconnect": text.interconnect}
    yield from (row.fact(cell, field, value) for field, value in values.items() if value is not None)
    if re.search(r"\+\s*(?:IB|InfiniBand)\b", cell.text):
        yield row.fact(cell, "infiniband", True)
    if text.interconnect and text.interconnect.startswith("NVLink"):
        yield row.fact(cell, "nvlink", True)
    if text.count is not None:
        yield row.fact(cell, "gpu_count", text.count)
        if text.count.denominator != 1:
            yield row.fact(cell, "gpu_fraction", str(text.count))


def _evidence(
    gpu: GpuRow, column: list[tuple[Fraction, Decimal]], page_gpus: PageGpus, memories: GpuMemoryIndex
) -> Iterator[MemoryEvidence]:
    own, specs = gpu.text.memory_gib, page_gpus.from_specs.memory_gib
    yield "the row's own text", () if own is None else (own,)
    yield "the column", find_per_gpu_in_column(column)
    yield "the host specifications", () if specs is None else (specs,)
    yield "the page's text", page_gpus.prose_memories
    model = gpu.text.model or page_gpus.from_specs.model
    models = (model,) if model else page_gpus.prose_models
    yield "the GPU model", (size for name in models for size in memories.find(name))
    yield "the GPU in the title", memories.find_in_title(page_gpus.title)


def _memory_facts(gpu: GpuRow, count: Fraction, decision: HolderDecision) -> Iterator[Finding]:
    row, cell, memory = gpu.row, gpu.cell, gpu.memory
    total = rounded(Decimal(count.numerator) * decision.per_gpu / Decimal(count.denominator))
    if decision.holder == "gpu":
        yield row.fact(cell, "gpu_memory_gib_per_gpu", memory)
        yield row.fact(cell, "gpu_memory_gib", total, f"{count} x {memory} GiB")
        return
    yield row.fact(cell, "gpu_memory_gib", memory)
    # A total that was rounded, such as 1,535 for eight times 192, shows nothing exact of one GPU.
    if total == memory:
        note = f"{memory} GiB / {count}, by {decision.evidence}"
        yield row.fact(cell, "gpu_memory_gib_per_gpu", decision.per_gpu, note)


def _decide_by_cell(gpu: GpuRow, count: Fraction) -> HolderDecision | None:
    if gpu.holder == "gpu":
        return HolderDecision(holder="gpu", per_gpu=gpu.memory, evidence="the cell itself")
    if gpu.holder == "vm":
        share = rounded(gpu.memory * count.denominator / count.numerator)
        return HolderDecision(holder="vm", per_gpu=share, evidence="the cell itself")
    return None


def _text_memory_facts(row: SizeRow, cell: FieldCell, text: GpuText) -> Iterator[Finding]:
    if text.memory_gib is None:
        return
    yield row.fact(cell, "gpu_memory_gib_per_gpu", text.memory_gib)
    if text.count:
        total = rounded(text.memory_gib * text.count.numerator / text.count.denominator)
        note = f"{text.count} x {text.memory_gib} GiB"
        yield row.fact(cell, "gpu_memory_gib", total, note)


def _combine(first: GpuText, second: GpuText) -> GpuText:
    return GpuText(
        count=first.count if first.count is not None else second.count,
        vendor=first.vendor or second.vendor,
        model=first.model or second.model,
        memory_gib=first.memory_gib or second.memory_gib,
        holder=first.holder or second.holder,
        interconnect=first.interconnect or second.interconnect,
    )
