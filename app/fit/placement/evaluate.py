"""Evaluate sizes: an option where the job fits, else a rejection with every failed constraint."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from math import ceil, inf
from typing import Any, NamedTuple

from app.fit.estimator.service_level import is_lenient
from app.fit.formulas.memory import UNSPLIT
from app.fit.formulas.quantities import GIB
from app.fit.placement.jobs import ServingJob
from app.fit.placement.layouts import Attempt, PartitionLimits, block_error, lay_out, partition_error
from app.fit.placement.machine import MIN_CAPABILITY, Machine, is_legacy, is_weight_only, supports_dtype
from app.fit.placement.option import BLOCKING, Placed, PlacementOption
from app.fit.placement.prepare import PreparedRequest
from app.fit.verdict import (
    Failure,
    Rejection,
    Vm,
    check_budget,
    check_eligibility,
    unknown_price_failure,
    worst_first,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckContext:
    """A job, a machine and the best attempt on it; None where no partition is possible.

    What the memory of the machine is compared with by further attempts is added to `compared`.
    """

    prepared: PreparedRequest
    machine: Machine
    attempt: Attempt | None
    compared: list[float] | None = None


class CheckFailure(NamedTuple):
    """Why a check fails: the constraint's field, a text for clients, and the amounts if it is about an amount."""

    constraint: str
    detail: str
    required: float | None = None
    available: float | None = None
    unit: str | None = None


Check = Callable[[CheckContext], CheckFailure | None]


def _check_gpu_count(context: CheckContext) -> CheckFailure | None:
    if context.machine.gpus != 0:
        return None
    return CheckFailure(constraint="gpus", required=1, available=0, unit="count", detail="has no GPU")


def _check_known_facts(context: CheckContext) -> CheckFailure | None:
    machine = context.machine
    # A data type the GPU does not support has no peak rate.
    lacks_speed = _lacks_speed(context) and _check_dtypes(context) is None
    if machine.described:
        if lacks_speed:
            return CheckFailure(constraint="gpu", detail="no source says its memory bandwidth, peak or network")
        return None
    facts: dict[str, Any] = {
        "number of GPUs": machine.gpus,
        "usable GPU memory": machine.usable_bytes,
        "memory bandwidth": machine.bandwidth if context.prepared.job.workload_kind == "inference" else 0,
        "compute capability": machine.capability,
    }
    unknown = [name for name, value in facts.items() if value is None]
    if lacks_speed:
        unknown.append("peak" if machine.network_gbps is not None else "peak, or the speed of its network")
    if not unknown:
        return None
    return CheckFailure(constraint="gpu", detail=f"no source says its {', '.join(unknown)}")


def _lacks_speed(context: CheckContext) -> bool:
    """Return whether a service level could not be searched for lack of figures of the GPU."""
    job = context.prepared.job
    return isinstance(job, ServingJob) and job.lacks_speed(context.machine)


def _check_dtypes(context: CheckContext) -> CheckFailure | None:
    for name, dtype in context.prepared.job.required_dtypes:
        if is_legacy(context.machine) and not context.prepared.request.constraints.allow_legacy:
            return CheckFailure(
                constraint="allow_legacy", detail="its GPU is for graphics, or too old for language models"
            )
        # Weight-only kernels help where weights are narrow; a KV cache or a training recipe has none.
        dequantized = name == "dtype" and is_weight_only(context.machine, dtype)
        if not supports_dtype(context.machine, dtype) and not dequantized:
            least, chip = MIN_CAPABILITY[dtype], context.machine.capability
            what = f"keeps no KV cache in {dtype}" if name == "kv_dtype" else f"does not compute in {dtype}"
            return CheckFailure(constraint=name, detail=f"{what}: its GPU is {chip}, {least} is needed")
    return None


