"""Sizes are ranked as if each were evaluated by itself."""

import random
from typing import Any

import pytest
from sqlalchemy import Engine
from sqlmodel import Session, col, func, select

from app.catalog.models import Size
from app.catalog.queries.candidates import SELECTION_FILTERS, candidates_query
from app.catalog.queries.filters import active_filters, filter_condition
from app.catalog.queries.params import FitSearch
from app.catalog.queries.price_scope import PriceScope
from app.catalog.queries.sizes import normalize
from app.catalog.queries.snapshot import Catalog, CatalogSnapshot, load_catalog, load_snapshot
from app.db.dialects import Dialect, all_of
from app.db.statements import fetch, to_dicts
from app.fit.verdict import Option, Rejection, ResourceNeeds, evaluate_vm, miss_distance, unused_gpu_memory_gib
from app.services.resource_fit import TRAITS, _to_vm, plan_resource_fit, to_miss, to_needs, to_placed
from tests.conftest import TODAY
from tests.databases import first_on_each_kind, one_in
from tests.sql import select_rows

VALUES: dict[str, tuple[float, list[Any]]] = {
    "region": (0.5, [["eastus"], ["westeurope"], ["eastus", "westus2", "centralindia"], ["southcentralus"]]),
    "available_in": (0.15, [["eastus"], ["eastus", "westeurope"]]),
    "purchase": (0.3, ["spot", "reserved_1y", "savings_3y"]),
    "os": (0.2, ["windows"]),
    "as_of": (0.1, ["2026-02-01"]),
    "status": (0.2, [["any"], ["retiring"], ["current", "preview"], ["retired"]]),
    "q": (0.15, ["h100", "standard", "nothing", "nd v5"]),
    "name": (0.1, [["nd*"], ["*_v5"]]),
    "gpu_vendor": (0.1, ["nvidia"]),
    "verified": (0.1, [True, False]),
    "min_gpu_mem": (0.3, [4, 16, 80, 320, 1000.5]),
    "min_gpus": (0.25, ["1/6", "1/3", "0.5", "1", "3", "8"]),
    "min_gpu_mem_per_gpu": (0.15, [8, 24, 80]),
    "min_vcpus": (0.5, [1, 4, 64, 100, 400, 2000]),
    "min_memory": (0.4, [1, 3.5, 64, 900, 10_000]),
    "min_local_disk": (0.2, [1, 100, 1000]),
    "min_network_gbps": (0.15, [1, 25, 100]),
    "min_infiniband_gbps": (0.1, [100, 400]),
    "infiniband": (0.1, [True, False]),
    "hibernation": (0.1, [True, False]),
    "arch": (0.1, ["x64", "arm64"]),
    "max_nodes": (0.3, [2, 3, 100]),
    "hours_per_month": (0.2, [100, 744, 1.5]),
    "budget_usd_per_month": (0.3, [10, 500.5, 3000, 50_000]),
    "limit": (0.7, [1, 3, 100]),
}
SORTS = ("cost_per_hour", "cost_per_job", "headroom", "waste", "nodes")


def random_search(number: int) -> FitSearch:
    rng = random.Random(number)
    given = {name: rng.choice(values) for name, (share, values) in VALUES.items() if rng.random() < share}
    return FitSearch(hours=24, sort=rng.choice(SORTS), include=["rejected"], **given)


def order_of(option: Option, sort: str, needs: ResourceNeeds) -> tuple[Any, ...]:
    """What options are sorted by: those with a price first, then by the sort, the cost, fewer VMs, and the name."""
    cost = option.costs[needs.purchase].usd_per_hour
    by = {
        "headroom": -option.limiting.percent if option.limiting else 0.0,
        "waste": unused_gpu_memory_gib(option.vm, option.nodes, needs) or 0.0,
        "nodes": option.nodes,
    }.get(sort, cost or 0)
    return (cost is None, by, cost or 0, option.nodes, option.vm.name)


