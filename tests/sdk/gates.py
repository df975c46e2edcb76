"""Gates: third-party tools that check the document and the service against it."""

import re
import shlex
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from app.settings import PROJECT
from tests.databases import START
from tests.sdk.results import Result, timed
from tests.sdk.serving import served
from tests.sdk.toolchains import OPENAPI_30, OPENAPI_31
from tests.sdk.tools import HERE, ToolFailed, locked_version, missing, run_with_stderr

DOCUMENT, DOCUMENT_30, RELEASED = (
    PROJECT / "docs" / name for name in (OPENAPI_31, OPENAPI_30, f"released/{OPENAPI_31}")
)
MIN_SCORE = 80.0
"""Of redocly's 100 for how easily programs use a document; the score is experimental, so this is only a minimum."""
_ENVIRONMENT = {
    "REDOCLY_TELEMETRY": "off",
    "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true",
    "NO_COLOR": "1",
    "SCHEMATHESIS_HOOKS": "fuzz_checks",
    "PYTHONPATH": str(HERE / "fuzz"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """A command that fails if a rule is broken, and the pattern of the output line that is reported."""

    name: str
    package: str
    command: str
    output_pattern: str


def _lint(document: Path) -> Iterator[Gate]:
    kind = "3.0" if document == DOCUMENT_30 else "3.1"
    yield Gate(
        name=f"openapi-spec-validator, {kind}",
        package="openapi-spec-validator",
        command=f"openapi-spec-validator {document}",
        output_pattern=r".*OK",
    )
    yield Gate(
        name=f"spectral, {kind}",
        package="@stoplight/spectral-cli",
        command=f"spectral lint {document} --ruleset {HERE}/spectral.yaml --fail-severity hint",
        output_pattern=r"No results.*",
    )
    yield Gate(
        name=f"redocly recommended-strict, {kind}",
        package="@redocly/cli",
        command=f"redocly lint {document} --extends recommended-strict",
        output_pattern=r".*API description.*valid.*",
    )


SCORE = Gate(
    name="redocly score",
    package="@redocly/cli",
    command=f"redocly score {DOCUMENT}",
    output_pattern=r"Agent Readiness:.*/100",
)


def diff(released: Path, document: Path) -> Gate:
    """Return the gate that fails on a change that breaks clients of the released document."""
    return Gate(
        name="redocly diff",
        package="@redocly/cli",
        command=f"redocly diff {released} {document} --fail-on major",
        output_pattern=r"\d+ major, \d+ minor.*",
    )


FUZZ_PHASES = (("Examples", "Coverage"), ("Fuzzing",), ("Stateful",))
"""Phases of schemathesis that share a time limit: on a slow machine an earlier one leaves the others no time."""


def fuzz(url: str, limit: str, phases: Sequence[str]) -> Gate:
    """Return the gate that fuzzes a service: valid requests succeed, invalid ones are rejected, links work.

    It fails where schemathesis did not come to one of the phases.
    """
    passed = "".join(rf"\s+✅ {phase}" for phase in phases)
    return Gate(
        name=f"schemathesis {' and '.join(phases).lower()}",
        package="schemathesis",
        command=f"schemathesis --no-color --config-file {HERE}/fuzz/schemathesis.toml run {url}/openapi.json"
        f" --url {url} --workers 1 --continue-on-failure --phases {','.join(phases).lower()} {limit}",
        output_pattern=rf"(?s)Test Phases:.*?{passed}\n.*?(\d+ generated[^\n]*)",
    )


def run_gate(gate: Gate) -> str:
    """Run a gate and return the line of its output to report; raises ToolFailed."""
    with tempfile.TemporaryDirectory() as folder:
        output = run_with_stderr(shlex.split(gate.command), Path(folder), _ENVIRONMENT)
    lines = re.findall(gate.output_pattern, output)
    if not lines:
        raise ToolFailed(f"`{gate.command}` succeeded without a line like {gate.output_pattern}:\n{output}")
    return str(lines[-1]).strip()


def run_score_gate() -> str:
    """Run redocly's score of the document; raises ToolFailed if it is below MIN_SCORE."""
    line = run_gate(SCORE)
    if float(re.findall(r"([\d.]+)/100", line)[0]) < MIN_SCORE:
        raise ToolFailed(f"{line}: less than {MIN_SCORE:g}")
    return line


def all_gates(seconds_of_fuzzing: int, seed: int | None = None) -> Iterator[Result]:
    """Run every gate, the last against the service on each kind of database; yields the results."""
    absent = missing(["openapi-spec-validator", "spectral", "redocly", "schemathesis"])
    if absent:
        yield Result(tool="tools", version="", seconds=0, passed=False, message=absent)
        return
    for gate in (*_lint(DOCUMENT), *_lint(DOCUMENT_30), diff(RELEASED, DOCUMENT)):
        yield timed(gate.name, locked_version(gate.package), partial(run_gate, gate))
    yield timed(SCORE.name, locked_version(SCORE.package), run_score_gate)
    for kind in START:
        with served(kind) as url:
            same = f" --seed {seed}" if seed is not None else ""
            for phases in FUZZ_PHASES:
                gate = fuzz(url, f"--max-time {seconds_of_fuzzing}{same}", phases)
                yield timed(f"{gate.name}, {kind}", locked_version(gate.package), partial(run_gate, gate))
