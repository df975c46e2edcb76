"""Builds the released clients: a wheel and an npm tarball of generated and a little handwritten code."""

import json
import shutil
import sys
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path

from app.settings import PROJECT
from tests.sdk.gates import DOCUMENT
from tests.sdk.tools import HERE, NPM, run

SOURCES = PROJECT / "clients"
PACKAGES = PROJECT / "build" / "clients"
GENERATE = ("openapi-python-client", "generate", "--meta", "none", "--fail-on-warning")
NEEDS = {"python": ("openapi-python-client",), "typescript": ("openapi-typescript", "tsc", "npm")}


def build_python_wheel(folder: Path) -> Path:
    """Generate the Python client and build its wheel in a new folder; raises ToolFailed."""
    shutil.copytree(SOURCES / "python", folder)
    package, generated = folder / "vmsizes_client", folder / "generated"
    config = HERE / "programs" / "openapi-python-client.yaml"
    run([*GENERATE, "--path", DOCUMENT, "--output-path", generated, "--config", config], folder)
    shutil.copytree(generated, package, dirs_exist_ok=True)
    shutil.rmtree(generated)
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "."]
    run(build, folder, {"VMSIZES_VERSION": version("vmsizes")})
    return next(folder.glob("*.whl"))


def build_npm_tarball(folder: Path) -> Path:
    """Generate, compile and pack the TypeScript client in a new folder; raises ToolFailed."""
    shutil.copytree(SOURCES / "typescript", folder)
    (folder / "node_modules").symlink_to(NPM / "node_modules")
    manifest = folder / "package.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "version": version("vmsizes")}, indent=2))
    run(["openapi-typescript", DOCUMENT, "--output", "src/contract.ts"], folder)
    run(["tsc", "--project", "."], folder)
    run(["npm", "pack", "--silent"], folder)
    return next(folder.glob("*.tgz"))


BUILD: Mapping[str, Callable[[Path], Path]] = {"python": build_python_wheel, "typescript": build_npm_tarball}
