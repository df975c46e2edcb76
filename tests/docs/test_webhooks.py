"""The worked example of a webhook: its receiver runs as it is on the page, behind a certificate of the tests."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from tests.databases import Databases
from tests.docs.pages import examples, read
from tests.docs.test_examples import WEBHOOKS, check, run_example
from tests.waiting import wait_until
from tests.webhooks.receiver import write_authority

PORT = "8443"
"""The port of the page; the test takes a free one."""


def test_the_worked_webhook_gives_its_output(
    databases: Databases,
    seeded_template_url: str,
    client: httpx.Client,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    authority, file = write_authority(tmp_path)
    authority.issue_cert("localhost").private_key_and_cert_chain_pem.write_to_path(str(tmp_path / "certificate.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    monkeypatch.setenv("VMSIZES_WEBHOOK_ALLOWED_NETWORKS", "localhost")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    steps = [
        replace(step, text=step.text.replace(PORT, port), command=step.command.replace(PORT, port))
        for step in examples(read(WEBHOOKS))
    ]
    url = databases.copy(seeded_template_url)
    for step in (step for step in steps if step.file):
        run_example(step, tmp_path, url, client)
    with receiver_running(tmp_path, int(port)):
        for step in (step for step in steps if step.command):
            check(step, WEBHOOKS, run_example(step, tmp_path, url, client))
    databases.drop(url)


def listens(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
        return True
    return False


@contextmanager
def receiver_running(folder: Path, port: int) -> Iterator[None]:
    """Run the receiver of the page until the end of the block."""
    command = [sys.executable, "receiver.py"]
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.DEVNULL) as process:
        try:
            wait_until(lambda: process.poll() is not None or listens(port))
            yield
        finally:
            process.kill()
