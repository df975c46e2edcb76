"""Makes disks.csv and disk_prices.csv from the public data sets that README.md names.

    python seeds/make_disks.py --sku-locator FOLDER --pricing-radar FOLDER

Only figures are taken. A disk whose figures differ between regions, a meter in another unit than expected, and two
meters for one price are errors. A disk without a meter in a region has no price there.
"""

import argparse
import csv
import gzip
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from pathlib import Path

SEEDS = Path(__file__).parent
Row = dict[str, str]

DISKS = "azure-managed-disks-2026-08-01"
DISK_TYPES = "azure-managed-disk-types-2026-08-11"
PRICES = "azure-pricing-radar-disks-2026-08-22"
PRICES_DAY = "2026-08-22"

TYPES = {"Standard": "standard_hdd", "StandardSSD": "standard_ssd", "Premium": "premium_ssd"}
"""The types of disks that are sold in sizes, by the first part of the SKU."""

FIGURES = {
    "max_gib": "max_gib",
    "max_iops": "max_iops",
    "max_mbps": "max_mbps",
    "burst_iops": "burst_iops",
    "burst_mbps": "burst_mbps",
    "max_shares": "max_shares",
}
"""The columns that are taken over as they are, by their name here; no burst is 0 in the list of SKUs, too."""

BILLED_BY_GIB = (
    {
        "id": "premium-ssd-v2-lrs",
        "type": "premium_ssd_v2",
        "redundancy": "lrs",
        "sku": "PremiumV2_LRS",
        "min_gib": "1",
        "max_gib": "65536",
        "max_iops": "80000",
        "max_mbps": "2000",
        "included_iops": "3000",
        "included_mbps": "125",
        "iops_per_gib": "500",
        "mbps_per_iops": "0.25",
        "source": DISK_TYPES,
    },
    {
        "id": "ultra-disk-lrs",
        "type": "ultra_disk",
        "redundancy": "lrs",
        "sku": "UltraSSD_LRS",
        "min_gib": "4",
        "max_gib": "65536",
        "max_iops": "400000",
        "max_mbps": "10000",
        "included_iops": "0",
        "included_mbps": "0",
        "iops_per_gib": "1000",
        "mbps_per_iops": "0.25",
        "source": DISK_TYPES,
    },
)
"""Disks of which capacity, IOPS and throughput are billed each for itself, as the vendor's page describes them."""

PRODUCTS = {
    "Standard HDD Managed Disks": "S",
    "Standard SSD Managed Disks": "E",
    "Premium SSD Managed Disks": "P",
}
"""The products whose meters are of one disk a month, and the letter of their sizes."""

RATES = {
    "Provisioned Capacity": ("gib_hour", "1 GiB/Hour"),
    "Provisioned IOPS": ("iops_hour", "1/Hour"),
    "Provisioned Throughput (MBps)": ("mbps_hour", "1/Hour"),
}
"""What a rate is per, and the unit of its meter, by the end of the meter's name."""

RATED = {("Azure Premium SSD v2", "Premium LRS"): "premium-ssd-v2-lrs", ("Ultra Disks", "Ultra LRS"): "ultra-disk-lrs"}
"""The disks that have rates, by product and SKU of their meters; the other SKUs are snapshots and encryption."""

DISK_COLUMNS = (
    *("id", "type", "redundancy", "size", "sku", "min_gib", "max_gib", "max_iops", "max_mbps"),
    *("burst_iops", "burst_mbps", "included_iops", "included_mbps", "iops_per_gib", "mbps_per_iops"),
    *("max_shares", "source"),
)
PRICE_COLUMNS = ("disk", "region", "per", "usd", "valid_from", "source")


def read_table(path: Path) -> list[Row]:
    """Read a compressed CSV file."""
    with gzip.open(path, "rt", newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def write_table(name: str, columns: Iterable[str], rows: Iterable[Mapping[str, str]]) -> None:
    """Write a file of this folder."""
    with (SEEDS / name).open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(columns), restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def to_disk(sku: Row) -> Row | None:
    """Map a SKU in one region to a disk; None for those that are billed by the GiB."""
    kind, _, redundancy = sku["sku"].partition("_")
    if kind not in TYPES:
        return None
    figures = {name: f"{Decimal(sku[column]):f}".removesuffix(".0") for name, column in FIGURES.items()}
    return {
        "id": f"{sku['size']}-{redundancy}".lower(),
        "type": TYPES[kind],
        "redundancy": redundancy.lower(),
        "size": sku["size"],
        "sku": sku["sku"],
        **figures,
        "source": DISKS,
    }


def disks(skus: Iterable[Row]) -> list[Row]:
    """Return each disk once, the smallest of a type first."""
    found: dict[str, Row] = {}
    for disk in filter(None, map(to_disk, skus)):
        if found.setdefault(disk["id"], disk) != disk:
            raise SystemExit(f"{disk['id']} differs between regions: {found[disk['id']]}, {disk}")
    rows = [*found.values(), *BILLED_BY_GIB]
    return sorted(rows, key=lambda row: (row["type"], row["redundancy"], int(row["max_gib"])))


def to_price(meter: Row) -> tuple[str, str, str] | None:
    """Return the disk of a meter, what its price is per, and the unit; None for what is no price of a disk.

    A disk's own meter is named `P30 LRS Disk` under the SKU `P30 LRS`. Mounts of a shared disk (`P30 LRS Disk Mount`),
    operations, bursts, snapshots and encryption are other meters, and reservations another type.
    """
    if meter["type"] != "Consumption":
        return None
    letter = PRODUCTS.get(meter["product"])
    if letter and meter["meter"] == f"{meter['sku']} Disk" and meter["sku"].startswith(letter):
        return meter["sku"].replace(" ", "-").lower(), "month", "1/Month"
    disk = RATED.get((meter["product"], meter["sku"]))
    rate = RATES.get(meter["meter"].removeprefix(f"{meter['sku']} "))
    return (disk, *rate) if disk and rate else None


def prices(meters: Iterable[Row], known: Iterable[str]) -> Iterator[Row]:
    """Yield the price of each disk of `known` in each region; raises SystemExit for meters that are not understood."""
    ids, seen = set(known), set()
    for meter in meters:
        found = to_price(meter)
        if found is None:
            continue
        disk, per, unit = found
        if disk not in ids or meter["unit"] != unit or (disk, meter["region"], per) in seen:
            raise SystemExit(f"not understood: {meter}")
        seen.add((disk, meter["region"], per))
        usd = f"{Decimal(meter['retail_price_usd']):f}"
        yield {
            "disk": disk,
            "region": meter["region"],
            "per": per,
            "usd": usd.rstrip("0").rstrip(".") if "." in usd else usd,
            "valid_from": PRICES_DAY,
            "source": PRICES,
        }


def main() -> None:
    """Write both files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sku-locator", type=Path, required=True, help="the folder with disks.csv.gz")
    parser.add_argument("--pricing-radar", type=Path, required=True, help="the folder with meters_2026-08-22.csv.gz")
    folders = parser.parse_args()
    rows = disks(read_table(folders.sku_locator / "disks.csv.gz"))
    meters = read_table(folders.pricing_radar / f"meters_{PRICES_DAY}.csv.gz")
    priced = sorted(
        prices((meter for meter in meters if meter["scope"].startswith("storage-")), (row["id"] for row in rows)),
        key=lambda row: (row["disk"], row["region"], row["per"]),
    )
    write_table("disks.csv", DISK_COLUMNS, rows)
    write_table("disk_prices.csv", PRICE_COLUMNS, priced)


if __name__ == "__main__":
    main()
