"""Services over databases that faults are brought about in."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.faults.catalogs import fill
from tests.faults.cluster import cluster_running
from tests.faults.postgresql import Server
from tests.faults.proxy import Proxy
from tests.faults.sqlite_files import ENDINGS, File
from tests.processes import ServiceProcess, run_service


@contextmanager
def postgresql_server() -> Iterator[Server]:
    """Run PostgreSQL with a catalog, a spare copy of it, and a proxy before it."""
    with cluster_running() as cluster:
        cluster.run("create database catalog")
        fill(cluster.url(user="postgres"))
        cluster.run("create database spare template catalog")
        proxy = Proxy(cluster.port)
        try:
            yield Server(cluster, proxy)
        finally:
            proxy.close()


@contextmanager
def postgresql_service(server: Server, log: Path) -> Iterator[ServiceProcess]:
    """Run the service over the server, through the proxy."""
    url = f"postgresql://service@127.0.0.1:{server.proxy.port}/catalog"
    with run_service(url, log) as service:
        yield service


@contextmanager
def sqlite_file() -> Iterator[File]:
    """Make a catalog, a copy of it and another one, each a file in a folder of its own."""
    here = Path(tempfile.mkdtemp(prefix="vmsizes-faults-"))
    mounted = False
    try:
        served, copy, other = here / "served", here / "copy.db", here / "other.db"
        served.mkdir()
        mounted = mount(served, "48m")
        fill(f"sqlite:///{copy}")
        fill(f"sqlite:///{other}", usd="2")
        shutil.copyfile(copy, served / "catalog.db")
        yield File(served / "catalog.db", copy, other)
    finally:
        if mounted:
            subprocess.run(["umount", "-l", served], check=False)
        shutil.rmtree(here, ignore_errors=True)


def mount(folder: Path, size: str) -> bool:
    """Give the folder a small file system of its own, where we may."""
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    return os.geteuid() == 0 and subprocess.run(command, capture_output=True, check=False).returncode == 0


def restore(file: File) -> None:
    """Put the first catalog back, as it was before any fault."""
    for ending in ENDINGS:
        file.of(ending).unlink(missing_ok=True)
    shutil.copyfile(file.copy, file.path)


@contextmanager
def sqlite_service(file: File, log: Path) -> Iterator[ServiceProcess]:
    """Run the service over the file, as a user whom permissions bind: root without its capabilities."""
    with run_service(f"sqlite:///{file.path}", log, None, bound_by_permissions()) as service:
        yield service


def bound_by_permissions() -> tuple[str, ...]:
    """Return the command under which root may not read and write everything; empty for other users."""
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        return ()
    dropped = "-dac_override,-dac_read_search"
    return ("setpriv", f"--bounding-set={dropped}", f"--inh-caps={dropped}")
