"""GPU memory by powers of two: a list by price is merged from one walk for each, however many memories there are."""

from math import frexp

from sqlalchemy import ColumnElement, case

LAST = 15
"""The octave of 32 TiB and more."""


def octave_of(gpu_memory_gib: float) -> int:
    """The octave of a GPU memory above zero: its logarithm to the base of two, rounded down, from 0 to LAST."""
    return min(max(frexp(gpu_memory_gib)[1] - 1, 0), LAST)


def octave_in(gpu_memory_gib: ColumnElement[float]) -> ColumnElement[int]:
    """The same in SQL; null without a GPU."""
    return case(*((gpu_memory_gib >= 2.0**octave, octave) for octave in range(LAST, 0, -1)), (gpu_memory_gib > 0, 0))
