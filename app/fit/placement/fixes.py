"""What to change for a size to fit; nothing is suggested that was not judged to do."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from app.fit.formulas.assumptions import Impossible, Ledger
from app.fit.placement.judge import judge
from app.fit.placement.machine import Machine
from app.fit.placement.option import Placed
from app.fit.placement.prepare import Prepared, prepare
from app.fit.placement.proposals import PROPOSALS, Change, Situation
from app.fit.verdict import Rejection
from app.fit.vm import Vm

DEEPEST = 3
"""So many changes are suggested together at most, and only where fewer do not do."""
MOST = 4
"""So many combinations are suggested at most."""

Changes = tuple[Change, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fix:
    """Changes that together make a size fit; `patch` is what they do to the request (JSON Merge Patch, RFC 7396)."""

    changes: Changes

    @property
    def text(self) -> str:
        """In words: `concurrency <= 14`."""
        return " and ".join(change.text for change in self.changes)

    @property
    def patch(self) -> dict[str, dict[str, Any]]:
        """The fields to set, by the part of the request."""
        parts: dict[str, dict[str, Any]] = {}
        for change in self.changes:
            parts.setdefault(change.part, {})[change.field] = change.value
        return parts


class Fixer:
    """Finds fixes for the rejected sizes of one question; questions with the same change are prepared once."""

    def __init__(self, asked: Prepared) -> None:
        self._asked = asked
        self._changed: dict[Changes, Prepared | None] = {(): asked}

    def fixes(self, vm: Vm, machine: Machine, rejection: Rejection) -> tuple[Fix, ...]:
        """Find every single change that makes a size fit; where none does, combinations of up to three."""
        if any(failure.code not in PROPOSALS for failure in rejection.failures):
            return ()
        found = list(self._found(vm, machine, rejection, ()))
        if not found:
            found = list(self._combined(vm, machine, rejection, ()))
        return tuple(Fix(changes=changes) for changes in found)

    def _found(self, vm: Vm, machine: Machine, rejection: Rejection, before: Changes) -> Iterator[Changes]:
        """Of each kind of change the first that makes the size fit."""
        seen: set[Changes] = set()
        for failure in rejection.failures:
            for kind in self._proposed(machine, rejection, failure.code, before):
                for changes in kind:
                    together = (*before, *changes)
                    if together not in seen and isinstance(self._verdict(vm, machine, together), Placed):
                        seen.add(together)
                        yield together
                        break

    def _combined(self, vm: Vm, machine: Machine, rejection: Rejection, before: Changes) -> Iterator[Changes]:
        """Change what settles the worst failure, then look for what settles the rest."""
        code, told = rejection.failures[0].code, 0
        for kind in self._proposed(machine, rejection, code, before):
            for changes in kind:
                together = (*before, *changes)
                verdict = self._verdict(vm, machine, together)
                if not isinstance(verdict, Rejection) or any(left.code == code for left in verdict.failures):
                    continue
                for fix in self._rest(vm, machine, verdict, together):
                    yield fix
                    told += 1
                    if told == MOST:
                        return
                    break

    def _rest(self, vm: Vm, machine: Machine, rejection: Rejection, before: Changes) -> Iterator[Changes]:
        if any(failure.code not in PROPOSALS for failure in rejection.failures):
            return
        yield from self._found(vm, machine, rejection, before)
        if len(before) + 1 < DEEPEST:
            yield from self._combined(vm, machine, rejection, before)

    def _proposed(self, machine: Machine, rejection: Rejection, code: str, before: Changes) -> list[list[Changes]]:
        asked = self._with(before)
        if asked is None:
            return []
        failure = next(one for one in rejection.failures if one.code == code)
        fixed = {(change.part, change.field) for change in before}
        return [
            [changes for changes in kind if not any((change.part, change.field) in fixed for change in changes)]
            for kind in PROPOSALS[code](Situation(machine=machine, asked=asked, failure=failure))
        ]

    def _verdict(self, vm: Vm, machine: Machine, changes: Changes) -> Placed | Rejection | None:
        """What is said of a size after changes; None where they contradict the rest of the question."""
        asked = self._with(changes)
        return judge(vm, machine, asked) if asked is not None else None

    def _with(self, changes: Changes) -> Prepared | None:
        if changes not in self._changed:
            question = self._asked.question
            for change in changes:
                question = question.changed(change.part, change.field, change.value)
            try:
                self._changed[changes] = prepare(question, Ledger())
            except Impossible:
                self._changed[changes] = None
        return self._changed[changes]
