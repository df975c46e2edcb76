"""Measures bulk ingest: prices into a catalog without any, by the service and by the bare driver in turn, A B A B.

*Writing* is from rows that are read and checked to committed prices. The service's side is `stage_prices` and
`merge_prices`, which every ingest runs, with its counts; the other is one executemany, or one COPY, of ready tuples
into the same table with its constraints. A *whole* ingest is `vmsizes ingest prices FILE` from its start to its end:
parsing, references, offers, digest, revision; the other is `csv.reader` and the driver.
"""

import argparse
import gc
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import psutil
from sqlalchemy import Engine

from app.catalog.readings import no_progress
from app.catalog.resolution.subjects import SubjectKeys
from app.catalog.store.prices import STAGED_PRICE, PriceStaging, merge_prices, stage_prices
from app.catalog.store.upsert import temporary_tables
from app.db.engines import make_engine
from app.db.writing import write_session
from benchmarks.bare_ingest import write_csv, write_rows
from benchmarks.build import catalog_without_prices
from benchmarks.catalogs import MIDDLE, REGIONS, TODAY, Scale
from benchmarks.price_files import PriceFiles, make_prices
from benchmarks.ratios import Spread, paired, spread
from tests.databases import START, Databases

PAIRS = 3
SAMPLE_SECONDS = 0.02
PROGRAM = str(Path(sys.executable).with_name("vmsizes"))
Figures = dict[str, Spread]


def measure_ingest(kind: str, folder: Path, *, scale: Scale = MIDDLE, pairs: int = PAIRS) -> Figures:
    """Measure on one kind of database, `sqlite` or `postgresql`, with files in a folder.

    Ratios are the reference's seconds by the service's: "ratio" of writing, "whole ratio" of a whole ingest. "again"
    and "changed" are whole ingests of the same prices, and with a hundredth of them changed, into the catalog that has
    them.
    """
    made = make_prices(folder, scale)
    gc.collect()
    gc.freeze()  # keep the collector from scanning the synthetic prices while either side runs
    with START[kind](folder) as databases:
        empty = catalog_without_prices(databases.create(), scale)
        runs = [_writing(databases, empty, made) | _whole(databases, empty, made) for _ in range(pairs)]
    seconds = {name: [run[name] for run in runs] for name in runs[0]}
    memory = seconds.pop("MB")
    return {
        "ratio": paired(seconds["reference"], seconds["subject"]),
        "whole ratio": paired(seconds["whole reference"], seconds["whole"]),
        **{f"{name} rows per second": spread([scale.prices / one for one in all_]) for name, all_ in seconds.items()},
        "whole MB": spread(memory),
    }


def _writing(databases: Databases, empty: str, made: PriceFiles) -> dict[str, float]:
    """Return the seconds to write the prices, by the service and by the driver."""
    seconds = {}
    for name, write in (("subject", save_prices), ("reference", write_rows)):
        with _copy(databases, empty) as url, _engine(url) as engine:
            seconds[name] = _seconds(partial(write, engine, made))
    return seconds


def save_prices(engine: Engine, made: PriceFiles) -> None:
    """Write prices as an ingest does; raises RuntimeError where it counts another number."""
    subjects = SubjectKeys(aliases={}, series_ids={})
    with write_session(engine) as session, temporary_tables(session, STAGED_PRICE):
        staging = PriceStaging(subjects=subjects, regions=dict.fromkeys(REGIONS, "azure"), progress=no_progress)
        stage_prices(session, made.prices, staging)
        change, _ = merge_prices(session, staging, TODAY)
    if change.added != len(made.rows):
        raise RuntimeError(f"{change} of {len(made.rows)} prices")


def _whole(databases: Databases, empty: str, made: PriceFiles) -> dict[str, float]:
    """Return the seconds of whole ingests, and their peak memory in MB."""
    seconds, memory = {}, []
    with _copy(databases, empty) as url:
        for name, file in (("whole", made.file), ("again", made.file), ("changed", made.changed_file)):
            started = time.perf_counter()
            memory.append(ingest(url, file))
            seconds[name] = time.perf_counter() - started
    with _copy(databases, empty) as url, _engine(url) as engine:
        seconds["whole reference"] = _seconds(partial(write_csv, engine, made.file))
    return seconds | {"MB": max(memory)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """What a command took: seconds of CPU, and its peak private memory in MB, without the mapped database."""

    cpu_seconds: float
    megabytes: float


def ingest(url: str, file: Path) -> float:
    """Run `vmsizes ingest prices`; return its peak private memory in MB. Raises RuntimeError where it fails."""
    return run_command(url, "ingest", "prices", str(file)).megabytes


def run_command(url: str, *arguments: str) -> Used:
    """Run `vmsizes` with arguments on a database; raises RuntimeError where it fails."""
    environment = {**os.environ, "VMSIZES_DATABASE_URL": url}
    command = [PROGRAM, *arguments, "--json"]
    with tempfile.TemporaryFile() as said:
        process = psutil.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=said)
        most, used = 0, 0.0
        while process.poll() is None:
            with suppress(psutil.NoSuchProcess):
                memory, times = process.memory_info(), process.cpu_times()
                most, used = max(most, memory.rss - memory.shared), times.user + times.system
            time.sleep(SAMPLE_SECONDS)
        if process.returncode:
            said.seek(0)
            raise RuntimeError(f"{' '.join(command)}: {said.read().decode()[-300:]}")
    return Used(cpu_seconds=used, megabytes=most / 1e6)


@contextmanager
def _copy(databases: Databases, url: str) -> Iterator[str]:
    made = databases.copy(url)
    yield made
    databases.drop(made)


@contextmanager
def _engine(url: str) -> Iterator[Engine]:
    engine = make_engine(url)
    yield engine
    engine.dispose()


def _seconds(run: Callable[[], object]) -> float:
    started = time.perf_counter()
    run()
    return time.perf_counter() - started


def main() -> None:
    """Measure one kind of database and print the figures as JSON."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.ingest", description="Bulk ingest of two million prices."
    )
    parser.add_argument("kind", choices=list(START))
    parser.add_argument("--prices", type=int, default=MIDDLE.prices, help="how many, a multiple of 10,000")
    parser.add_argument("--pairs", type=int, default=PAIRS)
    options = parser.parse_args()
    scale = Scale(sizes=MIDDLE.sizes, prices=options.prices)
    with tempfile.TemporaryDirectory(prefix="vmsizes-ingest-") as folder:
        figures = measure_ingest(options.kind, Path(folder), scale=scale, pairs=options.pairs)
    print(json.dumps({name: asdict(figure) for name, figure in figures.items()}, indent=1))


if __name__ == "__main__":
    main()
