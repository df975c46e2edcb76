"""Items of the Azure Retail Prices API, in the shape in which it sends them."""

from collections.abc import Iterable
from typing import Any

Item = dict[str, Any]


def item(**fields: Any) -> Item:
    """Return the on-demand Linux meter of Standard_B16als_v2 in Australia Central, with other values where given."""
    return {
        "currencyCode": "USD",
        "tierMinimumUnits": 0.0,
        "retailPrice": 0.673,
        "unitPrice": 0.673,
        "armRegionName": "australiacentral",
        "location": "AU Central",
        "effectiveStartDate": "2023-09-01T00:00:00Z",
        "meterId": "00000000-0000-0000-0000-000000000001",
        "meterName": "B16als v2",
        "productId": "DZH318Z0K9JH",
        "skuId": "DZH318Z0K9JH/00QW",
        "productName": "Virtual Machines Basv2 Series",
        "skuName": "B16als v2",
        "serviceName": "Virtual Machines",
        "serviceId": "DZH313Z7MMC8",
        "serviceFamily": "Compute",
        "unitOfMeasure": "1 Hour",
        "type": "Consumption",
        "isPrimaryMeterRegion": True,
        "armSkuName": "Standard_B16als_v2",
    } | fields


def _row(product: str, sku: str, kind: str, price: float, **more: Any) -> Item:
    return item(productName=product, skuName=sku, meterName=sku, type=kind, retailPrice=price, unitPrice=price, **more)


def plans(one_year: float, three_years: float) -> list[Item]:
    """Return the savings plans of an item, USD an hour, in the order of the API."""
    return [
        {"unitPrice": three_years, "retailPrice": three_years, "term": "3 Years"},
        {"unitPrice": one_year, "retailPrice": one_year, "term": "1 Year"},
    ]


LINUX, WINDOWS = "Virtual Machines Basv2 Series", "Virtual Machines Basv2 Series Windows"
CLOUD_SERVICES = "Basv2 Series Cloud Services"

B16ALS_V2: tuple[Item, ...] = (
    _row(LINUX, "B16als v2", "Consumption", 0.673, savingsPlan=plans(0.49129, 0.34323)),
    _row(LINUX, "B16als v2", "Reservation", 3478.0, reservationTerm="1 Year"),
    _row(LINUX, "B16als v2", "Reservation", 6721.0, reservationTerm="3 Years"),
    _row(LINUX, "B16als v2 Spot", "Consumption", 0.6057),
    _row(LINUX, "B16als v2 Low Priority", "Consumption", 0.135),
    _row(WINDOWS, "B16als v2", "Consumption", 0.747),
    _row(WINDOWS, "B16als v2", "DevTestConsumption", 0.673),
    _row(WINDOWS, "B16als v2 Spot", "Consumption", 0.6723),
    _row(WINDOWS, "B16als v2 Spot", "DevTestConsumption", 0.6057),
    _row(WINDOWS, "B16als v2 Low Priority", "Consumption", 0.299),
    _row(WINDOWS, "B16als v2 Low Priority", "DevTestConsumption", 0.135),
    _row(CLOUD_SERVICES, "B16als v2", "Consumption", 0.747),
    _row(CLOUD_SERVICES, "B16als v2 Low Priority", "Consumption", 0.299),
)
"""Every item of one size in one region: 13, of which eight prices follow."""


def in_region(region: str, items: Iterable[Item] = B16ALS_V2, *, size: str = "Standard_B16als_v2") -> list[Item]:
    """Return items as they are of another region or size."""
    return [one | {"armRegionName": region, "armSkuName": size} for one in items]
