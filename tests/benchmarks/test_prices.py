"""The cases of prices: the references send what the service sends, and downloads are measured."""

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.build import postgres_catalog, sqlite_catalog
from benchmarks.cases import CASES
from benchmarks.catalogs import Scale
from benchmarks.harness import MEASUREMENTS, measure
from benchmarks.pairing import BenchmarkContext, both_running
from benchmarks.plan import QUICK
from tests.databases import Databases

FEW = Scale(sizes=30, prices=6_000)
SHORT = replace(QUICK, pairs=2, burst=0.01, warm_up=0)
BY_NAME = {case.name: case for case in CASES}


@pytest.fixture(scope="module")
def file_url(tmp_path_factory: pytest.TempPathFactory) -> str:
    return sqlite_catalog(FEW, lambda _: None, tmp_path_factory.mktemp("catalogs"))


def context_of(url: str, folder: Path) -> BenchmarkContext:
    return BenchmarkContext(plan=SHORT, folder=folder, catalog=lambda _kind, _scale: url)


@pytest.mark.slow
def test_the_bare_driver_sends_the_page_of_the_service(databases: Databases, file_url: str, tmp_path: Path) -> None:
    url = databases.create()
    is_file = url.startswith("sqlite")
    if not is_file:
        postgres_catalog(url, FEW, lambda _: None)
    case = BY_NAME["prices" if is_file else "prices-postgresql"]
    with both_running(context_of(file_url if is_file else url, tmp_path), case):
        pass  # raises ResponsesDiffer


@pytest.mark.slow
@pytest.mark.one_database
def test_the_csv_of_the_service_is_downloaded_in_turn_with_that_of_the_csv_module(
    file_url: str, tmp_path: Path
) -> None:
    measured = measure(context_of(file_url, tmp_path), BY_NAME["csv"])
    assert measured.figures["ratio"].count == measured.figures["ratio of CPU"].count == SHORT.pairs


@pytest.mark.takes_seconds
@pytest.mark.one_database
def test_a_file_is_written_for_each_download(file_url: str, tmp_path: Path) -> None:
    measured = measure(context_of(file_url, tmp_path), BY_NAME["parquet"])
    assert measured.figures["CPU ms a MB"].count == SHORT.pairs
    assert 0.03 < measured.figures["MB"].min == measured.figures["MB"].max < 0.3


@pytest.mark.one_database
def test_every_kind_of_case_is_measured_and_takes_a_time_that_is_known_before() -> None:
    for kind in {case.kind for case in CASES}:
        assert kind in MEASUREMENTS
        assert QUICK.seconds(kind) > 0
