"""Evaluate sizes: an option where the job fits, else a rejection with every failed constraint."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from math import ceil, inf
from typing import Any

from app.cancellation import stop_if_cancelled
from app.fit.estimator.service_level import is_lenient
from app.fit.formulas.memory import UNSPLIT
from app.fit.formulas.quantities import GIB
from app.fit.placement.jobs import ServingJob
from app.fit.placement.layouts import Attempt, block_error, lay_out, partition_error
from app.fit.placement.machine import (
    KERNEL_CAPABILITY,
    MIN_CAPABILITY,
    Machine,
    is_legacy,
    is_weight_only,
    supports_dtype,
)
from app.fit.placement.option import BLOCKING, Placed, PlacementOption, rounded
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
from app.nearest import join_with_or


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckContext:
    """A job, a machine and the best attempt on it; None where no partition is possible.

    What the memory of the machine is compared with by further attempts is added to `compared`.
    """

    prepared: PreparedRequest
    machine: Machine
    attempt: Attempt | None
    compared: list[float] | None = None


Check = Callable[[CheckContext, str], Failure | tuple[Failure, ...] | None]
"""Returns why a check fails, with the code that it gets: the constraint's field, a text, and amounts if it has any.

Several constraints may fail a check: types of weights and of the KV cache.
"""


def _check_gpu_count(context: CheckContext, code: str) -> Failure | None:
    return Failure("gpus", code, "has no GPU", 1, 0, "count") if context.machine.gpus == 0 else None


def _check_known_facts(context: CheckContext, code: str) -> Failure | None:
    machine = context.machine
    # A data type the GPU does not support has no peak rate.
    lacks_speed = _lacks_speed(context) and not _check_dtypes(context, code)
    if machine.described:
        return Failure("gpu", code, "no source states its memory bandwidth, peak or network") if lacks_speed else None
    facts: dict[str, Any] = {
        "number of GPUs": machine.gpus,
        "usable GPU memory": machine.usable_bytes,
        "memory bandwidth": machine.bandwidth if context.prepared.job.workload_kind == "inference" else 0,
        "compute capability": machine.capability,
    }
    unknown = [name for name, value in facts.items() if value is None]
    if lacks_speed:
        unknown += ["peak"] if machine.network_gbps is not None else ["peak", "the speed of its network"]
    return Failure("gpu", code, f"no source states its {join_with_or(unknown)}") if unknown else None


def _lacks_speed(context: CheckContext) -> bool:
    """Return whether a service level could not be searched for lack of figures of the GPU."""
    job = context.prepared.job
    return isinstance(job, ServingJob) and job.lacks_speed(context.machine)


def _check_dtypes(context: CheckContext, code: str) -> tuple[Failure, ...]:
    return tuple(_dtype_failures(context, code))


def _dtype_failures(context: CheckContext, code: str) -> Iterator[Failure]:
    """Yield the failure of a GPU for graphics, and of each type that the GPU does not compute in."""
    job = context.prepared.job
    if is_legacy(context.machine) and not context.prepared.request.constraints.allow_legacy:
        yield Failure("allow_legacy", code, "its GPU is for graphics, or too old for language models")
    for name, dtype in job.required_dtypes:
        # Weight-only kernels help where weights are narrow; a KV cache or a training recipe has none.
        dequantized = name == "dtype" and is_weight_only(context.machine, dtype)
        if not supports_dtype(context.machine, dtype) and not dequantized:
            least, chip = MIN_CAPABILITY[dtype], context.machine.capability
            what = f"does not compute in {dtype}"
            if isinstance(job, ServingJob) and name == "kv_dtype":
                what = f"keeps no KV cache in {job.kv_dtype}"
            what = f"has no kernels for weights in {dtype}" if dtype in KERNEL_CAPABILITY else what
            yield Failure(name, code, f"{what}: its GPU is of compute capability {chip}, and {least} is needed")


def _check_split(context: CheckContext, code: str) -> Failure | None:
    """Check that the requested tensor ranks divide heads and widths, or that each gets whole quantization blocks."""
    parallelism, find_error = context.prepared.parallelism, partition_error if code == "TP_HEADS" else block_error
    expert_parts = max(1, parallelism.stage_gpus // parallelism.expert)
    error = find_error(context.prepared.job.partition, parallelism.tensor, expert_parts)
    return Failure("tensor_parallel", code, error) if error else None


def _check_groups(context: CheckContext, code: str) -> Failure | None:
    """Check that experts can be distributed, and groups be formed, as requested."""
    partition, limits = context.prepared.job.partition, context.prepared.limits
    if context.attempt is not None or (partition.expert is None and partition.data is None) or _lacks_speed(context):
        return None
    name = "expert_parallel" if partition.data is None else "data_parallel_attention"
    wanted = f"experts over {partition.expert} GPUs" if partition.data is None else f"{partition.data} groups"
    where = f"{limits.max_nodes} VMs or fewer" if limits.max_nodes > 1 else "1 VM"
    return Failure(name, code, f"no split of the model with {wanted} is possible on {where}")


def _check_layers(context: CheckContext, code: str) -> Failure | None:
    """Check that each requested pipeline stage has a layer."""
    layers, stages = context.prepared.job.partition.layers, context.prepared.parallelism.pipeline
    if layers is None or stages <= layers:
        return None
    detail = f"{layers} layers cannot be cut into {stages} stages"
    return Failure("pipeline_parallel", code, detail, stages, layers, "layers")


def _check_fractional_gpu(context: CheckContext, code: str) -> Failure | None:
    """Check that a fraction of a GPU is enough: fractions neither pool their memory nor communicate."""
    if not context.machine.fractional:
        return None
    part, gpus = float(context.machine.gpus or 0), context.prepared.parallelism.gpus
    if gpus > 1:
        detail = f"has {part:.4g} of a GPU, which works alone; the split needs {gpus} GPUs"
        return Failure("gpus", code, detail, gpus, part, "count")
    if context.prepared.limits.max_nodes > 1 and context.attempt is not None and context.attempt.lacks_memory:
        return Failure("gpus", code, f"has {part:.4g} of a GPU, and parts do not pool")
    return None


def _check_nvlink_domain(context: CheckContext, code: str) -> Failure | None:
    """Check that the tensor ranks fit in one VM or rack, or in one NVLink domain where that is required."""
    limits, machine = context.prepared.limits, context.machine
    widest = machine.max_tensor_ranks(limits.max_nodes, tp_in_nvlink=limits.tp_in_nvlink)
    requested = context.prepared.parallelism.tensor
    if requested > widest and not machine.fractional:
        within = "NVLink" if limits.tp_in_nvlink else "NVLink or one VM"
        detail = f"{requested} tensor ranks must share {within}, and {widest} can"
        return Failure("tensor_parallel", code, detail, requested, widest, "GPUs")
    relaxed = _relaxed_attempt(context, code)
    if relaxed is None:
        return None
    share = f"{widest} GPUs share NVLink" if widest > 1 else "its GPUs share no NVLink"
    detail = f"needs {relaxed.parallelism.tensor} tensor ranks, and {share}"
    return Failure("tp_in_nvlink", code, detail, relaxed.parallelism.tensor, widest, "GPUs")


def _check_apart(context: CheckContext, code: str) -> Failure | None:
    """Check that VMs may work together where they have to.

    A job, or a serving replica, may need InfiniBand, and one with targets a network whose speed is known.
    """
    relaxed = _relaxed_attempt(context, code)
    if relaxed is None:
        return None
    constraint, finding = "max_nodes", "no source says how fast the network between them is"
    if code == "NO_INFINIBAND":
        without = context.machine.infiniband is False
        constraint = "require_infiniband"
        finding = "has no InfiniBand" if without else "no source says that it has InfiniBand"
    needs = f"needs {relaxed.nodes} VMs"
    if not context.prepared.limits.replicas_exchange_data:
        needs = f"one replica needs {lay_out(relaxed.parallelism, context.machine.ranks).nodes} VMs"
    return Failure(constraint, code, f"{needs}, and {finding}")


def _relaxed_attempt(context: CheckContext, code: str) -> Attempt | None:
    """Return the attempt that is only possible without the limit behind a failure code; None if the limit is no reason.

    The attempt fits, or nothing can be laid out within the limit at all.
    """
    if context.attempt is not None and context.attempt.fits:
        return None
    relaxed = context.prepared.limits.relaxed(context.machine, code)
    if relaxed is None:
        return None
    attempt = context.prepared.job.find_attempt(context.machine, relaxed, context.compared)
    return attempt if attempt is not None and (attempt.fits or context.attempt is None) else None


def _check_max_nodes(context: CheckContext, code: str) -> Failure | None:
    """Check that the requested parallelism, replicas and load need no more VMs than are allowed."""
    machine, limits = context.machine, context.prepared.limits
    allowed, load = limits.usable_nodes(machine), context.attempt.load if context.attempt is not None else None
    if load is not None and load.needed_nodes > allowed:
        detail = f"the load needs {load.needed_nodes} VMs, and {allowed} can be used"
        return Failure("max_nodes", code, detail, load.needed_nodes, allowed, "VMs")
    parallelism, replicas = context.prepared.parallelism, context.prepared.job.min_replicas
    if parallelism == UNSPLIT and replicas == 1:
        return None
    if parallelism.tensor > machine.max_tensor_ranks(parallelism.tensor, tp_in_nvlink=limits.tp_in_nvlink):
        return None  # more VMs would not help: that is a failure of the NVLink domain
    layout = lay_out(parallelism, machine.ranks)
    needed = ceil(replicas / layout.replicas) * layout.nodes
    detail = f"the split needs {needed} VMs, and {allowed} can be used"
    return Failure("max_nodes", code, detail, needed, allowed, "VMs") if needed > allowed else None


def _check_gpu_memory(context: CheckContext, code: str) -> Failure | None:
    attempt = context.attempt
    if attempt is None or not attempt.lacks_memory:
        return None
    need, budget = attempt.required_bytes / GIB, attempt.budget_bytes / GIB
    where = f"each of {attempt.gpus} GPUs" if attempt.gpus > 1 else "one GPU"
    needed, usable = _apart(need, budget)
    detail = f"needs {needed} GiB on {where}, but only {usable} GiB is usable"
    return Failure("gpu_memory", code, detail, need, budget, "GiB")


def _check_target(context: CheckContext, code: str) -> Failure | None:
    """Check that a request alone meets a target: by the low end of its time unless the target is stricter."""
    field, load = f"{code.lower()}_ms", context.attempt.load if context.attempt is not None else None
    target = getattr(load.level, field) if load is not None else None
    if load is None or target is None or load.replica.sequences:
        return None
    deciding = load.copy.deciding(1, load.level)
    what, takes, least = "a token", load.copy.step_range(1), deciding.step
    if code == "TTFT":
        what, takes, least = "the first token", load.copy.first_token_range(1), deciding.first_token
    if is_lenient(load.copy, load.level):
        least = takes.low
    if least * 1e3 <= target:
        return None
    low, mid, high, decides = (rounded(end * 1e3, digits=4) for end in (takes.low, takes.mid, takes.high, least))
    detail = f"{what} takes about {mid} ms ({low} to {high}) even for one request at a time, "
    if load.level.confidence is not None:
        detail += f"{decides} at {load.level.confidence}, "
    return Failure(field, code, f"{detail}the target is {target:g}", least * 1e3, target, "ms")


def _check_host(context: CheckContext, code: str) -> Failure | None:
    """Check what a VM has besides GPUs: memory to load the model, local disk for a checkpoint if it must hold one."""
    machine, job = context.machine, context.prepared.job
    if code == "RAM":
        required = job.host_bytes(machine, context.attempt) if context.attempt is not None else None
        name, available = "memory", machine.memory_bytes
    else:
        required = job.disk_bytes if context.prepared.request.constraints.checkpoint_on_local_disk else None
        name, available = "local_disk", machine.disk_bytes
    if required is None or (available is None and machine.described):
        return None
    needs = f"needs {required / GIB:.1f} GiB of {name.replace('_', ' ')}"
    if available is None:
        return Failure(name, code, f"{needs}, and no source says what it has", required / GIB, unit="GiB")
    needed, present = _apart(required / GIB, available / GIB)
    detail = f"needs {needed} GiB of {name.replace('_', ' ')}, has {present}"
    return Failure(name, code, detail, required / GIB, available / GIB, "GiB") if required > available else None


_MOST_DECIMALS = 6


def _apart(amount: float, other: float) -> tuple[str, str]:
    """Return two amounts with one decimal, and as many more as make them differ."""
    decimals = next((count for count in range(1, _MOST_DECIMALS) if f"{amount:.{count}f}" != f"{other:.{count}f}"), 1)
    return f"{amount:.{decimals}f}", f"{other:.{decimals}f}"


GPU_CHECKS: dict[str, Check] = {
    "GPU_COUNT": _check_gpu_count,
    "GPU_UNKNOWN": _check_known_facts,
    "DTYPE_UNSUPPORTED": _check_dtypes,
    "TP_HEADS": _check_split,
    "TP_BLOCKS": _check_split,
    "EP_GROUPS": _check_groups,
    "PP_LAYERS": _check_layers,
    "FRACTIONAL_GPU": _check_fractional_gpu,
    "NVLINK_DOMAIN": _check_nvlink_domain,
    "NO_INFINIBAND": _check_apart,
    "NETWORK_UNKNOWN": _check_apart,
    "MAX_NODES": _check_max_nodes,
    "GPU_MEMORY_PER_GPU": _check_gpu_memory,
    "TPOT": _check_target,
    "TTFT": _check_target,
}
HOST_CHECKS: dict[str, Check] = {"RAM": _check_host, "LOCAL_DISK": _check_host}
CHECKS = GPU_CHECKS | HOST_CHECKS
"""All checks of a placement by the code of their failure, in the order they are made."""


def find_failures(context: CheckContext, checks: Mapping[str, Check] = CHECKS) -> Iterator[Failure]:
    """Yield the failures of every check. Where GPUs are missing or unknown, no further check makes sense."""
    for code, check in checks.items():
        failing = check(context, code)
        yield from (failing,) if isinstance(failing, Failure) else failing or ()
        if failing and code in BLOCKING:
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
    same share their failures where `alike` is that of all. Raises Cancelled if the request was cancelled.
    """
    stop_if_cancelled()
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
    if most is not None and hours is None:
        yield Failure("max_hours", "TIME", "no source says how fast its GPU, or the network of its VMs, is")
    elif most is not None and hours is not None and hours.mid > most:
        where = f"{option.attempt.nodes} VMs" if option.attempt.nodes > 1 else "1 VM"
        detail = f"takes about {hours.mid:.1f} hours on {where}, {most:g} are allowed"
        yield Failure("max_hours", "TIME", detail, hours.mid, most, "hours")


def _budget_failures(option: PlacementOption) -> Iterator[Failure]:
    terms, field = option.prepared.size_constraints, "budget_usd_per_job"
    yield from check_budget(option.costs[terms.purchase].usd_per_month, terms)
    budget, cost = option.prepared.request.constraints.budget_usd_per_job, option.usd_per_job
    if budget is None:
        return
    if option.usd_per_hour is None:
        yield unknown_price_failure(field, terms)
    elif cost is None:
        detail = "no source says how fast its GPU, or the network of its VMs, is, so the cost of the job is unknown"
        yield Failure(field, "TIME", detail)
    elif cost > budget:
        detail = f"the job costs about {cost:.2f} USD, the budget is {budget:.2f}"
        yield Failure(field, "BUDGET", detail, cost, float(budget), "USD")
