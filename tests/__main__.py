"""`python -m tests`: run all tests in parallel processes, one for each kind of database and one for all other tests."""

import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import IO

from tests.databases import SELECTED_KINDS

PYTEST = str(Path(sys.executable).with_name("pytest"))


def main(arguments: list[str]) -> int:
    """Run the tests and return the highest exit code; the first output is printed live, the others after it."""
    runs = [("other tests", SELECTED_KINDS[0], "without"), *((kind, kind, "with") for kind in SELECTED_KINDS)]
    with ExitStack() as stack:
        outputs = [None, *(stack.enter_context(tempfile.TemporaryFile("w+")) for _ in SELECTED_KINDS)]
        processes = [
            _start(kind, [f"--databases={which}", *arguments], output)
            for (_, kind, which), output in zip(runs, outputs, strict=True)
        ]
        codes = []
        for (title, _, _), process, output in zip(runs, processes, outputs, strict=True):
            codes.append(process.wait())
            if output is not None:
                output.seek(0)
                print(f"\n{title}:\n{output.read()}", flush=True)  # noqa: T201  # shows what the tests print
    return max(codes)


def _start(kind: str, arguments: list[str], output: IO[str] | None) -> subprocess.Popen[str]:
    environment = {**os.environ, "VMSIZES_TEST_DATABASES": kind}
    return subprocess.Popen([PYTEST, *arguments], env=environment, stdout=output, stderr=output, text=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
