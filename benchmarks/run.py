"""Takes the cases one after another: a catalog is made when it is first needed, a failure stops only its own case."""

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

from benchmarks.build import postgres_catalog, seeded_catalog, sqlite_catalog
from benchmarks.cases import BenchmarkCase
from benchmarks.catalogs import Scale
from benchmarks.harness import CaseResult, measure, to_result
from benchmarks.pairing import BenchmarkContext, ResponsesDiffer
from benchmarks.plan import Plan
from benchmarks.sides import NotMeasurable
from tests.postgres import postgres_running

CASE_TIMEOUT = 1200  # seconds, with the making of its catalogs
PROGRESS_SECONDS = 5
"""Between two words on the progress of one catalog."""
FAILED = "failed: "
"""How the reason of a case begins that could not be measured though it should."""


class TooLong(Exception):
    """A case took longer than any may."""


FAILURES = (
    *(ResponsesDiffer, TooLong, RuntimeError, ValueError, OSError, EOFError, HTTPException),
    *(psutil.Error, subprocess.SubprocessError),
)


def measure_all(cases: Sequence[BenchmarkCase], plan: Plan) -> list[CaseResult]:
    """Measure cases in turn and say what came out."""
    outcomes = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="vmsizes-bench-")))
        bench = BenchmarkContext(plan=plan, folder=folder, catalog=_catalogs(stack))
        for number, case in enumerate(cases, 1):
            started = time.monotonic()
            say(f"[{number}/{len(cases)}] {case.name}: {case.description} ...")
            outcomes.append(_measure_one(bench, case))
            say(f"    {describe_result(outcomes[-1])} ({time.monotonic() - started:.0f} s)")
    return outcomes


def _measure_one(bench: BenchmarkContext, case: BenchmarkCase) -> CaseResult:
    """Measure a case; one that cannot be measured says why and leaves the others alone."""
    try:
        with _within(CASE_TIMEOUT):
            return measure(bench, case)
    except NotMeasurable as reason:
        return to_result(case, {}, str(reason))
    except FAILURES as error:
        return to_result(case, {}, f"{FAILED}{' '.join(str(error).split())[:300] or type(error).__name__}")


def describe_result(one: CaseResult) -> str:
    """Sum an outcome up in a line."""
    if one.why_not:
        return f"not measured: {one.why_not}"
    figure = one.figures[one.main]
    reached = {True: ", reached", False: ", NOT reached", None: ""}[one.reached]
    asked = f"; asked {one.asked}{reached}" if one.asked else ""
    return f"{one.main} {figure.median:.3g} ({figure.min:.3g} - {figure.max:.3g}){asked}"


def _catalogs(stack: ExitStack) -> Callable[[str, Scale], str]:
    """Give catalogs by kind and scale: SQLite files that are kept, or a PostgreSQL server that ends with the run."""

    @cache
    def catalog(kind: str, scale: Scale) -> str:
        if kind == "seeds":
            return seeded_catalog()
        if kind == "sqlite":
            return sqlite_catalog(scale, _progress())
        url = stack.enter_context(postgres_running())
        postgres_catalog(url, scale, _progress())
        return url

    return catalog


def _progress() -> Callable[[str], None]:
    """Say something every few seconds at most."""
    last = time.monotonic()

    def tell(text: str) -> None:
        nonlocal last
        if time.monotonic() - last >= PROGRESS_SECONDS:
            last = time.monotonic()
            say(f"    {text}")

    return tell


@contextmanager
def _within(seconds: int) -> Iterator[None]:
    """Stop what takes longer; raises TooLong."""

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
    """Tell whoever waits; the results themselves go to standard output."""
    print(text, file=sys.stderr, flush=True)
