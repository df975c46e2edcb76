"""`python -m benchmarks`: measures the cases, says how far it is, and writes what a whole run came to."""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import cache
from pathlib import Path

from benchmarks import load
from benchmarks.build import postgres_catalog, sqlite_catalog
from benchmarks.cases import CASES, Case
from benchmarks.catalogs import LARGE, Scale
from benchmarks.harness import Outcome, measure, outcome
from benchmarks.page import PAGE, write_page
from benchmarks.pairing import Bench, Different
from benchmarks.plan import FULL, QUICK, Plan
from benchmarks.results import load_all, save, to_results
from benchmarks.sides import NotYet
from tests.postgres import postgres_running

SECONDS_TO_BUILD = {True: 120, False: 10}
"""About how long the catalogs take: with the largest, or without."""


def main() -> int:
    """Run; gives the exit code: 1 where a case failed, 2 where nothing could be measured."""
    options = _options()
    cases = [case for case in CASES if not options.only or case.name in options.only]
    if options.list:
        print("\n".join(f"{case.name:18}{case.says}, against {case.reference.name}" for case in cases))
        return 0
    if not load.is_there():
        print(load.MISSING, file=sys.stderr)
        return 2
    plan = QUICK if options.quick else FULL
    _say(f"{len(cases)} cases, about {seconds_of(cases, plan) / 60:.0f} minutes; catalogs are kept for the next run")
    outcomes = _measure_all(cases, plan)
    results = to_results(outcomes, plan)
    if options.json:
        print(json.dumps(results, indent=1))
    if options.quick or options.only:
        _say("not written down: only a whole run is")
    else:
        _say(f"written: {save(results).name}, {PAGE.name}")
        write_page(load_all())
    return 1 if any((one.why_not or "").startswith("failed") for one in outcomes) else 0


def seconds_of(cases: Sequence[Case], plan: Plan) -> float:
    """About how long the cases take, with catalogs that are not there yet."""
    large = any(case.subject_scale == LARGE for case in cases)
    return SECONDS_TO_BUILD[large] + sum(plan.seconds(case.kind) for case in cases)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Paired benchmarks: only ratios count.")
    parser.add_argument("--quick", action="store_true", help="a few seconds a case: to try, not to believe")
    parser.add_argument("--only", action="append", metavar="NAME", choices=[case.name for case in CASES],
                        help="measure this case; may be repeated")  # fmt: skip
    parser.add_argument("--list", action="store_true", help="say what there is to measure, and measure nothing")
    parser.add_argument("--json", action="store_true", help="print the results")
    return parser.parse_args()


def _measure_all(cases: Sequence[Case], plan: Plan) -> list[Outcome]:
    outcomes = []
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="vmsizes-bench-")))
        bench = Bench(plan=plan, folder=folder, catalog=_catalogs(stack))
        for number, case in enumerate(cases, 1):
            started = time.monotonic()
            _say(f"[{number}/{len(cases)}] {case.name}: {case.subject.name} against {case.reference.name} ...")
            outcomes.append(_measure_one(bench, case))
            _say(f"    {in_words(outcomes[-1])} ({time.monotonic() - started:.0f} s)")
    return outcomes


def _measure_one(bench: Bench, case: Case) -> Outcome:
    """Measure a case; one that cannot be measured says why and leaves the others alone."""
    try:
        return measure(bench, case)
    except NotYet as reason:
        return outcome(case, {}, str(reason))
    except (Different, RuntimeError, OSError) as error:
        return outcome(case, {}, f"failed: {' '.join(str(error).split())[:300]}")


def in_words(one: Outcome) -> str:
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
        if kind == "sqlite":
            return sqlite_catalog(scale, _progress())
        url = stack.enter_context(postgres_running())
        postgres_catalog(url, scale, _progress())
        return url

    return catalog


def _progress() -> Callable[[str], None]:
    """Say something every few seconds at most."""
    last = time.monotonic()

    def say(text: str) -> None:
        nonlocal last
        if time.monotonic() - last >= 3:
            last = time.monotonic()
            _say(f"    {text}")

    return say


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
