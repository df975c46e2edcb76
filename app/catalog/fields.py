"""The fields of sizes, series and GPUs: the one table for parsing, resolving, storing and showing them."""

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal, get_args

FieldKind = Literal["integer", "number", "fraction", "text", "boolean", "date", "list"]
SubjectKind = Literal["size", "series", "gpu"]
FactValue = int | Decimal | Fraction | str | bool | date


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """A field: how it is stored, and how every face shows it.

    `unit` is that of every stored value. Without `column` it exists as a fact only, not as a column. A field that is
    not `stated` by any source is derived. `title` is what people call it, by default its name in words; `short` the
    same at the head of a column, with the unit beside it; `heading` the head of a column in a terminal. `sentence`
    documents the field in the API. More of an amount is better; of other fields only with `more_is_better`.
    """

    kind: FieldKind
    unit: str | None = None
    _: KW_ONLY
    column: bool = True
    stated: bool = True
    nullable: bool = True
    title: str = ""
    short: str = ""
    heading: str = ""
    sentence: str = ""
    more_is_better: bool = False
    in_resource_skus: bool = False


def _feature(name: str, *, title: str = "", more_is_better: bool = False, in_resource_skus: bool = False) -> FieldSpec:
    """Return the field of what documents state as Supported or Not Supported."""
    return FieldSpec(
        "boolean",
        title=title,
        more_is_better=more_is_better,
        in_resource_skus=in_resource_skus,
        sentence=f"{name}: supported, or not.",
    )


MAX_INTEGER = 2**31 - 1
"""The largest whole number that a column of PostgreSQL's `integer` holds, and more than any size has of anything."""

MAX_NUMBER = Decimal(10**12)
"""A bound above every amount, in any unit, that a size, series or GPU has."""


OTHERS = "Others"
"""The group of fields that belong to none of the others."""

