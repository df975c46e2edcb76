"""An SQLite database with everything in seeds/, built once for each state of the files that it is made from.

The test processes, `make openapi` and `make check` each need one, and all of Azure takes several seconds to ingest.
"""

import fcntl
import hashlib
import os
import subprocess
import sys
from pathlib import Path

from tests.databases import Databases, SqliteFiles

PROJECT = Path(__file__).resolve().parents[1]
FOLDER = PROJECT / "build" / "seeded"
MADE_FROM = ("app/**/*.py", "migrations/**/*.py", "seeds/**/*.*")


def seeded_sqlite_url() -> str:
    """Return the URL of the database, which is read-only; builds it if a file that it is made from has changed."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    file = FOLDER / f"{_fingerprint()}.db"
    with (FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not file.exists():
            for outdated in FOLDER.glob("*.*"):
                outdated.unlink()
            part = file.with_suffix(".part")
            run_program(f"sqlite:///{part}", "migrate")
            run_program(f"sqlite:///{part}", "ingest", "seeds")
            part.rename(file)
    return f"sqlite:///{file}"


def seeded_url(databases: Databases) -> str:
    """Return the URL of a database of this kind with everything in seeds/, which is read-only."""
    if isinstance(databases, SqliteFiles):
        return seeded_sqlite_url()
    url = databases.create()
    run_program(url, "migrate")
    run_program(url, "ingest", "seeds")
    return url


def run_program(database_url: str, *arguments: str) -> None:
    """Run the installed program on a database; fails with its output if it fails."""
    program = str(Path(sys.executable).with_name("vmsizes"))
    environment = {**os.environ, "VMSIZES_DATABASE_URL": database_url}
    done = subprocess.run([program, *arguments], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def _fingerprint() -> str:
    digest = hashlib.sha256()
    for path in sorted(path for pattern in MADE_FROM for path in PROJECT.glob(pattern) if path.is_file()):
        digest.update(f"{path.relative_to(PROJECT)}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]
