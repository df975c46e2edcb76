"""Measures what grows with the catalog: lists over 1,000 and over 100,000 sizes, with 10 prices each.

`python -m benchmarks.growth` prints a table of both catalogs, which it builds; two URLs behind it name others, of
SQLite or PostgreSQL. Lists are found in the process: without HTTP, which costs the same for both. *First* is a question
that was not asked before, *again* one whose total and texts were looked for already; no answer is cached. On SQLite CPU
time, on PostgreSQL, which computes in processes of its own, the time that passes; medians.
"""

import argparse
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy.orm import Session

from app.catalog.queries.facets import find_facets
from app.catalog.queries.params import SORT_KEYS, SizeFilter, SizeSearch
from app.catalog.queries.prices import AllPricesSearch, find_all_prices
from app.catalog.queries.sizes import find_sizes
from app.catalog.queries.snapshot import Catalog, CatalogSnapshot, KeptAnswers, load_snapshot
from app.db.engines import make_engine
from app.http.canonical import parse_query
from benchmarks.build import CACHE_FOLDER, sqlite_catalog
from benchmarks.catalogs import FEW, MANY, TODAY

WARM, FIRST = 3.0, 5.0
"""How many times as long a question may take over 100 times the data: asked again, and for the first time."""
UNFELT_MS = 5.0
"""What grows, but stays below this, is no delay that anyone feels: the network alone takes longer."""
REPEATED = 5

FILTERS = (
    *("q=standard", "q=s0005", "q=nothinglike", "q=standard made-up", "name=s000500_v2", "name=s0005*"),
    *(
        "name=*_v96",
        "name=standard_s00*",
        "series=series00007",
        "gpu=Made-up 80GB",
        "gpu=Made-up*",
        "gpu_vendor=NVIDIA",
    ),
    *("verified=true", "verified=false", "disputed=true", "status=any", "status=preview", "status=retired"),
    *("available_in=eastus", "available_in=eastus,region05", "min_gpu_mem=80", "min_gpu_mem=2000", "max_gpu_mem=8"),
    *("min_gpu_mem_per_gpu=80", "min_gpu_mem_per_gpu=200", "max_gpu_mem_per_gpu=24", "min_gpus=16", "max_gpus=1/4"),
    *("min_vcpus=4", "min_vcpus=190", "min_vcpus=500", "max_vcpus=2", "min_memory=64", "min_memory=3000"),
    *("min_local_disk=6000", "min_network_gbps=190", "infiniband=true", "min_infiniband_gbps=6000", "nvlink=true"),
    *("arch=arm64", "premium_storage=true", "hibernation=false", "min_usd_per_hour=1", "min_usd_per_hour=500"),
    *("max_usd_per_hour=10", "max_usd_per_hour=0.05"),
)
SCOPES = (
    *("os=windows", "purchase=spot", "purchase=savings_1y", "region=eastus,region05"),
    "region=region01,region05,region09",
)
PRICES = (
    *("", "region=eastus", "region=region16", "region=region18", "region=eastus,region05", "os=windows"),
    *("purchase=spot", "purchase=reserved_1y", "region=eastus&os=linux&purchase=spot", "size=s000500_v2"),
    *("series=series00007", "gpu=Made-up 80GB", "gpu=Made-up*", "gpu=Made-up 80GB&region=eastus", "history=true"),
    *("history=true&region=eastus", "as_of=2026-05-01", "as_of=2020-01-01", "known_at=2026-06-02"),
)


def cases() -> Iterator[tuple[str, str]]:
    """Yield paths and queries: every order, each filter by name and by price, several regions, and prices."""
    yield "/sizes", ""
    for name in SORT_KEYS:
        yield "/sizes", f"region=eastus&sort={name}"
        yield "/sizes", f"region=eastus&sort=-{name}"
    for one in FILTERS:
        yield "/sizes", one
        yield "/sizes", f"{one}&sort=usd_per_hour"
    for scope in SCOPES:
        for sort in ("name", "usd_per_hour", "-gpu_memory_gib,usd_per_hour"):
            yield "/sizes", f"{scope}&sort={sort}"
    yield "/facets", ""
    yield "/facets", "region=eastus&min_gpu_mem=80"
    for one in PRICES:
        yield "/prices", one


@dataclass(frozen=True, slots=True)
class Times:
    """Milliseconds of a question that is asked for the first time, and again."""

    first: float
    again: float


def measure(url: str, questions: Sequence[tuple[str, str]]) -> list[Times]:
    """Return the times of each question over a catalog."""
    engine = make_engine(url)
    clock = time.process_time if engine.dialect.name == "sqlite" else time.perf_counter
    with Session(engine) as session:
        snapshot = load_snapshot(session)
        times = [_times(session, snapshot, path, query, clock) for path, query in questions]
    engine.dispose()
    return times


def _times(session: Session, snapshot: CatalogSnapshot, path: str, query: str, clock: Callable[[], float]) -> Times:
    def plan() -> Any:
        if path == "/prices":
            return find_all_prices(Catalog(session, snapshot, TODAY), parse_query(query.encode(), AllPricesSearch))
        if path == "/facets":
            return find_facets(Catalog(session, snapshot, TODAY), parse_query(query.encode(), SizeFilter))
        return find_sizes(Catalog(session, snapshot, TODAY), parse_query(query.encode(), SizeSearch))

    def timed(*, first: bool) -> float:
        nonlocal snapshot
        if first:
            snapshot = replace(snapshot, answers=KeptAnswers())
        begun = clock()
        plan()
        return 1000 * (clock() - begun)

    timed(first=True)  # what the database reads is in memory
    return Times(
        first=statistics.median(timed(first=True) for _ in range(REPEATED)),
        again=statistics.median(timed(first=False) for _ in range(REPEATED)),
    )


def main() -> None:
    """Measure both catalogs and print a table, what grows most first."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description="What grows with the catalog.")
    parser.add_argument("urls", nargs="*", help="of the small and the large catalog")
    parser.add_argument("--only", default="", help="only questions with this text")
    options = parser.parse_args()
    urls = options.urls or [
        sqlite_catalog(scale, lambda text: print(text, file=sys.stderr), CACHE_FOLDER) for scale in (FEW, MANY)
    ]
    questions = [one for one in cases() if options.only in "?".join(one)]
    small, large = (measure(url, questions) for url in urls)
    lines = sorted(zip(questions, small, large, strict=True), key=lambda line: -line[2].again / line[1].again)
    print("| question | first: 1,000 / 100,000 sizes, ms | x | again, ms | x |\n|---|--:|--:|--:|--:|")
    for (path, query), of_small, of_large in lines:
        print(
            f"| `{path}{query and '?'}{query}` | {of_small.first:.2f} / {of_large.first:.2f} |"
            f" {of_large.first / of_small.first:.1f} | {of_small.again:.2f} / {of_large.again:.2f} |"
            f" {of_large.again / of_small.again:.1f} |"
        )
    for name, limit in (("first", FIRST), ("again", WARM)):
        pairs = [(getattr(of_small, name), getattr(of_large, name)) for _, of_small, of_large in lines]
        grown = [few for few, many in pairs if many > limit * few]
        felt = [many for few, many in pairs if many > limit * few and many > UNFELT_MS]
        most = max(many for _, many in pairs)
        print(f"\n{name}: {len(grown)} of {len(pairs)} take more than {limit:.0f} times as long;", end=" ")
        print(f"{len(felt)} of them more than {UNFELT_MS:.0f} ms, the slowest of all {most:.1f} ms")
    print(f"\nload average {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
