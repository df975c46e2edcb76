"""Makes sizes/ and availability/ from the public data sets that README.md names, each a folder of its own.

    python seeds/make.py --sku-locator FOLDER --aks FOLDER --autoscaler FOLDER

Only figures are taken. A family of quota that no series of series.csv has among its names is an error.
"""

import argparse
import csv
import gzip
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

SEEDS = Path(__file__).parent
Row = dict[str, str]

SKUS = "azure-resource-skus-2026-08-01"
CONSTRAINED = "azure-constrained-vcpus-2025-10-16"
WITHOUT_GPUS = "azure-types-without-gpus-2025-09-16"
AKS = "azure-resource-skus-2026-06-23"
AVAILABILITY = "azure-availability-2026-08-01"
AUTOSCALER = "cluster-autoscaler-azure-2026-03-17"

FLAGS = {
    "accelerated_networking": "acceleratedNetworking",
    "premium_storage": "premiumIO",
    "ephemeral_os_disk": "ephemeralOSDisk",
    "encryption_at_host": "encryptionAtHost",
}
"""The columns of the list of SKUs that are booleans, by the fields they state."""

NOT_GPUS = frozenset(
    (
        *("general_purpose", "compute_optimized", "memory_optimized", "storage_optimized"),
        *("fpga_accelerated", "high_performance_compute"),
    )
)
"""The types of size that have no GPUs, by the vendor's overview of sizes."""

CONSTRAINED_NAME = re.compile(r"(?P<begin>Standard_[A-Z]+\d+)-(?P<active>\d+)(?P<end>[a-z]*(?:_\w+)?)")
"""The vendor documents that the number after the dash is that of the active vCPUs, and the rest names the base size."""


def read_table(path: Path) -> list[Row]:
    """Read a CSV file."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def write_table(source: str, rows: Iterable[Mapping[str, str]]) -> None:
    """Write the facts of one source, a size in each row, to the file of that name."""
    facts = sorted(rows, key=lambda row: row["id"])
    columns = dict.fromkeys(("id", "source", *(name for row in facts for name in row)))
    with (SEEDS / "sizes" / f"{source}.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows({**row, "source": source} for row in facts)


def types_of_families() -> dict[str, str]:
    """Return the type of the sizes of each family of quota, blank where no source tells it."""
    types: dict[str, str] = {}
    families: dict[str, str] = {}
    for row in read_table(SEEDS / "series.csv"):
        types[row["id"]] = types.get(row["id"]) or row["category"]
        families |= {name: row["id"] for name in row["aliases"].split("; ") if name.lower().endswith("family")}
    return {family: types[series] for family, series in families.items()}


def active_vcpus(name: str) -> tuple[str, str] | None:
    """Return the active vCPUs of a constrained size and the size it is made of; None for any other size."""
    parts = CONSTRAINED_NAME.fullmatch(name)
    return (parts["active"], parts["begin"] + parts["end"]) if parts else None


def plain(number: str) -> str:
    """Return a number without trailing zeros."""
    return f"{float(number):g}" if "." in number else number


def skus(sizes: Sequence[Row]) -> Iterator[Row]:
    """Yield what the Resource SKUs API says; of a constrained size its vCPUs are those of the size it is made of."""
    for size in sizes:
        generations = size["hyperVGenerations"].split(",")
        yield {
            "id": size["name"],
            "series": size["family"],
            "quota_family": size["family"],
            "vcpus": "" if active_vcpus(size["name"]) else size["vCPUs"],
            "arch": size["cpuArchitecture"].lower(),
            "memory_gib": plain(size["memoryGB"]),  # GiB, whatever the API calls it
            "max_data_disks": size["maxDataDisks"],
            "max_nics": size["maxNICs"],
            "generation_1": str("V1" in generations).lower(),
            "generation_2": str("V2" in generations).lower(),
            **{field: size[column].lower() for field, column in FLAGS.items()},
        }


def constrained(names: Iterable[str]) -> Iterator[Row]:
    """Yield the active vCPUs of constrained sizes, and the sizes that they are made of."""
    for name in names:
        if found := active_vcpus(name):
            yield {"id": name, "vcpus": found[0], "parent_size": found[1]}


def write_availability(source: str, offered: Path) -> None:
    """Write in which regions and zones sizes are offered: a column for each region, and nothing of restrictions."""
    zones: dict[str, dict[str, str]] = {}
    with gzip.open(offered, "rt", newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            zones.setdefault(row["size"], {})[row["region"]] = row["zones"] or "-"
    regions = sorted({region for of_size in zones.values() for region in of_size})
    with (SEEDS / "availability" / f"{source}.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, ("size", "source", *regions), restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows({"size": size, "source": source, **zones[size]} for size in sorted(zones))


def main() -> None:
    """Write all tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    for option, what in (
        ("--sku-locator", "djtools-azure-vm-sku-locator: skus.csv, availability.csv.gz"),
        ("--aks", "aspire: aks_vm_sizes.csv"),
        ("--autoscaler", "cluster-autoscaler: azure.csv"),
    ):
        parser.add_argument(option, type=Path, required=True, metavar="FOLDER", help=what)
    folders = parser.parse_args()
    types = types_of_families()
    listed = read_table(folders.sku_locator / "skus.csv")
    known = {size["name"] for size in listed}
    aks = [size for size in read_table(folders.aks / "aks_vm_sizes.csv") if size["size"] not in known]
    known |= {size["size"] for size in aks}
    autoscaler = [size for size in read_table(folders.autoscaler / "azure.csv") if size["size"] not in known]
    families = {size["name"]: size["family"] for size in listed}
    families |= {size["size"]: size["family"] for size in aks}
    families |= {size["size"]: size["sku_family"] for size in autoscaler}
    if unknown := set(families.values()) - types.keys():
        parser.error(f"series.csv has no series with the family {', '.join(sorted(unknown))}")

    write_availability(AVAILABILITY, folders.sku_locator / "availability.csv.gz")
    write_table(SKUS, skus(listed))
    write_table(CONSTRAINED, constrained(families))
    write_table(
        WITHOUT_GPUS, ({"id": name, "gpu_count": "0"} for name, one in families.items() if types[one] in NOT_GPUS)
    )
    write_table(
        AKS,
        (
            {
                "id": size["size"],
                "series": size["family"],
                "quota_family": size["family"],
                "vcpus": size["vcpus"],
                "memory_gib": size["memory_gib"],
                "premium_storage": size["premium_ssd"].lower(),
            }
            for size in aks
        ),
    )
    write_table(
        AUTOSCALER,
        (
            {
                "id": size["size"],
                "series": size["sku_family"],
                "quota_family": size["sku_family"],
                "vcpus": size["vcpu"],
                "arch": "x64" if size["architecture"] == "amd64" else size["architecture"],
                "memory_gib": plain(str(int(size["memory_mib"]) / 1024)),
            }
            for size in autoscaler
        ),
    )


if __name__ == "__main__":
    main()
