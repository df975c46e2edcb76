"""Lists every kind of CSV file that can be ingested, and reads files, pages and folders of seeds."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from app.catalog.fields import SubjectKind
from app.catalog.providers import DEFAULT_PROVIDER, PROVIDERS
from app.catalog.readings import FileRead, Progress, Reading, SourceKind, SourceRow, no_progress
from app.errors import BadData, BadQuery
from app.ingest.documents.gpu_rows import GpuMemoryIndex
from app.ingest.files import refuse_special_file
from app.ingest.sources.claims import load_gpu_rows, read_facts, read_sources
from app.ingest.sources.documents import read_documents
from app.ingest.sources.prices import MANIFEST, find_own_source, read_price_tables, read_prices
from app.ingest.sources.reference import (
    read_adjustments,
    read_aliases,
    read_availability,
    read_benchmarks,
    read_corrections,
    read_disk_prices,
    read_disks,
    read_exchange_rates,
    read_models,
    read_regions,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvSource:
    """A kind of CSV file: the help of its command, and its reader, which gets the sources that rows may cite by id.

    A file that `states_facts` retracts the facts that it no longer has when it is read again. One that does not cite
    sources needs no list of them beside it.
    """

    help: str
    read: Callable[[Path, Mapping[str, SourceRow]], Reading]
    states_facts: bool = False
    cites_sources: bool = True
    own_source: Callable[[Path], SourceRow | None] = lambda _path: None
    """Returns the file as a source where it is one itself, and so needs no list of them, either."""


def _fact_source(kind: SubjectKind, help_text: str) -> CsvSource:
    return CsvSource(help=help_text, read=partial(read_facts, kind=kind), states_facts=True)


CSV_SOURCES: dict[str, CsvSource] = {
    "regions": CsvSource(help="Regions: code, name, geography.", read=read_regions),
    "gpus": _fact_source("gpu", "GPU models: memory, bandwidth, throughput, interconnect."),
    "series": _fact_source("series", "Series: names, racks, scale-up domains."),
    "sizes": _fact_source("size", "Sizes: any of their fields, as a source has them."),
    "aliases": CsvSource(help="Other names of sizes.", read=read_aliases),
    "availability": CsvSource(help="Regions and zones in which sizes are offered.", read=read_availability),
    "corrections": CsvSource(help="What a source says wrongly, and why.", read=read_corrections, cites_sources=False),
    "benchmarks": CsvSource(help="Published results.", read=read_benchmarks),
    "models": CsvSource(help="Language models: layers, widths, heads, experts.", read=read_models),
    "disks": CsvSource(help="Managed disks: capacity, IOPS, throughput.", read=read_disks),
    "disk_prices": CsvSource(
        help="Prices of disks by region, a month or by what is provisioned.", read=read_disk_prices
    ),
    "exchange_rates": CsvSource(
        help="Exchange rates: a row a day, a column a currency, units per euro.", read=read_exchange_rates
    ),
    "adjustments": CsvSource(
        help="Your own discounts and fixed prices, by size, region, system and purchase model.",
        read=read_adjustments,
        cites_sources=False,
    ),
    "prices": CsvSource(
        help="Prices an hour by size, region, system and purchase model.",
        read=read_prices,
        own_source=find_own_source,
    ),
}
"""Every kind of CSV file by the name of its command, in the order in which the files of a seed folder are read."""


def read_csv_source(name: str, path: Path, sources: Path | None = None, *, new_sizes: bool = False) -> Reading:
    """Read one CSV file; the sources that it cites are listed in `sources`, by default in sources.csv beside it.

    With `new_sizes` a price or an alias of an unknown size adds the size. Raises BadData for what cannot be read.
    """
    refuse_special_file(path)
    if not path.is_file():
        raise BadData("is a folder; give a CSV file" if path.is_dir() else "there is no such file", file=str(path))
    source = CSV_SOURCES[name]
    if own := source.own_source(path):
        listed = {own.id: own}
    else:
        listed = read_sources(sources or path.with_name("sources.csv")) if source.cites_sources else {}
    reading = source.read(path, listed)
    # A file that cites no list of sources may be one itself.
    sources_of_file = frozenset(listed) if source.cites_sources else frozenset(cited.id for cited in reading.sources)
    return replace(
        reading,
        prices=tuple(replace(price_list, new_sizes=new_sizes) for price_list in reading.prices),
        aliases=tuple(replace(alias, new_size=new_sizes) for alias in reading.aliases),
        files=(FileRead(kind=name, file=str(path), sources=sources_of_file, states_facts=source.states_facts),),
    )


def read_pages(
    paths: Sequence[Path], seeds: Path, *, kind: SourceKind | None = None, progress: Progress = no_progress
) -> Reading:
    """Read documentation pages; the GPU models and their possible memories are those of gpus.csv in `seeds`."""
    memories = GpuMemoryIndex.from_rows(load_gpu_rows(seeds / "gpus.csv"))
    return read_documents(paths, gpu_memories=memories, kind=kind, progress=progress, require_facts=True)


CLOUDS = "clouds"
"""The folder in that of the seeds that has a folder for each cloud but Azure."""
SHARED_KINDS = ("gpus", "models", "exchange_rates")
"""The kinds of files in the folder of seeds that are of no cloud; all others there are Azure's."""


