"""GPU memory: which sizes each model is made with, and whether a figure is of one GPU or of the whole VM.

Headers do not decide the latter, because pages use the same words for both; arithmetic and other evidence do.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from typing import Literal

from app.catalog.readings import Report
from app.ingest.documents.gpu_text import GpuText
from app.ingest.documents.size_tables import SizeRow

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The GiB that one GPU may have by one kind of evidence."""

    name: str
    per_gpu: frozenset[Decimal]


def decide_holder(count: Fraction, memory: Decimal, evidence: Iterable[Evidence]) -> HolderDecision | None:
    """Decide by the first evidence, in order of weight, that explains the cell in one way only; None if none does."""
    if count == 1:
        return HolderDecision(holder="both", per_gpu=memory, evidence="a single GPU")
    for item in evidence:
        ways = {(holder, per_gpu) for per_gpu in item.per_gpu for holder in _possible_holders(count, memory, per_gpu)}
        if len({holder for holder, _ in ways}) == 1:
            holder, per_gpu = min(ways, key=lambda way: abs(Fraction(memory) - count * Fraction(way[1])))
            return HolderDecision(holder=holder, per_gpu=per_gpu, evidence=item.name)
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
    counts = {count for count, _ in rows}
    shares = {Fraction(memory) / count for count, memory in rows if count}
    memories = {memory for _, memory in rows}
    if len(counts) < 2:  # noqa: PLR2004  # one count shows nothing
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
            if _contains(words, name):
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


def _contains(words: tuple[str, ...], name: tuple[str, ...]) -> bool:
    return all(word in words for word in name)


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
            beside = {other: possible[other] for other in texts if tables.get(other) == tables.get(name)}
            candidates = candidates & _memories_of_same_model(text, beside, texts)
        if len(candidates) == 1:
            texts[name] = replace(text, memory_gib=next(iter(candidates)))
        elif text.memory_gib is not None:
            texts[name] = replace(text, memory_gib=None)
            yield from _report_undecided(name, rows)


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


def _memories_of_same_model(
    text: GpuText, possible: dict[str, set[Decimal]], texts: dict[str, GpuText]
) -> set[Decimal]:
    """Return the memories that are unambiguous for other sizes of the table with the same model."""
    return {
        size for name, sizes in possible.items() if len(sizes) == 1 and texts[name].model == text.model
        for size in sizes
    }  # fmt: skip


def _report_undecided(name: str, rows: Sequence[SizeRow]) -> Iterator[Report]:
    for row in rows:
        cell = row.find("gpu", "gpu_model")
        if row.name == name and cell:
            yield row.report(cell, UNDECIDED)
            return
