"""Rules of prices in the catalog: taken in whole by file, taken back, in force by their days, and no events."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, select

from app.catalog.column_types import table_of
from app.catalog.in_force import MAX_RULES, load_rules
from app.catalog.models import Change, Offer
from app.catalog.store.revisions import compute_digest
from app.db.engines import read_session
from app.errors import BadData
from app.ingest.registry import read_csv_source
from app.ingest.run import IngestOutcome, forget, ingest
from tests.factories import NOW, price, reading, region, size, source

HEADER = "name,size,region,os,purchase,discount_percent,usd_per_hour,valid_from,valid_until"
PRICES = reading(
    [*size("Standard_X1", vcpus=8), *size("Standard_Y1", vcpus=8)],
    regions=["eastus", "westus"],
    prices=[
        price("Standard_X1", "10"),
        price("Standard_X1", "8", region="westus"),
        price("Standard_Y1", "20"),
        price("Standard_Y1", "0.000000005", region="westus", purchase="spot"),
    ],
)
LATER = datetime(2026, 10, 2, tzinfo=UTC)


@pytest.fixture
def priced(engine: Engine) -> Engine:
    """A catalog with two sizes in two regions."""
    ingest(engine, PRICES, now=NOW)
    return engine


def save(engine: Engine, folder: Path, *rows: str, name: str = "contoso.csv", **more: Any) -> IngestOutcome:
    path = folder / name
    path.write_text("\n".join([HEADER, *rows]) + "\n")
    return ingest(engine, read_csv_source("adjustments", path), **{"now": NOW, **more})


def offers(engine: Engine, purchase: str = "on_demand") -> Mapping[tuple[str, str], tuple[float, str | None]]:
    """Return the price and the adjustment of each offer of Linux that has one, by region and size."""
    table = table_of(Offer).c
    columns = (table.region, table.size_key, table[f"{purchase}_rank_usd"], table[f"{purchase}_adjustment"])
    known = table[f"{purchase}_rank_usd"] < float("inf")
    with read_session(engine) as session:
        rows = session.execute(select(*columns).where(table.os == "linux", table.region.not_like("*%"), known))
        return {(region, key): (usd, adjustment) for region, key, usd, adjustment in rows}


def digest(engine: Engine) -> str:
    with read_session(engine) as session:
        return compute_digest(session)[0]


def names(engine: Engine) -> list[str]:
    with read_session(engine) as session:
        return [rule.name for rule in load_rules(session)]


def test_rules_apply_in_the_order_of_the_file(priced: Engine, tmp_path: Path) -> None:
    save(priced, tmp_path, "East,,eastus,,,10,,,", "X,X*,,,,,4,,", "All,,,,,50,,,", '"Quoted ""x""",x1,westus,,,10,,,')
    assert offers(priced) == {
        ("eastus", "x1"): (2.0, '{"list_usd_per_hour":10.0,"rules":["X","All"]}'),
        ("westus", "x1"): (1.8, '{"list_usd_per_hour":8.0,"rules":["X","All","Quoted \\"x\\""]}'),
        ("eastus", "y1"): (9.0, '{"list_usd_per_hour":20.0,"rules":["East","All"]}'),
    }
    assert offers(priced, "spot")["westus", "y1"][0] == 3e-9  # 2.5 billionths, rounded half away from zero


def test_an_unknown_price_stays_unknown(priced: Engine, tmp_path: Path) -> None:
    save(priced, tmp_path, "All,,,,,,4,,")
    assert offers(priced, "reserved_1y") == {}
    assert ("westus", "y1") not in offers(priced)


def test_a_file_that_is_read_again_replaces_its_rules(priced: Engine, tmp_path: Path) -> None:
    before = offers(priced), digest(priced)
    save(priced, tmp_path, "All,,,,,50,,,", "X,x1,,,,10,,,")
    outcome = save(priced, tmp_path, "X,x1,,,,10,,,")
    assert outcome.summary.changes["adjustment"].removed == 1
    assert (names(priced), offers(priced)["eastus", "x1"][0], offers(priced)["eastus", "y1"]) == (
        ["X"],
        9.0,
        (20, None),
    )
    assert not save(priced, tmp_path, "X,x1,,,,10,,,").new_revision
    forget(priced, "adjustments-contoso", now=NOW)
    assert (offers(priced), digest(priced)) == before


def test_files_are_sources_of_their_own_in_the_order_of_their_ids(priced: Engine, tmp_path: Path) -> None:
    save(priced, tmp_path, "Second,,,,,,4,,", name="b.csv")
    save(priced, tmp_path, "First,,,,,50,,,", name="a.csv")
    assert names(priced) == ["First", "Second"]
    assert offers(priced)["eastus", "x1"] == (4.0, '{"list_usd_per_hour":10.0,"rules":["Second"]}')
    forget(priced, "adjustments-b", now=NOW)
    assert offers(priced)["eastus", "x1"][0] == 5.0


def test_new_prices_follow_the_rules(priced: Engine, tmp_path: Path) -> None:
    save(priced, tmp_path, "All,,,,,50,,,")
    ingest(priced, reading(prices=[price("Standard_X1", "12", valid_from=NOW.date())]), now=NOW)
    assert offers(priced)["eastus", "x1"][0] == 6.0


def test_a_rule_is_taken_up_and_ends_by_the_next_ingest_of_anything(priced: Engine, tmp_path: Path) -> None:
    save(priced, tmp_path, "Old,,eastus,,,50,,,2026-09-01", "New,,eastus,,,25,,2026-09-02,2026-10-01")
    assert offers(priced)["eastus", "x1"][0] == 5.0
    ingest(priced, reading(size("Standard_Z1", vcpus=1)), now=datetime(2026, 9, 2, tzinfo=UTC))
    assert offers(priced)["eastus", "x1"][0] == 7.5
    ingest(priced, reading(size("Standard_Z2", vcpus=1)), now=datetime(2026, 10, 1, tzinfo=UTC))
    assert offers(priced)["eastus", "x1"][0] == 7.5
    ingest(priced, reading(size("Standard_Z3", vcpus=1)), now=LATER)
    assert offers(priced)["eastus", "x1"] == (10.0, None)


