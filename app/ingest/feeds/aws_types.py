"""Maps the answer of Amazon's DescribeInstanceTypes to facts about sizes.

GPU models and their memory are not taken: the API names a card without its form, and gives memory in decimal gigabytes
for some cards and in GiB for others.
"""

import json
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from app.catalog.fields import FactValue
from app.catalog.readings import Progress, SourceRow
from app.errors import BadData
from app.ingest.feeds.resource_skus import Entry, NotAValue, SkuMapper, Stated, read_entries, to_field, to_number
from app.ingest.files import describe_json

Figure = tuple[FactValue, str]
"""A value in the unit of its field, and what the API says."""
_NETWORK = re.compile(r"(?:(?P<cards>\d+)x )?(?:Up to )?(?P<gigabit>\d+(?:\.\d+)?) Gigabit")


def _within(section: str, read: Callable[[Entry], Figure | None], allowed: str) -> Callable[[Entry], Figure | None]:
    """Return a reader of a section, which raises NotAValue where that is not in the form of the API."""

    def checked(entry: Entry) -> Figure | None:
        try:
            return read(entry)
        except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError) as error:
            raise NotAValue(section, json.dumps(entry.get(section), default=str), allowed) from error

    return checked


def _at(*path: str, unit: Fraction | None = None) -> Callable[[Entry], Figure | None]:
    """Return a reader of a number or flag at a path of names; `unit` is how much of the field's unit it counts."""

    def read(entry: Entry) -> Figure | None:
        value: Any = entry
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        if value is None or isinstance(value, bool):
            return None if value is None else (value, str(value))
        number = to_number(path[-1], value)
        return (number * unit.numerator / unit.denominator if unit is not None else number), str(value)

    return read


_ARCH_OF = {"x86_64": "x64", "x86_64_mac": "x64", "arm64": "arm64", "arm64_mac": "arm64"}


def _arch(entry: Entry) -> Figure | None:
    names = entry.get("ProcessorInfo", {}).get("SupportedArchitectures") or []
    arches = {_ARCH_OF[name] for name in names if name != "i386"}
    return (arches.pop(), " ".join(names)) if len(arches) == 1 else None


def _cpu_vendor(entry: Entry) -> Figure | None:
    maker = entry.get("ProcessorInfo", {}).get("Manufacturer")
    return (maker, maker) if isinstance(maker, str) and maker else None


def _gpu_count(entry: Entry) -> Figure:
    """Return the GPUs: of a part of one the Count is 0, and each of the logical GPUs has its share."""
    total = Fraction(0)
    for gpu in entry.get("GpuInfo", {}).get("Gpus") or ():
        share = Fraction(to_number("GpuPartitionSize", gpu.get("GpuPartitionSize") or 1))
        count = Fraction(to_number("Count", gpu["Count"]))
        total += count or Fraction(to_number("LogicalGpuCount", gpu["LogicalGpuCount"])) * share
    return total, str(entry.get("GpuInfo", {}).get("Gpus", "no GpuInfo"))


def _disks(kind: str, what: str) -> Callable[[Entry], Figure | None]:
    """Return a reader of the local disks by NVMe or by another interface; a type without any has none by NVMe."""

    def read(entry: Entry) -> Figure | None:
        if entry.get("InstanceStorageSupported") is False:
            return (0, "InstanceStorageSupported False") if kind == "nvme" else None
        storage = entry.get("InstanceStorageInfo", {})
        disks, has_nvme = storage.get("Disks"), storage.get("NvmeSupport") in ("required", "supported")
        if not disks or has_nvme is not (kind == "nvme"):
            return None
        if what == "count":
            return Decimal(sum(to_number("Count", disk["Count"]) for disk in disks)), str(disks)
        total = storage["TotalSizeInGB"]
        return round(to_number("TotalSizeInGB", total) * 10**9 / 2**30, 2), str(total)

    return _within("InstanceStorageInfo", read, "must have TotalSizeInGB, and list Disks, each with a Count")


