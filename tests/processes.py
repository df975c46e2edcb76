"""Runs `vmsizes serve` in its own process, for tests of memory and load."""

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


@contextmanager
def run_service(database_url: str, log: Path, **settings: str) -> Iterator[ServiceProcess]:
    """Run `vmsizes serve` on a free port; its output goes to the file `log`."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    program = str(Path(sys.executable).with_name("vmsizes"))
    environment = {**os.environ, "VMSIZES_DATABASE_URL": database_url, **settings}
    with log.open("wb") as output:
        process = subprocess.Popen(
            [program, "serve", "--port", str(port)], env=environment, stdout=output, stderr=output
        )
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
