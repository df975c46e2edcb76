"""Templates: compiled once, and kept where compiled modules are."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import app

_RENDER = """
import jinja2.environment, sys
compiled = []
compile_source = jinja2.environment.Environment._compile
jinja2.environment.Environment._compile = lambda *a: compiled.append(a) or compile_source(*a)
from app.web.rendering import environment
environment().get_template("search.html")
print(len(compiled))
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """Return a copy of the program, whose folders are its own."""
    shutil.copytree(Path(app.__file__).parent, tmp_path / "app", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def _templates_compiled_by(program: Path, *options: str) -> int:
    env = {**os.environ, "PYTHONPATH": str(program)}
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    run = subprocess.run(
        [sys.executable, *options, "-c", _RENDER], cwd=program, env=env, capture_output=True, text=True, check=True
    )
    return int(run.stdout)


def test_a_template_is_compiled_again_only_when_it_has_changed(program: Path) -> None:
    assert _templates_compiled_by(program) == 1
    assert _templates_compiled_by(program) == 0
    template = program / "app/web/templates/search.html"
    template.write_text(template.read_text() + "\n")
    assert _templates_compiled_by(program) == 1


def test_nothing_is_written_where_python_writes_no_bytecode(program: Path) -> None:
    assert _templates_compiled_by(program, "-B") == 1
    assert not [*program.rglob("__pycache__")]


def test_without_a_folder_to_write_to_it_costs_only_time(program: Path) -> None:
    elsewhere = f"pycache_prefix={program / 'elsewhere'}"
    for _ in range(2):
        assert _templates_compiled_by(program, "-X", elsewhere) == 1
