"""Chooses the deployment of a workload: the given parallelism and copies, or defaults that follow from the GPUs."""

from dataclasses import dataclass, replace

from app.fit.estimator.workload import Gpus, InferenceWorkload, TrainingWorkload
from app.fit.formulas.compute import USUAL_NETWORK_GBPS, Network
from app.fit.formulas.memory import UNSPLIT, Parallelism
from app.fit.formulas.quantities import Assumptions, InvalidWorkload


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
    tensor, count, groups = workload.tensor_parallel, gpus.count, workload.data_parallel_attention or 1
    parts = stages * groups
    if count is None:
        count = parts * (assumptions.get(None, "gpus.count") if tensor is None else tensor)
    if tensor is None:
        candidates = [t for t in range(1, count // parts + 1) if count % (t * parts) == 0 and (heads or t) % t == 0]
        tensor = max(candidates, default=1)
        assumptions.record("inference.tensor_parallel", tensor, "one copy over as many GPUs as divide the heads")
    experts = _expert_ranks(workload, tensor * groups, assumptions)
    parallelism = Parallelism(tensor=tensor, pipeline=stages, expert=experts, data=groups)
    _check_divides("inference", parallelism, count, heads)
    return Deployment(parallelism=parallelism, copies=count // parallelism.gpus)


def _expert_ranks(workload: InferenceWorkload, stage_gpus: int, assumptions: Assumptions) -> int:
    """Return the GPUs that experts are dealt out over: with data-parallel attention all of a stage, else one."""
    given = workload.expert_parallel
    if given is None and (workload.data_parallel_attention or 1) > 1:
        why = "with data-parallel attention engines deal experts out over all its GPUs"
        return assumptions.record("inference.expert_parallel", stage_gpus, why)
    if given is not None and stage_gpus % given:
        detail = f"{given} does not divide tensor_parallel x data_parallel_attention, {stage_gpus}"
        raise InvalidWorkload("inference.expert_parallel", detail)
    return given or 1


PARALLEL_FIELDS = ("tensor_parallel", "pipeline_parallel", "expert_parallel", "data_parallel_attention")
"""The fields of a workload that say how a copy is split; a training has the first two."""


def requested_gpus(workload: InferenceWorkload | TrainingWorkload) -> int:
    """Return the GPUs of a copy as the workload says; 1 where it says nothing."""
    stage = workload.tensor_parallel or 1
    if isinstance(workload, InferenceWorkload):
        stage = max(stage * (workload.data_parallel_attention or 1), workload.expert_parallel or 1)
    return stage * (workload.pipeline_parallel or 1)


def check_experts(workload: InferenceWorkload, experts: int | None) -> None:
    """Raise InvalidWorkload where experts are to be dealt out that a model does not have, or not over these GPUs."""
    expert, tensor, groups = workload.expert_parallel, workload.tensor_parallel, workload.data_parallel_attention
    if expert is not None and tensor is not None and groups is not None and (tensor * groups) % expert:
        detail = f"{expert} does not divide tensor_parallel x data_parallel_attention, {tensor * groups}"
        raise InvalidWorkload("inference.expert_parallel", detail)
    for given, field in ((expert, "inference.expert_parallel"), (groups, "inference.data_parallel_attention")):
        if given is not None and given > 1 and experts is None:
            raise InvalidWorkload(field, f"{given}: the model has no experts, or their number is unknown")
    if expert is not None and experts is not None and expert > experts:
        detail = f"{expert} is more than the experts of a layer, {experts}"
        raise InvalidWorkload("inference.expert_parallel", detail)


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
        parts = (parallelism.tensor, *((parallelism.data,) if parallelism.data > 1 else ()), parallelism.pipeline)
        gpus = " x ".join(map(str, parts))
        raise InvalidWorkload("gpus.count", f"{count} is no multiple of {gpus}, the GPUs of one copy")


def assume_network(gpus: Gpus, assumptions: Assumptions) -> Gpus:
    """Return the GPUs with the network between VMs, and what each has of it, where these are not given."""
    network: Network = assumptions.get(gpus.network, "gpus.network")
    gbps = gpus.network_gbps
    if gbps is None:
        gbps = assumptions.record("gpus.network_gbps", USUAL_NETWORK_GBPS[network], f"usual of a GPU with {network}")
    return replace(gpus, network=network, network_gbps=gbps)