SIZE_GROUPS: dict[str, dict[str, FieldSpec]] = {
    "Price": {
        "usd_per_hour": FieldSpec(
            "number",
            "USD an hour",
            column=False,
            stated=False,
            title="Price",
            heading="USD/h",
            sentence="USD an hour in the requested region, under the requested purchase model.",
        )
    },
    "GPU": {
        "gpu_model": FieldSpec("text", title="GPU", sentence="The GPU with its memory: `A100 80GB PCIe`."),
        "gpu_vendor": FieldSpec("text", title="GPU maker", sentence="Who makes the GPU: NVIDIA, AMD. Extensible."),
        "gpu_id": FieldSpec("text", stated=False, sentence="Id of the model in GET /gpus."),
        "gpu_count": FieldSpec(
            "fraction",
            "count",
            title="GPUs",
            sentence="GPUs of the VM, to four digits; the exact fraction is in gpu_fraction.",
        ),
        "gpu_fraction": FieldSpec(
            "text", column=False, title="Part of a GPU", sentence="The exact part of a GPU, `1/6`; null for whole GPUs."
        ),
        "gpu_memory_gib": FieldSpec(
            "number",
            "GiB",
            title="GPU memory",
            heading="GPU GiB",
            sentence="GPU memory of all GPUs of the VM together; for a fraction, its slice.",
        ),
        "gpu_memory_gib_per_gpu": FieldSpec(
            "number",
            "GiB",
            title="GPU memory on one GPU",
            short="On one GPU",
            heading="GiB/GPU",
            sentence="GPU memory of one whole GPU, as marketed.",
        ),
        "gpu_interconnect": FieldSpec(
            "text", title="GPUs joined by", sentence="What joins the GPUs of the VM: `NVLink 3.0`, PCIe."
        ),
        "nvlink": FieldSpec(
            "boolean", title="NVLink", more_is_better=True, sentence="Whether the GPUs of the VM are joined by NVLink."
        ),
        "virtual_workstations": FieldSpec("integer", "count", column=False),
        "virtual_applications": FieldSpec("integer", "count", column=False),
    },
    "Processor and memory": {
        "vcpus": FieldSpec("integer", "count", title="vCPUs", sentence="vCPUs of the VM.", in_resource_skus=True),
        "memory_gib": FieldSpec(
            "number", "GiB", title="Memory", heading="mem GiB", sentence="Memory of the VM, GiB.", in_resource_skus=True
        ),
        "cpu_model": FieldSpec("text", title="Processor", sentence="The processor, by its vendor's name."),
        "cpu_vendor": FieldSpec(
            "text",
            title="Processor maker",
            sentence="Who makes the processor: Intel, AMD, Ampere, Microsoft, NVIDIA, AWS, Google; null where a VM may "
            "get those of two. Extensible.",
        ),
        "arch": FieldSpec(
            "text", title="Architecture", short="CPU", sentence="x64 or arm64. Extensible.", in_resource_skus=True
        ),
        "coremark": FieldSpec(
            "integer",
            "iterations/s",
            title="CoreMark",
            sentence="CoreMark on all vCPUs, iterations a second, as Azure and Google measured it, and Vantage on "
            "AWS: on the slowest of the processors that it may have.",
        ),
        "cpu_count": FieldSpec("integer", "count", column=False),
        "cpu_base_ghz": FieldSpec("number", "GHz", column=False),
        "cpu_all_core_peak_ghz": FieldSpec("number", "GHz", column=False),
        "cpu_peak_ghz": FieldSpec("number", "GHz", column=False),
        "memory_bandwidth_gb_per_s": FieldSpec("number", "GB/s", column=False, title="Memory bandwidth"),
        "l3_cache_mib": FieldSpec("number", "MiB", column=False),
        "epc_memory_mib": FieldSpec("number", "MiB", column=False),
        "parent_size": FieldSpec("text", sentence="The size that it is, with fewer vCPUs; null for most."),
        "burstable": FieldSpec(
            "boolean",
            sentence="Whether the VM saves CPU credits below a baseline and spends them above it; null where no "
            "source says.",
        ),
        "cpu_baseline_percent": FieldSpec(
            "number", "%", title="CPU baseline", sentence="CPU of a burstable VM that costs no credits, percent."
        ),
        "cpu_credits_initial": FieldSpec("integer", "count", column=False),
        "cpu_credits_per_hour": FieldSpec(
            "integer",
            "count",
            title="CPU credits an hour",
            sentence="CPU credits that a burstable VM is given an hour.",
        ),
        "cpu_credits_max": FieldSpec("integer", "count", column=False),
    },
    "Disks": {
        "local_disk_gib": FieldSpec(
            "number",
            "GiB",
            title="Local disks",
            column=False,
            stated=False,
            sentence="Temporary and NVMe disks together, GiB.",
        ),
        "temp_disk_gib": FieldSpec(
            "number",
            "GiB",
            title="Temporary disk",
            short="Temp disk",
            sentence="Of all temporary disks together, GiB.",
            in_resource_skus=True,
        ),
        "temp_disk_count": FieldSpec(
            "integer", "count", title="Temporary disks, number", sentence="Number of temporary disks."
        ),
        "nvme_disk_gib": FieldSpec(
            "number",
            "GiB",
            title="NVMe disks",
            sentence="Of all local NVMe disks together, GiB.",
            in_resource_skus=True,
        ),
        "nvme_disk_count": FieldSpec(
            "integer",
            "count",
            title="NVMe disks, number",
            sentence="Number of local NVMe disks.",
            in_resource_skus=True,
        ),
        "local_nvme": FieldSpec(
            "boolean", stated=False, title="Local NVMe disks", sentence="Whether the VM has local NVMe disks."
        ),
        "local_ssd_gib": FieldSpec("number", "GiB", column=False),
        "local_ssd_count": FieldSpec("integer", "count", column=False),
        "max_data_disks": FieldSpec(
            "integer",
            "count",
            title="Data disks",
            sentence="Number of data disks that can be attached.",
            in_resource_skus=True,
        ),
        "uncached_disk_iops": FieldSpec(
            "integer",
            "IOPS",
            title="Disk rate, uncached",
            short="Disk rate",
            sentence="Operations a second on remote disks, uncached.",
            in_resource_skus=True,
        ),
        "uncached_disk_mbps": FieldSpec(
            "number",
            "MBps",
            title="Disk throughput, uncached",
            short="Disk rate",
            sentence="Throughput of remote disks, uncached, megabytes (10^6) a second.",
            in_resource_skus=True,
        ),
        "disk_controller": FieldSpec(
            "text", stated=False, sentence="What remote disks can be attached by: NVMe, SCSI, or both. Extensible."
        ),
        "disk_cache_gib": FieldSpec("number", "GiB", column=False),
    },
    "Network": {
        "network_mbps": FieldSpec(
            "integer",
            "Mbps",
            title="Network",
            sentence="The highest network bandwidth of the VM, megabits a second; `Up to` sizes of AWS burst to it.",
        ),
        "max_nics": FieldSpec(
            "integer", "count", title="NICs", sentence="Number of network interfaces.", in_resource_skus=True
        ),
        "backend_nics": FieldSpec("integer", "count", column=False),
        "infiniband": FieldSpec(
            "boolean", title="InfiniBand", more_is_better=True, sentence="Whether the VM has InfiniBand."
        ),
        "infiniband_gbps": FieldSpec(
            "number",
            "Gbps",
            title="InfiniBand rate",
            short="InfiniBand",
            sentence="InfiniBand of the VM, gigabits a second.",
        ),
        "fabric": FieldSpec(
            "text",
            title="Fabric between VMs",
            short="Fabric",
            sentence="The network for work on several VMs together: InfiniBand, EFA, RoCE, GPUDirect-TCPXO; `none` "
            "where a source says that there is none. Extensible.",
        ),
        "infiniband_gbps_per_gpu": FieldSpec("number", "Gbps", column=False),
    },
    "Status": {
        "status": FieldSpec(
            "text",
            stated=False,
            nullable=False,
            sentence="preview, current, retiring (dated), withdrawn or retired, today. Extensible.",
        ),
        "series": FieldSpec("text", sentence="Id of the series."),
        "category": FieldSpec(
            "text",
            stated=False,
            title="Type",
            sentence="Its type: `gpu_accelerated` if it has GPUs, else that of its series. Extensible.",
        ),
        "quota_family": FieldSpec(
            "text", sentence="The family whose vCPU quota it counts towards.", in_resource_skus=True
        ),
        "preview": FieldSpec("boolean", sentence="Whether the size is in preview."),
        "withdrawn": FieldSpec(
            "boolean", sentence="Whether it can no longer be deployed, though no date was announced."
        ),
        "retirement_date": FieldSpec("date", short="Retires", sentence="The day on which the size retires."),
        "verified": FieldSpec(
            "boolean", stated=False, nullable=False, sentence="Whether the vendor's own documents name this size."
        ),
        "disputed": FieldSpec(
            "boolean",
            stated=False,
            nullable=False,
            sentence="Whether sources disagree on a field; GET /sizes/{name}/facts has the value of each source.",
        ),
    },
    "Features": {
        "premium_storage": _feature("Premium Storage", title="Premium Storage", in_resource_skus=True),
        "premium_storage_caching": _feature("Premium Storage caching", title="Premium Storage caching"),
        "ultra_disk": _feature("Ultra Disk", title="Ultra Disk"),
        "live_migration": _feature("Live migration"),
        "memory_preserving_updates": _feature("Memory-preserving updates", in_resource_skus=True),
        "generation_1": _feature("Generation 1 VMs", in_resource_skus=True),
        "generation_2": _feature("Generation 2 VMs", in_resource_skus=True),
        "accelerated_networking": _feature("Accelerated networking", in_resource_skus=True),
        "ephemeral_os_disk": _feature("Ephemeral OS disks", in_resource_skus=True),
        "nested_virtualization": _feature("Nested virtualization"),
        "hibernation": _feature("Hibernation", in_resource_skus=True),
        "gpudirect_rdma": _feature("GPUDirect RDMA", title="GPUDirect RDMA", more_is_better=True),
        "encryption_at_host": _feature("Encryption at host", in_resource_skus=True),
        "trusted_launch": _feature("Trusted launch"),
    },
    OTHERS: {
        "name": FieldSpec(
            "text", stated=False, nullable=False, sentence="The vendor's name of the size: `Standard_NC24ads_A100_v4`."
        ),
        "provider": FieldSpec("text", stated=False, nullable=False, sentence="Who sells it. Extensible."),
        "disputed_fields": FieldSpec(
            "list", stated=False, nullable=False, sentence="The fields on which sources disagree."
        ),
        "confidential_computing": FieldSpec(
            "text", short="Confidential", sentence="What encrypts the memory of the VM: SNP, TDX. Extensible."
        ),
        "price_parts": FieldSpec(
            "text",
            column=False,
            title="Parts of the price",
            sentence="What a price is computed from, USD an hour: `4 OCPU x 0.03 + 64 GiB x 0.002`; by region where it "
            "depends on that: `eu-west-1: 0.102 in us-east-1 x 1.1; …`.",
        ),
        "zones": FieldSpec(
            "integer",
            "count",
            column=False,
            stated=False,
            title="Zones of the region",
            sentence="In how many zones of the requested region the size is offered; 0 where zones cannot be chosen.",
        ),
        "flags": FieldSpec(
            "list",
            stated=False,
            nullable=False,
            sentence="The features that are supported; each is a field of its own, too.",
        ),
        "source_url": FieldSpec(
            "text", stated=False, sentence="The page with the highest authority among those that name the size."
        ),
        "physical_cores": FieldSpec("integer", "count", column=False),
        **{
            f"{disk}_{suffix}": FieldSpec("number", unit, column=False)
            for disk in (
                *("uncached_disk_burst", "ultra_disk", "ultra_disk_burst", "cached_disk", "temp_disk"),
                *("temp_disk_burst", "temp_disk_read", "temp_disk_write", "temp_disk_sequential_read"),
                *("temp_disk_sequential_write", "nvme_disk"),
            )
            for suffix, unit in (("iops", "IOPS"), ("mbps", "MBps"))
        },
        **dict.fromkeys(
            (
                *("nvme_interface", "scsi_interface", "nvme_storage", "write_accelerator", "constrained_vcpus"),
                *("premium_storage_v2", "local_temporary_storage", "service_healing", "vcore_customization"),
                *("disk_encryption_linux", "disk_encryption_windows"),
            ),
            FieldSpec("boolean", column=False),
        ),
    },
}
"""Every field of a size by group, in the order of pages. A new field is a row here, and a column in `Size`.

`gpu_memory_gib` is of the whole VM; `gpu_memory_gib_per_gpu` of one whole GPU, so that count x per-GPU = total holds
for a sixth of a GPU, too; `nvme_disk_gib` is the sum over the disks. GPUs are not `in_resource_skus`, since that API
counts a part of a GPU as one, nor is what depends on the region or the zone.
"""

