"""The fields that a source can state, each with its kind and unit: the one table for parsing, resolving and storing."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Literal

FieldKind = Literal["integer", "number", "fraction", "text", "boolean", "date", "list"]
SubjectKind = Literal["size", "series", "gpu"]
FactValue = int | Decimal | Fraction | str | bool | date


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldSpec:
    """A field: `unit` is that of every stored value; without `column` it exists as a fact only, not as a column."""

    kind: FieldKind
    unit: str | None = None
    column: bool = True


MAX_INTEGER = 2**31 - 1
"""The largest whole number that a column of PostgreSQL's `integer` holds, and more than any size has of anything."""

MAX_NUMBER = Decimal(10**12)
"""A bound above every amount, in any unit, that a size, series or GPU has."""

_COUNT = FieldSpec(kind="integer", unit="count")
_FLAG = FieldSpec(kind="boolean")
_FACT_ONLY_FLAG = FieldSpec(kind="boolean", column=False)
_TEXT = FieldSpec(kind="text")
_TFLOPS = FieldSpec(kind="number", unit="TFLOPS")

SIZE_FLAGS: dict[str, FieldSpec] = dict.fromkeys(
    (
        "premium_storage",
        "premium_storage_caching",
        "ultra_disk",
        "live_migration",
        "memory_preserving_updates",
        "generation_1",
        "generation_2",
        "accelerated_networking",
        "ephemeral_os_disk",
        "nested_virtualization",
        "hibernation",
        "gpudirect_rdma",
        "encryption_at_host",
    ),
    _FLAG,
)
"""What documents state as Supported or Not Supported, each a boolean column; null is unknown."""

