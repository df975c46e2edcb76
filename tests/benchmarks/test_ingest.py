"""Both sides of the ingest benchmark do the same work."""

from pathlib import Path

import pytest
from sqlalchemy.orm import Session

from app.catalog.column_types import table_of
from app.catalog.models import Price
from app.catalog.store.revisions import TableChecksum, compute_checksum, select_canonical
from app.db.engines import make_engine
from benchmarks.bare_ingest import write_csv, write_rows
from benchmarks.build import catalog_without_prices
from benchmarks.catalogs import Scale
from benchmarks.ingest import ingest, measure_ingest, save_prices
from benchmarks.page_ingest import measure_page
from benchmarks.price_files import PriceFiles, make_prices
from tests.databases import Databases

FEW = Scale(sizes=100, prices=2_000)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> PriceFiles:
    return make_prices(tmp_path_factory.mktemp("prices"), FEW)


@pytest.fixture(scope="module")
def empty(databases: Databases) -> str:
    return catalog_without_prices(databases.create(), FEW)


def written(url: str) -> TableChecksum:
    engine = make_engine(url)
    with Session(engine) as session:
        content = compute_checksum(session, select_canonical(session, table_of(Price)))
    engine.dispose()
    return content


@pytest.mark.slow
def test_every_side_writes_the_same_prices(databases: Databases, empty: str, made: PriceFiles) -> None:
    contents = []
    for write in (
        save_prices,
        write_rows,
        lambda engine, made: write_csv(engine, made.file),
        lambda engine, made: ingest(engine.url.render_as_string(hide_password=False), made.file),
    ):
        url = databases.copy(empty)
        engine = make_engine(url)
        write(engine, made)
        engine.dispose()
        contents.append(written(url))
        databases.drop(url)
    assert contents[0].rows == 2_000
    assert contents == contents[:1] * 4


def test_a_hundredth_of_the_changed_file_is_changed(made: PriceFiles) -> None:
    pairs = zip(made.file.read_text().splitlines(), made.changed_file.read_text().splitlines(), strict=True)
    prices = [(one.split(",")[5], other.split(",")[5]) for one, other in pairs][1:]
    assert sum(float(one) != float(other) for one, other in prices) == 20


@pytest.mark.slow
def test_a_measurement_gives_every_figure_for_every_pair(tmp_path: Path) -> None:
    figures = measure_ingest("sqlite", tmp_path, scale=FEW, pairs=1)
    assert {figure.count for figure in figures.values()} == {1}
    assert all(figure.min > 0 for figure in figures.values())
    assert list(figures)[:2] == ["ratio", "whole ratio"]
    assert {"subject rows per second", "again rows per second", "changed rows per second", "whole MB"} <= set(figures)


@pytest.mark.slow
def test_a_page_is_read_beside_others_and_again_with_other_figures(tmp_path: Path) -> None:
    figures = measure_page("sqlite", tmp_path, pages=2, pairs=1)
    assert list(figures) == ["new: CPU s", "changed: CPU s", "MB"]
    assert all(figure.min > 0 for figure in figures.values())
