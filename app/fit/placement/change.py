"""One change of a request that may be proposed, and the failure that it is proposed for."""

import json
from dataclasses import dataclass
from typing import Any

from app.fit.placement.machine import Machine
from app.fit.placement.prepare import Prepared
from app.fit.verdict import Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One field of a request set to a value, and how that is said; None is no value."""

    part: str
    field: str
    value: Any
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """A failure of one kind of VM in a question."""

    machine: Machine
    asked: Prepared
    failure: Failure

    @property
    def part(self) -> str:
        """The part of the request that holds the workload."""
        return self.asked.job.use


Kind = list[tuple[Change, ...]]
"""Changes of one kind, in the order in which they are to be tried: the first that does is enough."""


def setting(part: str, field: str, value: Any) -> tuple[Change]:
    """Set a field: `dtype=fp8`."""
    return (Change(part=part, field=field, value=value, text=f"{field}={json.dumps(value).strip(chr(34))}"),)


def at_most(part: str, field: str, value: int) -> tuple[Change]:
    """Set a field to the most that does: `concurrency <= 14`."""
    return (Change(part=part, field=field, value=value, text=f"{field} <= {value}"),)
