"""A PostgreSQL primary and a streaming replica of it, on loopback, that can be killed, started and promoted."""

import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import psycopg

from tests.postgres import CLUSTER, START_TIMEOUT, _copy, _parent_folder, installation
from tests.processes import free_port

USER = "nobody" if psutil.Process().uids().effective == 0 else None
"""PostgreSQL refuses to run as root."""

SETTINGS = (
    "synchronous_commit=off",
    "max_connections=60",
    "wal_level=replica",
    "hot_standby=on",
    "wal_keep_size=256MB",
)


class PostgresNode:
    """One server: its data, its port, and its process while it runs."""

    def __init__(self, programs: Path, here: Path, name: str) -> None:
        self.port = free_port()
        self._programs, self._here, self._data = programs, here, here / name
        self._process: subprocess.Popen[bytes] | None = None

    def create(self) -> None:
        """Make an empty cluster."""
        self._run("initdb", "-D", str(self._data), *CLUSTER)

    def follow(self, primary: "PostgresNode") -> None:
        """Copy a running server, to follow it from here on."""
        source = f"host=127.0.0.1 port={primary.port} user=postgres"
        self._run("pg_basebackup", "-D", str(self._data), "-d", source, "-R", "-c", "fast", "--no-sync")

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        words = [str(self._programs / "postgres"), "-D", str(self._data), "-k", str(self._here), "-h", "127.0.0.1"]
        settings = [word for setting in SETTINGS for word in ("-c", setting)]
        with (self._here / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [*words, "-p", str(self.port), *settings], stdout=log, stderr=log, user=USER, cwd=self._here
            )
        deadline = time.monotonic() + START_TIMEOUT
        while True:
            try:
                self.query("select 1")
            except psycopg.OperationalError:
                if time.monotonic() > deadline:
                    raise RuntimeError(f"PostgreSQL did not start:\n{(self._here / 'log').read_text()}") from None
                time.sleep(0.05)
            else:
                return

    def kill(self) -> None:
        """End the server and all its processes at once, as a machine does that loses power."""
        if self._process is None:
            return
        for process in psutil.Process(self._process.pid).children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                process.kill()
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        self._process = None
        (self._data / "postmaster.pid").unlink(missing_ok=True)

    def query(self, statement: str, database: str = "postgres") -> Any:
        """Run a statement as the superuser; returns its first value."""
        with psycopg.connect(
            host="127.0.0.1", port=self.port, user="postgres", dbname=database, autocommit=True
        ) as connection:
            cursor = connection.execute(statement.encode())
            row = cursor.fetchone() if cursor.description else None
            return row[0] if row else None

    def _run(self, program: str, *words: str) -> None:
        with (self._here / "log").open("ab") as log:
            subprocess.run(
                [str(self._programs / program), *words], check=True, stdout=log, stderr=log, user=USER, cwd=self._here
            )


@contextmanager
def primary_and_replica() -> Iterator[tuple[PostgresNode, PostgresNode]]:
    """Run a primary with an empty database `catalog`; yields it, and a node that may follow it."""
    here = Path(tempfile.mkdtemp(prefix="vmsizes-replicas-", dir=_parent_folder()))
    home = _copy(here / "wheel") if USER else installation()
    if USER:
        subprocess.run(["chown", "-R", USER, here], check=True)
    nodes = PostgresNode(home / "bin", here, "primary"), PostgresNode(home / "bin", here, "replica")
    try:
        nodes[0].create()
        nodes[0].start()
        nodes[0].query("create database catalog")
        yield nodes
    finally:
        for node in nodes:
            node.kill()
        shutil.rmtree(here, ignore_errors=True)
