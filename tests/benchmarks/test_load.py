import asyncio
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from benchmarks.load import to_burst, to_script
from benchmarks.openloop import open_loop
from benchmarks.pairing import COMPARISONS
from benchmarks.raw import Message, two_kilobytes
from benchmarks.responses import RecordedResponse, load_responses, save_responses
from benchmarks.servers import Command, LoadRequest, cpu_seconds, running, seconds_used, uvicorn


def test_the_last_line_of_wrk_is_what_counts() -> None:
    said = 'Running 1s test\nRequests/sec: 1\n\n{"requests": 200, "microseconds": 2000000, "failed": 0}\n'
    found = to_burst(said, cpu_seconds=0.5)
    assert (found.per_second, found.cpu_microseconds, found.requests) == (100.0, 2500.0, 200)


@pytest.mark.parametrize(
    "said",
    [
        "",
        "unable to connect",
        '{"requests": 9, "microseconds": 1, "failed": 1}',
        '{"requests": 0, "microseconds": 1, "failed": 0}',
    ],
)
def test_load_that_failed_is_no_measurement(said: str) -> None:
    with pytest.raises(RuntimeError):
        to_burst(said, cpu_seconds=0.5)


def test_a_request_becomes_a_script_with_its_text_quoted(tmp_path: Path) -> None:
    question = LoadRequest(targets=("/fit",), method="POST", headers=(("Accept", 'a"b'),), body='{"gpus": 1}\n')
    script = to_script(question, tmp_path / "targets")
    assert 'wrk.method, wrk.body = "POST", "{\\"gpus\\": 1}\\n"' in script
    assert 'wrk.headers["Accept"] = "a\\"b"' in script


def test_recorded_responses_are_read_back_byte_for_byte(tmp_path: Path) -> None:
    answers = {"/sizes?a=1": RecordedResponse(status=200, headers=(("etag", '"x"'),), body=bytes(range(256)))}
    save_responses(answers, tmp_path / "answers.json")
    assert load_responses(tmp_path / "answers.json") == answers


@pytest.mark.parametrize(
    ("how", "ours", "theirs", "same"),
    [
        ("bytes", b'{"items":[1]}', b'{"items":[1] }', False),
        ("items", b'{"items":[1],"total":1}', b'{"items":[1],"total":2}', True),
        ("items", b'{"items":[1],"total":1}', b'{"items":[2],"total":1}', False),
        ("names", b'{"items":[{"name":"a","x":1}]}', b'[{"name":"a"}]', True),
        ("names", b'{"items":[{"name":"a"}]}', b'[{"name":"b"}]', False),
    ],
)
def test_responses_are_compared_as_the_case_says(how: str, ours: bytes, theirs: bytes, same: bool) -> None:
    assert COMPARISONS[how](ours, theirs) is same


def test_a_server_is_started_loaded_at_a_rate_and_stopped(tmp_path: Path) -> None:
    question = LoadRequest(targets=("/any",))
    with running(uvicorn("benchmarks.raw:two_kilobytes"), tmp_path / "log") as server:
        assert len(server.request(question, "/any").body) == 2048
        seen = open_loop(server, question, per_second=100, seconds=0.3)
        assert server.memory_mb() > 1
    assert (seen.late, seen.per_second) == (0, 100)
    assert 0 < seen.p50_ms <= seen.p99_ms
    assert not server.process.is_running()


def test_a_server_that_cannot_start_says_why(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="no_such_factory"), running(uvicorn("benchmarks.raw:no_such_factory"),
                                                                       tmp_path / "log"):  # fmt: skip
        pass


def test_a_bare_side_has_no_start_and_no_end() -> None:
    async def nothing(*_: Message) -> Message:
        return {}

    with pytest.raises(RuntimeError, match="only HTTP is answered here, not lifespan"):
        asyncio.run(two_kilobytes()({"type": "lifespan"}, nothing, nothing))  # type: ignore[arg-type]  # never called


def test_the_cpu_time_of_a_command_is_its_own() -> None:
    idle, busy = (
        cpu_seconds(Command(words=(sys.executable, "-c", program)))
        for program in ("import time; time.sleep(0.4)", "import time\nwhile time.process_time() < 0.4: pass")
    )
    assert idle < 0.4 <= busy
    with pytest.raises(RuntimeError, match="ended with 3"):
        cpu_seconds(Command(words=(sys.executable, "-c", "raise SystemExit(3)")))


def test_the_cpu_time_of_a_running_process_is_what_the_system_counts() -> None:
    busy = "import time\nwhile time.process_time() < 0.3: pass\nprint(flush=True)\nwhile True: time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", busy], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        times = psutil.Process(process.pid).cpu_times()
        used = seconds_used(psutil.Process(process.pid))
        process.kill()
    assert used == pytest.approx(times.user + times.system, abs=0.05)
    assert used >= 0.3