SIZE_FIELDS: dict[str, FieldSpec] = {
    "series": _TEXT,
    "quota_family": _TEXT,
    "parent_size": _TEXT,
    "vcpus": _COUNT,
    "cpu_model": _TEXT,
    "arch": _TEXT,
    "memory_gib": FieldSpec(kind="number", unit="GiB"),
    "gpu_vendor": _TEXT,
    "gpu_model": _TEXT,
    "gpu_count": FieldSpec(kind="fraction", unit="count"),
    "gpu_memory_gib": FieldSpec(kind="number", unit="GiB"),
    "gpu_memory_gib_per_gpu": FieldSpec(kind="number", unit="GiB"),
    "gpu_interconnect": _TEXT,
    "nvlink": _FLAG,
    "temp_disk_gib": FieldSpec(kind="number", unit="GiB"),
    "temp_disk_count": _COUNT,
    "nvme_disk_gib": FieldSpec(kind="number", unit="GiB"),
    "nvme_disk_count": _COUNT,
    "max_data_disks": _COUNT,
    "uncached_disk_iops": FieldSpec(kind="integer", unit="IOPS"),
    "uncached_disk_mbps": FieldSpec(kind="number", unit="MBps"),
    "max_nics": _COUNT,
    "network_mbps": FieldSpec(kind="integer", unit="Mbps"),
    "infiniband": _FLAG,
    "infiniband_gbps": FieldSpec(kind="number", unit="Gbps"),
    "confidential_computing": _TEXT,
    "preview": _FLAG,
    "withdrawn": _FLAG,
    "retirement_date": FieldSpec(kind="date"),
    **SIZE_FLAGS,
    "gpu_fraction": FieldSpec(kind="text", column=False),
    "cpu_count": FieldSpec(kind="integer", unit="count", column=False),
    "physical_cores": FieldSpec(kind="integer", unit="count", column=False),
    **{
        f"{disk}_{suffix}": FieldSpec(kind="number", unit=unit, column=False)
        for disk in (
            "uncached_disk_burst",
            "ultra_disk",
            "ultra_disk_burst",
            "cached_disk",
            "temp_disk",
            "temp_disk_burst",
            "temp_disk_read",
            "temp_disk_write",
            "temp_disk_sequential_read",
            "temp_disk_sequential_write",
            "nvme_disk",
        )
        for suffix, unit in (("iops", "IOPS"), ("mbps", "MBps"))
    },
    "infiniband_gbps_per_gpu": FieldSpec(kind="number", unit="Gbps", column=False),
    "virtual_workstations": FieldSpec(kind="integer", unit="count", column=False),
    "virtual_applications": FieldSpec(kind="integer", unit="count", column=False),
    "l3_cache_mib": FieldSpec(kind="number", unit="MiB", column=False),
    "disk_cache_gib": FieldSpec(kind="number", unit="GiB", column=False),
    "epc_memory_mib": FieldSpec(kind="number", unit="MiB", column=False),
    "memory_bandwidth_gb_per_s": FieldSpec(kind="number", unit="GB/s", column=False),
    "cpu_base_ghz": FieldSpec(kind="number", unit="GHz", column=False),
    "cpu_peak_ghz": FieldSpec(kind="number", unit="GHz", column=False),
    "cpu_all_core_peak_ghz": FieldSpec(kind="number", unit="GHz", column=False),
    "cpu_baseline_percent": FieldSpec(kind="number", unit="%", column=False),
    "cpu_credits_initial": FieldSpec(kind="integer", unit="count", column=False),
    "cpu_credits_per_hour": FieldSpec(kind="integer", unit="count", column=False),
    "cpu_credits_max": FieldSpec(kind="integer", unit="count", column=False),
    "backend_nics": FieldSpec(kind="integer", unit="count", column=False),
    "local_ssd_count": FieldSpec(kind="integer", unit="count", column=False),
    "local_ssd_gib": FieldSpec(kind="number", unit="GiB", column=False),
    "nvme_interface": _FACT_ONLY_FLAG,
    "scsi_interface": _FACT_ONLY_FLAG,
    "nvme_storage": _FACT_ONLY_FLAG,
    "trusted_launch": _FACT_ONLY_FLAG,
    "write_accelerator": _FACT_ONLY_FLAG,
    "constrained_vcpus": _FACT_ONLY_FLAG,
    "premium_storage_v2": _FACT_ONLY_FLAG,
    "local_temporary_storage": _FACT_ONLY_FLAG,
    "service_healing": _FACT_ONLY_FLAG,
    "vcore_customization": _FACT_ONLY_FLAG,
    "disk_encryption_linux": _FACT_ONLY_FLAG,
    "disk_encryption_windows": _FACT_ONLY_FLAG,
}
"""Fields of a size. `gpu_memory_gib` is of the whole VM; `gpu_memory_gib_per_gpu` of one whole GPU, so that
count x per-GPU = total holds for a sixth of a GPU, too; `nvme_disk_gib` is the sum over the disks."""

RESOURCE_SKUS_FIELDS = frozenset(
    {
        "vcpus",
        "arch",
        "memory_gib",
        "temp_disk_gib",
        "nvme_disk_gib",
        "nvme_disk_count",
        "max_data_disks",
        "uncached_disk_iops",
        "uncached_disk_mbps",
        "max_nics",
        "premium_storage",
        "generation_1",
        "generation_2",
        "accelerated_networking",
        "ephemeral_os_disk",
        "memory_preserving_updates",
        "hibernation",
        "encryption_at_host",
        "quota_family",
    }
)
"""The fields of a size that Azure's Resource SKUs API defines.

GPUs are not among them, since that API counts a part of a GPU as one, nor is what depends on the region or the zone.
"""

