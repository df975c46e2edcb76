"""GPU models: memory, bandwidth, dense throughput by data type, and how they are linked."""

from collections.abc import Mapping
from pathlib import Path

from app.catalog.fields import GPU_FIELDS
from app.catalog.readings import Reading, SourceNote
from app.ingest.csv_files import read_rows
from app.ingest.sources.subjects import read_subjects

NAMES = ("vendor", "model", "family", "aliases")


def read_gpus(path: Path, sources: Mapping[str, SourceNote]) -> Reading:
    """Read what each source says of each GPU; several rows may speak of one GPU, each with a source of its own."""
    return read_subjects(path, "gpu", sources)


def load_gpu_rows(path: Path) -> list[dict[str, str]]:
    """Return the rows with the GPU's names in each: the document importer recognises GPUs and their memories by them.

    Only a GPU's first row needs to give its names; the rows of other sources go without.
    """
    named: dict[str, dict[str, str]] = {}
    rows: list[dict[str, str]] = []
    for row in read_rows(path, ("id", "source"), optional=GPU_FIELDS):
        cells = dict(row.cells)
        names = named.setdefault(row.text("id"), {name: cells.get(name, "") for name in NAMES})
        rows.append(cells | {name: cells.get(name) or names[name] for name in NAMES})
    return rows
