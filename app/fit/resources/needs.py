"""What is needed of a VM, and the table of constraints that compares it with what there is."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from app.fit.vm import Terms, Vm


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

    @property
    def resource(self) -> str:
        """What the amount is of: `gpu_memory` for `min_gpu_mem`, as every answer says it."""
        return self.name.removeprefix("min_").replace("gpu_mem", "gpu_memory")


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
class Needs(Terms):
    """What is asked of one job's VMs besides the terms: amounts by constraint name, traits by name."""

    amounts: Mapping[str, float]
    traits: Mapping[str, bool | str]
