"""What is found for a machine, kept for all that differ in nothing that decides."""

from collections.abc import Callable, Hashable
from dataclasses import fields
from math import inf
from operator import attrgetter
from typing import Any, Generic, NamedTuple, TypeVar

from app.fit.placement.machine import Machine

T = TypeVar("T")
_NOT_OF_GPUS = {"memory_bytes", "disk_bytes", "vcpus", "of_series", "usable_assumed", "peaks"}
_of_gpus = attrgetter(*(one.name for one in fields(Machine) if one.init and one.name not in _NOT_OF_GPUS))
"""Returns the facts of a machine but its memory, its disk and its vCPUs, how its GPUs are known, and their peaks."""


class Kept(NamedTuple, Generic[T]):
    """What was found for machines with memory from the first amount on and below the second, bytes."""

    least_bytes: float
    next_bytes: float
    found: T


class KeptByGpus:
    """Keeps what is found for machines, where it depends on nothing but their GPUs and what their memory holds."""

    def __init__(self) -> None:
        self._kept: dict[Hashable, list[Kept[Any]]] = {}

    def find(self, machine: Machine, what: Hashable, search: Callable[[list[float]], T]) -> Kept[T]:
        """Return what a search finds for a machine, or has found for one that is the same to it.

        `what` names the search, which adds what the memory is compared with to the list that it gets.
        """
        known = self._kept.setdefault((what, _of_gpus(machine), *machine.peaks.items()), [])
        memory = _memory_of(machine)
        for kept in known:
            if kept.least_bytes <= memory < kept.next_bytes or memory == kept.next_bytes == inf:
                return kept
        compared: list[float] = []
        found = search(compared)
        held = max((one for one in compared if one <= memory), default=0.0)
        more = min((one for one in compared if one > memory), default=inf)
        known.append(Kept(held, more, found))
        return known[-1]


def _memory_of(machine: Machine) -> float:
    """Return the memory of a VM, bytes; infinity where it is unknown, as it is then assumed to hold everything."""
    return inf if machine.memory_bytes is None else machine.memory_bytes
