"""Load from wrk, which is fast enough not to be what is measured: a closed loop of a few connections."""

import json
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from benchmarks.servers import LoadRequest, Server

MISSING = "make bench needs wrk, an HTTP load generator: `apt-get install wrk`, or `brew install wrk`."
TIMEOUT = 60  # seconds that wrk waits for one answer
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
    """What a few seconds of load came to."""

    per_second: float
    cpu_microseconds: float
    requests: int


def is_installed() -> bool:
    """Whether wrk can be started."""
    return shutil.which("wrk") is not None


def burst(server: Server, request: LoadRequest, *, seconds: float, connections: int, folder: Path) -> Burst:
    """Load a server for so many seconds; raises RuntimeError where any answer failed."""
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
    used = server.cpu_seconds() - before
    made = to_burst(done.stdout + done.stderr, used)
    server.used += made.requests + connections
    return made


def to_burst(said: str, cpu_seconds: float) -> Burst:
    """Read what wrk printed at its end; raises RuntimeError where there is nothing to measure."""
    last = said.strip().splitlines()[-1] if said.strip() else ""
    if not last.startswith("{"):
        raise RuntimeError(f"wrk said: {said[-500:]}")
    told = json.loads(last)
    if told["failed"] or not told["requests"]:
        raise RuntimeError(f"{told['failed']} requests failed, {told['requests']} were answered")
    requests, seconds = told["requests"], told["microseconds"] / 1e6
    return Burst(per_second=requests / seconds, cpu_microseconds=1e6 * cpu_seconds / requests, requests=requests)


def to_script(request: LoadRequest, targets: Path, start: int = 0) -> str:
    """Write the question as wrk's Lua, its targets in a file: requests are put together before the clock starts."""
    headers = "\n".join(f"wrk.headers[{_lua(name)}] = {_lua(value)}" for name, value in request.headers)
    body = "nil" if request.body is None else _lua(request.body)
    return _SCRIPT % (start, _lua(request.method), body, headers, _lua(str(targets)))


def _lua(text: str) -> str:
    return json.dumps(text)
