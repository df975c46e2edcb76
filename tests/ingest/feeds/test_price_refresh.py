"""A refresh of prices from the API to the catalog, on a real server and a real database."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, text

from app.catalog.readings import AliasRow, PriceRow, Reading
from app.db.engines import make_engine
from app.errors import BadData, BadQuery
from app.ingest.feeds.azure_prices import AZURE_PRICES
from app.ingest.feeds.fetching import PriceFeed, RetryPolicy
from app.ingest.feeds.price_refresh import PriceRefresh, run_price_refresh
from app.ingest.run import IngestOutcome, ingest
from tests.databases import Databases
from tests.factories import NOW, price, price_list, region, size, source
from tests.ingest.feeds.fake_api import FakeApi, serving
from tests.ingest.feeds.meters import Item, in_region, item

DAY = date(2026, 8, 22)
QUICK = RetryPolicy(attempts=2, first_wait=0.001, longest_wait=0.01)
REGIONS = ("eastus", "westeurope", "westus")


@pytest.fixture
def engine(engine: Engine) -> Engine:
    """A catalog with three regions and the sizes that have prices there."""
    fill(engine)
    return engine


def fill(engine: Engine) -> None:
    names = [f"Standard_B{n}als_v2" for n in range(60)]
    facts = (fact for name in names for fact in size(name, vcpus=1, by="prices"))
    ingest(
        engine, Reading(sources=(source("prices"),), regions=tuple(map(region, REGIONS)), facts=tuple(facts)), now=NOW
    )


def meters(name: str, sizes: int = 20, factor: float = 1.0) -> list[Item]:
    """Return the items of that many sizes in a region."""
    return [
        one | {"retailPrice": round(one["retailPrice"] * factor, 6)}
        for n in range(sizes)
        for one in in_region(name, size=f"Standard_B{n}als_v2")
    ]


def everywhere(**changed: Sequence[Item]) -> Mapping[str, Sequence[Item]]:
    return {name: meters(name) for name in REGIONS} | changed


def refresh(
    engine: Engine,
    folder: Path,
    api: FakeApi,
    *,
    day: date = DAY,
    strict: bool = False,
    dry_run: bool = False,
    **more: Any,
) -> tuple[PriceRefresh, IngestOutcome | None]:
    feed = PriceFeed(api=AZURE_PRICES, url=api.url, cache=folder, policy=QUICK, **more)
    now = datetime.combine(day, NOW.timetz())
    return run_price_refresh(engine, feed, day=day, now=now, strict=strict, dry_run=dry_run)


def listed(sizes: int, *, usd: str = "0.673", day: date = DAY - timedelta(days=21), **more: Any) -> list[PriceRow]:
    """Return the on-demand Linux prices of that many sizes in westus, as another source has them."""
    by = {"region": "westus", "source": "others", "file": "others.csv"} | more
    return [price(f"Standard_B{n}als_v2", usd, valid_from=day, **by) for n in range(sizes)]


def seed(engine: Engine, *rows: PriceRow) -> None:
    """Write prices of other sources: retail lists, but for one named `mine`."""
    names = sorted({row.source for row in rows})
    sources = tuple(source(name, kind="third_party", retail=name != "mine") for name in names)
    ingest(engine, Reading(sources=sources, prices=price_list(*rows)), now=NOW)


def stored(engine: Engine, where: str = "1 = 1") -> int:
    with engine.connect() as connection:
        statement = f"select count(*) from price where source_id = 'azure-retail-prices' and {where}"
        return int(connection.execute(text(statement)).scalar_one())


def refused(found: PriceRefresh) -> dict[str, tuple[str, ...]]:
    return {each.region: each.reasons for each in found.refused}


@pytest.mark.first_database
def test_the_prices_of_every_region_are_fetched_and_written(engine: Engine, tmp_path: Path) -> None:
    with serving(FakeApi(items=everywhere(), page_size=100)) as api:
        found, outcome = refresh(engine, tmp_path, api)
    assert (len(found.lists), found.refused, found.items, found.prices) == (3, [], 780, 480)
    assert outcome is not None
    assert outcome.summary.changes["price"].added == 480
    assert stored(engine) == 480
    assert not outcome.summary.reports


@pytest.mark.first_database
def test_a_reservation_is_stored_to_the_nano_dollar(engine: Engine, tmp_path: Path) -> None:
    with serving(FakeApi(items={"eastus": meters("eastus", 1)})) as api:
        refresh(engine, tmp_path, api, regions=["East US"])
    with engine.connect() as connection:
        found = connection.execute(text("select purchase, nano_usd_per_hour from price where os = 'linux'")).all()
    assert dict(map(tuple, found)) == {
        "on_demand": 673_000_000,
        "spot": 605_700_000,
        "reserved_1y": 397_031_963,
        "reserved_3y": 255_745_814,
        "savings_1y": 491_290_000,
        "savings_3y": 343_230_000,
    }


def test_the_same_prices_again_change_nothing(engine: Engine, tmp_path: Path) -> None:
    with serving(FakeApi(items=everywhere(), page_size=100)) as api:
        _, first = refresh(engine, tmp_path, api)
        _, again = refresh(engine, tmp_path, api)
    assert first is not None
    assert again is not None
    assert not again.new_revision
    assert again.revision["digest"] == first.revision["digest"]


def test_the_list_of_another_day_prolongs_prices_and_reads_no_facts(engine: Engine, tmp_path: Path) -> None:
    with serving(FakeApi(items=everywhere(), page_size=100)) as api:
        refresh(engine, tmp_path, api)
        _, outcome = refresh(engine, tmp_path, api, day=DAY + timedelta(days=1))
    assert outcome is not None
    assert outcome.summary.changes["price"].changed == 480
    assert "fact" not in outcome.summary.changes
    assert stored(engine, "valid_from = '2026-08-22' and seen_until = '2026-08-23'") == 480


@pytest.mark.first_database
def test_a_list_that_lost_most_of_its_rows_is_refused_and_the_other_regions_are_taken(
    engine: Engine, tmp_path: Path
) -> None:
    with serving(FakeApi(items=everywhere(), page_size=100)) as api:
        refresh(engine, tmp_path, api)
        api.items = everywhere(westus=meters("westus", 3))
        found, outcome = refresh(engine, tmp_path, api, day=DAY + timedelta(days=1))
    assert refused(found) == {"westus": ("136 of 160 prices (85 %) are gone", "136 of 160 prices of bals_v2 are gone")}
    assert outcome is not None
    assert stored(engine, "seen_until = '2026-08-23' and region = 'westus'") == 0
    assert stored(engine, "seen_until = '2026-08-23'") == 320
    assert stored(engine, "seen_until = '2026-08-22' and region = 'westus'") == 160


@pytest.mark.takes_seconds
@pytest.mark.first_database
def test_the_first_list_of_a_region_is_compared_with_the_newest_of_another_source(
    engine: Engine, tmp_path: Path
) -> None:
    """Sizes that only an older list has are not missed."""
    seed(engine, *listed(20), *listed(40, day=date(2026, 6, 18)))
    with serving(FakeApi(items=everywhere(), page_size=100)) as api:
        api.items = everywhere(westus=meters("westus", 3))
        found, outcome = refresh(engine, tmp_path, api)
        assert refused(found) == {"westus": ("17 of 20 prices (85 %) are gone", "17 of 20 prices of bals_v2 are gone")}
        assert outcome is not None
        assert stored(engine) == 320
        api.items = everywhere()
        assert refused(refresh(engine, tmp_path, api)[0]) == {}


@pytest.mark.takes_seconds
@pytest.mark.parametrize(
    ("aside", "why"),
    [
        ({"sizes": 3, "day": DAY}, "the newest list has less than half of the prices of another"),
        ({"sizes": 20, "day": DAY, "approximate_date": True}, "the newest list has no date"),
        ({"sizes": 20, "day": DAY, "region": "eastus"}, "the newest list is of another region"),
        ({"sizes": 20, "day": DAY, "source": "mine"}, "the newest list is a user's own"),
    ],
)
@pytest.mark.one_database  # the test before reads lists of each kind
def test_lists_that_no_first_list_is_compared_with(
    engine: Engine, tmp_path: Path, aside: dict[str, Any], why: str
) -> None:
    seed(engine, *listed(20), *listed(**{"source": "aside"} | aside, usd="0.1", file="aside.csv"))
    with serving(FakeApi(items={"westus": meters("westus")})) as api:
        found, _ = refresh(engine, tmp_path, api, regions=["westus"])
    assert refused(found) == {}, why


@pytest.mark.takes_seconds
@pytest.mark.one_database  # the test before compares with prices of each kind
def test_many_prices_that_jump_are_refused(engine: Engine, tmp_path: Path) -> None:
    with serving(FakeApi(items=everywhere(), page_size=100)) as api:
        refresh(engine, tmp_path, api)
        api.items = everywhere(eastus=meters("eastus", factor=7))
        found, _ = refresh(engine, tmp_path, api, day=DAY + timedelta(days=1))
    assert [*refused(found)] == ["eastus"]
    assert refused(found)["eastus"][0].startswith("80 prices changed more than 5 times: b0als_v2 linux on_demand 0.673")


DAYS = [DAY + timedelta(days=n) for n in range(5)]


def jumping(factor: float) -> Mapping[str, Sequence[Item]]:
    """Return the items of westus with another price of one size: on demand for Linux, one of 161."""
    other = item(armRegionName="westus", armSkuName="Standard_B50als_v2", retailPrice=0.5 * factor)
    return {"westus": [*meters("westus"), other]}


def jumped(engine: Engine) -> list[tuple[str, str, int]]:
    """Return the stored prices of the size that jumps: from when, until when, and how many thousandths of a dollar."""
    with engine.connect() as connection:
        statement = "select valid_from, seen_until, nano_usd_per_hour from price where size_key = 'b50als_v2'"
        rows = connection.execute(text(f"{statement} and source_id = 'azure-retail-prices' order by valid_from")).all()
    return [(str(begins), str(ends), nano // 10**6) for begins, ends, nano in rows]


def offered(engine: Engine) -> tuple[float, str] | None:
    """Return the price in force of the size that jumps, USD an hour, and the day on which it was last observed."""
    with engine.connect() as connection:
        statement = "select on_demand_rank_usd, on_demand_as_of from offer where size_key = 'b50als_v2'"
        row = connection.execute(text(f"{statement} and region = 'westus' and os = 'linux'")).one_or_none()
    return (row[0], str(row[1])) if row else None


@pytest.mark.takes_seconds
def test_a_price_that_jumps_is_held_back_until_another_day_confirms_it(engine: Engine, tmp_path: Path) -> None:
    api = FakeApi(items=jumping(1), page_size=100)
    held: list[list[tuple[str, str, str, int, int]]] = []
    in_force = []
    with serving(api):
        for day, factor in zip((*DAYS[:2], DAYS[1], DAYS[2]), (1, 0.05, 0.05, 0.05), strict=True):
            api.items = jumping(factor)
            found, outcome = refresh(engine, tmp_path, api, day=day, regions=["westus"])
            held.append([(one.size, one.os, one.purchase, one.old_nano, one.new_nano) for one in found.held])
            in_force.append(offered(engine))
            assert refused(found) == {}
            assert outcome is not None
            assert found.prices == 161 - len(found.held)
            assert len(outcome.summary.reports) == len(found.held)
    jump = ("Standard_B50als_v2", "linux", "on_demand", 500_000_000, 25_000_000)
    assert held == [[], [jump], [jump], []]
    assert in_force == [(0.5, "2026-08-22")] * 3 + [(0.025, "2026-08-24")]
    assert jumped(engine) == [("2026-08-22", "2026-08-22", 500), ("2026-08-24", "2026-08-24", 25)]
    assert stored(engine, "seen_until = '2026-08-24'") == 161


@pytest.mark.takes_seconds
@pytest.mark.parametrize(
    ("factors", "kept", "in_force"),
    [
        ((1, 7, 8, 8), [500, 4000], (4.0, "2026-08-25")),  # another jump is held back anew
        ((1, 7, 1, 1), [500, 500], (0.5, "2026-08-25")),  # the old price is back
        ((1, 7, 1.2, 1), [500, 600, 500], (0.5, "2026-08-25")),  # so is one that is near it
        ((1, 7, 8, 7), [500], None),  # three lists without a price that could be taken: unknown
    ],
)
@pytest.mark.one_database  # the test before writes to each kind
def test_only_the_same_price_confirms_one_that_was_held_back(
    engine: Engine, tmp_path: Path, factors: Sequence[float], kept: list[int], in_force: object
) -> None:
    api = FakeApi(items={}, page_size=100)
    with serving(api):
        for day, factor in zip(DAYS, factors, strict=False):
            api.items = jumping(factor)
            refresh(engine, tmp_path, api, day=day, regions=["westus"])
    assert [thousandths for *_, thousandths in jumped(engine)] == kept
    assert offered(engine) == in_force


@pytest.mark.takes_seconds
@pytest.mark.one_database  # the test before writes to each kind
def test_a_jump_from_the_price_of_another_source_is_held_back_in_pages_and_files(
    engine: Engine, tmp_path: Path
) -> None:
    dearer = [price("Standard_B50als_v2", "9", region="westus", source="others", file="others.csv", valid_from=DAY)]
    seed(engine, *listed(20, day=DAY), *dearer)
    with serving(FakeApi(items=jumping(1), page_size=100)) as api:
        found, _ = refresh(engine, tmp_path, api, regions=["westus"], dry_run=True)
        assert [one.old_nano for one in found.held] == [9 * 10**9]
        refresh(engine, tmp_path, api, regions=["westus"])
    files = PriceFeed(api=AZURE_PRICES, file=tmp_path / "azure-retail-prices", cache=tmp_path)
    assert run_price_refresh(engine, files, day=DAY, now=NOW)[0].held
    assert jumped(engine) == []
    found, _ = run_price_refresh(engine, files, day=DAYS[1], now=NOW)
    assert (found.held, jumped(engine)) == ([], [("2026-08-23", "2026-08-23", 500)])


@pytest.mark.one_database  # about what is taken
def test_accept_takes_a_price_that_jumps(engine: Engine, tmp_path: Path) -> None:
    with serving(FakeApi(items=jumping(1), page_size=100)) as api:
        refresh(engine, tmp_path, api, regions=["westus"])
        api.items = jumping(0.05)
        assert refresh(engine, tmp_path, api, day=DAYS[1], regions=["westus"])[0].held
        assert not refresh(engine, tmp_path, api, day=DAYS[1], regions=["westus"], accept=True)[0].held
        assert not refresh(engine, tmp_path, api, day=DAYS[2], regions=["westus"])[0].held
    assert jumped(engine) == [("2026-08-22", "2026-08-22", 500), ("2026-08-23", "2026-08-24", 25)]


@pytest.mark.one_database  # about what is taken
def test_with_strict_a_price_that_jumps_stops_the_refresh_of_one_day(engine: Engine, tmp_path: Path) -> None:
    with serving(FakeApi(items=jumping(1), page_size=100)) as api:
        refresh(engine, tmp_path, api, regions=["westus"], strict=True)
        api.items = jumping(0.05)
        with pytest.raises(BadData, match=r"Standard_B50als_v2 linux on_demand was 0\.5; the new price is held back"):
            refresh(engine, tmp_path, api, day=DAYS[1], regions=["westus"], strict=True)
        refresh(engine, tmp_path, api, day=DAYS[2], regions=["westus"], strict=True)
    assert jumped(engine) == [("2026-08-22", "2026-08-22", 500), ("2026-08-24", "2026-08-24", 25)]


@pytest.mark.one_database  # refused before anything is written
def test_a_damaged_file_of_held_prices_is_named(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "azure-retail-prices-held.csv").write_text("region,size\nwestus,Standard_B1als_v2\n")
    with (
        serving(FakeApi(items=jumping(1), page_size=100)) as api,
        pytest.raises(BadData, match=r"azure-retail-prices-held.csv: is not a list of prices that were held back"),
    ):
        refresh(engine, tmp_path, api, regions=["westus"])


@pytest.mark.takes_seconds
@pytest.mark.one_database  # the test before compares with prices of each kind
def test_what_was_refused_is_accepted_as_it_was_fetched(engine: Engine, tmp_path: Path) -> None:
    later = DAY + timedelta(days=1)
    with serving(FakeApi(items=everywhere(), page_size=100)) as api:
        refresh(engine, tmp_path, api)
        api.items = everywhere(westus=meters("westus", 3))
        refresh(engine, tmp_path, api, day=later)
        before = api.requests
        found, outcome = refresh(engine, tmp_path, api, day=later, accept=True, regions=["westus"])
    assert api.requests == before
    assert (refused(found), found.prices) == ({}, 24)
    assert outcome is not None
    assert stored(engine, "seen_until = '2026-08-23' and region = 'westus'") == 24


@pytest.mark.takes_seconds
@pytest.mark.one_database  # the test before compares with prices of each kind
def test_a_region_that_was_refused_is_fetched_again_by_the_next_refresh(engine: Engine, tmp_path: Path) -> None:
    later = DAY + timedelta(days=1)
    with serving(FakeApi(items=everywhere(), page_size=100)) as api:
        refresh(engine, tmp_path, api)
        api.items = everywhere(westus=meters("westus", 3))
        refresh(engine, tmp_path, api, day=later)
        api.items = everywhere()
        found, _ = refresh(engine, tmp_path, api, day=later, regions=["westus"])
    assert refused(found) == {}
    assert stored(engine, "seen_until = '2026-08-23' and region = 'westus'") == 160


@pytest.mark.one_database  # about what is fetched
def test_a_region_that_fails_keeps_its_prices(engine: Engine, tmp_path: Path) -> None:
    with serving(FakeApi(items=everywhere(), page_size=100)) as api:
        refresh(engine, tmp_path, api)
        api.fault = lambda name, *_: (500, {}) if name == "eastus" else None
        found, outcome = refresh(engine, tmp_path, api, day=DAY + timedelta(days=1))
    assert refused(found) == {"eastus": ("127.0.0.1 answered 500, at attempt 2 of 2",)}
    assert outcome is not None
    assert stored(engine, "seen_until = '2026-08-22' and region = 'eastus'") == 160
    assert stored(engine, "seen_until = '2026-08-23' and region = 'westus'") == 160


@pytest.mark.one_database  # about what is fetched
def test_with_strict_nothing_is_written_where_a_region_fails(engine: Engine, tmp_path: Path) -> None:
    with serving(FakeApi(items=everywhere(eastus=()), page_size=100)) as api:
        found, outcome = refresh(engine, tmp_path, api, strict=True)
    assert refused(found) == {"eastus": ("page 1 has no items",)}
    assert outcome is None
    assert stored(engine) == 0


@pytest.mark.one_database  # about what is fetched
def test_a_region_of_which_no_item_is_a_price_is_refused_even_with_accept(engine: Engine, tmp_path: Path) -> None:
    free = [item(armRegionName="eastus", retailPrice=0.0)]
    with serving(FakeApi(items={"eastus": free})) as api:
        found, outcome = refresh(engine, tmp_path, api, regions=["eastus"], accept=True)
    assert refused(found) == {"eastus": ("none of 1 items is a price",)}
    assert outcome is None


@pytest.mark.takes_seconds
@pytest.mark.first_database
def test_a_dry_run_writes_nothing_and_the_run_after_it_needs_no_request(engine: Engine, tmp_path: Path) -> None:
    with serving(FakeApi(items=everywhere(), page_size=100)) as api:
        _, outcome = refresh(engine, tmp_path, api, dry_run=True)
        assert outcome is not None
        assert not outcome.written
        assert stored(engine) == 0
        before = api.requests
        refresh(engine, tmp_path, api)
        assert api.requests == before
    assert stored(engine) == 480


@pytest.mark.takes_seconds
@pytest.mark.one_database  # about what is fetched
def test_a_refresh_that_was_stopped_goes_on_and_ends_with_the_same_digest(
    engine: Engine, tmp_path: Path, databases: Databases, template_url: str
) -> None:
    class Stopped(Exception):
        pass

    with serving(FakeApi(items=everywhere(), page_size=100)) as api:
        _, whole = refresh(engine, tmp_path / "whole", api)
        asked = api.requests

        def progress(doing: str, share: float | None, rows: int = 0) -> None:
            if rows >= 600:
                raise Stopped

        feed = PriceFeed(api=AZURE_PRICES, url=api.url, cache=tmp_path / "stopped", policy=QUICK, concurrency=1)
        other = make_engine(databases.copy(template_url))
        fill(other)
        with pytest.raises(BaseExceptionGroup):
            run_price_refresh(other, feed, day=DAY, now=NOW, progress=progress)
        _, resumed = run_price_refresh(other, feed, day=DAY, now=NOW)
        other.dispose()
    assert whole is not None
    assert resumed is not None
    assert resumed.revision["digest"] == whole.revision["digest"]
    assert asked == 9
    assert api.requests - asked == 9 + 1


@pytest.mark.takes_seconds
@pytest.mark.one_database  # about what is fetched
def test_saved_pages_are_read_without_a_request(engine: Engine, tmp_path: Path) -> None:
    with serving(FakeApi(items=everywhere(), page_size=100)) as api:
        _, fetched = refresh(engine, tmp_path, api)
    folder = tmp_path / "azure-retail-prices" / "accepted"
    feed = PriceFeed(api=AZURE_PRICES, file=folder)
    found, outcome = run_price_refresh(engine, feed, day=DAY, now=NOW)
    assert found.prices == 480
    assert fetched is not None
    assert outcome is not None
    assert not outcome.new_revision
    assert (
        run_price_refresh(engine, PriceFeed(api=AZURE_PRICES, file=folder, regions=["westus"]), day=DAY, now=NOW)[
            0
        ].prices
        == 160
    )


@pytest.mark.one_database  # refused before anything is written
def test_saved_pages_of_an_unknown_region_are_refused(engine: Engine, tmp_path: Path) -> None:
    with serving(FakeApi(items={"eastus": [*meters("eastus"), *meters("useast")]}, page_size=1000)) as api:
        refresh(engine, tmp_path, api, regions=["eastus"])
    found, _ = run_price_refresh(
        engine, PriceFeed(api=AZURE_PRICES, file=tmp_path / "azure-retail-prices"), day=DAY, now=NOW
    )
    assert refused(found) == {"useast": ("unknown region 'useast'; did you mean eastus? Else ingest it first",)}


@pytest.mark.one_database  # refused before anything is written
def test_an_unknown_region_is_refused_before_anything_is_fetched(engine: Engine, tmp_path: Path) -> None:
    expected = "region=us-east: no such region; did you mean eastus?"
    with serving(FakeApi(items={})) as api, pytest.raises(BadQuery, match=re.escape(expected)):
        refresh(engine, tmp_path, api, regions=["us-east"])
    assert api.requests == 0


@pytest.mark.takes_seconds
@pytest.mark.first_database
def test_two_names_of_one_size_are_one_price(engine: Engine, tmp_path: Path) -> None:
    """The API has sizes under several names; an alias of the catalog says which are one."""
    alias = AliasRow(alias="B1als_old", size="Standard_B1als_v2", source="prices", reason="renamed", file="a", line=2)
    ingest(engine, Reading(sources=(source("prices"),), aliases=(alias,)), now=NOW)
    names = ("Standard_B1als_v2", "Standard_B1als_old")
    both = [item(armRegionName="eastus", armSkuName=name) for name in names]
    with serving(FakeApi(items={"eastus": both})) as api:
        found, _ = refresh(engine, tmp_path, api, regions=["eastus"])
    assert (found.prices, found.reported) == (1, 0)
    assert stored(engine, "size_key = 'b1als_v2'") == 1


@pytest.mark.takes_seconds
@pytest.mark.first_database
def test_names_that_only_prices_have_are_unmatched_until_new_sizes_are_taken(engine: Engine, tmp_path: Path) -> None:
    renamed = AliasRow(alias="B1als_old", size="Standard_B1als_v2", source="prices", reason="renamed", file="a", line=2)
    ingest(engine, Reading(sources=(source("prices"),), aliases=(renamed,)), now=NOW)
    names = ("Standard_B1als_old", "Standard_B2ALS_v2", "Standard_B9z_v9", "Standard_B8z_v9")
    items = [one for name in names for one in in_region("eastus", size=name)]
    with serving(FakeApi(items={"eastus": items}, page_size=100)) as api:
        found, outcome = refresh(engine, tmp_path, api, regions=["eastus"])
        assert (found.prices, found.unmatched) == (16, {"Standard_B8z_v9": 8, "Standard_B9z_v9": 8})
        assert outcome is not None
        assert not outcome.summary.changes["size"].added
        found, outcome = refresh(engine, tmp_path, api, regions=["eastus"], new_sizes=True)
        assert (found.prices, found.unmatched) == (32, {})
        assert outcome is not None
        assert outcome.summary.changes["size"].added == 2
        found, _ = refresh(engine, tmp_path, api, day=DAY + timedelta(days=1), regions=["eastus"])
        assert (found.prices, found.unmatched) == (32, {})


@pytest.mark.first_database
def test_a_name_of_another_providers_size_is_unmatched_also_where_new_sizes_are_taken(
    engine: Engine, tmp_path: Path
) -> None:
    of_aws = replace(source("aws"), publisher="AWS")
    ingest(engine, Reading(sources=(of_aws,), facts=size("Standard_M9_v1", vcpus=4, by="aws")), now=NOW)
    items = [*in_region("eastus", size="Standard_B2als_v2"), *in_region("eastus", size="Standard_M9_v1")]
    with serving(FakeApi(items={"eastus": items}, page_size=100)) as api:
        for new_sizes in (False, True):
            prices, outcome = refresh(engine, tmp_path, api, regions=["eastus"], new_sizes=new_sizes)
            assert (prices.prices, prices.unmatched) == (8, {"Standard_M9_v1": 8})
            assert outcome is not None


@pytest.mark.one_database  # refused before anything is written
def test_a_region_that_only_has_prices_of_unmatched_names_is_refused(engine: Engine, tmp_path: Path) -> None:
    with serving(FakeApi(items={"eastus": in_region("eastus", size="Standard_B9z_v9")}, page_size=100)) as api:
        found, _ = refresh(engine, tmp_path, api, regions=["eastus"])
    assert refused(found) == {"eastus": ("none of 13 items is a price of a size that the catalog has",)}
