"""Makes sizes/ and availability/ from the public data sets that README.md names, each a folder of its own.

    python seeds/make.py --sku-locator FOLDER --aks FOLDER --autoscaler FOLDER --karpenter FOLDER --calculator FOLDER

Only figures are taken. A family of quota that no series of series.csv has among its names is an error.
"""

import argparse
import csv
import gzip
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path

from app.catalog.fields import to_text
from app.catalog.names import series_key, size_key
from app.ingest.registry import read_pages

SEEDS = Path(__file__).parent
Row = dict[str, str]

SKUS = "azure-resource-skus-2026-08-01"
CONSTRAINED = "azure-constrained-vcpus-2025-10-16"
WITHOUT_GPUS = "azure-types-without-gpus-2025-09-16"
AKS = "azure-resource-skus-2026-06-23"
SERIES_PAGES = "azure-series-pages-2026-08-18"
AVAILABILITY = "azure-availability-2026-08-01"
CAPABILITIES = "azure-resource-skus-southcentralus-2025-06-03"
CALCULATOR = "azure-calculator-local-disks-2026-01-26"
TRUSTED_LAUNCH = "azure-trusted-launch-2025-04-21"
SIZES_OF_2018 = "azure-sizes-2018-07-06"
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

CONFIDENTIAL = {
    "azure-confidential-vm-sizes-2023-11-15": {
        **dict.fromkeys(("dcasv5", "dcadsv5", "ecasv5", "ecadsv5", "nccads_h100_v5"), "SNP"),
        **dict.fromkeys(("dcesv5", "dcedsv5", "ecesv5", "ecedsv5"), "TDX"),
    },
    "azure-ecesv6-series-2025-04-15": {"ecesv6": "TDX"},
}
"""What encrypts the memory of the sizes of a series, by the page that says so."""

WITH_TRUSTED_LAUNCH = frozenset(["B", "D", "E", "Eb", "F", "FX", "L", "HC", "HX", "hbv2", "hbv3", "hbv4"])
"""Families and series that have Trusted launch, by the vendor's page; of Arm64 only the series that it names."""

WITHOUT_TRUSTED_LAUNCH = frozenset(["A", "M", "DC", "EC", "dv2", "dv3", "np", "dpsv5", "dpdsv5", "dplsv5", "dpldsv5"])
"""Families and series that do not have it, or not yet."""

NAMED_ARM64 = frozenset(["dpsv6", "dplsv6", "epsv6"])
"""The series of Arm64 that have Trusted launch, by that page."""

NOT_CONFIDENTIAL = frozenset(["dcsv2", "dcsv3", "dcdsv3"])
"""Series of the family DC that encrypt enclaves and not the VM; the page speaks of the confidential ones."""

IN_DOCUMENTS = ("Standard_NC16as_T4_v3", "Standard_NC24ads_A100_v4", "Standard_NC6s_v3")
"""Sizes whose capabilities of that day are in documents/."""

NVME_FAMILY = re.compile(r"standard[DEF].*v[67]family", re.IGNORECASE)
"""Families whose local disk is NVMe, which the vendor says of versions 6 and 7; the calculator does not say which."""

UNCLEAR_FAMILY = re.compile(r"standard( ?N(?!VSv3)|L|H|FX).*", re.IGNORECASE)
"""Families with local disks of both kinds, of which the calculator has the sum; NVv3 has a temporary disk only."""

CONSTRAINED_NAME = re.compile(r"(?P<begin>Standard_[A-Z]+\d+)-(?P<active>\d+)(?P<end>[a-z]*(?:_\w+)?)")
"""The vendor documents that the number after the dash is that of the active vCPUs, and the rest names the base size."""

KEPT_OF_PARENT = (
    *("memory_gib", "temp_disk_gib", "nvme_disk_gib", "max_data_disks", "temp_disk_count", "nvme_disk_count"),
    *("uncached_disk_iops", "uncached_disk_mbps", "uncached_disk_burst_iops", "uncached_disk_burst_mbps"),
    *("cached_disk_iops", "cached_disk_mbps", "network_mbps"),
)
"""What a constrained size keeps: memory, storage and I/O bandwidth, as the vendor's page of these sizes says."""

OF_SERIES = (
    *("cpu_model", "arch", "premium_storage_caching", "live_migration", "memory_preserving_updates"),
    *("nested_virtualization", "hibernation", "nvme_interface", "scsi_interface"),
)
"""What a page says of its series in host specifications and features, so that it holds for all of its sizes."""


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


def series_of_families() -> tuple[dict[str, str], dict[str, str]]:
    """Return the series of each family of quota, and the type of each series, blank where no source tells it."""
    types: dict[str, str] = {}
    series: dict[str, str] = {}
    for row in read_table(SEEDS / "series.csv"):
        types[row["id"]] = types.get(row["id"]) or row["category"]
        series |= {name: row["id"] for name in row["aliases"].split("; ") if name.lower().endswith("family")}
    return series, types


