"""Reading in a process of its own: the same blocks, the same errors, and no process that is left."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import psutil
import pytest

from app.catalog.readings import PriceBlock
from app.errors import BadData
from app.ingest.sources import prices as price_files
from app.ingest.sources.claims import read_sources
from app.ingest.sources.prices import CAN_READ_ASIDE, COLUMNS, read_aside, read_prices
from tests.factories import price_rows
from tests.waiting import wait_until

pytestmark = pytest.mark.skipif(not CAN_READ_ASIDE, reason="only Linux with several processors reads so")

Block = tuple[int, list[int]]


def numbers(end: int, error: Exception | None = None) -> Iterator[Block]:
    """Yield the process that counts, and blocks that are longer than a pipe's buffer."""
    yield from ((os.getpid(), [number] * 100_000) for number in range(end))
    if error is not None:
        raise error


def counted(blocks: Iterator[Block]) -> list[int]:
    return [block[0] for _, block in blocks]


def is_running(process: int) -> bool:
    try:
        return psutil.Process(process).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def children() -> list[psutil.Process]:
    """Return the processes of this one, but for the one that multiprocessing keeps after a pool of another test."""
    return [child for child in psutil.Process().children() if "resource_tracker" not in " ".join(child.cmdline())]


def test_blocks_come_in_their_order_from_another_process() -> None:
    blocks = [*read_aside(partial(numbers, 20))]
    assert counted(iter(blocks)) == [*range(20)]
    assert {process for process, _ in blocks}.isdisjoint({os.getpid()})
    assert not children()


def test_an_error_comes_after_the_blocks_before_it() -> None:
    raised = BadData("is wrong", file="a.csv", line=7, column="size")
    seen: list[Block] = []
    with pytest.raises(BadData) as caught:
        seen.extend(read_aside(partial(numbers, 2, raised)))
    assert counted(iter(seen)) == [0, 1]
    assert vars(caught.value) == vars(raised)
    assert str(caught.value) == str(raised)
    assert not children()


def test_the_process_ends_when_no_more_blocks_are_wanted() -> None:
    blocks = read_aside(partial(numbers, 1_000))
    next(blocks)
    assert len(children()) == 1
    blocks.close()  # type: ignore[attr-defined]
    assert not children()


def test_a_process_that_is_killed_is_an_error() -> None:
    blocks = read_aside(partial(numbers, 1_000))
    process, _ = next(blocks)
    os.kill(process, signal.SIGKILL)
    with pytest.raises(ChildProcessError, match="was ended"):
        list(blocks)
    assert not children()


READER = """
import os, time
from app.ingest.sources.prices import read_aside
def numbers():
    yield os.getpid()
    yield from ["x" * 1_000_000] * 1_000
blocks = read_aside(numbers)
print(next(blocks), flush=True)
time.sleep(60)
"""


def test_the_process_ends_with_the_one_that_made_it() -> None:
    with subprocess.Popen([sys.executable, "-c", READER], stdout=subprocess.PIPE, text=True) as reader:
        assert reader.stdout is not None
        process = int(reader.stdout.readline())
        assert is_running(process)
        reader.kill()
    wait_until(lambda: not is_running(process))


@pytest.mark.parametrize("cell", ["1.5", "free"])
def test_a_long_file_of_prices_is_read_as_a_short_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cell: str
) -> None:
    path = tmp_path / "prices.csv"
    (tmp_path / "sources.csv").write_text("id,title,publisher,kind,url,published_on\nlist,A list,X,third_party,,\n")
    lines = [f"x{n},eastus,linux,spot,{cell if n == 2_500 else n + 1},2026-06-18,false,list" for n in range(3_000)]
    path.write_text("\n".join((",".join(COLUMNS), *lines)) + "\n")

    def read() -> tuple[list[object], str]:
        rows: list[object] = []
        try:
            rows.extend(price_rows(read_prices(path, read_sources(tmp_path / "sources.csv")).prices))
        except BadData as error:
            return rows, str(error)
        return rows, ""

    here = read()
    monkeypatch.setattr(price_files, "_LONG_BYTES", 0)
    asked: list[object] = []

    def read_and_note(blocks: Callable[[], Iterator[PriceBlock]]) -> Iterator[PriceBlock]:
        asked.append(blocks)
        return read_aside(blocks)

    monkeypatch.setattr(price_files, "read_aside", read_and_note)
    assert read() == here
    assert len(asked) == 1
    assert here[1].startswith("" if cell == "1.5" else f"{path}:2502: column 'usd_per_hour': 'free': must be a number")
    assert len(here[0]) == (3_000 if cell == "1.5" else 2_000)


@pytest.mark.parametrize("is_long", [False, True])
def test_a_file_that_vanishes_before_it_is_read_is_named(
    is_long: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(price_files, "_LONG_BYTES", 0 if is_long else 2**60)
    path = tmp_path / "prices.csv"
    path.write_text(",".join(COLUMNS) + "\n")
    reading = read_prices(path, {})
    path.unlink()
    with pytest.raises(BadData, match=f"{path.name}.*cannot be read: No such file"):
        list(price_rows(reading.prices))
