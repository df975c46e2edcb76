"""Measures a case: both servers run at once and are loaded in turn, A B A B, so that noise hits both."""

import compileall
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from benchmarks import alone
from benchmarks.build import PROJECT
from benchmarks.cases import BenchmarkCase
from benchmarks.load import Burst, Download, burst, download
from benchmarks.openloop import open_loop
from benchmarks.page_query import PRICED_TARGET
from benchmarks.pairing import BenchmarkContext, RunningSide, both_running, one_running, record_responses, side_of
from benchmarks.plan import MAX_BURST_SECONDS, RESPONSES_PER_BURST
from benchmarks.ratios import Spread, paired, spread
from benchmarks.requests import FILES_AT_ONCE, MEMORY_REQUESTS
from benchmarks.servers import cpu_seconds, seconds_to_first_answer

Figures = dict[str, Spread]


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult:
    """The result of a case; `main` names the figure that has a goal, `why_not` says why there are no figures."""

    name: str
    says: str
    subject: str
    reference: str
    main: str
    asked: str
    figures: Figures
    reached: bool | None
    load_average: float
    why_not: str | None


def measure(context: BenchmarkContext, case: BenchmarkCase) -> CaseResult:
    """Measure one case; raises ResponsesDiffer, NotMeasurable, or RuntimeError where a server fails.

    Cases that show other figures of the same measurement are measured once.
    """
    if case.kind not in SHARED:
        return to_result(case, MEASUREMENTS[case.kind](context, case))
    same = (case.kind, case.database, case.subject_scale)
    if same not in context.measured:
        context.measured[same] = MEASUREMENTS[case.kind](context, case)
    return to_result(case, context.measured[same])


def to_result(case: BenchmarkCase, figures: Figures, why_not: str | None = None) -> CaseResult:
    """Compare figures with the goal of their case."""
    goal = case.goal
    return CaseResult(
        name=case.name,
        says=case.description,
        subject=case.subject.name,
        reference=case.reference.name if case.reference else "",
        main=goal.figure,
        asked=f"{goal.how} {goal.bound:.2f}" if goal.bound is not None else "",
        figures=figures,
        reached=goal.reached(figures[goal.figure].median) if figures else None,
        load_average=round(os.getloadavg()[0], 1),
        why_not=why_not,
    )


def _load(context: BenchmarkContext, case: BenchmarkCase) -> Figures:
    with both_running(context, case) as sides:
        for side in sides:
            _burst(context, case, side, context.plan.warm_up)
        rounds = [
            [_burst(context, case, side, context.plan.burst) for side in sides] for _ in range(context.plan.pairs)
        ]
    ours, theirs = zip(*rounds, strict=True)
    return {
        "ratio": paired([one.per_second for one in ours], [one.per_second for one in theirs]),
        "ratio of CPU": paired([one.cpu_microseconds for one in theirs], [one.cpu_microseconds for one in ours]),
        "subject per second": spread([one.per_second for one in ours]),
        "reference per second": spread([one.per_second for one in theirs]),
        "subject CPU microseconds": spread([one.cpu_microseconds for one in ours]),
        "reference CPU microseconds": spread([one.cpu_microseconds for one in theirs]),
    }


def _burst(context: BenchmarkContext, case: BenchmarkCase, side: RunningSide, seconds: float) -> Burst:
    """Load one side, for longer where its responses take long."""
    lasts = min(MAX_BURST_SECONDS, max(seconds, RESPONSES_PER_BURST * side.seconds))
    return burst(side.server, side.request, seconds=lasts, connections=case.connections, folder=context.folder)


def _open_loop(context: BenchmarkContext, case: BenchmarkCase) -> Figures:
    with one_running(context, case, subject=True) as ready:
        _burst(context, case, ready, context.plan.warm_up)
        most = _burst(context, case, ready, context.plan.warm_up).per_second
        seen = [
            open_loop(ready.server, ready.request, per_second=most / 2, seconds=context.plan.open_loop)
            for _ in range(context.plan.open_loops)
        ]
    return {
        "p99 / p50": spread([one.p99_ms / one.p50_ms for one in seen]),
        "p50 ms": spread([one.p50_ms for one in seen]),
        "p99 ms": spread([one.p99_ms for one in seen]),
        "late": spread([float(one.late) for one in seen]),
        **_singles({"per second": seen[0].per_second, "saturated per second": most}),
    }


