"""`python -m benchmarks.accuracy`: compares estimates with measurements; `--write` records, `--check` is the gate."""

import argparse
import csv
import io
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from statistics import median

from app.fit.results import COLUMNS, TABLE, FamilyAccuracy, read_accuracy
from app.settings import PROJECT
from benchmarks.accuracy.families import FAMILIES
from benchmarks.accuracy.page import PAGE, write_page
from benchmarks.accuracy.points import Point, breakdown, errors, summarize

TOLERANCE = 0.02
"""How much worse a share or an error may be than recorded: two points."""


def main() -> int:
    """Compute the families; return 1 where one is worse than recorded, or not recorded."""
    options = _options()
    for label in options.left_out or ():
        from benchmarks.calibrate import left_out_lines  # noqa: PLC0415  # needs numpy and scipy

        print(*left_out_lines(label), sep="\n")
    if options.left_out:
        return 0
    recorded = {one.family: one for one in read_accuracy()} if TABLE.exists() else {}
    found = []
    for family in FAMILIES:
        if options.only and family.id not in options.only:
            continue
        points = tuple(family.points())
        before = recorded.get(family.id)
        left_out = family.leave_one_out() if options.write and family.leave_one_out is not None else None
        day = before.compared_on if before is not None and not options.write else datetime.now(UTC).date()
        summary = summarize(family, points, left_out, day)
        found.append(summary)
        print(line(summary.family, points))
        for label in options.by or ():
            for value, group in breakdown(points, label).items():
                print(line(f"  {label} {value}", group))
    if options.write:
        known = {**recorded, **{one.family: one for one in found}}
        write_table([known[family.id] for family in FAMILIES if family.id in known])
        read_accuracy.cache_clear()
        write_page(read_accuracy())
        print(f"wrote {TABLE.relative_to(PROJECT)} and {PAGE.relative_to(PROJECT)}")
    failures = regressions(found, recorded) if options.check else []
    print(*failures, sep="\n", end="\n" if failures else "")
    return 1 if failures else 0


def line(name: str, points: Sequence[Point]) -> str:
    """Return a line of statistics."""
    share = sum(point.in_range for point in points) / len(points)
    ratios = sorted(point.ratio for point in points)
    p10, p90 = ratios[len(ratios) // 10], ratios[-1 - len(ratios) // 10]
    width = median(point.high / point.low for point in points)
    return (
        f"{name:40} n {len(points):5}  in range {share:6.1%}  high/low {width:4.2f}"
        f"  error {median(errors(points)):6.1%}  ratio {median(ratios):5.2f} ({p10:.2f} to {p90:.2f})"
    )


def regressions(found: Sequence[FamilyAccuracy], recorded: Mapping[str, FamilyAccuracy]) -> list[str]:
    """Return a sentence for each family that is worse than recorded by more than two points, or not recorded."""
    failures = []
    for one in found:
        known = recorded.get(one.family)
        if known is None:
            failures.append(f"{one.family}: not recorded; run python -m benchmarks.accuracy --write")
            continue
        if one.n < known.n:
            failures.append(f"{one.family}: {one.n} points, {known.n} are recorded")
        if one.in_range_share < known.in_range_share - TOLERANCE:
            failures.append(f"{one.family}: {one.in_range_share:.1%} in range, {known.in_range_share:.1%} are recorded")
        if one.median_error > known.median_error + TOLERANCE:
            failures.append(f"{one.family}: median error {one.median_error:.1%}, {known.median_error:.1%} is recorded")
    return failures


def write_table(rows: Sequence[FamilyAccuracy]) -> None:
    """Write the table that the service reads."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in rows:
        writer.writerow("" if (value := getattr(row, name)) is None else value for name in COLUMNS)
    TABLE.write_text(text.getvalue(), encoding="utf-8")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accuracy", description=__doc__)
    parser.add_argument("--only", action="append", metavar="FAMILY", choices=[family.id for family in FAMILIES],
                        help="this family; may be repeated")  # fmt: skip
    parser.add_argument("--by", action="append", metavar="LABEL", help="break down by a label: model, gpu, engine")
    parser.add_argument(
        "--left-out",
        action="append",
        metavar="LABEL",
        choices=("shape", "engine", "gpu", "source"),
        help="the same of speed with the runs of each model, engine, GPU or source left out of the fit",
    )
    parser.add_argument("--write", action="store_true", help="record the table, and write docs/accuracy.md")
    parser.add_argument("--check", action="store_true", help="fail where a family is worse than recorded")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
