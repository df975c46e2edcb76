from dataclasses import replace
from decimal import Decimal

import pytest
from sqlalchemy import Engine
from sqlalchemy.orm import Session

from app.catalog.purchases import Purchase
from app.catalog.queries.snapshot import Catalog, CatalogSnapshot, load_catalog, load_snapshot
from app.errors import CatalogChanged
from app.fit.features import ESSENTIAL_FEATURES
from app.services.retirement_plan import InventoryItem, RetirementPlan, RetirementRequest
from app.services.retirements import plan_retirements
from tests.conftest import TODAY
from tests.recording import statements_of


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


def plan_and_statements(
    session: Session, asked: RetirementRequest, known: CatalogSnapshot | None = None
) -> tuple[RetirementPlan, int]:
    """Return a plan, and the number of its statements."""
    snapshot = known or load_snapshot(session)
    plan, statements = statements_of(session, snapshot, TODAY, lambda catalog: plan_retirements(catalog, asked))
    return plan, len(statements)


@pytest.mark.parametrize("regions", [("eastus",), ("eastus", "westeurope", "northeurope", "mars")])
def test_an_inventory_of_any_length_takes_three_statements(seeded_engine: Engine, regions: tuple[str, ...]) -> None:
    names = ("nv12s_v3", "nc6s_v3", "nv6", "nc24ads_a100_v4", "nope")
    items = [InventoryItem(size=name, region=region) for name in names for region in regions] * 20
    with Session(seeded_engine) as session:
        plan, statements = plan_and_statements(session, request(*items))
    assert len(plan.items) == len(items)
    assert statements == 3  # sizes, their other names, prices


def test_regions_without_prices_of_a_purchase_model_take_two_more(seeded_engine: Engine) -> None:
    items = [InventoryItem(size="f8s_v2", region=region) for region in ("eastus", "westeurope", "polandcentral")]
    asked = replace(request(*items), purchase="reserved_1y")
    with Session(seeded_engine) as session:
        plan, statements = plan_and_statements(session, asked)
    assert [item.purchase for item in plan.items] == ["on_demand", "on_demand", "reserved_1y"]
    assert plan.no_price is not None
    assert statements == 3 + 2  # where prices are known, and prices on demand


@pytest.mark.parametrize("purchase", ["on_demand", "reserved_1y"])
def test_an_inventory_names_more_regions_than_a_parameter_takes(seeded_engine: Engine, purchase: Purchase) -> None:
    with Session(seeded_engine) as session:
        known = load_snapshot(session)
        assert len(known.regions) > 60
        items = [InventoryItem(size="nv12s_v3", region=region) for region in sorted(known.regions)]
        asked = replace(request(*items), purchase=purchase)
        plan = plan_retirements(Catalog(session, known, TODAY), asked)
        for planned in plan.items:
            alone = plan_retirements(Catalog(session, known, TODAY), replace(asked, items=[planned.item]))
            assert replace(alone.items[0], index=planned.index) == planned


def test_items_of_unknown_regions_alone_read_no_prices(seeded_engine: Engine) -> None:
    with Session(seeded_engine) as session:
        item = InventoryItem(size="nv6", region="mars")
        plan, statements = plan_and_statements(session, request(item))
    assert plan.items[0].outcome == "error"
    assert statements == 2


def test_the_sizes_of_a_revision_are_read_once(seeded_engine: Engine) -> None:
    items = [InventoryItem(size="nv6", region=region) for region in ("eastus", "westeurope")]
    with Session(seeded_engine) as session:
        known = load_snapshot(session)
        (first, asked), (again, asked_again) = (plan_and_statements(session, request(*items), known) for _ in range(2))
        with pytest.raises(CatalogChanged):
            plan_and_statements(session, request(*items), replace(known, revision="of an hour ago"))
    assert first == again
    assert (asked, asked_again) == (3, 2)


def test_suggestions_are_made_for_a_bounded_number_of_unknown_names(seeded_engine: Engine) -> None:
    items = [InventoryItem(size=f"nc6s_v{number}", region="eastus") for number in range(4, 1004)]
    with Session(seeded_engine) as session:
        plan = plan_retirements(load_catalog(session, TODAY), request(*items))
    suggested = [bool(item.errors[0].suggestions) for item in plan.items]
    assert any(suggested[:100])
    assert not any(suggested[100:])
