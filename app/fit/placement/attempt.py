"""One way to lay a model on VMs of one kind, judged by memory; and the bounds within which ways are looked for."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import inf
from typing import NamedTuple

from app.fit.formulas.quantities import Range
from app.fit.formulas.sharding import Split
from app.fit.placement.layouts import Cut, Way, ways
from app.fit.placement.machine import Machine


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How many VMs there may be, and whether layers must stay in an NVLink domain, VMs be joined by InfiniBand."""

    min_nodes: int = 1
    max_nodes: int = 1
    in_nvlink: bool = False
    infiniband: bool = False

    def nodes_of(self, machine: Machine) -> int:
        """How many VMs of a kind can work together: one without InfiniBand, where that is needed."""
        alone = machine.infiniband is not True and self.infiniband
        return 1 if alone else self.max_nodes

    def reach(self, machine: Machine) -> int:
        """Over how many GPUs one layer can be cut."""
        return machine.reach(self.nodes_of(machine), in_nvlink=self.in_nvlink)

    def looser(self, machine: Machine) -> Iterator[tuple[str, "Limits"]]:
        """These limits without one that binds a machine, by the code of what is lifted."""
        if self.in_nvlink and machine.domain_gpus < machine.ranks:
            yield "NVLINK_DOMAIN", replace(self, in_nvlink=False)
        if self.nodes_of(machine) < self.max_nodes:
            yield "NO_INFINIBAND", replace(self, infiniband=False)


def found_ways(cut: Cut, machine: Machine, limits: Limits) -> tuple[Way, ...]:
    """List the splits that VMs of a kind allow; a part of a GPU works alone, so a copy there has just one."""
    nodes = 1 if machine.fractional else limits.nodes_of(machine)
    return ways(cut, machine.ranks, limits.reach(machine), nodes)


class Attempt(NamedTuple):
    """A split on so many VMs, with so many copies, and what the fullest GPU needs and may use, bytes.

    The attempt of the least key is the best: what fits before what does not, and of that what a VM's own memory can
    load before what it cannot; then fewer VMs, or the least need. `stage` is ZeRO's, None where nothing is trained.
    """

    key: tuple[float, ...]
    fits: bool
    loads: bool
    split: Split
    copies: int
    nodes: int
    need: float
    budget: float
    stage: int | None = None

    @property
    def gpus(self) -> int:
        """How many GPUs work."""
        return self.split.gpus * self.copies


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """How fast an option is; None is unknown. A step is one token of every sequence; hours are the job's."""

    tokens_per_s: Range
    least_step_s: float | None = None
    step_s: Range | None = None
    most_tokens_per_s: float | None = None
    hours: Range | None = None

    @property
    def time(self) -> float:
        """What options are ordered by: the hours of the job, else the seconds of a step; infinity where unknown."""
        known = self.hours or self.step_s
        return known.mid if known is not None else inf
