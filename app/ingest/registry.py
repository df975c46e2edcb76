"""Every kind of source and its reader: one table of CSV files, and the documents; a folder of seeds has them all."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import TypeVar

from app.catalog.readings import (
    AliasRow,
    BenchmarkRow,
    CorrectionRow,
    FileRead,
    ModelRow,
    PriceList,
    Prices,
    Progress,
    Reading,
    RegionRow,
    Report,
    SourceKind,
    SourceRow,
    StatedFact,
    no_progress,
)
from app.errors import BadData
from app.ingest.documents.gpu_memory import GpuMemoryIndex
from app.ingest.sources.claims import load_gpu_rows, read_gpus, read_series, read_sizes, read_sources
from app.ingest.sources.documents import find_pages, read_documents
from app.ingest.sources.models import read_models
from app.ingest.sources.prices import read_prices
from app.ingest.sources.reference import read_aliases, read_benchmarks, read_corrections, read_regions

Named = TypeVar(
    "Named",
    StatedFact,
    PriceList,
    RegionRow,
    AliasRow,
    CorrectionRow,
    BenchmarkRow,
    ModelRow,
    FileRead,
    Report,
)
"""What knows the file that it was read in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvSource:
    """A kind of CSV file that can be ingested: what it holds, and its reader."""

    help: str
    read: Callable[[Path, Mapping[str, SourceRow]], Reading]


CSV_SOURCES: dict[str, CsvSource] = {
    "regions": CsvSource(help="Regions: code, name, geography.", read=read_regions),
    "gpus": CsvSource(help="GPU models: memory, bandwidth, throughput, interconnect.", read=read_gpus),
    "series": CsvSource(help="Series: names, racks, scale-up domains.", read=read_series),
    "sizes": CsvSource(help="Sizes: any of their fields, as a source has them.", read=read_sizes),
    "aliases": CsvSource(help="Other names of sizes.", read=read_aliases),
    "corrections": CsvSource(
        help="What a source says wrongly, and why.", read=lambda path, _sources: read_corrections(path)
    ),
    "benchmarks": CsvSource(help="Published results.", read=read_benchmarks),
    "models": CsvSource(help="Language models: layers, widths, heads, experts.", read=read_models),
    "prices": CsvSource(help="Prices an hour by size, region, system and purchase model.", read=read_prices),
}
"""Every kind of CSV file, in the order in which the seeds are read; the command line's help is made from it."""


def read_csv_source(name: str, path: Path, sources: Path | None = None, *, new_sizes: bool = False) -> Reading:
    """Read one CSV file; the sources it cites are listed in `sources`, else in sources.csv beside it.

    With `new_sizes` a price of a size that nobody knows yet adds the size.
    """
    if not path.is_file():
        raise BadData("there is no such file", file=str(path))
    listed = read_sources(sources or path.with_name("sources.csv")) if name != "corrections" else {}
    reading = CSV_SOURCES[name].read(path, listed)
    return replace(
        reading,
        prices=Prices(tuple(replace(each, new_sizes=new_sizes) for each in reading.prices.lists)),
        files=(FileRead(kind=name, file=str(path), sources=frozenset(listed)),),
    )


def read_pages(
    paths: Sequence[Path], seeds: Path, *, kind: SourceKind | None = None, progress: Progress = no_progress
) -> Reading:
    """Read documentation pages; which memories a GPU model can have is known from the seeds."""
    memories = GpuMemoryIndex.from_rows(load_gpu_rows(seeds / "gpus.csv"))
    pages, done = len(find_pages(paths)), count(1)
    return read_documents(
        paths,
        gpu_memories=memories,
        kind=kind,
        on_page=lambda path: progress(f"reading {path.name}", next(done) / pages),
        require_facts=True,
    )


def read_seeds(folder: Path, *, progress: Progress = no_progress) -> Reading:
    """Read a folder of seeds: every CSV file there is of a known kind, and the documents."""
    if not folder.is_dir():
        raise BadData("is not a folder; VMSIZES_SEEDS says where the seeds are", file=str(folder))
    reading = Reading()
    for name in CSV_SOURCES:
        progress(f"reading {name}", None)
        if (folder / f"{name}.csv").exists():
            reading += read_csv_source(name, folder / f"{name}.csv", folder / "sources.csv", new_sizes=True)
    if (folder / "documents").is_dir():
        reading += read_pages([folder / "documents"], folder, progress=progress)
    return reading


def relative_to(folder: Path, reading: Reading) -> Reading:
    """Name the files of a reading as they lie below a folder, so that a catalog does not depend on where it is."""

    def short(row: Named) -> Named:
        path = Path(row.file)
        return replace(row, file=path.relative_to(folder).as_posix()) if path.is_relative_to(folder) else row

    return replace(
        reading,
        facts=tuple(map(short, reading.facts)),
        prices=Prices(tuple(map(short, reading.prices.lists))),
        regions=tuple(map(short, reading.regions)),
        aliases=tuple(map(short, reading.aliases)),
        corrections=tuple(map(short, reading.corrections)),
        benchmarks=tuple(map(short, reading.benchmarks)),
        models=tuple(map(short, reading.models)),
        files=tuple(map(short, reading.files)),
        reports=tuple(
            replace(short(report), detail=report.detail.replace(f"{folder}/", "")) for report in reading.reports
        ),
    )
