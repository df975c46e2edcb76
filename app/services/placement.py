"""Place a language model on catalog sizes or one described machine: one query, then arithmetic ranks the options."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from app.catalog.queries.candidates import machines_query
from app.catalog.queries.exchange_rates import CurrencyRate, find_exchange_rate
from app.catalog.queries.known_prices import NoPrice, explain_no_price
from app.catalog.queries.language_models import get_release_row
from app.catalog.queries.lookups import get_gpu
from app.catalog.queries.params import DatedSelection, PageParams, check_days
from app.catalog.queries.region_places import place_regions
from app.catalog.queries.sizes import normalize
from app.catalog.queries.snapshot import Catalog, CatalogSnapshot
from app.db.statements import Reader
from app.errors import BadWorkload, NotFound
from app.fit.estimator.parallelism import requested_gpus
from app.fit.estimator.workload import ServiceLevel, TrainingWorkload
from app.fit.formulas.assumptions import Assumptions, InvalidWorkload
from app.fit.placement.evaluate import rank
from app.fit.placement.fixes import FixFinder
from app.fit.placement.machine import Machine
from app.fit.placement.option import PlacementOption
from app.fit.placement.prepare import MemoryUnknown, PreparedRequest, prepare
from app.fit.placement.request import Constraints, PlacementRequest, Pricing, Workload
from app.fit.verdict import RankingPart
from app.fit.vm import Vm
from app.services.estimate import ModelSpec, resolve_architecture
from app.services.machines import Hardware, paginate, to_machine, to_vm, to_vm_and_machine

Sizes = list[tuple[Vm, Machine]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementSearch(ModelSpec):
    """A model and its workload, the sizes to search or one described machine, and the constraints on an option."""

    workload: Workload
    serving: ServiceLevel | None = None
    scope: DatedSelection
    hardware: Hardware | None = None
    constraints: Constraints
    pricing: Pricing
    currency: str | None = None
    sort: str = "cost_per_hour"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementResult:
    """The prepared request, a page of the ranking, and a finder of fixes for rejected sizes.

    `exchange_rate` is that of an answer that has its costs in another currency, too; `no_price` is there where no
    option has a price.
    """

    prepared: PreparedRequest
    ranking: RankingPart[PlacementOption]
    machines: Mapping[str, tuple[Vm, Machine]]
    fixer: FixFinder
    exchange_rate: CurrencyRate | None
    no_price: NoPrice | None
    next_cursor: str | None


def plan_placement(catalog: Catalog, search: PlacementSearch, page: PageParams, request_key: str) -> PlacementResult:
    """Evaluate and rank the selected sizes; raises BadWorkload naming the field that is wrong or missing.

    `page` is that of options; `request_key` ties its cursor to the request.
    Raises BadQuery for a region, series, GPU or currency that the catalog does not have, for a day to come, and for a
    cursor of another request; CursorGone for a page of another revision.
    """
    check_days(search.scope, catalog.today)
    scope = place_regions(search.scope, catalog.snapshot.regions)
    if scope is not search.scope:
        search = replace(search, scope=scope, constraints=replace(search.constraints, regions=scope.region))
    on = search.scope.as_of or catalog.today
    rate = find_exchange_rate(catalog, search.currency, on)
    assumptions = Assumptions()
    try:
        request = _to_request(search, catalog.snapshot, assumptions)
        prepared = prepare(request, assumptions)
        _check_job_length(search)
        sizes = _find_sizes(catalog, search, assumptions)
    except MemoryUnknown:
        raise BadWorkload("hardware", "needs gpu, usable_gib or memory_gib") from None
    except InvalidWorkload as error:
        raise BadWorkload(error.field, error.detail) from None
    prepared = replace(prepared, assumptions=assumptions.recorded)  # reading the hardware has added to them
    placed = rank(sizes, prepared, search.sort)
    options = paginate(catalog, placed.options, page, request_key)
    note = None
    # A described machine has no price anyway.
    if not (search.hardware or page.cursor) and all(option.usd_per_hour is None for option in options.items):
        note = explain_no_price(catalog, search.scope)
    ranking = RankingPart(
        options=options.items,
        total=placed.total,
        rejections=placed.rejections,
        rejected_total=placed.rejected_total,
        summary=placed.summary,
    )
    return PlacementResult(
        prepared=prepared,
        ranking=ranking,
        machines={vm.name: (vm, machine) for vm, machine in sizes},
        fixer=FixFinder(prepared),
        exchange_rate=rate,
        no_price=note,
        next_cursor=options.next_cursor,
    )


def _to_request(search: PlacementSearch, known: CatalogSnapshot, assumptions: Assumptions) -> PlacementRequest:
    def find(name: str) -> Mapping[str, Any]:
        return get_release_row(known.models, name)

    return PlacementRequest(
        architecture=resolve_architecture(search, find, assumptions),
        workload=search.workload,
        serving=search.serving,
        constraints=search.constraints,
        pricing=search.pricing,
        machine_described=search.hardware is not None,
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


def _find_sizes(catalog: Catalog, search: PlacementSearch, assumptions: Assumptions) -> Sizes:
    if search.hardware is not None:
        return [_described_machine(catalog, search, search.hardware, assumptions)]
    scope = normalize(search.scope, catalog.snapshot)
    query = machines_query(scope, search.pricing.purchases, today=catalog.today, rules=catalog.snapshot.rules)
    return catalog.keep_list(query, to_sizes)


def _described_machine(
    reader: Reader, search: PlacementSearch, hardware: Hardware, assumptions: Assumptions
) -> tuple[Vm, Machine]:
    """Map the described machine; a GPU unknown to the catalog is allowed where its memory is given."""
    gpu: Mapping[str, Any] = {}
    if hardware.gpu is not None:
        try:
            gpu = get_gpu(reader, hardware.gpu)
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
