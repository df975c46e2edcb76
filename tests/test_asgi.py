"""How the service starts: which modules it loads, and what it logs."""

import os
import platform
import subprocess
import sys
from functools import cache

import pytest

NOT_FOR_SERVING = (
    *("mcp", "mcp_types", "app.mcp.server", "pydantic.v1.main"),
    *("alembic", "numpy", "psycopg", "pyarrow", "sqlalchemy", "sqlmodel", "app.ingest", "app.cli"),
    *("app.fit.placement", "app.fit.estimator", "app.fit.formulas.architecture", "app.services"),
    *(f"app.converters.{name}" for name in ("fit_request", "fit_response", "receipts", "resource_fit", "retirements")),
    *("app.schemas.sizes", "app.schemas.fit_response", "app.schemas.retirements"),
    *("app.api.openapi.build", "app.catalog.models"),
    *("app.catalog.readings", "app.formats.feeds", "app.web.search", "app.web.explore"),
)


def run_python(program: str) -> str:
    command = [sys.executable, "-c", program]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@cache
def modules_loaded_to_serve() -> set[str]:
    return set(run_python("import sys, app.asgi; app.asgi.service(); print(*sys.modules)").split())


@pytest.mark.parametrize("name", NOT_FOR_SERVING)
def test_serving_does_not_load(name: str) -> None:
    assert name not in modules_loaded_to_serve()


def test_fits_of_raw_needs_and_costs_do_not_load_the_arithmetic_of_models() -> None:
    answering = "app.services.resource_fit, app.services.costs, app.services.compare"
    loaded = set(run_python(f"import sys, {answering}; print(*sys.modules)").split())
    assert "app.fit.verdict" in loaded
    assert not loaded & {"app.fit.placement", "app.fit.estimator", "app.fit.formulas.architecture"}


def test_the_garbage_collector_is_on_after_startup() -> None:
    program = "import gc, app.asgi; app.asgi.service(); print(gc.isenabled(), gc.get_freeze_count() > 0)"
    assert run_python(program) == "True True\n"


FREEZE = """
import gc, app.asgi
app.asgi.service()

def kept_by_a_full_collection(count):
    kept = [[] for _ in range(count)]
    frozen = gc.get_freeze_count()
    gc.collect()
    return gc.get_freeze_count() - frozen >= count

print(kept_by_a_full_collection(100), kept_by_a_full_collection(app.asgi.MAX_SCANNED))
"""


@pytest.mark.takes_seconds
def test_a_full_collection_freezes_what_it_leaves_once_that_is_much() -> None:
    assert run_python(FREEZE) == "False True\n"


ANSWER = """
import resource, app.asgi
app.asgi.service()

def page_faults_of(answers):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(answers):
        waiting = [bytes(36_000) for _ in range(80)]
        del waiting
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

page_faults_of(10)
print(page_faults_of(100))
"""


@pytest.mark.takes_seconds
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other allocators have other bounds")
def test_memory_of_answers_is_not_returned_to_the_system_and_mapped_again_for_the_next() -> None:
    assert int(run_python(ANSWER)) < 1_000


ASK = """
import anyio, httpx, app.asgi
requests = [("GET", "/sizes?limit=0"), ("GET", "/compare?size=x"), ("POST", "/fit"), ("POST", "/estimate")]
requests += [("POST", "/retirements"), ("GET", "/retirements.ics?limit=0")]

async def ask():
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app.asgi.service()), base_url="http://x") as client:
        for method, path in requests:
            print((await client.request(method, path, json={} if method == "POST" else None)).status_code)

anyio.run(ask)
"""


@pytest.mark.one_database  # requests are refused before a database is asked
def test_deferred_models_log_nothing_when_built(seeded_url: str) -> None:
    environment = {**os.environ, "VMSIZES_DATABASE_URL": seeded_url}
    command = [sys.executable, "-c", ASK]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert (done.stdout.split(), done.stderr) == (["422"] * 6, "")
