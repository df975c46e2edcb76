"""Builds and runs clients: generate, check that no operation is missing, compile, run, read the report."""

import json
import shlex
import shutil
from pathlib import Path

from tests.sdk.reports import Report
from tests.sdk.toolchains import Toolchain
from tests.sdk.tools import HERE, NPM, ToolFailed, run

PROGRAMS = HERE / "programs"
SOURCES = {".py", ".ts", ".go", ".java", ".rb", ".php"}


def build(toolchain: Toolchain, documents: Path, folder: Path) -> None:
    """Generate a client in an empty folder and compile it with its program; raises ToolFailed."""
    folder.mkdir(parents=True)
    shutil.copy(documents / toolchain.document, folder)
    (folder / "node_modules").symlink_to(NPM / "node_modules")
    for name in toolchain.files:
        copy = shutil.copytree if (PROGRAMS / name).is_dir() else shutil.copy
        copy(PROGRAMS / name, folder / name)
    run(shlex.split(toolchain.generate), folder, toolchain.environment)
    lost = missing_operations(folder / toolchain.document, folder)
    if lost:
        raise ToolFailed(f"{toolchain.name} omitted {', '.join(lost)}")
    for command in toolchain.compile:
        run(shlex.split(command), folder, toolchain.environment)


def run_program(toolchain: Toolchain, folder: Path, url: str) -> Report:
    """Run a compiled program against the service at a URL and return its report; raises ToolFailed."""
    report: Report = json.loads(run([*shlex.split(toolchain.run), url], folder, toolchain.environment))
    return report


def missing_operations(document: Path, folder: Path) -> list[str]:
    """Return the operations that a generated client does not have: a generator may drop some silently."""
    generated = [*folder.glob("client/**/*"), *folder.glob("client.*")]
    sources = [path for path in generated if path.suffix in SOURCES]
    text = "\n".join(f"{path.stem}\n{path.read_text(encoding='utf-8')}" for path in sources)
    words = text.replace("_", "").lower()
    paths = json.loads(document.read_text())["paths"]
    names = [operation["operationId"] for methods in paths.values() for operation in methods.values()]
    return [name for name in names if name.lower() not in words]
