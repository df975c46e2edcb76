"""A workload as it leaves the wire: the same as values."""

from app.api.schemas.estimate_request import EstimateIn, InferenceIn, TrainingIn
from app.fit.estimator.workload import Gpus, InferenceWorkload, TrainingWorkload
from app.fit.formulas.optimizer import Matrix
from app.services.estimate import Workload


def to_workload(body: EstimateIn) -> Workload:
    """Take a workload from a body."""
    return Workload(
        model=body.model,
        architecture=body.fields,
        config=body.config,
        use=to_use(body.inference, body.training),
        gpus=Gpus(**body.gpus.model_dump()),
    )


def to_use(inference: InferenceIn | None, training: TrainingIn | None) -> InferenceWorkload | TrainingWorkload:
    """Take how a model is served, or else trained."""
    if inference is not None:
        return InferenceWorkload(**inference.model_dump())
    given = training.model_dump() if training is not None else {}
    matrices = given.pop("lora_matrices", None)
    return TrainingWorkload(
        **given, lora_matrices=tuple(Matrix(**matrix) for matrix in matrices) if matrices is not None else None
    )