SHOWN_FIELDS = {name: spec for specs in SIZE_GROUPS.values() for name, spec in specs.items()}
"""The fields of a size, also those that no source states but that are derived."""

SIZE_FIELDS = {name: spec for name, spec in SHOWN_FIELDS.items() if spec.stated}
"""The fields of a size that sources state."""

APPLIES_WITH: dict[str, str] = {
    **{name: "gpu_count" for name in (*SIZE_GROUPS["GPU"], "gpudirect_rdma") if name != "gpu_count"},
    "infiniband_gbps": "infiniband",
    "nvme_disk_gib": "local_nvme",
    "nvme_disk_count": "local_nvme",
}
"""The field without which a figure does not apply: where that is zero or false, null is not unknown."""


def is_inapplicable(name: str, size: Mapping[str, Any]) -> bool:
    """Check whether a figure does not apply to a size, such as the memory of no GPU."""
    needed = "gpu_count" if name.startswith("gpus_") or "_per_gpu_" in name else APPLIES_WITH.get(name)
    return needed is not None and size.get(needed) == 0


SIZE_FLAGS = SIZE_GROUPS["Features"]
"""What documents state as Supported or Not Supported, each a boolean column; null is unknown."""

RESOURCE_SKUS_FIELDS = frozenset(name for name, spec in SIZE_FIELDS.items() if spec.in_resource_skus)
"""The fields of a size that Azure's Resource SKUs API defines."""

