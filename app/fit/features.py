"""The features of a size that a successor can keep; apart from how they are compared, which requests do not need."""

from dataclasses import dataclass
from typing import Literal

FeatureKind = Literal["amount", "flag", "same", "shared"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """A feature of a size that a successor can keep.

    An `amount` is kept by at least as much, a `flag` where it is true, what must be the `same` by an equal value, and
    of what is `shared` (a set) by one common value. `essential` features are kept unless a request says otherwise;
    of a size without GPUs those `of_gpu` are not unknown but absent.
    """

    name: str
    code: str
    label: str
    kind: FeatureKind = "amount"
    unit: str | None = None
    essential: bool = False
    of_gpu: bool = False

    @staticmethod
    def flag(name: str, *, code: str = "FEATURE", essential: bool = False, of_gpu: bool = False) -> "Feature":
        """Return a feature that is supported or not."""
        label = " ".join(_SPELLED.get(word, word) for word in name.split("_"))
        return Feature(name=name, code=code, label=label, kind="flag", essential=essential, of_gpu=of_gpu)


_SPELLED = {
    "os": "OS",
    "nvme": "NVMe",
    "nvlink": "NVLink",
    "infiniband": "InfiniBand",
    "gpudirect": "GPUDirect",
    "rdma": "RDMA",
}
"""Words of names that are not written in small letters."""

FEATURES: tuple[Feature, ...] = (
    Feature(name="vcpus", code="VCPU", label="vCPUs", unit="count", essential=True),
    Feature(name="memory_gib", code="RAM", label="memory", unit="GiB", essential=True),
    *(
        Feature(name=name, code=code, label=label, unit=unit, essential=True, of_gpu=True)
        for name, code, label, unit in (
            ("gpu_memory_gib", "GPU_MEMORY_TOTAL", "GPU memory", "GiB"),
            ("gpu_memory_gib_per_gpu", "GPU_MEMORY_PER_GPU", "GPU memory on one GPU", "GiB"),
            ("gpu_count", "GPU_COUNT", "GPUs", "count"),
        )
    ),
    Feature(name="gpu_vendor", code="GPU_VENDOR", label="GPU vendor", kind="same", essential=True, of_gpu=True),
    Feature(name="gpu_model", code="GPU_MODEL", label="GPU model", kind="same", of_gpu=True),
    Feature(name="arch", code="ARCH", label="architecture", kind="same", essential=True),
    Feature(name="cpu_vendor", code="CPU_VENDOR", label="processor maker", kind="same"),
    Feature(name="cpu_model", code="CPU_MODEL", label="processor", kind="shared"),
    Feature(name="coremark", code="CPU_SPEED", label="CoreMark", unit="iterations/s"),
    Feature.flag("infiniband", code="NO_INFINIBAND", essential=True),
    Feature.flag("nvlink", code="NO_NVLINK", essential=True, of_gpu=True),
    Feature.flag("local_disk", code="LOCAL_DISK", essential=True),
    Feature.flag("premium_storage", essential=True),
    Feature.flag("accelerated_networking", essential=True),
    Feature.flag("ephemeral_os_disk", essential=True),
    Feature(name="generation", code="GENERATION", label="VM generation", kind="shared", essential=True),
    Feature(name="local_disk_gib", code="LOCAL_DISK", label="local disk space", unit="GiB"),
    Feature(name="max_data_disks", code="DATA_DISKS", label="data disks", unit="count"),
    Feature.flag("local_nvme", code="LOCAL_DISK"),
    Feature(name="disk_controller", code="DISK_CONTROLLER", label="disk controller", kind="shared"),
    Feature(name="uncached_disk_iops", code="DISK_IOPS", label="uncached disk operations", unit="IOPS"),
    Feature(name="uncached_disk_mbps", code="DISK_THROUGHPUT", label="uncached disk throughput", unit="MBps"),
    Feature(name="max_nics", code="NICS", label="network interfaces", unit="count"),
    Feature(name="network_mbps", code="NETWORK", label="network", unit="Mbps"),
    Feature(name="infiniband_gbps", code="INFINIBAND", label="InfiniBand rate", unit="Gbps"),
    *(
        Feature.flag(name)
        for name in (
            *("generation_1", "generation_2", "premium_storage_caching", "ultra_disk", "nested_virtualization"),
            *("hibernation", "live_migration", "memory_preserving_updates", "encryption_at_host", "trusted_launch"),
        )
    ),
    Feature.flag("gpudirect_rdma", of_gpu=True),
)
"""Every feature that is compared, the most selective first."""

FEATURE_NAMES = tuple(feature.name for feature in FEATURES)
ESSENTIAL_FEATURES = tuple(feature.name for feature in FEATURES if feature.essential)
"""What a successor keeps unless a request says otherwise."""
