"""Invariants of the CSV seeds."""

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from datetime import date
from decimal import Decimal

import pytest

from app.catalog.names import series_key, size_key
from app.catalog.providers import DEFAULT_PROVIDER
from app.catalog.purchases import PRICED_PER
from app.catalog.readings import PriceRow, Reading, SourceRow
from tests.factories import price_rows

ByFile = dict[str, Reading]

PRICES = {
    ("linux", "on_demand"): 375_648,
    ("linux", "spot"): 48_050,
    ("linux", "reserved_1y"): 848,
    ("linux", "reserved_3y"): 844,
    ("linux", "savings_1y"): 6_755,
    ("linux", "savings_3y"): 833,
    ("windows", "on_demand"): 45_149,
    ("windows", "spot"): 5_738,
    ("windows", "savings_1y"): 46,
}
SIZES_WITH_A_PRICE = 1_604
DAYS_OF_LISTS = [
    *("2023-10-27", "2023-12-18", "2024-04-23", "2024-12-13", "2025-05-16", "2025-06-03", "2026-01-26", "2026-04-02"),
    *("2026-06-18", "2026-08-01", "2026-08-22"),
]


def repeated(keys: Iterable[Hashable]) -> list[Hashable]:
    return [key for key, count in Counter(keys).items() if count > 1]


def test_every_source_is_cited_and_by_one_file_only(
    sources: dict[str, SourceRow], by_file: ByFile, price_tables: Reading
) -> None:
    cited = Counter(note.id for reading in by_file.values() for note in reading.sources)
    cited.update({price.source for price in price_rows(by_file["prices"].prices)})
    cited.update(note.id for note in price_tables.citable)
    assert cited == Counter(dict.fromkeys(sources, 1))


def test_what_a_vendor_says_can_be_looked_up(sources: dict[str, SourceRow]) -> None:
    assert [s.id for s in sources.values() if s.kind != "third_party" and s.url is None] == []


@pytest.mark.takes_seconds
def test_no_two_rows_have_one_key(by_file: ByFile, prices: list[PriceRow]) -> None:
    keys: dict[str, list[Hashable]] = {
        "aliases": [size_key(row.alias) for row in by_file["aliases"].aliases],
        "benchmarks": [row.id for row in by_file["benchmarks"].benchmarks],
        "corrections": [(c.kind, c.subject, c.field, c.source) for c in by_file["corrections"].corrections],
        "models": [model.preset.id for model in by_file["models"].models],
        "gpus": [(s.subject, s.field, s.source) for s in by_file["gpus"].facts],
        "prices": [(p.size, p.region, p.os, p.purchase, p.valid_from, p.source) for p in prices],
        "disks": [row.id for row in by_file["disks"].disks],
        "disk_prices": [(p.disk, p.region, p.per, p.valid_from) for p in by_file["disk_prices"].disk_prices],
        "regions": [row.code for row in by_file["regions"].regions],
        "series": [(s.subject, s.field, s.source) for s in by_file["series"].facts],
        "sizes": [(s.subject, s.field, s.source) for s in by_file["sizes"].facts],
    }
    assert {name: found for name, rows in keys.items() if (found := repeated(rows))} == {}


@pytest.mark.takes_seconds
def test_the_prices_are_all_there_and_above_zero(prices: list[PriceRow]) -> None:
    assert Counter((p.os, p.purchase) for p in prices) == PRICES
    assert len({size_key(p.size) for p in prices}) == SIZES_WITH_A_PRICE
    assert all(p.usd_per_hour > 0 for p in prices)


def test_prices_that_belong_to_no_list_are_in_order(by_file: ByFile) -> None:
    order = [(p.size, p.region, p.os, p.purchase, p.valid_from) for p in price_rows(by_file["prices"].prices)]
    assert order == sorted(order)


def test_only_the_undated_prices_have_an_approximate_date(prices: list[PriceRow]) -> None:
    assert {(p.valid_from, p.source) for p in prices if p.approximate_date} == {
        (date(2024, 1, 1), "skypilot-azure-2024")
    }
    dated = sorted({p.valid_from for p in prices if not p.approximate_date})
    assert [str(day) for day in dated] == DAYS_OF_LISTS


def test_no_spot_price_is_undated(prices: list[PriceRow]) -> None:
    assert [p for p in prices if p.purchase == "spot" and p.approximate_date] == []


