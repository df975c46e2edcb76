"""Chooses the deployment of a workload: the given parallelism and copies, or defaults that follow from the GPUs."""

from dataclasses import dataclass

from app.fit.estimator.workload import Gpus, InferenceWorkload, TrainingWorkload
from app.fit.formulas.assumptions import Assumptions, InvalidWorkload
from app.fit.formulas.memory import UNSPLIT, Parallelism


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """The parallelism of one copy and the number of copies: replicas when serving, data-parallel ranks in training."""

    parallelism: Parallelism
    copies: int

    @property
    def gpus(self) -> int:
        """Number of GPUs of all copies."""
        return self.parallelism.gpus * self.copies


ONE_GPU = Deployment(parallelism=UNSPLIT, copies=1)


def plan_serving(workload: InferenceWorkload, gpus: Gpus, heads: int | None, assumptions: Assumptions) -> Deployment:
    """Split a copy over the most GPUs that divide the heads, unless the parallelism is given; other GPUs get copies."""
    stages = assumptions.get(workload.pipeline_parallel, "inference.pipeline_parallel")
    tensor, count = workload.tensor_parallel, gpus.count
    if count is None:
        count = stages * (assumptions.get(None, "gpus.count") if tensor is None else tensor)
    if tensor is None:
        candidates = [t for t in range(1, count // stages + 1) if count % (t * stages) == 0 and (heads or t) % t == 0]
        tensor = max(candidates, default=1)
        assumptions.record("inference.tensor_parallel", tensor, "one copy over as many GPUs as divide the heads")
    _check_divides("inference", Parallelism(tensor=tensor, pipeline=stages), count, heads)
    return Deployment(parallelism=Parallelism(tensor=tensor, pipeline=stages), copies=count // (tensor * stages))


def plan_training(workload: TrainingWorkload, gpus: Gpus, heads: int | None, assumptions: Assumptions) -> Deployment:
    """Use the given parallelism, with the given data-parallel copies or as many as the GPUs allow."""
    tensor = assumptions.get(workload.tensor_parallel, "training.tensor_parallel")
    stages = assumptions.get(workload.pipeline_parallel, "training.pipeline_parallel")
    copies = workload.data_parallel
    if copies is None:
        count = assumptions.get(gpus.count, "gpus.count") if gpus.count or tensor * stages == 1 else tensor * stages
        copies = max(1, count // (tensor * stages))
    _check_divides(
        "training", Parallelism(tensor=tensor, pipeline=stages), gpus.count or tensor * stages * copies, heads
    )
    if gpus.count is not None and gpus.count != tensor * stages * copies:
        raise InvalidWorkload(
            "training.data_parallel", f"{tensor} x {stages} x {copies} are not the {gpus.count} GPUs given"
        )
    return Deployment(parallelism=Parallelism(tensor=tensor, pipeline=stages), copies=copies)


def _check_divides(section: str, parallelism: Parallelism, count: int, heads: int | None) -> None:
    if heads is not None and heads % parallelism.tensor:
        raise InvalidWorkload(f"{section}.tensor_parallel", f"{parallelism.tensor} does not divide {heads} heads")
    if count % parallelism.gpus:
        gpus = f"{parallelism.tensor} x {parallelism.pipeline}"
        raise InvalidWorkload("gpus.count", f"{count} is no multiple of {gpus}, the GPUs of one copy")
