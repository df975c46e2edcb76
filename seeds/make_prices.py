"""Makes the tables in prices/ from the public data sets that README.md names, each a folder of its own.

    python seeds/make_prices.py --karpenter FOLDER --sku-locator FOLDER --radar FOLDER --calculator FOLDER

Only figures of sizes that the catalog knows are taken: price lists also have dedicated hosts and sizes that no other
source describes. Prints what was left out and why. Prices are as the lists have them, also where they are those of
another meter: the ingest refuses these, and says so.
"""

import argparse
import csv
import gzip
import hashlib
import io
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from pathlib import Path

from app.catalog.money import to_usd_text
from app.catalog.names import region_key, size_key
from app.ingest.feeds.azure_prices import AZURE_RULES
from app.ingest.feeds.price_lists import ReadScope, RegionMapper

SEEDS = Path(__file__).parent
Row = Mapping[str, str]
Table = dict[tuple[str, str], dict[str, str]]
"""Prices by size and region, and by column."""

KARPENTER = "karpenter-azure-prices"
LOCATOR = "azure-sku-locator-prices-2026-08-01"
LOCATOR_DAY = "2026-08-01"
RADAR = "azure-pricing-radar-{region}-2026-08-22"
RADAR_DAY = date(2026, 8, 22)
CALCULATOR = "azure-calculator-polandcentral-2026-01-26"
CALCULATOR_DAY = "2026-01-26"

ONLY_PRICED = ("Standard_NC8lds_xl_RTXPRO6000BSE_v6", "Standard_ND128isrf_NDR_GB200_v6", "Standard_ND40s_v2")
"""GPU sizes that only price lists have."""
CALCULATOR_TYPES = {
    "perhour": "on_demand",
    "perhourspot": "spot",
    "perhouroneyearreserved": "reserved_1y",
    "perhourthreeyearreserved": "reserved_3y",
    "perunitoneyearsavings": "savings_1y",
    "perunitthreeyearsavings": "savings_3y",
}
"""The price types of the pricing calculator, all of them for an hour, by the purchase models of the catalog."""

left_out: Counter[str] = Counter()
unknown: set[str] = set()
"""Names in price lists that no other source describes."""


def read_table(path: Path) -> Iterator[Row]:
    """Yield the rows of a CSV file, which may be compressed."""
    data = path.read_bytes()
    text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode()
    yield from csv.DictReader(io.StringIO(text, newline=""))


def known_sizes() -> dict[str, str]:
    """Return the names of the sizes that facts of other seeds are about, by key."""
    names = {row["id"] for path in (SEEDS / "sizes").glob("*.csv") for row in read_table(path)}
    names |= {row["id"] for row in read_table(SEEDS / "sizes.csv")}
    for page in (SEEDS / "documents").glob("*.md"):
        names |= set(re.findall(r"\bStandard_[A-Za-z0-9_]+", page.read_text(encoding="utf-8")))
    names |= {row["size"] for row in read_table(SEEDS / "aliases.csv")}
    return {size_key(name): name for name in sorted(names.union(ONLY_PRICED))}


class Sizes:
    """Finds the name of a size in the catalog, by any spelling that differs in prefix, case and underscores only."""

    def __init__(self) -> None:
        self._names = known_sizes()
        aliases = {size_key(row["alias"]): size_key(row["size"]) for row in read_table(SEEDS / "aliases.csv")}
        self._aliases = {alias: self._names[key] for alias, key in aliases.items()}

        squeezed = defaultdict(set)
        for key, known in self._names.items():
            squeezed[key.replace("_", "")].add(known)
        self._squeezed = {key: min(names) for key, names in squeezed.items() if len(names) == 1}

    def find(self, name: str) -> tuple[str | None, bool]:
        """Return the name in the catalog, and whether the one that was given is an alias."""
        key = size_key(name)
        if key in self._aliases:
            return self._aliases[key], True
        found = self._names.get(key) or self._squeezed.get(key.replace("_", ""))
        if found is None:
            unknown.add(name)
        return found, False


def add(table: Table, sizes: Sizes, name: str, region: str, *, column: str, usd: str) -> None:
    """Add one price; a size's own name counts before an alias of it, and a price of zero is unknown."""
    size, by_alias = sizes.find(name)
    if size is None:
        return
    if not Decimal(usd):
        left_out["price 0, which is unknown"] += 1
        return
    prices = table.setdefault((size, region_key(region)), {})
    if by_alias and column in prices:
        left_out["a second name of a size"] += 1
        return
    prices[column] = to_usd_text(round(Decimal(usd) * 10**9))


def karpenter(folder: Path, sizes: Sizes) -> Table:
    """Return on-demand Linux prices of eight days."""
    table: Table = {}
    for row in sorted(read_table(folder / "ondemand_prices_usd.csv.gz"), key=lambda row: sizes.find(row["size"])[1]):
        column = f"linux:on_demand:{row['date']}"
        add(table, sizes, row["size"], row["region"], column=column, usd=row["usd_per_hour"])
    return table


def sku_locator(folder: Path, sizes: Sizes) -> Table:
    """Return prices of one day."""
    table: Table = {}
    for row in read_table(folder / "prices_usd.csv.gz"):
        name = f"Standard_{row['size_without_Standard']}"
        for column, cell in (("linux:on_demand", "linux"), ("windows:on_demand", "windows"), ("linux:spot", "spot")):
            if row[cell]:
                add(table, sizes, name, row["region"], column=f"{column}:{LOCATOR_DAY}", usd=row[cell])
    return table


