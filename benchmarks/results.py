"""The results of the newest whole run: one JSON file a commit, which the page and its plot are made from."""

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
    """Put the outcomes of a run beside the commit, the machine and the plan."""
    return {
        "commit": machine.commit(),
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine.describe(),
        "plan": asdict(plan),
        "outcomes": [_rounded(asdict(outcome)) for outcome in outcomes],
    }


def save(results: Results, folder: Path = FOLDER) -> Path:
    """Write the results of a commit in place of any earlier ones, which git keeps."""
    folder.mkdir(exist_ok=True)
    for earlier in folder.glob("*.json"):
        earlier.unlink()
    file = folder / f"{results['commit']}.json"
    file.write_text(json.dumps(results, indent=1) + "\n")
    return file


def _rounded(value: Any) -> Any:
    """Keep the digits that mean something."""
    if isinstance(value, dict):
        return {name: _rounded(part) for name, part in value.items()}
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value
