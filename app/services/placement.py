"""The whole question of a placement, from the names in it to the ranked options: one query, then arithmetic."""

from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date
from fractions import Fraction
from functools import lru_cache
from typing import Any

from app.catalog.projections import PURCHASE_MODELS
from app.catalog.queries.candidates import PEAK_DTYPES, machines_query, to_dicts
from app.catalog.queries.language_models import get_model_row
from app.catalog.queries.lookups import get_gpu
from app.catalog.queries.params import SizeSelection
from app.catalog.queries.sizes import normalize
from app.catalog.queries.snapshot import CatalogSnapshot
from app.db.statements import BoundStatement, QueryPlan, Rows
from app.errors import BadQuery, BadWorkload, NotFound
from app.fit.estimator.workload import TrainingWorkload
from app.fit.formulas.assumptions import Assumptions, InvalidWorkload
from app.fit.formulas.quantities import GIB
from app.fit.placement.evaluate import rank
from app.fit.placement.fixes import FixFinder
from app.fit.placement.machine import Machine
from app.fit.placement.option import PlacementOption
from app.fit.placement.prepare import PreparedRequest, prepare
from app.fit.placement.request import Constraints, PlacementRequest, Pricing, Workload
from app.fit.verdict import Ranking
from app.fit.vm import Vm
from app.services.hardware import Hardware, to_vm_and_machine
from app.services.model_spec import ModelSpec, resolve_architecture

Sizes = list[tuple[Vm, Machine]]
MIN_USABLE_SHARE = 0.91
"""Share of the marketed memory that is counted where no source says what the system sees: the least that any GPU of the
catalog shows (a T4 with ECC, 14.56 of 16 GiB), so that what is said to fit does."""


def find_machines(scope: SizeSelection, today: date, priced_on: date | None) -> QueryPlan[Sizes]:
    """Find the sizes that a question is about, by one query, with the prices of today or of another day."""
    asked = machines_query(scope, today=today, priced_on=priced_on)
    rows = yield asked
    return to_sizes(to_dicts(asked, rows))


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
        usd_per_hour={name: row[f"{name}_usd_per_hour"] for name in PURCHASE_MODELS},
        as_of={name: row[f"{name}_as_of"] for name in PURCHASE_MODELS},
        approximate_date={name: row[f"{name}_approximate_date"] for name in PURCHASE_MODELS},
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
        usable_bytes=_scaled(_usable_gib(row), GIB * part),
        usable_assumed=row["usable_memory_gib"] is None,
        bandwidth=_scaled(row["memory_bandwidth_gb_per_s"], 1e9 * part),
        peaks=_peaks(part, *(row[name] for name in _TFLOPS)),
        capability=row["compute_capability"],
        domain_gpus=row["domain_gpus"],
        domain_vms=row["rack_vms"] or 1,
        infiniband=row["infiniband"],
        memory_bytes=_scaled(row["memory_gib"], GIB),
        disk_bytes=_scaled(row["local_disk_gib"], GIB),
        vcpus=row["vcpus"],
        of_series=of_series is not None or not row["described"],
    )


_TFLOPS = tuple(f"{kind}_tflops" for kind in PEAK_DTYPES)


def _usable_gib(row: Mapping[str, Any]) -> float | None:
    measured: float | None = row["usable_memory_gib"]
    return measured if measured is not None else _scaled(row["marketed_memory_gib"], MIN_USABLE_SHARE)


@lru_cache(maxsize=256)
def _fraction(numerator: int | None, denominator: int | None) -> Fraction | None:
    return Fraction(numerator, denominator) if numerator is not None and denominator is not None else None


@lru_cache(maxsize=256)
def _peaks(part: float, *tflops: float | None) -> Mapping[str, float]:
    """Peaks of a GPU by type, FLOP a second: many sizes have the same GPU."""
    return {kind: one * 1e12 * part for kind, one in zip(PEAK_DTYPES, tflops, strict=True) if one is not None}


def _scaled(value: float | None, factor: float) -> float | None:
    return value * factor if value is not None else None


