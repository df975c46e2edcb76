"""Change events: what each revision changed of sizes, their accepted values, and their prices in force."""

from collections.abc import Iterable
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from sqlalchemy import Engine, delete, select

from app.catalog.column_types import table_of
from app.catalog.models import Change, Offer, Revision
from app.catalog.queries.changes import find_past_changes
from app.catalog.queries.snapshot import Catalog, load_snapshot
from app.catalog.readings import AliasRow, PriceRow, Reading
from app.db.engines import read_session as reads
from app.db.writing import write_session as writes
from app.ingest.run import forget, ingest
from tests.conftest import TODAY
from tests.factories import NOW, price, reading, size, source, statement

JULY, AUGUST = date(2026, 7, 1), date(2026, 8, 1)
PAGE = reading([*size("Standard_X1", vcpus=8), *size("Standard_X2", vcpus=16)], regions=["eastus", "westus"])


def add(engine: Engine, read: Reading, *, now: datetime = NOW) -> list[dict[str, Any]]:
    """Ingest a reading; return the events of its revision, without the fields that are null."""
    outcome = ingest(engine, read, now=now)
    return events(engine, outcome.revision["number"]) if outcome.new_revision else []


def add_prices(engine: Engine, *prices: PriceRow, now: datetime = NOW) -> list[dict[str, Any]]:
    return add(engine, reading(prices=prices), now=now)


def events(engine: Engine, revision: int) -> list[dict[str, Any]]:
    table = table_of(Change)
    query = select(table).where(table.c.revision == revision).order_by(table.c.id)
    with reads(engine) as session:
        rows = [dict(row) for row in session.execute(query).mappings()]
    hidden = {"id", "revision", "size_key"}
    return [{name: value for name, value in row.items() if value is not None and name not in hidden} for row in rows]


