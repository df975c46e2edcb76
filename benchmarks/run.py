"""Measures the cases one after another: catalogs are built on first use, a failure stops only its own case."""

import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache
from http.client import HTTPException
from pathlib import Path

import psutil

from benchmarks.build import grown_catalog, postgres_catalog, seeded_catalog, sqlite_catalog
from benchmarks.cases import BenchmarkCase
from benchmarks.catalogs import GROWN, Scale
from benchmarks.harness import CaseResult, measure, to_result
from benchmarks.pairing import BenchmarkContext, ResponsesDiffer
from benchmarks.plan import Plan
from benchmarks.sides import NotMeasurable
from tests.postgres import postgres_running

CASE_TIMEOUT = 1200  # seconds, including building its catalogs
PROGRESS_SECONDS = 5
"""Between two progress messages."""
FAILED = "failed: "
"""Prefix of the reason of a case that failed, unlike one that is not measurable."""


class TooLong(Exception):
    """A case exceeded CASE_TIMEOUT."""


FAILURES = (
    *(ResponsesDiffer, TooLong, RuntimeError, ValueError, OSError, EOFError, HTTPException),
    *(psutil.Error, subprocess.SubprocessError),
)


def measure_all(cases: Sequence[BenchmarkCase], plan: Plan) -> list[CaseResult]:
    """Measure cases in turn and log each result."""
    outcomes = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="vmsizes-bench-")))
        context = BenchmarkContext(plan=plan, folder=folder, catalog=_catalogs(stack))
        for number, case in enumerate(cases, 1):
            started = time.monotonic()
            say(f"[{number}/{len(cases)}] {case.name}: {case.description} ...")
            outcomes.append(_measure_one(context, case))
            say(f"    {describe_result(outcomes[-1])} ({time.monotonic() - started:.0f} s)")
    return outcomes


def _measure_one(context: BenchmarkContext, case: BenchmarkCase) -> CaseResult:
    """Measure a case; an error becomes the reason of its result."""
    try:
        with _within(CASE_TIMEOUT):
            return measure(context, case)
    except NotMeasurable as reason:
        return to_result(case, {}, str(reason))
    except FAILURES as error:
        return to_result(case, {}, f"{FAILED}{' '.join(str(error).split())[:300] or type(error).__name__}")


def describe_result(one: CaseResult) -> str:
    """Return a result as one line."""
    if one.why_not:
        return f"not measured: {one.why_not}"
    figure = one.figures[one.main]
    reached = {True: ", reached", False: ", NOT reached", None: ""}[one.reached]
    asked = f"; asked {one.asked}{reached}" if one.asked else ""
    return f"{one.main} {figure.median:.3g} ({figure.min:.3g} - {figure.max:.3g}){asked}"


def _catalogs(stack: ExitStack) -> Callable[[str, Scale], str]:
    """Return a cached function to catalogs: SQLite files, or a PostgreSQL server that is stopped with the run."""

    @cache
    def catalog(kind: str, scale: Scale) -> str:
        if kind == "seeds":
            return grown_catalog(scale.sizes) if scale == GROWN else seeded_catalog()
        if kind == "sqlite":
            return sqlite_catalog(scale, _progress())
        url = stack.enter_context(postgres_running())
        postgres_catalog(url, scale, _progress())
        return url

    return catalog


def _progress() -> Callable[[str], None]:
    """Return a function that logs at most every PROGRESS_SECONDS."""
    last = time.monotonic()

    def log(text: str) -> None:
        nonlocal last
        if time.monotonic() - last >= PROGRESS_SECONDS:
            last = time.monotonic()
            say(f"    {text}")

    return log


@contextmanager
def _within(seconds: int) -> Iterator[None]:
    """Raise TooLong in the block after some seconds."""

    def stop(*_: object) -> None:
        raise TooLong(f"stopped after {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def say(text: str) -> None:
    """Log to standard error; results go to standard output."""
    print(text, file=sys.stderr, flush=True)
