"""`python -m tests.cases FILE.csv [--url URL]`: check every case of a file, in process or against a URL."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from app.main import create_app
from app.settings import Settings
from tests.cases.case_file import read_cases
from tests.cases.markdown import table
from tests.cases.runner import Result, run
from tests.seeded import seeded_sqlite_url
from tests.servers import open_client, server


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a line for each case and the totals; return 0 where all passed."""
    parser = argparse.ArgumentParser(prog="python -m tests.cases", description="Compare published figures with ours.")
    parser.add_argument("file", type=Path, help="CSV: id,kind,inputs_json,expected,unit,tolerance_pct,source")
    parser.add_argument("--url", help="base URL of a service; by default, the app in this process")
    parser.add_argument("--table", action="store_true", help="print the table of the snapshot instead")
    options = parser.parse_args(arguments)
    with service(options.url) as url, open_client(url) as client:
        results = list(run(read_cases(options.file), client))
    passed = sum(result.passed for result in results)
    shown = (
        [table(results)] if options.table else [*map(line, results), f"{passed} passed, {len(results) - passed} failed"]
    )
    sys.stdout.write("\n".join(shown) + "\n")
    return 0 if passed == len(results) else 1


@contextmanager
def service(url: str | None) -> Iterator[str]:
    """Yield the URL of the service: the given one, or that of one in this process with a catalog of the seeds."""
    if url is not None:
        yield url
        return
    with server(create_app(Settings(_env_file=None, database_url=seeded_sqlite_url()))) as here:
        yield here


def line(result: Result) -> str:
    """Format a case: id, expected, got, deviation, pass."""
    case, off = result.case, result.deviation_percent
    got = "-" if result.got is None else f"{result.got:.10g}"
    shown = "-" if off is None else f"{off:+.3f}%"
    verdict = "pass" if result.passed else f"FAIL {result.trouble}".rstrip()
    return f"{case.id:6} {case.expected:<14.10g} {got:<16} {case.unit:12} {shown:>10} {verdict}"


if __name__ == "__main__":
    sys.exit(main())
