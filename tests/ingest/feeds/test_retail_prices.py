"""What an item of the Retail Prices API is the price of: each trap of that API is a test."""

from collections.abc import Iterable
from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from app.catalog.money import to_usd_text
from app.ingest.feeds.azure_prices import AZURE_RULES, SkipReason
from app.ingest.feeds.price_lists import REPORT_LIMIT, ReadScope, RegionMapper, RegionPrices
from tests.ingest.feeds.meters import B16ALS_V2, CLOUD_SERVICES, LINUX, WINDOWS, Item, item, plans

DAY = date(2026, 8, 22)


def mapped(items: Iterable[Item], region: str = "australiacentral", **more: Any) -> RegionPrices:
    scope = ReadScope(source_id="pages", day=DAY, regions=frozenset(), **more)
    mapper = RegionMapper(region=region, rules=AZURE_RULES, scope=scope)
    for one in items:
        mapper.add(one)
    return mapper.finish()


def prices(found: RegionPrices) -> dict[tuple[str, str], str]:
    return {(price.os, price.purchase): to_usd_text(price.nano_usd_per_hour) for price in found.prices}


def reason(**fields: Any) -> str:
    """Return why an item is left out or, where it is reported, the column and the detail."""
    found = mapped([item(**fields)])
    assert not len(found)
    if found.left_out:
        return str(*found.left_out)
    (report,) = found.reports
    return f"{report.column}: {report.detail}"


def test_the_thirteen_items_of_one_size_are_eight_prices() -> None:
    found = mapped(B16ALS_V2)
    assert {price.size for price in found.prices} == {"Standard_B16als_v2"}
    assert prices(found) == {
        ("linux", "on_demand"): "0.673",
        ("linux", "spot"): "0.6057",
        ("linux", "reserved_1y"): "0.397031963",
        ("linux", "reserved_3y"): "0.255745814",
        ("linux", "savings_1y"): "0.49129",
        ("linux", "savings_3y"): "0.34323",
        ("windows", "on_demand"): "0.747",
        ("windows", "spot"): "0.6723",
    }
    assert found.left_out == {SkipReason.LOW_PRIORITY: 3, SkipReason.DEV_TEST: 2} | {SkipReason.CLOUD_SERVICES: 2}
    assert (found.items, found.reports) == (13, ())


def test_the_price_of_a_reservation_is_the_total_of_its_term() -> None:
    terms = (("1 Year", 8760, "reserved_1y"), ("3 Years", 26280, "reserved_3y"))
    for term, hours, purchase in terms:
        found = mapped([item(type="Reservation", reservationTerm=term, retailPrice=hours * 1.25)])
        assert prices(found) == {("linux", purchase): "1.25"}


def test_a_reservation_is_divided_exactly_and_rounded_once() -> None:
    total = Decimal("362080.01")
    found = mapped([item(type="Reservation", reservationTerm="3 Years", retailPrice=float(total))])
    nano = found.nano_usd_per_hour[0]
    assert abs(nano * 26280 - total * 10**9) <= 26280 / 2


def test_a_reservation_of_five_years_is_left_out() -> None:
    assert reason(type="Reservation", reservationTerm="5 Years") == SkipReason.LONG_TERM


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"type": "Reservation", "reservationTerm": "2 Years"}, "reservationTerm: is not a known reservationTerm"),
        ({"type": "Reservation"}, "reservationTerm: is not a known reservationTerm"),
        ({"type": "Rental"}, "type: is not a known type"),
        ({"savingsPlan": [{"term": "2 Years", "retailPrice": 0.4}]}, "savingsPlan: is not a known term"),
        ({"unitOfMeasure": "100 Hours"}, "unitOfMeasure: is not '1 Hour'"),
        ({"unitOfMeasure": "1/Hour"}, "unitOfMeasure: is not '1 Hour'"),
        ({"currencyCode": "EUR"}, "currencyCode: is not USD"),
        ({"tierMinimumUnits": 100.0}, "tierMinimumUnits: is not the first tier"),
        ({"armRegionName": "eastus"}, "armRegionName: is not the region asked for, australiacentral"),
        ({"armSkuName": "B16als v2"}, "armSkuName: is not like the name of a size"),
        ({"retailPrice": -1.0}, "retailPrice: is not a price"),
        ({"retailPrice": "0.673"}, "retailPrice: is not a price"),
        ({"retailPrice": None}, "retailPrice: is not a price"),
        ({"retailPrice": float("nan")}, "retailPrice: is not a price"),
        ({"effectiveStartDate": "soon"}, "effectiveStartDate: is not a date"),
    ],
)
def test_an_unknown_value_is_reported_and_not_guessed(fields: dict[str, Any], said: str) -> None:
    assert reason(**fields).startswith(said)


