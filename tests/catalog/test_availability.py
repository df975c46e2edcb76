"""Availability of sizes by region and zone: read, replaced, moved with an alias, and forgotten."""

from collections.abc import Iterable
from pathlib import Path

import pytest
from sqlalchemy import Engine, select

from app.catalog.column_types import table_of
from app.catalog.models import Availability
from app.catalog.readings import AliasRow
from app.db.engines import read_session
from app.errors import BadData, BadQuery
from app.ingest.registry import read_csv_source
from app.ingest.run import IngestOutcome, forget, ingest
from tests.factories import NOW, reading, size

SOURCES = """\
id,title,publisher,kind,url,published_on
august,Zones,Someone,vendor_api,https://example.org/zones,2026-08-01
september,Zones,Someone,vendor_api,https://example.org/zones,2026-09-01
"""
PAGE = reading([*size("Standard_X1", vcpus=8), *size("Standard_X2", max_nics=2)], regions=("eastus", "westus"))


def offered(folder: Path, *rows: str, regions: str = "eastus,westus") -> Path:
    (folder / "sources.csv").write_text(SOURCES)
    path = folder / "availability.csv"
    path.write_text("\n".join([f"size,source,{regions}", *rows]) + "\n")
    return path


def add(engine: Engine, path: Path) -> IngestOutcome:
    return ingest(engine, read_csv_source("availability", path), now=NOW)


def stored(engine: Engine) -> set[tuple[str, ...]]:
    table = table_of(Availability).c
    with read_session(engine) as session:
        rows = session.execute(select(table.size_key, table.region, table.zones, table.source_id))
        return {tuple(row) for row in rows}


@pytest.fixture
def catalog(engine: Engine) -> Engine:
    """A catalog of two sizes and two regions."""
    ingest(engine, PAGE, now=NOW)
    return engine


@pytest.mark.first_database
def test_a_cell_is_zones_none_unknown_ones_or_no_such_size(catalog: Engine, tmp_path: Path) -> None:
    add(catalog, offered(tmp_path, "x1,august,1  3,-", "Standard_X2,august,,2", "x2,august,?,"))
    assert stored(catalog) == {
        ("x1", "eastus", "1 3", "august"),
        ("x1", "westus", "", "august"),
        ("x2", "eastus", "?", "august"),
        ("x2", "westus", "2", "august"),
    }


def test_a_file_that_is_read_again_replaces_what_it_said(catalog: Engine, tmp_path: Path) -> None:
    path = offered(tmp_path, "x1,august,1,2", "x2,august,1,")
    assert add(catalog, path).new_revision
    assert not add(catalog, path).new_revision
    add(catalog, offered(tmp_path, "x1,august,,1 2"))
    assert stored(catalog) == {("x1", "westus", "1 2", "august")}


@pytest.mark.first_database
def test_another_file_is_kept_beside_it(catalog: Engine, tmp_path: Path) -> None:
    add(catalog, offered(tmp_path, "x1,august,1,"))
    (tmp_path / "later").mkdir()
    add(catalog, offered(tmp_path / "later", "x1,september,1 2,"))
    assert stored(catalog) == {("x1", "eastus", "1", "august"), ("x1", "eastus", "1 2", "september")}


@pytest.mark.first_database
@pytest.mark.parametrize(
    ("rows", "regions", "expected"),
    [
        (["x9,august,1,"], "eastus,westus", "unknown size 'x9'"),
        (["x1,august,1,1"], "eastus,nowhere", r"csv:2: column 'nowhere': unknown region 'nowhere'; ingest it first"),
        (["x1,august,1,1"], "eastus,us-west", r"unknown region 'uswest'; did you mean westus\? Else ingest it first"),
        (["x1,august,1 b,"], "eastus,westus", "must be zones such as 1 2 3"),
        (["x1,august,1 ?,"], "eastus,westus", r"or - for none, or \? for unknown ones"),
    ],
)
def test_what_cannot_be_is_refused(
    catalog: Engine, tmp_path: Path, rows: Iterable[str], regions: str, expected: str
) -> None:
    with pytest.raises(BadData, match=expected):
        add(catalog, offered(tmp_path, *rows, regions=regions))
    assert stored(catalog) == set()


@pytest.mark.first_database
def test_the_availability_of_an_alias_becomes_that_of_its_size(catalog: Engine, tmp_path: Path) -> None:
    add(catalog, offered(tmp_path, "x1,august,1,", "x2,august,2,3"))
    alias = AliasRow(alias="Standard_X2", size="Standard_X1", source="page", reason="renamed", file="a.csv", line=2)
    ingest(catalog, reading(aliases=(alias,)), now=NOW)
    assert stored(catalog) == {("x1", "eastus", "1", "august"), ("x1", "westus", "3", "august")}


@pytest.mark.first_database
def test_a_forgotten_source_leaves_nothing(catalog: Engine, tmp_path: Path) -> None:
    add(catalog, offered(tmp_path, "x1,august,1,2"))
    with pytest.raises(BadQuery, match="prices or availability"):
        forget(catalog, "prices", now=NOW)
    forget(catalog, "august", now=NOW)
    assert stored(catalog) == set()
