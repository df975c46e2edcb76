"""A job on one kind of VM, to be checked, and what a check finds."""

from collections.abc import Callable
from dataclasses import dataclass

from app.fit.formulas.sharding import Split
from app.fit.placement.attempt import Attempt
from app.fit.placement.machine import Machine
from app.fit.placement.prepare import Job, Prepared
from app.fit.placement.request import Constraints


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A job on one kind of VM, and the best attempt there is; None where the model cannot be cut as it must."""

    asked: Prepared
    machine: Machine
    attempt: Attempt | None

    @property
    def job(self) -> Job:
        """The workload."""
        return self.asked.job

    @property
    def constraints(self) -> Constraints:
        """What an option must be."""
        return self.asked.question.constraints

    @property
    def split(self) -> Split:
        """The split that is asked for; 1 where nothing is."""
        return self.asked.split


@dataclass(frozen=True, slots=True, kw_only=True)
class Short:
    """What a check found: the field of the constraint, what it says, and the amounts where it is about one."""

    constraint: str
    detail: str
    required: float | None = None
    available: float | None = None
    unit: str | None = None


Check = Callable[[Case], Short | None]
