"""Converts the sizes that have the given resources to the responses of GET /fit and POST /fit."""

from collections.abc import Collection

from app.catalog.purchases import PURCHASE_MODELS
from app.catalog.queries.exchange_rates import CurrencyRate
from app.converters.fit_parts import (
    nearest_of_each,
    to_cost_out,
    to_headroom_out,
)
from app.fit.formulas.quantities import exact
from app.fit.resources import explain_option, unused_gpu_memory_gib
from app.fit.verdict import MAX_REJECTED, Cost, CostFigures, Option, Rejection
from app.schemas.fit_response import (
    CostsOut,
    FitAnswerOut,
    FitOut,
    MissOut,
    OptionCostOut,
    OptionOut,
    PlacedOut,
    RejectionOut,
)
from app.services.resource_fit import ResourceFit


def to_fit_out(answer: ResourceFit) -> FitOut:
    """Convert a page of options, with the nearest misses and, where they were asked for, the rejected sizes."""
    return FitOut(
        items=[_option(option, answer) for option in answer.page],
        next_cursor=answer.next_cursor,
        total=answer.total,
        rejected=[_rejection(rejection) for rejection in answer.rejections[:MAX_REJECTED]],
        rejected_total=answer.rejected_total,
        rejection_summary=dict(answer.summary),
        nearest_misses=[_rejection(rejection) for rejection in answer.nearest_misses],
        exchange_rate=answer.exchange_rate,
        no_price=answer.no_price,
    )


def _option(option: Option, answer: ResourceFit) -> OptionOut:
    needs = answer.needs
    unused, have = unused_gpu_memory_gib(option.vm, option.nodes, needs), option.vm.gpu_memory_gib
    wasted = round(100 * unused / (have * option.nodes), 2) if unused is not None and have else None
    return OptionOut(
        size=option.vm.name,
        region=option.vm.region,
        status=option.vm.status,
        nodes=option.nodes,
        cost=_costs(option, answer.exchange_rate),
        headroom=[to_headroom_out(one) for one in option.headrooms],
        limiting_resource=option.limiting.resource if option.limiting else None,
        unused_gpu_memory_gib=unused,
        unused_gpu_memory_percent=wasted,
        warnings=list(option.warnings),
        explanation=explain_option(option, needs),
    )


def _costs(option: Option, rate: CurrencyRate | None) -> CostsOut:
    """Convert the costs of an option; the cost of a job is exact, since its hours are given."""
    costs = {name: _cost(cost, rate) for name, cost in option.costs.items()}
    return CostsOut(**dict.fromkeys(PURCHASE_MODELS) | costs)


def _cost(cost: Cost, rate: CurrencyRate | None) -> OptionCostOut:
    of_job = exact(cost.usd_per_job, "USD") if cost.usd_per_job is not None else None
    return to_cost_out(CostFigures(cost=cost, per_job=of_job, per_million_tokens=None), rate)


def _rejection(rejection: Rejection) -> RejectionOut:
    return RejectionOut(size=rejection.vm.name, status=rejection.vm.status, failures=rejection.failures)


def to_resource_answer_out(
    answer: ResourceFit, *, include: Collection[str], most_of_reason: int | None = None
) -> FitAnswerOut:
    """Convert the sizes that have the given resources; there are no assumptions and no fixes for resources."""
    return FitAnswerOut(
        fits=bool(answer.total),
        items=[_pooled_option(option, answer) for option in answer.page],
        next_cursor=answer.next_cursor,
        total=answer.total,
        rejected=[_pooled_miss(one) for one in nearest_of_each(answer.rejections, most_of_reason)[:MAX_REJECTED]]
        if "rejected" in include
        else [],
        rejected_total=answer.rejected_total,
        rejection_summary=dict(answer.summary),
        nearest_misses=[_pooled_miss(one) for one in answer.nearest_misses],
        assumptions=[],
        weights_type=None,
        workload=None,
        exchange_rate=answer.exchange_rate,
        no_price=answer.no_price,
    )


def _pooled_option(option: Option, answer: ResourceFit) -> PlacedOut:
    needs = answer.needs
    return PlacedOut(
        size=option.vm.name,
        region=option.vm.region,
        status=option.vm.status,
        nodes=option.nodes,
        parallelism=None,
        per_gpu=None,
        max_concurrency=None,
        speed=None,
        cost=_costs(option, answer.exchange_rate),
        headroom=[to_headroom_out(one) for one in option.headrooms],
        limiting_resource=option.limiting.resource if option.limiting else None,
        unused_gpu_memory_gib=unused_gpu_memory_gib(option.vm, option.nodes, needs),
        pareto_optimal=None,
        warnings=list(option.warnings),
        explanation=explain_option(option, needs),
    )


def _pooled_miss(rejection: Rejection) -> MissOut:
    return MissOut(size=rejection.vm.name, status=rejection.vm.status, failures=rejection.failures, fixes=[])