@pytest.fixture(scope="module")
def newest(prices: list[PriceRow]) -> dict[tuple[str, str, str, str], PriceRow]:
    """The newest price of each size, region, system and purchase model."""
    return {(p.size, p.region, p.os, p.purchase): p for p in sorted(prices, key=lambda p: p.valid_from)}


@pytest.mark.parametrize(
    ("size", "region", "purchase", "usd"),
    [
        ("Standard_ND96isr_H100_v5", "eastus", "spot", "18.169536"),
        ("Standard_NC40ads_H100_v5", "eastus", "spot", "1.289904"),
        ("Standard_NC80adis_H100_v5", "eastus", "spot", "2.579808"),
        ("Standard_NC16as_T4_v3", "eastus2", "spot", "0.600555"),
        ("Standard_NC24ads_A100_v4", "westus2", "spot", "0.67877"),
        ("Standard_NC144ds_xl_RTXPRO6000BSE_v6", "westus2", "on_demand", "6.38"),
        ("Standard_NC144ds_xl_RTXPRO6000BSE_v6", "southeastasia", "on_demand", "8.932"),
        ("Standard_NV6ads_A10_v5", "centralus", "on_demand", "0.454"),
        ("Standard_NV12ads_A10_v5", "centralus", "on_demand", "0.908"),
        ("Standard_NV18ads_A10_v5", "centralus", "on_demand", "1.6"),
        ("Standard_NV36ads_A10_v5", "centralus", "on_demand", "3.2"),
        ("Standard_NV36adms_A10_v5", "centralus", "on_demand", "4.52"),
        ("Standard_NV72ads_A10_v5", "centralus", "on_demand", "6.52"),
        ("Standard_NCC40ads_H100_v5", "westeurope", "on_demand", "8.9"),
        ("Standard_NCC40ads_H100_v5", "eastus2", "on_demand", "6.98"),
    ],
)
def test_the_newest_linux_price_is_that_of_august_2026(
    newest: Mapping[tuple[str, str, str, str], PriceRow], size: str, region: str, purchase: str, usd: str
) -> None:
    price = newest[size, region, "linux", purchase]
    assert price.usd_per_hour == Decimal(usd)
    assert price.valid_from in (date(2026, 8, 1), date(2026, 8, 22))


def test_the_last_list_of_a_source_has_the_date_of_the_source(
    sources: dict[str, SourceRow], prices: list[PriceRow]
) -> None:
    last: dict[str, date] = {}
    for price in prices:
        if not price.approximate_date:
            last[price.source] = max(price.valid_from, last.get(price.source, date.min))
    assert last == {source: sources[source].published_on for source in last}


@pytest.mark.takes_seconds
def test_no_spot_price_is_above_its_on_demand_price_though_it_may_equal_it(prices: list[PriceRow]) -> None:
    usd: dict[tuple[object, ...], Decimal] = {
        (p.size, p.region, p.os, p.valid_from, p.source, p.purchase): p.usd_per_hour for p in prices
    }
    both = [
        (usd[*key, "on_demand"], spot)
        for (*key, purchase), spot in usd.items()
        if purchase == "spot" and (*key, "on_demand") in usd
    ]
    assert len(both) > 40_000
    assert [pair for pair in both if pair[1] > pair[0]] == []
    assert any(spot == on_demand for on_demand, spot in both)


def test_every_region_with_a_price_is_named(by_file: ByFile, prices: list[PriceRow]) -> None:
    named = {row.code for row in by_file["regions"].regions}
    assert {p.region for p in prices} - named == set()


@pytest.mark.parametrize(
    ("size", "usd"),
    [
        ("Standard_NC24ads_A100_v4", "3.673"),
        ("Standard_NC48ads_A100_v4", "7.346"),
        ("Standard_NC96ads_A100_v4", "14.692"),
        ("Standard_NC40ads_H100_v5", "6.98"),
        ("Standard_ND96isr_H100_v5", "98.32"),
        ("Standard_ND96asr_v4", "27.197"),
        ("Standard_ND96amsr_A100_v4", "32.77"),
        ("Standard_NV36ads_A10_v5", "3.2"),
        ("Standard_NV72ads_A10_v5", "6.52"),
        ("Standard_NC4as_T4_v3", "0.526"),
    ],
)
def test_a_known_linux_price_in_eastus_is_listed(prices: list[PriceRow], size: str, usd: str) -> None:
    key = (size, "eastus", "linux", "on_demand", date(2026, 6, 18))
    (price,) = [p for p in prices if p.size == size and (p.size, p.region, p.os, p.purchase, p.valid_from) == key]
    assert price.usd_per_hour == Decimal(usd)


