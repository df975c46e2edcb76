"""Measures what no other server runs beside: CPU time and memory of questions that differ, stalls, workers, ingest."""

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

from benchmarks import mixed, stalls, workers
from benchmarks.cases import BenchmarkCase
from benchmarks.catalogs import FEW
from benchmarks.ingest import measure_ingest
from benchmarks.page_ingest import measure_page
from benchmarks.pairing import BenchmarkContext
from benchmarks.questions import panel_questions, random_questions
from benchmarks.ratios import Spread, paired, percentile, spread
from benchmarks.servers import Server, running
from benchmarks.uncached import cpu_milliseconds

Figures = dict[str, Spread]
PANEL_QUESTIONS = 2_000
READY = "/sizes?limit=1"
WARM_UP_QUESTIONS = 20
"""After this many questions, what all requests share is built."""


def cpu(context: BenchmarkContext, case: BenchmarkCase) -> Figures:
    """Measure the CPU milliseconds of questions that differ, each asked once."""
    if case.questions is None:
        raise ValueError(f"{case.name} has no questions")
    rng, plan = Random(case.name), context.plan
    count = plan.questions if case.subject_scale.sizes <= FEW.sizes else plan.questions // 5
    with _serving(context, case) as server:
        for _ in range(WARM_UP_QUESTIONS):
            cpu_milliseconds(server, [case.questions(rng, case.subject_scale)])
        server.wait_until_idle()
        used = [
            cpu_milliseconds(server, [case.questions(rng, case.subject_scale) for _ in range(count)])
            for _ in range(plan.pairs)
        ]
    return {"CPU ms": spread(used)}


def growth(context: BenchmarkContext, case: BenchmarkCase) -> Figures:
    """Measure how many times the CPU time of a question the larger of two catalogs takes; each is asked once."""
    if case.questions is None:
        raise ValueError(f"{case.name} has no questions")
    with _serving(context, case) as larger, _serving(context, case, subject=False) as smaller:
        used = [(larger, list[float]()), (smaller, list[float]())]
        for number in range(context.plan.pairs + 1):
            for server, milliseconds in used:
                rng = Random(f"{case.name} {number}")
                asked = [case.questions(rng, case.subject_scale) for _ in range(context.plan.questions // 5)]
                milliseconds.append(cpu_milliseconds(server, asked))
    ours, theirs = (milliseconds[1:] for _, milliseconds in used)  # those before build what all requests share
    return {"times": paired(ours, theirs), "CPU ms": spread(ours), "reference CPU ms": spread(theirs)}


def panel(context: BenchmarkContext, case: BenchmarkCase) -> Figures:
    """Measure new questions of a filter panel over 16 connections, and the same again; a new worker for each round."""
    rounds = []
    for _ in range(context.plan.pairs):
        with _serving(context, case) as server:
            rounds.append(mixed.measure(server, count=PANEL_QUESTIONS, connections=mixed.CONNECTIONS))
    figures = {name: spread([one[name] for one in rounds]) for name in rounds[0]}
    return figures | {"again: share of hits": spread([one["again: hits"] / PANEL_QUESTIONS for one in rounds])}


def memory_of_panel(context: BenchmarkContext, case: BenchmarkCase) -> Figures:
    """Measure the memory of a worker after 8,000 different questions of a panel."""
    return _memory(context, case, panel_questions(8_000))


def memory_of_all(context: BenchmarkContext, case: BenchmarkCase) -> Figures:
    """Measure the memory of a worker after 25,000 different questions over all endpoints that read the catalog."""
    return _memory(context, case, random_questions(25_000, case.subject_scale))


def _memory(context: BenchmarkContext, case: BenchmarkCase, targets: list[str]) -> Figures:
    with _serving(context, case) as server:
        before = server.memory_mb()
        after = mixed.memory(server, targets)["MB"]
    return {"MB": spread([after]), "MB at first": spread([before])}


def stalled(context: BenchmarkContext, case: BenchmarkCase) -> Figures:
    """Measure a stored page and /healthz beside 8 and 64 clients of each kind of slow question."""
    with _serving(context, case) as server:
        seen = list(stalls.measure(server, context.plan.stall, crowds=(8, 64)))
    figures: Figures = {}
    for target, times in (("page", [one.page_ms for one in seen]), ("/healthz", [one.healthz_ms for one in seen])):
        p99 = [percentile(each, 99) for each in times]
        figures |= {
            f"{one.question}, {one.clients} clients: {target} p99 ms": spread([each])
            for one, each in zip(seen, p99, strict=True)
        }
        figures[f"worst {target} p99 ms"] = spread([max(p99)])
    return figures


def second_worker(context: BenchmarkContext, case: BenchmarkCase) -> Figures:
    """Measure how many times the requests a second two workers answer, of those of one."""
    if case.work is None:
        raise ValueError(f"{case.name} has no work")
    database = context.side_context(case, subject=True).database
    gain = workers.measure(database, context.folder, case.work, pairs=context.plan.pairs, seconds=context.plan.burst)
    return {
        "ratio": gain.ratio,
        "ratio of requests for each second of CPU": gain.cpu_ratio,
        "cores that wrk took": spread([gain.cores_of_wrk]),
        "cores": spread([float(os.cpu_count() or 1)]),
    }


def ingested(context: BenchmarkContext, case: BenchmarkCase) -> Figures:
    """Measure `vmsizes ingest prices` beside csv.reader and the driver, and the size of the catalog after it."""
    with tempfile.TemporaryDirectory(dir=context.folder) as folder:
        figures = measure_ingest(case.database, Path(folder), scale=context.plan.ingest, pairs=1)
    return {"ratio": figures.pop("whole ratio")} | {name: one for name, one in figures.items() if name != "ratio"}


def page_ingested(context: BenchmarkContext, case: BenchmarkCase) -> Figures:
    """Measure `vmsizes ingest documents` of one page beside many facts."""
    with tempfile.TemporaryDirectory(dir=context.folder) as folder:
        return measure_page(case.database, Path(folder), pages=context.plan.pages)


@contextmanager
def _serving(context: BenchmarkContext, case: BenchmarkCase, *, subject: bool = True) -> Iterator[Server]:
    """Run the service of a case."""
    command = case.subject.command(context.side_context(case, subject=subject))
    log = context.folder / f"{'subject' if subject else 'reference'}.log"
    with running(command, log, ready=READY) as server:
        yield server


MEASUREMENTS: dict[str, Callable[[BenchmarkContext, BenchmarkCase], Figures]] = {
    "cpu": cpu,
    "growth": growth,
    "panel": panel,
    "memory of a panel": memory_of_panel,
    "memory of all": memory_of_all,
    "stalls": stalled,
    "workers": second_worker,
    "ingest": ingested,
    "ingest of a page": page_ingested,
}
