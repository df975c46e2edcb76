"""Published results: what a GPU, a VM or a rack was measured to do."""

from collections.abc import Mapping
from pathlib import Path

from app.catalog.readings import BenchmarkRow, Reading, SourceNote
from app.ingest.csv_files import Row
from app.ingest.sources.claims import read_cited

BENCHMARK_COLUMNS = ("id", "series", "scope", "workload", "metric", "value", "unit", "comparison", "source")
SCOPES = ("gpu", "vm", "rack")


def read_benchmarks(path: Path, sources: Mapping[str, SourceNote]) -> Reading:
    """Read the results and the sources that publish them."""
    rows, notes = read_cited(path, BENCHMARK_COLUMNS, sources, to_benchmark)
    return Reading(sources=notes, benchmarks=rows)


def to_benchmark(row: Row) -> BenchmarkRow:
    """Map one row; `comparison` says what the result is measured against, where it is."""
    return BenchmarkRow(
        id=row.text("id"),
        series=row.text("series"),
        scope=row.choice("scope", SCOPES),
        workload=row.text("workload"),
        metric=row.text("metric"),
        value=row.positive("value"),
        unit=row.text("unit"),
        comparison=row.optional("comparison"),
        source=row.text("source"),
        file=row.file,
        line=row.line,
    )
