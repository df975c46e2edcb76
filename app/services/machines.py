"""Maps rows of the catalog, and machines that a client describes, to what placement evaluates."""

from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from math import inf
from typing import Any

from app.catalog.purchases import PURCHASE_MODELS
from app.catalog.queries.candidates import PEAK_DTYPES
from app.fit.formulas.quantities import GIB, Assumptions
from app.fit.placement.machine import MIN_CAPABILITY, Machine
from app.fit.verdict import Vm
from app.schemas.fit_request import HardwareIn
from app.services.ranked import to_gpus

_TFLOPS = tuple(f"{kind}_tflops" for kind in PEAK_DTYPES)
MIN_USABLE_SHARE = 0.91
"""Share of the marketed GPU memory counted where no source gives the usable part: the least of any GPU in the catalog
(a T4 with ECC, 14.56 of 16 GiB), so that a size reported to fit does."""


def to_machine(row: Mapping[str, Any]) -> Machine:
    """Map a row to what a size offers a language model; a fraction of a GPU has that fraction of its figures."""
    gpus = to_gpus(row["gpu_count_numerator"], row["gpu_count_denominator"])
    of_series = (
        to_gpus(row["series_gpu_count_numerator"], row["series_gpu_count_denominator"]) if gpus is None else None
    )
    gpus = of_series if gpus is None else gpus
    part = float(gpus) if gpus is not None and gpus < 1 else 1.0
    return Machine(
        gpus=gpus,
        usable_bytes=_scaled(_usable_gib(row), GIB * part),
        usable_assumed=row["usable_memory_gib"] is None,
        bandwidth=_scaled(row["memory_bandwidth_gb_per_s"], 1e9 * part),
        peaks=_peaks(part, *(row[name] for name in _TFLOPS)),
        capability=row["compute_capability"],
        domain_gpus=row["domain_gpus"],
        domain_vms=row["rack_vms"] or 1,
        link_gb_per_s=row["interconnect_gb_per_s"],
        infiniband=row["infiniband"],
        memory_bytes=_scaled(row["memory_gib"], GIB),
        disk_bytes=_scaled(row["local_disk_gib"], GIB),
        vcpus=row["vcpus"],
        of_series=of_series is not None or not row["described"],
    )


def _usable_gib(row: Mapping[str, Any]) -> float | None:
    measured: float | None = row["usable_memory_gib"]
    return measured if measured is not None else _scaled(row["marketed_memory_gib"], MIN_USABLE_SHARE)


@lru_cache(maxsize=256)
def _peaks(part: float, *tflops: float | None) -> Mapping[str, float]:
    """Return the peaks of a GPU by type, FLOP/s. Cached, because many sizes have the same GPU."""
    return {kind: one * 1e12 * part for kind, one in zip(PEAK_DTYPES, tflops, strict=True) if one is not None}


def _scaled(value: float | None, factor: float) -> float | None:
    return value * factor if value is not None else None


USABLE_SHARE = 0.985
"""Share of the marketed GPU memory assumed usable where it is not given: A100 80GB 0.99, H100 80GB 0.99."""

MAX_GPUS_PER_SERVER = 8
"""A scale-up domain with more GPUs than this spans the servers of a rack."""


def to_vm_and_machine(
    hardware: HardwareIn, gpu: Mapping[str, Any], gpus: int, assumptions: Assumptions
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
        usable_bytes=_described_gib(hardware, gpu, assumptions) * GIB,
        bandwidth=bandwidth * 1e9 if bandwidth is not None else None,
        peaks=_described_peaks(hardware, gpu),
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


def _described_gib(hardware: HardwareIn, gpu: Mapping[str, Any], assumptions: Assumptions) -> float:
    """Return the memory of one GPU in GiB; infinite where only the partition is checked."""
    if not hardware.memory_known:
        assumptions.record("hardware.usable_gib", None, "no memory is given: only the partition is checked")
        return inf
    usable = _first_known(hardware.usable_gib, gpu.get("usable_memory_gib"))
    if usable is not None:
        return usable
    marketed = _first_known(hardware.memory_gib, gpu.get("memory_gib")) or 0.0
    return assumptions.record("hardware.usable_gib", marketed * USABLE_SHARE, "98.5 % of the marketed memory")


def _described_peaks(hardware: HardwareIn, gpu: Mapping[str, Any]) -> dict[str, float]:
    if hardware.peak_tflops is not None:
        return dict.fromkeys(MIN_CAPABILITY, hardware.peak_tflops * 1e12)
    return {kind: gpu[f"{kind}_tflops"] * 1e12 for kind in PEAK_DTYPES if gpu.get(f"{kind}_tflops") is not None}


def _domain_gpus(hardware: HardwareIn, gpu: Mapping[str, Any], gpus: int, assumptions: Assumptions) -> int:
    """Return how many GPUs share NVLink: as given, else by the GPU model, else all of the machine."""
    known = hardware.scale_up_domain_gpus or gpu.get("scale_up_domain_gpus")
    if known is not None:
        return int(known)
    return assumptions.record("hardware.scale_up_domain_gpus", gpus, "its GPUs are joined by NVLink")
