"""The gates stop a change that breaks clients, and let an addition pass; `make contract` runs the slow ones, too."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.responses import JSONResponse

from tests.sdk.gates import DOCUMENT, Gate, diff, fuzz, run_gate
from tests.sdk.tools import ToolFailed, missing
from tests.servers import server

Change = Callable[[dict[str, Any]], None]


def _size(document: dict[str, Any]) -> dict[str, Any]:
    size: dict[str, Any] = document["components"]["schemas"]["SizeOut"]
    return size


def _without_a_field(document: dict[str, Any]) -> None:
    del _size(document)["properties"]["memory_gib"]
    _size(document)["required"].remove("memory_gib")


def _without_an_operation(document: dict[str, Any]) -> None:
    del document["paths"]["/gpus"]


def _with_a_text_for_a_number(document: dict[str, Any]) -> None:
    _size(document)["properties"]["memory_gib"]["type"] = ["string", "null"]


def _with_a_parameter_that_is_required(document: dict[str, Any]) -> None:
    document["paths"]["/sizes"]["get"]["parameters"][0]["required"] = True


def _with_a_new_field(document: dict[str, Any]) -> None:
    _size(document)["properties"]["added"] = {"type": "string", "description": "New."}
    _size(document)["required"].append("added")


def _changed(change: Change, folder: Path) -> Gate:
    absent = missing(["redocly"])
    if absent:
        pytest.skip(absent)
    document = json.loads(DOCUMENT.read_text(encoding="utf-8"))
    change(document)
    changed = folder / "changed.json"
    changed.write_text(json.dumps(document), encoding="utf-8")
    return diff(DOCUMENT, changed)


@pytest.mark.parametrize(
    "change",
    [
        _without_a_field,
        pytest.param(_without_an_operation, marks=pytest.mark.slow),
        pytest.param(_with_a_text_for_a_number, marks=pytest.mark.slow),
        pytest.param(_with_a_parameter_that_is_required, marks=pytest.mark.slow),
    ],
)
def test_a_change_that_breaks_clients_is_stopped(change: Change, tmp_path: Path) -> None:
    with pytest.raises(ToolFailed, match="major"):
        run_gate(_changed(change, tmp_path))


@pytest.mark.slow
def test_a_new_field_passes(tmp_path: Path) -> None:
    assert run_gate(_changed(_with_a_new_field, tmp_path)).startswith("0 major, 1 minor")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "stopped"),
    [("bad-parameter", True), pytest.param("unknown-value", False, marks=pytest.mark.slow)],
)
def test_a_service_may_reject_valid_requests_only_for_unknown_values(kind: str, stopped: bool) -> None:
    absent = missing(["schemathesis"])
    if absent:
        pytest.skip(absent)
    app = FastAPI()

    @app.get("/things", responses={422: {"description": "Refused."}})
    def things(name: str) -> JSONResponse:
        return JSONResponse({"type": f"/problems/{kind}", "name": name}, status_code=422)

    with server(app) as url:
        if stopped:
            with pytest.raises(ToolFailed, match="refused_only_for_what_the_document_cannot_say"):
                run_gate(fuzz(url, "--max-examples 10", ["Fuzzing"]))
        else:
            assert "passed" in run_gate(fuzz(url, "--max-examples 10", ["Fuzzing"]))


@pytest.mark.slow
def test_fuzzing_fails_that_does_not_come_to_a_phase() -> None:
    absent = missing(["schemathesis"])
    if absent:
        pytest.skip(absent)
    app = FastAPI()

    @app.get("/things")
    def things() -> list[str]:
        return []

    with server(app) as url, pytest.raises(ToolFailed, match=r"without a line like .*Stateful"):
        run_gate(fuzz(url, "--max-examples 10", ["Fuzzing", "Stateful"]))


def test_a_gate_without_the_expected_output_fails(tmp_path: Path) -> None:
    silent = Gate(name="silent", package="", command="true", output_pattern="all is well")
    with pytest.raises(ToolFailed, match="without a line like"):
        run_gate(silent)
