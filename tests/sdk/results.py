"""The result of running a tool, as a line of text and as JSON."""

import json
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass

from tests.sdk.tools import ToolFailed


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One tool, the seconds it took, and its message: its last line, or its whole output if it failed."""

    tool: str
    version: str
    seconds: float
    passed: bool
    message: str

    def __str__(self) -> str:
        """Return one line, followed by the whole output of a failure."""
        verdict = "ok" if self.passed else "FAILED"
        line = f"{self.tool:34}{self.version:10}{self.seconds:6.1f} s  {verdict:8}"
        return f"{line}{self.message}" if self.passed else f"{line}\n{self.message}"


def timed(tool: str, version: str, act: Callable[[], str]) -> Result:
    """Run a function and return its message and time as a result; ToolFailed makes a failed result."""
    began = time.perf_counter()
    try:
        message, passed = act(), True
    except ToolFailed as failure:
        message, passed = str(failure), False
    return Result(tool=tool, version=version, seconds=time.perf_counter() - began, passed=passed, message=message)


def print_results(results: Iterable[Result], *, as_json: bool) -> bool:
    """Print results as they arrive, then the total time; returns whether all passed."""
    began, passed, printed = time.perf_counter(), True, []
    for result in results:
        passed &= result.passed
        printed.append(asdict(result))
        if not as_json:
            print(result, flush=True)
    seconds = round(time.perf_counter() - began, 1)
    if as_json:
        print(json.dumps({"seconds": seconds, "passed": passed, "results": printed}, indent=1))
    else:
        print(f"{len(printed)} results in {seconds} s: {'all passed' if passed else 'FAILED'}")
    return passed
