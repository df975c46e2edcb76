"""Place a language model on catalog sizes or one described machine: one query, then arithmetic ranks the options."""

from collections.abc import Generator, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date
from math import isnan
from typing import Any

from app.catalog.queries.candidates import machines_query
from app.catalog.queries.exchange_rates import CurrencyRate, find_exchange_rate
from app.catalog.queries.known_prices import NoPrice, explain_no_price
from app.catalog.queries.language_models import get_release_row
from app.catalog.queries.lookups import get_gpu
from app.catalog.queries.pagination import current_revision
from app.catalog.queries.params import DatedSelection, PageParams, check_days
from app.catalog.queries.sizes import normalize
from app.catalog.queries.snapshot import CatalogSnapshot
from app.db.statements import BoundStatement, QueryPlan, Rows, to_dicts
from app.errors import BadWorkload, NotFound
from app.fit.estimator.parallelism import requested_gpus
from app.fit.estimator.workload import ServiceLevel, TrainingWorkload
from app.fit.formulas.assumptions import Assumptions, InvalidWorkload
from app.fit.placement.evaluate import evaluate, rank
from app.fit.placement.fixes import FixFinder
from app.fit.placement.machine import Machine
from app.fit.placement.option import PlacementOption
from app.fit.placement.prepare import MemoryUnknown, PreparedRequest, prepare
from app.fit.placement.request import Constraints, PlacementRequest, Pricing, Workload
from app.fit.verdict import NEAREST_MISSES, RankingPart, Rejection
from app.fit.vm import Vm
from app.services.hardware import Hardware, to_vm_and_machine
from app.services.machines import to_machine
from app.services.model_spec import ModelSpec, resolve_architecture
from app.services.ranked import paginate, to_vm

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """The page of options that an answer shows, how many rejected sizes, and how many of these of each reason.

    `request_key` ties the cursor of a page to the request.
    """

    page: PageParams
    request_key: str
    rejections: int = NEAREST_MISSES
    most_of_reason: int | None = None


def plan_placement(
    search: PlacementSearch, known: CatalogSnapshot, today: date, shown: Shown, *, on_columns: bool = False
) -> QueryPlan[PlacementResult]:
    """Evaluate and rank the selected sizes; raises BadWorkload naming the field that is wrong or missing.

    `on_columns` is for a process that answers many searches of one revision: it ranks on columns that are kept, and
    reads and evaluates one by one only the sizes that are shown.
    Raises BadQuery for a region, series, GPU or currency that the catalog does not have, for a day to come, and for a
    cursor of another request; CursorGone for a page of another revision.
    """
    check_days(search.scope, today)
    on = search.scope.as_of or today
    rate = yield from find_exchange_rate(search.currency, on)
    assumptions = Assumptions()
    try:
        request = _to_request(search, known, assumptions)
        prepared = prepare(request, assumptions)
        _check_job_length(search)
        found = None
        if on_columns and search.hardware is None and not search.scope.names_a_day:
            found = yield from _rank_on_columns(search, prepared, known, today, shown)
        sizes = [] if found else (yield from _find_sizes(search, known, today, assumptions))
    except MemoryUnknown:
        raise BadWorkload("hardware", "needs gpu, usable_gib or memory_gib") from None
    except InvalidWorkload as error:
        raise BadWorkload(error.field, error.detail) from None
    if found is None:
        prepared = replace(prepared, assumptions=assumptions.recorded)  # reading the hardware has added to them
        found = yield from _rank_rows(search, prepared, sizes, known, shown)
    ranking, sizes, next_cursor = found
    return PlacementResult(
        prepared=prepared,
        ranking=ranking,
        machines={vm.name: (vm, machine) for vm, machine in sizes},
        fixer=FixFinder(prepared),
        exchange_rate=rate,
        no_price=(yield from _explain_no_price(search, ranking, known, today, shown)),
        next_cursor=next_cursor,
    )


def _explain_no_price(
    search: PlacementSearch,
    ranking: RankingPart[PlacementOption],
    known: CatalogSnapshot,
    today: date,
    shown: Shown,
) -> QueryPlan[NoPrice | None]:
    """Find where prices are known if no option has one, for the first page; a described machine has none anyway."""
    if (
        search.hardware is not None
        or shown.page.cursor
        or any(option.usd_per_hour is not None for option in ranking.options)
    ):
        return None
    return (yield from explain_no_price(search.scope, known, today))


_Ranked = tuple[RankingPart[PlacementOption], Sizes, str | None]
"""A page of a ranking with its rejected sizes, the sizes that they are of, and the cursor of the next page."""


def _rank_rows(
    search: PlacementSearch, prepared: PreparedRequest, sizes: Sizes, known: CatalogSnapshot, shown: Shown
) -> QueryPlan[_Ranked]:
    """Evaluate every size."""
    placed = rank(sizes, prepared, search.sort)
    page = yield from paginate(placed.options, shown.page, shown.request_key, known)
    ranking = RankingPart(
        options=page.items,
        total=placed.total,
        rejections=placed.rejections,
        rejected_total=placed.rejected_total,
        summary=placed.summary,
    )
    return ranking, sizes, page.next_cursor


def _rank_on_columns(
    search: PlacementSearch, prepared: PreparedRequest, known: CatalogSnapshot, today: date, shown: Shown
) -> QueryPlan[_Ranked | None]:
    """Rank on columns, and read and evaluate only what is shown; None where the catalog has changed since."""
    from app.services.placement_columns import rank_on_columns  # loads NumPy

    scope = normalize(search.scope, known)
    ranked = yield from rank_on_columns(scope, prepared, search.sort, known, today)
    if ranked is None:
        return None
    page = yield from paginate(ranked.options, shown.page, shown.request_key, known)
    options = list(page.items)
    rejections = ranked.rejections.nearest(shown.rejections, most_of_reason=shown.most_of_reason)
    keys = [ranked.keys[position] for position in (*options, *rejections)]
    sizes: Sizes = []
    if keys:
        query = machines_query(scope, search.pricing.purchases, today=today, rules=known.rules, keys=keys)
        rows = {row["key"]: row for row in to_dicts(query, (yield query))}
        if (yield from current_revision()) != known.revision:
            return None
        sizes = to_sizes(rows[key] for key in keys)
    verdicts = [evaluate(vm, machine, prepared) for vm, machine in sizes]
    optimal = [None if isnan(one) else bool(one) for one in ranked.pareto_optimal[options].tolist()]
    placed = zip((one for one in verdicts if isinstance(one, PlacementOption)), optimal, strict=True)
    ranking = RankingPart(
        options=[replace(option, pareto_optimal=is_optimal) for option, is_optimal in placed],
        total=len(ranked.options),
        rejections=[one for one in verdicts if isinstance(one, Rejection)],
        rejected_total=len(ranked.rejections),
        summary=ranked.summary,
    )
    return ranking, sizes, page.next_cursor


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
