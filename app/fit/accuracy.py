"""How well estimates agree with what was measured, by family: the table that `python -m benchmarks.accuracy` writes."""

import csv
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_type_hints

from app.fit.formulas.quantities import Evidence

TABLE = Path(__file__).with_suffix(".csv")
"""The file with the table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilyAccuracy:
    """How the estimates of one figure, for one kind of workload, agree with `n` measurements.

    Errors are |estimate / measurement - 1| of the middle of the range, ratios estimate / measurement. `range_width` is
    the median of high / low. `leave_one_out_error` is the median error of `left_out_n` measurements where the fitted
    constants do not know what is estimated, and `left_out_in_range_share` how many of them are in the range of what was
    not measured: `left_out` says what they were fitted without; None where no constant is fitted to these measurements.
    `compared_on` is the day of the comparison.
    """

    family: str
    title: str
    figure: str
    unit: str
    leave_one_out_error: float | None
    left_out: str | None
    left_out_n: int | None
    left_out_in_range_share: float | None
    n: int
    in_range_share: float
    range_width: float
    median_error: float
    median_ratio: float
    worst_ratio: float
    compared_on: str
    source: str
    license: str


COLUMNS = tuple(field.name for field in fields(FamilyAccuracy))
"""The columns of the table."""


@lru_cache(maxsize=1)
def read_accuracy() -> tuple[FamilyAccuracy, ...]:
    """Read the recorded table."""
    text = TABLE.read_text(encoding="utf-8")
    hints = get_type_hints(FamilyAccuracy)
    return tuple(
        FamilyAccuracy(**{name: _parse(value, hints[name]) for name, value in row.items()})
        for row in csv.DictReader(text.splitlines())
    )


def _parse(text: str, hint: Any) -> Any:
    kinds = [kind for kind in (get_args(hint) or (hint,)) if kind is not NoneType]
    return None if text == "" and get_args(hint) else kinds[0](text)


def evidence_of(family: str, outside: tuple[str, ...] = ()) -> Evidence:
    """Return the evidence of a family; `n` is 0 where it is not recorded."""
    return Evidence(family=family, n=_measurements().get(family, 0), outside=outside)


@lru_cache(maxsize=1)
def _measurements() -> dict[str, int]:
    return {one.family: one.n for one in read_accuracy()}
