"""A generated client that is fast to build; `make sdk` tests all of them."""

import json
from pathlib import Path

import pytest

from app.settings import PROJECT
from tests.sdk.building import missing_operations, run_program
from tests.sdk.conftest import Built
from tests.sdk.later_version import ADDED_FIELDS, NEW_VALUE
from tests.sdk.reports import expected
from tests.sdk.toolchains import TOOLCHAINS, Toolchain
from tests.servers import get

QUICK = [toolchain for toolchain in TOOLCHAINS if toolchain.quick]


@pytest.mark.takes_seconds
@pytest.mark.parametrize("toolchain", QUICK, ids=lambda toolchain: toolchain.name)
def test_a_generated_client_sees_what_plain_http_sees(toolchain: Toolchain, built: Built, base_url: str) -> None:
    report = run_program(toolchain, built(toolchain), base_url)
    assert report == expected(base_url)
    assert len(set(report["walked"])) == len(report["walked"]) == report["total"]


@pytest.mark.slow
@pytest.mark.parametrize("toolchain", QUICK, ids=lambda toolchain: toolchain.name)
def test_a_compiled_client_works_with_a_later_service(toolchain: Toolchain, built: Built, later_url: str) -> None:
    report = run_program(toolchain, built(toolchain), later_url)
    assert report == expected(later_url)
    assert report["fit"]["code"] == NEW_VALUE


def test_a_later_service_has_more_fields_and_other_values(base_url: str, later_url: str) -> None:
    now, later = (get(f"{url}/sizes?gpu=A100&limit=1").json() for url in (base_url, later_url))
    (size,), (later_size,) = now["items"], later["items"]
    assert set(later) - set(now) == set(later_size) - set(size) == set(ADDED_FIELDS)
    assert later_size["status"] == later_size["arch"] == NEW_VALUE
    assert later_size["name"] == size["name"]


def test_an_operation_that_a_generator_omits_is_reported(tmp_path: Path) -> None:
    document = tmp_path / "openapi.json"
    operations = {"get": {"operationId": "listSizes"}, "post": {"operationId": "fitWorkload"}}
    document.write_text(json.dumps({"paths": {"/sizes": operations}}))
    (tmp_path / "client").mkdir()
    (tmp_path / "client" / "list_sizes.py").write_text("def sync() -> None: ...")
    assert missing_operations(document, tmp_path) == ["fitWorkload"]


@pytest.mark.parametrize("toolchain", TOOLCHAINS, ids=lambda toolchain: toolchain.name)
def test_the_guide_shows_the_commands_that_are_run(toolchain: Toolchain) -> None:
    guide = (PROJECT / "docs" / "clients.md").read_text(encoding="utf-8")
    joined = guide.replace(" \\\n ", "").split("\n")
    assert toolchain.generate in [" ".join(line.split()) for line in joined]