def test_a_report_names_the_item_and_quotes_the_value() -> None:
    (report,) = mapped([*B16ALS_V2, item(type="Rental")]).reports
    assert (report.line, report.cell) == (14, "Rental")
    assert "Virtual Machines Basv2 Series; B16als v2; Rental" in report.detail


def test_a_savings_plan_is_an_hourly_price_of_the_regular_item() -> None:
    found = mapped([item(savingsPlan=plans(0.49129, 0.34323))])
    assert prices(found) == {
        ("linux", "on_demand"): "0.673",
        ("linux", "savings_1y"): "0.49129",
        ("linux", "savings_3y"): "0.34323",
    }


def test_a_savings_plan_of_a_windows_item_is_of_windows() -> None:
    """A few products have one; no other Windows price of a commitment is known, and none is derived."""
    found = mapped([item(productName=WINDOWS, savingsPlan=plans(0.5, 0.4))])
    assert set(prices(found)) == {("windows", "on_demand"), ("windows", "savings_1y"), ("windows", "savings_3y")}


def test_a_savings_plan_of_a_spot_item_is_reported() -> None:
    assert reason(skuName="B16als v2 Spot", savingsPlan=plans(0.5, 0.4)).startswith("savingsPlan: is not expected")


@pytest.mark.parametrize(
    ("product", "os"),
    [
        ("Virtual Machines Basv2 Series", "linux"),
        ("Virtual Machines Easv4 Series Linux", "linux"),
        ("Virtual Machines Basv2 Series Windows", "windows"),
        ("Virtual Machines NCCadsv5 Srs Win", "windows"),
        ("Virtual Machines NCCadsv5 Srs", "linux"),
        ("Virtual Machines Basv2 Series Windows ", "windows"),
        ("Virtual Machines Windows Server Series", "linux"),
        ("NCads A100 v4 Series Windows", "windows"),
        ("NCads A100 v4 Series Linux", "linux"),
        ("ECadsv5-series Windows", "windows"),
    ],
)
def test_the_end_of_the_product_tells_the_system(product: str, os: str) -> None:
    """Products of virtual machines need not begin with those words: A100, DCasv5 and Lasv3 do not."""
    assert [price.os for price in mapped([item(productName=product)]).prices] == [os]


@pytest.mark.parametrize(
    ("fields", "left_out"),
    [
        ({"skuName": "B16als v2 Low Priority"}, SkipReason.LOW_PRIORITY),
        ({"meterName": "B16als v2 Low Priority"}, SkipReason.LOW_PRIORITY),
        ({"productName": CLOUD_SERVICES}, SkipReason.CLOUD_SERVICES),
        ({"productName": "Easv5 Series CloudServices"}, SkipReason.CLOUD_SERVICES),
        ({"productName": "Easv4 Series Dedicated Host"}, SkipReason.DEDICATED_HOST),
        ({"productName": "Easv5 Series DedicatedHost"}, SkipReason.DEDICATED_HOST),
        ({"armSkuName": "Dsv3_Type3"}, SkipReason.DEDICATED_HOST),
        ({"armSkuName": "Ebsv5-Type1"}, SkipReason.DEDICATED_HOST),
        ({"armSkuName": "Edsv4_Type 1"}, SkipReason.DEDICATED_HOST),
        ({"armSkuName": "Fsv2 Type3"}, SkipReason.DEDICATED_HOST),
        ({"type": "DevTestConsumption"}, SkipReason.DEV_TEST),
        ({"armSkuName": ""}, SkipReason.NO_SIZE),
        ({"armSkuName": "  "}, SkipReason.NO_SIZE),
        ({"armSkuName": None}, SkipReason.NO_SIZE),
        ({"serviceName": "Virtual Machines Licenses"}, SkipReason.OTHER_SERVICE),
        ({"meterName": "D2 v2/DS2 v2 - Expired"}, SkipReason.EXPIRED),
        ({"productName": "Virtual Machines H Promo Series"}, SkipReason.PROMOTION),
        ({"retailPrice": 0.0}, SkipReason.UNPRICED),
        ({"effectiveStartDate": "2026-09-01T00:00:00Z"}, SkipReason.NOT_IN_FORCE),
        ({"effectiveEndDate": "2026-08-22T00:00:00Z"}, SkipReason.NOT_IN_FORCE),
    ],
)
def test_an_item_that_is_no_price_of_the_catalog_is_left_out(fields: dict[str, Any], left_out: SkipReason) -> None:
    assert reason(**fields) == left_out


