"""Place a language model on catalog sizes or one described machine: one query, then arithmetic ranks the options."""

from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date
from functools import lru_cache
from typing import Any

from app.catalog.queries.candidates import PEAK_DTYPES, machines_query
from app.catalog.queries.exchange_rates import USD, CurrencyRate, find_exchange_rate
from app.catalog.queries.language_models import get_model_row
from app.catalog.queries.lookups import get_gpu
from app.catalog.queries.params import DatedSelection, check_days
from app.catalog.queries.sizes import normalize
from app.catalog.queries.snapshot import CatalogSnapshot
from app.db.statements import BoundStatement, QueryPlan, Rows
from app.errors import BadWorkload, NotFound
from app.fit.estimator.parallelism import requested_gpus
from app.fit.estimator.workload import ServiceLevel, TrainingWorkload
from app.fit.formulas.assumptions import Assumptions, InvalidWorkload
from app.fit.formulas.quantities import GIB
from app.fit.placement.evaluate import rank
from app.fit.placement.fixes import FixFinder
from app.fit.placement.machine import Machine
from app.fit.placement.option import PlacementOption
from app.fit.placement.prepare import MemoryUnknown, PreparedRequest, prepare
from app.fit.placement.request import Constraints, PlacementRequest, Pricing, Workload
from app.fit.verdict import Ranking
from app.fit.vm import Vm
from app.services.hardware import Hardware, to_vm_and_machine
from app.services.model_spec import ModelSpec, resolve_architecture
from app.services.ranked import to_fraction, to_vm

Sizes = list[tuple[Vm, Machine]]

_TFLOPS = tuple(f"{kind}_tflops" for kind in PEAK_DTYPES)
MIN_USABLE_SHARE = 0.91
"""Share of the marketed GPU memory counted where no source gives the usable part: the least of any GPU in the catalog
(a T4 with ECC, 14.56 of 16 GiB), so that a size reported to fit does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementSearch(ModelSpec):
    """A model and its workload, the sizes to search or one described machine, and the constraints on an option."""

    workload: Workload
    serving: ServiceLevel | None = None
    scope: DatedSelection
    hardware: Hardware | None = None
    constraints: Constraints
    pricing: Pricing
    currency: str = USD
    sort: str = "cost_per_hour"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementResult:
    """The prepared request, the ranking, and a finder of fixes for rejected sizes.

    `exchange_rate` is that of an answer that has its costs in another currency, too.
    """

    prepared: PreparedRequest
    ranking: Ranking[PlacementOption]
    machines: Mapping[str, tuple[Vm, Machine]]
    fixer: FixFinder
    exchange_rate: CurrencyRate | None


def plan_placement(search: PlacementSearch, known: CatalogSnapshot, today: date) -> QueryPlan[PlacementResult]:
    """Evaluate and rank the selected sizes; raises BadWorkload naming the field that is wrong or missing.

    Raises BadQuery for a region, series, GPU or currency that the catalog does not have, and for a day to come.
    """
    check_days(search.scope, today)
    on = search.scope.as_of or today
    rate = None if search.currency == USD else (yield from find_exchange_rate(search.currency, on))
    assumptions = Assumptions()
    try:
        request = _to_request(search, known, assumptions)
        prepared = prepare(request, assumptions)
        _check_job_length(search)
        sizes = yield from _find_sizes(search, known, today, assumptions)
    except MemoryUnknown:
        raise BadWorkload("hardware", "needs gpu, usable_gib or memory_gib") from None
    except InvalidWorkload as error:
        raise BadWorkload(error.field, error.detail) from None
    prepared = replace(prepared, assumptions=assumptions.recorded)  # reading the hardware has added to them
    return PlacementResult(
        prepared=prepared,
        ranking=rank(sizes, prepared, search.sort),
        machines={vm.name: (vm, machine) for vm, machine in sizes},
        fixer=FixFinder(prepared),
        exchange_rate=rate,
    )


def _to_request(search: PlacementSearch, known: CatalogSnapshot, assumptions: Assumptions) -> PlacementRequest:
    def find(name: str) -> Mapping[str, Any]:
        return get_model_row(known.models, name)

    return PlacementRequest(
        architecture=resolve_architecture(search, find, assumptions),
        workload=search.workload,
        serving=search.serving,
        constraints=search.constraints,
        pricing=search.pricing,
        memory_unknown=search.hardware is not None and not search.hardware.memory_known,
    )


def _check_job_length(search: PlacementSearch) -> None:
    """Raise for a sort order or a budget that needs the length of the job, where the request gives none."""
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
            raise InvalidWorkload("constraints.budget_usd_per_job", f"needs {needed}: the job has no known length")
    if search.sort == "time" and training and not timed:
        raise InvalidWorkload("sort", "time needs training.tokens")


def _find_sizes(
    search: PlacementSearch, known: CatalogSnapshot, today: date, assumptions: Assumptions
) -> Generator[BoundStatement, Rows, Sizes]:
    if search.hardware is not None:
        return [(yield from _described_machine(search, search.hardware, assumptions))]
    scope = normalize(search.scope, known)
    query = machines_query(scope, search.pricing.purchases, today=today, rules=known.rules)
    return (yield from known.keep_list(query, to_sizes))


def _described_machine(
    search: PlacementSearch, hardware: Hardware, assumptions: Assumptions
) -> Generator[BoundStatement, Rows, tuple[Vm, Machine]]:
    """Map the described machine; a GPU unknown to the catalog is allowed where its memory is given."""
    gpu: Mapping[str, Any] = {}
    if hardware.gpu is not None:
        try:
            gpu = yield from get_gpu(hardware.gpu)
        except NotFound as unknown:
            if hardware.memory_gib is None and hardware.usable_gib is None:
                raise BadWorkload("hardware.gpu", f"{unknown} Or give memory_gib.") from None
            assumptions.record(
                "hardware.gpu",
                hardware.gpu,
                "not in the catalog: any data type, no speed",
            )
    gpus = hardware.gpus
    if gpus is None:
        gpus_of_split = requested_gpus(search.workload)
        gpus = assumptions.record(
            "hardware.gpus", gpus_of_split, "as many as the split needs" if gpus_of_split > 1 else "one GPU"
        )
    if hardware.infiniband is None and search.constraints.max_nodes > 1:
        assumptions.record("hardware.infiniband", True, "machines that work together are connected by InfiniBand")
    return to_vm_and_machine(hardware, gpu, gpus, assumptions)


def to_sizes(rows: Iterable[Mapping[str, Any]]) -> Sizes:
    """Map rows to the VMs and machines that placement evaluates."""
    return [(to_vm(row), to_machine(row)) for row in rows]


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