def _check_split(
    context: CheckContext, find_error: Callable[[PartitionLimits, int, int], str | None]
) -> CheckFailure | None:
    """Check that the requested tensor ranks divide heads and widths, or that each gets whole quantization blocks."""
    parallelism = context.prepared.parallelism
    expert_parts = max(1, parallelism.stage_gpus // parallelism.expert)
    error = find_error(context.prepared.job.partition, parallelism.tensor, expert_parts)
    return CheckFailure(constraint="tensor_parallel", detail=error) if error else None


def _check_groups(context: CheckContext) -> CheckFailure | None:
    """Check that experts can be dealt out, and groups be formed, as requested."""
    partition, limits = context.prepared.job.partition, context.prepared.limits
    if context.attempt is not None or (partition.expert is None and partition.data is None) or _lacks_speed(context):
        return None
    name = "expert_parallel" if partition.data is None else "data_parallel_attention"
    wanted = f"experts over {partition.expert} GPUs" if partition.data is None else f"{partition.data} groups"
    return CheckFailure(
        constraint=name, detail=f"no split of the model with {wanted} is possible on {limits.max_nodes} VMs or fewer"
    )


def _check_layers(context: CheckContext) -> CheckFailure | None:
    """Check that each requested pipeline stage has a layer."""
    layers, stages = context.prepared.job.partition.layers, context.prepared.parallelism.pipeline
    if layers is None or stages <= layers:
        return None
    detail = f"{layers} layers cannot be cut into {stages} stages"
    return CheckFailure(constraint="pipeline_parallel", required=stages, available=layers, unit="layers", detail=detail)


def _check_fractional_gpu(context: CheckContext) -> CheckFailure | None:
    """Check that a fraction of a GPU is enough: fractions neither pool their memory nor communicate."""
    if not context.machine.fractional:
        return None
    part, gpus = float(context.machine.gpus or 0), context.prepared.parallelism.gpus
    if gpus > 1:
        detail = f"has {part:.4g} of a GPU, which works alone; the split needs {gpus} GPUs"
        return CheckFailure(constraint="gpus", required=gpus, available=part, unit="count", detail=detail)
    if context.prepared.limits.max_nodes > 1 and context.attempt is not None and context.attempt.lacks_memory:
        return CheckFailure(constraint="gpus", detail=f"has {part:.4g} of a GPU, and parts do not pool")
    return None


def _check_nvlink_domain(context: CheckContext) -> CheckFailure | None:
    """Check that the tensor ranks fit in one VM or rack, or in one NVLink domain where that is required."""
    limits, machine = context.prepared.limits, context.machine
    widest = machine.max_tensor_ranks(limits.max_nodes, tp_in_nvlink=limits.tp_in_nvlink)
    requested = context.prepared.parallelism.tensor
    if requested > widest and not machine.fractional:
        detail = f"{requested} tensor ranks must share NVLink or one VM, and {widest} can"
        return CheckFailure(
            constraint="tensor_parallel", required=requested, available=widest, unit="GPUs", detail=detail
        )
    relaxed = _relaxed_attempt(context, "NVLINK_DOMAIN")
    if relaxed is None:
        return None
    detail = f"needs {relaxed.parallelism.tensor} tensor ranks, and {widest} GPUs share NVLink"
    return CheckFailure(
        constraint="tp_in_nvlink", required=relaxed.parallelism.tensor, available=widest, unit="GPUs", detail=detail
    )


def _check_apart(context: CheckContext, code: str) -> CheckFailure | None:
    """Check that VMs may work together where they have to.

    A job, or a serving replica, may need InfiniBand, and one with targets a network whose speed is known.
    """
    relaxed = _relaxed_attempt(context, code)
    if relaxed is None:
        return None
    constraint, finding = "max_nodes", "no source says how fast the network between them is"
    if code == "NO_INFINIBAND":
        without = context.machine.infiniband is False
        constraint, finding = (
            "require_infiniband",
            "has no InfiniBand" if without else "no source says that it has InfiniBand",
        )
    needs = f"needs {relaxed.nodes} VMs"
    if not context.prepared.limits.replicas_exchange_data:
        needs = f"one replica needs {lay_out(relaxed.parallelism, context.machine.ranks).nodes} VMs"
    return CheckFailure(constraint=constraint, detail=f"{needs}, and {finding}")


def _relaxed_attempt(context: CheckContext, code: str) -> Attempt | None:
    """Return the attempt that is only possible without the limit behind a failure code; None if the limit is no reason.

    The attempt fits, or nothing can be laid out within the limit at all.
    """
    if context.attempt is not None and context.attempt.fits:
        return None
    relaxed = dict(context.prepared.limits.relaxed(context.machine)).get(code)
    if relaxed is None:
        return None
    attempt = context.prepared.job.find_attempt(context.machine, relaxed, context.compared)
    return attempt if attempt is not None and (attempt.fits or context.attempt is None) else None


def _check_max_nodes(context: CheckContext) -> CheckFailure | None:
    """Check that the requested parallelism, replicas and load need no more VMs than are allowed."""
    machine, limits = context.machine, context.prepared.limits
    load = context.attempt.load if context.attempt is not None else None
    if load is not None and load.needed_nodes > (allowed := limits.usable_nodes(machine)):
        detail = f"the load needs {load.needed_nodes} VMs, and {allowed} can be used"
        return CheckFailure(
            constraint="max_nodes", required=load.needed_nodes, available=allowed, unit="VMs", detail=detail
        )
    parallelism, replicas = context.prepared.parallelism, context.prepared.job.min_replicas
    if parallelism == UNSPLIT and replicas == 1:
        return None
    if parallelism.tensor > machine.max_tensor_ranks(parallelism.tensor, tp_in_nvlink=limits.tp_in_nvlink):
        return None  # more VMs would not help: that is a failure of the NVLink domain
    layout = lay_out(parallelism, machine.ranks)
    needed = ceil(replicas / layout.replicas) * layout.nodes
    allowed = limits.usable_nodes(machine)
    if needed <= allowed:
        return None
    detail = f"the split needs {needed} VMs, and {allowed} can be used"
    return CheckFailure(constraint="max_nodes", required=needed, available=allowed, unit="VMs", detail=detail)


def _check_gpu_memory(context: CheckContext) -> CheckFailure | None:
    attempt = context.attempt
    if attempt is None or not attempt.lacks_memory:
        return None
    need, budget = attempt.required_bytes / GIB, attempt.budget_bytes / GIB
    where = f"each of {attempt.gpus} GPUs" if attempt.gpus > 1 else "one GPU"
    detail = f"needs {need:.1f} GiB on {where}, and {budget:.1f} may be used"
    return CheckFailure(constraint="gpu_memory", required=need, available=budget, unit="GiB", detail=detail)


def _check_target(context: CheckContext, field: str) -> CheckFailure | None:
    """Check that a request alone meets a target: by the low end of its time unless the target is stricter."""
    load = context.attempt.load if context.attempt is not None else None
    target = getattr(load.level, field) if load is not None else None
    if load is None or target is None or load.replica.sequences:
        return None
    deciding = load.copy.deciding(1, load.level)
    what, takes, least = "a token", load.copy.step_range(1), deciding.step
    if field == "ttft_ms":
        what, takes, least = "the first token", load.copy.first_token_range(1), deciding.first_token
    if is_lenient(load.copy, load.level):
        least = takes.low
    if least * 1e3 <= target:
        return None
    low, mid, high = (end * 1e3 for end in (takes.low, takes.mid, takes.high))
    detail = f"{what} takes about {mid:.4g} ms ({low:.4g} to {high:.4g}) even for one request at a time, "
    if load.level.confidence is not None:
        detail += f"{least * 1e3:.4g} at {load.level.confidence}, "
    detail += f"the target is {target:g}"
    return CheckFailure(constraint=field, required=least * 1e3, available=target, unit="ms", detail=detail)


def _check_host_memory(context: CheckContext) -> CheckFailure | None:
    machine = context.machine
    if context.attempt is None or (machine.described and machine.memory_bytes is None):
        return None
    required = context.prepared.job.host_bytes(machine, context.attempt)
    return _lacks_on_host("memory", required, machine.memory_bytes)


def _check_local_disk(context: CheckContext) -> CheckFailure | None:
    machine, required = context.machine, context.prepared.request.constraints.checkpoint_on_local_disk
    if not required or (machine.described and machine.disk_bytes is None):
        return None
    return _lacks_on_host("local_disk", context.prepared.job.disk_bytes, machine.disk_bytes)


def _lacks_on_host(name: str, required: float, available: float | None) -> CheckFailure | None:
    """Check what a VM has besides GPUs: memory to load the model, local disk for a checkpoint."""
    needs = f"needs {required / GIB:.1f} GiB of {name.replace('_', ' ')}"
    if available is None:
        detail = f"{needs}, and no source says what it has"
        return CheckFailure(constraint=name, required=required / GIB, unit="GiB", detail=detail)
    if required <= available:
        return None
    detail = f"{needs}, has {available / GIB:.1f}"
    return CheckFailure(constraint=name, required=required / GIB, available=available / GIB, unit="GiB", detail=detail)


GPU_CHECKS: dict[str, Check] = {
    "GPU_COUNT": _check_gpu_count,
    "GPU_UNKNOWN": _check_known_facts,
    "DTYPE_UNSUPPORTED": _check_dtypes,
    "TP_HEADS": partial(_check_split, find_error=partition_error),
    "TP_BLOCKS": partial(_check_split, find_error=block_error),
    "EP_GROUPS": _check_groups,
    "PP_LAYERS": _check_layers,
    "FRACTIONAL_GPU": _check_fractional_gpu,
    "NVLINK_DOMAIN": _check_nvlink_domain,
    "NO_INFINIBAND": partial(_check_apart, code="NO_INFINIBAND"),
    "NETWORK_UNKNOWN": partial(_check_apart, code="NETWORK_UNKNOWN"),
    "MAX_NODES": _check_max_nodes,
    "GPU_MEMORY_PER_GPU": _check_gpu_memory,
    "TPOT": partial(_check_target, field="tpot_ms"),
    "TTFT": partial(_check_target, field="ttft_ms"),
}
HOST_CHECKS: dict[str, Check] = {"RAM": _check_host_memory, "LOCAL_DISK": _check_local_disk}
CHECKS = GPU_CHECKS | HOST_CHECKS
"""All checks of a placement by the code of their failure, in the order they are made."""


def find_failures(context: CheckContext, checks: Mapping[str, Check] = CHECKS) -> Iterator[Failure]:
    """Yield the failure of every check. Where GPUs are missing or unknown, no further check makes sense."""
    for code, check in checks.items():
        failure = check(context)
        if failure is not None:
            yield Failure(code=code, **failure._asdict())
            if code in BLOCKING:
                return


def _place(machine: Machine, prepared: PreparedRequest, compared: list[float]) -> Placed:
    attempt = prepared.job.find_attempt(machine, prepared.limits, compared) if machine.gpus else None
    context = CheckContext(prepared=prepared, machine=machine, attempt=attempt, compared=compared)
    return Placed(prepared.job, machine, attempt, tuple(find_failures(context, GPU_CHECKS)))


Alike = dict[tuple[Any, ...], tuple[Failure, ...]]
"""What sizes fail, of time and budget aside, by what decides it."""


def evaluate(
    vm: Vm, machine: Machine, prepared: PreparedRequest, alike: Alike | None = None
) -> PlacementOption | Rejection:
    """Evaluate one size by every check, not only up to the first failure; by time and budget only if those pass.

    A job is placed once on all machines with the same GPUs, and memory with which all is the same. Sizes that fail the
    same share their failures where `alike` is that of all.
    """
    constraints, terms = prepared.request.constraints, prepared.size_constraints
    placed = prepared.kept.find(machine, "placed", partial(_place, machine, prepared), alone=prepared.alone)
    memory = machine.memory_bytes
    deciding = (
        *(id(placed), vm.status, vm.region is None, vm.in_every_region, vm.verified),
        memory if memory is None or memory < placed.host_bytes else inf,
        machine.disk_bytes if constraints.checkpoint_on_local_disk else None,
    )
    failures = alike.get(deciding) if alike is not None else None
    if failures is None:
        failing = [*check_eligibility(vm, terms), *placed.failures]
        if not placed.blocked:
            context = CheckContext(prepared=prepared, machine=machine, attempt=placed.attempt)
            failing += find_failures(context, HOST_CHECKS)
        failures = worst_first(failing)
        if alike is not None:
            alike[deciding] = failures
    if failures or placed.attempt is None:
        return Rejection(vm=vm, failures=failures)
    option = PlacementOption(vm=vm, machine=machine, attempt=placed.attempt, placed=placed, prepared=prepared)
    bounds = (constraints.max_hours, constraints.budget_usd_per_month, constraints.budget_usd_per_job)
    if any(bound is not None for bound in bounds):  # to know how fast it is takes longer than all else
        failures = worst_first([*_time_failures(option), *_budget_failures(option)])
    return Rejection(vm=vm, failures=failures) if failures else option


def _time_failures(option: PlacementOption) -> Iterator[Failure]:
    """Yield the failure of an option that takes longer than is allowed."""
    most = option.prepared.request.constraints.max_hours
    hours = option.speed.hours if option.speed is not None else None
    if most is None:
        return
    if hours is None:
        yield Failure("max_hours", "TIME", "no source says how fast its GPU, or the network of its VMs, is")
    elif hours.mid > most:
        yield Failure(
            constraint="max_hours",
            code="TIME",
            required=hours.mid,
            available=most,
            unit="hours",
            detail=f"takes about {hours.mid:.1f} hours on {option.attempt.nodes} VMs, {most:g} are allowed",
        )


def _budget_failures(option: PlacementOption) -> Iterator[Failure]:
    terms = option.prepared.size_constraints
    yield from check_budget(option.costs[terms.purchase].usd_per_month, terms)
    budget, cost = option.prepared.request.constraints.budget_usd_per_job, option.usd_per_job
    if budget is None:
        return
    if option.usd_per_hour is None:
        yield unknown_price_failure("budget_usd_per_job", terms)
    elif cost is None:
        detail = "no source says how fast its GPU, or the network of its VMs, is, so the cost of the job is unknown"
        yield Failure("budget_usd_per_job", "TIME", detail)
    elif cost > budget:
        yield Failure(
            constraint="budget_usd_per_job",
            code="BUDGET",
            required=cost,
            available=float(budget),
            unit="USD",
            detail=f"the job costs about {cost:.2f} USD, the budget is {budget:.2f}",
        )
