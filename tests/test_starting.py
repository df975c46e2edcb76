"""Modules loaded at start: the service and each command load only what they need."""

import os
import subprocess
import sys
from functools import cache

import pytest

NOT_FOR_SERVING = (
    *("alembic", "psycopg", "pyarrow", "sqlalchemy.dialects.postgresql", "app.ingest", "app.cli"),
    *("app.fit.placement", "app.fit.estimator", "app.services"),
)
COMMAND_FILES = {"search", "compare", "export", "estimate", "ingest", "serve"}


def run_python(program: str) -> str:
    command = [sys.executable, "-c", program]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@cache
def modules_loaded_to_serve() -> set[str]:
    return set(run_python("import sys, app.asgi; app.asgi.service(); print(*sys.modules)").split())


@pytest.mark.parametrize("name", NOT_FOR_SERVING)
def test_serving_does_not_load(name: str) -> None:
    assert name not in modules_loaded_to_serve()


def test_the_garbage_collector_is_on_after_startup() -> None:
    program = "import gc, app.asgi; app.asgi.service(); print(gc.isenabled(), gc.get_freeze_count() > 0)"
    assert run_python(program) == "True True\n"


@pytest.mark.parametrize(("command", "module"), [("serve", "serve"), ("ingest", "ingest"), ("estimate", "estimate")])
def test_a_command_loads_only_its_own_module(command: str, module: str) -> None:
    find = f"typer.main.get_command(commands.app).get_command(None, {command!r})"
    loaded = run_python(f"import sys, typer\nfrom app.cli import commands\n{find}\nprint(*sys.modules)").split()
    assert {name for name in COMMAND_FILES if f"app.cli.{name}" in loaded} == {module}


NOT_TO_SEARCH = ("rich", "app.api", "app.services", "app.fit.placement", "app.ingest", "fastapi", "alembic")


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
    environment = {**os.environ, "VMSIZES_DATABASE_URL": seeded_url}
    program = (
        f"import sys\nsys.argv = {['vmsizes', *arguments]!r}\nfrom app.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\nprint(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    loaded = set(done.stdout.splitlines()[-1].split())
    assert not loaded & set(not_loaded)
    assert "app.cli.commands" in loaded


ASK = """
import anyio, httpx, app.asgi
requests = [("GET", "/sizes?limit=0"), ("GET", "/compare?size=x"), ("POST", "/fit"), ("POST", "/estimate")]

async def ask():
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app.asgi.service()), base_url="http://x") as client:
        for method, path in requests:
            print((await client.request(method, path, json={} if method == "POST" else None)).status_code)

anyio.run(ask)
"""


def test_deferred_models_log_nothing_when_built(seeded_url: str) -> None:
    environment = {**os.environ, "VMSIZES_DATABASE_URL": seeded_url}
    command = [sys.executable, "-c", ASK]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert (done.stdout.split(), done.stderr) == (["422"] * 4, "")
