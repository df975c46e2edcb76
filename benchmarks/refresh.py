"""Measures `vmsizes refresh azure-prices` over loopback: items a second, memory, and a run that is killed and resumed.

The API is a stand-in in a process of its own, so network and vendor are left out: the figure is what the program itself
needs to fetch, map, compare and write. Run with `python -m benchmarks.refresh sqlite`.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import psutil

from app.catalog.readings import Reading, RegionRow
from app.db import migrations
from app.db.engines import make_engine
from app.ingest.run import ingest
from benchmarks.ingest import PROGRAM, SAMPLE_SECONDS
from benchmarks.retail_api import ITEMS, PAGE_ITEMS, region_name
from tests.databases import START, Databases
from tests.factories import NOW, source

Figures = dict[str, object]


@contextmanager
def _api(items: int) -> Iterator[str]:
    command = [sys.executable, "-m", "benchmarks.retail_api", str(items)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def _catalog(databases: Databases, regions: int) -> str:
    """Create a catalog with nothing but regions."""
    url = databases.create()
    engine = make_engine(url)
    migrations.upgrade(engine)
    rows = tuple(
        RegionRow(code=region_name(n), name=region_name(n), geography=None, source="prices", file="regions.csv", line=n)
        for n in range(regions)
    )
    ingest(engine, Reading(sources=(source("prices"),), regions=rows), now=NOW)
    engine.dispose()
    return url


class _Refresh:
    """A running `vmsizes refresh azure-prices`."""

    def __init__(self, database: str, api: str, cache: Path) -> None:
        command = [
            PROGRAM,
            "refresh",
            "azure-prices",
            "--new-sizes",
            "--json",
            "--url",
            f"{api}/api/retail/prices",
            "--cache",
            str(cache),
        ]
        environment = {**os.environ, "VMSIZES_DATABASE_URL": database}
        self.began = time.perf_counter()
        self.process = psutil.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.most = 0.0

    def sample(self) -> bool:
        """Return whether it still runs; notes its private memory."""
        with suppress(psutil.NoSuchProcess):
            memory = self.process.memory_info()
            self.most = max(self.most, memory.rss - memory.shared)
        time.sleep(SAMPLE_SECONDS)
        return self.process.poll() is None

    def finish(self) -> Figures:
        """Wait for the end; return seconds, peak MB, and the digest of the catalog."""
        while self.sample():
            pass
        seconds = time.perf_counter() - self.began
        out, err = self.process.communicate()
        if self.process.returncode:
            raise RuntimeError(err[-500:])
        (feed,) = json.loads(out)["feeds"]
        return {
            "seconds": round(seconds, 1),
            "items": feed["items"],
            "prices": feed["prices"],
            "items per second": round(feed["items"] / seconds),
            "peak MB": round(self.most / 1e6),
            "digest": feed["ingest"]["digest"],
        }


def measure(databases: Databases, folder: Path, *, regions: int, items: int) -> dict[str, Figures]:
    """Run a refresh, the same again, and one that is killed when half of the pages were sent and then resumed."""
    pages = regions * -(-items // PAGE_ITEMS)
    with _api(items) as api, httpx.Client(base_url=api, trust_env=False) as client:

        def sent() -> int:
            return int(client.get("/requests").text)

        url = _catalog(databases, regions)
        whole = _Refresh(url, api, folder / "whole").finish()
        again = _Refresh(url, api, folder / "whole").finish()
        other, before = _catalog(databases, regions), sent()
        killed = _Refresh(other, api, folder / "killed")
        while killed.sample() and sent() - before < pages // 2:
            pass
        with suppress(psutil.NoSuchProcess):
            killed.process.kill()
        killed.process.communicate()
        at_kill = sent() - before
        resumed = _Refresh(other, api, folder / "killed").finish()
        resumed["pages fetched before and after the kill, of"] = [at_kill, sent() - before - at_kill, pages]
    if not whole["digest"] == again["digest"] == resumed["digest"]:
        raise RuntimeError(f"digests differ: {whole}, {again}, {resumed}")
    return {"whole": whole, "again": again, "killed and resumed": resumed}


def main() -> None:
    """Measure on one kind of database and print the figures as JSON."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.refresh", description="A refresh of all prices of Azure."
    )
    parser.add_argument("kind", choices=list(START))
    parser.add_argument("--regions", type=int, default=60)
    parser.add_argument("--items", type=int, default=ITEMS, help="of a region")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="vmsizes-refresh-") as name, START[options.kind](Path(name)) as databases:
        print(json.dumps(measure(databases, Path(name), regions=options.regions, items=options.items), indent=1))


if __name__ == "__main__":
    main()
