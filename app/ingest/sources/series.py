"""Series: names, families, and the rack where a series shares one."""

from collections.abc import Mapping
from pathlib import Path

from app.catalog.readings import Reading, SourceNote
from app.ingest.sources.subjects import read_subjects


def read_series(path: Path, sources: Mapping[str, SourceNote]) -> Reading:
    """Read what each source says of each series."""
    return read_subjects(path, "series", sources)