def _start(context: BenchmarkContext, case: BenchmarkCase) -> Figures:
    with one_running(context, case, subject=True) as ready:
        record_responses(context, case, ready)
    compileall.compile_dir(str(PROJECT / "app"), quiet=1)  # as the image has it
    ours: list[float] = []
    theirs: list[float] = []
    for _ in range(context.plan.starts):
        for subject, seconds in ((True, ours), (False, theirs)):
            command = side_of(case, subject=subject).command(context.side_context(case, subject=subject))
            seconds.append(seconds_to_first_answer(command, context.folder / "start.log", PRICED_TARGET))
    return {
        "seconds more": spread([one - other for one, other in zip(ours, theirs, strict=True)]),
        "ratio": paired(theirs, ours),
        "subject seconds": spread(ours),
        "reference seconds": spread(theirs),
    }


def _command(context: BenchmarkContext, case: BenchmarkCase) -> Figures:
    """Measure the CPU time of two commands, run in turn."""
    sides = [
        (side_of(case, subject=subject), context.side_context(case, subject=subject), seconds)
        for subject, seconds in ((True, list[float]()), (False, list[float]()))
    ]
    compileall.compile_dir(str(PROJECT / "app"), quiet=1)  # as the image has it
    for _ in range(context.plan.starts):
        for side, place, seconds in sides:
            seconds.append(cpu_seconds(side.command(place)))
    ours, theirs = (seconds for _, _, seconds in sides)
    return {
        "CPU seconds": spread(ours),
        "ratio": paired(ours, theirs),
        "reference CPU seconds": spread(theirs),
    }


def _memory(context: BenchmarkContext, case: BenchmarkCase) -> Figures:
    with one_running(context, case, subject=True) as ready:
        before = ready.server.memory_mb()
        deadline = time.monotonic() + context.plan.memory
        while ready.server.used < MEMORY_REQUESTS and time.monotonic() < deadline:
            _burst(context, case, ready, min(MAX_BURST_SECONDS, context.plan.memory))
        after = ready.server.memory_mb()
    different = min(ready.server.used, len(ready.request.targets))
    return _singles({"MB": after, "MB at first": before, "different questions": different})


def _download(context: BenchmarkContext, case: BenchmarkCase) -> Figures:
    """Measure whole downloads of one response, which takes long, in turn."""
    with both_running(context, case) as sides:
        rounds = [[_downloaded(context, side) for side in sides] for _ in range(context.plan.pairs)]
    ours, theirs = zip(*rounds, strict=True)
    return {
        "ratio": paired([one.mb_per_second for one in ours], [one.mb_per_second for one in theirs]),
        "ratio of CPU": paired([one.cpu_ms_per_mb for one in theirs], [one.cpu_ms_per_mb for one in ours]),
        "subject MB per second": spread([one.mb_per_second for one in ours]),
        "reference MB per second": spread([one.mb_per_second for one in theirs]),
        "subject CPU ms a MB": spread([one.cpu_ms_per_mb for one in ours]),
        "reference CPU ms a MB": spread([one.cpu_ms_per_mb for one in theirs]),
    }


def _downloaded(context: BenchmarkContext, side: RunningSide) -> Download:
    """Download a response as often as a burst lasts, at least once."""
    times = max(1, round(context.plan.burst / side.seconds))
    return download(side.server, side.request, side.request.targets[:1] * times)


def _file(context: BenchmarkContext, case: BenchmarkCase) -> Figures:
    """Measure downloads of files, each of which the server writes first; libraries were loaded for one before.

    The system counts CPU time in hundredths of a second, so that several files make a figure.
    """
    with one_running(context, case, subject=True) as ready:
        starts = range(1, context.plan.pairs * FILES_AT_ONCE, FILES_AT_ONCE)
        parts = [ready.request.targets[start : start + FILES_AT_ONCE] for start in starts]
        seen = [download(ready.server, ready.request, some) for some in parts]
    return {
        "CPU ms a MB": spread([one.cpu_ms_per_mb for one in seen]),
        "MB per second": spread([one.mb_per_second for one in seen]),
        "MB": spread([one.megabytes / FILES_AT_ONCE for one in seen]),
    }


def _singles(figures: Mapping[str, float]) -> Figures:
    return {name: spread([float(value)]) for name, value in figures.items()}


MEASUREMENTS: dict[str, Callable[[BenchmarkContext, BenchmarkCase], Figures]] = {
    "load": _load,
    "open loop": _open_loop,
    "start": _start,
    "command": _command,
    "memory": _memory,
    "download": _download,
    "file": _file,
    **alone.MEASUREMENTS,
}
SHARED = {"panel", "stalls", "ingest of a page"}
"""The kinds of which several cases each show a figure."""
