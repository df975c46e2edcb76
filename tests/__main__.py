"""`python -m tests`: run all tests in parallel processes: one for each kind of database, two for all other tests.

The processes share the cores with the servers and browsers that they start. A few tests that fail beside all that are
run again when nothing else runs, and must pass then; both outcomes are printed.
"""

import json
import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import pytest

from tests.databases import SELECTED_KINDS

PYTEST = str(Path(sys.executable).with_name("pytest"))
PAGES = ("tests/browser", "tests/docs", "tests/mcp", "tests/sdk", "tests/web")
"""About half of the other tests, by the time they take; each of these folders needs but one kind of database."""
NO_PAGES = tuple(f"--ignore={folder}" for folder in PAGES)
LESS = 5
"""How much nicer the other processes are than the last, which takes longest: it has a core of its own."""
MOST_AGAIN = 3
"""If more tests of a process fail, it is not for what else the machine does."""


@dataclass(frozen=True, slots=True)
class Run:
    """The tests of one process."""

    title: str
    arguments: tuple[str, ...]
    kind: str = SELECTED_KINDS[0]

    @property
    def cache(self) -> Path:
        """The folder in which pytest keeps which tests failed."""
        return Path(".pytest_cache") / self.title.replace(" ", "-")


RUNS = (
    Run("pages and documents", ("--databases=without", *PAGES)),
    Run("other tests", ("--databases=without", *NO_PAGES)),
    *(Run(kind, ("--databases=with", *NO_PAGES), kind) for kind in SELECTED_KINDS),
)


def main(arguments: list[str]) -> int:
    """Run the tests and return the highest exit code; the first output is printed live, the others after it."""
    with ExitStack() as stack:
        # All of them wait for it. A fault in it is shown by the first test that needs it and builds it again.
        stack.enter_context(subprocess.Popen([sys.executable, "-m", "tests.seeded"], stderr=subprocess.DEVNULL))
        outputs = [None, *(stack.enter_context(tempfile.TemporaryFile("w+")) for _ in RUNS[1:])]
        processes = [_start(run, arguments, output) for run, output in zip(RUNS, outputs, strict=True)]
        codes = []
        for run, process, output in zip(RUNS, processes, outputs, strict=True):
            codes.append(process.wait())
            if output is not None:
                output.seek(0)
                _show(f"{run.title}:\n{output.read()}")
    return max(_again(run, code, arguments) for run, code in zip(RUNS, codes, strict=True))


def _again(run: Run, code: int, arguments: list[str]) -> int:
    """Run the few tests that failed by themselves; returns the exit code that counts."""
    if code != pytest.ExitCode.TESTS_FAILED:
        return code
    failed = json.loads((run.cache / "v/cache/lastfailed").read_text())
    if len(failed) > MOST_AGAIN:
        return code
    _show("\n".join((f"{run.title}, again with nothing else beside them:", *failed)))
    return _start(run, ["--last-failed", *arguments], None).wait()


def _start(run: Run, arguments: list[str], output: IO[str] | None) -> subprocess.Popen[str]:
    environment = {**os.environ, "VMSIZES_TEST_DATABASES": run.kind}
    # Each process, and each program that a test starts, would compile all modules again.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    nicer = [] if run is RUNS[-1] else ["nice", "-n", str(LESS)]
    return subprocess.Popen(
        [*nicer, PYTEST, "-o", f"cache_dir={run.cache}", *run.arguments, *arguments],
        env=environment,
        stdout=output,
        stderr=output,
        text=True,
    )


def _show(text: str) -> None:
    print(f"\n{text}", flush=True)  # noqa: T201  # shows what the tests print


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
