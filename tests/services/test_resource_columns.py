"""Sizes ranked on columns are those ranked one by one: the answers are compared byte for byte."""

import random
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import Engine
from sqlmodel import Session, col, func, select

from app.catalog.models.sizes import Size
from app.catalog.queries.candidates import candidates_query
from app.catalog.queries.params import FitSearch
from app.catalog.queries.snapshot import CatalogSnapshot, load_snapshot
from app.converters.resource_fit import to_fit_out
from app.db.statements import run_plan, single_statement
from app.services.resource_fit import TRAITS, plan_resource_fit
from tests.conftest import TODAY
from tests.databases import first_on_each_kind

VALUES: dict[str, tuple[float, list[Any]]] = {
    "region": (0.5, [["eastus"], ["westeurope"], ["eastus", "westus2", "centralindia"], ["southcentralus"]]),
    "available_in": (0.15, [["eastus"], ["eastus", "westeurope"]]),
    "purchase": (0.3, ["spot", "reserved_1y", "savings_3y"]),
    "os": (0.2, ["windows"]),
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
    return FitSearch(hours=24, sort=rng.choice(SORTS), **given)


@pytest.mark.parametrize("number", first_on_each_kind(5, range(20)))
def test_an_answer_on_columns_is_the_one_of_each_size(seeded_engine: Engine, number: int) -> None:
    search = random_search(number)
    with Session(seeded_engine) as session:
        known = kept_snapshot(session)
        for _ in range(2):  # two pages
            one, other = (
                run_plan(session, plan_resource_fit(search, known, TODAY, on_columns=on_columns))
                for on_columns in (True, False)
            )
            assert to_fit_out(one).model_dump_json() == to_fit_out(other).model_dump_json()
            if one.next_cursor is None:
                return
            search = search.model_copy(update={"cursor": one.next_cursor})


@pytest.mark.parametrize("needs", [{"min_gpus": "8", "max_nodes": 8}, {"min_gpu_mem": 320, "max_nodes": 4}])
def test_only_sizes_with_a_part_of_a_gpu_are_told_so(seeded_engine: Engine, needs: dict[str, Any]) -> None:
    search = FitSearch(**needs, include=["rejected"], limit=500)
    with Session(seeded_engine) as session:
        known = kept_snapshot(session)
        answers = [
            run_plan(session, plan_resource_fit(search, known, TODAY, on_columns=on_columns))
            for on_columns in (True, False)
        ]
        parts = session.exec(select(func.count()).where(col(Size.gpu_count) > 0, col(Size.gpu_count) < 1)).one()
    columns, each = (to_fit_out(answer).model_dump_json() for answer in answers)
    assert columns == each
    assert 0 < to_fit_out(answers[0]).rejection_summary["FRACTIONAL_GPU"] <= parts


_SNAPSHOTS: dict[str, CatalogSnapshot] = {}


def kept_snapshot(session: Session) -> CatalogSnapshot:
    """Return one snapshot of each database, so that its columns are loaded once."""
    known = load_snapshot(session)
    return _SNAPSHOTS.setdefault(f"{session.get_bind().engine.url} {known.revision}", known)


def test_a_catalog_that_changes_meanwhile_is_read_as_a_whole(seeded_engine: Engine) -> None:
    search = FitSearch(min_vcpus=64)
    with Session(seeded_engine) as session:
        known = load_snapshot(session)  # of its own: another one may keep all sizes
        run_plan(session, plan_resource_fit(search, known, TODAY, on_columns=True))
        outdated = replace(known, revision="of an hour ago")  # with the columns of then
        all_sizes = candidates_query(search, ("on_demand", "spot"), TRAITS, today=TODAY, rules=known.rules)
        statements = []
        plan = plan_resource_fit(search, outdated, TODAY, on_columns=True)
        with suppress(StopIteration):
            bound = next(plan)
            while True:
                statements.append(bound.statement)
                bound = plan.send(run_plan(session, single_statement(bound)))
    assert all_sizes.statement in statements
