"""Modules that a command loads: its own, and only what it uses."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from app.settings import PROJECT
from tests.seeded import PACKAGES

COMMAND_MODULES = {"search", "compare", "export", "estimate", "lists", "ingest", "refresh", "webhooks", "serve"}


def modules_loaded_by(program: str, **environment: str) -> set[str]:
    """Run a program that ends by printing `sys.modules`; return what its last line lists."""
    command = [sys.executable, "-c", f"import sys\n{program}\nprint(*sys.modules)"]
    done = subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


@pytest.mark.takes_seconds
@pytest.mark.parametrize(("command", "module"), [("serve", "serve"), ("ingest", "ingest"), ("estimate", "estimate")])
def test_a_command_loads_only_its_own_module(command: str, module: str) -> None:
    find = f"typer.main.get_command(commands.app).get_command(None, {command!r})"
    loaded = modules_loaded_by(f"import typer\nfrom app.cli import commands\n{find}")
    assert {name for name in COMMAND_MODULES if f"app.cli.{name}" in loaded} == {module}


def running(*arguments: str) -> str:
    """Return a program that runs the command line."""
    run = f"sys.argv = {['vmsizes', *arguments]!r}\nfrom app.cli import main\n"
    return f"{run}try:\n    main()\nexcept SystemExit as ended:\n    assert not ended.code"


NOT_TO_SEARCH = (
    *("rich", "fastapi", "alembic", "app.api", "app.converters", "app.schemas", "app.services", "app.fit.placement"),
    *("app.ingest", "app.catalog.readings", "mcp"),
)


@pytest.mark.parametrize(
    ("arguments", "not_loaded"),
    [
        (("search", "H100"), (*NOT_TO_SEARCH, "numpy")),
        (("-h",), (*NOT_TO_SEARCH, "sqlalchemy", "pydantic")),
        (("--version",), (*NOT_TO_SEARCH, "sqlalchemy", "pydantic")),
    ],
)
def test_a_command_does_not_load_what_it_does_not_use(
    seeded_url: str, arguments: tuple[str, ...], not_loaded: tuple[str, ...]
) -> None:
    loaded = modules_loaded_by(running(*arguments), VMSIZES_DATABASE_URL=seeded_url)
    assert not loaded & set(not_loaded)
    assert "app.cli.commands" in loaded


@pytest.mark.one_database
@pytest.mark.parametrize("command", [("search", "H100"), ("show", "nd96isr_h100_v5")], ids=" ".join)
def test_a_command_that_reads_sqlite_loads_no_sqlalchemy(seeded_url: str, command: tuple[str, ...]) -> None:
    loaded = modules_loaded_by(running(*command), VMSIZES_DATABASE_URL=seeded_url)
    assert not loaded & {"sqlalchemy", "sqlmodel", "app.catalog.models"}


@pytest.mark.takes_seconds
@pytest.mark.one_database
def test_an_ingest_loads_the_packages_that_the_seeded_catalog_of_the_tests_depends_on(
    database_url: str, tmp_path: Path
) -> None:
    for name in ("sources.csv", "regions.csv"):
        (tmp_path / name).symlink_to(PROJECT / "seeds" / name)
    loaded = modules_loaded_by(running("ingest", "seeds", str(tmp_path)), VMSIZES_DATABASE_URL=database_url)
    names = {name.split(".")[1] for name in loaded if name.startswith("app.")}
    assert {name for name in names if (PROJECT / "app" / name).is_dir()} == set(PACKAGES)
