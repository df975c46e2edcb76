"""One VM as a language model sees it, which data types its GPUs compute in, and what is found for it."""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, fields
from fractions import Fraction
from functools import lru_cache
from itertools import count
from math import inf
from operator import attrgetter
from typing import Any, TypeVar

from app.fit.formulas.compute import Network
from app.fit.verdict import is_part_of_gpu


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """One VM, in bytes, bytes a second and FLOP a second (dense, by type); None is unknown.

    `gpu_id` is that of whole GPUs in the catalog; None where the bandwidth is the client's.
    Memory, bandwidth and peaks are of one GPU, of a fraction of a GPU its part. `domain_gpus` GPUs share one NVLink
    or xGMI domain, which is a whole rack of `domain_vms` VMs where that is more than 1; `link_gb_per_s` is the speed of
    the domain's links, GB/s in both directions. `infiniband` is true of other fabrics for several VMs, too: EFA, RoCE.
    `network_gbps` is what each GPU has of that, or of the VM's network where there is none.
    `described` by the client: what is unknown fails no check. `of_series`: no source describes its GPUs, so they are
    those of its series. `usable_assumed`: no source gives the usable part of a GPU's memory.
    """

    gpus: Fraction | None
    gpu_id: str | None = None
    usable_bytes: float | None = None
    bandwidth: float | None = None
    peaks: Mapping[str, float] = field(default_factory=dict)
    capability: str | None = None
    domain_gpus: int = 1
    domain_vms: int = 1
    link_gb_per_s: float | None = None
    infiniband: bool | None = None
    network_gbps: float | None = None
    memory_bytes: float | None = None
    disk_bytes: float | None = None
    vcpus: int | None = None
    described: bool = False
    of_series: bool = False
    usable_assumed: bool = False

    fractional: bool = field(init=False)
    """Whether it has only a fraction of a GPU, a partition that works alone."""
    ranks: int = field(init=False)
    """How many GPUs of one VM a model can be partitioned over; a fraction of a GPU counts as one."""
    gpu_class: int = field(init=False, compare=False, repr=False)
    """The same number for machines that differ in memory, disk and vCPUs at most, and in how their GPUs are known."""
    gpu_class_alone: int = field(init=False, compare=False, repr=False)
    """The same number for machines that differ in their network, too, wherever GPUs of one VM need none."""

    def __post_init__(self) -> None:
        """Compute once what every check reads."""
        object.__setattr__(self, "fractional", is_part_of_gpu(self.gpus))
        object.__setattr__(self, "ranks", max(1, int(self.gpus)) if self.gpus else 0)
        gpus = (*_of_gpus(self), *self.peaks.items())
        object.__setattr__(self, "gpu_class", _number_of((*gpus, self.infiniband, self.network_gbps)))
        alone = self.joined_gpus >= self.ranks
        object.__setattr__(self, "gpu_class_alone", _number_of(gpus) if alone else self.gpu_class)

    def holds(self, needed_bytes: float, compared: list[float] | None = None) -> bool:
        """Whether a VM has the memory for something; assumed where its memory is unknown.

        The amount is added to those that its memory is `compared` with: between two of them all is the same.
        """
        if compared is not None:
            compared.append(needed_bytes)
        return self.memory_bytes is None or needed_bytes <= self.memory_bytes

    @property
    def joined_gpus(self) -> int:
        """GPUs that need no network between VMs: those of the VM, or of the rack that shares one domain."""
        return self.domain_gpus if self.domain_vms > 1 else self.ranks

    @property
    def network(self) -> Network:
        """What joins VMs: InfiniBand, where it or another fabric is known, else Ethernet."""
        return "infiniband" if self.infiniband is True else "ethernet"

    def max_tensor_ranks(self, nodes: int, *, tp_in_nvlink: bool) -> int:
        """Return over how many GPUs one layer can be split: those of the VM, or of the VMs of one rack.

        GPUs of a VM outside one NVLink domain communicate over PCIe, which `tp_in_nvlink` forbids.
        """
        if self.domain_vms > 1:
            return min(self.domain_gpus, self.ranks * min(nodes, self.domain_vms))
        return min(self.ranks, self.domain_gpus) if tp_in_nvlink else self.ranks


COMPUTE_DTYPES = {"fp32": "fp32", "tf32": "tf32", "bf16": "bf16", "fp8": "fp8", "fp4": "fp4", "nvfp4": "fp4"}
"""The type in which matrix products of weights are computed; other weight types are dequantized to fp16."""

KERNEL_CAPABILITY = {"awq_int4": 7.5, "mxfp4": 8.0}
"""Minimum CUDA compute capability of the kernels that dequantize weights of a type to fp16.

Other types have kernels wherever fp16 is computed, and AMD's chips have these by Triton.
Source: vLLM, `get_min_capability` of each quantization, and its issues 4202 and 23203.
"""

MIN_CAPABILITY = {
    "fp32": 0.0, "fp16": 5.3, "tf32": 8.0, "bf16": 8.0, "fp8": 8.9, "mxfp8": 10.0, "fp4": 10.0, **KERNEL_CAPABILITY,
}  # fmt: skip
"""Minimum CUDA compute capability of a type: NVIDIA, CUDA C++ Programming Guide, on compute capabilities."""

