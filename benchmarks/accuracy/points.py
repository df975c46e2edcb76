"""Measured points with their estimates, and the statistics of a family of them."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from math import exp, log
from statistics import median
from typing import NamedTuple

from app.fit.results import FamilyAccuracy


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A measurement and the range that is estimated for it, in one unit; `labels` are what tables are broken down by.

    Where an estimate is exact, `low`, `mid` and `high` are the same. A figure that is published `rounded_by` so much at
    most may be anything that rounds to it. `outside` is in what the estimate says that the run departs from others.
    """

    measured: float
    low: float
    mid: float
    high: float
    labels: Mapping[str, str | int | float] = field(default_factory=dict)
    rounded_by: float = 0.0
    outside: tuple[str, ...] = ()

    @property
    def ratio(self) -> float:
        """Estimate / measurement."""
        return self.mid / self.measured

    @property
    def in_range(self) -> bool:
        """Whether the measurement is in the range; in an exact figure's within 0.1 %."""
        least, most = self.low * (1 - 1e-3) - self.rounded_by, self.high * (1 + 1e-3) + self.rounded_by
        return least <= self.measured <= most


class LeftOut(NamedTuple):
    """The median error where the constants do not know what is estimated, and the number of measurements.

    `left_out` says what they are fitted without, `in_range_share` how many are in the range of what was not measured,
    and `range_width` is that range's high / low.
    """

    error: float
    left_out: str
    n: int
    in_range_share: float
    range_width: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """A family: what is estimated, where its measurements are from, and how to compute its points.

    `leave_one_out` compares them where the constants are fitted without the model (or GPU, …) that is estimated; None
    where no constant is fitted to these measurements. It may need numpy and scipy, `points` may not: it runs at every
    `make check`.
    """

    id: str
    title: str
    figure: str
    unit: str
    source: str
    license: str
    points: Callable[[], Iterable[Point]]
    leave_one_out: Callable[[], LeftOut] | None = None


def errors(points: Iterable[Point]) -> list[float]:
    """Return the absolute relative errors: |estimate / measurement - 1|."""
    return [abs(point.ratio - 1) for point in points]


def summarize(family: Family, points: Sequence[Point], left_out: LeftOut | None, compared_on: date) -> FamilyAccuracy:
    """Return the statistics of a family's points."""
    return FamilyAccuracy(
        family=family.id,
        title=family.title,
        figure=family.figure,
        unit=family.unit,
        leave_one_out_error=round(left_out.error, 4) if left_out is not None else None,
        left_out=left_out.left_out if left_out is not None else None,
        left_out_n=left_out.n if left_out is not None else None,
        left_out_in_range_share=round(left_out.in_range_share, 4) if left_out is not None else None,
        left_out_range_width=round(left_out.range_width, 3) if left_out is not None else None,
        n=len(points),
        departures=" ".join(
            f"{'+'.join(outside)}:{count}"
            for outside, count in sorted(Counter(point.outside for point in points if point.outside).items())
        ),
        in_range_share=round(sum(point.in_range for point in points) / len(points), 4),
        range_width=round(median(point.high / point.low for point in points), 3),
        median_error=round(median(errors(points)), 4),
        median_ratio=round(median(point.ratio for point in points), 4),
        worst_ratio=round(exp(max((log(point.ratio) for point in points), key=abs)), 3),
        compared_on=compared_on,
        source=family.source,
        license=family.license,
    )


def breakdown(points: Sequence[Point], label: str) -> dict[str, list[Point]]:
    """Return the points by the value of a label, in the order of the values."""
    groups: dict[str | int | float, list[Point]] = {}
    for point in points:
        if label in point.labels:
            groups.setdefault(point.labels[label], []).append(point)
    return {str(value): groups[value] for value in sorted(groups, key=lambda value: (str(type(value)), value))}
