"""Neighbours found on columns are those found by SQL: the answers are compared byte for byte."""

import random

import pytest
from sqlalchemy import Engine, select
from sqlmodel import Session

from app.catalog.purchases import Purchase
from app.catalog.queries.params import SimilarSearch
from app.catalog.queries.price_scope import SIZE
from app.converters.compare import to_similar_page
from app.db.statements import run_plan
from app.services.similar import find_similar
from tests.conftest import TODAY
from tests.databases import first_on_each_kind
from tests.services.test_resource_columns import kept_snapshot

REGIONS = [[], ["eastus"], ["italynorth", "switzerlandnorth"], ["eastus", "westeurope", "centralindia"]]


@pytest.mark.parametrize("number", first_on_each_kind(5, range(20)))
def test_neighbours_on_columns_are_those_of_sql(seeded_engine: Engine, number: int) -> None:
    rng = random.Random(number)
    with Session(seeded_engine) as session:
        known = kept_snapshot(session)
        keys = session.execute(select(SIZE.c.key).order_by(SIZE.c.gpu_id.is_(None), SIZE.c.key)).scalars().all()
        name = rng.choice(keys if number % 2 else keys[:200])  # those with a GPU come first
        search = SimilarSearch(
            region=rng.choice(REGIONS),
            purchase=rng.choice(["on_demand", "spot", "savings_3y"]),
            os=rng.choice(["linux", "windows"]),
            limit=rng.choice([1, 10, 500]),
        )
        one, other = (
            run_plan(session, find_similar(name, search, known, TODAY, on_columns=on_columns))
            for on_columns in (True, False)
        )
    assert to_similar_page(one).model_dump_json() == to_similar_page(other).model_dump_json()


@pytest.mark.parametrize("name", ["nv4as_v4", "d4s_v5", "nd40rs_v2"])
def test_a_small_gpu_has_no_neighbours_without_one(seeded_engine: Engine, name: str) -> None:
    with Session(seeded_engine) as session:
        known = kept_snapshot(session)
        found = run_plan(session, find_similar(name, SimilarSearch(limit=500), known, TODAY, on_columns=True))
    assert found.page
    assert {one.size.gpu_id is None for one in found.page} == {found.size.gpu_id is None}


@pytest.mark.parametrize(("region", "purchase"), [([], "on_demand"), (["eastus"], "on_demand"), ([], "spot")])
def test_a_size_of_unknown_gpu_memory_is_like_none_without_gpus(
    seeded_engine: Engine, region: list[str], purchase: Purchase
) -> None:
    search = SimilarSearch(region=region, purchase=purchase, limit=500)
    with Session(seeded_engine) as session:
        known = kept_snapshot(session)
        unknown = session.execute(
            select(SIZE.c.key).where(SIZE.c.gpu_memory_gib.is_(None), SIZE.c.gpu_model.is_not(None)).order_by("key")
        ).scalars()
        for name in [*unknown][:6]:
            one, other = (
                run_plan(session, find_similar(name, search, known, TODAY, on_columns=on_columns))
                for on_columns in (True, False)
            )
            assert to_similar_page(one).model_dump_json() == to_similar_page(other).model_dump_json()
            assert one.page
            assert all(neighbour.size.gpu_memory_gib != 0 for neighbour in one.page)
        none = run_plan(session, find_similar("d4s_v5", search, known, TODAY, on_columns=True))
    assert {neighbour.size.gpu_memory_gib for neighbour in none.page} == {0}