def one_by_one(session: Session, search: FitSearch, known: CatalogSnapshot) -> tuple[list[Option], list[Rejection]]:
    """Evaluate every size that is selected."""
    search, needs = normalize(search, known), to_needs(search, TODAY)
    filters, values = active_filters(search, SELECTION_FILTERS)

    def selected(sql: Dialect) -> str:
        scope = PriceScope(sql=sql, os=search.os, purchase=search.purchase)
        conditions = (filter_condition(active, scope) for active in filters)
        return f"select size.key from size left join gpu on gpu.id = size.gpu_id where {all_of(*conditions)}"

    keys = [key for (key,) in select_rows(session, selected, **values)]
    purchases = {"on_demand", "spot", search.purchase}
    query = candidates_query(search, purchases, TRAITS, keys, today=TODAY, rules=known.rules)
    verdicts = [evaluate_vm(_to_vm(row), needs) for row in to_dicts(query, fetch(session, query))]
    options = [one for one in verdicts if isinstance(one, Option)]
    rejections = [one for one in verdicts if isinstance(one, Rejection)]
    return sorted(options, key=lambda one: order_of(one, search.sort, needs)), sorted(
        rejections, key=lambda one: (*miss_distance(one.failures), one.vm.name)
    )


@pytest.mark.parametrize("number", first_on_each_kind(2, one_in(4, range(40))))
def test_sizes_are_ranked_as_if_each_were_evaluated_by_itself(seeded_engine: Engine, number: int) -> None:
    search = random_search(number)
    with Session(seeded_engine) as session:
        known = load_snapshot(session)
        options, rejections = one_by_one(session, search, known)
        needs = to_needs(normalize(search, known), TODAY)
        for page in range(2):
            found = plan_resource_fit(Catalog(session, known, TODAY), search, rejected=True)
            shown = options[page * search.limit :][: search.limit]
            assert found.items == [to_placed(option, needs, None) for option in shown]
            assert (found.total, found.rejected_total) == (len(options), len(rejections))
            misses = [to_miss(rejection) for rejection in rejections]
            assert found.rejected == misses
            assert found.nearest_misses == misses[:3]
            codes = [one.failures[0].code for one in rejections]
            assert found.rejection_summary == {code: codes.count(code) for code in sorted(set(codes))}
            if found.next_cursor is None:
                return
            search = search.model_copy(update={"cursor": found.next_cursor})


@pytest.mark.first_database
@pytest.mark.parametrize("most", [1, 3])
def test_so_many_misses_of_each_reason_are_shown(seeded_engine: Engine, most: int) -> None:
    search = FitSearch(min_vcpus=60, min_memory=900, infiniband=True, min_gpu_mem=80, budget_usd_per_month=3000)
    with Session(seeded_engine) as session:
        known = load_snapshot(session)
        _, rejections = one_by_one(session, search, known)
        found = plan_resource_fit(Catalog(session, known, TODAY), search, rejected=True, most_of_reason=most)
    shown = [
        one
        for number, one in enumerate(rejections)
        if [other.failures[0].code for other in rejections[:number]].count(one.failures[0].code) < most
    ]
    assert found.rejected == [to_miss(rejection) for rejection in shown]
    assert found.nearest_misses == [to_miss(rejection) for rejection in rejections[:3]]
    assert len(found.rejection_summary) > 2


@pytest.mark.first_database
@pytest.mark.parametrize("needs", [{"min_gpus": "8", "max_nodes": 8}, {"min_gpu_mem": 320, "max_nodes": 4}])
def test_only_sizes_with_a_part_of_a_gpu_are_told_so(seeded_engine: Engine, needs: dict[str, Any]) -> None:
    search = FitSearch(**needs, include=["rejected"], limit=500)
    with Session(seeded_engine) as session:
        answer = plan_resource_fit(load_catalog(session, TODAY), search)
        parts = session.exec(select(func.count()).where(col(Size.gpu_count) > 0, col(Size.gpu_count) < 1)).one()
    assert 0 < answer.rejection_summary["FRACTIONAL_GPU"] <= parts
