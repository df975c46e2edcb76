"""`python -m tests`: run all tests in parallel processes, which `tests/workers.py` describes.

The processes share the cores with the servers and browsers that they start. A few tests that fail beside all that are
run again when nothing else runs, and must pass then; both outcomes are printed.
"""

import json
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from tests.databases import SELECTED_KINDS

MOST_AGAIN = 3
"""If more tests fail, it is not for what else the machine does."""
CACHE = Path(".pytest_cache/all")
FAILED = CACHE / "v/cache/lastfailed"
"""Where pytest keeps which tests failed."""


def main(arguments: list[str]) -> int:
    """Run the tests and return the exit code that counts."""
    FAILED.unlink(missing_ok=True)  # pytest keeps the failures of tests that are gone, or have another id
    # The workers wait for it. A fault in it is shown by the first test that needs it and builds it again.
    with subprocess.Popen([sys.executable, "-m", "tests.seeded"], stderr=subprocess.DEVNULL):
        code = _run(["-p", "tests.workers", *arguments], ",".join(SELECTED_KINDS))
    if code != pytest.ExitCode.TESTS_FAILED:
        return code
    failed = json.loads(FAILED.read_text())
    if len(failed) > MOST_AGAIN:
        return code
    return max(_run(tests, kind) for kind, tests in _by_kind(failed).items())


def _by_kind(tests: list[str]) -> dict[str, list[str]]:
    """Divide tests by the kind of database that they are run on: the first, where their ids name none."""
    found = defaultdict(list)
    for test in tests:
        parameters = test.partition("[")[2].removesuffix("]").split("-")
        found[next((kind for kind in SELECTED_KINDS if kind in parameters), SELECTED_KINDS[0])].append(test)
    return found


def _run(arguments: list[str], kinds: str) -> int:
    environment = {**os.environ, "VMSIZES_TEST_DATABASES": kinds}
    # Each process, and each program that a test starts, would compile all modules again.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-m", "pytest", "-o", f"cache_dir={CACHE}", *arguments]
    return subprocess.run(command, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
