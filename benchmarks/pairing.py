"""Brings the two sides of a case up, gives the reference what it needs of the service's answers, and compares both."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.cases import BenchmarkCase
from benchmarks.catalogs import Scale
from benchmarks.plan import Plan
from benchmarks.responses import RecordedResponse, save_responses
from benchmarks.servers import LoadRequest, Server, running
from benchmarks.sides import Side, SideContext

MAX_RECORDED = 1_000
"""Answers that are kept and compared; of more different questions, the first."""


class ResponsesDiffer(Exception):
    """The two sides of a pair do not give the same answer, so their speeds cannot be compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkContext:
    """How long is measured, in which folder, and where the catalogs are, by kind of database and scale."""

    plan: Plan
    folder: Path
    catalog: Callable[[str, Scale], str]

    def side_context(self, case: BenchmarkCase, *, subject: bool) -> SideContext:
        """What one side of a case is started with."""
        scale = case.subject_scale if subject else case.reference_scale
        return SideContext(database=self.catalog(case.database, scale), responses=self.folder / "answers.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningSide:
    """A server that runs, what it is asked, and how long one answer takes, seconds."""

    server: Server
    request: LoadRequest
    seconds: float


@contextmanager
def both_running(bench: BenchmarkContext, case: BenchmarkCase) -> Iterator[tuple[RunningSide, RunningSide]]:
    """Run both sides; raises Different before anything is measured."""
    with ExitStack() as stack:
        subject = stack.enter_context(one_running(bench, case, subject=True))
        answers = record_responses(bench, case, subject)
        reference = stack.enter_context(one_running(bench, case, subject=False))
        if case.compare != "nothing":
            for target, theirs in zip(answers, reference.request.targets, strict=False):
                compare(case, answers[target], reference.server.request(reference.request, theirs))
        yield subject, reference


@contextmanager
def one_running(bench: BenchmarkContext, case: BenchmarkCase, *, subject: bool) -> Iterator[RunningSide]:
    """Run one side; raises NotMeasurable where it cannot run."""
    side, place = side_of(case, subject=subject), bench.side_context(case, subject=subject)
    with running(side.command(place), bench.folder / f"{'subject' if subject else 'reference'}.log") as server:
        question = (side.request or case.request)(server, place)
        _check_success(question.targets[0], server.request(question, question.targets[0]))
        started = time.perf_counter()
        server.request(question, question.targets[0])
        yield RunningSide(server=server, request=question, seconds=time.perf_counter() - started)


def side_of(case: BenchmarkCase, *, subject: bool) -> Side:
    """One side of a case; raises ValueError where a case has only one."""
    side = case.subject if subject else case.reference
    if side is None:
        raise ValueError(f"{case.name} has no reference")
    return side


def record_responses(bench: BenchmarkContext, case: BenchmarkCase, subject: RunningSide) -> dict[str, RecordedResponse]:
    """Ask the service for its answers and keep them for the reference; raises RuntimeError for one that failed."""
    targets = subject.request.targets[: 1 if subject.request.fresh else MAX_RECORDED]
    answers = {target: subject.server.request(subject.request, target) for target in targets}
    for target, answer in answers.items():
        _check_success(target, answer)
    save_responses(answers, bench.side_context(case, subject=True).responses)
    return answers


def _check_success(target: str, answer: RecordedResponse) -> None:
    if answer.status >= 400:
        raise RuntimeError(f"{answer.status} to {target}: {answer.body[:300]!r}")


def compare(case: BenchmarkCase, ours: RecordedResponse, theirs: RecordedResponse) -> None:
    """Find two answers the same, as far as the case asks; raises Different."""
    if ours.status != theirs.status or not COMPARISONS[case.compare](ours.body, theirs.body):
        at = next((at for at, (one, other) in enumerate(zip(ours.body, theirs.body, strict=False)) if one != other), 0)
        near = slice(max(0, at - 60), at + 60)
        raise ResponsesDiffer(
            f"{case.name}: the service says {ours.status} {ours.body[near]!r}, "
            f"the reference {theirs.status} {theirs.body[near]!r}, at byte {at}"
        )


def _names(body: bytes) -> list[str]:
    told = json.loads(body)
    return [row["name"] for row in (told["items"] if isinstance(told, dict) else told)]


def _items(body: bytes) -> bytes:
    return body[: body.rindex(b"]") + 1]


COMPARISONS: dict[str, Callable[[bytes, bytes], bool]] = {
    "bytes": lambda ours, theirs: ours == theirs,
    "items": lambda ours, theirs: _items(ours) == _items(theirs),
    "names": lambda ours, theirs: _names(ours) == _names(theirs),
    "nothing": lambda _ours, _theirs: True,
}
