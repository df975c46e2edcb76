"""Filters on columns select the sizes that the same filters select in SQL."""

from collections.abc import Iterator
from datetime import date

import pytest
from sqlalchemy import Engine
from sqlalchemy.orm import Session

from app.catalog.queries.column_filters import COLUMN_FILTERS
from app.catalog.queries.facet_counts import find_facets
from app.catalog.queries.filters import FILTERS, SCOPE_FILTERS
from app.catalog.queries.params import SizeFilter, SizeSearch
from app.catalog.queries.sizes import search_sizes
from app.catalog.queries.snapshot import CatalogSnapshot, load_snapshot
from app.db.statements import run_plan
from app.http.canonical import parse_query
from app.ingest.run import ingest
from tests.factories import NOW, reading, size

TODAY = date(2026, 9, 1)
QUESTIONS = (
    *(
        "",
        "q=standard",
        "q=H100 nd",
        "q=nvidia_",
        "q=100%25",
        "name=standard_nd*",
        "name=*v?",
        "name=nc24*,Standard_ND96*",
    ),
    *(
        "q=d_nd9",
        "q=rd_ h100",
        "q=_v5 nvidia",
        "name=*d_nd*",
        "name=?tandard_n*v?",
        "name=standard_",
        "name=standard_*",
    ),
    *("name=nd96isr_h100_v5", "name=[n]*", "series=nd_h100_v5,nc_a100_v4", "category=gpu_accelerated,general_purpose"),
    *("gpu=A100", "gpu=h*,T4", "gpu=a100*", "gpu_vendor=nvidia", "gpu_vendor=AMD&status=any", "verified=true"),
    *("verified=false", "disputed=true", "disputed=false", "status=any", "status=retired", "status=withdrawn"),
    *("status=retiring,preview", "available_in=eastus", "available_in=eastus,westeurope&purchase=spot"),
    *("min_gpu_mem=80&max_gpu_mem=640", "min_gpu_mem_per_gpu=40&max_gpu_mem_per_gpu=80", "min_gpus=1/6&max_gpus=4"),
    *("max_gpus=0", "min_vcpus=24&max_vcpus=96", "min_memory=220&max_memory=900", "min_local_disk=1000"),
    *("min_network_gbps=40", "infiniband=true", "infiniband=false", "min_infiniband_gbps=200", "nvlink=true"),
    *("arch=x64", "arch=arm64", "premium_storage=true", "ultra_disk=false", "max_usd_per_hour=10&region=eastus"),
    *("min_usd_per_hour=2&max_usd_per_hour=40", "min_usd_per_hour=1&purchase=spot&region=eastus,westeurope"),
    *("os=windows&region=westeurope", "purchase=reserved_3y&max_usd_per_hour=30", "min_usd_per_hour=0&os=windows"),
)


@pytest.fixture(scope="module")
def session(seeded_engine: Engine) -> Iterator[Session]:
    with Session(seeded_engine) as session:
        yield session


@pytest.fixture(scope="module")
def snapshot(session: Session) -> CatalogSnapshot:
    return load_snapshot(session)


def test_every_filter_is_there_for_columns() -> None:
    assert set(COLUMN_FILTERS) == set(FILTERS) - set(SCOPE_FILTERS)


@pytest.mark.parametrize("question", QUESTIONS)
def test_as_many_sizes_are_found_on_columns_as_in_sql(
    session: Session, snapshot: CatalogSnapshot, question: str
) -> None:
    facets = run_plan(session, find_facets(parse_query(question.encode(), SizeFilter), snapshot, TODAY))
    page = search_sizes(session, parse_query(question.encode(), SizeSearch), today=TODAY)
    assert facets.total == page.total


def test_columns_are_kept_for_a_revision_and_loaded_again_for_the_next(engine: Engine) -> None:
    ingest(engine, reading(size("Standard_X1", vcpus=8)), now=NOW)
    with Session(engine) as session:
        first = load_snapshot(session)
        assert run_plan(session, find_facets(SizeFilter(), first, TODAY)).total == 1
    ingest(engine, reading([*size("Standard_X1", vcpus=8), *size("Standard_X2", vcpus=16)]), now=NOW)
    with Session(engine) as session:
        assert run_plan(session, find_facets(SizeFilter(), first, TODAY)).total == 1
        assert run_plan(session, find_facets(SizeFilter(), load_snapshot(session), TODAY)).total == 2


def test_facets_of_an_empty_catalog_are_empty(engine: Engine) -> None:
    with Session(engine) as session:
        facets = run_plan(session, find_facets(SizeFilter(), load_snapshot(session), TODAY))
    assert (facets.total, facets.counts["series"]) == (0, [])
    assert facets.ranges["vcpus"].unknown == 0
