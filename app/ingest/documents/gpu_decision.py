"""Whether a cell of GPU memory is of one GPU or of the whole VM: decided by arithmetic and evidence, not by headers."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Literal

TOLERANCE = Fraction(5, 1000)
"""A total may be this share off: eight times 192 GB are stated as 1,535."""

Holder = Literal["vm", "gpu", "both"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Of what the cell is, the memory of one GPU that showed it, and the kind of evidence."""

    holder: Holder
    per_gpu: Decimal
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The memories that one GPU may have, as one kind of evidence has it."""

    by: str
    per_gpu: frozenset[Decimal]


def decide(count: Fraction, memory: Decimal, levels: Iterable[Evidence]) -> Decision | None:
    """Ask the kinds of evidence in order of weight; the first that explains the cell in one way only decides."""
    if count == 1:
        return Decision(holder="both", per_gpu=memory, by="a single GPU")
    for level in levels:
        found = {(holder, per_gpu) for per_gpu in level.per_gpu for holder in _explained(count, memory, per_gpu)}
        if len({holder for holder, _ in found}) == 1:
            holder, per_gpu = min(found, key=lambda item: abs(Fraction(memory) - count * Fraction(item[1])))
            return Decision(holder=holder, per_gpu=per_gpu, by=level.by)
    return None


def _explained(count: Fraction, memory: Decimal, per_gpu: Decimal) -> set[Holder]:
    total = count * Fraction(per_gpu)
    if total > 0 and abs(Fraction(memory) - total) <= TOLERANCE * total:
        return {"vm"}
    return {"gpu"} if memory == per_gpu else set()


def from_column(rows: Sequence[tuple[Fraction, Decimal]]) -> frozenset[Decimal]:
    """Find one GPU's memory in a column of counts and memories.

    A row of one GPU gives it; without one, memories that grow with the count, or stay the same while it grows, do.
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
