"""Map a machine that the client describes to the VM and Machine that placement evaluates."""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import inf
from typing import Any

from app.catalog.purchases import PURCHASE_MODELS
from app.catalog.queries.candidates import PEAK_DTYPES
from app.fit.formulas.assumptions import Assumptions
from app.fit.formulas.quantities import GIB
from app.fit.placement.machine import MIN_CAPABILITY, Machine
from app.fit.vm import Vm

USABLE_SHARE = 0.985
"""Share of the marketed GPU memory assumed usable where it is not given: A100 80GB 0.99, H100 80GB 0.99."""

MAX_GPUS_PER_SERVER = 8
"""A scale-up domain with more GPUs than this spans the servers of a rack."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardware:
    """One VM or server: its GPU by model name, by figures, or both; given figures override those of the model."""

    gpu: str | None = None
    gpus: int | None = None
    memory_gib: float | None = None
    usable_gib: float | None = None
    bandwidth_gb_per_s: float | None = None
    peak_tflops: float | None = None
    compute_capability: str | None = None
    scale_up_domain_gpus: int | None = None
    infiniband: bool | None = None
    host_memory_gib: float | None = None
    local_disk_gib: float | None = None
    vcpus: int | None = None
    usd_per_hour: Decimal | None = None

    @property
    def memory_known(self) -> bool:
        """Whether the memory of its GPUs is given or can be looked up."""
        return any(value is not None for value in (self.gpu, self.memory_gib, self.usable_gib))


def to_vm_and_machine(
    hardware: Hardware, gpu: Mapping[str, Any], gpus: int, assumptions: Assumptions
) -> tuple[Vm, Machine]:
    """Map described hardware to a VM and a Machine; `gpu` is the row of its GPU model, empty where that is unknown."""
    vm = Vm(
        name="hardware",
        status="current",
        verified=True,
        usd_per_hour={**dict.fromkeys(PURCHASE_MODELS), "on_demand": hardware.usd_per_hour},
    )
    domain = _domain_gpus(hardware, gpu, gpus, assumptions)
    bandwidth = _first_known(hardware.bandwidth_gb_per_s, gpu.get("memory_bandwidth_gb_per_s"))
    machine = Machine(
        gpus=Fraction(gpus),
        usable_bytes=_usable_gib(hardware, gpu, assumptions) * GIB,
        bandwidth=bandwidth * 1e9 if bandwidth is not None else None,
        peaks=_peaks(hardware, gpu),
        capability=hardware.compute_capability or gpu.get("compute_capability"),
        domain_gpus=domain,
        domain_vms=domain // gpus if domain > MAX_GPUS_PER_SERVER else 1,
        link_gb_per_s=gpu.get("interconnect_gb_per_s"),
        infiniband=True if hardware.infiniband is None else hardware.infiniband,
        memory_bytes=hardware.host_memory_gib * GIB if hardware.host_memory_gib is not None else None,
        disk_bytes=hardware.local_disk_gib * GIB if hardware.local_disk_gib is not None else None,
        vcpus=hardware.vcpus,
        described=True,
    )
    return vm, machine


def _first_known(explicit: float | None, looked_up: float | None) -> float | None:
    return explicit if explicit is not None else looked_up


def _usable_gib(hardware: Hardware, gpu: Mapping[str, Any], assumptions: Assumptions) -> float:
    """Return the memory of one GPU in GiB; infinite where only the partition is checked."""
    if not hardware.memory_known:
        assumptions.record("hardware.usable_gib", None, "no memory is given: only the partition is checked")
        return inf
    usable = _first_known(hardware.usable_gib, gpu.get("usable_memory_gib"))
    if usable is not None:
        return usable
    marketed = _first_known(hardware.memory_gib, gpu.get("memory_gib")) or 0.0
    return assumptions.record("hardware.usable_gib", marketed * USABLE_SHARE, "98.5 % of the marketed memory")


def _peaks(hardware: Hardware, gpu: Mapping[str, Any]) -> dict[str, float]:
    if hardware.peak_tflops is not None:
        return dict.fromkeys(MIN_CAPABILITY, hardware.peak_tflops * 1e12)
    return {kind: gpu[f"{kind}_tflops"] * 1e12 for kind in PEAK_DTYPES if gpu.get(f"{kind}_tflops") is not None}


def _domain_gpus(hardware: Hardware, gpu: Mapping[str, Any], gpus: int, assumptions: Assumptions) -> int:
    """Return how many GPUs share NVLink: as given, else by the GPU model, else all of the machine."""
    known = hardware.scale_up_domain_gpus or gpu.get("scale_up_domain_gpus")
    if known is not None:
        return int(known)
    return assumptions.record("hardware.scale_up_domain_gpus", gpus, "its GPUs are joined by NVLink")
