"""The released clients: built, installed as a user installs them, and the examples of the guide run against them."""

import os
import re
import subprocess
import tarfile
from pathlib import Path

import pytest

from app.settings import PROJECT
from tests.docs.matching import matches
from tests.sdk.releasing import BUILD, NEEDS
from tests.sdk.tools import NPM, missing, run

GUIDE = (PROJECT / "docs" / "clients.md").read_text(encoding="utf-8")
COMPILE = "--strict --skipLibCheck --module nodenext --target es2022 --types node"
SERVED = "http://127.0.0.1:8000"


BUILT = [pytest.param(name, marks=[] if name == "python" else pytest.mark.slow) for name in BUILD]
"""`make contract` builds both; a TypeScript client by the same generator is in test_generated.py."""


@pytest.fixture(scope="session", params=BUILT)
def package(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """The language of a client, and its built package."""
    absent = missing(NEEDS[request.param])
    if absent:
        pytest.skip(absent)
    return request.param, BUILD[request.param](tmp_path_factory.mktemp("packages") / request.param)


def example(language: str) -> tuple[str, str]:
    """The program of the guide in a language, and what it prints."""
    fence = {"python": "python", "typescript": "ts"}[language]
    ((program, printed),) = re.findall(rf"```{fence}\n(.*?)```\n\n```text\n(.*?)```", GUIDE, re.DOTALL)
    return program, printed


def run_python(wheel: Path, program: str, folder: Path) -> str:
    run(["python", "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", folder, wheel], folder)
    (folder / "example.py").write_text(program)
    run(["mypy", "--config-file=", "--strict", "example.py"], folder)
    return run(["python", "example.py"], folder)


def run_typescript(tarball: Path, program: str, folder: Path) -> str:
    modules = folder / "node_modules"
    modules.mkdir()
    for needed in ("openapi-fetch", "openapi-typescript-helpers", "@types"):
        (modules / needed).symlink_to(NPM / "node_modules" / needed)
    with tarfile.open(tarball) as archive:
        archive.extractall(folder, filter="data")
    (folder / "package").rename(modules / "vmsizes-client")
    (folder / "package.json").write_text('{"type": "module"}')
    (folder / "example.ts").write_text(program)
    run(["tsc", *COMPILE.split(), "example.ts"], folder)
    return run(["node", "example.js"], folder)


@pytest.mark.slow
def test_the_example_of_the_guide_runs_with_the_built_package(
    package: tuple[str, Path], base_url: str, tmp_path: Path
) -> None:
    language, file = package
    program, printed = example(language)
    assert len(program.splitlines()) <= 12
    use = {"python": run_python, "typescript": run_typescript}[language]
    assert matches(printed, use(file, program.replace(SERVED, base_url), tmp_path))


def test_no_generated_code_is_committed() -> None:
    listed = subprocess.run(
        ["git", "ls-files", "clients"], cwd=PROJECT, capture_output=True, text=True, check=False, env=os.environ
    )
    if listed.returncode:
        pytest.skip("not a checkout of git")
    assert {path.split("/", 2)[2] for path in listed.stdout.split()} == {
        *("README.md", "package.json", "pyproject.toml", "tsconfig.json", "src/index.ts"),
        *("vmsizes_client/pages.py", "vmsizes_client/py.typed"),
    }
