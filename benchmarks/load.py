"""Closed-loop load from wrk, which is fast enough not to be the bottleneck, and downloads of long responses."""

import json
import shutil
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

from benchmarks.servers import LoadRequest, Server

MISSING = "make bench needs wrk, an HTTP load generator: `apt-get install wrk`, or `brew install wrk`."
TIMEOUT = 60  # seconds that wrk waits for one response
_SCRIPT = """
local ready, turn = {}, %d
wrk.method, wrk.body = %s, %s
%s
function init(args) for target in io.lines(%s) do ready[#ready + 1] = wrk.format(nil, target) end end
function request() turn = turn %% #ready + 1; return ready[turn] end
function done(summary, latency, requests)
  local e = summary.errors
  io.write(string.format('\\n{"requests": %%d, "microseconds": %%d, "failed": %%d}\\n',
    summary.requests, summary.duration, e.connect + e.read + e.write + e.status + e.timeout))
end
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Burst:
    """The result of a few seconds of load."""

    per_second: float
    cpu_microseconds: float
    requests: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Download:
    """The result of whole downloads, one after another; megabytes are millions of bytes."""

    megabytes: float
    seconds: float
    cpu_seconds: float

    @property
    def mb_per_second(self) -> float:
        """Megabytes received a second."""
        return self.megabytes / self.seconds

    @property
    def cpu_ms_per_mb(self) -> float:
        """Milliseconds of the server's CPU time for each megabyte."""
        return 1000 * self.cpu_seconds / self.megabytes


def is_installed() -> bool:
    """Check whether wrk is on the path."""
    return shutil.which("wrk") is not None


def burst(server: Server, request: LoadRequest, *, seconds: float, connections: int, folder: Path) -> Burst:
    """Load a server for some seconds; raises RuntimeError if any request failed."""
    script, targets = folder / "question.lua", folder / "targets"
    targets.write_text("\n".join(request.targets))
    start = server.used if request.fresh else 0
    script.write_text(to_script(request, targets, start))
    command = ["wrk", "-t1", f"-c{connections}", f"-d{max(1, round(seconds))}s", "--timeout", f"{TIMEOUT}s"]
    before = server.cpu_seconds()
    done = subprocess.run(
        [*command, "-s", str(script), f"http://127.0.0.1:{server.port}"],
        capture_output=True, text=True, check=False, timeout=seconds + 2 * TIMEOUT,
    )  # fmt: skip
    cpu_seconds = server.cpu_seconds() - before
    result = to_burst(done.stdout + done.stderr, cpu_seconds)
    server.used += result.requests + connections
    return result


def download(server: Server, request: LoadRequest, targets: Sequence[str]) -> Download:
    """Download responses; raises RuntimeError if any failed.

    wrk would count the last one, which its time cuts off, for the CPU time and not for the rate.
    """
    before, started, received = server.cpu_seconds(), time.perf_counter(), 0
    for target in targets:
        response = server.request(request, target)
        if response.status != HTTPStatus.OK:
            raise RuntimeError(f"{response.status} to {target}: {response.body[:300]!r}")
        received += len(response.body)
    seconds = time.perf_counter() - started
    return Download(megabytes=received / 1e6, seconds=seconds, cpu_seconds=server.cpu_seconds() - before)


def to_burst(output: str, cpu_seconds: float) -> Burst:
    """Parse the last line that wrk printed; raises RuntimeError where nothing was measured."""
    last = output.strip().splitlines()[-1] if output.strip() else ""
    if not last.startswith("{"):
        raise RuntimeError(f"wrk said: {output[-500:]}")
    summary = json.loads(last)
    if summary["failed"] or not summary["requests"]:
        raise RuntimeError(f"{summary['failed']} requests failed, {summary['requests']} were answered")
    requests, seconds = summary["requests"], summary["microseconds"] / 1e6
    return Burst(per_second=requests / seconds, cpu_microseconds=1e6 * cpu_seconds / requests, requests=requests)


def to_script(request: LoadRequest, targets: Path, start: int = 0) -> str:
    """Return the Lua script that makes wrk send a request; requests are formatted before the clock starts."""
    headers = "\n".join(f"wrk.headers[{_lua(name)}] = {_lua(value)}" for name, value in request.headers)
    body = "nil" if request.body is None else _lua(request.body)
    return _SCRIPT % (start, _lua(request.method), body, headers, _lua(str(targets)))


def _lua(text: str) -> str:
    return json.dumps(text)
