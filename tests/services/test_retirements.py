from dataclasses import replace
from decimal import Decimal

import pytest
from sqlalchemy import Engine
from sqlalchemy.orm import Session

from app.catalog.purchases import Purchase
from app.catalog.queries.snapshot import load_snapshot
from app.db.statements import BoundStatement, QueryPlan, run_plan
from app.fit.features import ESSENTIAL_FEATURES
from app.services.retirement_plan import InventoryItem, RetirementPlan, RetirementRequest
from app.services.retirements import plan_retirements
from tests.conftest import TODAY


def request(*items: InventoryItem) -> RetirementRequest:
    return RetirementRequest(
        items=items,
        keep=ESSENTIAL_FEATURES,
        os="linux",
        purchase="on_demand",
        before=None,
        max_successors=3,
        successor_days=1095,
        hours_per_month=Decimal(730),
    )


def counted(plan: QueryPlan[RetirementPlan], statements: list[BoundStatement]) -> QueryPlan[RetirementPlan]:
    """Run a plan and note its statements."""
    bound = next(plan)
    while True:
        statements.append(bound)
        rows = yield bound
        try:
            bound = plan.send(rows)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]  # what a generator returns has no type here


@pytest.mark.parametrize("regions", [("eastus",), ("eastus", "westeurope", "northeurope", "mars")])
def test_an_inventory_of_any_length_takes_five_statements(seeded_engine: Engine, regions: tuple[str, ...]) -> None:
    names = ("nv12s_v3", "nc6s_v3", "nv6", "nc24ads_a100_v4", "nope")
    items = [InventoryItem(size=name, region=region) for name in names for region in regions] * 20
    statements: list[BoundStatement] = []
    with Session(seeded_engine) as session:
        plan = run_plan(session, counted(plan_retirements(request(*items), load_snapshot(session), TODAY), statements))
    assert len(plan.items) == len(items)
    assert (
        len(statements) == 5
    )  # sizes and their revision, their other names, prices, and the revision that these are of


def test_regions_without_prices_of_a_purchase_model_take_three_more(seeded_engine: Engine) -> None:
    statements: list[BoundStatement] = []
    items = [InventoryItem(size="f8s_v2", region=region) for region in ("eastus", "westeurope", "polandcentral")]
    asked = replace(request(*items), purchase="reserved_1y")
    with Session(seeded_engine) as session:
        plan = run_plan(session, counted(plan_retirements(asked, load_snapshot(session), TODAY), statements))
    assert [item.purchase for item in plan.items] == ["on_demand", "on_demand", "reserved_1y"]
    assert plan.no_price is not None
    assert len(statements) == 5 + 3  # where prices are known, the revision that this is of, and prices on demand


@pytest.mark.parametrize("purchase", ["on_demand", "reserved_1y"])
def test_an_inventory_names_more_regions_than_a_parameter_takes(seeded_engine: Engine, purchase: Purchase) -> None:
    with Session(seeded_engine) as session:
        known = load_snapshot(session)
        assert len(known.regions) > 60
        items = [InventoryItem(size="nv12s_v3", region=region) for region in sorted(known.regions)]
        asked = replace(request(*items), purchase=purchase)
        plan = run_plan(session, plan_retirements(asked, known, TODAY))
        for planned in plan.items:
            alone = run_plan(session, plan_retirements(replace(asked, items=[planned.item]), known, TODAY))
            assert replace(alone.items[0], index=planned.index) == planned


def test_items_of_unknown_regions_alone_read_no_prices(seeded_engine: Engine) -> None:
    statements: list[BoundStatement] = []
    with Session(seeded_engine) as session:
        item = InventoryItem(size="nv6", region="mars")
        plan = run_plan(session, counted(plan_retirements(request(item), load_snapshot(session), TODAY), statements))
    assert plan.items[0].outcome == "error"
    assert len(statements) == 4


def test_the_sizes_of_a_revision_are_read_once(seeded_engine: Engine) -> None:
    statements: list[BoundStatement] = []
    items = [InventoryItem(size="nv6", region=region) for region in ("eastus", "westeurope")]
    with Session(seeded_engine) as session:
        known = load_snapshot(session)
        first, again, outdated = (
            run_plan(session, counted(plan_retirements(request(*items), of, TODAY), statements))
            for of in (known, known, replace(known, revision="of an hour ago"))
        )
    assert first == again == outdated
    assert len(statements) == 5 + 3 + 4  # where the sizes that are kept are of another revision, they are read again


def test_suggestions_are_made_for_a_bounded_number_of_unknown_names(seeded_engine: Engine) -> None:
    items = [InventoryItem(size=f"nc6s_v{number}", region="eastus") for number in range(4, 1004)]
    with Session(seeded_engine) as session:
        plan = run_plan(session, plan_retirements(request(*items), load_snapshot(session), TODAY))
    suggested = [bool(item.errors[0].suggestions) for item in plan.items]
    assert any(suggested[:100])
    assert not any(suggested[100:])
