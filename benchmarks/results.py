"""The results of the newest complete run: a JSON file from which the page and its plot are written."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.build import PROJECT
from benchmarks.harness import CaseResult
from benchmarks.plan import Plan

FOLDER = PROJECT / "benchmarks" / "results"
DIGITS = 4
Results = dict[str, Any]


def to_results(outcomes: Sequence[CaseResult], plan: Plan) -> Results:
    """Return the results of a run with the commit, the machine and the durations."""
    return {
        "commit": machine.commit(),
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine.describe(),
        "plan": asdict(plan),
        "outcomes": [_rounded(asdict(outcome)) for outcome in outcomes],
    }


def save(results: Results, folder: Path = FOLDER) -> Path:
    """Write the results of a commit, and delete earlier ones, which are in the git history."""
    folder.mkdir(exist_ok=True)
    for earlier in folder.glob("*.json"):
        earlier.unlink()
    file = folder / f"{results['commit']}.json"
    file.write_text(json.dumps(results, indent=1) + "\n")
    return file


def _rounded(value: Any) -> Any:
    """Round floats to significant digits."""
    if isinstance(value, dict):
        return {name: _rounded(part) for name, part in value.items()}
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value
