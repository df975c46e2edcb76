"""Sizes: what a source without pages, such as an API, says of each."""

from collections.abc import Mapping
from pathlib import Path

from app.catalog.readings import Reading, SourceNote
from app.ingest.sources.subjects import read_subjects


def read_sizes(path: Path, sources: Mapping[str, SourceNote]) -> Reading:
    """Read what each source says of each size; a column is a field as the table of fields has it, in its unit."""
    return read_subjects(path, "size", sources)
