"""A service in a process of its own, as it is run: what it takes of memory and how it stands a burst."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

START_TIMEOUT = 60.0  # seconds


@dataclass(frozen=True, slots=True)
class ServiceProcess:
    """A service that runs, and where it answers."""

    process: "subprocess.Popen[bytes]"
    port: int

    @property
    def url(self) -> str:
        """Where it answers."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def rss_mib(self) -> float:
        """The memory that is its own and in use now, MiB: what is shared with files does not count."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return int(next(line.split()[1] for line in lines if line.startswith("RssAnon"))) / 1024


@contextmanager
def run_service(database_url: str, log: Path, **settings: str) -> Iterator[ServiceProcess]:
    """Run `vmsizes serve` on a free port until the end; `log` is what it says."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    program = str(Path(sys.executable).with_name("vmsizes"))
    environment = {**os.environ, "VMSIZES_DATABASE_URL": database_url, **settings}
    with log.open("wb") as said:
        process = subprocess.Popen([program, "serve", "--port", str(port)], env=environment, stdout=said, stderr=said)
        running = ServiceProcess(process, port)
        try:
            _wait_until_ready(running, log)
            yield running
        finally:
            process.terminate()
            process.wait(timeout=20)


def _wait_until_ready(running: ServiceProcess, log: Path) -> None:
    deadline = time.monotonic() + START_TIMEOUT
    while True:
        try:
            httpx.get(f"{running.url}/healthz", trust_env=False)
        except httpx.TransportError:
            if running.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the service did not start:\n{log.read_text()}") from None
            time.sleep(0.05)
        else:
            return