def page_facts() -> dict[str, Row]:
    """Return the name of each size and what the documents say of it, by its key; the newest page counts."""
    reading = read_pages([SEEDS / "documents"], SEEDS)
    dates = {source.id: source.published_on or date.min for source in reading.sources}
    sizes: dict[str, Row] = {}
    for fact in sorted(reading.facts, key=lambda fact: dates[fact.source]):
        if fact.kind == "size":
            sizes.setdefault(size_key(fact.subject), {"name": fact.subject})[fact.field] = to_text(fact.value)
    return sizes


def trusted_launch(sizes: Sequence[Row], series: Mapping[str, str], pages: Mapping[str, Row]) -> Iterator[Row]:
    """Yield whether sizes have Trusted launch, which needs generation 2, where the page mentions their family.

    Sizes that the list of SKUs lacks have the architecture and the generation that their own page states.
    """
    families = {row["id"]: row["family"] for row in read_table(SEEDS / "series.csv") if row["family"]}
    described = [
        (size["name"], series[size["family"]], size["cpuArchitecture"] == "Arm64", "V2" in size["hyperVGenerations"])
        for size in sizes
    ]
    listed = {size_key(size["name"]) for size in sizes}
    described += [
        (page["name"], series_key(page["series"]), page["arch"] == "arm64", page["generation_2"] == "true")
        for key, page in pages.items()
        if key not in listed and page.keys() >= {"series", "arch", "generation_2"}
    ]
    for name, id_, is_arm64, has_generation_2 in described:
        names = {id_, families.get(id_, "")}
        if names & WITHOUT_TRUSTED_LAUNCH:
            has = None if id_ in NOT_CONFIDENTIAL else False
        elif is_arm64:
            has = True if id_ in NAMED_ARM64 else None
        else:
            has = has_generation_2 if names & WITH_TRUSTED_LAUNCH else None
        if has is not None:
            yield {"id": name, "trusted_launch": str(has).lower()}


def of_series(series: Mapping[str, str], pages: Mapping[str, Row]) -> Iterator[Row]:
    """Yield what the pages of series say of all sizes that they list, for sizes of the series that they do not list.

    Of a constrained size it is what they say of the size that it is made of.
    """
    listed: dict[str, list[Row]] = {}
    for name, id_ in series.items():
        if size_key(name) in pages:
            listed.setdefault(id_, []).append(pages[size_key(name)])
    for name, id_ in series.items():
        if size_key(name) not in pages and id_ in listed:
            parent = active_vcpus(name)
            of_parent = pages.get(size_key(parent[1])) if parent else None
            first, *others = [of_parent] if of_parent else listed[id_]
            shared = [field for field in OF_SERIES if all(first.get(field) == other.get(field) for other in others)]
            if values := {field: first[field] for field in shared if field in first}:
                yield {"id": name, **values}


def active_vcpus(name: str) -> tuple[str, str] | None:
    """Return the active vCPUs of a constrained size and the size it is made of; None for any other size."""
    parts = CONSTRAINED_NAME.fullmatch(name)
    return (parts["active"], parts["begin"] + parts["end"]) if parts else None


def plain(number: str) -> str:
    """Return a number without trailing zeros."""
    return number.rstrip("0").rstrip(".") if "." in number else number


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


def constrained(names: Collection[str], pages: Mapping[str, Row]) -> Iterator[Row]:
    """Yield the active vCPUs of constrained sizes, the sizes that they are made of, and what they keep of these.

    Figures of the sizes that they are made of are those of the other tables, which have to be written before, else of
    the pages.
    """
    figures = {
        name: {field: pages[size_key(name)][field] for field in KEPT_OF_PARENT if field in pages[size_key(name)]}
        for name in names
        if size_key(name) in pages
    }
    for source in (SIZES_OF_2018, CALCULATOR, AKS, SKUS, CAPABILITIES):  # what counts last
        for row in read_table(SEEDS / "sizes" / f"{source}.csv"):
            kept = {name: row[name] for name in KEPT_OF_PARENT if row.get(name)}
            figures[row["id"]] = figures.get(row["id"], {}) | kept
    for name in names:
        if found := active_vcpus(name):
            yield {"id": name, "vcpus": found[0], "parent_size": found[1], **figures.get(found[1], {})}


