"""Starts both sides of a case, passes the service's responses to the reference, and compares both."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.cases import BenchmarkCase
from benchmarks.catalogs import Scale
from benchmarks.plan import Plan
from benchmarks.ratios import Spread
from benchmarks.responses import RecordedResponse, save_responses
from benchmarks.servers import LoadRequest, Server, running
from benchmarks.sides import Side, SideContext

MAX_RECORDED = 1_000
"""How many distinct responses are recorded and compared."""


class ResponsesDiffer(Exception):
    """The two sides of a pair send different responses, so their speeds cannot be compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkContext:
    """How long to measure, the working folder, the catalogs by kind of database and scale, and shared figures."""

    plan: Plan
    folder: Path
    catalog: Callable[[str, Scale], str]
    measured: dict[tuple[str, str, Scale], dict[str, Spread]] = field(default_factory=dict)

    def side_context(self, case: BenchmarkCase, *, subject: bool) -> SideContext:
        """Return what one side of a case is started with."""
        scale = case.subject_scale if subject else case.reference_scale
        return SideContext(database=self.catalog(case.database, scale), responses=self.folder / "answers.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningSide:
    """A running server, its request, and the seconds that one response takes."""

    server: Server
    request: LoadRequest
    seconds: float


@contextmanager
def both_running(context: BenchmarkContext, case: BenchmarkCase) -> Iterator[tuple[RunningSide, RunningSide]]:
    """Run both sides; raises ResponsesDiffer before anything is measured."""
    with ExitStack() as stack:
        subject = stack.enter_context(one_running(context, case, subject=True))
        responses = record_responses(context, case, subject)
        reference = stack.enter_context(one_running(context, case, subject=False))
        if case.compare != "nothing":
            for target, theirs in zip(responses, reference.request.targets, strict=False):
                compare(case, responses[target], reference.server.request(reference.request, theirs))
        yield subject, reference


@contextmanager
def one_running(context: BenchmarkContext, case: BenchmarkCase, *, subject: bool) -> Iterator[RunningSide]:
    """Run one side; raises NotMeasurable where it cannot run."""
    side, place = side_of(case, subject=subject), context.side_context(case, subject=subject)
    with running(side.command(place), context.folder / f"{'subject' if subject else 'reference'}.log") as server:
        question = (side.request or case.request)(server, place)
        _check_success(question.targets[0], server.request(question, question.targets[0]))
        started = time.perf_counter()
        server.request(question, question.targets[0])
        yield RunningSide(server=server, request=question, seconds=time.perf_counter() - started)


def side_of(case: BenchmarkCase, *, subject: bool) -> Side:
    """Return one side of a case; raises ValueError where a case has no reference."""
    side = case.subject if subject else case.reference
    if side is None:
        raise ValueError(f"{case.name} has no reference")
    return side


def record_responses(
    context: BenchmarkContext, case: BenchmarkCase, subject: RunningSide
) -> dict[str, RecordedResponse]:
    """Record the service's responses for the reference; raises RuntimeError for one that failed."""
    targets = subject.request.targets[: 1 if subject.request.fresh else MAX_RECORDED]
    responses = {target: subject.server.request(subject.request, target) for target in targets}
    for target, response in responses.items():
        _check_success(target, response)
    save_responses(responses, context.side_context(case, subject=True).responses)
    return responses


def _check_success(target: str, response: RecordedResponse) -> None:
    if response.status >= 400:
        raise RuntimeError(f"{response.status} to {target}: {response.body[:300]!r}")


def compare(case: BenchmarkCase, ours: RecordedResponse, theirs: RecordedResponse) -> None:
    """Check that two responses are equal as far as the case requires; raises ResponsesDiffer."""
    if ours.status != theirs.status or not COMPARISONS[case.compare](ours.body, theirs.body):
        at = next((at for at, (one, other) in enumerate(zip(ours.body, theirs.body, strict=False)) if one != other), 0)
        near = slice(max(0, at - 60), at + 60)
        raise ResponsesDiffer(
            f"{case.name}: the service says {ours.status} {ours.body[near]!r}, "
            f"the reference {theirs.status} {theirs.body[near]!r}, at byte {at}"
        )


def _names(body: bytes) -> list[str]:
    page = json.loads(body)
    return [row["name"] for row in (page["items"] if isinstance(page, dict) else page)]


def _items(body: bytes) -> bytes:
    return body[: body.rindex(b"]") + 1]


COMPARISONS: dict[str, Callable[[bytes, bytes], bool]] = {
    "bytes": lambda ours, theirs: ours == theirs,
    "items": lambda ours, theirs: _items(ours) == _items(theirs),
    "names": lambda ours, theirs: _names(ours) == _names(theirs),
    "nothing": lambda _ours, _theirs: True,
}
