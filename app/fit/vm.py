"""A VM size with the facts that fit compares, and the constraints that apply to every size whatever the job."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from fractions import Fraction

ORDERABLE = frozenset({"preview", "current", "retiring"})
"""Statuses of sizes that can be ordered."""


def is_part_of_gpu(gpus: Fraction | None) -> bool:
    """Return whether a number of GPUs is known, more than none and less than one."""
    return gpus is not None and 0 < gpus < 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Adjustment:
    """How a price differs from the list price: that of one VM, USD an hour, and the names of the rules that apply."""

    list_usd_per_hour: Decimal
    rules: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Vm:
    """One VM size. Memory and disk are GiB, network Gbps, prices USD an hour; None is unknown.

    `gpu_memory_gib` is of the whole VM; `gpu_memory_gib_on_one_gpu` of one GPU, or of the slice of a fractional GPU.
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
    approximate_date: Mapping[str, bool | None] = field(default_factory=dict)
    unusual_price: frozenset[str] = frozenset()
    disputed_price: frozenset[str] = frozenset()
    adjustment: Mapping[str, Adjustment | None] = field(default_factory=dict)

    @property
    def fractional(self) -> bool:
        """Whether the VM has only a part of a GPU, which cannot be pooled with other parts."""
        return is_part_of_gpu(self.gpus)


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeConstraints:
    """Constraints on every size, whatever the job: statuses, regions, number of VMs, price and budget."""

    statuses: frozenset[str] = ORDERABLE
    regions: tuple[str, ...] = ()
    max_nodes: int = 1
    purchase: str = "on_demand"
    hours: Decimal | None = None
    hours_per_month: Decimal = Decimal(730)
    budget_usd_per_month: Decimal | None = None
    verified_only: bool = False
    today: date
