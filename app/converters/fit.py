"""Answers the bodies of POST /fit and POST /estimate.

A body has the fields that app.fit and app.services name at the path of PATHS, and those that are not in PATHS at the
path of the same name. Texts that mention a field are not translated.
"""

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import date
from decimal import Decimal
from functools import partial
from operator import attrgetter
from types import MappingProxyType
from typing import Any

import orjson

from app.catalog.names import as_written
from app.catalog.queries.exchange_rates import CurrencyRate
from app.catalog.queries.language_models import ModelsByKey, get_release_row
from app.catalog.queries.params import DatedSelection, FitSearch, PageParams, SizeSelection
from app.catalog.queries.snapshot import Catalog
from app.errors import BadCursor, BadQuery, BadWorkload
from app.fit.estimator.estimate import parameter_figures
from app.fit.estimator.workload import Engine, Gpus, InferenceWorkload, ServiceLevel, Speculation, TrainingWorkload
from app.fit.formulas.assumptions import Assumption, OmittedFigure
from app.fit.formulas.optimizer import AdaptedMatrix
from app.fit.placement.fixes import Change, Fix
from app.fit.placement.option import (
    PlacementOption,
    cost_figures,
    explain,
    per_gpu_memory,
    service_figures,
    speed_figures,
)
from app.fit.placement.request import Constraints, Pricing
from app.fit.placement.serving import ServingJob
from app.fit.verdict import MAX_REJECTED, Rejection
from app.schemas.estimate_request import EstimateIn, InferenceIn, TrainingIn
from app.schemas.fit_request import FitIn
from app.schemas.fit_response import (
    CostsOut,
    EstimateOut,
    FitAnswerOut,
    FixOut,
    MissOut,
    OptionCostOut,
    ParallelismOut,
    PlacedOut,
    WorkloadOut,
)
from app.services.estimate import EstimateRequest, estimate
from app.services.machines import Hardware
from app.services.placement import PlacementResult, PlacementSearch, plan_placement
from app.services.resource_fit import (
    nearest_of_each,
    plan_resource_fit,
    to_cost_out,
    to_headroom_out,
    to_resource_answer_out,
)

PATHS = {
    "series": "constraints.series",
    "name": "constraints.name",
    "gpu": "constraints.gpu",
    "gpu_vendor": "constraints.gpu_vendor",
    "region": "constraints.regions",
    "available_in": "constraints.available_in",
    "provider": "constraints.provider",
    "country": "constraints.country",
    "continent": "constraints.continent",
    "os": "pricing.os",
    "currency": "pricing.currency",
    "as_of": "pricing.as_of",
    "known_at": "pricing.known_at",
}
"""Where a body has the parameters of a query: those of a search are read from there, and errors name that place."""


def to_path(field: str) -> str:
    """Return the path in the body of a field."""
    return PATHS.get(field, field)


def search_params(body: FitIn) -> dict[str, Any]:
    """Return the parameters of a catalog search that a body has, by name; regions as they are written there."""
    params = {name: attrgetter(path)(body) for name, path in PATHS.items() if name in SizeSelection.model_fields}
    return params | {name: tuple(map(as_written, params[name])) for name in ("region", "available_in")}


def to_body_error(error: BadQuery | BadWorkload) -> BadWorkload:
    """Return the error about a field, and about its value if known, as one about the path in the body."""
    detail = error.allowed if isinstance(error, BadQuery) else error.detail
    return BadWorkload(to_path(error.field), detail, error.value)


def with_paths(assumptions: Iterable[Assumption]) -> tuple[Assumption, ...]:
    """Return assumptions that name the paths at which a body would set the fields."""
    return tuple(replace(one, field=to_path(one.field)) for one in assumptions)


def with_missing_paths(left_out: Iterable[OmittedFigure]) -> tuple[OmittedFigure, ...]:
    """Return omitted figures that name the paths at which a body would have the missing fields."""
    return tuple(replace(one, missing=tuple(map(to_path, one.missing))) for one in left_out)


def to_patch(changes: Iterable[Change]) -> dict[str, dict[str, Any]]:
    """Return what changes do to a body, as a JSON Merge Patch (RFC 7396); amounts of money become plain numbers."""
    patch: dict[str, dict[str, Any]] = {}
    for change in changes:
        part, _, name = to_path(f"{change.part}.{change.field}").partition(".")
        value = change.value
        patch.setdefault(part, {})[name] = float(value) if isinstance(value, Decimal) else value
    return patch


MAX_NODES_OF_A_SERVICE = 100
"""The most VMs of a service where the request does not say: its load decides how many there are."""

_OF_A_PAGE: Mapping[str, Any] = {"limit": True, "cursor": True, "pricing": {"currency"}}
"""The fields of a body that choose a page of the answer, or how it is shown; all others identify the list."""


def estimate_body(body: EstimateIn, models: ModelsByKey) -> EstimateOut:
    """Answer a body; raises BadWorkload naming the path in the body that is wrong or missing.

    A model is looked up in `models` where the body names one.
    """
    try:
        answer = estimate(to_workload(body), partial(get_release_row, models))
    except BadWorkload as error:
        raise to_body_error(error) from None
    return EstimateOut.model_validate(
        replace(answer, assumptions=with_paths(answer.assumptions), left_out=with_missing_paths(answer.left_out))
    )


def to_workload(body: EstimateIn) -> EstimateRequest:
    """Convert the body of an estimate to a workload."""
    return EstimateRequest(
        model=body.model,
        architecture=body.fields,
        config=body.config,
        safetensors=body.safetensors,
        workload=_with_engine(to_usage(_served(body), body.training), body.gpus.engine),
        serving=ServiceLevel(**body.serving.model_dump()) if body.serving is not None else None,
        gpus=Gpus(**body.gpus.model_dump(exclude={"engine"})),
    )


