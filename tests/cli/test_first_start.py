"""`vmsizes serve` in an empty folder, as `uvx vmsizes serve` runs it: the first start sets up the catalog."""

from pathlib import Path

import pytest

from app.db.engines import make_engine
from app.db.migrations import upgrade
from app.settings import PROJECT
from tests.processes import run_service
from tests.servers import get

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
