"""`python -m benchmarks.search --requests N`: random requests, and every property that they break, with the request."""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any

from app.errors import BadWorkload
from app.fit.formulas.quantities import InvalidWorkload
from app.fit.results import Estimate
from benchmarks.accuracy.estimates import estimate
from benchmarks.search.bodies import Body, random_body
from benchmarks.search.placements import check_placement
from benchmarks.search.properties import (
    TOLERANCE,
    Change,
    Violation,
    changes,
    check_ranges,
    check_service,
    check_serving,
    check_training,
    middle,
)


class Found:
    """The properties that were checked, how often, and what breaks them."""

    def __init__(self) -> None:
        self.checked: Counter[str] = Counter()
        self.violations: list[tuple[Violation, Body]] = []

    def add(self, rule: str, violations: Iterator[Violation], body: Body) -> None:
        """Count a check with the violations that it found."""
        self.checked[rule] += 1
        self.violations += [(violation, body) for violation in violations]


def search(requests: int, seed: int = 1) -> Found:
    """Check random estimates, and half as many placements; the same seed gives the same ones."""
    found = Found()
    for number in range(requests):
        random = Random(f"{seed}.{number}")
        body = random_body(random)
        answer = _answer(body)
        if answer is None:
            found.checked["refused"] += 1
            continue
        found.add("ranges", check_ranges(answer), body)
        if "training" in body:
            found.add("peak of a training", check_training(body, answer), body)
        else:
            found.add("bounds of serving", check_serving(body, answer), body)
            found.add("a service", check_service(answer), body)
        for change in changes(body, random):
            changed = _answer(change.body)
            if changed is not None:
                found.add(change.name, _compare(answer, changed, change), {"before": body, "after": change.body})
    for number in range(requests // 2):
        for rule, violations, body in check_placement(Random(f"{seed}.placement.{number}")):
            found.add(f"placement: {rule}", iter(violations), body)
    return found


def _answer(body: Body) -> Estimate | None:
    try:
        return estimate(body)
    except (InvalidWorkload, BadWorkload):
        return None


def _compare(before: Estimate, after: Estimate, change: Change) -> Iterator[Violation]:
    """Yield the figures that a change moves in the wrong direction."""
    for paths, sign in ((change.not_smaller, 1), (change.not_larger, -1)):
        for path in paths:
            old, new = middle(before, path), middle(after, path)
            if path == "serving.replicas" and old is not None and new is None:
                old, new = (None, None) if sign > 0 else (old, float("inf"))
            if old is None or new is None:
                continue
            smaller, larger = (new, old) if sign > 0 else (old, new)
            if smaller * TOLERANCE < larger:
                yield Violation(
                    f"{change.name}: {path} is not {'smaller' if sign > 0 else 'larger'}", f"{old} -> {new}"
                )


def main() -> int:
    """Print the properties and what breaks them; return 1 where anything does."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.search", description=__doc__)
    parser.add_argument("--requests", type=int, default=10_000, metavar="N", help="how many; default 10,000")
    parser.add_argument("--seed", type=int, default=1, help="for other requests; default 1")
    parser.add_argument("--show", type=int, default=2, metavar="N", help="requests to print of each broken property")
    options = parser.parse_args()
    found = search(options.requests, options.seed)
    print(f"{options.requests:,} requests, {sum(found.checked.values()):,} checks")
    print(*(f"  {count:7,}  {rule}" for rule, count in sorted(found.checked.items())), sep="\n")
    broken: dict[str, list[tuple[Violation, Any]]] = {}
    for violation, body in found.violations:
        broken.setdefault(violation.rule, []).append((violation, body))
    print(f"{len(found.violations):,} violations")
    for rule, cases in sorted(broken.items(), key=lambda one: -len(one[1])):
        print(f"  {len(cases):7,}  {rule}")
        for violation, body in cases[: options.show]:
            print(f"           {violation.shown}\n           {json.dumps(body)}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
