"""Reads a file as the command line does, or sends a request to a service, and says how that ended."""

import shutil
import signal
import socket
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime
from http import HTTPStatus
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from types import FrameType
from urllib.parse import urljoin

from sqlalchemy import Engine

from app.errors import VmsizesError
from app.ingest.feeds.azure_prices import AZURE_PRICES
from app.ingest.feeds.exchange_rates import run_rate_refresh
from app.ingest.feeds.fetching import PriceFeed
from app.ingest.feeds.price_refresh import run_price_refresh
from app.ingest.feeds.resource_skus import SkuMapper, run_sku_refresh
from app.ingest.registry import read_csv_source, read_pages
from app.ingest.run import ingest
from tests.fuzz.inputs import SEEDS, Input
from tests.processes import ServiceProcess

NOW = datetime(2026, 9, 1, tzinfo=UTC)
DAY = date(2026, 9, 1)
HANG_SECONDS = 20
"""CPU time, as all times here: on a machine that does much else an input may wait for seconds."""
WAIT_SECONDS = 180
"""How long an input may take by the clock, since the CPU time of a database's server is not counted."""
REQUEST_SECONDS = 5
MAX_ANSWER_BYTES = 1_000_000
"""What one request may take, and get: a page of 500 sizes has half of it."""
BASE = ("regions", "gpus", "series")
"""What the catalog has before an input is read."""


class HangError(BaseException):
    """An input took too long; no handler of errors takes it for one of the program's."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How reading ended: `taken`, `refused`, or `crash` and `hang` with a signature that is the same for one cause."""

    kind: str
    seconds: float
    signature: str = ""
    trace: str = ""


def fill(engine: Engine) -> None:
    """Write what inputs refer to."""
    for name in BASE:
        ingest(engine, read_csv_source(name, SEEDS / f"{name}.csv", SEEDS / "sources.csv"), now=NOW)


def run(engine: Engine, folder: Path, given: Input) -> Outcome:
    """Read an input from a file in an empty folder; what it would write is rolled back."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    path = folder / given.name
    path.write_bytes(given.data)
    started = time.process_time()
    try:
        with _time_limit():
            _read(engine, path, given.kind)
    except VmsizesError as error:
        str(error)
        return Outcome("refused", time.process_time() - started)
    except HangError:
        return Outcome("hang", time.process_time() - started, f"hang {given.kind}", traceback.format_exc())
    except Exception as error:  # noqa: BLE001  # every other error is a finding
        return Outcome("crash", time.process_time() - started, _signature(error), traceback.format_exc())
    return Outcome("taken", time.process_time() - started)


def send(service: ServiceProcess, given: Input) -> Outcome:
    """Send a request, and follow where it is redirected to; every status below 500 and 505 is fair."""
    before = service.cpu_seconds
    status, answer, failed = 0, b"", ""
    try:
        status, location, answer = _exchange(service.port, given.data)
        if location:
            method, target, rest = given.data.split(b" ", 2)
            followed = urljoin(target.decode("latin-1"), location).encode("latin-1")
            status, _, answer = _exchange(service.port, b" ".join((method, followed, rest)))
    except (OSError, HTTPException) as error:
        failed = type(error).__name__
    seconds = service.cpu_seconds - before
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR and status != HTTPStatus.HTTP_VERSION_NOT_SUPPORTED:
        failed = str(status)
    elif len(answer) > MAX_ANSWER_BYTES:
        failed = "long answer"
    if failed:
        return Outcome("crash", seconds, f"{failed} {given.kind}", answer[:MAX_ANSWER_BYTES].decode("utf-8", "replace"))
    if seconds > REQUEST_SECONDS:
        return Outcome("hang", seconds, f"hang {given.kind}")
    return Outcome("taken" if status < HTTPStatus.BAD_REQUEST else "refused", seconds)


def _exchange(port: int, sent: bytes) -> tuple[int, str, bytes]:
    """Return the status, the location and the body of an answer."""
    with socket.create_connection(("127.0.0.1", port), timeout=WAIT_SECONDS) as connection:
        connection.sendall(sent)
        with HTTPResponse(connection) as response:
            response.begin()
            return response.status, response.headers.get("location", ""), response.read()


def _read(engine: Engine, path: Path, kind: str) -> None:
    if kind == "documents":
        ingest(engine, read_pages([path], SEEDS), now=NOW, dry_run=True)
    elif kind == "azure-prices":
        run_price_refresh(
            engine, PriceFeed(api=AZURE_PRICES, file=path, accept=True, new_sizes=True), day=DAY, now=NOW, dry_run=True
        )
    elif kind == "azure-skus":
        run_sku_refresh(engine, path, SkuMapper, day=DAY, now=NOW, accept=True, dry_run=True)
    elif kind == "exchange-rates-file":
        run_rate_refresh(engine, now=NOW, file=path, dry_run=True)
    else:
        ingest(engine, read_csv_source(kind, path, SEEDS / "sources.csv"), now=NOW, dry_run=True)


@contextmanager
def _time_limit() -> Iterator[None]:
    def stop(_number: int, _frame: FrameType | None) -> None:
        raise HangError

    clocks = {
        signal.SIGPROF: (signal.ITIMER_PROF, HANG_SECONDS),
        signal.SIGALRM: (signal.ITIMER_REAL, WAIT_SECONDS),
    }
    before = {number: signal.signal(number, stop) for number in clocks}
    for timer, seconds in clocks.values():
        signal.setitimer(timer, seconds)
    try:
        yield
    finally:
        for number, (timer, _) in clocks.items():
            signal.setitimer(timer, 0)
            signal.signal(number, before[number])


def _signature(error: Exception) -> str:
    """Return the type of an error and the last line of the program that it went through."""
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if "/app/" in frame.filename]
    place = f"{Path(own[-1].filename).name}:{own[-1].lineno}" if own else "?"
    return f"{type(error).__name__} {place}"
