"""The fields of a size on its page and in comparisons: their groups, titles and units, and which of two is better."""

from collections.abc import Iterable, Mapping
from decimal import Decimal, InvalidOperation

from app.catalog.fields import SIZE_FIELDS, SIZE_FLAGS
from app.web.rendering import format_number

GROUPS: Mapping[str, tuple[str, ...]] = {
    "GPU": (
        *("gpu_model", "gpu_vendor", "gpu_count", "gpu_fraction", "gpu_memory_gib", "gpu_memory_gib_per_gpu"),
        *("gpu_interconnect", "nvlink", "gpudirect_rdma", "virtual_workstations", "virtual_applications"),
    ),
    "Processor and memory": (
        *("vcpus", "memory_gib", "cpu_model", "arch", "cpu_count", "cpu_base_ghz", "cpu_all_core_peak_ghz"),
        *("cpu_peak_ghz", "memory_bandwidth_gb_per_s", "l3_cache_mib", "epc_memory_mib", "parent_size"),
        *("cpu_baseline_percent", "cpu_credits_initial", "cpu_credits_per_hour", "cpu_credits_max"),
    ),
    "Disks": (
        *("temp_disk_gib", "temp_disk_count", "nvme_disk_gib", "nvme_disk_count", "local_ssd_gib", "local_ssd_count"),
        *("max_data_disks", "uncached_disk_iops", "uncached_disk_mbps", "disk_cache_gib"),
    ),
    "Network": ("network_mbps", "max_nics", "backend_nics", "infiniband", "infiniband_gbps", "infiniband_gbps_per_gpu"),
    "Status": (
        *("status", "series", "category", "quota_family", "preview", "withdrawn", "retirement_date"),
        *("verified", "disputed"),
    ),
    "Features": tuple(SIZE_FLAGS),
}
"""The fields of each group, in order; the others are listed after them."""

OTHERS = "Others"

_TITLES: Mapping[str, str] = {
    "usd_per_hour": "Price",
    "gpu_model": "GPU",
    "gpu_vendor": "GPU maker",
    "gpu_count": "GPUs",
    "gpu_fraction": "Part of a GPU",
    "gpu_memory_gib": "GPU memory",
    "gpu_memory_gib_per_gpu": "GPU memory on one GPU",
    "gpu_interconnect": "GPUs joined by",
    "nvlink": "NVLink",
    "vcpus": "vCPUs",
    "memory_gib": "Memory",
    "cpu_model": "Processor",
    "arch": "Architecture",
    "max_nics": "NICs",
    "max_data_disks": "Data disks",
    "uncached_disk_iops": "Disk rate, uncached",
    "uncached_disk_mbps": "Disk throughput, uncached",
    "nvme_disk_gib": "NVMe disks",
    "nvme_disk_count": "NVMe disks, number",
    "temp_disk_gib": "Temporary disk",
    "temp_disk_count": "Temporary disks, number",
    "infiniband": "InfiniBand",
    "infiniband_gbps": "InfiniBand rate",
    "network_mbps": "Network",
    "gpudirect_rdma": "GPUDirect RDMA",
    "category": "Type",
    "memory_bandwidth_gb_per_s": "Memory bandwidth",
    "gb_per_s": "GB/s of memory bandwidth",
}
_UNIT_ENDS = ("_gib", "_mib", "_mbps", "_gbps", "_iops", "_ghz", "_percent", "_gb_per_s", "_tflops", "_tops")
_ACRONYMS = {"cpu": "CPU", "gpu": "GPU", "gpus": "GPUs", "nvme": "NVMe", "os": "OS", "vcpus": "vCPUs", "nics": "NICs"}
_ACRONYMS |= {name: name.upper() for name in ("fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "fp4", "int8")}
_UNITS = {"count": "", "Mbps": "Gbps"}

_BETTER_MORE = frozenset(
    name
    for name, field in SIZE_FIELDS.items()
    if field.unit is not None or name in {"nvlink", "infiniband", "gpudirect_rdma"}
)


def field_title(name: str) -> str:
    """Return what people call a field: `Memory` for `memory_gib`; its unit is beside it."""
    if name in _TITLES:
        return _TITLES[name]
    stem = next((name.removesuffix(end) for end in _UNIT_ENDS if name.endswith(end)), name)
    words = [_ACRONYMS.get(word, word) for word in stem.split("_")]
    return " ".join([words[0] if words[0] in _ACRONYMS.values() else words[0].capitalize(), *words[1:]])


def shown_unit(unit: str | None) -> str:
    """Return the unit that figures are shown in: none for counts, Gbps for Mbps."""
    return _UNITS.get(unit or "", unit or "")


def shown_amount(value: float | Decimal | None, unit: str | None) -> float | Decimal | None:
    """Return an amount in the unit that it is shown in."""
    return value / 1000 if value is not None and unit == "Mbps" else value


def shown_value(value: str, unit: str | None) -> str:
    """Return the text of a fact as people read it: `yes`, `1,536`, `1/6`; what is no number stays as it is."""
    if value in ("true", "false"):
        return "yes" if value == "true" else "no"
    if unit is None:
        return value
    try:
        return format_number(shown_amount(Decimal(value), unit), shown_unit(unit))
    except InvalidOperation:
        return value


def better_by(name: str) -> int:
    """Return 1 where more of a field is better, -1 where less is, 0 where neither is or it is unknown."""
    if "usd_per" in name or "price_per" in name:
        return -1
    return 1 if name in _BETTER_MORE or name.startswith("gpus_") else 0


def in_groups(names: Iterable[str]) -> dict[str, list[str]]:
    """Return names of fields by group, in the order of GROUPS; groups without any are left out."""
    left = dict.fromkeys(names)
    grouped = {title: [name for name in listed if name in left] for title, listed in GROUPS.items()}
    known = {name for listed in grouped.values() for name in listed}
    grouped[OTHERS] = [name for name in left if name not in known]
    return {title: listed for title, listed in grouped.items() if listed}
