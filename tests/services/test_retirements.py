from collections.abc import Sequence
from dataclasses import replace

import pytest
from sqlalchemy import Engine
from sqlalchemy.orm import Session

from app.catalog.purchases import Purchase
from app.catalog.queries.snapshot import Catalog, CatalogSnapshot, load_catalog, load_snapshot
from app.errors import CatalogChanged
from app.schemas.retirement_request import SuccessorNeedsIn
from app.schemas.retirements import RetirementPlanOut
from app.services.retirements import InventoryItem, plan_retirements
from tests.conftest import TODAY
from tests.databases import one_in
from tests.recording import statements_of

pytestmark = pytest.mark.first_database

NEEDS = SuccessorNeedsIn()


def plan_and_statements(
    session: Session,
    items: Sequence[InventoryItem],
    needs: SuccessorNeedsIn = NEEDS,
    known: CatalogSnapshot | None = None,
) -> tuple[RetirementPlanOut, int]:
    """Return a plan, and the number of its statements."""
    snapshot = known or load_snapshot(session)
    plan, statements = statements_of(session, snapshot, TODAY, lambda catalog: plan_retirements(catalog, items, needs))
    return plan, len(statements)


@pytest.mark.parametrize("regions", [("eastus",), ("eastus", "westeurope", "northeurope", "mars")])
def test_an_inventory_of_any_length_takes_three_statements(seeded_engine: Engine, regions: tuple[str, ...]) -> None:
    names = ("nv12s_v3", "nc6s_v3", "nv6", "nc24ads_a100_v4", "nope")
    items = [InventoryItem(size=name, region=region) for name in names for region in regions] * 20
    with Session(seeded_engine) as session:
        plan, statements = plan_and_statements(session, items)
    assert len(plan.items) == len(items)
    assert statements == 3  # sizes, their other names, prices


def test_regions_without_prices_of_a_purchase_model_take_two_more(seeded_engine: Engine) -> None:
    items = [InventoryItem(size="f8s_v2", region=region) for region in ("eastus", "westeurope", "polandcentral")]
    with Session(seeded_engine) as session:
        plan, statements = plan_and_statements(session, items, SuccessorNeedsIn(purchase="reserved_1y"))
    assert [item.purchase for item in plan.items] == ["on_demand", "on_demand", "reserved_1y"]
    assert plan.no_price is not None
    assert statements == 3 + 2  # where prices are known, and prices on demand


@pytest.mark.parametrize("purchase", ["on_demand", "reserved_1y"])
@pytest.mark.parametrize("first", one_in(8, range(8)))
def test_an_inventory_names_more_regions_than_a_parameter_takes(
    seeded_engine: Engine, purchase: Purchase, first: int
) -> None:
    with Session(seeded_engine) as session:
        known = load_snapshot(session)
        assert len(known.regions) > 60
        items = [InventoryItem(size="nv12s_v3", region=region) for region in sorted(known.regions)]
        needs = SuccessorNeedsIn(purchase=purchase)
        plan = plan_retirements(Catalog(session, known, TODAY), items, needs)
        for item, planned in list(zip(items, plan.items, strict=True))[first::8]:
            alone = plan_retirements(Catalog(session, known, TODAY), [item], needs)
            assert alone.items[0].model_copy(update={"index": planned.index}) == planned


def test_items_of_unknown_regions_alone_read_no_prices(seeded_engine: Engine) -> None:
    with Session(seeded_engine) as session:
        item = InventoryItem(size="nv6", region="mars")
        plan, statements = plan_and_statements(session, [item])
    assert plan.items[0].outcome == "error"
    assert statements == 2


def test_the_sizes_of_a_revision_are_read_once(seeded_engine: Engine) -> None:
    items = [InventoryItem(size="nv6", region=region) for region in ("eastus", "westeurope")]
    with Session(seeded_engine) as session:
        known = load_snapshot(session)
        (first, asked), (again, asked_again) = (plan_and_statements(session, items, known=known) for _ in range(2))
        with pytest.raises(CatalogChanged):
            plan_and_statements(session, items, known=replace(known, revision="of an hour ago"))
    assert first == again
    assert (asked, asked_again) == (3, 2)


def test_suggestions_are_made_for_a_bounded_number_of_unknown_names(seeded_engine: Engine) -> None:
    items = [InventoryItem(size=f"nc6s_v{number}", region="eastus") for number in range(4, 1004)]
    with Session(seeded_engine) as session:
        plan = plan_retirements(load_catalog(session, TODAY), items, NEEDS)
    suggested = [bool(item.errors[0].suggestions) for item in plan.items]
    assert any(suggested[:100])
    assert not any(suggested[100:])


def test_a_name_may_begin_with_its_provider(seeded_engine: Engine) -> None:
    items = [InventoryItem(size=name, region="eastus") for name in ("azure:nc6s_v3", "aws:nc6s_v3")]
    with Session(seeded_engine) as session:
        plan = plan_retirements(load_catalog(session, TODAY), items, NEEDS)
    assert [item.size for item in plan.items] == ["Standard_NC6s_v3", "aws:nc6s_v3"]
    assert [item.outcome == "error" for item in plan.items] == [False, True]
