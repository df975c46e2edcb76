"""Gates: what must hold of the document and of the service that it describes, each a tool that others wrote."""

import re
import shlex
import tempfile
from collections.abc import Iterator
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
"""Of redocly's 100 for how easily programs use a document; it is experimental, so this is a floor and not a goal."""
_ENVIRONMENT = {
    "REDOCLY_TELEMETRY": "off",
    "REDOCLY_SUPPRESS_UPDATE_NOTICE": "true",
    "NO_COLOR": "1",
    "SCHEMATHESIS_HOOKS": "fuzz_checks",
    "PYTHONPATH": str(HERE / "fuzz"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """A command that fails where a rule is broken, and the pattern of the line of its output that is told."""

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
    """Nothing that a client of the released document relies on may be gone."""
    return Gate(
        name="redocly diff",
        package="@redocly/cli",
        command=f"redocly diff {released} {document} --fail-on major",
        output_pattern=r"\d+ major, \d+ minor.*",
    )


def fuzz(url: str, limit: str) -> Gate:
    """What the document allows is answered, what it does not is refused, and links between operations hold."""
    return Gate(
        name="schemathesis",
        package="schemathesis",
        command=f"schemathesis --no-color --config-file {HERE}/fuzz/schemathesis.toml run {url}/openapi.json"
        f" --url {url} --workers 1 --continue-on-failure {limit}",
        output_pattern=r"\d+ generated.*",
    )


def run_gate(gate: Gate) -> str:
    """Run a gate; gives the line that says how it went. Raises ToolFailed."""
    with tempfile.TemporaryDirectory() as folder:
        said = run_with_stderr(shlex.split(gate.command), Path(folder), _ENVIRONMENT)
    lines = re.findall(gate.output_pattern, said)
    if not lines:
        raise ToolFailed(f"`{gate.command}` ended well, but says nothing like {gate.output_pattern}:\n{said}")
    return str(lines[-1]).strip()


def run_score_gate() -> str:
    """Let redocly score the document; raises ToolFailed where it is below the floor."""
    says = run_gate(SCORE)
    if float(re.findall(r"([\d.]+)/100", says)[0]) < MIN_SCORE:
        raise ToolFailed(f"{says}: less than {MIN_SCORE:g}")
    return says


def all_gates(seconds_of_fuzzing: int, seed: int | None = None) -> Iterator[Result]:
    """Pass every gate, the last over the service on each kind of database; the results come one by one."""
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
            gate = fuzz(url, f"--max-time {seconds_of_fuzzing}{same}")
            yield timed(f"{gate.name}, {kind}", locked_version(gate.package), partial(run_gate, gate))
