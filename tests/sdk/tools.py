"""The external tools: where they are, which version is locked, how to install missing ones."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from app.settings import PROJECT

HERE = Path(__file__).parent
NPM = HERE / "npm"
PYTHON_TOOLS = PROJECT / ".venv" / "sdk" / "bin"
NODE_TOOLS = NPM / "node_modules" / ".bin"
JACKSON = next(iter(PYTHON_TOOLS.parent.glob("lib/*/site-packages/openapi_generator_cli/*.jar")), Path("absent.jar"))
"""The jar of openapi-generator, which carries the JSON library that its Java clients need."""
PATH = os.pathsep.join([str(PYTHON_TOOLS), str(NODE_TOOLS), os.environ.get("PATH", os.defpath)])

INSTALLED_BY = {
    "openapi-python-client": "make .venv/sdk/ready",
    "openapi-generator-cli": "make .venv/sdk/ready",
    "openapi-spec-validator": "make .venv/sdk/ready",
    "schemathesis": "make .venv/sdk/ready",
    "go": "make .venv/sdk/go",
    "java": "apt-get install default-jre-headless",
    "javac": "apt-get install default-jdk-headless",
    "ruby": "apt-get install ruby ruby-typhoeus",
    "php": "apt-get install php-cli php-curl php-mbstring php-guzzlehttp-guzzle",
    "npm": "https://nodejs.org (20.19 or newer)",
    "node": "https://nodejs.org (20.19 or newer)",
    "openapi-typescript": "make tests/sdk/npm/node_modules/.quick",
    "openapi-ts": "make tests/sdk/npm/node_modules/.quick",
    "tsc": "make tests/sdk/npm/node_modules/.quick",
    "orval": "make tests/sdk/npm/node_modules/.all",
    "swagger-typescript-api": "make tests/sdk/npm/node_modules/.all",
    "spectral": "make tests/sdk/npm/node_modules/.all",
    "redocly": "make tests/sdk/npm/node_modules/.all",
}
"""How to install each program."""


class ToolFailed(Exception):
    """A tool failed or did less than it should; the message has its output."""


def missing(programs: Collection[str]) -> str:
    """Return which programs are missing and how to install them; empty if none is."""
    absent = [name for name in programs if shutil.which(name, path=PATH) is None]
    return "; ".join(f"{name} is missing: {INSTALLED_BY[name]}" for name in absent)


def locked_version(package: str) -> str:
    """Return the locked version of a Python or npm package; raises KeyError."""
    manifest = json.loads((NPM / "package.json").read_text())
    versions: dict[str, str] = manifest["dependencies"] | manifest["devDependencies"]
    for lock in ("requirements.lock", "go.lock"):
        versions |= dict(re.findall(r"(?m)^([\w.-]+)==(\S+)", (HERE / lock).read_text()))
    return versions[package]


def run(command: Sequence[str | Path], folder: Path, environment: Mapping[str, str] | None = None) -> str:
    """Run a program and return its stdout; raises ToolFailed with its whole output."""
    return _run(command, folder, environment).stdout


def run_with_stderr(command: Sequence[str | Path], folder: Path, environment: Mapping[str, str] | None = None) -> str:
    """Run a program and return its stdout and stderr; raises ToolFailed with the same."""
    done = _run(command, folder, environment)
    return f"{done.stdout}\n{done.stderr}"


def _run(
    command: Sequence[str | Path], folder: Path, environment: Mapping[str, str] | None
) -> subprocess.CompletedProcess[str]:
    program = shutil.which(command[0], path=PATH) or command[0]
    done = subprocess.run(
        [program, *command[1:]],
        cwd=folder,
        env={**os.environ, "PATH": PATH, **(environment or {})},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    if done.returncode:
        output = f"{done.stdout}\n{done.stderr}".strip()
        raise ToolFailed(f"`{' '.join(map(str, command))}` failed with exit code {done.returncode}:\n{output}")
    return done
