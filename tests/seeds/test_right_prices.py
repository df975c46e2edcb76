"""Prices of the seeds are of the meter that they say: what was wrong in the lists is refused, and nothing else."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

import pytest
from sqlalchemy import Engine, func, select

from app.catalog.column_types import table_of
from app.catalog.models import Offer, RefusedPrice, Size, Source
from app.catalog.money import to_nano_usd
from app.catalog.names import size_key
from app.catalog.readings import PriceRow
from app.catalog.store.prices import PRICE
from app.db.engines import read_session

pytestmark = pytest.mark.first_database

OFFER = table_of(Offer).c
RAW_METERS = "azure-pricing-radar-"


class Run(NamedTuple):
    size: str
    region: str
    source: str
    first: str
    last: str
    nano_usd: int


def runs(engine: Engine, os: str) -> list[Run]:
    """Return all on-demand prices of retail lists, those in force no more included."""
    run, source = PRICE.c, table_of(Source).c
    columns = (run.size_key, run.region, run.source_id, run.valid_from, run.seen_until, run.nano_usd_per_hour)
    retail = run.source_id.in_(select(source.id).where(source.retail.is_(True)))
    query = select(*columns).where(run.os == os, run.purchase == "on_demand", retail)
    with read_session(engine) as session:
        rows = session.execute(query).all()
    return [Run(size, region, list_, str(first), str(last), nano) for size, region, list_, first, last, nano in rows]


@pytest.fixture(scope="module")
def linux(seeded_engine: Engine) -> list[Run]:
    return runs(seeded_engine, "linux")


@pytest.mark.takes_seconds
def test_no_linux_price_ever_was_the_windows_price(seeded_engine: Engine, linux: list[Run]) -> None:
    windows = {(run.size, run.region, run.nano_usd) for run in runs(seeded_engine, "windows")}
    assert len(linux) > 100_000
    assert [run for run in linux if (run.size, run.region, run.nano_usd) in windows] == []


@pytest.mark.takes_seconds
def test_constrained_sizes_cost_what_their_parents_cost(seeded_engine: Engine, linux: list[Run]) -> None:
    size = table_of(Size).c
    with read_session(seeded_engine) as session:
        rows = session.execute(select(size.key, size.parent_size).where(size.parent_size.is_not(None))).all()
        priced = select(OFFER.size_key, OFFER.region, OFFER.on_demand_rank_usd).where(
            OFFER.os == "linux", OFFER.region == OFFER.priced_in
        )
        today = {(row.size_key, row.region): row.on_demand_rank_usd for row in session.execute(priced)}
    parents = {row.key: size_key(row.parent_size) for row in rows}
    of_parents = defaultdict(list)
    for run in linux:
        of_parents[run.size, run.region].append(run)
    pairs = [
        (run, parent)
        for run in linux
        if run.size in parents
        for parent in of_parents[parents[run.size], run.region]
        if parent.first <= run.last and run.first <= parent.last
    ]
    assert len(pairs) > 10_000
    assert [pair for pair in pairs if pair[0].nano_usd != pair[1].nano_usd] == []
    both = [(usd, today.get((parents[key], region))) for (key, region), usd in today.items() if key in parents]
    known = [pair for pair in both if pair[1] is not None and max(pair) < float("inf")]
    assert len(known) > 8_000
    assert [pair for pair in known if pair[0] != pair[1]] == []


def there_and_back(series: Iterable[Run]) -> Iterator[tuple[Run, Run]]:
    steps = [(one, two) for one, two in pairwise(series) if one.nano_usd != two.nano_usd]
    for (first, second), (_, third) in pairwise(steps):
        if first.nano_usd == third.nano_usd:
            yield first, second


@pytest.mark.takes_seconds
def test_no_list_goes_there_and_back(linux: list[Run]) -> None:
    series = defaultdict(list)
    for run in sorted(linux, key=lambda one: one.first):
        series[run.size, run.region, run.source].append(run)
    assert [pair for each in series.values() for pair in there_and_back(each)] == []


@pytest.mark.takes_seconds
def test_raw_meters_are_all_taken_and_no_list_in_force_contradicts_them(
    seeded_engine: Engine, prices: list[PriceRow]
) -> None:
    meters = {
        (size_key(row.size), row.region, row.os): to_nano_usd(row.usd_per_hour)
        for row in prices
        if row.source.startswith(RAW_METERS) and row.purchase == "on_demand"
    }
    assert len(meters) > 11_000
    shown = select(OFFER.size_key, OFFER.region, OFFER.os, OFFER.on_demand_rank_usd)
    with read_session(seeded_engine) as session:
        offers = {tuple(row[:3]): row[3] for row in session.execute(shown)}
    wrong = {key: (nano, offers.get(key)) for key, nano in meters.items() if round(offers.get(key, 0) * 10**9) != nano}
    assert wrong == {}


REFUSALS = {
    ("azure-calculator-polandcentral-2026-01-26", "unlike_parent"): 5,
    ("azure-sku-locator-prices-2026-08-01", "equals_windows"): 1_608,
    ("azure-sku-locator-prices-2026-08-01", "unlike_parent"): 11,
    ("karpenter-azure-prices", "cloud_services"): 3_664,
    ("karpenter-azure-prices", "equals_windows"): 5_887,
    ("karpenter-azure-prices", "unlike_parent"): 38,
}


def test_no_raw_meter_is_refused_and_no_more_of_the_lists_than_was_looked_at(seeded_engine: Engine) -> None:
    refused = table_of(RefusedPrice).c
    by_rule = select(refused.source_id, refused.rule, func.count()).group_by(refused.source_id, refused.rule)
    with read_session(seeded_engine) as session:
        assert {(source, rule): number for source, rule, number in session.execute(by_rule)} == REFUSALS


def test_the_cheapest_region_of_f64ams_v6_is_not_the_one_with_a_tenth_of_its_price(seeded_engine: Engine) -> None:
    of_size = (OFFER.size_key == "f64ams_v6", OFFER.os == "linux")
    columns = select(OFFER.region, OFFER.priced_in, OFFER.on_demand_rank_usd, OFFER.on_demand_median_usd)
    with read_session(seeded_engine) as session:
        offers = {row.region: row for row in session.execute(columns.where(*of_size))}
    odd = offers["newzealandnorth"]
    assert (odd.on_demand_rank_usd, odd.on_demand_median_usd) == (0.719, 6.925)
    assert (offers["*"].priced_in, offers["*"].on_demand_rank_usd) == ("centralindia", 3.699)
    assert [one.region for one in offers.values() if one.on_demand_median_usd is not None] == ["newzealandnorth"]
