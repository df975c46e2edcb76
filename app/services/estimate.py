"""Memory, time and cost of a workload on given GPUs; a model named as a preset is looked up in the catalog."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from app.errors import BadWorkload
from app.fit.estimator.estimate import estimate_serving, estimate_training
from app.fit.estimator.report import Estimate
from app.fit.estimator.workload import Gpus, InferenceWorkload, ServiceLevel, TrainingWorkload
from app.fit.formulas.assumptions import Assumptions, InvalidWorkload
from app.services.model_spec import ModelSpec, resolve_architecture


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateRequest(ModelSpec):
    """A model, how it is served (with what load and targets) or trained, and the GPUs it runs on."""

    workload: InferenceWorkload | TrainingWorkload
    serving: ServiceLevel | None = None
    gpus: Gpus


def estimate(request: EstimateRequest, find: Callable[[str], Mapping[str, Any]]) -> Estimate:
    """Compute the figures of a workload; raises BadWorkload naming the field that is wrong or missing.

    `find` gets a preset by name, where one is named.
    """
    assumptions = Assumptions()
    try:
        architecture = resolve_architecture(request, find, assumptions)
        if isinstance(request.workload, InferenceWorkload):
            return estimate_serving(architecture, request.workload, request.gpus, assumptions, request.serving)
        return estimate_training(architecture, request.workload, request.gpus, assumptions)
    except InvalidWorkload as error:
        raise BadWorkload(error.field, error.detail) from None
