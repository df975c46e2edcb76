"""Neighbours are those that their definition finds among all sizes, nearest first."""

import random
from math import inf

import pytest
from sqlalchemy import Engine, select
from sqlmodel import Session

from app.catalog.column_types import table_of
from app.catalog.models import Size
from app.catalog.purchases import Purchase
from app.catalog.queries.candidates import neighbours_query
from app.catalog.queries.params import SimilarSearch
from app.catalog.queries.snapshot import Catalog, load_catalog, load_snapshot
from app.db.statements import fetch, to_dicts
from app.fit.similarity import DISTANCE_DIGITS, SizeTraits, measure_distance
from app.services.compare import find_similar, to_traits
from tests.conftest import TODAY
from tests.databases import one_in

pytestmark = pytest.mark.first_database

SIZE = table_of(Size)
REGIONS = [[], ["eastus"], ["italynorth", "switzerlandnorth"], ["eastus", "westeurope", "centralindia"]]


def keys_of(session: Session) -> list[str]:
    """The keys of all sizes, those with a GPU first."""
    return list(session.execute(select(SIZE.c.key).order_by(SIZE.c.gpu_id.is_(None), SIZE.c.key)).scalars())


def neighbours(own: SizeTraits, all_sizes: dict[str, SizeTraits], own_key: str, search: SimilarSearch) -> list[str]:
    """The names of all sizes that can be ordered, nearest first; with a GPU if the size has one, and without if not."""
    may = {
        key: other
        for key, other in all_sizes.items()
        if key != own_key
        and other.status not in {"retired", "withdrawn"}
        and (not search.region or other.region)
        and (other.gpus == 0) == (own.gpus == 0)
        and (other.gpus is not None or not own.gpus)
    }
    usd = {key: inf if other.usd_per_hour is None else float(other.usd_per_hour) for key, other in may.items()}
    distances = {key: round(measure_distance(own, other).distance, DISTANCE_DIGITS) for key, other in may.items()}
    return [may[key].name for key in sorted(may, key=lambda key: (distances[key], usd[key], key))]


@pytest.mark.parametrize("number", one_in(4, range(20)))
def test_neighbours_are_those_of_the_definition(seeded_engine: Engine, number: int) -> None:
    rng = random.Random(number)
    with Session(seeded_engine) as session:
        known, keys = load_snapshot(session), keys_of(session)
        search = SimilarSearch(
            region=rng.choice(REGIONS),
            purchase=rng.choice(["on_demand", "spot", "savings_3y"]),
            os=rng.choice(["linux", "windows"]),
            limit=500,
        )
        query = neighbours_query(keys, search, TODAY, known.rules)
        all_sizes = {row["key"]: to_traits(row) for row in to_dicts(query, fetch(session, query))}
        priced = [key for key in keys if all_sizes[key].usd_per_hour is not None] or keys
        key = rng.choice(priced if number % 2 else priced[:40])
        found = find_similar(Catalog(session, known, TODAY), key, search)
    nearest = neighbours(all_sizes[key], all_sizes, key, search)
    assert (found.total, [similar.size for similar in found.items]) == (len(nearest), nearest[:500])


@pytest.mark.parametrize(("name", "has_gpu"), [("nv4as_v4", True), ("d4s_v5", False), ("nd40rs_v2", True)])
def test_a_small_gpu_has_no_neighbours_without_one(seeded_engine: Engine, name: str, has_gpu: bool) -> None:
    with Session(seeded_engine) as session:
        found = find_similar(load_catalog(session, TODAY), name, SimilarSearch(limit=500))
    assert found.items
    assert {one.gpu_model is not None for one in found.items} == {has_gpu}


@pytest.mark.parametrize(("region", "purchase"), [([], "on_demand"), (["eastus"], "on_demand"), ([], "spot")])
def test_a_size_of_unknown_gpu_memory_is_like_none_without_gpus(
    seeded_engine: Engine, region: list[str], purchase: Purchase
) -> None:
    search = SimilarSearch(region=region, purchase=purchase, limit=500)
    with Session(seeded_engine) as session:
        known = load_snapshot(session)
        unknown = session.execute(
            select(SIZE.c.key).where(SIZE.c.gpu_memory_gib.is_(None), SIZE.c.gpu_model.is_not(None)).order_by("key")
        ).scalars()
        for name in [*unknown][:6]:
            found = find_similar(Catalog(session, known, TODAY), name, search)
            assert found.items
            assert all(neighbour.gpu_memory_gib != 0 for neighbour in found.items)
        none = find_similar(Catalog(session, known, TODAY), "d4s_v5", search)
    assert {neighbour.gpu_memory_gib for neighbour in none.items} == {0}
