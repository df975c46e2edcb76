"""`python -m benchmarks`: measures the cases, and writes the results of a complete run to benchmarks/results.md."""

import argparse
import json
import sys
from collections.abc import Sequence

from benchmarks import load
from benchmarks.cases import CASES, BenchmarkCase
from benchmarks.catalogs import MANY
from benchmarks.page import PAGE, write_page
from benchmarks.plan import FULL, QUICK, Plan
from benchmarks.results import save, to_results
from benchmarks.run import FAILED, measure_all, say

SECONDS_TO_BUILD = {True: 120, False: 10}
"""Estimated seconds to build the catalogs, by whether the largest is among them."""


def main() -> int:
    """Measure the chosen cases; return the exit code: 1 if a case failed, 2 if wrk is not installed."""
    options = _options()
    cases = [case for case in CASES if not options.only or case.name in options.only]
    if options.list:
        print("\n".join(f"{case.name:25}{case.description}" for case in cases))
        return 0
    if not load.is_installed():
        print(load.MISSING, file=sys.stderr)
        return 2
    plan = QUICK if options.quick else FULL
    say(f"{len(cases)} cases, about {seconds_of(cases, plan) / 60:.0f} minutes; catalogs are cached for the next run")
    outcomes = measure_all(cases, plan)
    results = to_results(outcomes, plan)
    if options.json:
        print(json.dumps(results, indent=1))
    if options.quick or options.only:
        say("results not saved: only complete runs are")
    else:
        say(f"saved {save(results).name}, {PAGE.name}")
        write_page(results)
    return 1 if any((one.why_not or "").startswith(FAILED) for one in outcomes) else 0


def seconds_of(cases: Sequence[BenchmarkCase], plan: Plan) -> float:
    """Return the estimated seconds that the cases take, including building the catalogs."""
    large = any(case.subject_scale == MANY for case in cases)
    return SECONDS_TO_BUILD[large] + sum(plan.seconds(case.kind) for case in cases)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Paired benchmarks: only ratios count.")
    parser.add_argument("--quick", action="store_true", help="a few seconds a case; too noisy to publish")
    parser.add_argument("--only", action="append", metavar="NAME", choices=[case.name for case in CASES],
                        help="measure this case; may be repeated")  # fmt: skip
    parser.add_argument("--list", action="store_true", help="list the cases and exit")
    parser.add_argument("--json", action="store_true", help="print the results")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