SERIES_FIELDS: dict[str, FieldSpec] = {
    "name": _TEXT,
    "provider": _TEXT,
    "family": _TEXT,
    "category": _TEXT,
    "aliases": FieldSpec(kind="list"),
    "use_cases": FieldSpec(kind="list"),
    "integrations": FieldSpec(kind="list"),
    "gpu_dtypes": FieldSpec(kind="list"),
    "supported_images": FieldSpec(kind="list"),
    "ofed_driver": _TEXT,
    "scale_up_domain_gpus": _COUNT,
    "rack_vms": _COUNT,
    "rack_gpus": _COUNT,
    "rack_nvlink_tb_per_s": FieldSpec(kind="number", unit="TB/s"),
    "rack_fast_memory_tb": FieldSpec(kind="number", unit="TB"),
    "rack_hbm_tb": FieldSpec(kind="number", unit="TB"),
    "rack_lpddr_tb": FieldSpec(kind="number", unit="TB"),
    "rack_fp4_pflops": FieldSpec(kind="number", unit="PFLOPS"),
    "retirement_date": FieldSpec(kind="date"),
    "cloud_services": _FLAG,
    "reserved_1y_until": FieldSpec(kind="date"),
    "reserved_3y_until": FieldSpec(kind="date"),
}
"""Fields of a series; the rack is that of GB200 and GB300, where all VMs of a rack share one NVLink domain."""

GPU_FIELDS: dict[str, FieldSpec] = {
    "vendor": _TEXT,
    "model": _TEXT,
    "family": _TEXT,
    "aliases": FieldSpec(kind="list"),
    "architecture": _TEXT,
    "compute_capability": _TEXT,
    "memory_gib": FieldSpec(kind="number", unit="GiB"),
    "usable_memory_gib": FieldSpec(kind="number", unit="GiB"),
    "memory_bandwidth_gb_per_s": FieldSpec(kind="number", unit="GB/s"),
    "fp64_tflops": _TFLOPS,
    "fp32_tflops": _TFLOPS,
    "tf32_tflops": _TFLOPS,
    "fp16_tflops": _TFLOPS,
    "bf16_tflops": _TFLOPS,
    "fp8_tflops": _TFLOPS,
    "fp4_tflops": _TFLOPS,
    "int8_tops": FieldSpec(kind="number", unit="TOPS"),
    "interconnect": _TEXT,
    "interconnect_gb_per_s": FieldSpec(kind="number", unit="GB/s"),
    "scale_up_domain_gpus": _COUNT,
}
"""Fields of a GPU model: throughput is dense, bandwidths are decimal, `memory_gib` is the marketed figure and
`usable_memory_gib` what the operating system sees; the scale-up domain is the largest set of linked GPUs."""

FIELDS: dict[SubjectKind, dict[str, FieldSpec]] = {"size": SIZE_FIELDS, "series": SERIES_FIELDS, "gpu": GPU_FIELDS}


def to_text(value: FactValue) -> str:
    """Return a value as text in the one form that is stored and compared: `1/6`, `27.5`, `true`, `2026-09-30`."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        return f"{value.normalize():f}"
    return str(value)


_PARSERS: dict[FieldKind, Callable[[str], FactValue]] = {
    "integer": int,
    "number": Decimal,
    "fraction": Fraction,
    "text": str,
    "boolean": {"true": True, "false": False}.__getitem__,
    "date": date.fromisoformat,
    "list": str,
}


def too_large(kind: FieldKind, number: Decimal | Fraction) -> str | None:
    """Return what is wrong with a number that no column of its kind holds; None for any other."""
    if kind == "fraction" and max(number.as_integer_ratio()) > MAX_INTEGER:
        return f"must be a fraction of whole numbers up to {MAX_INTEGER}"
    if kind == "integer" and number > MAX_INTEGER:
        return f"must be at most {MAX_INTEGER}"
    return f"must be below {MAX_NUMBER:,}" if number >= MAX_NUMBER else None


def parse_text(kind: FieldKind, text: str) -> FactValue:
    """Parse what `to_text` wrote; raises ValueError for a text that is not of the kind."""
    try:
        return _PARSERS[kind](text)
    except (ArithmeticError, KeyError) as error:
        raise ValueError(f"{text!r} is not of the kind {kind}") from error
