"""The results of a run: one JSON file a commit, from which the page and its plot are made."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks import machine
from benchmarks.build import PROJECT
from benchmarks.harness import Outcome
from benchmarks.plan import Plan

FOLDER = PROJECT / "benchmarks" / "results"
DIGITS = 4
Results = dict[str, Any]


def to_results(outcomes: Sequence[Outcome], plan: Plan) -> Results:
    """Put the outcomes of a run beside the commit, the machine and the plan."""
    return {
        "commit": machine.commit(),
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine.describe(),
        "plan": asdict(plan),
        "outcomes": [_rounded(asdict(outcome)) for outcome in outcomes],
    }


def save(results: Results, folder: Path = FOLDER) -> Path:
    """Write the results of a commit, over those of an earlier run of the same commit."""
    folder.mkdir(exist_ok=True)
    file = folder / f"{results['commit']}.json"
    file.write_text(json.dumps(results, indent=1) + "\n")
    return file


def load_all(folder: Path = FOLDER) -> list[Results]:
    """Read all results that are kept, the newest first."""
    found = [json.loads(file.read_text()) for file in folder.glob("*.json")]
    return sorted(found, key=lambda results: str(results["measured_at"]), reverse=True)


def _rounded(value: Any) -> Any:
    """Keep the digits that mean something."""
    if isinstance(value, dict):
        return {name: _rounded(part) for name, part in value.items()}
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value
