"""What a run of a tool came to, as a line to read and as JSON."""

import json
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass

from tests.sdk.tools import ToolFailed


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One tool, the seconds it took, and what it says: its last line, or everything where it failed."""

    tool: str
    version: str
    seconds: float
    passed: bool
    message: str

    def __str__(self) -> str:
        """Give one line, and under it the whole story of a failure."""
        verdict = "ok" if self.passed else "FAILED"
        line = f"{self.tool:34}{self.version:10}{self.seconds:6.1f} s  {verdict:8}"
        return f"{line}{self.message}" if self.passed else f"{line}\n{self.message}"


def timed(tool: str, version: str, act: Callable[[], str]) -> Result:
    """Do something with a tool; gives what it says and how long it took, also where it fails."""
    began = time.perf_counter()
    try:
        says, passed = act(), True
    except ToolFailed as failure:
        says, passed = str(failure), False
    return Result(tool=tool, version=version, seconds=time.perf_counter() - began, passed=passed, message=says)


def print_results(results: Iterable[Result], *, as_json: bool) -> bool:
    """Print results as they come, then how long all took; gives whether all passed."""
    began, passed, told = time.perf_counter(), True, []
    for result in results:
        passed &= result.passed
        told.append(asdict(result))
        if not as_json:
            print(result, flush=True)
    seconds = round(time.perf_counter() - began, 1)
    if as_json:
        print(json.dumps({"seconds": seconds, "passed": passed, "results": told}, indent=1))
    else:
        print(f"{len(told)} results in {seconds} s: {'all passed' if passed else 'FAILED'}")
    return passed
