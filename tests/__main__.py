"""`python -m tests`: run all tests in parallel processes, which `tests/workers.py` describes.

The processes share the cores with the servers and browsers that they start.
"""

import os
import subprocess
import sys

from tests.databases import SELECTED_KINDS

CACHE = ".pytest_cache/all"


def main(arguments: list[str]) -> int:
    """Run the tests and return pytest's exit code."""
    environment = {**os.environ, "VMSIZES_TEST_DATABASES": ",".join(SELECTED_KINDS)}
    # Each process, and each program that a test starts, would compile all modules again.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    command = [sys.executable, "-m", "pytest", "-o", f"cache_dir={CACHE}", "-p", "tests.workers", *arguments]
    # The workers wait for it. A fault in it is shown by the first test that needs it and builds it again.
    with subprocess.Popen([sys.executable, "-m", "tests.seeded"], stderr=subprocess.DEVNULL):
        return subprocess.run(command, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
