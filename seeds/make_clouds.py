"""Makes the folders of clouds/ from the public data sets that README.md names, each a folder in one.

    python seeds/make_clouds.py FOLDER

Regions, GPUs and sources are written by hand; sizes, series, availability and prices are made here. A figure that the
lists state in another unit is converted, one that they leave open stays blank, and what is left out is printed.
"""

import csv
import gzip
import hashlib
import io
import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from statistics import median

CLOUDS = Path(__file__).parent / "clouds"
Row = Mapping[str, str]
PriceRows = dict[tuple[str, str], dict[str, str]]
"""Prices in US dollars an hour by size and region, and by column of the table."""

HOURS_A_MONTH = 730
"""The hours that Google's prices of a month are for."""
OCI_HOURS_A_MONTH = 744
GIB = Decimal(2**30)
DECIMALS = Decimal("1e-9")
UNKNOWN_ZONES = "?"
"""What a list that does not name the zones of a size in a region has in their place."""

left_out: Counter[str] = Counter()


def read_table(path: Path, delimiter: str = ",") -> Iterator[Row]:
    """Yield the rows of a CSV file, which may be compressed."""
    data = path.read_bytes()
    text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode()
    yield from csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter)


def number(value: Decimal | str) -> str:
    """Write a number without exponent and trailing zeros."""
    text = format(Decimal(value), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def write_rows(path: Path, rows: Sequence[Row]) -> None:
    """Write rows as CSV; the columns are those that any row has, in the order of the first that has all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    columns = [*dict.fromkeys(name for row in rows for name, cell in row.items() if cell)]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, lineterminator="\n", restval="", extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)


def write_prices(cloud: str, tables: Mapping[str, PriceRows]) -> None:
    """Write the tables of prices of a cloud by their source, and the manifest."""
    folder = CLOUDS / cloud / "prices"
    folder.mkdir(parents=True, exist_ok=True)
    manifest = []
    for source, prices in tables.items():
        columns = sorted({name for cells in prices.values() for name in cells})
        text = io.StringIO(newline="")
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(["size", "region", *columns])
        writer.writerows([*key, *(prices[key].get(name, "") for name in columns)] for key in sorted(prices))
        data = gzip.compress(text.getvalue().encode(), mtime=0)
        (folder / f"{source}.csv.gz").write_bytes(data)
        manifest.append(
            {
                "file": f"{source}.csv.gz",
                "source": source,
                "complete": "false",
                "sha256": hashlib.sha256(data).hexdigest(),
                "columns": "; ".join(columns),
            }
        )
    write_rows(folder / "manifest.csv", manifest)


def write_availability(cloud: str, by_source: Mapping[str, Mapping[str, Mapping[str, Iterable[str]]]]) -> None:
    """Write the zones that each source has of each size in each region."""
    offered = [(size, source, zones) for source, zones_of in by_source.items() for size, zones in zones_of.items()]
    regions = sorted({region for _, _, zones in offered for region in zones})
    rows = [
        {"size": size, "source": source, **{region: " ".join(sorted(zones[region])) or "-" for region in zones}}
        for size, source, zones in sorted(offered, key=lambda row: row[:2])
    ]
    columns = ["size", "source", *regions]
    write_rows(CLOUDS / cloud / "availability.csv", [{name: row.get(name, "") for name in columns} for row in rows])


def known_regions(cloud: str) -> set[str]:
    """Return the codes of the regions that are written by hand."""
    return {row["code"] for row in read_table(CLOUDS / cloud / "regions.csv")}


def write_coremark(cloud: str, source: str, scores: Iterable[tuple[str, str, str]], vcpus: Mapping[str, str]) -> None:
    """Write the lowest CoreMark of each size; `scores` are its name, the threads and the score."""
    lowest: dict[str, Decimal] = {}
    for name, threads, score in scores:
        if vcpus.get(name) == threads:
            lowest[name] = min(Decimal(score), lowest.get(name, Decimal(score)))
        elif name:
            left_out[f"CoreMark of {cloud}: sizes that are not listed, or runs on a part of their vCPUs"] += 1
    rows = [
        {"id": name, "source": source, "coremark": str(score.to_integral_value())}
        for name, score in sorted(lowest.items())
    ]
    write_rows(CLOUDS / cloud / "sizes" / f"{source}.csv", rows)


def write_series(cloud: str, prefix: str, families: Mapping[str, str], source: str) -> None:
    """Write the families of sizes as series, with their category where a list states it."""
    rows = [
        {
            "id": f"{cloud}_{family.replace('-', '_')}",
            "name": f"{prefix} {family}",
            "provider": cloud,
            "family": family,
            "category": families[family],
            "aliases": f"{prefix} {family}; {cloud}_{family}",
            "source": source,
        }
        for family in sorted(families)
    ]
    write_rows(CLOUDS / cloud / "series.csv", rows)


# Amazon

AWS_TYPES, AWS_CPUS, AWS_SERIES = "aws-instance-types-2026-10-27", "aws-price-list-cpus-2025-03", "aws-families-2025-03"
AWS_ABSENT = "aws-types-absent-2026-10-27"
AWS_AUTOSCALER, AUTOSCALER_ARCHES = "cluster-autoscaler-aws-2026-01-22", {"amd64": "x64", "arm64": "arm64"}
AWS_JULY, AWS_METAL = "aws-prices-2026-07-20", "aws-prices-bare-metal-2026-07-20"
AWS_SAMPLE, AWS_MARCH, AWS_COMPUTED = "aws-prices-2025-12", "aws-prices-2025-03-02", "aws-prices-by-factor-2026-07-20"
AWS_JULY_COLUMN, AWS_MARCH_COLUMN = "linux:on_demand:2026-07-20", "linux:on_demand:2025-03-02"
AWS_SAMPLE_DAY = "2025-12-01"
AWS_CATEGORIES = {
    "General purpose": "general_purpose",
    "Compute optimized": "compute_optimized",
    "Memory optimized": "memory_optimized",
    "Storage optimized": "storage_optimized",
    "GPU instance": "gpu_accelerated",
    "FPGA Instances": "fpga_accelerated",
}
AWS_WITHOUT_GPUS = {"General purpose", "Compute optimized", "Memory optimized", "Storage optimized"}
"""Families of the price list; it states the GPUs of every type that has any, and those are in another family."""
AWS_GPUS = {
    "A100": "A100 SXM",
    "H100": "H100 SXM",
    "H200": "H200 SXM",
    "V100": "V100 SXM",
    "RTX PRO Server 6000": "RTX PRO 6000 Blackwell Server Edition",
}
"""The GPUs of the API that are made in several forms, as the vendor's pages of the families name them."""
AWS_MARKETED_GIB = {("B200", "183359"): "180", ("B300", "275040"): "288"}
"""Memory of the GPUs of which the API has the MiB that the operating system sees, as their maker sells them."""
FACTOR_SIZES = 2
"""How many sizes of a family must have the same ratio to us-east-1, where the prices are those of March 2025."""
DEDICATED = Decimal("0.88"), Decimal("0.97")
"""What a shared price is of that of dedicated tenancy, at least and at most, where small amounts are rounded."""
DIGITS = 5
"""Significant digits of a computed price: as many as a ratio has."""


def gib_of_card(mib: str, share: Decimal) -> Decimal:
    """Return the memory of one whole card in GiB from that of a share of it in MiB.

    The API gives cards of 24 and 48 GB in decimal gigabytes, and all others in GiB: 22,888 MiB is 24 GB.
    """
    whole = Decimal(mib) / share
    decimal_gb = (whole * 2**20 / 10**9).quantize(Decimal("0.01"))
    is_decimal = whole % 1024 and abs(decimal_gb - round(decimal_gb)) <= Decimal("0.01")
    return Decimal(round(decimal_gb)) if is_decimal else (whole / 1024).quantize(Decimal("0.01"))


def exact_fraction(count: Decimal) -> str:
    """Write a number of GPUs as a whole number or a fraction."""
    numerator, denominator = count.as_integer_ratio()
    return f"{numerator}/{denominator}" if denominator > 1 else str(numerator)


def aws_gpus(row: Row) -> dict[str, str]:
    """Return the GPUs of an instance type: a fraction of one has Count 0 and the share that the partition is."""
    if not row["gpu_name"]:
        return {"gpu_count": "0"}
    share = Decimal(row["gpu_partition_size"])
    count = Decimal(row["gpu_count"]) or Decimal(row["gpu_logical_count"]) * share
    name, mib = row["gpu_name"], row["gpu_memory_mib_each"]
    gib = AWS_MARKETED_GIB.get((name, mib)) or number(gib_of_card(mib, min(share, Decimal(1))))
    return {
        "gpu_vendor": row["gpu_manufacturer"],
        "gpu_model": AWS_GPUS.get(name, name),
        "gpu_count": exact_fraction(count),
        "gpu_memory_gib_per_gpu": gib,
    }


def network_mbps(row: Row) -> str:
    """Return the network that the name of the performance says: `4x 100 Gigabit` is 400.

    The sum over the cards counts a total that they share once for each card.
    """
    if not row["net_named_gbps"]:
        return ""
    cards, times, _ = row["net_performance"].partition("x ")
    return number(Decimal(row["net_named_gbps"]) * 1000 * (int(cards) if times and cards.isdecimal() else 1))


def aws_size(row: Row) -> dict[str, str]:
    """Return the facts of one instance type."""
    has_nvme = row["local_nvme"] in ("required", "supported")
    disk = "nvme" if has_nvme or not row["local_disk_gb_total"] else "temp"
    total = Decimal(row["local_disk_gb_total"] or 0) * 10**9 / GIB
    burst = row["ebs_max_iops"] if row["ebs_max_iops"] != row["ebs_baseline_iops"] else ""
    burst_mbps = row["ebs_max_mbytes_s"] if row["ebs_max_mbytes_s"] != row["ebs_baseline_mbytes_s"] else ""
    return {
        "id": row["instance_type"],
        "source": AWS_TYPES,
        "series": f"EC2 {row['instance_type'].partition('.')[0]}",
        "vcpus": row["vcpus"],
        "physical_cores": row["cores"],
        "cpu_vendor": row["cpu_manufacturer"],
        "arch": "arm64" if row["arch"].startswith("arm64") else "x64",
        "burstable": row["burstable"].lower(),
        "memory_gib": number(Decimal(row["memory_mib"]) / 1024),
        **aws_gpus(row),
        f"{disk}_disk_gib": number(total.quantize(Decimal("0.01"))),
        f"{disk}_disk_count": row["local_disk_count"] or "0",
        "max_data_disks": row["ebs_max_attachments"],
        "uncached_disk_iops": row["ebs_baseline_iops"],
        "uncached_disk_mbps": number(row["ebs_baseline_mbytes_s"]) if row["ebs_baseline_mbytes_s"] else "",
        "uncached_disk_burst_iops": burst,
        "uncached_disk_burst_mbps": number(burst_mbps) if burst_mbps else "",
        "max_nics": row["max_interfaces"],
        "network_mbps": network_mbps(row),
        "fabric": {"True": "EFA", "False": "none"}.get(row["efa_supported"], ""),
        "hibernation": row["hibernation"].lower() if row["hibernation"] in ("True", "False") else "",
    }


def aws_listed_size(name: str, row: Row) -> dict[str, str]:
    """Return the facts of a type that is still priced, and that the API describes no longer, from the price list.

    The list leaves out the GPUs of types that have other accelerators; its GPU memory is that of all together.
    """
    size = {
        "id": name,
        "source": AWS_CPUS,
        "cpu_model": aws_processor(row),
        "series": f"EC2 {name.partition('.')[0]}",
        "vcpus": row["vcpu"],
        "memory_gib": number(row["memory"].removesuffix(" GiB").replace(",", "")),
        "gpu_count": row["gpu"] or ("0" if row["instanceFamily"] in AWS_WITHOUT_GPUS else ""),
        "gpu_memory_gib": row["gpuMemory"].partition(" ")[0] if row["gpu"] and row["gpuMemory"] != "NA" else "",
    }
    if disks := re.fullmatch(r"(?:(\d+) x )?([\d,]+)(?: GB)?( NVMe)? (?:SSD|HDD)", row["storage"]):
        kind = "nvme" if disks[3] else "temp"
        total = int(disks[1] or 1) * Decimal(disks[2].replace(",", "")) * 10**9 / GIB
        size |= {f"{kind}_disk_gib": number(total.quantize(Decimal("0.01"))), f"{kind}_disk_count": disks[1] or ""}
    elif row["storage"] == "EBS only":
        size |= {"nvme_disk_gib": "0", "nvme_disk_count": "0"}
    if network := re.fullmatch(r"(?:Up to )?(\d+) Gigabit", row["networkPerformance"]):
        size["network_mbps"] = f"{network[1]}000"
    return size


def aws_processor(row: Row) -> str:
    """Return the processor of the price list, blank where that is none in particular."""
    name = row["physicalProcessor"]
    return name if name not in ("Variable", "Intel Xeon Family") else ""


def aws_prices(data: Path, types: Mapping[str, Row]) -> set[str]:
    """Write the price lists: of July, of the newer sample, of March 2025 where it is consistent, and computed ones.

    Returns the names of the types that have a price.
    """
    regions = known_regions("aws")
    corrections = {
        row["instance_type"]: row["virtual_sibling_same_vcpus"]
        for row in read_table(data / "aws-prices-2025-03" / "karpenter_metal_us_east_1_corrections.csv")
    }
    july: dict[tuple[str, str], Decimal] = {}
    for row in read_table(data / "karpenter-aws" / "ondemand_prices.csv.gz"):
        if row["partition"] == "aws-cn":
            left_out["AWS prices of China, in CNY"] += 1
        elif Decimal(row["price_per_hour"]):
            july[row["instance_type"], row["region"]] = Decimal(row["price_per_hour"])
    metal = {
        (size, region): july[corrections[size], region]
        for size, region in july
        if size in corrections and (corrections[size], region) in july
        if july[size, region] != july[corrections[size], region]
    }
    left_out["AWS bare-metal prices of dedicated tenancy"] = len(metal)
    sample = {
        (row["instance_type"], row["region"]): Decimal(row["usd_per_hour"])
        for row in read_table(data / "aws-prices-2025-03" / "ondemand_linux_skypilot_sample.csv")
    }
    in_us_east_1 = {size: usd for (size, region), usd in {**july, **metal}.items() if region == "us-east-1"}
    march, factors = aws_march(data, in_us_east_1)
    march = {(size, region): usd for (size, region), usd in march.items() if region in regions}
    for row in read_table(data / "aws-prices-2025-03" / "region_factor_by_family.csv"):
        key = row["family"], row["region"]
        if row["source"] == "skypilot":
            factors[key] = Decimal(row["factor_to_us_east_1"])
        elif int(row["sizes_that_agree"]) >= FACTOR_SIZES:
            factors.setdefault(key, Decimal(row["factor_to_us_east_1"]))
    listed = {**march, **sample, **july}
    computed: dict[tuple[str, str], str] = {}
    products: dict[str, list[str]] = defaultdict(list)
    for row in read_table(data / "aws-instance-types" / "offerings.csv.gz"):
        size, region = row["instance_type"], row["region"]
        factor = factors.get((size.partition(".")[0], region))
        base = july.get((size, "us-east-1"))
        if (size, region) in listed or not factor or base is None:
            continue
        if types[size]["bare_metal"] == "True":
            left_out["AWS bare metal without a listed price"] += 1
            continue
        price = base * factor
        computed[size, region] = number(round(price, DIGITS - 1 - price.adjusted()))
        products[size].append(f"{region}: {number(base)} in us-east-1 x {number(factor)}")
    facts = [
        {"id": size, "source": AWS_COMPUTED, "price_parts": "; ".join(sorted(products[size]))}
        for size in sorted(products)
    ]
    write_rows(CLOUDS / "aws" / "sizes" / f"{AWS_COMPUTED}.csv", facts)
    correct = {key: number(usd) for key, usd in july.items() if key not in metal}
    write_prices(
        "aws",
        {
            AWS_JULY: {key: {AWS_JULY_COLUMN: usd} for key, usd in correct.items()},
            AWS_METAL: {key: {AWS_JULY_COLUMN: number(usd)} for key, usd in metal.items()},
            AWS_MARCH: {key: {AWS_MARCH_COLUMN: number(usd)} for key, usd in march.items()},
            AWS_COMPUTED: {key: {AWS_JULY_COLUMN: usd} for key, usd in computed.items()},
        },
    )
    write_rows(
        CLOUDS / "aws" / "prices.csv",
        [
            _undated(size, region, number(usd), AWS_SAMPLE_DAY, AWS_SAMPLE)
            for (size, region), usd in sorted(sample.items())
        ],
    )
    return {size for size, _ in (*listed, *computed)}


def aws_march(
    data: Path, in_us_east_1: Mapping[str, Decimal]
) -> tuple[dict[tuple[str, str], Decimal], dict[tuple[str, str], Decimal]]:
    """Return the shared prices of March 2025 by size and region, and the ratios of families that the list has wrong.

    Of each size the list has a shared or a dedicated price, and its `status` takes the ratio that most sizes of a
    family and region have for the shared one. Where another size is cheaper by as much as dedicated tenancy costs, most
    are dedicated: the cheaper ones count, and the ratio is theirs, zero (unknown) unless FACTOR_SIZES of them agree.
    """
    families: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in read_table(data / "aws-prices-2025-03" / "ondemand_linux.csv.gz"):
        families[row["instance_type"].partition(".")[0], row["region"]].append(row)
    prices: dict[tuple[str, str], Decimal] = {}
    factors: dict[tuple[str, str], Decimal] = {}
    for key, rows in families.items():
        consistent = {row["instance_type"] for row in rows if row["status"].startswith("consistent")}
        ratios = {
            row["instance_type"]: Decimal(row["usd_per_hour"]) / in_us_east_1[row["instance_type"]]
            for row in rows
            if row["instance_type"] in in_us_east_1
        }
        most = median([ratios[size] for size in consistent & ratios.keys()] or [Decimal(1)])
        shared = {size for size, ratio in ratios.items() if consistent and DEDICATED[0] < ratio / most < DEDICATED[1]}
        if shared:
            ratio, sizes = Counter(round(ratios[size], DIGITS) for size in shared).most_common(1)[0]
            factors[key] = ratio if sizes >= FACTOR_SIZES else Decimal(0)
        for row in rows:
            size, status = row["instance_type"], row["status"]
            if size in (shared or consistent):
                prices[size, row["region"]] = Decimal(row["usd_per_hour"])
            else:
                status = "dedicated-tenancy" if size in consistent else status
                left_out[f"AWS prices of March 2025: {status}"] += 1
    return prices, factors


def _undated(size: str, region: str, usd: str, day: str, source: str) -> dict[str, str]:
    """Return the row of a price whose list does not state its day."""
    return {
        "size": size,
        "region": region,
        "os": "linux",
        "purchase": "on_demand",
        "usd_per_hour": usd,
        "valid_from": day,
        "approximate_date": "true",
        "source": source,
    }


def make_aws(data: Path) -> None:
    """Write the seeds of AWS."""
    types = {row["instance_type"]: row for row in read_table(data / "aws-instance-types" / "instance_types.csv")}
    listed = {
        row["instance_type"]: row for row in read_table(data / "aws-instance-types" / "price_list_attributes.csv")
    }
    write_rows(CLOUDS / "aws" / "sizes.csv", [aws_size(types[name]) for name in sorted(types)])
    cpus = [
        {"id": name, "source": AWS_CPUS, "cpu_model": aws_processor(listed[name])}
        for name in sorted(listed)
        if name in types and aws_processor(listed[name])
    ]
    gone = [
        aws_listed_size(name, row)
        for name, row in sorted(listed.items())
        if name not in types and row["memory"].endswith(" GiB") and row["vcpu"].isdecimal()
    ]
    write_rows(CLOUDS / "aws" / "sizes" / f"{AWS_CPUS}.csv", cpus + gone)
    families = {name.partition(".")[0]: "" for name in [*types, *(row["id"] for row in gone)]}
    for name, row in listed.items():
        if name.partition(".")[0] in families:
            families[name.partition(".")[0]] = AWS_CATEGORIES.get(row["instanceFamily"], "")
    families |= {name.partition(".")[0]: "gpu_accelerated" for name, row in types.items() if row["gpu_name"]}
    write_series("aws", "EC2", families, AWS_SERIES)
    gone_names = {row["id"] for row in gone}
    arches = [
        {"id": row["instance_type"], "source": AWS_AUTOSCALER, "arch": AUTOSCALER_ARCHES[row["architecture"]]}
        for row in read_table(data / "cluster-autoscaler" / "aws.csv")
        if row["instance_type"] in gone_names
    ]
    write_rows(CLOUDS / "aws" / "sizes" / f"{AWS_AUTOSCALER}.csv", arches)
    zones: dict[str, dict[str, list[str]]] = defaultdict(dict)
    for row in read_table(data / "aws-instance-types" / "offerings.csv.gz"):
        zones[row["instance_type"]][row["region"]] = row["zone_ids"].split("|")
    write_availability("aws", {"aws-offerings-2026-10-27": zones})
    measured = read_table(data / "vantage-aws-measured" / "ec2_measured.csv")
    scores = [(row["instance_type"], row["threads"], row["coremark_iterations_per_s"]) for row in measured]
    write_coremark("aws", "vantage-coremark-2026-07-20", scores, {name: row["vcpus"] for name, row in types.items()})
    priced = aws_prices(data, types)
    # A price list keeps types for years after EC2 has offered them last: cc2 and hs1 are in that of July 2026.
    absent = sorted((gone_names | priced) - types.keys() - zones.keys())
    rows = [{"id": name, "source": AWS_ABSENT, "withdrawn": "true"} for name in absent]
    write_rows(CLOUDS / "aws" / "sizes" / f"{AWS_ABSENT}.csv", rows)


# Google

GCP_TYPES, GCP_GPUS, GCP_PLATFORMS = (
    "gcp-machine-types-2026-08-20",
    "gcp-pricing-types-2026-07-16",
    "gcp-platforms-2026-03-22",
)
GCP_REGIONS, GCP_ZONES, GCP_PRICES = "gcp-machine-type-regions-2026-08-20", "gcp-zones", "gcp-prices-2026-07-16"
GCP_CARDS = {
    "a100": ("A100 SXM", "40"),
    "a100-80gb": ("A100 SXM", "80"),
    "h100-80gb": ("H100 SXM", "80"),
    "h100-80gb-mega": ("H100 SXM", "80"),
    "l4": ("L4", "24"),
    "rtx6000": ("RTX PRO 6000 Blackwell Server Edition", "96"),
}
"""GPU model and GiB of one of the accelerators that machine types come with."""
GCP_FAMILIES = {
    "General-purpose": "general_purpose",
    "Compute-optimized": "compute_optimized",
    "Memory-optimized": "memory_optimized",
    "Storage-optimized": "storage_optimized",
    "Accelerator-optimized": "gpu_accelerated",
}
GCP_ARM = {"Google Axion", "Ampere Altra"}
GCP_ATTACHED, GCP_GPU_REGION, GCP_COLUMN = "gcp-attached-gpus-2026-06-23", "us-central1", "linux:on_demand:2026-07-16"
GCP_ATTACHABLE = {
    "nvidia-tesla-p4": ("P4", "8", {1: 24, 2: 48, 4: 96}),
    "nvidia-tesla-p100": ("P100 (form not stated)", "16", {1: 16, 2: 32, 4: 96}),
    "nvidia-tesla-t4": ("T4", "16", {1: 48, 2: 48, 4: 96}),
    "nvidia-tesla-v100": ("V100 SXM", "16", {1: 12, 2: 24, 4: 48, 8: 96}),
}
"""GPUs that can be attached to N1: model, GiB, and the most vCPUs by the number of GPUs, as Google's page has them.

A V100 is joined by NVLink there, which has the form SXM.
"""
GCP_SUMS = {"a3-highgpu-8g"}
"""Machine types whose network in the list is the sum of several interfaces."""


def make_gcp(data: Path) -> None:
    """Write the seeds of Google Cloud."""
    types = {
        row["NAME"]: row
        for row in read_table(data / "gcp-machine-types" / "machinetypes.csv", ";")
        if not row["NAME"].startswith(("ct", "tpu"))  # TPUs are no GPUs
    }
    sizes = [
        {
            "id": name,
            "source": GCP_TYPES,
            "series": f"Google {name.partition('-')[0]}",
            "vcpus": row["CPUS"],
            "memory_gib": number(row["MEMORY_GB"]),
            "withdrawn": "true" if row["DEPRECATED"] == "OBSOLETE" else "",
        }
        for name, row in sorted(types.items())
    ]
    write_rows(CLOUDS / "gcp" / "sizes.csv", sizes)
    gcp_devices(data, types)
    gcp_platforms(data, types)
    regions = gcp_regions(data)
    gcp_zones(data, types, regions)
    listed = read_table(data / "gcp-machine-types" / "coremark.csv", ";")
    scores = [
        (row["MACHINE_TYPE"].strip(), row["vCores"].strip(), row["COREMARK_SCORE"].strip().replace(",", ""))
        for row in listed
    ]
    write_coremark("gcp", "google-coremark-2026-03-22", scores, {name: row["CPUS"] for name, row in types.items()})
    prices = gcp_prices(data, types, regions)
    attached, attached_prices = gcp_attached_gpus(data, types, prices)
    write_rows(CLOUDS / "gcp" / "sizes" / f"{GCP_ATTACHED}.csv", attached)
    write_prices("gcp", {GCP_PRICES: prices, GCP_ATTACHED: attached_prices})


def gcp_devices(data: Path, types: Mapping[str, Row]) -> None:
    """Write the GPUs and disks that machine types come with; n1 may get GPUs of its own, which are no part of it."""
    rows = []
    for row in sorted(read_table(data / "gcp-prices-2026-07" / "types.csv"), key=lambda row: row["machine_type"]):
        if row["machine_type"] not in types:
            left_out["GCP machine types that gcloud does not list"] += 1
            continue
        facts = {"id": row["machine_type"], "source": GCP_GPUS, "gpu_count": "0"}
        if row["gpu"]:
            model, gib = GCP_CARDS[row["gpu"]]
            facts |= {"gpu_vendor": "NVIDIA", "gpu_model": model, "gpu_memory_gib_per_gpu": gib}
            facts["gpu_count"] = exact_fraction(Decimal(row["gpu_count"]))
        rows.append(facts | {"nvme_disk_gib": row["local_ssd_gb"]})
    write_rows(CLOUDS / "gcp" / "sizes" / f"{GCP_GPUS}.csv", rows)


def gcp_platforms(data: Path, types: Mapping[str, Row]) -> None:
    """Write CPU platforms, network, and the families with their categories."""
    rows, families = [], {name.partition("-")[0]: "" for name in types}
    listed = {row["machine_type"] for row in read_table(data / "gcp-prices-2026-07" / "types.csv")}
    for row in read_table(data / "gcp-prices-2026-07" / "cpu_platform_network.csv"):
        name, platform = row["machine_type"], row["cpu_platform"]
        if name not in types:
            continue
        gbps = "" if name in GCP_SUMS else row["network_gbps_default"]
        families[name.partition("-")[0]] = category = GCP_FAMILIES.get(row["family"], "")
        rows.append(
            {
                "id": name,
                "source": GCP_PLATFORMS,
                **gcp_processor(platform),
                "network_mbps": number(Decimal(gbps) * 1000) if gbps and Decimal(gbps) else "",
                # All that come with GPUs are in one family; those that N1 may get are no part of it.
                "gpu_count": "0"
                if name not in listed and category not in ("", GCP_FAMILIES["Accelerator-optimized"])
                else "",
            }
        )
    write_rows(CLOUDS / "gcp" / "sizes" / f"{GCP_PLATFORMS}.csv", sorted(rows, key=lambda row: row["id"]))
    write_series("gcp", "Google", families, GCP_PLATFORMS)


def gcp_processor(platform: str) -> dict[str, str]:
    """Return the processor of a machine type, `A or B` where a machine has any of several."""
    arch = ("arm64" if platform in GCP_ARM else "x64") if platform else ""
    return {"cpu_model": platform.replace(", ", " or "), "arch": arch}


def gcp_zones(data: Path, types: Mapping[str, Row], regions: Mapping[str, set[str]]) -> None:
    """Write the regions of machine types, with zones by the list of zones, which is older and lacks many."""
    zones: dict[tuple[str, str], list[str]] = defaultdict(list)
    for row in read_table(data / "gcp-machine-types" / "machinetypezone.csv.gz", ";"):
        if row["NAME"] in types:
            region = row["ZONE"].rpartition("-")[0]
            if region in regions[row["NAME"]]:
                zones[row["NAME"], region].append(row["ZONE"])
            else:
                left_out["GCP zones in regions that have the type no longer"] += 1
    by_source: dict[str, dict[str, dict[str, list[str]]]] = {GCP_REGIONS: {}, GCP_ZONES: {}}
    for name in types:
        for region in regions[name]:
            listed = zones.get((name, region))
            by_source[GCP_ZONES if listed else GCP_REGIONS].setdefault(name, {})[region] = listed or [UNKNOWN_ZONES]
    write_availability("gcp", by_source)


def gcp_regions(data: Path) -> dict[str, set[str]]:
    """Return the regions that have each machine type."""
    regions: dict[str, set[str]] = defaultdict(set)
    for row in read_table(data / "gcp-machine-types" / "machinetyperegion.csv.gz", ";"):
        regions[row["NAME"]].add(row["ZONE"])
    return regions


def gcp_prices(data: Path, types: Mapping[str, Row], regions: Mapping[str, set[str]]) -> PriceRows:
    """Return prices an hour, since those of a month have the discount for sustained use in them.

    The list multiplies vCPUs, memory and GPUs by what they cost in a region, also where the region lacks the machine.
    """
    table: PriceRows = {}
    for row in read_table(data / "gcp-prices-2026-07" / "prices.csv.gz"):
        if row["machine_type"] not in types:
            left_out["GCP prices of types that gcloud does not list"] += 1
            continue
        if row["region"] not in regions[row["machine_type"]]:
            left_out["GCP prices of types in regions that do not have them"] += 1
            continue
        cells = {GCP_COLUMN: row["usd_hour"], "linux:spot:2026-07-16": row["usd_hour_spot"]}
        for years in ("1", "3"):
            month = row[f"usd_month_cud_{years}y"]
            if month == row["usd_month"]:  # no commitment is sold: it is the month with the discount for sustained use
                month = ""
            cells[f"linux:reserved_{years}y:2026-07-16"] = str(Decimal(month) / HOURS_A_MONTH) if month else ""
        cells = {name: number(Decimal(cell).quantize(DECIMALS)) for name, cell in cells.items() if cell}
        if cells := {name: cell for name, cell in cells.items() if Decimal(cell)}:
            table[row["machine_type"], row["region"]] = cells
    return table


def gcp_attached_gpus(
    data: Path, types: Mapping[str, Row], prices: PriceRows
) -> tuple[list[dict[str, str]], PriceRows]:
    """Return the sizes and prices of N1 with GPUs, in the one region that the list of GPU prices is of.

    A size is the machine type with the accelerator as gcloud names both.
    """
    usd_of_gpu = {
        row["name"]: Decimal(row["usd_per_hour_or_ratio"])
        for row in read_table(data / "cluster-autoscaler" / "gce_prices.csv")
        if row["table"] == "gpuPrices"
    }
    platforms = {
        row["machine_type"]: row["cpu_platform"]
        for row in read_table(data / "gcp-prices-2026-07" / "cpu_platform_network.csv")
    }
    rows, table = [], {}
    for name, row in sorted(types.items()):
        if not name.startswith("n1-") or row["DEPRECATED"]:
            continue
        usd = Decimal(prices[name, GCP_GPU_REGION][GCP_COLUMN])
        for accelerator, (model, gib, most_vcpus) in GCP_ATTACHABLE.items():
            for count, vcpus in most_vcpus.items():
                if int(row["CPUS"]) > vcpus:
                    continue
                size = f"{name}-{accelerator}-x{count}"
                rows.append(
                    {
                        "id": size,
                        "source": GCP_ATTACHED,
                        "series": "Google n1",
                        "vcpus": row["CPUS"],
                        "memory_gib": number(row["MEMORY_GB"]),
                        **gcp_processor(platforms.get(name, "")),
                        "gpu_vendor": "NVIDIA",
                        "gpu_model": model,
                        "gpu_count": str(count),
                        "gpu_memory_gib_per_gpu": gib,
                    }
                )
                rows[-1]["price_parts"] = (
                    f"{name} {number(usd)} + {count} {accelerator} x {number(usd_of_gpu[accelerator])}"
                )
                table[size, GCP_GPU_REGION] = {GCP_COLUMN: number(usd + count * usd_of_gpu[accelerator])}
    return rows, table


# Oracle


def make_oci(data: Path) -> None:
    """Write the seeds of Oracle Cloud: the shapes of a fixed size, whose price is a sum of parts.

    What a shape consists of is what its price of a month is a multiple of: OCPUs (two vCPUs of x86 each) or GPUs where
    no memory is charged apart. Parts of other shapes stay unknown.
    """
    parts = list(read_table(data / "oci-shapes" / "price_list.csv"))
    of_gpus = [part for part in parts if part["category"] == "Compute - GPU"]
    gpu_prices = {Decimal(part["value"]) for part in of_gpus}
    ocpu_prices = {Decimal(part["value"]) for part in parts if part["metric"] == "OCPU Per Hour"}
    sizes, table = [], {}
    for row in read_table(data / "oci-shapes" / "shapes.csv"):
        name, unit = row["shape"].partition(" ")[0], Decimal(row["usd_per_ocpu_hour"])
        if not row["usd_per_month"]:
            left_out["OCI shapes of a flexible size"] += 1
            continue
        usd = Decimal(row["usd_per_month"]) / OCI_HOURS_A_MONTH
        count = round(usd / unit)
        exact = not Decimal(row["usd_per_gib_hour"]) and abs(count * unit - usd) < OCI_ROUNDING
        facts = {"id": name, "source": OCI_SHAPES}
        if unit in gpu_prices:
            words = {*name.replace("-", ".").split(".")}
            models = {word for part in of_gpus if Decimal(part["value"]) == unit for word in part["name"].split()}
            named = sorted(models & words & OCI_GPUS.keys())
            facts |= {"gpu_count": str(count) if exact else "", "gpu_model": OCI_GPUS[named[0]] if named else ""}
        elif unit in ocpu_prices:
            facts |= {"gpu_count": "0", "vcpus": str(2 * count) if exact else ""}
        sizes.append(facts)
        table[name, "oci"] = {OCI_COLUMN: number(count * unit if exact else usd.quantize(OCI_ROUNDING))}
    flexible = oci_flexible()
    write_rows(CLOUDS / "oci" / "sizes" / f"{OCI_FLEXIBLE_SOURCE}.csv", [facts for facts, _ in flexible])
    path = CLOUDS / "oci" / "parts.csv"
    fixed = [row for row in read_table(path) if ".Flex." not in row["size"]]
    recipes = [*fixed, *(recipe for _, of_size in flexible for recipe in of_size)]
    write_rows(path, sorted(recipes, key=lambda row: (row["size"], row["part"])))
    prices = oci_part_prices(parts)
    sums: dict[str, Decimal] = defaultdict(Decimal)
    texts: dict[str, list[str]] = defaultdict(list)
    units = {part["part"]: OCI_HOURLY.get(part["metric"]) for part in parts}
    for row in recipes:
        sums[row["size"]] += Decimal(row["quantity"]) * prices[row["part"]]
        texts[row["size"]].append(f"{row['quantity']} {units[row['part']]} x {number(prices[row['part']])}")
    for name, usd in sums.items():
        if (listed := table.get((name, "oci"))) and abs(Decimal(listed[OCI_COLUMN]) - usd) >= OCI_ROUNDING:
            raise SystemExit(f"{name} costs {listed[OCI_COLUMN]}, and its parts {usd}")
        table[name, "oci"] = {OCI_COLUMN: number(usd)}
    of_sizes = {facts["id"]: facts for facts in sizes}
    for name, text in texts.items():
        of_sizes.setdefault(name, {"id": name, "source": OCI_SHAPES})["price_parts"] = " + ".join(text)
    write_rows(CLOUDS / "oci" / "sizes.csv", [of_sizes[name] for name in sorted(of_sizes)])
    write_prices("oci", {OCI_SHAPES: table})
    write_series("oci", "OCI", {facts["series"].removeprefix("OCI "): "" for facts, _ in flexible}, OCI_SERIES)


def oci_part_prices(parts: Iterable[Row]) -> dict[str, Decimal]:
    """Return USD an hour of each part: of several ranges the last, since the first is a free allowance."""
    return {
        part["part"]: Decimal(part["value"])
        for part in sorted(parts, key=lambda part: Decimal(part["range_min"] or 0))
        if part["metric"] in OCI_HOURLY
    }


def oci_flexible() -> list[tuple[dict[str, str], list[dict[str, str]]]]:
    """Return the facts and the parts of flexible shapes with usual numbers of OCPUs and amounts of memory.

    A size is named as Oracle's provider for Karpenter names it: `VM.Standard.E5.Flex.4o.64g`.
    """
    sizes = []
    for shape, (of_ocpu, of_gib, threads, most_ocpus, most_gib, gbps, most_gbps, cpu) in OCI_FLEXIBLE.items():
        for ocpus in OCI_OCPUS:
            for gib in (ocpus * threads * each for each in OCI_GIB_PER_VCPU):
                if ocpus > most_ocpus or gib > most_gib:
                    continue
                name = f"{shape}.{ocpus}o.{gib}g"
                facts = {
                    "id": name,
                    "source": OCI_FLEXIBLE_SOURCE,
                    "series": f"OCI {shape}",
                    "vcpus": str(ocpus * threads),
                    "memory_gib": str(gib),
                    "arch": "arm64" if cpu.startswith("Ampere") else "x64",
                    "cpu_model": cpu,
                    "gpu_count": "0",
                    "nvme_disk_gib": "0",
                    "network_mbps": str(min(ocpus * gbps, most_gbps) * 1000),
                }
                recipe = [{"size": name, "part": of_ocpu, "quantity": str(ocpus)}]
                sizes.append((facts, [*recipe, {"size": name, "part": of_gib, "quantity": str(gib)}]))
    return sizes


OCI_HOURLY = {
    "OCPU Per Hour": "OCPU",
    "Gigabyte Per Hour": "GiB",
    "GPU Per Hour": "GPU",
    "NVMe Terabyte Per Hour": "TB of NVMe",
}
"""What a part is counted in, by its metric in the price list."""
OCI_FLEXIBLE_SOURCE, OCI_SERIES = "oci-flexible-shapes", "oci-flexible-series"
OCI_OCPUS = (1, 2, 4, 8, 16, 32, 64)
OCI_GIB_PER_VCPU = (2, 4, 8)
"""What sizes of other clouds have: compute, general purpose and memory."""
OCI_FLEXIBLE = {
    "VM.Optimized3.Flex": ("B93311", "B93312", 2, 18, 256, 4, 40, "Intel Xeon 6354"),
    "VM.Standard.A1.Flex": ("B93297", "B93298", 1, 76, 472, 1, 40, "Ampere Altra Q80-30"),
    "VM.Standard.A2.Flex": ("B109529", "B109530", 2, 78, 946, 1, 78, "Ampere AmpereOne A160-30"),
    "VM.Standard.A4.Flex": ("B112145", "B112146", 2, 45, 700, 1, 100, "Ampere AmpereOne-M A06-36M"),
    "VM.Standard.E3.Flex": ("B92306", "B92307", 2, 64, 1024, 1, 40, "AMD EPYC 7742"),
    "VM.Standard.E4.Flex": ("B93113", "B93114", 2, 64, 1024, 1, 40, "AMD EPYC 7J13"),
    "VM.Standard.E5.Flex": ("B97384", "B97385", 2, 126, 1049, 1, 40, "AMD EPYC 9J14"),
    "VM.Standard.E6.Flex": ("B111129", "B111130", 2, 126, 1454, 1, 99, "AMD EPYC 9J45"),
    "VM.Standard3.Flex": ("B94176", "B94177", 2, 32, 512, 1, 32, "Intel Xeon Platinum 8358"),
}
"""Flexible shapes as Oracle's page has them: parts of OCPUs and memory, vCPUs an OCPU has, most OCPUs, most GiB, Gbit/s
an OCPU has and the most of them, processor."""
OCI_ROUNDING = Decimal("0.0001")
"""A price of a month has two digits: a price an hour is exact to this."""
OCI_SHAPES, OCI_COLUMN = "oci-shapes-2026-04-21", "linux:on_demand:2026-04-21"
OCI_GPUS = {
    "A10": "A10",
    "A100": "A100 (form not stated)",
    "B200": "B200",
    "GB200": "GB200",
    "H100": "H100 (form not stated)",
    "H200": "H200 (form not stated)",
    "L40S": "L40S",
    "MI300X": "MI300X",
}
"""GPUs as parts of the price list name them."""


# GPU clouds

ABOUT = "2026-05-24"
"""The day of the vendors' pages whose prices the undated lists of Lambda, Verda and Hyperstack agree with."""
SEVERAL_FORMS = {"A100 40GB", "A100 80GB", "V100", "H100", "H200", "RTX PRO 6000"}
"""GPUs that are sold in several forms, where the word does not say which."""


def make_skypilot(data: Path) -> None:
    """Write the seeds of Lambda, Verda and Hyperstack.

    The list names some GPUs without their form; where all that the cloud's page offers of a model and memory have the
    same form, as the list of single GPUs has it, that is the form of the sizes.
    """
    forms: dict[tuple[str, str, str], set[str]] = defaultdict(set)
    for row in read_table(data / "gpu-offers-2026-05" / "offerings.csv"):
        word = row["gpu_model"].removeprefix("NVIDIA ").removeprefix("Tesla ").partition(" ")[0]
        forms[row["provider_id"], word, row["vram_gb"]].add(row["interconnect"])
    offers: dict[str, list[Row]] = defaultdict(list)
    for row in read_table(data / "gpu-clouds-skypilot" / "offers.csv"):
        if row["cloud"] in ("lambda", "verda", "hyperstack"):
            offers[row["cloud"]].append(row)
        else:
            left_out[f"offers of {row['cloud'].partition(':')[0]}"] += 1
    for cloud, rows in offers.items():
        source = f"skypilot-{cloud}"
        memories: dict[str, set[str]] = defaultdict(set)
        for row in rows:
            memories[row["instance_type"]].add(row["memory_gib"])
        sizes: dict[str, dict[str, str]] = {}
        formed: dict[str, dict[str, str]] = {}
        prices: list[dict[str, str]] = []
        for row in rows:
            name = row["instance_type"]
            gpu = row["gpu"].removesuffix(" NVLink")
            form = forms.get((cloud, gpu.partition(" ")[0], row["gpu_memory_gib_each"]), set())
            sizes[name] = {
                "id": name,
                "source": source,
                "vcpus": row["vcpus"],
                "memory_gib": row["memory_gib"] if len(memories[name]) == 1 else "",
                "gpu_vendor": "NVIDIA" if gpu else "",
                "gpu_model": model_of(gpu),
                "gpu_count": row["gpu_count"],
                "gpu_memory_gib_per_gpu": row["gpu_memory_gib_each"],
                "gpu_interconnect": "NVLink" if gpu != row["gpu"] else "",
            }
            if gpu in SEVERAL_FORMS and form == {"SXM"}:
                sizes[name]["gpu_model"] = ""
                formed[name] = {"id": name, "source": f"gpu-pricing-{cloud}-2026-05-24", "gpu_model": f"{gpu} SXM"}
            places = (
                [f"{cloud}-{place.lower()}" for place in row["regions"].split("|")] if cloud != "lambda" else [cloud]
            )
            if row["usd_per_hour"]:
                prices += [_undated(name, place, number(row["usd_per_hour"]), ABOUT, source) for place in places]
        write_rows(CLOUDS / cloud / "sizes.csv", [*sizes.values()])
        write_rows(CLOUDS / cloud / "prices.csv", sorted(prices, key=lambda row: (row["size"], row["region"])))
        if formed:
            write_rows(CLOUDS / cloud / "sizes" / f"gpu-pricing-{cloud}-2026-05-24.csv", [*formed.values()])


def model_of(word: str) -> str:
    """Return a GPU in the vendor's words, which say that the form is not stated where the model has several."""
    return f"{word} (form not stated)" if word in SEVERAL_FORMS else word


def make_nebius(data: Path) -> None:
    """Write the seeds of Nebius, whose list has the memory of all GPUs together."""
    source, sizes, prices = "skypilot-nebius", {}, []
    for row in read_table(data / "skypilot-samples" / "nebius-vms.csv"):
        name, count = row["InstanceType"], int(Decimal(row["AcceleratorCount"]))
        form = {"H100": "H100 SXM", "H200": "H200 SXM", "B200": "B200 SXM"} if "-sxm_" in name else {}
        facts = {
            "id": name,
            "source": source,
            "vcpus": number(row["vCPUs"]),
            "memory_gib": number(row["MemoryGiB"]),
            "gpu_count": str(count),
        }
        if count:
            info = json.loads(row["GpuInfo"].replace("'", '"'))
            mib = Decimal(info["TotalGpuMemoryInMiB"]) / count
            facts |= {
                "gpu_vendor": info["Gpus"][0]["Manufacturer"],
                "gpu_model": form.get(row["AcceleratorName"], row["AcceleratorName"]),
                "gpu_memory_gib_per_gpu": number(gib_of_card(str(mib), Decimal(1))),
            }
        sizes[name] = facts
        if row["Price"]:
            prices.append(_undated(name, f"nebius-{row['Region']}", number(row["Price"]), "2026-01-01", source))
    write_rows(CLOUDS / "nebius" / "sizes.csv", [*sizes.values()])
    write_rows(CLOUDS / "nebius" / "prices.csv", sorted(prices, key=lambda row: (row["size"], row["region"])))


def make_runpod(data: Path) -> None:
    """Write the seeds of RunPod: pods with one GPU, on demand."""
    source = "gpu-pricing-runpod-2026-05-24"
    forms = {"SXM": "SXM", "NVL": "NVL", "PCIe": "PCIe"}
    sizes, table = [], {}
    for row in read_table(data / "gpu-offers-2026-05" / "offerings.csv"):
        if row["provider_id"] != "runpod":
            left_out["offers of other clouds in the list of single GPUs"] += 1
            continue
        if row["is_spot"] == "True":
            left_out["spot offers of RunPod, above its prices on demand"] += 1
            continue
        model = row["gpu_model"].removeprefix("NVIDIA ").removeprefix("HGX ").replace("RTX Pro", "RTX PRO")
        form = forms.get(row["interconnect"], "")
        if form in ("SXM", "NVL") and form not in model:
            model = f"{model} {form}"
        sizes.append(
            {
                "id": row["id"],
                "source": source,
                "vcpus": row["vcpu"],
                "memory_gib": row["ram_gb"],
                "gpu_vendor": row["gpu_brand"],
                "gpu_model": model_of(model),
                "gpu_count": "1",
                "gpu_memory_gib_per_gpu": row["vram_gb"],
            }
        )
        table[row["id"], "runpod"] = {f"linux:on_demand:{row['collected_at']}": number(row["price_usd_hour"])}
    write_rows(CLOUDS / "runpod" / "sizes.csv", sizes)
    write_prices("runpod", {source: table})


def make_coreweave(data: Path) -> None:
    """Write the seeds of CoreWeave: nodes as Kubernetes sees them, without prices."""
    rows = [
        {
            "id": row["instance_type"],
            "source": "cluster-autoscaler-coreweave-2025-12-12",
            "vcpus": row["vcpu"],
            "memory_gib": number((Decimal(row["memory_kib"]) / 2**20).quantize(Decimal("0.01"))),
            "arch": AUTOSCALER_ARCHES[row["architecture"]],
            "gpu_count": row["gpu"],
        }
        for row in read_table(data / "cluster-autoscaler" / "coreweave.csv")
    ]
    write_rows(CLOUDS / "coreweave" / "sizes.csv", rows)


def main() -> None:
    """Write all folders."""
    data = Path(sys.argv[1])
    for make in (make_aws, make_gcp, make_oci, make_skypilot, make_nebius, make_runpod, make_coreweave):
        make(data)
    for what, count in sorted(left_out.items()):
        print(f"left out: {count:,} {what}")


if __name__ == "__main__":
    main()