MIN_CAPABILITY_WEIGHT_ONLY = {"fp8": 8.0, "fp4": 8.0}
"""Minimum CUDA compute capability on which weights of a type are dequantized and computed in 16 bits.

Lower than that of the type itself: vLLM's Marlin kernels (csrc/quantization/marlin). There are no such kernels for a KV
cache, for AMD, or for V100 and T4.
"""

AMD_DTYPES: Mapping[str, frozenset[str]] = {
    "gfx90a": frozenset({"fp32", "fp16", "bf16"}),
    "gfx942": frozenset({"fp32", "tf32", "fp16", "bf16", "fp8"}),
    "gfx950": frozenset({"fp32", "fp16", "bf16", "fp8", "mxfp8", "fp4"}),
}
"""The types that AMD's accelerators compute in: ROCm's documentation on precision. Other AMD chips are for graphics."""

MIN_SUPPORTED_CAPABILITY = 6.0
"""Libraries for language models no longer support NVIDIA chips below this capability (Kepler, Maxwell)."""

_PEAK_FALLBACK = {"tf32": "fp32", "bf16": "fp16", "fp16": "bf16", "mxfp8": "fp8"}
"""The type whose peak is used where that of a type is unknown."""


def compute_dtype(dtype: str | None) -> str:
    """Return the type in which matrix products of weights of a type are computed."""
    return COMPUTE_DTYPES.get(dtype or "", "fp16")


def generation(machine: Machine) -> float:
    """Return the compute capability as a number to sort by: higher is newer, 0 is unknown or of another vendor."""
    try:
        return float(machine.capability or 0)
    except ValueError:
        return 0.0


def is_legacy(machine: Machine) -> bool:
    """Whether the chip is for graphics only, or too old for libraries that serve or train language models."""
    chip = machine.capability
    if chip is None:
        return False
    return chip not in AMD_DTYPES if chip.startswith("gfx") else generation(machine) < MIN_SUPPORTED_CAPABILITY


def supports_dtype(machine: Machine, dtype: str) -> bool:
    """Whether the chip computes in a type; assumed where its capability is unknown."""
    chip = machine.capability
    if chip is None:
        return True
    if chip.startswith("gfx"):
        return dtype in AMD_DTYPES.get(chip, {"fp32", "fp16"}) or dtype in KERNEL_CAPABILITY
    return generation(machine) >= MIN_CAPABILITY[dtype]


def is_weight_only(machine: Machine, dtype: str) -> bool:
    """Whether weight-only kernels dequantize weights of this type to 16 bits, as the chip does not compute in it."""
    if supports_dtype(machine, dtype) or machine.capability is None or machine.capability.startswith("gfx"):
        return False
    return generation(machine) >= MIN_CAPABILITY_WEIGHT_ONLY.get(dtype, inf)


def peak_flops(machine: Machine, dtype: str) -> float | None:
    """Return the dense peak of one GPU for a type in FLOP/s; None where it is unknown."""
    peak = machine.peaks.get(dtype)
    return peak if peak is not None else machine.peaks.get(_PEAK_FALLBACK.get(dtype, ""))


T = TypeVar("T")
_NOT_OF_GPUS = {
    *("memory_bytes", "disk_bytes", "vcpus", "of_series", "usable_assumed", "peaks", "infiniband", "network_gbps"),
}
_of_gpus = attrgetter(*(column.name for column in fields(Machine) if column.init and column.name not in _NOT_OF_GPUS))
"""Returns the facts of a machine but its memory, disk, vCPUs and network, how its GPUs are known, and their peaks."""
_numbers = count()


@lru_cache(maxsize=8192)
def _number_of(_facts: tuple[Hashable, ...]) -> int:
    """Return a number that equal facts share, which is compared sooner than they are."""
    return next(_numbers)


class KeptByGpus:
    """Keeps what is found for machines, where it depends on nothing but their GPUs and what their memory holds.

    It is for machines with memory from an amount on and below another, bytes.
    """

    def __init__(self) -> None:
        self._kept: dict[Hashable, list[tuple[float, float, Any]]] = {}

    def find(self, machine: Machine, what: Hashable, search: Callable[[list[float]], T], *, alone: bool = False) -> T:
        """Return what a search finds for a machine, or has found for one that is the same to it.

        `what` names the search, which adds what the memory is compared with to the list that it gets. One for a VM
        `alone` depends on no network.
        """
        entries = self._kept.setdefault((what, machine.gpu_class_alone if alone else machine.gpu_class), [])
        memory = inf if machine.memory_bytes is None else machine.memory_bytes  # unknown: assumed to hold everything
        before: T
        for least, following, before in entries:
            if least <= memory < following or memory == following == inf:
                return before
        compared: list[float] = []
        result = search(compared)
        held = max((size for size in compared if size <= memory), default=0.0)
        more = min((size for size in compared if size > memory), default=inf)
        entries.append((held, more, result))
        return result
