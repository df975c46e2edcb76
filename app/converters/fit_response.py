"""Converts the results of a fit to the response of POST /fit."""

from collections.abc import Collection

from app.catalog.queries.exchange_rates import CurrencyRate
from app.converters.body_paths import to_patch, with_paths
from app.converters.fit_parts import (
    nearest_of_each,
    to_cost_out,
    to_headroom_out,
)
from app.fit.estimator.estimate import parameter_figures
from app.fit.placement.fixes import Fix
from app.fit.placement.option import (
    PlacementOption,
    cost_figures,
    explain,
    per_gpu_memory,
    service_figures,
    speed_figures,
)
from app.fit.placement.serving import ServingJob
from app.fit.verdict import MAX_REJECTED, Rejection
from app.schemas.fit_response import (
    CostsOut,
    FitAnswerOut,
    FixOut,
    MissOut,
    OptionCostOut,
    ParallelismOut,
    PlacedOut,
    WorkloadOut,
)
from app.services.placement import PlacementResult


def to_placement_answer_out(
    answer: PlacementResult, *, include: Collection[str], most_of_reason: int | None = None
) -> FitAnswerOut:
    """Convert placements: the best options, and the nearest misses or all rejected sizes.

    With `most_of_reason` it is that many of each reason, and fixes are found for the nearest of each: finding them is
    most of the work of an answer, and sizes that fail for one reason mostly have the same fixes.
    """
    ranking, job = answer.ranking, answer.prepared.job
    rejected = nearest_of_each(ranking.rejections, most_of_reason)[:MAX_REJECTED] if "rejected" in include else ()
    fixed = {one.vm.name for one in nearest_of_each(ranking.rejections, None if most_of_reason is None else 1)}
    misses = {
        one.vm.name: _miss(answer, one, fixed=one.vm.name in fixed) for one in (*ranking.nearest_misses, *rejected)
    }
    model = job.model
    return FitAnswerOut(
        fits=bool(ranking.total),
        items=[_option(answer, option) for option in ranking.options],
        next_cursor=answer.next_cursor,
        total=ranking.total,
        rejected=[misses[one.vm.name] for one in rejected],
        rejected_total=ranking.rejected_total,
        rejection_summary=ranking.summary,
        nearest_misses=[misses[one.vm.name] for one in ranking.nearest_misses],
        assumptions=with_paths(answer.prepared.assumptions) if "assumptions" in include else [],
        exchange_rate=answer.exchange_rate,
        no_price=answer.no_price,
        weights_type=job.serving.weights.type
        if isinstance(job, ServingJob) and job.serving.weights is not None
        else None,
        workload=WorkloadOut(architecture=model.shape, parameters=parameter_figures(model))
        if "workload" in include
        else None,
    )


def _option(answer: PlacementResult, option: PlacementOption) -> PlacedOut:
    job, attempt = answer.prepared.job, option.attempt
    memory = per_gpu_memory(job, option)
    return PlacedOut(
        size=option.vm.name,
        region=option.vm.region,
        status=option.vm.status,
        nodes=attempt.nodes,
        parallelism=ParallelismOut(
            tensor=attempt.parallelism.tensor,
            pipeline=attempt.parallelism.pipeline,
            expert=attempt.parallelism.expert,
            data_attention=attempt.parallelism.data,
            data=attempt.replicas,
            zero_stage=attempt.zero_stage,
            gpus=attempt.gpus,
            idle_gpus=attempt.nodes * option.machine.ranks - attempt.gpus,
        ),
        per_gpu=memory,
        max_concurrency=memory.max_concurrency if memory is not None else None,
        speed=speed_figures(option),
        serving=service_figures(job, option.machine, attempt, option.speed) if isinstance(job, ServingJob) else None,
        cost=CostsOut(**{name: _cost(option, name, answer.exchange_rate) for name in CostsOut.model_fields}),
        headroom=[to_headroom_out(one) for one in option.headrooms],
        limiting_resource=option.limiting.resource if option.limiting else None,
        unused_gpu_memory_gib=None,
        pareto_optimal=option.pareto_optimal,
        warnings=list(option.warnings),
        explanation=explain(option),
    )


def _cost(option: PlacementOption, purchase: str, rate: CurrencyRate | None) -> OptionCostOut | None:
    if purchase not in option.costs:
        return None
    known = cost_figures(option, purchase)
    return to_cost_out(known, rate)


def _miss(answer: PlacementResult, rejection: Rejection, *, fixed: bool) -> MissOut:
    vm, machine = answer.machines[rejection.vm.name]
    return MissOut(
        size=vm.name,
        status=vm.status,
        failures=rejection.failures,
        fixes=[to_fix_out(fix) for fix in answer.fixer.find_fixes(vm, machine, rejection)] if fixed else [],
    )


def to_fix_out(fix: Fix) -> FixOut:
    """Convert a fix."""
    return FixOut(text=fix.text, patch=to_patch(fix.changes))