def _served(body: EstimateIn) -> InferenceIn | None:
    """Return how the model is served, which a service level may leave out."""
    return body.inference or InferenceIn() if body.serving is not None else body.inference


def _with_engine(
    workload: InferenceWorkload | TrainingWorkload, engine: Engine | None
) -> InferenceWorkload | TrainingWorkload:
    """Return the workload with the engine that the GPUs name, if they do."""
    return replace(workload, engine=engine) if engine and isinstance(workload, InferenceWorkload) else workload


def to_usage(inference: InferenceIn | None, training: TrainingIn | None) -> InferenceWorkload | TrainingWorkload:
    """Convert the part that says how a model is served, or else trained."""
    if inference is not None:
        served = inference.model_dump(exclude={"speculative"})
        speculative = inference.speculative
        return InferenceWorkload(
            **served, speculative=Speculation(**speculative.model_dump()) if speculative is not None else None
        )
    fields = training.model_dump() if training is not None else {}
    matrices = fields.pop("lora_matrices", None)
    return TrainingWorkload(
        **fields, lora_matrices=tuple(AdaptedMatrix(**matrix) for matrix in matrices) if matrices is not None else None
    )


def plan_fit(
    catalog: Catalog, body: FitIn, *, most_of_reason: int | None = None, among: Mapping[str, Any] = MappingProxyType({})
) -> FitAnswerOut:
    """Plan the query that answers a body; raises BadWorkload naming the path in the body that is wrong.

    With `most_of_reason`, `rejected` has at most that many sizes for each reason, the nearest of them with its fixes.
    A model is placed `among` the sizes that these filters leave, which no body has.
    """
    search = to_search(body, catalog.today)
    if among and isinstance(search, PlacementSearch):
        search = replace(search, scope=search.scope.model_copy(update=among))
    try:
        if isinstance(search, PlacementSearch):
            page = PageParams(limit=body.limit, cursor=body.cursor)
            placements = plan_placement(catalog, search, page, _request_key(body, catalog.today))
            return to_placement_answer_out(placements, include=body.include, most_of_reason=most_of_reason)
        recommendation = plan_resource_fit(
            catalog,
            search,
            purchases=body.pricing.purchases,
            verified_only=body.constraints.verified_only,
            rejected="rejected" in body.include,
            most_of_reason=most_of_reason,
        )
    except BadCursor:
        raise
    except (BadQuery, BadWorkload) as error:
        raise to_body_error(error) from None
    return to_resource_answer_out(recommendation, include=body.include, most_of_reason=most_of_reason)


def _request_key(body: FitIn, today: date) -> str:
    """Return what the cursors of a request are for; of a model's files, which may have megabytes, only the digest."""
    files = {"config": body.config, "safetensors": body.safetensors}
    digests = {name: {"digest": _digest(file)} for name, file in files.items() if file is not None}
    return f"{body.model_copy(update=digests).model_dump_json(exclude=_OF_A_PAGE)} {today}"


def _digest(file: Mapping[str, Any]) -> str:
    try:
        text = orjson.dumps(file)
    except TypeError:  # an integer of more than 64 bits
        text = "".join(json.JSONEncoder().iterencode(file)).encode()
    return hashlib.sha256(text).hexdigest()


def to_search(body: FitIn, today: date) -> FitSearch | PlacementSearch:
    """Convert a body to a search for resources, or for placements of a model."""
    return _fit_search(body) if body.resources is not None else _placement_search(body, today)


def _fit_search(body: FitIn) -> FitSearch:
    constraints, pricing = body.constraints, body.pricing
    statuses = {"preview": constraints.allow_preview, "retiring": constraints.allow_retiring}
    return FitSearch(
        **search_params(body),
        purchase=pricing.purchases[0],
        currency=pricing.currency,
        as_of=pricing.as_of,
        known_at=pricing.known_at,
        **(body.resources.model_dump(exclude_none=True) if body.resources is not None else {}),
        status=("current", *(status for status, allowed in statuses.items() if allowed)),
        max_nodes=constraints.max_nodes,
        hours=pricing.hours,
        hours_per_month=pricing.hours_per_month,
        budget_usd_per_month=constraints.budget_usd_per_month,
        sort=body.order,
        limit=body.limit,
        cursor=body.cursor,
    )


def _placement_search(body: FitIn, today: date) -> PlacementSearch:
    constraints, pricing = body.constraints, body.pricing
    binding = constraints.model_dump(exclude=set(SizeSelection.model_fields))
    inference = body.inference
    if body.serving is not None:
        inference = inference or InferenceIn()
        if "max_nodes" not in constraints.model_fields_set:
            binding["max_nodes"] = MAX_NODES_OF_A_SERVICE
    return PlacementSearch(
        model=body.model,
        architecture=body.fields,
        config=body.config,
        safetensors=body.safetensors,
        workload=to_usage(inference, body.training),
        serving=ServiceLevel(**body.serving.model_dump()) if body.serving is not None else None,
        scope=DatedSelection(
            **search_params(body), purchase=pricing.purchases[0], as_of=pricing.as_of, known_at=pricing.known_at
        ),
        hardware=Hardware(**body.hardware.model_dump()) if body.hardware is not None else None,
        constraints=Constraints(**binding),
        pricing=Pricing(**pricing.model_dump(exclude={"os", "as_of", "known_at", "currency"}), today=today),
        currency=pricing.currency,
        sort=body.order,
    )


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
