"""Machines as placement evaluates them, from rows of the catalog."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from app.catalog.queries.candidates import PEAK_DTYPES
from app.fit.formulas.quantities import GIB
from app.fit.placement.machine import Machine
from app.services.ranked import to_fraction

_TFLOPS = tuple(f"{kind}_tflops" for kind in PEAK_DTYPES)
MIN_USABLE_SHARE = 0.91
"""Share of the marketed GPU memory counted where no source gives the usable part: the least of any GPU in the catalog
(a T4 with ECC, 14.56 of 16 GiB), so that a size reported to fit does."""


def to_machine(row: Mapping[str, Any]) -> Machine:
    """Map a row to what a size offers a language model; a fraction of a GPU has that fraction of its figures."""
    gpus = to_fraction(row["gpu_count_numerator"], row["gpu_count_denominator"])
    of_series = (
        to_fraction(row["series_gpu_count_numerator"], row["series_gpu_count_denominator"]) if gpus is None else None
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
