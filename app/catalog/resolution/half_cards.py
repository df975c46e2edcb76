"""GPUs counted in cards by one source and in halves of cards by another: a different unit, and no dispute.

A K80 or M60 card holds two GPUs. `1 x 8 GiB` and `1/2 x 16 GiB` of an M60 are the same, which two values of one field
do not show; the catalog of GPUs says of which cards there are halves.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

from app.catalog.resolution.claims import Decision, Ruling

COUNT, EACH = "gpu_count", "gpu_memory_gib_per_gpu"
_HALF = "half of"


def half_cards(gpus: Iterable[Mapping[str, Any]]) -> dict[str, Fraction]:
    """Find the memory of half a card by the card's family, in lower case: of the GPUs with an alias `half of …`."""
    return {
        str(gpu["family"]).lower(): Fraction(gpu["memory_gib"])
        for gpu in gpus
        if gpu["memory_gib"] and any(alias.startswith(_HALF) for alias in (gpu["aliases"] or "").split("; "))
    }


def in_one_unit(fields: Mapping[str, Decision], halves: Mapping[str, Fraction]) -> Mapping[str, Decision]:
    """Let the sources agree that count the GPUs of a size in the other unit than the accepted ones."""
    if not {COUNT, EACH, "gpu_model"} <= fields.keys():
        return fields
    words = str(fields["gpu_model"].accepted.value).lower().split()
    half = next((memory for family, memory in halves.items() if family in words), None)
    count, each = _number(fields[COUNT].accepted.value), _number(fields[EACH].accepted.value)
    if half is None or not count or each not in (half, 2 * half):
        return fields
    stated = {ruling.word.source: _number(ruling.word.value) for ruling in fields[EACH].rulings}

    def same(ruling: Ruling) -> bool:
        theirs = _number(ruling.word.value)
        return theirs in (count / 2, count * 2) and stated.get(ruling.word.source, count * each / theirs) == (
            count * each / theirs
        )

    sources = {ruling.word.source for ruling in fields[COUNT].rulings if ruling.verdict == "disputed" and same(ruling)}
    said = f"counts {'cards' if each == half else 'half cards'}: the same GPUs and memory in another unit"
    return {**fields} | {name: _agreeing(fields[name], sources, said) for name in (COUNT, EACH)}


def _agreeing(decision: Decision, sources: set[str], said: str) -> Decision:
    rulings = tuple(
        replace(ruling, verdict="agrees", reason=said)
        if ruling.verdict == "disputed" and ruling.word.source in sources
        else ruling
        for ruling in decision.rulings
    )
    return replace(decision, rulings=rulings)


def _number(value: Any) -> Fraction:
    return Fraction(str(value))
