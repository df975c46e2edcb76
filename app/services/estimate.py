"""JOIN: what a workload needs, its model found among the presets of the catalog where it is named."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy.orm import Session

from app.catalog.queries.language_models import get_model
from app.errors import BadWorkload
from app.fit.estimator.estimate import estimate_serving, estimate_training
from app.fit.estimator.report import Estimate
from app.fit.estimator.workload import Gpus, InferenceWorkload, TrainingWorkload
from app.fit.formulas.assumptions import Assumptions, InvalidWorkload
from app.services.model_spec import ModelSpec, resolve_architecture


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateRequest(ModelSpec):
    """A model, how it is served or trained, and the GPUs that it runs on."""

    workload: InferenceWorkload | TrainingWorkload
    gpus: Gpus


def estimate(session: Session, request: EstimateRequest) -> Estimate:
    """Break a workload down into its figures; raises BadWorkload naming the field that is wrong or missing.

    The answer depends on the workload, and on the catalog where a preset is named.
    """

    def find(name: str) -> Mapping[str, Any]:
        return get_model(session, name).model_dump()

    ledger = Assumptions()
    try:
        shape = resolve_architecture(request, find, ledger)
        if isinstance(request.workload, InferenceWorkload):
            return estimate_serving(shape, request.workload, request.gpus, ledger)
        return estimate_training(shape, request.workload, request.gpus, ledger)
    except InvalidWorkload as refused:
        raise BadWorkload(refused.field, refused.detail) from None