def test_rules_that_change_make_no_events_of_prices(priced: Engine, tmp_path: Path) -> None:
    assert save(priced, tmp_path, "All,,,,,50,,,").summary.events == 0
    assert forget(priced, "adjustments-contoso", now=NOW).summary.events == 0
    with read_session(priced) as session:
        assert session.execute(select(table_of(Change).c.kind)).scalars().all() == []


@pytest.mark.first_database
def test_a_dry_run_writes_no_rule(priced: Engine, tmp_path: Path) -> None:
    outcome = save(priced, tmp_path, "All,,,,,50,,,", dry_run=True)
    assert outcome.summary.changes["offer"].changed > 0
    assert (names(priced), offers(priced)["eastus", "x1"]) == ([], (10.0, None))


@pytest.mark.first_database
def test_a_rule_for_sizes_that_there_are_not_is_kept_and_reported(priced: Engine, tmp_path: Path) -> None:
    outcome = save(priced, tmp_path, "Nd,ND*,,,,10,,,", "X,Standard_X?,,,,10,,,")
    (report,) = outcome.summary.reports
    assert (report.line, report.column, report.cell) == (2, "size", "ND*")
    assert "matches no size" in report.detail
    assert names(priced) == ["Nd", "X"]


def test_an_underscore_of_a_glob_is_no_wildcard(priced: Engine, tmp_path: Path) -> None:
    save(priced, tmp_path, "X,x_*,,,,10,,,", "Percent,%,,,,10,,,")
    assert offers(priced)["eastus", "x1"] == (10.0, None)


@pytest.mark.first_database
def test_a_rule_in_an_unknown_region_is_refused(priced: Engine, tmp_path: Path) -> None:
    with pytest.raises(BadData, match=r"contoso\.csv:3: column 'region': unknown region 'useast'; did you mean eastus"):
        save(priced, tmp_path, "All,,,,,50,,,", "No,,useast,,,50,,,")


FRANKFURT = "Europe (Frankfurt)"


@pytest.fixture
def of_amazon(engine: Engine) -> Engine:
    """A catalog with a size of AWS and two regions; two more have one name."""
    codes = {"eu-central-1": FRANKFURT, "us-east-1": "US East (N. Virginia)", "a": "All regions", "b": "All regions"}
    regions = tuple(replace(region(code), name=name, provider="aws") for code, name in codes.items())
    sizes = size("m5.large", by="amazon", vcpus=2)
    known = reading(sizes, sources=[replace(source("amazon"), publisher="AWS")], prices=[])
    ingest(engine, replace(known, regions=regions), now=NOW)
    return engine


def test_price_lists_and_rules_take_a_region_by_its_name(of_amazon: Engine, tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    rows = (f"m5.large,{FRANKFURT},0.1,2026-08-01", "m5.large,us-east-1,0.2,2026-08-01")
    path.write_text("\n".join(["size,region,usd_per_hour,valid_from", *rows]))
    ingest(of_amazon, read_csv_source("prices", path), now=NOW)
    assert offers(of_amazon) == {("eu-central-1", "m5.large"): (0.1, None), ("us-east-1", "m5.large"): (0.2, None)}
    save(of_amazon, tmp_path, f"Half,,{FRANKFURT},,,50,,,")
    assert offers(of_amazon)["eu-central-1", "m5.large"][0] == 0.05
    assert offers(of_amazon)["us-east-1", "m5.large"] == (0.2, None)


@pytest.mark.one_database
@pytest.mark.parametrize(
    ("written", "detail"),
    [
        ("eu-Centrall-1", "unknown region 'eu-Centrall-1'; did you mean eu-central-1? Else ingest it first"),
        ("us_eats_1", "unknown region 'us_eats_1'; did you mean us-east-1? Else ingest it first"),
        ("Europe (Bonn)", "unknown region 'Europe (Bonn)'; ingest it first"),
        ("All regions", "unknown region 'All regions'; ingest it first"),
    ],
)
@pytest.mark.parametrize("kind", ["prices", "adjustments"])
def test_an_unknown_region_is_quoted_as_it_is_written(
    of_amazon: Engine, tmp_path: Path, written: str, detail: str, kind: str
) -> None:
    path = tmp_path / "own.csv"
    rows = {
        "prices": f"size,region,usd_per_hour\nm5.large,{written},1\n",
        "adjustments": f"{HEADER}\nX,,{written},,,5,,,\n",
    }
    path.write_text(rows[kind])
    with pytest.raises(BadData) as caught:
        ingest(of_amazon, read_csv_source(kind, path), now=NOW)
    assert str(caught.value) == f"{path}:2: column 'region': {detail}"


@pytest.mark.takes_seconds
def test_a_catalog_keeps_and_applies_as_many_rules_as_it_may(priced: Engine, tmp_path: Path) -> None:
    rows = [f"Rule {number},x*,,,,{'1,' if number % 2 else ',9'},," for number in range(1, MAX_RULES + 1)]
    save(priced, tmp_path, *rows)
    assert offers(priced)["eastus", "x1"][0] == 9.0
    with pytest.raises(BadData, match=f"makes {MAX_RULES + 1} rules in all; at most {MAX_RULES} are kept"):
        save(priced, tmp_path, "One more,,,,,1,,,", name="more.csv")
