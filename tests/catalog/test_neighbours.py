"""The neighbours of a size are the nearest of all, however many sizes there are."""

from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from sqlalchemy import Engine
from sqlalchemy.orm import Session

from app.catalog.queries.lookups import NEAREST_WINDOW, get_size_keys
from app.catalog.queries.params import SimilarSearch
from app.catalog.queries.snapshot import load_catalog
from app.catalog.readings import StatedFact
from app.errors import NotFound
from app.ingest.run import ingest
from app.schemas.catalog import SimilarPage
from app.services.compare import find_similar
from tests.conftest import TODAY
from tests.factories import NOW, price, reading, size

CROWD = 75
NAMES = [f"g{number:03}" for number in range(CROWD)]


@pytest.fixture
def crowd(engine: Engine) -> Engine:
    """Many sizes of the same GPU memory, each a cent dearer; one of twice as much; some without a GPU; one unknown."""
    statements = [
        *(one for name in (*NAMES, "unpriced", "gone") for one in gpu_size(name, 80)),
        *gpu_size("twice", 160),
        *size("gone", retirement_date=date(2020, 1, 1)),
        *(one for number in range(5) for one in size(f"c{number}", vcpus=8, gpu_count=0)),
        *size("unstated", vcpus=8),
    ]
    prices = [price(name, Decimal(100 + number) / 100) for number, name in enumerate(NAMES)]
    prices += [price(name, usd) for name, usd in (("twice", "3.2"), ("gone", "1.5"), ("c0", "0.5"), ("c1", "0.6"))]
    ingest(engine, reading(statements, regions=["eastus", "westus"], prices=prices), now=NOW)
    return engine


def gpu_size(name: str, gib: int) -> tuple[StatedFact, ...]:
    return size(name, vcpus=24, memory_gib=220, gpu_count=1, gpu_memory_gib=gib, gpu_memory_gib_per_gpu=gib)


def similar(engine: Engine, name: str, **asked: Any) -> SimilarPage:
    with Session(engine) as session:
        return find_similar(load_catalog(session, TODAY), name, SimilarSearch(limit=500, **asked))


def names(found: SimilarPage) -> set[str]:
    return {one.size for one in found.items}


@pytest.mark.first_database
def test_of_many_alike_those_that_cost_less_come_first_and_then_the_nearest_in_price(crowd: Engine) -> None:
    middle = CROWD // 2
    nearest = [neighbour.size for neighbour in similar(crowd, NAMES[middle]).items]
    assert nearest[: middle + 2] == [*NAMES[:middle], *NAMES[middle + 1 : middle + 3]]
    assert {*nearest} == {*NAMES, "twice", "unpriced"} - {NAMES[middle]}


@pytest.mark.first_database
def test_however_many_sizes_are_nearer_in_price_those_with_the_same_figures_come_first(engine: Engine) -> None:
    others = [f"other{number:02}" for number in range(60)]
    statements = [figure for name in ("own", "same") for figure in size(name, vcpus=8, memory_gib=32, gpu_count=0)]
    statements += [figure for name in others for figure in size(name, vcpus=32, memory_gib=64, gpu_count=0)]
    prices = [price("own", "0.40"), price("same", "0.50"), *(price(name, "0.41") for name in others)]
    ingest(engine, reading(statements, regions=["eastus"], prices=prices), now=NOW)
    assert similar(engine, "own").items[0].size == "same"


@pytest.mark.first_database
def test_neither_the_size_itself_nor_a_retired_one_is_a_neighbour(crowd: Engine) -> None:
    assert not names(similar(crowd, "g050")) & {"g050", "gone"}
    assert "g050" in names(similar(crowd, "gone"))


@pytest.mark.first_database
def test_a_size_without_a_price_has_neighbours_the_cheapest_first(crowd: Engine) -> None:
    found = similar(crowd, "unpriced")
    assert NAMES[0] in names(found)
    assert {one.cheaper for one in found.items} == {None}


@pytest.mark.first_database
def test_a_size_without_a_gpu_has_neighbours_without_one(crowd: Engine) -> None:
    assert names(similar(crowd, "c0")) == {"c1", "c2", "c3", "c4"}
    assert names(similar(crowd, "c0", region=("eastus",))) == {"c1"}


def test_a_size_of_unknown_gpu_memory_has_neighbours_that_may_have_gpus(crowd: Engine) -> None:
    assert names(similar(crowd, "unstated")) <= {*NAMES, "twice", "unpriced"}
    assert "g000" in names(similar(crowd, "unstated", region=("eastus", "westus")))


@pytest.mark.first_database
def test_a_region_without_offers_has_no_neighbours(crowd: Engine) -> None:
    assert similar(crowd, "g050", region=("westus",)).total == 0
    assert similar(crowd, "g050", region=("westus", "eastus")).total > 0


def test_the_nearest_name_is_found_in_the_middle_of_many(engine: Engine) -> None:
    many = [one for number in range(2 * NEAREST_WINDOW + 200) for one in size(f"m{number:04}", vcpus=1)]
    ingest(engine, reading(many), now=NOW)
    with Session(engine) as session, pytest.raises(NotFound) as missing:
        get_size_keys(session, ("m0700", "m0600x"), {})
    assert missing.value.suggestions[0] == "m0600"
    with Session(engine) as session:
        assert get_size_keys(session, ("Standard_M0700", "m0001"), {}) == ("m0700", "m0001")
