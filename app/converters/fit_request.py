"""Converts the bodies of POST /fit and POST /estimate to the values of app.services, and answers them."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from functools import partial
from types import MappingProxyType
from typing import Any

import orjson

from app.catalog.queries.language_models import ModelsByKey, get_release_row
from app.catalog.queries.params import DatedSelection, FitSearch, PageParams, SizeSelection
from app.catalog.queries.snapshot import Catalog
from app.converters.body_paths import search_params, to_body_error, with_missing_paths, with_paths
from app.converters.fit_response import to_placement_answer_out
from app.converters.resource_fit import to_resource_answer_out
from app.errors import BadCursor, BadQuery, BadWorkload
from app.fit.estimator.workload import Engine, Gpus, InferenceWorkload, ServiceLevel, Speculation, TrainingWorkload
from app.fit.formulas.optimizer import AdaptedMatrix
from app.fit.placement.request import Constraints, Pricing
from app.schemas.estimate_request import EstimateIn, InferenceIn, TrainingIn
from app.schemas.estimate_response import EstimateOut
from app.schemas.fit_request import FitIn
from app.schemas.fit_response import FitAnswerOut
from app.services.estimate import EstimateRequest, estimate
from app.services.hardware import Hardware
from app.services.placement import PlacementSearch, plan_placement
from app.services.resource_fit import plan_resource_fit

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