def radar(folder: Path, sizes: Sizes) -> dict[str, Table]:
    """Return the prices of raw meters by region, mapped as items of the Retail Prices API are.

    The one price of a savings plan that a meter has here is that of one year.
    """
    meters: dict[str, list[Row]] = defaultdict(list)
    for row in read_table(folder / "meters_2026-08-22.csv.gz"):
        if row["scope"].startswith("vm-"):
            meters[row["region"]].append(row)
    tables: dict[str, Table] = {}
    for region, rows in sorted(meters.items()):
        scope = ReadScope(source_id="meters", day=RADAR_DAY, regions=frozenset())
        mapper = RegionMapper(region=region, rules=AZURE_RULES, scope=scope)
        for row in rows:
            mapper.add(_to_item(row))
        found = mapper.finish()
        left_out.update({f"radar: {reason}": number for reason, number in found.left_out.items()})
        left_out["radar: reported"] += found.reported
        table = tables.setdefault(region, {})
        for price in found.prices:
            usd, column = to_usd_text(price.nano_usd_per_hour), f"{price.os}:{price.purchase}:{RADAR_DAY}"
            add(table, sizes, price.size, region, column=column, usd=usd)
    return tables


def _to_item(row: Row) -> dict[str, object]:
    plan = row["savings_plan_price"]
    return {
        "serviceName": "Virtual Machines",
        "armRegionName": row["region"],
        "productName": row["product"],
        "skuName": row["meter"],
        "meterName": row["meter"],
        "armSkuName": _size_name(row["sku"]) + ("_Promo" if " Promo " in row["product"] else ""),
        "type": row["type"],
        "unitOfMeasure": row["unit"],
        "currencyCode": "USD",
        "retailPrice": Decimal(row["retail_price_usd"]),
        "savingsPlan": [{"term": "1 Year", "retailPrice": Decimal(plan)}] if plan else None,
    }


def _size_name(sku: str) -> str:
    """Return the size that a meter's SKU names, with or without the prefix: `E48d v4 Spot` is Standard_E48d_v4."""
    name = re.sub(r" (?:Spot|Low Priority)$", "", sku.strip()).replace(" ", "_")
    return name if name.startswith(("Standard_", "Basic_")) else f"Standard_{name}"


def calculator(folder: Path, sizes: Sizes) -> Table:
    """Return the ways to buy in one region; an offer whose name is not that of one size is left out."""
    names = {
        row["offer"]: row["instanceName"] for row in read_table(folder / "linux_offers.csv") if row["instanceName"]
    }
    count = Counter(names.values())
    table: Table = {}
    for row in read_table(folder / "prices_poland_central.csv.gz"):
        purchase, name = CALCULATOR_TYPES.get(row["price_type"]), names.get(row["offer"])
        if purchase is None or name is None or count[name] > 1:
            left_out["calculator: another product, or an offer that is not one size"] += 1
            continue
        size = f"Standard_{name.replace(' ', '_')}"
        add(table, sizes, size, row["region"], column=f"linux:{purchase}:{CALCULATOR_DAY}", usd=row["usd"])
    return table


def write_table(source: str, table: Table) -> tuple[str, str, str, Sequence[str]]:
    """Write a table, compressed the same way every time; return its file, source, digest and price columns."""
    columns = sorted({column for prices in table.values() for column in prices})
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["size", "region", *columns])
    for (size, region), prices in sorted(table.items()):
        writer.writerow([size, region, *(prices.get(column, "") for column in columns)])
    data = gzip.compress(text.getvalue().encode(), mtime=0)
    path = SEEDS / "prices" / f"{source}.csv.gz"
    path.write_bytes(data)
    print(f"{path.name}: {len(table):,} rows, {sum(map(len, table.values())):,} prices, {len(data):,} bytes")
    return path.name, source, hashlib.sha256(data).hexdigest(), columns


def main() -> None:
    """Write all tables and their manifest."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    for option, what in (
        ("--karpenter", "karpenter-provider-azure: ondemand_prices_usd.csv.gz"),
        ("--sku-locator", "djtools-azure-vm-sku-locator: prices_usd.csv.gz"),
        ("--radar", "azure-pricing-radar: meters_2026-08-22.csv.gz"),
        ("--calculator", "azure-vm-price-importer: prices_poland_central.csv.gz, linux_offers.csv"),
    ):
        parser.add_argument(option, type=Path, required=True, metavar="FOLDER", help=what)
    folders, sizes = parser.parse_args(), Sizes()
    tables: Iterable[tuple[str, Table, bool]] = (
        (KARPENTER, karpenter(folders.karpenter, sizes), True),
        (LOCATOR, sku_locator(folders.sku_locator, sizes), False),
        *((RADAR.format(region=region), table, True) for region, table in radar(folders.radar, sizes).items()),
        (CALCULATOR, calculator(folders.calculator, sizes), False),
    )
    (SEEDS / "prices").mkdir(exist_ok=True)
    with (SEEDS / "prices" / "manifest.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("file", "source", "complete", "sha256", "columns"))
        for source, table, complete in tables:
            name, _, digest, columns = write_table(source, table)
            writer.writerow((name, source, str(complete).lower(), digest, "; ".join(columns)))
    print(f"left out {len(unknown):,} names that no other source describes, such as {', '.join(sorted(unknown)[::60])}")
    for reason, number in left_out.most_common():
        print(f"left out {number:,}: {reason}")


if __name__ == "__main__":
    main()
