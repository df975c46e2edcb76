"""Placements ranked on columns are those ranked one by one: the answers are compared byte for byte."""

import random
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import Engine
from sqlmodel import Session

from app.catalog.queries.snapshot import SMALL_CATALOG, CatalogSnapshot, load_snapshot
from app.converters import fit_request, fit_response
from app.converters import resource_fit as resource_converter
from app.converters.fit_request import plan_fit
from app.db.statements import run_plan
from app.errors import BadQuery, BadWorkload
from app.fit.placement.prepare import kept_job
from app.schemas.fit_request import FitIn
from app.services import resource_fit
from benchmarks.search.bodies import random_body
from tests.conftest import TODAY

CONSTRAINTS: dict[str, tuple[float, list[Any]]] = {
    "regions": (0.5, [["eastus"], ["westeurope"], ["eastus", "westus2"]]),
    "available_in": (0.1, [["eastus"], ["eastus", "westeurope"]]),
    "name": (0.1, [["nd*"], ["*_v5"]]),
    "gpu": (0.15, [["A100"], ["H100", "H200"], ["*A10*"]]),
    "gpu_vendor": (0.1, ["NVIDIA", "AMD"]),
    "max_nodes": (0.6, [2, 4, 16]),
    "min_nodes": (0.1, [2]),
    "utilization": (0.1, [0.5, 0.8]),
    "tp_in_nvlink": (0.15, [True]),
    "require_infiniband": (0.2, [True, False]),
    "allow_preview": (0.2, [False]),
    "allow_retiring": (0.2, [False]),
    "allow_legacy": (0.2, [True]),
    "verified_only": (0.2, [True]),
    "checkpoint_on_local_disk": (0.3, [False]),
    "budget_usd_per_month": (0.3, [3000, 20_000, 200_000.5]),
}
PRICING: dict[str, tuple[float, list[Any]]] = {
    "purchases": (0.4, [["spot"], ["spot", "on_demand"], ["reserved_1y", "on_demand"], ["savings_3y"]]),
    "os": (0.1, ["windows"]),
    "hours_per_month": (0.2, [100]),
    "currency": (0.1, ["EUR"]),
}
SORTS = ("cost_per_hour", "cost_per_hour", "cost_per_job", "cost_per_1m_tokens", "time", "headroom", "nodes")


def random_fit(number: int) -> FitIn:
    rng = random.Random(number)

    def choose(table: dict[str, tuple[float, list[Any]]]) -> dict[str, Any]:
        return {name: rng.choice(values) for name, (share, values) in table.items() if rng.random() < share}

    body = {**random_body(rng), "constraints": choose(CONSTRAINTS), "pricing": choose(PRICING)}
    del body["gpus"]
    timed = "training" in body and "tokens" in body["training"]
    if timed and rng.random() < 0.3:
        body["constraints"] |= {"max_hours": rng.choice((1, 100, 10_000))}
    if not timed and rng.random() < 0.7:
        body["pricing"]["hours"] = rng.choice((24, 500.5))
    if (timed or "hours" in body["pricing"]) and rng.random() < 0.2:
        body["constraints"]["budget_usd_per_job"] = rng.choice((100, 10_000, 1_000_000))
    if timed and rng.random() < 0.2:
        body["pricing"]["spot_overhead"] = 0.3
    for served in (body.get("inference", {}),):
        served.pop("engine", None)
        for name in ("tensor_parallel", "pipeline_parallel"):
            if rng.random() < 0.7:
                served.pop(name, None)
    sorts = SORTS if timed or "hours" in body["pricing"] else [one for one in SORTS if one != "cost_per_job"]
    body |= {"sort": rng.choice(sorts), "limit": rng.choice((1, 5, 100))}
    if rng.random() < 0.1:
        body["include"] = ["rejected"]
    return FitIn.model_validate(body)


_SNAPSHOTS: dict[str, CatalogSnapshot] = {}