def capabilities(rows: Sequence[Row]) -> Iterator[Row]:
    """Yield what one region's complete entries of the Resource SKUs API have besides the list of SKUs.

    Disks are in MiB there, rates in bytes a second, a date is month/day/year.
    """
    sizes: dict[str, Row] = {}
    for row in rows:
        if row["region"] == "southcentralus" and row["size"] not in IN_DOCUMENTS:
            sizes.setdefault(row["size"], {})[row["capability"]] = row["value"]
    for name, has in sizes.items():
        retires = has.get("RetirementDateUtc", "").split("/")
        nvme, each = has.get("NvmeDiskSizeInMiB"), has.get("NvmeSizePerDiskInMiB")
        yield {
            "id": name,
            "vcpus": has["vCPUsAvailable"],
            "parent_size": has.get("ParentSize", ""),
            "memory_gib": has["MemoryGB"],
            "temp_disk_gib": plain(str(int(has["MaxResourceVolumeMB"]) / 1024)),
            "nvme_disk_gib": plain(str(int(nvme) / 1024)) if nvme else "",
            "nvme_disk_count": str(int(nvme) // int(each)) if nvme and each else "",
            "uncached_disk_iops": has["UncachedDiskIOPS"],
            "uncached_disk_mbps": plain(str(int(has["UncachedDiskBytesPerSecond"]) / 10**6)),
            "memory_preserving_updates": has["MemoryPreservingMaintenanceSupported"].lower(),
            "infiniband": has["RdmaEnabled"].lower(),
            "retirement_date": "-".join((retires[2], *retires[:2])) if len(retires) > 1 else "",
        }


def local_disks(offers: Sequence[Row], families: Mapping[str, str]) -> Iterator[Row]:
    """Yield the local disks of the pricing calculator, GiB, where one of its Linux offers names exactly one size."""
    names = {name.removeprefix("Standard_").replace("_", "").lower(): name for name in families}
    stated: dict[str, dict[str, int]] = {}
    for offer in offers:
        key = offer["instanceName"].replace(" ", "").lower()
        if offer["diskSize"] and offer["offer"] == f"linux-{key}-standard" and key in names:
            stated.setdefault(families[names[key]], {})[names[key]] = int(offer["diskSize"])
    for family, disks in stated.items():
        if UNCLEAR_FAMILY.fullmatch(family):
            continue
        diskless = 0 in disks.values()  # a whole family has disks or has none, whatever single offers say
        kind = "nvme_disk_gib" if NVME_FAMILY.fullmatch(family) and not diskless else "temp_disk_gib"
        yield from ({"id": name, kind: str(gib)} for name, gib in disks.items() if not (gib and diskless))


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
        ("--karpenter", "karpenter-provider-azure: sku_capabilities_sample.csv"),
        ("--calculator", "azure-vm-price-importer: linux_offers.csv"),
    ):
        parser.add_argument(option, type=Path, required=True, metavar="FOLDER", help=what)
    folders = parser.parse_args()
    series, types = series_of_families()
    listed = read_table(folders.sku_locator / "skus.csv")
    known = {size["name"] for size in listed}
    aks = [size for size in read_table(folders.aks / "aks_vm_sizes.csv") if size["size"] not in known]
    known |= {size["size"] for size in aks}
    without_architecture = {size["size"] for size in aks}
    autoscaler = [
        size
        for size in read_table(folders.autoscaler / "azure.csv")
        if size["size"] not in known or size["size"] in without_architecture
    ]
    families = {size["name"]: size["family"] for size in listed}
    families |= {size["size"]: size["family"] for size in aks}
    families |= {size["size"]: size["sku_family"] for size in autoscaler}
    if unknown := set(families.values()) - series.keys():
        parser.error(f"series.csv has no series with the family {', '.join(sorted(unknown))}")

    write_availability(AVAILABILITY, folders.sku_locator / "availability.csv.gz")
    write_table(SKUS, skus(listed))
    write_table(
        WITHOUT_GPUS,
        ({"id": name, "gpu_count": "0"} for name, one in families.items() if types[series[one]] in NOT_GPUS),
    )
    for source, encrypted in CONFIDENTIAL.items():
        write_table(
            source,
            (
                {"id": name, "confidential_computing": encrypted[series[one]]}
                for name, one in families.items()
                if series[one] in encrypted
            ),
        )
    write_table(CAPABILITIES, capabilities(read_table(folders.karpenter / "sku_capabilities_sample.csv")))
    pages = page_facts()
    write_table(TRUSTED_LAUNCH, trusted_launch(listed, series, pages))
    of_pages = {said["name"]: f"standard{said['series']}Family" for said in pages.values() if "series" in said}
    write_table(CALCULATOR, local_disks(read_table(folders.calculator / "linux_offers.csv"), of_pages | families))
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
    write_table(CONSTRAINED, constrained(families, pages))
    without_gpus = {name: series[one] for name, one in families.items() if types[series[one]] in NOT_GPUS}
    write_table(SERIES_PAGES, of_series(without_gpus, pages))
    architectures = {"amd64": "x64", "arm64": "arm64"}
    write_table(
        AUTOSCALER,
        (
            {
                "id": size["size"],
                "arch": architectures[size["architecture"]],
            }
            if size["size"] in without_architecture
            else {
                "id": size["size"],
                "series": size["sku_family"],
                "quota_family": size["sku_family"],
                "vcpus": size["vcpu"],
                "arch": architectures[size["architecture"]],
                "memory_gib": plain(str(int(size["memory_mib"]) / 1024)),
            }
            for size in autoscaler
        ),
    )


if __name__ == "__main__":
    main()
