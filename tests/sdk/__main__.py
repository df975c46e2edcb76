"""`python -m tests.sdk clients` tests generated clients, `contract` runs the gates, `packages` builds the clients."""

import argparse
import os
import shutil
import sys
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.metadata import version
from pathlib import Path

from app.settings import PROJECT
from tests.sdk.building import build, run_program
from tests.sdk.gates import DOCUMENT, all_gates
from tests.sdk.later_version import later_version
from tests.sdk.releasing import BUILD, NEEDS, PACKAGES
from tests.sdk.reports import expected
from tests.sdk.results import Result, print_results, timed
from tests.sdk.serving import seeded_service
from tests.sdk.toolchains import TOOLCHAINS, Toolchain
from tests.sdk.tools import ToolFailed, locked_version, missing
from tests.servers import server

BUILT = PROJECT / "build" / "sdk"


def main() -> int:
    """Run the command line; returns the exit code, 1 if anything failed or is not installed."""
    options = _options()
    results = {
        "clients": lambda: all_clients(options.only),
        "contract": lambda: all_gates(options.seconds, options.seed),
        "packages": all_packages,
    }
    return 0 if print_results(results[options.what](), as_json=options.json) else 1


def all_clients(only: Collection[str] | None) -> Iterator[Result]:
    """Generate, compile and run every client against the service and against a later version; yields the results.

    As many at once as there are cores: most generators and compilers use one.
    """
    shutil.rmtree(BUILT, ignore_errors=True)
    chosen = [toolchain for toolchain in TOOLCHAINS if not only or toolchain.name in only]
    with (
        seeded_service("sqlite") as service,
        server(service) as now,
        server(later_version(service, DOCUMENT)) as later,
        ThreadPoolExecutor(os.cpu_count()) as threads,
    ):
        yield from threads.map(
            lambda one: timed(one.name, locked_version(one.package), partial(check_client, one, now, later)), chosen
        )


def check_client(toolchain: Toolchain, *urls: str) -> str:
    """Build one client and run it against each service; returns a summary. Raises ToolFailed."""
    absent = missing(toolchain.needs)
    if absent:
        raise ToolFailed(absent)
    folder = BUILT / toolchain.name
    build(toolchain, DOCUMENT.parent, folder)
    for url in urls:
        report, plain = run_program(toolchain, folder, url), expected(url)
        if report != plain:
            wrong = {name: (report.get(name), value) for name, value in plain.items() if report.get(name) != value}
            raise ToolFailed(f"{toolchain.name} reports other values than plain HTTP: {wrong}")
    return f"{plain['total']} sizes in pages, a size, a problem, CSV, fit and estimate; the same with a later version"


def all_packages() -> Iterator[Result]:
    """Build the released clients; yields the results."""
    shutil.rmtree(PACKAGES, ignore_errors=True)
    for language, build_package in BUILD.items():
        yield timed(language, version("vmsizes"), partial(_packed, language, build_package))


def _packed(language: str, build_package: Callable[[Path], Path]) -> str:
    absent = missing(NEEDS[language])
    if absent:
        raise ToolFailed(absent)
    return build_package(PACKAGES / language).relative_to(PROJECT).as_posix()


def _options() -> argparse.Namespace:
    names = [toolchain.name for toolchain in TOOLCHAINS]
    parser = argparse.ArgumentParser(prog="python -m tests.sdk", description=__doc__)
    parser.add_argument("what", choices=["clients", "contract", "packages"])
    parser.add_argument(
        "--only", action="append", metavar="NAME", choices=names, help="only this client; may be repeated"
    )
    parser.add_argument(
        "--seconds", type=int, default=30, help="the longest time of each of three fuzzing runs on each database"
    )
    parser.add_argument("--seed", type=int, help="seed of the fuzzer; random by default")
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
