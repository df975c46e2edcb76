"""What one VM offers a language model."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """One VM, in bytes, bytes a second and FLOP a second (dense, by type); None is unknown.

    Memory, bandwidth and peaks are of one GPU, of a fraction of a GPU its part. `domain_gpus` GPUs share one NVLink
    or xGMI domain, which is a whole rack of `domain_vms` VMs where that is more than 1. What is unknown of a VM that a
    client described is not held against it. `of_series`: no source describes its GPUs, they are those of its series.
    `usable_assumed`: no source says how much of a GPU's memory the system sees.
    """

    gpus: Fraction | None
    usable_bytes: float | None = None
    bandwidth: float | None = None
    peaks: Mapping[str, float] = field(default_factory=dict)
    capability: str | None = None
    domain_gpus: int = 1
    domain_vms: int = 1
    infiniband: bool | None = None
    memory_bytes: float | None = None
    disk_bytes: float | None = None
    vcpus: int | None = None
    described: bool = False
    of_series: bool = False
    usable_assumed: bool = False

    fractional: bool = field(init=False)
    """Whether it has but a part of a GPU: one partition that works alone."""
    ranks: int = field(init=False)
    """How many GPUs a model can be cut over in one VM; a part of a GPU counts as one."""

    def __post_init__(self) -> None:
        """Count once what every check asks."""
        object.__setattr__(self, "fractional", self.gpus is not None and 0 < self.gpus < 1)
        object.__setattr__(self, "ranks", max(1, int(self.gpus)) if self.gpus else 0)

    def reach(self, nodes: int, *, in_nvlink: bool) -> int:
        """Say over how many GPUs one layer can be cut: those of the VM, or of the VMs of one rack.

        GPUs of a VM that share no NVLink are joined by PCIe, which `in_nvlink` forbids.
        """
        if self.domain_vms > 1:
            return min(self.domain_gpus, self.ranks * min(nodes, self.domain_vms))
        return min(self.ranks, self.domain_gpus) if in_nvlink else self.ranks
