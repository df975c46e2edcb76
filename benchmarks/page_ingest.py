"""Measures `vmsizes ingest documents` of one page beside as many facts as a whole market of pages states.

`python -m benchmarks.page_ingest sqlite` (or `postgresql`) prints the CPU seconds and the memory of the command for a
page of a series that the catalog does not have, and for a page that states other figures than before.
"""

import argparse
import json
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from app.db import migrations
from app.db.engines import make_engine
from benchmarks.ingest import Used, run_command
from benchmarks.ratios import Spread, spread
from tests.databases import START

PAGES, SIZES_A_PAGE = 2_820, 20
"""905,220 facts: 16 of each size, and 21 of each series."""
PAGE = """\
---
id: made-up-{number:05}-2026-01-01
title: "Made-up {number} series"
series: Made-up {number}
publisher: Microsoft
kind: vendor_page
url: https://example.org/made-up-{number}
published_on: 2026-01-01
---

# Made-up {number} series

[Premium Storage](https://example.org): Supported<br>
[Accelerated Networking](https://example.org): Supported<br>
[Live Migration](https://example.org): Supported<br>
[Ephemeral OS Disks](https://example.org): Not Supported<br>
[Nested Virtualization](https://example.org): Supported<br>

| Size | vCPU | Memory: GiB | Temp storage (SSD) GiB | Max data disks | Max temp storage throughput: IOPS/MBps \
| Max uncached disk throughput: IOPS/MBps | Max NICs | Max network bandwidth (Mbps) |
|---|---|---|---|---|---|---|---|---|
{rows}
"""

Figures = dict[str, Spread]


def write_page(folder: Path, number: int, *, gib_per_vcpu: int = 4) -> Path:
    """Write the page of a series with 20 sizes, and return its file."""
    file = folder / f"made-up-{number:05}.md"
    rows = "\n".join(_row(number, place, gib_per_vcpu) for place in range(SIZES_A_PAGE))
    file.write_text(PAGE.format(number=number, rows=rows), encoding="utf-8")
    return file


def _row(number: int, place: int, gib_per_vcpu: int) -> str:
    vcpus = 2 * (place + 1)
    cells = (
        *(f"Standard_S{number:05}{chr(ord('a') + place)}_v{vcpus}", vcpus, gib_per_vcpu * vcpus, 16 * vcpus),
        *(min(64, vcpus), f"{9000 * vcpus}/{60 * vcpus}", f"{3200 * vcpus}/{48 * vcpus}"),
        *(min(8, 1 + place), 1000 * vcpus),
    )
    return "| " + " | ".join(map(str, cells)) + " |"


def measure_page(kind: str, folder: Path, *, pages: int = PAGES, pairs: int = 3) -> Figures:
    """Measure on one kind of database, `sqlite` or `postgresql`, with files in a folder: CPU seconds and MB."""
    known, others = folder / "known", folder / "others"
    known.mkdir()
    others.mkdir()
    for number in range(pages):
        write_page(known, number)
    with START[kind](folder) as databases:
        url = databases.create()
        engine = make_engine(url)
        migrations.upgrade(engine)
        engine.dispose()
        run_command(url, "ingest", "documents", str(known))

        def ingested(page: Callable[[int], Path]) -> list[Used]:
            return [run_command(url, "ingest", "documents", str(page(each))) for each in range(pairs)]

        new = ingested(lambda each: write_page(others, pages + each))
        changed = ingested(lambda each: write_page(known, each, gib_per_vcpu=8))
    return {
        "new: CPU s": spread([one.cpu_seconds for one in new]),
        "changed: CPU s": spread([one.cpu_seconds for one in changed]),
        "MB": spread([one.megabytes for one in (*new, *changed)]),
    }


def main() -> None:
    """Measure one kind of database and print the figures as JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.page_ingest", description=__doc__)
    parser.add_argument("kind", choices=list(START))
    parser.add_argument("--pages", type=int, default=PAGES, help="how many the catalog has, of 20 sizes each")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="vmsizes-page-") as folder:
        figures = measure_page(options.kind, Path(folder), pages=options.pages)
    print(json.dumps({name: asdict(figure) for name, figure in figures.items()}, indent=1))


if __name__ == "__main__":
    main()