def large_snapshot(session: Session) -> CatalogSnapshot:
    """Return one snapshot of each database, as of a catalog that is too large for each size to be evaluated."""
    known = load_snapshot(session)
    large = replace(known, sizes=SMALL_CATALOG + 1)
    return _SNAPSHOTS.setdefault(f"{session.get_bind().engine.url} {known.revision}", large)


def check(session: Session, number: int) -> bool:
    """Compare the answers to a random body; return whether it has one."""
    body, known, most_of_reason = random_fit(number), large_snapshot(session), None
    if number % 3 == 0:  # as the page asks
        body, most_of_reason = body.model_copy(update={"include": ("rejected",)}), 1 + number % 4
    answers: list[str] = []
    for on_columns in (False, True):
        kept_job.cache_clear()
        plan = plan_fit(body, known, TODAY, most_of_reason=most_of_reason, on_columns=on_columns)
        try:
            answers.append(run_plan(session, plan).model_dump_json())
        except (BadQuery, BadWorkload) as refused:
            answers.append(repr(refused))
    assert answers[0] == answers[1]
    return answers[0].startswith("{")


@pytest.mark.parametrize(
    "first", [0, *(pytest.param(first, marks=pytest.mark.one_database) for first in range(10, 60, 10))]
)
def test_an_answer_on_columns_is_the_one_of_each_size(seeded_engine: Engine, first: int) -> None:
    with Session(seeded_engine) as session:
        answered = [check(session, number) for number in range(first, first + 10)]
    assert sum(answered) > 5


@pytest.mark.parametrize("most_of_reason", [None, 1, 3])
def test_needs_of_resources_have_the_same_answer_on_columns(seeded_engine: Engine, most_of_reason: int | None) -> None:
    needs = {"min_vcpus": 60, "min_memory": 900, "infiniband": True, "min_gpu_mem": 80}
    asked = {"resources": needs, "constraints": {"budget_usd_per_month": 3000}, "include": ["rejected"]}
    with Session(seeded_engine) as session:
        known = large_snapshot(session)
        one, other = (
            run_plan(
                session,
                plan_fit(
                    FitIn.model_validate(asked), known, TODAY, most_of_reason=most_of_reason, on_columns=on_columns
                ),
            )
            for on_columns in (True, False)
        )
    assert one == other
    assert len(one.rejection_summary) > 2


def test_a_catalog_that_changes_meanwhile_is_read_as_a_whole(seeded_engine: Engine) -> None:
    body = FitIn.model_validate({"model": "llama-3.1-70b", "inference": {"context_tokens": 8192}})
    with Session(seeded_engine) as session:
        known = large_snapshot(session)
        expected = run_plan(session, plan_fit(body, known, TODAY))
        outdated = replace(known, revision="of an hour ago")  # with the columns of then
        found = run_plan(session, plan_fit(body, outdated, TODAY, on_columns=True))
        assert found == expected.model_copy(update={"next_cursor": found.next_cursor})  # it names the revision of then


def test_at_most_so_many_rejected_sizes_are_listed(seeded_engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    model = {"model": "llama-3.1-70b", "inference": {"context_tokens": 8192}}
    for body in (model, {"resources": {"min_vcpus": 100}}):
        asked = FitIn.model_validate(body | {"include": ["rejected"]})
        with Session(seeded_engine) as session:
            known = large_snapshot(session)
            whole = run_plan(session, plan_fit(asked, known, TODAY))
            for module in (fit_request, fit_response, resource_converter, resource_fit):
                monkeypatch.setattr(module, "MAX_REJECTED", 7)
            for on_columns in (False, True):
                answer = run_plan(session, plan_fit(asked, known, TODAY, on_columns=on_columns))
                assert answer == whole.model_copy(update={"rejected": whole.rejected[:7]})
                assert answer.rejected_total == len(whole.rejected) > 7
            monkeypatch.undo()
