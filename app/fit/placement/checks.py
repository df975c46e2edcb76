"""The checks of a placement, each a function of its own, in one table with their codes."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import ceil

from app.fit.formulas.memory import UNSPLIT, Parallelism
from app.fit.formulas.quantities import GIB
from app.fit.placement.layouts import Attempt, block_error, lay_out, partition_error
from app.fit.placement.machine import MIN_CAPABILITY, Machine, is_legacy, is_weight_only, supports_dtype
from app.fit.placement.prepare import Job, PreparedRequest
from app.fit.placement.request import Constraints
from app.fit.verdict import Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckContext:
    """A job on one kind of VM, and the best attempt there is; None where the model cannot be cut as it must."""

    prepared: PreparedRequest
    machine: Machine
    attempt: Attempt | None

    @property
    def job(self) -> Job:
        """The workload."""
        return self.prepared.job

    @property
    def constraints(self) -> Constraints:
        """What an option must be."""
        return self.prepared.request.constraints

    @property
    def parallelism(self) -> Parallelism:
        """The split that is asked for; 1 where nothing is."""
        return self.prepared.parallelism


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckFailure:
    """What a check found: the field of the constraint, what it says, and the amounts where it is about one."""

    constraint: str
    detail: str
    required: float | None = None
    available: float | None = None
    unit: str | None = None


Check = Callable[[CheckContext], CheckFailure | None]


def _check_heads(context: CheckContext) -> CheckFailure | None:
    """Heads, KV heads and widths must divide over the tensor ranks that are asked for."""
    why = partition_error(context.job.partition, context.parallelism.tensor)
    return CheckFailure(constraint="tensor_parallel", detail=why) if why else None


def _check_blocks(context: CheckContext) -> CheckFailure | None:
    """Each of the tensor ranks that are asked for must get whole blocks of quantized weights."""
    why = block_error(context.job.partition, context.parallelism.tensor)
    return CheckFailure(constraint="tensor_parallel", detail=why) if why else None


def _check_layers(context: CheckContext) -> CheckFailure | None:
    """Each stage that is asked for must have a layer."""
    layers, stages = context.job.partition.layers, context.parallelism.pipeline
    if layers is None or stages <= layers:
        return None
    said = f"{layers} layers cannot be cut into {stages} stages"
    return CheckFailure(constraint="pipeline_parallel", required=stages, available=layers, unit="layers", detail=said)


def _check_fractional_gpu(context: CheckContext) -> CheckFailure | None:
    """A part of a GPU works alone: it has no second rank, and parts do not pool."""
    if not context.machine.fractional:
        return None
    part = float(context.machine.gpus or 0)
    if context.parallelism.gpus > 1:
        said = f"has {part:.4g} of a GPU, which works alone; the split needs {context.parallelism.gpus} GPUs"
        return CheckFailure(
            constraint="gpus", required=context.parallelism.gpus, available=part, unit="count", detail=said
        )
    if context.constraints.max_nodes > 1 and context.attempt is not None and not context.attempt.fits:
        return CheckFailure(constraint="gpus", detail=f"has {part:.4g} of a GPU, and parts do not pool")
    return None


def _check_nvlink_domain(context: CheckContext) -> CheckFailure | None:
    """A layer must be cut over GPUs that one VM or rack joins, or NVLink where it must stay in it."""
    limits, machine = context.prepared.limits, context.machine
    widest = machine.max_tensor_ranks(limits.max_nodes, tp_in_nvlink=limits.tp_in_nvlink)
    asked = context.parallelism.tensor
    if asked > widest and not machine.fractional:
        said = f"{asked} tensor ranks must share NVLink or one VM, and {widest} can"
        return CheckFailure(constraint="tensor_parallel", required=asked, available=widest, unit="GPUs", detail=said)
    looser = _relaxed_attempt(context, "NVLINK_DOMAIN")
    if looser is None:
        return None
    said = f"needs {looser.parallelism.tensor} tensor ranks, and {widest} GPUs share NVLink"
    return CheckFailure(
        constraint="tp_in_nvlink", required=looser.parallelism.tensor, available=widest, unit="GPUs", detail=said
    )


def _check_infiniband(context: CheckContext) -> CheckFailure | None:
    """VMs that train together must have InfiniBand, where one does not do."""
    looser = _relaxed_attempt(context, "NO_INFINIBAND")
    if looser is None:
        return None
    known = "has no InfiniBand" if context.machine.infiniband is False else "no source says that it has InfiniBand"
    return CheckFailure(constraint="require_infiniband", detail=f"needs {looser.nodes} VMs, and {known}")


def _relaxed_attempt(context: CheckContext, code: str) -> Attempt | None:
    """The attempt that fits once a limit is lifted, where none does within it."""
    if context.attempt is not None and context.attempt.fits:
        return None
    looser = dict(context.prepared.limits.relaxed(context.machine)).get(code)
    attempt = context.job.find_attempt(context.machine, looser) if looser is not None else None
    return attempt if attempt is not None and attempt.fits else None


def _check_max_nodes(context: CheckContext) -> CheckFailure | None:
    """A split that is asked for, with its copies, must have as many VMs as are allowed."""
    machine, limits = context.machine, context.prepared.limits
    if context.parallelism == UNSPLIT and context.job.min_replicas == 1:
        return None
    if context.parallelism.tensor > machine.max_tensor_ranks(
        context.parallelism.tensor, tp_in_nvlink=limits.tp_in_nvlink
    ):
        return None
    way = lay_out(context.parallelism, machine.ranks)
    needed = ceil(context.job.min_replicas / way.replicas) * way.nodes
    allowed = limits.usable_nodes(machine)
    if needed <= allowed:
        return None
    said = f"the split needs {needed} VMs, and {allowed} can be used"
    return CheckFailure(constraint="max_nodes", required=needed, available=allowed, unit="VMs", detail=said)


def find_failures(context: CheckContext) -> Iterator[Failure]:
    """Tell every check that fails; without GPUs of known facts there is nothing else to check."""
    for code, check in CHECKS.items():
        short = check(context)
        if short is not None:
            yield Failure(
                constraint=short.constraint,
                code=code,
                required=short.required,
                available=short.available,
                unit=short.unit,
                detail=short.detail,
            )
            if code in _BLOCKING:
                return


def _check_gpu_count(context: CheckContext) -> CheckFailure | None:
    if context.machine.gpus != 0:
        return None
    return CheckFailure(constraint="gpus", required=1, available=0, unit="count", detail="has no GPU")


def _check_known_facts(context: CheckContext) -> CheckFailure | None:
    machine = context.machine
    if machine.described:
        return None
    facts = {
        "number of GPUs": machine.gpus,
        "usable GPU memory": machine.usable_bytes,
        "memory bandwidth": machine.bandwidth if context.job.workload_kind == "inference" else 0,
        "compute capability": machine.capability,
    }
    unknown = [name for name, value in facts.items() if value is None]
    if not unknown:
        return None
    return CheckFailure(constraint="gpu", detail=f"no source says its {', '.join(unknown)}")


def _check_dtypes(context: CheckContext) -> CheckFailure | None:
    for name, kind in context.job.required_dtypes:
        if is_legacy(context.machine) and not context.constraints.allow_legacy:
            return CheckFailure(
                constraint="allow_legacy", detail="its GPU is for graphics, or too old for language models"
            )
        if not supports_dtype(context.machine, kind) and not (
            name == "dtype" and is_weight_only(context.machine, kind)
        ):
            least, chip = MIN_CAPABILITY[kind], context.machine.capability
            what = f"keeps no KV cache in {kind}" if name == "kv_dtype" else f"does not compute in {kind}"
            return CheckFailure(constraint=name, detail=f"{what}: its GPU is {chip}, {least} is needed")
    return None


def _check_gpu_memory(context: CheckContext) -> CheckFailure | None:
    attempt = context.attempt
    if attempt is None or attempt.fits:
        return None
    need, budget = attempt.required_bytes / GIB, attempt.budget_bytes / GIB
    where = f"each of {attempt.gpus} GPUs" if attempt.gpus > 1 else "one GPU"
    said = f"needs {need:.1f} GiB on {where}, and {budget:.1f} may be used"
    return CheckFailure(constraint="gpu_memory", required=need, available=budget, unit="GiB", detail=said)


def _check_host_memory(context: CheckContext) -> CheckFailure | None:
    if context.attempt is None:
        return None
    return _check_host_resource(
        context, "memory", context.job.host_bytes(context.machine, context.attempt), context.machine.memory_bytes
    )


def _check_local_disk(context: CheckContext) -> CheckFailure | None:
    if not context.constraints.checkpoint_on_local_disk:
        return None
    return _check_host_resource(context, "local_disk", context.job.disk_bytes, context.machine.disk_bytes)


def _check_host_resource(
    context: CheckContext, name: str, required: float, available: float | None
) -> CheckFailure | None:
    """What a VM has beside its GPUs: memory to load a model through, local disk for a checkpoint."""
    needs = f"needs {required / GIB:.1f} GiB of {name.replace('_', ' ')}"
    if available is None:
        said = f"{needs}, and no source says what it has"
        short = CheckFailure(constraint=name, required=required / GIB, unit="GiB", detail=said)
        return None if context.machine.described else short
    if required <= available:
        return None
    said = f"{needs}, has {available / GIB:.1f}"
    return CheckFailure(constraint=name, required=required / GIB, available=available / GIB, unit="GiB", detail=said)


CHECKS: dict[str, Check] = {
    "GPU_COUNT": _check_gpu_count,
    "GPU_UNKNOWN": _check_known_facts,
    "DTYPE_UNSUPPORTED": _check_dtypes,
    "TP_HEADS": _check_heads,
    "TP_BLOCKS": _check_blocks,
    "PP_LAYERS": _check_layers,
    "FRACTIONAL_GPU": _check_fractional_gpu,
    "NVLINK_DOMAIN": _check_nvlink_domain,
    "NO_INFINIBAND": _check_infiniband,
    "MAX_NODES": _check_max_nodes,
    "GPU_MEMORY_PER_GPU": _check_gpu_memory,
    "RAM": _check_host_memory,
    "LOCAL_DISK": _check_local_disk,
}
"""Every check of a placement by its code, in their order."""

_BLOCKING = {"GPU_COUNT", "GPU_UNKNOWN"}
