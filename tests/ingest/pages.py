"""Helpers that read small pages, and return facts and reports in a form that is easy to compare."""

import os
from fractions import Fraction
from pathlib import Path
from textwrap import dedent

from app.catalog.fields import FactValue
from app.catalog.readings import Reading, SourceKind
from app.ingest.documents.gpu_rows import GpuMemoryIndex
from app.ingest.sources.documents import read_documents

MEMORIES = GpuMemoryIndex.from_mapping(
    {"V100": [16, 32], "A100": [40, 80], "P40": [24], "A10": [24], "M60": [16], "MI300X": [192]}
)
FRONT = "---\ntitle: {title}\nms.service: machines\nms.date: 05/26/2021\n---\n\n"

REAL = [Path(folder) for folder in os.environ.get("VMSIZES_TEST_PAGES", "").split(os.pathsep) if folder]
"""Folders of real documentation pages, which are not part of the project: first those of GPU series, then others."""


def read(folder: Path, text: str, *, title: str = "NX v1-series", kind: SourceKind | None = None) -> Reading:
    """Read one page with the front matter of a vendor's page."""
    return read_files(folder, {"page.md": FRONT.format(title=title) + dedent(text)}, kind=kind)


def read_files(folder: Path, files: dict[str, str | bytes], *, kind: SourceKind | None = None) -> Reading:
    """Read several files by their paths below a folder."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_documents([folder], gpu_memories=MEMORIES, kind=kind)


def facts(reading: Reading, subject: str) -> dict[str, FactValue]:
    """Return the fields of a size or series; a whole number of GPUs is an int."""
    found = {item.field: item.value for item in reading.facts if item.subject == subject}
    return {name: _whole(value) for name, value in found.items()}


def details(reading: Reading) -> list[str]:
    """Return the reports as they are shown."""
    return [str(report) for report in reading.reports]


def _whole(value: FactValue) -> FactValue:
    return int(value) if isinstance(value, Fraction) and value.denominator == 1 else value
