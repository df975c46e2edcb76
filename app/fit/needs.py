"""What a VM offers, what is needed of it, and the table of constraints that compares the two."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from fractions import Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Vm:
    """One VM size as fit sees it. Memory and disk are GiB, network Gbps, prices USD an hour; None is unknown.

    `gpu_memory_gib` is of the whole VM; `gpu_memory_gib_on_one_gpu` of one GPU, for a fraction of a GPU of its slice.
    """

    name: str
    status: str
    verified: bool
    gpus: Fraction | None = None
    gpu_memory_gib: float | None = None
    gpu_memory_gib_on_one_gpu: float | None = None
    vcpus: int | None = None
    memory_gib: float | None = None
    local_disk_gib: float | None = None
    network_gbps: float | None = None
    infiniband_gbps: float | None = None
    traits: Mapping[str, bool | str | None] = field(default_factory=dict)
    region: str | None = None
    in_every_region: bool = True
    usd_per_hour: Mapping[str, Decimal | None] = field(default_factory=dict)
    as_of: Mapping[str, date | None] = field(default_factory=dict)

    @property
    def fractional(self) -> bool:
        """Whether it has but a part of a GPU, which cannot be pooled with another part."""
        return self.gpus is not None and self.gpus < 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """A constraint on an amount: `pooled` amounts add up over nodes, the others each node must have by itself."""

    name: str
    code: str
    label: str
    unit: str
    pooled: bool
    on_gpus: bool
    of: Callable[[Vm], float | Fraction | None]


def _quantity(
    name: str,
    code: str,
    label: str,
    unit: str,
    of: Callable[[Vm], float | Fraction | None],
    *,
    pooled: bool = True,
    on_gpus: bool = False,
) -> Quantity:
    return Quantity(name=name, code=code, label=label, unit=unit, of=of, pooled=pooled, on_gpus=on_gpus)


QUANTITIES: tuple[Quantity, ...] = (
    _quantity("min_gpu_mem", "GPU_MEMORY_TOTAL", "GPU memory", "GiB", lambda vm: vm.gpu_memory_gib, on_gpus=True),
    _quantity("min_gpus", "GPU_COUNT", "GPUs", "count", lambda vm: vm.gpus, on_gpus=True),
    _quantity("min_vcpus", "VCPU", "vCPUs", "count", lambda vm: vm.vcpus),
    _quantity("min_memory", "RAM", "memory", "GiB", lambda vm: vm.memory_gib),
    _quantity("min_local_disk", "LOCAL_DISK", "local disk", "GiB", lambda vm: vm.local_disk_gib),
    _quantity(
        "min_gpu_mem_per_gpu",
        "GPU_MEMORY_PER_GPU",
        "GPU memory on one GPU",
        "GiB",
        lambda vm: vm.gpu_memory_gib_on_one_gpu,
        pooled=False,
    ),
    _quantity("min_network_gbps", "NETWORK", "network", "Gbps", lambda vm: vm.network_gbps, pooled=False),
    _quantity("min_infiniband_gbps", "INFINIBAND", "InfiniBand", "Gbps", lambda vm: vm.infiniband_gbps, pooled=False),
)
"""Every amount that can be asked for; what is on GPUs does not pool where a VM has only part of a GPU."""

TRAIT_CODES: dict[str, str] = {"infiniband": "NO_INFINIBAND", "nvlink": "NO_NVLINK", "arch": "ARCH"}
"""The code of a trait that is not as asked; any other trait is a feature flag."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """What is asked of one job's VMs: amounts by constraint name, traits by name, and the bounds of the answer."""

    amounts: Mapping[str, float]
    traits: Mapping[str, bool | str]
    statuses: frozenset[str]
    regions: tuple[str, ...] = ()
    max_nodes: int = 1
    purchase: str = "on_demand"
    hours: Decimal | None = None
    hours_per_month: Decimal = Decimal(730)
    budget_usd_per_month: Decimal | None = None
    today: date
