"""Find changes of a request that make a rejected size fit; each suggestion was evaluated before."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from app.fit.formulas.assumptions import Assumptions, InvalidWorkload
from app.fit.placement.evaluate import evaluate
from app.fit.placement.machine import Machine
from app.fit.placement.option import PlacementOption
from app.fit.placement.prepare import PreparedRequest, prepare
from app.fit.placement.proposals import PROPOSALS, Change, FixContext
from app.fit.verdict import Rejection
from app.fit.vm import Vm

MAX_CHANGES = 3
"""At most this many changes are combined, and only where fewer are not enough."""
MAX_COMBINATIONS = 4
"""At most this many combinations are suggested."""

Changes = tuple[Change, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fix:
    """Changes that together make a size fit; `patch` is what they do to the request (JSON Merge Patch, RFC 7396)."""

    changes: Changes

    @property
    def text(self) -> str:
        """The changes as text: `concurrency <= 14`."""
        return " and ".join(change.text for change in self.changes)

    @property
    def patch(self) -> dict[str, dict[str, Any]]:
        """The fields to set, by part of the request."""
        parts: dict[str, dict[str, Any]] = {}
        for change in self.changes:
            parts.setdefault(change.part, {})[change.field] = change.value
        return parts


class FixFinder:
    """Finds fixes for the rejected sizes of one request; a changed request is prepared once for all sizes."""

    def __init__(self, prepared: PreparedRequest) -> None:
        self._prepared = prepared
        self._prepared_by_changes: dict[Changes, PreparedRequest | None] = {(): prepared}

    def find_fixes(self, vm: Vm, machine: Machine, rejection: Rejection) -> tuple[Fix, ...]:
        """Find every single change that makes a size fit; where there is none, combinations of up to three."""
        if not _is_fixable(rejection):
            return ()
        fixes = list(self._sufficient_changes(vm, machine, rejection, ()))
        if not fixes:
            fixes = list(self._combinations(vm, machine, rejection, ()))
        return tuple(Fix(changes=changes) for changes in fixes)

    def _sufficient_changes(self, vm: Vm, machine: Machine, rejection: Rejection, before: Changes) -> Iterator[Changes]:
        """Yield of each kind of change the first that makes the size fit, together with those `before`."""
        seen: set[Changes] = set()
        for failure in rejection.failures:
            for alternatives in self._proposals(machine, rejection, failure.code, before):
                for changes in alternatives:
                    together = (*before, *changes)
                    if together not in seen and isinstance(self._evaluate(vm, machine, together), PlacementOption):
                        seen.add(together)
                        yield together
                        break

    def _combinations(self, vm: Vm, machine: Machine, rejection: Rejection, before: Changes) -> Iterator[Changes]:
        """Yield combinations: a change that resolves the worst failure, then changes that resolve the rest."""
        code, count = rejection.failures[0].code, 0
        for alternatives in self._proposals(machine, rejection, code, before):
            for changes in alternatives:
                together = (*before, *changes)
                verdict = self._evaluate(vm, machine, together)
                if not isinstance(verdict, Rejection) or any(left.code == code for left in verdict.failures):
                    continue
                for fix in self._completions(vm, machine, verdict, together):
                    yield fix
                    count += 1
                    if count == MAX_COMBINATIONS:
                        return
                    break

    def _completions(self, vm: Vm, machine: Machine, rejection: Rejection, before: Changes) -> Iterator[Changes]:
        """Yield what resolves a remaining rejection: one more change, else more of them up to the limit."""
        if not _is_fixable(rejection):
            return
        yield from self._sufficient_changes(vm, machine, rejection, before)
        if len(before) + 1 < MAX_CHANGES:
            yield from self._combinations(vm, machine, rejection, before)

    def _proposals(self, machine: Machine, rejection: Rejection, code: str, before: Changes) -> list[list[Changes]]:
        """Return the proposals for a failure after the changes `before`; no field is changed twice."""
        prepared = self._prepare_with(before)
        if prepared is None:
            return []
        failure = next(one for one in rejection.failures if one.code == code)
        changed = {(change.part, change.field) for change in before}
        return [
            [
                changes
                for changes in alternatives
                if not any((change.part, change.field) in changed for change in changes)
            ]
            for alternatives in PROPOSALS[code](FixContext(machine=machine, prepared=prepared, failure=failure))
        ]

    def _evaluate(self, vm: Vm, machine: Machine, changes: Changes) -> PlacementOption | Rejection | None:
        """Evaluate a size after changes; None where they contradict the rest of the request."""
        prepared = self._prepare_with(changes)
        return evaluate(vm, machine, prepared) if prepared is not None else None

    def _prepare_with(self, changes: Changes) -> PreparedRequest | None:
        if changes not in self._prepared_by_changes:
            request = self._prepared.request
            for change in changes:
                request = request.with_change(change.part, change.field, change.value)
            try:
                self._prepared_by_changes[changes] = prepare(request, Assumptions())
            except InvalidWorkload:
                self._prepared_by_changes[changes] = None
        return self._prepared_by_changes[changes]


def _is_fixable(rejection: Rejection) -> bool:
    """Whether every failure can be resolved by the request: where one cannot, no change of the others helps."""
    return all(failure.code in PROPOSALS for failure in rejection.failures)
