"""A plugin for `python -m tests`: collects the tests once, and runs them in forked processes.

A worker that has nothing left to run gets the tests of the next file, so that all cores are busy to the end. What all
tests of a process share is of one kind of database: each kind after the first has a worker of its own, which helps
those of the first when it has run all of its tests.
"""

import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from typing import IO

import pytest

from tests.databases import SELECTED_KINDS, kind_of

LONGEST = (
    "tests/browser",
    "tests/seeds",
    "tests/http/test_bounds.py",
    "tests/telemetry/test_tracing.py",
    "tests/telemetry/test_logs.py",
    "tests/telemetry/test_monitoring.py",
    "tests/api/test_export_streams.py",
    "tests/fit/random_search/test_options.py",
    "tests/sdk/test_generated.py",
    "tests/sdk/test_packages.py",
    "tests/docs/test_examples.py",
    "tests/services/test_placement.py",
    "tests/faults/test_connections.py",
    "tests/faults/test_restarts.py",
    "tests/faults/test_overload.py",
    "tests/api/openapi/test_examples.py",
)
"""What takes longest, begun first: a worker would be left alone with what is begun last."""
TOGETHER = ("tests/browser", "tests/seeds")
"""Folders whose tests share a browser, and what is read of all documents, so that one worker runs all of each."""
LESS = 5
"""How much nicer the workers of the first kind are: they get help, that of another kind has nobody."""


SHARED_CAPTURE = pytest.StashKey[object]()


@dataclass(slots=True)
class Batch:
    """The tests of a file on one kind of database, with their reports, which are shown when all of it has run."""

    kind: str
    items: list[pytest.Item] = field(default_factory=list)
    reports: list[pytest.TestReport] = field(default_factory=list)

    @property
    def left(self) -> int:
        """How many of its tests have not been run."""
        return len(self.items) - sum(report.when == "teardown" for report in self.reports)


@dataclass(slots=True)
class Worker:
    """A process that runs batches of one kind of database."""

    kind: str
    process: int
    connection: Connection
    output: IO[bytes]
    test: str = ""
    """What it has begun last."""
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Sender:
    """A plugin of a worker: sends which test begins, and its reports, to the process that started it."""

    config: pytest.Config
    connection: Connection

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.connection.send(nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.connection.send(self.config.hook.pytest_report_to_serializable(config=self.config, report=report))


def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Run all tests in workers; pytest does what is left, both here and in each worker."""
    if session.testsfailed or session.config.option.collectonly:
        return None
    batches = _batches(session.items)
    workers: list[Worker] = []
    with ExitStack() as stack:
        for kind in _kinds_of_workers():
            here, there = Pipe()
            output = stack.enter_context(tempfile.TemporaryFile())
            sys.stdout.flush()
            process = os.fork()
            if not process:
                here.close()
                _work(session, batches, there, output, nice=LESS if kind == SELECTED_KINDS[0] else 0)
                return True
            there.close()
            workers.append(Worker(kind, process, here, output))
        _hand_out(session, batches, workers)
        for worker in workers:
            _check_end(worker)
    if session.shouldfail:
        raise session.Failed(session.shouldfail)
    return True


def _kinds_of_workers() -> list[str]:
    """Return the kind of each worker; one more than there are cores, as some wait for what they have started."""
    first, *others = SELECTED_KINDS
    return [*others, *[first] * max(2, (os.cpu_count() or 1) + 1 - len(others))]


def _batches(items: Sequence[pytest.Item]) -> list[Batch]:
    """Divide tests by file and kind of database, those of LONGEST first."""
    found: dict[tuple[str, str], Batch] = {}
    for item in items:
        file, kind = item.nodeid.partition("::")[0], kind_of(item)
        name = next((folder for folder in TOGETHER if file.startswith(f"{folder}/")), file)
        found.setdefault((name, kind), Batch(kind)).items.append(item)
    order = {name: number for number, name in enumerate(LONGEST)}
    return [batch for (name, _), batch in sorted(found.items(), key=lambda pair: order.get(pair[0][0], len(order)))]


def _work(
    session: pytest.Session, batches: Sequence[Batch], connection: Connection, output: IO[bytes], *, nice: int
) -> None:
    """Run in this process, a worker, the batches that it is told to; what pytest shows goes to the file `output`."""
    os.nice(nice)
    capture = session.config.pluginmanager.getplugin("capturemanager")
    # Its files are shared by all workers. They stay open: libraries keep the sys.stderr of when they were imported.
    shared, capture._global_capturing = capture._global_capturing, None
    for stream in (1, 2):
        os.dup2(output.fileno(), stream)
    capture.start_global_capturing()
    capture.suspend_global_capture()
    session.config.workerinput = {}  # type: ignore[attr-defined]  # pytest writes its cache where this is not set
    session.config.pluginmanager.register(Sender(session.config, connection))
    items = _assigned(batches, connection)
    item = next(items, None)
    while item is not None:
        following = next(items, None)
        session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        item = following
    connection.close()
    session.stash[SHARED_CAPTURE] = shared


def _assigned(batches: Sequence[Batch], connection: Connection) -> Iterator[pytest.Item]:
    while True:
        connection.send(None)
        number = connection.recv()
        if number is None:
            return
        yield from batches[number].items


def _hand_out(session: pytest.Session, batches: Sequence[Batch], workers: Sequence[Worker]) -> None:
    """Tell workers what to run, and report what they have run; returns when all have ended."""
    hook = session.config.hook
    batch_of = {item.nodeid: batch for batch in batches for item in batch.items}
    waiting = {kind: [n for n, batch in enumerate(batches) if batch.kind == kind] for kind in SELECTED_KINDS}
    running: dict[object, Worker] = {worker.connection: worker for worker in workers}
    while running:
        for connection in wait([worker.connection for worker in running.values()]):
            worker = running[connection]
            try:
                message = worker.connection.recv()
            except EOFError:
                del running[worker.connection]
                continue
            if message is None:
                left = waiting[worker.kind] or waiting[SELECTED_KINDS[0]]
                worker.connection.send(left.pop(0) if left and not session.shouldfail else None)
            elif isinstance(message, str):
                worker.test = message
            else:
                report = hook.pytest_report_from_serializable(config=session.config, data=message)
                worker.failed |= report.failed
                batch = batch_of[report.nodeid]
                batch.reports.append(report)
                if not batch.left:
                    _show(session, batch)


def _check_end(worker: Worker) -> None:
    """Wait for the end of a worker; ends the run if it did not end as the tests that it reported say."""
    _, status = os.waitpid(worker.process, 0)
    code = os.waitstatus_to_exitcode(status)
    if code != (pytest.ExitCode.TESTS_FAILED if worker.failed else pytest.ExitCode.OK):
        worker.output.seek(0)
        print(worker.output.read().decode(errors="replace"))  # noqa: T201  # shows what has ended it
        pytest.exit(f"a worker ended with {code} at {worker.test}", pytest.ExitCode.INTERNAL_ERROR)


def _show(session: pytest.Session, batch: Batch) -> None:
    for report in batch.reports:
        if report.when == "setup":
            session.config.hook.pytest_runtest_logstart(nodeid=report.nodeid, location=report.location)
        session.config.hook.pytest_runtest_logreport(report=report)
