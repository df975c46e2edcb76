"""A PostgreSQL server that is stopped, paused, crashed and started again, reached by TCP and by a Unix socket."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import psycopg
from psycopg import sql

from tests.postgres import CLUSTER, FAST, RUN_UNTIL_END_OF_INPUT, _copy, _parent_folder, installation

START_TIMEOUT = 120.0  # seconds
USER = "nobody" if os.geteuid() == 0 else None
RESERVED = 3
"""Connections that only the superuser may take, with which the tests look at a full server."""


class Cluster:
    """One server with its data; `max_connections` counts those of the service and RESERVED ones."""

    def __init__(self, here: Path, max_connections: int) -> None:
        self.here, self._shell = here, None  # type: tuple[Path, subprocess.Popen[bytes] | None]
        self._max_connections = max_connections
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self.port: int = listener.getsockname()[1]
        self._home = _copy(here / "wheel") if USER else installation()
        if USER:
            subprocess.run(["chown", "-R", USER, here], check=True)
        initdb = [str(self._home / "bin" / "initdb"), "-D", str(here / "data"), *CLUSTER]
        subprocess.run(initdb, check=True, stdout=subprocess.DEVNULL, user=USER, cwd=here)
        settings = [*FAST, f"max_connections={max_connections}", f"superuser_reserved_connections={RESERVED}"]
        (here / "data" / "postgresql.auto.conf").write_text("\n".join(settings))

    def url(self, database: str = "catalog", user: str = "service") -> str:
        """Return the URL of a database, by TCP."""
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}"

    def admin(self, database: str = "postgres") -> psycopg.Connection[tuple[object, ...]]:
        """Return a superuser's connection that commits each statement."""
        return psycopg.connect(host=str(self.here), port=self.port, user="postgres", dbname=database, autocommit=True)

    def run(self, statement: str, database: str = "postgres") -> list[tuple[object, ...]]:
        """Run a statement as the superuser; returns its rows."""
        with self.admin(database) as connection:
            cursor = connection.execute(sql.SQL(statement))
            return cursor.fetchall() if cursor.description else []

    def start(self) -> None:
        """Start the server and wait until it accepts connections."""
        postgres = [str(self._home / "bin" / "postgres"), "-D", str(self.here / "data"), "-k", str(self.here)]
        address = ["-h", "127.0.0.1", "-p", str(self.port)]
        script = RUN_UNTIL_END_OF_INPUT.replace('rm -rf "$HERE"', "")
        with (self.here / "log").open("ab") as log:
            self._shell = subprocess.Popen(
                ["/bin/sh", "-c", script, "sh", *postgres, *address],
                stdin=subprocess.PIPE, stdout=log, stderr=log, user=USER, cwd=self.here,
            )  # fmt: skip
        deadline = time.monotonic() + START_TIMEOUT
        while True:
            try:
                self.admin().close()
            except psycopg.OperationalError:
                if time.monotonic() > deadline:
                    raise RuntimeError(
                        f"PostgreSQL did not start:\n{(self.here / 'log').read_text()[-2000:]}"
                    ) from None
                time.sleep(0.02)
            else:
                return

    @property
    def postmaster(self) -> psutil.Process:
        """The server's first process."""
        return psutil.Process(int((self.here / "data" / "postmaster.pid").read_text().split()[0]))

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop the server and wait for its end: SIGINT is fast, SIGQUIT immediate, SIGKILL a crash."""
        postmaster = self.postmaster
        processes = [postmaster, *postmaster.children(recursive=True)]
        postmaster.send_signal(how)
        if how == signal.SIGKILL:
            for process in processes[1:]:
                with suppress(psutil.NoSuchProcess):
                    process.kill()
        _wait_for_the_end_of(processes)
        assert self._shell is not None
        self._shell.kill()
        self._shell.communicate()
        if how == signal.SIGKILL:
            (self.here / "data" / "postmaster.pid").unlink(missing_ok=True)

    def signal_all(self, what: signal.Signals) -> None:
        """Send a signal to each process of the server."""
        postmaster = self.postmaster
        for process in (postmaster, *postmaster.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                process.send_signal(what)

    def backends(self, condition: str = "true") -> list[int]:
        """Return the process ids of the service's connections."""
        rows = self.run(f"select pid from pg_stat_activity where usename = 'service' and {condition}")
        return [int(str(pid)) for (pid,) in rows]


def _wait_for_the_end_of(processes: list[psutil.Process]) -> None:
    """Wait until each has ended; the shell that started the server has not taken note of its end then."""
    deadline = time.monotonic() + START_TIMEOUT
    while time.monotonic() < deadline:
        with suppress(psutil.NoSuchProcess):
            running = [each for each in processes if each.is_running() and each.status() != psutil.STATUS_ZOMBIE]
            if not running:
                return
        time.sleep(0.01)
    raise RuntimeError(f"still running: {processes}")


@contextmanager
def cluster_running(max_connections: int = 60) -> Iterator[Cluster]:
    """Run a server with a role `service` that owns nothing and may read everything."""
    here = Path(tempfile.mkdtemp(prefix="vmsizes-faults-", dir=_parent_folder()))
    try:
        cluster = Cluster(here, max_connections)
        cluster.start()
        cluster.run("create role service login")
        cluster.run("grant pg_read_all_data to service")
        try:
            yield cluster
        finally:
            with suppress(psutil.NoSuchProcess, FileNotFoundError):
                cluster.signal_all(signal.SIGCONT)
                cluster.stop(signal.SIGQUIT)
    finally:
        shutil.rmtree(here, ignore_errors=True)
