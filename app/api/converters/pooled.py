"""A fit of raw amounts as the answer to a body: the same options as of GET /fit, in the shape of a placement."""

from collections.abc import Collection

from app.api.converters.resource_fit import costs_out, headroom_out
from app.api.schemas.fit_costs import FailureOut
from app.api.schemas.fit_response import FitAnswerOut, MissOut, PlacedOut
from app.fit.resources import Needs, explain_option, unused_gpu_memory_gib
from app.fit.verdict import Option, Rejection
from app.services.resource_fit import Recommendation


def pooled_out(answer: Recommendation, *, purchases: Collection[str], include: Collection[str]) -> FitAnswerOut:
    """Put an answer on the wire; nothing is assumed of raw amounts, and no change of them is suggested."""
    ranking = answer.ranking
    return FitAnswerOut(
        fits=bool(ranking.options),
        items=[_pooled_option(option, answer.needs, purchases) for option in answer.page],
        total=len(ranking.options),
        rejected=[_pooled_miss(one) for one in ranking.rejections] if "rejected" in include else [],
        rejected_total=len(ranking.rejections),
        rejection_summary=ranking.summary,
        nearest_misses=[_pooled_miss(one) for one in ranking.nearest_misses],
        assumptions=[],
        weights_type=None,
        workload=None,
    )


def _pooled_option(option: Option, needs: Needs, purchases: Collection[str]) -> PlacedOut:
    return PlacedOut(
        size=option.vm.name,
        region=option.vm.region,
        status=option.vm.status,
        nodes=option.nodes,
        parallelism=None,
        per_gpu=None,
        max_concurrency=None,
        speed=None,
        cost=costs_out(option, purchases),
        headroom=[headroom_out(one) for one in option.headrooms],
        limiting_resource=option.limiting.resource if option.limiting else None,
        unused_gpu_memory_gib=unused_gpu_memory_gib(option, needs),
        pareto_optimal=None,
        warnings=list(option.warnings),
        explanation=explain_option(option, needs),
    )


def _pooled_miss(rejection: Rejection) -> MissOut:
    failures = [FailureOut.model_validate(failure) for failure in rejection.failures]
    return MissOut(size=rejection.vm.name, status=rejection.vm.status, failures=failures, fixes=[])
