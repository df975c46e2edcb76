"""The readings of the seeds, read once."""

from pathlib import Path

import pytest

from app.catalog.fields import FactValue
from app.catalog.names import size_key
from app.catalog.readings import PriceRow, Reading, SourceRow
from app.ingest.registry import CSV_SOURCES, read_pages, seed_files
from app.ingest.sources.claims import read_sources
from app.ingest.sources.prices import read_price_tables
from tests.factories import price_rows

ByFile = dict[str, Reading]
Facts = dict[tuple[str, str, str], FactValue]

SEEDS = Path(__file__).parents[2] / "seeds"


@pytest.fixture(scope="session")
def sources() -> dict[str, SourceRow]:
    return read_sources(SEEDS / "sources.csv")


@pytest.fixture(scope="session")
def by_file(sources: dict[str, SourceRow]) -> dict[str, Reading]:
    """Everything but the documents, by the kind of the files."""
    return {
        name: sum((source.read(path, sources) for path in seed_files(SEEDS, name)), start=Reading())
        for name, source in CSV_SOURCES.items()
    }


@pytest.fixture(scope="session")
def price_tables(sources: dict[str, SourceRow]) -> Reading:
    """The wide tables of prices."""
    return read_price_tables(SEEDS / "prices", sources)


@pytest.fixture(scope="session")
def prices(by_file: ByFile, price_tables: Reading) -> list[PriceRow]:
    """Every price of any day, of prices.csv and the tables."""
    return [*price_rows((*by_file["prices"].prices, *price_tables.prices))]


@pytest.fixture(scope="session")
def documents() -> Reading:
    """The documents as the importer reads them."""
    return read_pages([SEEDS / "documents"], SEEDS)


@pytest.fixture(scope="session")
def facts(documents: Reading, by_file: ByFile) -> Facts:
    """What each source states of each field of each size, by key, with aliases resolved."""
    keys = {size_key(row.alias): size_key(row.size) for row in by_file["aliases"].aliases}
    said = [(s, size_key(s.subject)) for s in documents.facts if s.kind == "size"]
    return {(s.source, keys.get(key, key), s.field): s.value for s, key in said}