BODY_FIELDS = {"region": "constraints.regions"} | {
    name: f"constraints.{name}" for name in ("available_in", "series", "gpu", "gpu_vendor")
}
"""Where a request says what a question of the catalog is asked by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementSearch(ModelSpec):
    """A model and its use, the sizes that are asked about or one machine, and what an option must be."""

    workload: Workload
    scope: SizeSelection
    hardware: Hardware | None = None
    constraints: Constraints
    pricing: Pricing
    priced_on: date | None = None
    sort: str = "cost_per_hour"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementResult:
    """An answer: the question made ready, the ranking, and what to change for a rejected size to fit."""

    prepared: PreparedRequest
    ranking: Ranking[PlacementOption]
    machines: Mapping[str, tuple[Vm, Machine]]
    fixer: FixFinder


def plan_placement(search: PlacementSearch, known: CatalogSnapshot, today: date) -> QueryPlan[PlacementResult]:
    """Judge every size that is asked about; raises BadWorkload naming the field that is wrong or missing."""
    ledger = Assumptions()
    try:
        question = _to_request(search, known, ledger)
        prepared = prepare(question, ledger)
        _check_job_length(search)
        sizes = yield from _find_sizes(search, known, today, ledger)
    except InvalidWorkload as refused:
        raise BadWorkload(refused.field, refused.detail) from None
    prepared = replace(prepared, assumptions=ledger.recorded)
    return PlacementResult(
        prepared=prepared,
        ranking=rank(sizes, prepared, search.sort),
        machines={vm.name: (vm, machine) for vm, machine in sizes},
        fixer=FixFinder(prepared),
    )


def _to_request(search: PlacementSearch, known: CatalogSnapshot, ledger: Assumptions) -> PlacementRequest:
    def find(name: str) -> Mapping[str, Any]:
        return get_model_row(known.models, name)

    return PlacementRequest(
        architecture=resolve_architecture(search, find, ledger),
        workload=search.workload,
        constraints=search.constraints,
        pricing=search.pricing,
        memory_unknown=search.hardware is not None and not search.hardware.memory_known,
    )


def _check_job_length(search: PlacementSearch) -> None:
    """Refuse an order or a budget by what cannot be known: the length of a job that nobody gives."""
    training = isinstance(search.workload, TrainingWorkload)
    timed = (
        isinstance(search.workload, TrainingWorkload)
        and (search.workload.tokens or search.workload.gpu_hours) is not None
    )
    if timed and search.pricing.hours is not None:
        raise InvalidWorkload("pricing.hours", "and training.tokens both say how long the job runs: give one")
    if not timed and search.pricing.hours is None:
        needed = "training.tokens" if training else "pricing.hours"
        if search.sort == "cost_per_job":
            raise InvalidWorkload("sort", f"cost_per_job needs {needed}")
        if search.constraints.budget_usd_per_job is not None:
            raise InvalidWorkload("constraints.budget_usd_per_job", f"needs {needed}: nobody says how long the job is")
    if search.sort == "time" and training and not timed:
        raise InvalidWorkload("sort", "time needs training.tokens")


def _find_sizes(
    search: PlacementSearch, known: CatalogSnapshot, today: date, ledger: Assumptions
) -> Generator[BoundStatement, Rows, Sizes]:
    if search.hardware is not None:
        return [(yield from _described_machine(search, search.hardware, ledger))]
    try:
        scope = normalize(search.scope, known)
    except BadQuery as wrong:
        raise BadWorkload(BODY_FIELDS.get(wrong.field, wrong.field), wrong.allowed) from None
    return (yield from find_machines(scope, today, search.priced_on))


def _described_machine(
    search: PlacementSearch, hardware: Hardware, ledger: Assumptions
) -> Generator[BoundStatement, Rows, tuple[Vm, Machine]]:
    """The one machine; a GPU that the catalog does not know may have any name where its memory is given."""
    gpu: Mapping[str, Any] = {}
    if hardware.gpu is not None:
        try:
            gpu = yield from get_gpu(hardware.gpu)
        except NotFound as unknown:
            if hardware.memory_gib is None and hardware.usable_gib is None:
                raise BadWorkload("hardware.gpu", f"{unknown} Or give memory_gib.") from None
            ledger.record("hardware.gpu", hardware.gpu, "the catalog does not know it: any type of numbers, no speed")
    gpus = hardware.gpus
    if gpus is None:
        cut = (search.workload.tensor_parallel or 1) * (search.workload.pipeline_parallel or 1)
        gpus = ledger.record("hardware.gpus", cut, "as many as the split needs" if cut > 1 else "one GPU")
    if hardware.infiniband is None and search.constraints.max_nodes > 1:
        ledger.record("hardware.infiniband", True, "machines that work together are joined by InfiniBand")
    return to_vm_and_machine(hardware, gpu, gpus, ledger)