def test_a_series_has_a_name_a_provider_a_family_and_a_category(by_file: ByFile) -> None:
    needed = {"name", "provider", "family", "aliases", "category"}
    fields: dict[str, set[str]] = {}
    for s in by_file["series"].facts:
        fields.setdefault(s.subject, set()).add(s.field)
    uncategorized = {"pb"}  # which the vendor lists under no type of size
    lacks = {id_: needed - found for id_, found in fields.items() if needed - found}
    assert lacks == {id_: {"category"} for id_ in uncategorized}


def test_a_series_with_gpus_has_a_scale_up_domain(by_file: ByFile) -> None:
    facts = by_file["series"].facts
    with_gpus = {s.subject for s in facts if s.value == "gpu_accelerated"}
    assert len(with_gpus) == 29
    assert with_gpus <= {s.subject for s in facts if s.field == "scale_up_domain_gpus"}
    assert {s.value for s in by_file["series"].facts if s.field == "provider"} == {DEFAULT_PROVIDER.id}


def test_no_name_of_a_series_is_also_another_ones(by_file: ByFile) -> None:
    owners: dict[str, set[str]] = {}
    for s in by_file["series"].facts:
        if s.field in ("name", "aliases"):
            for name in str(s.value).split("; "):
                owners.setdefault(series_key(name), set()).add(s.subject)
    mine = {key: ids - {"ng_third_party", "nd_third_party"} for key, ids in owners.items()}
    assert {key: ids for key, ids in mine.items() if len(ids) > 1} == {}


def test_a_rack_is_its_vms_times_four_gpus(by_file: ByFile) -> None:
    racks = {(s.subject, s.field): s.value for s in by_file["series"].facts if s.field.startswith("rack_")}
    assert {id_ for id_, _ in racks} == {"nd_gb200_v6", "nd_gb300_v6"}
    for id_ in ("nd_gb200_v6", "nd_gb300_v6"):
        assert (racks[id_, "rack_vms"], racks[id_, "rack_gpus"]) == (18, 18 * 4)


def test_every_disk_has_a_price_in_the_same_regions(by_file: ByFile) -> None:
    disks = {row.id: row for row in by_file["disks"].disks}
    prices = by_file["disk_prices"].disk_prices
    expected = {(id_, per) for id_, row in disks.items() for per in (["month"] if row.size else PRICED_PER[1:])}
    by_region = {code: {(p.disk, p.per) for p in prices if p.region == code} for code in {p.region for p in prices}}
    assert len(disks) == 69
    assert len(by_region) == 5
    assert by_region == dict.fromkeys(by_region, expected)


@pytest.mark.parametrize(
    ("disk", "region", "usd"),
    [("p30-lrs", "westeurope", "148.68"), ("p30-zrs", "northeurope", "202.73"), ("s4-lrs", "francecentral", "1.69")],
)
def test_a_price_of_a_disk_is_that_of_its_own_meter(by_file: ByFile, disk: str, region: str, usd: str) -> None:
    """A P30 in West Europe costs 148.68 a month; its mounts 8.541, and a snapshot 0.145 a GB."""
    prices = by_file["disk_prices"].disk_prices
    assert [str(p.usd) for p in prices if (p.disk, p.region) == (disk, region)] == [usd]


def test_larger_disks_of_a_type_cost_more(by_file: ByFile) -> None:
    disks = {row.id: row for row in by_file["disks"].disks if row.size}
    for of_type in {(row.type, row.redundancy) for row in disks.values()}:
        for region in {p.region for p in by_file["disk_prices"].disk_prices}:
            known = [
                (disks[p.disk], p.usd)
                for p in by_file["disk_prices"].disk_prices
                if p.disk in disks and p.region == region
            ]
            ranked = sorted((row.max_gib, usd) for row, usd in known if (row.type, row.redundancy) == of_type)
            assert [usd for _, usd in ranked] == sorted(usd for _, usd in ranked)
