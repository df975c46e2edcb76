"""Log lines: as JSON and as text, of requests and of commands."""

import io
import json
import logging
import re
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from app.telemetry import logs
from tests.processes import run_service
from tests.servers import open_client
from tests.waiting import LONGEST_SECONDS

FORGED = "x\n2026-01-01T00:00:00.000Z info root: forged\r\x1b[31m\x9b\u2028\u202e\x7f"


@pytest.fixture
def configured() -> Iterator[None]:
    """Leave the logging of the test process as it was."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def lines_of(log_format: logs.LogFormat, *, crash: bool = False) -> list[str]:
    stream = io.StringIO()
    logs.configure(log_format, "info", stream)
    log = logging.getLogger("tests")
    log.info("got %s", FORGED, extra={"fields": {"url": FORGED, "status": 200}})
    if crash:
        try:
            int(FORGED)
        except ValueError:
            log.exception("crashed")
    assert stream.getvalue().endswith("\n")
    return stream.getvalue().removesuffix("\n").split("\n")


@pytest.mark.usefixtures("configured")
def test_a_json_line_is_one_line_of_ascii_with_the_values_as_they_are() -> None:
    text, crash = lines_of("json", crash=True)
    assert all(" " <= character <= "~" for character in text + crash)
    line = json.loads(text)
    assert (line["message"], line["url"], line["status"], line["level"]) == (f"got {FORGED}", FORGED, 200, "info")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line["time"])
    assert repr(FORGED) in json.loads(crash)["exception"]


@pytest.mark.usefixtures("configured")
def test_a_value_cannot_forge_a_line_of_text_nor_hide_one() -> None:
    first, second, *trace = lines_of("text", crash=True)
    assert re.match(r"\S+Z info    tests: got x\\n2026", first)
    assert second.endswith("tests: crashed")
    assert trace
    assert all(line.startswith("    | ") for line in trace)
    assert all(" " <= character <= "~" for line in (first, second, *trace) for character in line)


class Stalled(io.StringIO):
    """A stream whose writes wait until its reader reads."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = Event()

    def write(self, text: str) -> int:
        self.reads.wait(LONGEST_SECONDS)
        return super().write(text)


@pytest.mark.usefixtures("configured")
def test_a_reader_that_stalls_stops_nobody_and_what_is_dropped_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "MAX_QUEUED", 5)
    stream = Stalled()
    logs.configure("text", "info", stream)
    background = logs.BackgroundLogs()
    for number in range(50):
        logging.getLogger("tests").info("line %d", number)
    assert 44 <= background.dropped <= 45, "one is being written"
    stream.reads.set()
    background.close()
    assert len(stream.getvalue().splitlines()) == 50 - background.dropped


def served_lines(seeded_url: str, folder: Path, **settings: str) -> list[dict[str, Any]]:
    """Return the lines of a service that answered a miss, a hit, a 304, a probe, and three invalid requests."""
    log = folder / "log"
    with (
        run_service(seeded_url, log, VMSIZES_LOG_FORMAT="json", **settings) as service,
        open_client(service.url, headers={"x-request-id": "mine"}) as client,
    ):
        for _ in range(2):
            etag = client.get("/regions?limit=2").headers["etag"]
        client.get("/regions?limit=2", headers={"if-none-match": etag})
        client.get("/healthz")
        client.get("/sizes?gpu=a%0Ab%1B", headers={"x-request-id": "two words"})
        client.get("/sizes/x%0Aforged")
    lines = log.read_text(encoding="ascii").splitlines()
    return [json.loads(line) for line in lines if line.startswith("{")]


def requests_in(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [line for line in lines if line["logger"] == "vmsizes.access"]


@pytest.mark.takes_seconds
@pytest.mark.one_database
def test_requests_are_logged_with_id_route_status_duration_cache_and_revision(seeded_url: str, tmp_path: Path) -> None:
    lines = requests_in(served_lines(seeded_url, tmp_path, VMSIZES_ACCESS_LOG="all"))
    lines = [line for line in lines if line["route"] != "/healthz"]
    assert [line["cache"] for line in lines] == ["miss", "hit", "304", "none", "none"]
    assert [line["status"] for line in lines] == [200, 200, 304, 422, 422]
    assert [line["route"] for line in lines] == [*["/regions"] * 3, "/sizes", "/sizes/{name}"]
    assert [line["request_id"] for line in lines[:3]] == ["mine"] * 3
    assert re.fullmatch(r"[0-9a-f]{12}-[0-9a-f]+", lines[3]["request_id"]), "an id with a space is not taken"
    assert [line.get("problem") for line in lines] == [None, None, None, "bad-parameter", "bad-parameter"]
    assert lines[4]["url"] == "/sizes/x\nforged"
    assert all(line["duration_ms"] > 0 and line["revision"] == 1 and line["method"] == "GET" for line in lines)


@pytest.mark.takes_seconds
@pytest.mark.one_database
def test_by_default_only_failures_are_logged_and_misses_on_request(seeded_url: str, tmp_path: Path) -> None:
    assert requests_in(served_lines(seeded_url, tmp_path)) == []
    lines = requests_in(served_lines(seeded_url, tmp_path, VMSIZES_ACCESS_LOG="misses"))
    assert [(line["status"], line["cache"]) for line in lines] == [(200, "miss"), (422, "none"), (422, "none")]


@pytest.mark.takes_seconds
@pytest.mark.one_database
def test_a_key_in_a_query_is_neither_logged_nor_shown(seeded_url: str, tmp_path: Path) -> None:
    with (
        run_service(seeded_url, tmp_path / "log", VMSIZES_ACCESS_LOG="all") as service,
        open_client(service.url) as client,
    ):
        for name in ("api_key", "X-API-Key", "token", "Authorization"):
            answer = client.get(f"/sizes?limit=1&{name}=hunter2&min_vcpus=2")
            assert answer.status_code == 422
            assert f"{name}: there is no such parameter" in answer.text
            assert "hunter2" not in answer.text
    log = (tmp_path / "log").read_text()
    assert "api_key=" in log
    assert "hunter2" not in log


@pytest.mark.takes_seconds
@pytest.mark.one_database
def test_the_sdk_of_mcp_logs_nothing_of_each_call(seeded_url: str, tmp_path: Path) -> None:
    with run_service(seeded_url, tmp_path / "log") as service, open_client(service.url) as client:
        assert client.post("/mcp", json={"jsonrpc": "2.0", "id": 1, "method": "ping"}).status_code == 200
    assert "mcp." not in (tmp_path / "log").read_text()
