"""Runs `vmsizes serve` in its own process, for tests of memory and load."""

import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil

from tests.servers import get
from tests.waiting import LONGEST_SECONDS

START_TIMEOUT = 120.0  # seconds


@dataclass(frozen=True, slots=True)
class ServiceProcess:
    """A running service and its port."""

    process: "subprocess.Popen[bytes]"
    port: int

    @property
    def url(self) -> str:
        """Its base URL."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def rss_mib(self) -> float:
        """Its private memory in use, MiB (RssAnon): pages of mapped files do not count."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return int(next(line.split()[1] for line in lines if line.startswith("RssAnon"))) / 1024

    @property
    def cpu_seconds(self) -> float:
        """The CPU time that it has taken, which does not depend on what else the machine does."""
        times = psutil.Process(self.process.pid).cpu_times()
        return float(times.user + times.system)

    @property
    def open_files(self) -> int:
        """How many descriptors it has open."""
        return sum(1 for _ in Path(f"/proc/{self.process.pid}/fd").iterdir())

    @property
    def workers(self) -> set[int]:
        """The process ids of its workers."""
        found = set()
        for child in psutil.Process(self.process.pid).children():
            with suppress(psutil.NoSuchProcess):  # also of one that has just ended
                if any("spawn_main" in word for word in child.cmdline()):
                    found.add(child.pid)
        return found


def free_port() -> int:
    """Return a port that nothing listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


@contextmanager
def run_service(
    database_url: str, log: Path, open_files: int | None = None, prefix: tuple[str, ...] = (), /, **settings: str
) -> Iterator[ServiceProcess]:
    """Run `vmsizes serve` on a free port, by the command `prefix`; its output goes to the file `log`.

    `open_files` is its `ulimit -n`.
    """
    program = str(Path(sys.executable).with_name("vmsizes"))
    environment = {**os.environ, "VMSIZES_DATABASE_URL": database_url, **settings}
    limited = ["sh", "-c", f'ulimit -n {open_files} && exec "$@"', "sh"] if open_files else []
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*prefix, *limited, program, "serve", "--port", "0"],
            env=environment, stdout=output, stderr=output,
        )  # fmt: skip
        try:
            yield ServiceProcess(process, _port_when_ready(process, log))
        finally:
            if process.poll() is None:
                process.terminate()
            process.wait(timeout=LONGEST_SECONDS)


def _port_when_ready(process: "subprocess.Popen[bytes]", log: Path) -> int:
    """Wait until a service answers, and return the port that it says it listens on."""
    deadline = time.monotonic() + START_TIMEOUT
    while process.poll() is None and time.monotonic() < deadline:
        if port := re.search(r"^Serving http://.+:(\d+)$", log.read_text(), re.MULTILINE):
            with suppress(httpx.TransportError):
                get(f"http://127.0.0.1:{port[1]}/healthz")
                return int(port[1])
        time.sleep(0.05)
    raise RuntimeError(f"the service did not start:\n{log.read_text()}")