def _network(entry: Entry) -> Figure | None:
    """Return what the network is called; the sum of its cards counts a total that they share once for each."""
    text = str(entry.get("NetworkInfo", {}).get("NetworkPerformance", ""))
    named = _NETWORK.fullmatch(text)
    return (int(Decimal(named["gigabit"]) * 1000) * int(named["cards"] or 1), text) if named else None


def _fabric(entry: Entry) -> Figure | None:
    has_efa = entry.get("NetworkInfo", {}).get("EfaSupported")
    return ("EFA" if has_efa else "none", f"EfaSupported {has_efa}") if isinstance(has_efa, bool) else None


_EBS = ("EbsInfo", "EbsOptimizedInfo")
READERS: Mapping[str, Callable[[Entry], Figure | None]] = {
    "vcpus": _at("VCpuInfo", "DefaultVCpus"),
    "physical_cores": _at("VCpuInfo", "DefaultCores"),
    "cpu_vendor": _within("ProcessorInfo", _cpu_vendor, "must be an object with a Manufacturer"),
    "arch": _within("ProcessorInfo", _arch, f"must list SupportedArchitectures of i386, {', '.join(_ARCH_OF)}"),
    "burstable": _at("BurstablePerformanceSupported"),
    "memory_gib": _at("MemoryInfo", "SizeInMiB", unit=Fraction(1, 1024)),
    "gpu_count": _within("GpuInfo", _gpu_count, "must list Gpus, each with a Count, or with 0 and a LogicalGpuCount"),
    "nvme_disk_gib": _disks("nvme", "gib"),
    "nvme_disk_count": _disks("nvme", "count"),
    "temp_disk_gib": _disks("temp", "gib"),
    "temp_disk_count": _disks("temp", "count"),
    "max_data_disks": _at("EbsInfo", "MaximumEbsAttachments"),
    "uncached_disk_iops": _at(*_EBS, "BaselineIops"),
    "uncached_disk_mbps": _at(*_EBS, "BaselineThroughputInMBps"),
    "max_nics": _at("NetworkInfo", "MaximumNetworkInterfaces"),
    "network_mbps": _within("NetworkInfo", _network, "must be an object with a NetworkPerformance"),
    "fabric": _within("NetworkInfo", _fabric, "must be an object with EfaSupported"),
    "hibernation": _at("HibernationSupported"),
}
"""What reads each field of a size from an instance type."""


class TypeMapper(SkuMapper):
    """Collects instance types, of which each is listed once."""

    source = SourceRow(
        id="aws-instance-types",
        title="Amazon EC2 DescribeInstanceTypes",
        publisher="AWS",
        kind="vendor_api",
        url="https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeInstanceTypes.html",
        published_on=None,
        sha256="",
    )
    file_kind = "sizes"

    def read(self, path: Path, progress: Progress) -> None:
        """Take the types in what `aws ec2 describe-instance-types` prints, or in the list alone; raises BadData."""
        give = "give the JSON of `aws ec2 describe-instance-types`"
        missing = f"has no instance types; {give}"
        entry: Entry = {}
        for entry in read_entries(path, items="InstanceTypes", missing=missing, progress=progress):
            self.add(entry)
        if not self._sizes:
            raise BadData(describe_json(entry) or f"no entry is an instance type; {give}", file=str(path))

    def add(self, entry: Entry) -> None:
        """Take the figures of one type; a type that is listed twice, and a figure that is none, are reported."""
        self.entries += 1
        if (named := self._named(entry, "InstanceType")) is None:
            return
        key, name = named
        if key in self._sizes:
            self._report(name, "InstanceType", name, "is listed twice")
            return
        self._names[key], self._sizes[key] = name, {}
        for column, read in READERS.items():
            try:
                if (figure := read(entry)) is not None:
                    value = to_field(column, column, *figure)
                    self._sizes[key][column] = Stated(value=value, raw=figure[1][:200], line=self.entries)
            except NotAValue as error:
                self._report(name, column, error.cell, f"is not a value of {column}: {error}")
