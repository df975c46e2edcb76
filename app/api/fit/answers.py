"""A recommendation put on the wire; knows no HTTP, so the command line prints the same."""

from app.api.fit.schemas import CostOut, FailureOut, FitOut, HeadroomOut, OptionOut, RejectionOut
from app.fit.resources.needs import Needs
from app.fit.resources.rank import unused_gpu_memory_gib
from app.fit.resources.wording import explain
from app.fit.verdict import Headroom, Option, Rejection
from app.recommend import Recommendation


def fit_out(answer: Recommendation, *, rejected: bool) -> FitOut:
    """Put an answer on the wire."""
    ranking = answer.ranking
    return FitOut(
        items=[_option(option, answer.needs) for option in answer.page],
        next_cursor=answer.next_cursor,
        total=len(ranking.options),
        rejected=[_rejection(rejection) for rejection in ranking.rejections] if rejected else [],
        rejected_total=len(ranking.rejections),
        rejection_summary=ranking.summary,
        nearest_misses=[_rejection(rejection) for rejection in ranking.nearest_misses],
    )


def _option(option: Option, needs: Needs) -> OptionOut:
    unused, have = unused_gpu_memory_gib(option, needs), option.vm.gpu_memory_gib
    wasted = round(100 * unused / (have * option.nodes), 2) if unused is not None and have else None
    return OptionOut(
        size=option.vm.name,
        region=option.vm.region,
        status=option.vm.status,
        nodes=option.nodes,
        on_demand=CostOut.model_validate(option.costs["on_demand"]),
        spot=CostOut.model_validate(option.costs["spot"]),
        headroom=[headroom_out(one) for one in option.headrooms],
        limiting_resource=option.limiting.resource if option.limiting else None,
        unused_gpu_memory_gib=unused,
        unused_gpu_memory_percent=wasted,
        warnings=list(option.warnings),
        explanation=explain(option, needs),
    )


def headroom_out(one: Headroom) -> HeadroomOut:
    """Put on the wire what is to spare of a resource."""
    return HeadroomOut(
        resource=one.resource,
        unit=one.unit,
        required=one.required,
        available=one.available,
        headroom_percent=round(one.percent, 2),
    )


def _rejection(rejection: Rejection) -> RejectionOut:
    failures = [FailureOut.model_validate(failure) for failure in rejection.failures]
    return RejectionOut(size=rejection.vm.name, status=rejection.vm.status, failures=failures)