_UNIT_ENDS = ("_gib", "_mib", "_mbps", "_gbps", "_iops", "_ghz", "_percent", "_gb_per_s", "_tflops", "_tops")
_ACRONYMS = {"cpu": "CPU", "gpu": "GPU", "gpus": "GPUs", "nvme": "NVMe", "os": "OS", "vcpus": "vCPUs", "nics": "NICs"}
_ACRONYMS |= {name: name.upper() for name in ("fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "fp4", "int8")}


def field_title(name: str) -> str:
    """Return what people call a field of a size, series or GPU: `Memory` for `memory_gib`; its unit is beside it."""
    if name in SHOWN_FIELDS and SHOWN_FIELDS[name].title:
        return SHOWN_FIELDS[name].title
    stem = next((name.removesuffix(end) for end in _UNIT_ENDS if name.endswith(end)), name)
    words = [_ACRONYMS.get(word, word) for word in stem.split("_")]
    return " ".join([words[0] if words[0] in _ACRONYMS.values() else words[0].capitalize(), *words[1:]])


def short_title(name: str) -> str:
    """Return the title of a field at the head of a column, which has the unit beside it."""
    return SHOWN_FIELDS[name].short or field_title(name)


def field_heading(name: str) -> str:
    """Return the head of a field's column in a terminal, with its unit: `mem GiB`; words are in lower case."""
    spec = SHOWN_FIELDS[name]
    if spec.heading:
        return spec.heading
    title = short_title(name)
    title = title[0].lower() + title[1:] if title[1:2].islower() else title
    return title if spec.unit in (None, "count") else f"{title} {spec.unit}"


SERIES_FIELDS: dict[str, FieldSpec] = {
    "name": FieldSpec("text", nullable=False, sentence="Its name: `ND_H100_v5`."),
    "provider": FieldSpec("text", nullable=False, sentence="Who sells it."),
    "family": FieldSpec("text", sentence="The family it belongs to: D, NC."),
    "category": FieldSpec("text", sentence="The type of its sizes: `general_purpose`, `gpu_accelerated`. Extensible."),
    "aliases": FieldSpec("list", nullable=False, sentence="Other names that find it."),
    "use_cases": FieldSpec("list", nullable=False, sentence="Use cases that the vendor names."),
    "integrations": FieldSpec("list", nullable=False, sentence="Integrations that the vendor names."),
    "gpu_dtypes": FieldSpec("list", nullable=False, sentence="Data types that the vendor names for its GPUs."),
    "supported_images": FieldSpec("list", nullable=False, sentence="Images that the vendor names as supported."),
    "ofed_driver": FieldSpec("text", sentence="The InfiniBand driver that the vendor names."),
    "scale_up_domain_gpus": FieldSpec("integer", "count", sentence="GPUs that share one NVLink (or xGMI) domain."),
    "rack_vms": FieldSpec("integer", "count", sentence="VMs of one rack."),
    "rack_gpus": FieldSpec("integer", "count", sentence="GPUs of one rack."),
    "rack_nvlink_tb_per_s": FieldSpec("number", "TB/s", sentence="NVLink bandwidth of one rack, TB/s."),
    "rack_fast_memory_tb": FieldSpec("number", "TB", sentence="Memory of one rack, of GPUs and CPUs together, TB."),
    "rack_hbm_tb": FieldSpec("number", "TB", sentence="GPU memory of one rack, TB."),
    "rack_lpddr_tb": FieldSpec("number", "TB", sentence="CPU memory of one rack, TB."),
    "rack_fp4_pflops": FieldSpec("number", "PFLOPS", sentence="FP4 throughput of one rack, PFLOPS."),
    "retirement_date": FieldSpec("date", sentence="The day on which the series retires."),
    "cloud_services": FieldSpec(
        "boolean", sentence="Whether price lists have meters of Cloud Services for its sizes, beside those of Linux."
    ),
    "reserved_1y_until": FieldSpec("date", sentence="The last day on which reservations of a year were sold."),
    "reserved_3y_until": FieldSpec("date", sentence="The last day on which reservations of three years were sold."),
}
"""Fields of a series; the rack is that of GB200 and GB300, where all VMs of a rack share one NVLink domain."""

GPU_FIELDS: dict[str, FieldSpec] = {
    "vendor": FieldSpec("text", nullable=False, sentence="Who makes it: NVIDIA, AMD. Extensible."),
    "model": FieldSpec("text", nullable=False, sentence="The model with its memory: `H100 80GB`."),
    "family": FieldSpec("text", nullable=False, sentence="The model without memory and form: `H100`."),
    "aliases": FieldSpec("list", nullable=False, sentence="Other names that find it."),
    "architecture": FieldSpec("text", sentence="The architecture: `Hopper`."),
    "compute_capability": FieldSpec("text", sentence="CUDA compute capability, or AMD's target: `9.0`, `gfx942`."),
    "memory_gib": FieldSpec("number", "GiB", sentence="As marketed."),
    "usable_memory_gib": FieldSpec("number", "GiB", sentence="As the operating system sees it."),
    "memory_bandwidth_gb_per_s": FieldSpec("number", "GB/s", sentence="Memory bandwidth, GB/s."),
    "fp64_tflops": FieldSpec("number", "TFLOPS", sentence="FP64 throughput, dense, TFLOPS."),
    "fp32_tflops": FieldSpec("number", "TFLOPS", sentence="FP32 throughput, dense, TFLOPS."),
    "tf32_tflops": FieldSpec("number", "TFLOPS", sentence="TF32 throughput, dense, TFLOPS."),
    "fp16_tflops": FieldSpec("number", "TFLOPS", sentence="FP16 throughput, dense, TFLOPS."),
    "bf16_tflops": FieldSpec("number", "TFLOPS", sentence="BF16 throughput, dense, TFLOPS."),
    "fp8_tflops": FieldSpec("number", "TFLOPS", sentence="FP8 throughput, dense, TFLOPS."),
    "fp4_tflops": FieldSpec("number", "TFLOPS", sentence="FP4 throughput, dense, TFLOPS."),
    "int8_tops": FieldSpec("number", "TOPS", sentence="INT8 throughput, dense, TOPS."),
    "interconnect": FieldSpec("text", sentence="What joins it to other GPUs: `NVLink 4.0`."),
    "interconnect_gb_per_s": FieldSpec("number", "GB/s", sentence="Bandwidth to other GPUs, GB/s."),
    "scale_up_domain_gpus": FieldSpec(
        "integer", "count", sentence="The most GPUs that can be linked, this one included."
    ),
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


def too_large(kind: FieldKind, number: Decimal | Fraction, unit: str | None = None) -> str | None:
    """Return what is wrong with a number in a unit that no column of its kind holds; None for any other."""
    of_unit = f" {unit}" if unit not in (None, "count") else ""
    if kind == "fraction" and (number < 0 or max(number.as_integer_ratio()) > MAX_INTEGER):
        return f"must be a fraction of whole numbers up to {MAX_INTEGER}, and not below 0"
    if kind == "integer" and number > MAX_INTEGER:
        return f"must be at most {MAX_INTEGER}{of_unit}"
    return f"must be below {MAX_NUMBER:,}{of_unit}" if number >= MAX_NUMBER else None


def parse_text(kind: FieldKind, text: str) -> FactValue:
    """Parse what `to_text` wrote; raises ValueError for a text that is not of the kind."""
    try:
        return _PARSERS[kind](text)
    except (ArithmeticError, KeyError) as error:
        raise ValueError(f"{text!r} is not of the kind {kind}") from error


ChangeKind = Literal[
    "price_up",
    "price_down",
    "price_new",
    "price_gone",
    "size_new",
    "size_gone",
    "field_changed",
    "dispute_opened",
    "dispute_closed",
    "retirement_announced",
]
"""What an event is about."""

CHANGE_KINDS: tuple[ChangeKind, ...] = get_args(ChangeKind)

CHANGE_FIELDS: Mapping[str, str] = {
    "name": "name",
    "verified": "verified",
    "category": "category",
    **{name: name for name, field in SIZE_FIELDS.items() if field.column},
    "series": "series_id",
}
"""The fields of a size whose accepted values are compared, each with its column."""
