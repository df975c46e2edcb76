"""Which sizes have given amounts of GPU memory, vCPUs and so on: on how many nodes, at what cost, and why not.

A verdict depends on few figures of a size, so it is found once for all sizes that have the same ones. What is ranked
are the places of sizes: only those that are shown are read, and evaluated with their prices.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import date
from decimal import Decimal
from math import isfinite
from typing import TYPE_CHECKING, Any, TypeVar

from app.catalog.purchases import PURCHASE_MODELS
from app.catalog.queries.candidates import SELECTION_FILTERS, candidates_query
from app.catalog.queries.exchange_rates import CurrencyRate, find_exchange_rate
from app.catalog.queries.params import ORDERABLE_STATUSES, FitSearch, SizeRequirements, check_days
from app.catalog.queries.size_sets import IS_SET, UNKNOWN, SizeQuestion
from app.catalog.queries.sizes import explain_no_price, normalize
from app.catalog.queries.snapshot import Catalog
from app.db.functions import NANO
from app.db.statements import to_dicts
from app.errors import CatalogChanged
from app.fit.formulas.quantities import GIB, Figure, exact
from app.fit.verdict import (
    MAX_REJECTED,
    NEAREST_MISSES,
    QUANTITIES,
    Failure,
    Option,
    OptionCost,
    Rejection,
    ResourceNeeds,
    Vm,
    check_budget,
    evaluate_vm,
    explain_option,
    find_failures,
    headrooms_of,
    miss_distance,
    nodes_needed,
    requested_quantities,
    unused_gpu_memory_gib,
    unused_gpu_memory_percent,
    worst_first,
)
from app.schemas.fit_response import (
    ConvertedCostOut,
    CostsOut,
    FitAnswerOut,
    FixOut,
    InterruptionsOut,
    MissOut,
    OptionCostOut,
    PlacedOut,
)
from app.schemas.sizes import ComputedPriceOut
from app.services.ranked import paginate, to_gpus, to_vm

if TYPE_CHECKING:
    from app.fit.formulas.training_speed import Interruptions
    from app.fit.placement.option import PlacementOption

T = TypeVar("T")

_AMOUNTS = tuple(quantity.name for quantity in QUANTITIES)
TRAITS = tuple(name for name in SizeRequirements.model_fields if name not in _AMOUNTS)
"""Requirements that a VM meets or not, whatever the number of nodes."""


def plan_resource_fit(
    catalog: Catalog,
    search: FitSearch,
    *,
    purchases: Collection[str] | None = None,
    verified_only: bool = False,
    rejected: bool = False,
    most_of_reason: int | None = None,
) -> FitAnswerOut:
    """Evaluate and rank the selected sizes; there are no assumptions and no fixes for resources.

    `purchases` are the purchase models to price: by default on demand, spot and that of the search. With `rejected` the
    result has the rejected sizes: at most MAX_REJECTED, and at most `most_of_reason` of each reason. Raises
    CatalogChanged.
    """
    check_days(search, catalog.today)
    search = normalize(search, catalog.snapshot)
    rate = find_exchange_rate(catalog, search.currency, search.as_of or catalog.today)
    needs = replace(to_needs(search, catalog.today), verified_only=verified_only)
    question = SizeQuestion(catalog, search)
    ranked, missed, codes = _rank_sizes(question, needs, search.sort)
    request_key = (
        f"{search.model_dump_json(exclude=search.page_param_names())} {catalog.today} {purchases} {verified_only}"
    )
    shown, next_cursor = paginate(catalog, ranked, search, request_key)
    misses = missed[:NEAREST_MISSES]
    if rejected:
        misses = [*nearest_of_each(missed, codes, most_of_reason, NEAREST_MISSES)[:MAX_REJECTED]]
    priced = tuple(("on_demand", "spot", search.purchase) if purchases is None else purchases)
    keys = [question.sets.keys[place] for place in (*shown, *misses)]
    rows: dict[str, Mapping[str, Any]] = {}
    if keys:
        rules, computed = catalog.snapshot.rules, bool(catalog.snapshot.formulas)
        query = candidates_query(search, priced, TRAITS, keys, today=catalog.today, rules=rules, computed=computed)
        rows = {row["key"]: row for row in to_dicts(query, catalog.fetch(query))}
    if rows.keys() < set(keys):
        raise CatalogChanged
    verdicts = [evaluate_vm(_to_vm(rows[key]), needs) for key in keys]
    options = [verdict for verdict in verdicts if isinstance(verdict, Option)]
    rejections = [verdict for verdict in verdicts if isinstance(verdict, Rejection)]
    costs = [option.costs[search.purchase] for option in options if search.purchase in option.costs]
    has_price = bool(search.cursor) or any(cost.usd_per_hour is not None for cost in costs)
    listed = nearest_of_each(rejections, [miss.failures[0].code for miss in rejections], most_of_reason)
    return FitAnswerOut(
        fits=bool(ranked),
        items=[to_placed(option, needs, rate) for option in options],
        next_cursor=next_cursor,
        total=len(ranked),
        rejected=list(map(to_miss, listed)) if rejected else [],
        rejected_total=len(missed),
        rejection_summary=dict(sorted(Counter(codes).items())),
        nearest_misses=list(map(to_miss, rejections[:NEAREST_MISSES])),
        assumptions=[],
        weights_type=None,
        workload=None,
        exchange_rate=rate,
        no_price=None if has_price else explain_no_price(catalog, search),
    )


def to_needs(search: FitSearch, today: date) -> ResourceNeeds:
    """Map search parameters to what the evaluation requires of every size."""
    requested = search.status or ORDERABLE_STATUSES
    statuses = (*ORDERABLE_STATUSES, "withdrawn", "retired") if "any" in requested else requested
    return ResourceNeeds(
        amounts={name: value for name in _AMOUNTS if (value := getattr(search, name)) is not None},
        traits={name: value for name in TRAITS if (value := getattr(search, name)) is not None},
        statuses=frozenset(statuses),
        regions=search.region,
        max_nodes=search.max_nodes,
        purchase=search.purchase,
        hours=search.hours,
        hours_per_month=search.hours_per_month,
        budget_usd_per_month=search.budget_usd_per_month,
        today=today,
    )


def _to_vm(row: Mapping[str, Any]) -> Vm:
    return to_vm(
        row,
        gpus=to_gpus(row["gpu_count_numerator"], row["gpu_count_denominator"]),
        gpu_memory_gib_on_one_gpu=row["gpu_memory_gib_on_one_gpu"],
        vcpus=row["vcpus"],
        memory_gib=row["memory_gib"],
        local_disk_gib=row["local_disk_gib"],
        network_gbps=row["network_mbps"] / 1000 if row["network_mbps"] is not None else None,
        infiniband_gbps=row["infiniband_gbps"],
        traits={name: row[name] for name in TRAITS},
    )


_COLUMNS = {"network_gbps": "network_mbps"}
"""Columns of figures whose names differ."""


def _rank_sizes(question: SizeQuestion, needs: ResourceNeeds, sort: str) -> tuple[list[int], list[int], list[str]]:
    """Rank the sizes that a search selects: by a sort, then cost, then fewer VMs, then name.

    Return the places of those that fit, best first; the places of those that do not, nearest miss first; and for each
    that does not fit the code of its largest shortfall.
    """
    names, prices = question.values("name"), question.prices()
    figures = _deciding_figures(question, needs)
    alike: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    of_places = list(zip(*figures.values(), strict=True))
    selected = question.sets.all  # whether they fit or not
    for name in question.names:
        if name in SELECTION_FILTERS:
            selected &= question.meets(name)
    for place in question.sets.places_in(selected):
        alike[of_places[place]].append(place)
    options: list[tuple[Any, ...]] = []
    rejections: list[tuple[Any, ...]] = []

    def reject(failures: Sequence[Failure], places: Sequence[int]) -> None:
        worst = worst_first(failures)
        distance, code = miss_distance(worst), worst[0].code
        rejections.extend([(*distance, names[place], code, place) for place in places])

    for amounts, places in alike.items():
        vm = _to_deciding_vm(dict(zip(figures, amounts, strict=True)), needs)
        if failures := find_failures(vm, needs):
            reject(failures, places)
            continue
        nodes = nodes_needed(vm, needs)
        order = _order_of(vm, nodes, needs, sort)
        for place in places:
            usd = prices.usd[place]
            nano = None if usd == UNKNOWN else round(usd * NANO) * nodes  # a price has nine decimals
            if needs.budget_usd_per_month is not None:
                month = None if nano is None else needs.usd_per_month(Decimal(nano).scaleb(-9), needs.purchase)
                if over_budget := list(check_budget(month, needs)):
                    reject(over_budget, [place])
                    continue
            cost = nano or 0
            options.append((nano is None, cost if order is None else order, cost, nodes, names[place], place))
    options.sort()
    rejections.sort()
    misses = [rejection[-1] for rejection in rejections]
    return [option[-1] for option in options], misses, [rejection[-2] for rejection in rejections]


def _order_of(vm: Vm, nodes: int, needs: ResourceNeeds, sort: str) -> float | None:
    """Return the figure that options are sorted by; None where it is their cost."""
    if sort == "headroom":
        return -min((headroom.percent for headroom in headrooms_of(vm, nodes, needs)), default=0.0)
    if sort == "waste":
        return unused_gpu_memory_gib(vm, nodes, needs) or 0.0
    return nodes if sort == "nodes" else None


def _deciding_figures(question: SizeQuestion, needs: ResourceNeeds) -> Mapping[str, Sequence[Any]]:
    """Return the figures that a verdict depends on, by place, under the fields of a VM and the names of traits."""
    sets = question.sets
    everywhere = question.meets("available_in") if "available_in" in question.names else sets.all
    figures: dict[str, Sequence[Any]] = {
        "status": question.values("status"),
        "verified": question.values("verified"),
        "offered": sets.flags(question.offered()),
        "in_every_region": sets.flags(everywhere),
        "gpus": question.gpu_counts(),
    }
    for quantity in requested_quantities(needs):
        if quantity.figure not in figures:
            column = _COLUMNS.get(quantity.figure, quantity.figure)
            figures[quantity.figure] = question.values(column)
    for name in needs.traits:
        figures[name] = question.values(name)
    return figures


def _to_deciding_vm(values: Mapping[str, Any], needs: ResourceNeeds) -> Vm:
    """Return a VM that has the figures a verdict depends on."""
    amounts = {quantity.figure: values[quantity.figure] for quantity in requested_quantities(needs)}
    if amounts.get("network_gbps") is not None:
        amounts["network_gbps"] /= 1000
    return Vm(
        name="",
        status=values["status"],
        verified=bool(values["verified"]),
        region="offered" if values["offered"] == IS_SET else None,
        in_every_region=values["in_every_region"] == IS_SET,
        traits={name: values[name] for name in needs.traits},
        **{"gpus": values["gpus"]} | amounts,
    )


def to_placed(option: Option, needs: ResourceNeeds, rate: CurrencyRate | None) -> PlacedOut:
    """Convert an option; the cost of a job is exact, since its hours are given."""
    costs: dict[str, OptionCostOut] = {}
    for name, cost in option.costs.items():
        of_job = exact(cost.usd_per_job, "USD") if cost.usd_per_job is not None else None
        costs[name] = to_cost_out(OptionCost(cost=cost, per_job=of_job, per_million_tokens=None), rate)
    return PlacedOut(
        **shown_of(option, costs),
        **dict.fromkeys(("parallelism", "per_gpu", "max_concurrency", "speed", "pareto_optimal")),
        nodes=option.nodes,
        unused_gpu_memory_gib=unused_gpu_memory_gib(option.vm, option.nodes, needs),
        unused_gpu_memory_percent=unused_gpu_memory_percent(option.vm, option.nodes, needs),
        explanation=explain_option(option, needs),
    )


def shown_of(option: "Option | PlacementOption", costs: dict[str, OptionCostOut]) -> dict[str, Any]:
    """Return what answers say of an option of resources as of a model."""
    vm = option.vm
    return {
        "size": vm.name,
        "provider": vm.provider,
        "region": vm.region,
        "status": vm.status,
        "cost": CostsOut(**dict.fromkeys(PURCHASE_MODELS) | costs),
        "headroom": option.headrooms,
        "limiting_resource": option.limiting.resource if option.limiting else None,
        "warnings": list(option.warnings),
    }


def to_miss(rejection: Rejection, fixes: Sequence[FixOut] = ()) -> MissOut:
    """Convert a size that does not fit, with the changes that would make it fit."""
    about = {name: getattr(rejection, name) for name in ("size", "provider", "status", "failures")}
    return MissOut(**about, fixes=fixes)


def nearest_of_each(misses: Sequence[T], codes: Sequence[str], most: int | None, always: int = 0) -> Sequence[T]:
    """Return the first misses of each code, up to a number of them, in order; all of them for None.

    The first misses of all, `always`, are among them.
    """
    if most is None:
        return misses
    counts: Counter[str] = Counter()
    kept = []
    for number, (miss, code) in enumerate(zip(misses, codes, strict=True)):
        counts[code] += 1
        if number < always or counts[code] <= most:
            kept.append(miss)
    return kept


def to_cost_out(figures: OptionCost, rate: CurrencyRate | None) -> OptionCostOut:
    """Convert the cost of an option, with the same in another currency where there is a rate."""
    return OptionCostOut(
        usd_per_hour=figures.cost.usd_per_hour,
        as_of=figures.cost.as_of,
        price_age_days=figures.cost.price_age_days,
        approximate_date=figures.cost.approximate_date,
        usd_per_month=figures.cost.usd_per_month,
        usd_per_job=figures.per_job,
        usd_per_million_tokens=figures.per_million_tokens,
        committed_hours_per_month=figures.cost.committed_hours_per_month,
        adjustment=figures.cost.adjustment,
        estimate=ComputedPriceOut(estimated=True, formula=formula) if (formula := figures.cost.formula) else None,
        interruptions=_interruptions(figures.interruptions) if figures.interruptions is not None else None,
        usd_per_request=figures.per_request,
        converted=_converted_cost(figures, rate) if rate is not None else None,
    )


def _interruptions(interruptions: "Interruptions") -> InterruptionsOut:
    overhead, interval_minutes = interruptions.overhead, interruptions.interval_hours * 60
    return InterruptionsOut(
        overhead=overhead if isfinite(overhead) else None,
        evictions_per_hour=interruptions.evictions_per_hour,
        checkpoint_gib=interruptions.checkpoint_bytes / GIB,
        checkpoint_minutes=interruptions.checkpoint_hours * 60,
        checkpoint_interval_minutes=interval_minutes if isfinite(interval_minutes) else None,
        storage_usd_per_hour=interruptions.storage_usd_per_hour,
    )


def _converted_cost(figures: OptionCost, rate: CurrencyRate) -> ConvertedCostOut:
    return ConvertedCostOut(
        currency=rate.currency,
        cost_per_hour=rate.convert_number(figures.cost.usd_per_hour),
        cost_per_month=rate.convert_number(figures.cost.usd_per_month),
        cost_per_job=_converted_figure(figures.per_job, rate),
        cost_per_million_tokens=_converted_figure(figures.per_million_tokens, rate),
        cost_per_request=_converted_figure(figures.per_request, rate),
    )


def _converted_figure(usd: Figure | None, rate: CurrencyRate) -> Figure | None:
    """Return a figure in the currency of the rate, with the same certainty."""
    if usd is None:
        return None
    value, low, mid, high = map(rate.convert_number, (usd.value, usd.low, usd.mid, usd.high))
    return Figure(unit=rate.currency, certainty=usd.certainty, value=value, low=low, mid=mid, high=high)
