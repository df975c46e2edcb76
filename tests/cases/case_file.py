"""Reads CSV files of cases, and converts and compares their figures."""

import csv
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

UNITS: dict[str, float] = {
    "bytes": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40,
    "ms": 1e-3, "s": 1, "min": 60, "hours": 3600, "days": 86_400, "FLOP": 1, "TFLOP": 1e12, "PFLOP": 1e15,
    "percent": 0.01, "%": 0.01,
}  # fmt: skip
"""Factor of each unit to its base unit; a unit that is not listed is its own base."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One published figure: the inputs, the published value, and its tolerance."""

    id: str
    kind: str
    inputs: dict[str, Any]
    expected: float
    unit: str
    tolerance_percent: float
    source: str


def read_cases(path: Path) -> list[Case]:
    """Read a CSV file of cases; raise ValueError naming the line that is wrong."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file)
        return [_case(row, f"{path}:{rows.line_num}") for row in rows]


def _case(row: dict[str, str], place: str) -> Case:
    try:
        return Case(
            id=row["id"],
            kind=row["kind"],
            inputs=json.loads(row["inputs_json"]),
            expected=float(row["expected"]),
            unit=row["unit"],
            tolerance_percent=float(row["tolerance_pct"]),
            source=row["source"],
        )
    except (KeyError, ValueError, TypeError) as error:
        raise ValueError(f"{place}: {error!r}") from error


def convert(value: float, unit: str, to: str) -> float:
    """Convert a value to another unit of the same quantity."""
    return value * UNITS.get(unit, 1) / UNITS.get(to, 1)


def deviation_percent(got: float, expected: float) -> float:
    """Return the deviation in percent of the expected value."""
    if got == expected:
        return 0.0
    return 100 * (got - expected) / abs(expected) if expected else float("inf")
