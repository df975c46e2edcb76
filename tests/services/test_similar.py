"""Neighbours are those that their definition finds among all sizes, nearest first."""

import random
from math import inf, log2

import pytest
from sqlalchemy import Engine, select
from sqlmodel import Session

from app.catalog.purchases import Purchase
from app.catalog.queries.neighbours import MEMORY_STEPS, SIZES_PER_SCAN, shown_query, to_neighbour
from app.catalog.queries.params import SimilarSearch
from app.catalog.queries.price_scope import SIZE
from app.catalog.queries.snapshot import Catalog, load_catalog, load_snapshot
from app.db.statements import fetch
from app.fit.similarity import DISTANCE_DIGITS, SizeTraits, measure_distance
from app.services.compare import find_similar, to_traits
from tests.conftest import TODAY
from tests.databases import one_in

pytestmark = pytest.mark.first_database

REGIONS = [[], ["eastus"], ["italynorth", "switzerlandnorth"], ["eastus", "westeurope", "centralindia"]]


def keys_of(session: Session) -> list[str]:
    """The keys of all sizes, those with a GPU first."""
    return list(session.execute(select(SIZE.c.key).order_by(SIZE.c.gpu_id.is_(None), SIZE.c.key)).scalars())


def bucket(memory: float | None) -> int | str:
    """Which sizes have about a GPU memory: powers of two, none, or unknown."""
    return "unknown" if memory is None else int(max(0, log2(memory) // 1)) if memory else "none"


def neighbours(own: SizeTraits, all_sizes: dict[str, SizeTraits], own_key: str, search: SimilarSearch) -> list[str]:
    """The names of the neighbours of a size: of each step the nearest in price among those of the memory there."""
    may = {
        key: one
        for key, one in all_sizes.items()
        if key != own_key and one.status not in {"retired", "withdrawn"} and (not search.region or one.region)
    }
    usd = {key: inf if one.usd_per_hour is None else float(one.usd_per_hour) for key, one in may.items()}
    of_own = bucket(own.gpu_memory_gib)
    found: set[str] = set()
    for step in MEMORY_STEPS:
        begin = (float(own.usd_per_hour) if own.usd_per_hour is not None else 0.0) * 2.0**step
        if of_own == "unknown":
            alike = [key for key, one in may.items() if bucket(one.gpu_memory_gib) != "none"]
        else:
            wanted = of_own + step if isinstance(of_own, int) else of_own
            alike = [key for key, one in may.items() if bucket(one.gpu_memory_gib) == wanted]
        ordered = sorted(alike, key=lambda key: (usd[key], key))
        found |= set([key for key in ordered if usd[key] >= begin][:SIZES_PER_SCAN])
        found |= set([key for key in reversed(ordered) if usd[key] < begin][:SIZES_PER_SCAN])
    distances = {key: round(measure_distance(own, may[key]).distance, DISTANCE_DIGITS) for key in found}
    nearest = sorted(found, key=lambda key: (distances[key], usd[key], may[key].name.lower()))
    return [may[key].name for key in nearest]


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
        rows = fetch(session, shown_query(keys, search, TODAY, known.rules))
        all_sizes = {to_neighbour(row)["key"]: to_traits(row) for row in rows}
        priced = [key for key in keys if all_sizes[key].usd_per_hour is not None] or keys
        key = rng.choice(priced if number % 2 else priced[:40])
        found = find_similar(Catalog(session, known, TODAY), key, search)
    assert [one.size for one in found.items] == neighbours(all_sizes[key], all_sizes, key, search)


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
