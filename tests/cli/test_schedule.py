"""`vmsizes refresh --every`: a process that goes on refreshing until SIGTERM."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Queue
from threading import Thread

import pytest
import typer
from sqlalchemy import Engine
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from app.cli.jobs import parse_interval
from app.ingest.run import ingest
from tests.cli.conftest import Run
from tests.factories import NOW, reading, size
from tests.ingest.feeds.fake_api import FakeApi, serving
from tests.ingest.feeds.meters import in_region
from tests.ingest.feeds.test_exchange_rates import HISTORY, zipped
from tests.servers import server
from tests.waiting import LONGEST_SECONDS, wait_until

pytestmark = pytest.mark.one_database  # when a run begins and ends; tests/ingest/feeds writes to every kind

RUN = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ (refreshed|failed): .*; took \d+\.\d s")


class Refreshing:
    """A running `vmsizes refresh --every`, and the lines that it prints."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process, self._lines = process, Queue[str]()
        self.reader = Thread(target=self._read)
        self.reader.start()

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            self._lines.put(line.rstrip("\n"))

    def next_line(self) -> str:
        """Return the next line that it prints, waiting for it."""
        return self._lines.get(timeout=LONGEST_SECONDS)

    @property
    def has_printed(self) -> bool:
        """Whether there is a line that was not asked for yet."""
        return not self._lines.empty()

    def stop(self) -> int:
        """Send SIGTERM, and return the exit code when the process has ended."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=LONGEST_SECONDS)


@pytest.fixture
def small_catalog(engine: Engine, database_url: str) -> str:
    """A catalog of one size and one region."""
    ingest(engine, reading(size("Standard_B16als_v2", vcpus=16), regions=["eastus"]), now=NOW)
    engine.dispose()
    return database_url


@contextmanager
def refreshing(url: str, interval: str, folder: Path, **settings: str) -> Iterator[Refreshing]:
    """Run `vmsizes refresh --every`, with the European Central Bank's file from a server of our own."""

    async def rates(_request: Request) -> Response:
        return Response(zipped(HISTORY))

    program = str(Path(sys.executable).with_name("vmsizes"))
    with server(Starlette(routes=[Route("/rates.zip", rates)])) as bank:
        environment = {
            **os.environ,
            "VMSIZES_DATABASE_URL": url,
            "VMSIZES_FEEDS": str(folder),
            "VMSIZES_EXCHANGE_RATES_URL": f"{bank}/rates.zip",
            **settings,
        }
        command = [program, "refresh", "--every", interval]
        with subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as process:
            running = Refreshing(process)
            try:
                yield running
            finally:
                process.kill()
                running.reader.join()


def eastus(**more: object) -> FakeApi:
    return FakeApi(items={"eastus": in_region("eastus")}, **more)  # type: ignore[arg-type]  # knobs of the stand-in


@pytest.mark.takes_seconds
def test_a_run_that_fails_is_one_line_and_the_next_one_comes(small_catalog: str, tmp_path: Path) -> None:
    api = eastus(fault=lambda _region, page, before: (404, {}) if page + before == 1 else None)
    with serving(api), refreshing(small_catalog, "1s", tmp_path, VMSIZES_AZURE_PRICES_URL=api.url) as running:
        first, second = running.next_line(), running.next_line()
        assert RUN.fullmatch(first)
        assert RUN.fullmatch(second)
        assert " failed: azure-prices of " in first
        assert "0 of 1 region, 0 prices from 0 items | refused: eastus: 127.0.0.1 answered 404" in first
        assert "exchange-rates: 5 rates of 2 new days until 2026-01-02" in first
        assert " refreshed: azure-prices of " in second
        assert "1 of 1 region, 8 prices from 13 items; exchange-rates: 0 rates of 0 new days; revision 3" in second


@pytest.mark.takes_seconds
def test_sigterm_between_two_runs_ends_it_long_before_the_next_with_0(small_catalog: str, tmp_path: Path) -> None:
    api = eastus()
    with serving(api), refreshing(small_catalog, "24h", tmp_path, VMSIZES_AZURE_PRICES_URL=api.url) as running:
        assert " refreshed: " in running.next_line()
        assert (running.stop(), running.has_printed) == (0, False)


@pytest.mark.takes_seconds
def test_sigterm_during_a_run_ends_it_with_0_and_writes_nothing(run: Run, small_catalog: str, tmp_path: Path) -> None:
    before = run(small_catalog, "revisions", "--json").stdout
    api = eastus(held=True)
    with serving(api), refreshing(small_catalog, "24h", tmp_path, VMSIZES_AZURE_PRICES_URL=api.url) as running:
        wait_until(lambda: api.running)
        assert (running.stop(), running.has_printed) == (0, False)
        api.held = False
    assert run(small_catalog, "revisions", "--json").stdout == before


@pytest.mark.takes_seconds
def test_a_database_that_cannot_be_reached_fails_a_run_and_not_the_process(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/no-such-folder/vmsizes.db"
    with refreshing(url, "1s", tmp_path) as running:
        for _ in range(2):
            line = running.next_line()
            assert RUN.fullmatch(line)
            assert "failed: There is no folder" in line
        assert running.stop() == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--every", "daily"), "'daily' is not an interval: write a whole number with s, m, h or d"),
        (("--every", "0s"), "'0s' is not an interval"),
        (("--every", "400d"), "from 1s to 366d"),
        (("--every", "24h", "--json"), "give neither --json nor --accept"),
        (("--every", "24h", "--accept"), "give neither --json nor --accept"),
        (("--every", "24h", "azure-prices"), "it cannot be given with one feed"),
    ],
)
def test_what_cannot_be_repeated_is_refused(
    run: Run, seeded_url: str, arguments: tuple[str, ...], message: str
) -> None:
    done = run(seeded_url, "refresh", *arguments)
    assert done.returncode == 2
    assert message in " ".join(done.stderr.split())


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("30m", 1800), ("24h", 86_400), (" 7d ", 604_800)])
def test_an_interval_is_a_number_with_its_unit(text: str, seconds: int) -> None:
    assert parse_interval(text) == seconds


@pytest.mark.parametrize("text", ["", "24", "h", "1.5h", "-1h", "1h30m", "99999999d"])
def test_what_is_no_interval_is_refused_with_what_is_allowed(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="from 1s to 366d, such as 24h"):
        parse_interval(text)
