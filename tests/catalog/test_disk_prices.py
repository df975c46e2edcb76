"""Which price of a disk is in force on a day."""

from collections.abc import Mapping
from datetime import date
from decimal import Decimal

import pytest
from sqlalchemy import Engine

from app.catalog.queries.costs import DiskRate, load_disks
from app.catalog.readings import DiskPriceRow, DiskRow
from app.db.engines import read_session
from app.ingest.run import ingest
from tests.factories import NOW, reading, size, source


def price(usd: str, day: int, *, by: str = "b", region: str = "eastus") -> DiskPriceRow:
    return DiskPriceRow(
        disk="p30", region=region, per="month", usd=Decimal(usd), valid_from=date(2026, 8, day),
        source=by, file="disk_prices.csv", line=2,
    )  # fmt: skip


UNKNOWN = dict.fromkeys(
    ("min_gib", "max_iops", "max_mbps", "burst_iops", "burst_mbps", "included_iops", "included_mbps", "iops_per_gib",
     "mbps_per_iops", "max_shares")
)  # fmt: skip
P30 = DiskRow(
    id="p30", type="premium_ssd", redundancy="lrs", size="P30", sku="Premium_LRS", max_gib=1024,
    source="a", file="disks.csv", line=2, **UNKNOWN,
)  # fmt: skip
PRICES = (
    *(price("1.000000001", 1), price("2", 10), price("3", 20), price("9.87654321", 10, by="a")),
    price("4", 15, region="westus"),
)


@pytest.fixture
def rates(engine: Engine) -> Engine:
    written = reading(
        size("X1", vcpus=1), regions=["eastus", "westus"], sources=[source("a"), source("b")],
        disks=(P30,), disk_prices=PRICES,
    )  # fmt: skip
    ingest(engine, written, now=NOW)
    return engine


def in_force(engine: Engine, day: int, *regions: str) -> Mapping[str, DiskRate]:
    with read_session(engine) as session:
        catalog = load_disks(session, date(2026, 8, day), regions)
    assert [disk["id"] for disk in catalog.disks] == ["p30"]
    return {region: found["month"] for region, found in catalog.rates.get("p30", {}).items()}


@pytest.mark.first_database
def test_the_newest_price_by_the_day_is_in_force_and_of_one_day_that_of_the_first_source(rates: Engine) -> None:
    seen = {day: in_force(rates, day, "eastus")["eastus"] for day in (1, 9, 10, 19, 20)}
    assert {day: (rate.usd, rate.valid_from.day, rate.source_id) for day, rate in seen.items()} == {
        1: (Decimal("1.000000001"), 1, "b"),
        9: (Decimal("1.000000001"), 1, "b"),
        10: (Decimal("9.87654321"), 10, "a"),
        19: (Decimal("9.87654321"), 10, "a"),
        20: (Decimal(3), 20, "b"),
    }


def test_only_the_regions_asked_for_are_read(rates: Engine) -> None:
    assert set(in_force(rates, 31)) == {"eastus", "westus"}
    assert set(in_force(rates, 31, "westus", "eastus")) == {"eastus", "westus"}
    assert set(in_force(rates, 31, "westus")) == {"westus"}
    assert in_force(rates, 14, "westus") == {}