def parse_clouds(text: str, folder: Path) -> Sequence[str]:
    """Return the ids of clouds that a list separated by commas names, for an empty one all that a folder of seeds has.

    Raises BadQuery for a cloud that the folder lacks.
    """
    others = [cloud for cloud in PROVIDERS if (folder / CLOUDS / cloud).is_dir()]
    allowed = [DEFAULT_PROVIDER.id, *others]
    clouds = [*dict.fromkeys(name.strip().lower() for name in text.split(",") if name.strip())]
    if unknown := [cloud for cloud in clouds if cloud not in allowed]:
        raise BadQuery("VMSIZES_CLOUDS", unknown[0], f"has no seeds in {folder}; these are {', '.join(allowed)}")
    return clouds or allowed


def read_seeds(
    folder: Path,
    *,
    clouds: Collection[str] = (DEFAULT_PROVIDER.id,),
    progress: Progress = no_progress,
) -> Reading:
    """Read a folder of seeds: the CSV files of each kind, the tables in `prices`, and the pages in `documents`.

    These are of all clouds and of Azure. Each other cloud has a folder of the same kinds in `clouds`, beside the GPUs
    that only they have.
    """
    if not folder.is_dir():
        raise BadData("is not a folder; VMSIZES_SEEDS says where the seeds are", file=str(folder))
    of_azure = DEFAULT_PROVIDER.id in clouds
    reading = _read_folder(folder, tuple(CSV_SOURCES) if of_azure else SHARED_KINDS, progress)
    if of_azure and (folder / "documents").is_dir():
        reading += read_pages([folder / "documents"], folder, progress=progress)
    others = [folder / CLOUDS / cloud for cloud in clouds if cloud != DEFAULT_PROVIDER.id]
    for subfolder in [folder / CLOUDS, *others] if others else ():
        reading += _read_folder(subfolder, tuple(CSV_SOURCES), progress)
    if reading == Reading():
        raise BadData("has no seeds; VMSIZES_SEEDS says where they are", file=str(folder))
    return reading


def _read_folder(folder: Path, kinds: Collection[str], progress: Progress) -> Reading:
    """Read the CSV files of some kinds in a folder, and its tables of prices."""
    reading = Reading()
    for name in kinds:
        progress(f"reading {folder.name}/{name}", None)
        for path in seed_files(folder, name):
            reading += read_csv_source(name, path, folder / "sources.csv", new_sizes=True)
    if "prices" in kinds and (folder / "prices" / MANIFEST).exists():
        reading += read_price_tables(folder / "prices", read_sources(folder / "sources.csv"))
    return reading


def seed_files(folder: Path, name: str) -> list[Path]:
    """Return the CSV files of one kind: `sizes.csv`, then those in `sizes`, in the order of their names."""
    others = sorted(path for path in (folder / name).glob("*.csv") if path.name != MANIFEST)
    return [*folder.glob(f"{name}.csv"), *others]


def relative_to(folder: Path, reading: Reading) -> Reading:
    """Return a reading with file names relative to a folder, so that a catalog does not depend on where that is."""

    @cache
    def name(file: str) -> str:
        path = Path(file)
        return path.relative_to(folder).as_posix() if path.is_relative_to(folder) else file

    def shorten(entry: Any) -> Any:
        return replace(entry, file=name(entry.file))

    changed: dict[str, Any] = {}
    for field in fields(reading):
        entries = getattr(reading, field.name)
        if any(hasattr(entry, "file") for entry in entries):
            changed[field.name] = tuple(map(shorten, entries))
    in_folder = re.compile(rf"(?<![\w./-]){re.escape(str(folder))}/")  # at the beginning of a path only
    reports = (
        replace(report, detail=in_folder.sub("", report.detail)) for report in changed.get("reports", reading.reports)
    )
    return replace(reading, **changed | {"reports": tuple(reports)})