def kinds(found: Iterable[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(event["kind"], event["size"]) for event in found]


def counts(engine: Engine) -> list[int | None]:
    table = table_of(Revision)
    with reads(engine) as session:
        return list(session.execute(select(table.c.changes).order_by(table.c.number)).scalars())


def test_the_first_revision_of_an_empty_catalog_makes_no_events(engine: Engine) -> None:
    assert add(engine, reading(size("Standard_X1", vcpus=8), regions=["eastus"], prices=[price("x1", "1.5")])) == []
    assert counts(engine) == [None]
    further = statement("vcpus", 8, subject="Standard_X2", file="other.md")
    assert kinds(add(engine, reading([further]))) == [("size_new", "Standard_X2")]
    assert counts(engine) == [None, 1]


@pytest.mark.first_database
def test_a_newer_price_that_differs_is_an_event_with_both_prices_and_its_source(engine: Engine) -> None:
    add(engine, PAGE)
    add_prices(engine, price("x1", "1.6"), price("x2", "2"))
    assert add_prices(engine, price("x1", "2.0000", valid_from=JULY), price("x2", "1.9", valid_from=JULY)) == [
        {
            "kind": kind,
            "size": name,
            "region": "eastus",
            "os": "linux",
            "purchase": "on_demand",
            "old": old,
            "new": new,
            "percent": percent,
            "valid_from": JULY,
            "source_id": "prices",
        }
        for kind, name, old, new, percent in (
            ("price_up", "Standard_X1", "1.6", "2", 25.0),
            ("price_down", "Standard_X2", "2", "1.9", -5.0),
        )
    ]


@pytest.mark.first_database
def test_a_price_of_an_older_day_and_an_equal_one_of_a_newer_day_are_no_events(engine: Engine) -> None:
    add(engine, PAGE)
    add_prices(engine, price("x1", "1.6", valid_from=JULY))
    assert add_prices(engine, price("x1", "1.2")) == []
    assert add_prices(engine, price("x1", "1.6", valid_from=AUGUST)) == []
    assert counts(engine)[-2:] == [0, 0]


def test_the_first_prices_of_a_region_and_purchase_model_start_its_tracking_and_further_ones_are_new(
    engine: Engine,
) -> None:
    add(engine, PAGE)
    assert add_prices(engine, price("x1", "1.6")) == []
    assert add_prices(engine, price("x2", "0.3", purchase="spot"), price("x2", "1", region="westus")) == []
    (new,) = add_prices(engine, price("x2", "3.2"))
    assert (new["kind"], new["size"], new["new"], new["valid_from"]) == (
        "price_new",
        "Standard_X2",
        "3.2",
        date(2026, 6, 18),
    )
    assert not {"old", "percent"} & new.keys()


@pytest.mark.first_database
def test_forgetting_a_source_undoes_its_changes_with_events(engine: Engine) -> None:
    add(engine, PAGE)
    add_prices(engine, price("x1", "1.6"))
    later = [price(name, "2", valid_from=JULY, source="later") for name in ("x1", "x2")]
    assert kinds(add(engine, reading(sources=[source("later", kind="third_party")], prices=later))) == [
        ("price_up", "Standard_X1"),
        ("price_new", "Standard_X2"),
    ]
    outcome = forget(engine, "later", now=NOW)
    down, gone = events(engine, outcome.revision["number"])
    assert (down["kind"], down["old"], down["new"], down["source_id"]) == ("price_down", "2", "1.6", "prices")
    assert (gone["kind"], gone["size"], gone["old"]) == ("price_gone", "Standard_X2", "2")
    assert not {"new", "valid_from", "source_id"} & gone.keys()


@pytest.mark.first_database
def test_a_spot_price_that_becomes_too_old_is_gone(engine: Engine) -> None:
    add(engine, PAGE)
    add_prices(engine, price("x1", "0.3", purchase="spot"))
    assert add_prices(engine, price("x2", "5"), now=NOW + timedelta(days=200)) == []
    (gone,) = add_prices(engine, price("x2", "6", region="westus"), now=NOW + timedelta(days=366))
    assert (gone["kind"], gone["purchase"], gone["old"]) == ("price_gone", "spot", "0.3")


@pytest.mark.first_database
def test_a_size_that_goes_takes_its_prices_with_it(engine: Engine) -> None:
    add(engine, PAGE)
    add_prices(engine, price("x1", "1.6"))
    add(engine, reading(sources=[source("later", kind="third_party")], prices=[price("x9", "2", source="later")]))
    outcome = forget(engine, "later", now=NOW)
    assert kinds(events(engine, outcome.revision["number"])) == [("size_gone", "x9"), ("price_gone", "x9")]


@pytest.mark.first_database
def test_the_prices_of_a_name_that_turns_out_to_be_an_alias_move_with_events(engine: Engine) -> None:
    add(engine, PAGE)
    add_prices(engine, price("x2", "3"), price("Xone", "7"))
    alias = AliasRow(alias="Xone", size="Standard_X1", source="prices", reason="billing", file="a.csv", line=2)
    assert kinds(add(engine, reading(aliases=(alias,)))) == [
        ("size_gone", "Xone"),
        ("price_new", "Standard_X1"),
        ("price_gone", "Xone"),
    ]


@pytest.mark.first_database
def test_an_accepted_value_that_changes_is_an_event_with_its_source(engine: Engine) -> None:
    add(engine, reading(size("Standard_X1", vcpus=8, memory_gib=Decimal("112.5"), nvlink=True)))
    newer = source("newer", on=date(2026, 1, 1))
    found = add(engine, reading(size("Standard_X1", by="newer", vcpus=16, premium_storage=False), sources=[newer]))
    changed = [event for event in found if event["kind"] == "field_changed"]
    assert [(event["field"], event.get("old"), event.get("new"), event["source_id"]) for event in changed] == [
        ("vcpus", "8", "16", "newer"),
        ("premium_storage", None, "false", "newer"),
    ]


@pytest.mark.first_database
def test_a_value_that_is_known_no_more_is_an_event_without_a_new_value(engine: Engine) -> None:
    newer = source("newer", on=date(2026, 1, 1))
    facts = [*size("Standard_X1", vcpus=8), *size("Standard_X1", by="newer", memory_gib=Decimal(64))]
    add(engine, reading(facts, sources=[newer]))
    outcome = forget(engine, "newer", now=NOW)
    (event,) = events(engine, outcome.revision["number"])
    assert (event["kind"], event["field"], event["old"], "new" in event) == (
        "field_changed",
        "memory_gib",
        "64",
        False,
    )


@pytest.mark.first_database
def test_a_dispute_is_an_event_when_it_begins_and_when_it_ends(engine: Engine) -> None:
    add(engine, PAGE)
    other = source("other", kind="third_party")
    (opened,) = add(engine, reading(size("Standard_X1", by="other", vcpus=9), sources=[other]))
    assert opened == {
        "kind": "dispute_opened",
        "size": "Standard_X1",
        "field": "vcpus",
        "new": "9",
        "source_id": "other",
    }
    outcome = forget(engine, "other", now=NOW)
    (closed,) = events(engine, outcome.revision["number"])
    assert (closed["kind"], closed["field"], closed["old"]) == ("dispute_closed", "vcpus", "9")


@pytest.mark.first_database
def test_a_retirement_is_announced_and_moved(engine: Engine) -> None:
    add(engine, PAGE)
    for day, on in ((date(2027, 9, 30), date(2025, 6, 1)), (date(2028, 3, 31), date(2025, 7, 1))):
        notice = source(f"notice-{on}", on=on)
        found = add(engine, reading(size("Standard_X1", by=notice.id, retirement_date=day), sources=[notice]))
        (announced,) = (event for event in found if event["kind"] == "retirement_announced")
        assert (announced["size"], announced["new"], announced["source_id"]) == (
            "Standard_X1",
            day.isoformat(),
            notice.id,
        )
    assert announced["old"] == "2027-09-30"


@pytest.mark.first_database
def test_offers_that_were_not_derived_are_nothing_to_compare_with(engine: Engine) -> None:
    add(engine, PAGE)
    add_prices(engine, price("x1", "1.6"))
    with writes(engine) as session:
        session.execute(delete(table_of(Offer)))
    assert add_prices(engine, price("x1", "2", valid_from=JULY)) == []
    assert counts(engine)[-1] is None
    assert kinds(add_prices(engine, price("x1", "1", valid_from=AUGUST))) == [("price_down", "Standard_X1")]


def test_events_are_numbered_from_revision_to_revision_and_a_dry_run_leaves_none(engine: Engine) -> None:
    add(engine, PAGE)
    add_prices(engine, price("x1", "1.6"), price("x2", "2"))
    ingest(engine, reading(prices=[price("x1", "9", valid_from=JULY)]), now=NOW, dry_run=True)
    for usd, day in (("3", JULY), ("4", AUGUST)):
        add_prices(engine, price("x1", usd, valid_from=day), price("x2", usd, valid_from=day))
    with reads(engine) as session:
        rows = session.execute(select(table_of(Change).c.id, table_of(Change).c.revision)).all()
    assert sorted(map(tuple, rows)) == [(1, 3), (2, 3), (3, 4), (4, 4)]


def test_past_changes_are_those_within_a_list_in_the_last_year(seeded_engine: Engine) -> None:
    with reads(seeded_engine) as session:
        by_day = Catalog(session, load_snapshot(session), TODAY).ask(find_past_changes)
    assert [*by_day] == sorted(by_day, reverse=True)
    assert by_day.keys() >= {"2026-06-18", "2026-04-02"}
    for day, changes in by_day.items():
        assert TODAY - timedelta(days=365) <= date.fromisoformat(day) <= TODAY
        shares = [abs(change["percent"]) for change in changes]
        assert shares == sorted(shares, reverse=True)
        assert all((change["kind"] == "price_up") == (change["percent"] > 0) for change in changes)