def test_a_price_that_ends_today_is_in_force() -> None:
    assert len(mapped([item(effectiveEndDate="2026-08-22T23:59:59Z")])) == 1


def test_whether_a_region_is_the_primary_one_of_a_meter_does_not_matter() -> None:
    """The only price of a size often has `false`: its meter is billed from another region."""
    assert len(mapped([item(isPrimaryMeterRegion=False)])) == 1


@pytest.mark.parametrize("name", ["Standard_NM16ads_MA35D ", "Standard_NM16ads_MA35D  ", " Standard_NM16ads_MA35D"])
def test_spaces_around_the_name_of_a_size_are_dropped(name: str) -> None:
    assert [price.size for price in mapped([item(armSkuName=name)]).prices] == ["Standard_NM16ads_MA35D"]


def test_a_promotion_is_a_size_of_its_own() -> None:
    regular = item(armSkuName="Standard_NC24", productName="Virtual Machines NC Series", retailPrice=3.6)
    promo = item(armSkuName="Standard_NC24_Promo", productName="Virtual Machines NC Promo Series", retailPrice=0.864)
    found = {price.size: to_usd_text(price.nano_usd_per_hour) for price in mapped([regular, promo]).prices}
    assert found == {"Standard_NC24": "3.6", "Standard_NC24_Promo": "0.864"}


@pytest.mark.parametrize("other", [0.673, 0.5])
def test_of_two_items_that_claim_to_be_one_price_neither_is_taken(other: float) -> None:
    """Neither the first nor the last nor the cheapest, and not even where both say the same."""
    found = mapped([item(), item(skuName="B16als v2 Spot", retailPrice=0.1), item(retailPrice=other)])
    assert set(prices(found)) == {("linux", "spot")}
    (report,) = found.reports
    assert report.cell == "Standard_B16als_v2"
    assert report.detail == f"items 1, 3 are each the price of linux on_demand (0.673, {other}); none is taken"


def test_two_spellings_of_one_size_are_one_price_only_where_they_agree() -> None:
    names = {"Standard_ND96asr_v4": "nd96asr_v4", "Standard_ND96asr_A100_v4": "nd96asr_v4"}

    def found(other: float) -> RegionPrices:
        both = [item(armSkuName=name, retailPrice=usd) for name, usd in zip(names, (27.197, other), strict=True)]
        return mapped(both, identify=names.__getitem__)

    assert [price.size for price in found(27.197).prices] == ["Standard_ND96asr_A100_v4"]
    assert not len(found(30.0))
    assert len(found(30.0).reports) == 1


def test_a_price_of_unknown_savings_keeps_what_is_known() -> None:
    assert prices(mapped([item(savingsPlan=plans(0.0, 0.34323))])) == {
        ("linux", "on_demand"): "0.673",
        ("linux", "savings_3y"): "0.34323",
    }


def test_prices_are_sorted_by_size_system_and_purchase_model() -> None:
    items = [
        item(armSkuName=name, productName=product)
        for name in ("Standard_B", "Standard_A")
        for product in (WINDOWS, LINUX)
    ]
    found = [(price.size, price.os) for price in mapped(items).prices]
    assert found == sorted(found)
    assert mapped(items[::-1]).size[0] == "Standard_A"


def test_of_very_many_reports_the_first_are_kept_and_all_are_counted() -> None:
    found = mapped([item(unitOfMeasure="1/Hour")] * (REPORT_LIMIT + 10))
    assert (len(found.reports), found.reported) == (REPORT_LIMIT, REPORT_LIMIT + 10)
