"""`vmsizes serve` in an empty folder, as `uvx vmsizes serve` runs it: the first start sets up the catalog."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from app.db.engines import make_engine
from app.db.migrations import upgrade
from app.settings import PROJECT
from tests.processes import free_port, run_service
from tests.servers import get
from tests.waiting import LONGEST_SECONDS, wait_until

pytestmark = pytest.mark.one_database


def start(folder: Path, seeds: Path, **settings: str) -> tuple[int, str]:
    """Start the service in a folder without VMSIZES_DATABASE_URL; return its number of sizes, and what it printed."""
    log = folder / "output.log"
    prefix = ("env", "--chdir", str(folder), "--unset", "VMSIZES_DATABASE_URL")
    with run_service("", log, None, prefix, VMSIZES_SEEDS=str(seeds), VMSIZES_CLOUDS="azure", **settings) as service:
        answer = get(f"{service.url}/sizes?limit=1&status=any")
        return answer.json().get("total", 0), log.read_text()


@pytest.fixture
def seeds(tmp_path: Path) -> Path:
    """A folder with the seeds that are soon read: the sizes of tables, without pages and prices."""
    folder = tmp_path / "seeds"
    folder.mkdir()
    for name in ("sources", "regions", "gpus", "series", "sizes"):
        (folder / f"{name}.csv").symlink_to(PROJECT / "seeds" / f"{name}.csv")
    return folder


@pytest.mark.takes_seconds
def test_the_first_start_sets_up_the_catalog_and_the_next_one_keeps_it(seeds: Path, tmp_path: Path) -> None:
    sizes, printed = start(tmp_path, seeds)
    assert f"It has {sizes:,} sizes" in printed
    assert printed.index("First start: the catalog is written to vmsizes.db") < printed.index("Serving http://")
    again, printed = start(tmp_path, seeds, VMSIZES_WORKERS="2")
    assert (again, "First start" in printed) == (sizes, False)


@pytest.mark.takes_seconds
def test_a_first_start_that_was_broken_off_is_made_good(seeds: Path, tmp_path: Path) -> None:
    engine = make_engine(f"sqlite:///{tmp_path / 'vmsizes.db'}")
    upgrade(engine)
    engine.dispose()
    assert start(tmp_path, seeds)[0] > 0


def test_a_database_of_another_url_is_not_filled(few_size_seeds: Path, tmp_path: Path) -> None:
    with run_service(
        f"sqlite:///{tmp_path / 'other.db'}", tmp_path / "log", VMSIZES_SEEDS=str(few_size_seeds)
    ) as service:
        assert get(f"{service.url}/sizes").status_code == 503
    assert not (tmp_path / "other.db").exists()


@pytest.mark.takes_seconds
def test_what_is_wrong_with_the_seeds_ends_the_start(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="missing: is not a folder; VMSIZES_SEEDS says where the seeds are"):
        start(tmp_path, tmp_path / "missing")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGQUIT])
def test_a_signal_ends_the_first_start_with_all_that_it_started(tmp_path: Path, number: signal.Signals) -> None:
    port = free_port()
    program = str(Path(sys.executable).with_name("vmsizes"))
    environment = {name: value for name, value in os.environ.items() if name != "VMSIZES_DATABASE_URL"}
    with (tmp_path / "log").open("wb") as log:
        serving = subprocess.Popen(
            [program, "serve", "--port", str(port)], cwd=tmp_path, env=environment, stderr=log, stdout=log
        )
        with serving:
            wait_until((tmp_path / "vmsizes.db-wal").exists)  # the seeds are being written
            filling = psutil.Process(serving.pid).children(recursive=True)
            assert filling
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", port))
            serving.send_signal(number)
            assert serving.wait(10) == 128 + number
    assert not psutil.wait_procs(filling, LONGEST_SECONDS)[1]
