"""The sizes of the catalog as placement sees them, by one query."""

from collections.abc import Iterable, Mapping
from datetime import date
from fractions import Fraction
from functools import lru_cache
from typing import Any

from app.catalog.projections import PURCHASES
from app.catalog.queries.candidates import PEAKS, ask_machines, rows_of
from app.catalog.queries.params import SizeScope
from app.db.statements import Question
from app.fit.formulas.quantities import GIB
from app.fit.placement.machine import Machine
from app.fit.vm import Vm

Sizes = list[tuple[Vm, Machine]]
LEAST_USABLE = 0.91
"""Share of the marketed memory that is counted where no source says what the system sees: the least that any GPU of the
catalog shows (a T4 with ECC, 14.56 of 16 GiB), so that what is said to fit does."""


def find_machines(scope: SizeScope, today: date, priced_on: date | None) -> Question[Sizes]:
    """Find the sizes that a question is about, by one query, with the prices of today or of another day."""
    asked = ask_machines(scope, today=today, priced_on=priced_on)
    rows = yield asked
    return to_sizes(rows_of(asked, rows))


def to_sizes(rows: Iterable[Mapping[str, Any]]) -> Sizes:
    """Take from rows what placement sees of sizes."""
    return [(to_vm(row), to_machine(row)) for row in rows]


def to_vm(row: Mapping[str, Any]) -> Vm:
    """Take from a row what a size is called, its standing and its prices."""
    return Vm(
        name=row["name"],
        status=row["status"],
        verified=row["verified"],
        gpu_memory_gib=row["gpu_memory_gib"],
        region=row["region"],
        in_every_region=bool(row["in_every_region"]),
        usd_per_hour={name: row[f"{name}_usd_per_hour"] for name in PURCHASES},
        as_of={name: row[f"{name}_as_of"] for name in PURCHASES},
        approximate_date={name: row[f"{name}_approximate_date"] for name in PURCHASES},
    )


def to_machine(row: Mapping[str, Any]) -> Machine:
    """Take from a row what a size offers a language model; a fraction of a GPU has that part of everything."""
    gpus = _fraction(row["gpu_count_numerator"], row["gpu_count_denominator"])
    of_series = (
        _fraction(row["series_gpu_count_numerator"], row["series_gpu_count_denominator"]) if gpus is None else None
    )
    gpus = of_series if gpus is None else gpus
    part = float(gpus) if gpus is not None and gpus < 1 else 1.0
    return Machine(
        gpus=gpus,
        usable_bytes=_times(_usable_gib(row), GIB * part),
        usable_assumed=row["usable_memory_gib"] is None,
        bandwidth=_times(row["memory_bandwidth_gb_per_s"], 1e9 * part),
        peaks=_peaks(part, *(row[name] for name in _TFLOPS)),
        capability=row["compute_capability"],
        domain_gpus=row["domain_gpus"],
        domain_vms=row["rack_vms"] or 1,
        infiniband=row["infiniband"],
        memory_bytes=_times(row["memory_gib"], GIB),
        disk_bytes=_times(row["local_disk_gib"], GIB),
        vcpus=row["vcpus"],
        of_series=of_series is not None or not row["described"],
    )


_TFLOPS = tuple(f"{kind}_tflops" for kind in PEAKS)


def _usable_gib(row: Mapping[str, Any]) -> float | None:
    measured: float | None = row["usable_memory_gib"]
    return measured if measured is not None else _times(row["marketed_memory_gib"], LEAST_USABLE)


@lru_cache(maxsize=256)
def _fraction(numerator: int | None, denominator: int | None) -> Fraction | None:
    return Fraction(numerator, denominator) if numerator is not None and denominator is not None else None


@lru_cache(maxsize=256)
def _peaks(part: float, *tflops: float | None) -> Mapping[str, float]:
    """Peaks of a GPU by type, FLOP a second: many sizes have the same GPU."""
    return {kind: one * 1e12 * part for kind, one in zip(PEAKS, tflops, strict=True) if one is not None}


def _times(value: float | None, factor: float) -> float | None:
    return value * factor if value is not None else None
