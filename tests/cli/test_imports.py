"""Modules that a command loads: its own, and only what it uses."""

import os
import subprocess
import sys

import pytest

COMMAND_MODULES = {"search", "compare", "export", "estimate", "retirements", "changes", "ingest", "serve"}


def modules_loaded_by(program: str, **environment: str) -> set[str]:
    """Run a program that ends by printing `sys.modules`; return what its last line lists."""
    command = [sys.executable, "-c", f"import sys\n{program}\nprint(*sys.modules)"]
    done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


@pytest.mark.parametrize(("command", "module"), [("serve", "serve"), ("ingest", "ingest"), ("estimate", "estimate")])
def test_a_command_loads_only_its_own_module(command: str, module: str) -> None:
    find = f"typer.main.get_command(commands.app).get_command(None, {command!r})"
    loaded = modules_loaded_by(f"import typer\nfrom app.cli import commands\n{find}")
    assert {name for name in COMMAND_MODULES if f"app.cli.{name}" in loaded} == {module}


NOT_TO_SEARCH = (
    *("rich", "fastapi", "alembic", "app.api", "app.converters", "app.schemas", "app.services", "app.fit.placement"),
    *("app.ingest", "mcp"),
)


@pytest.mark.parametrize(
    ("arguments", "not_loaded"),
    [
        (("search", "H100"), NOT_TO_SEARCH),
        (("-h",), (*NOT_TO_SEARCH, "sqlalchemy", "pydantic")),
        (("--version",), (*NOT_TO_SEARCH, "sqlalchemy", "pydantic")),
    ],
)
def test_a_command_does_not_load_what_it_does_not_use(
    seeded_url: str, arguments: tuple[str, ...], not_loaded: tuple[str, ...]
) -> None:
    program = (
        f"sys.argv = {['vmsizes', *arguments]!r}\nfrom app.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass"
    )
    loaded = modules_loaded_by(program, VMSIZES_DATABASE_URL=seeded_url)
    assert not loaded & set(not_loaded)
    assert "app.cli.commands" in loaded
