"""The checks of a placement, each a function of its own, in one table with their codes."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import ceil

from app.fit.formulas.memory import WHOLE, Split
from app.fit.formulas.quantities import GIB
from app.fit.placement.layouts import Attempt, lie, why_no_blocks, why_not
from app.fit.placement.machine import CAPABILITY, Machine, computes, legacy, unpacks
from app.fit.placement.prepare import Job, Prepared
from app.fit.placement.request import Constraints
from app.fit.verdict import Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A job on one kind of VM, and the best attempt there is; None where the model cannot be cut as it must."""

    asked: Prepared
    machine: Machine
    attempt: Attempt | None

    @property
    def job(self) -> Job:
        """The workload."""
        return self.asked.job

    @property
    def constraints(self) -> Constraints:
        """What an option must be."""
        return self.asked.question.constraints

    @property
    def split(self) -> Split:
        """The split that is asked for; 1 where nothing is."""
        return self.asked.split


@dataclass(frozen=True, slots=True, kw_only=True)
class Short:
    """What a check found: the field of the constraint, what it says, and the amounts where it is about one."""

    constraint: str
    detail: str
    required: float | None = None
    available: float | None = None
    unit: str | None = None


Check = Callable[[Case], Short | None]


def heads_divide(case: Case) -> Short | None:
    """Heads, KV heads and widths must divide over the tensor ranks that are asked for."""
    why = why_not(case.job.cut, case.split.tensor)
    return Short(constraint="tensor_parallel", detail=why) if why else None


def blocks_divide(case: Case) -> Short | None:
    """Each of the tensor ranks that are asked for must get whole blocks of quantized weights."""
    why = why_no_blocks(case.job.cut, case.split.tensor)
    return Short(constraint="tensor_parallel", detail=why) if why else None


def stages_have_layers(case: Case) -> Short | None:
    """Each stage that is asked for must have a layer."""
    layers, stages = case.job.cut.layers, case.split.pipeline
    if layers is None or stages <= layers:
        return None
    said = f"{layers} layers cannot be cut into {stages} stages"
    return Short(constraint="pipeline_parallel", required=stages, available=layers, unit="layers", detail=said)


def whole_gpus(case: Case) -> Short | None:
    """A part of a GPU works alone: it has no second rank, and parts do not pool."""
    if not case.machine.fractional:
        return None
    part = float(case.machine.gpus or 0)
    if case.split.gpus > 1:
        said = f"has {part:.4g} of a GPU, which works alone; the split needs {case.split.gpus} GPUs"
        return Short(constraint="gpus", required=case.split.gpus, available=part, unit="count", detail=said)
    if case.constraints.max_nodes > 1 and case.attempt is not None and not case.attempt.fits:
        return Short(constraint="gpus", detail=f"has {part:.4g} of a GPU, and parts do not pool")
    return None


def one_domain(case: Case) -> Short | None:
    """A layer must be cut over GPUs that one VM or rack joins, or NVLink where it must stay in it."""
    limits, machine = case.asked.limits, case.machine
    widest = machine.reach(limits.max_nodes, in_nvlink=limits.in_nvlink)
    asked = case.split.tensor
    if asked > widest and not machine.fractional:
        said = f"{asked} tensor ranks must share NVLink or one VM, and {widest} can"
        return Short(constraint="tensor_parallel", required=asked, available=widest, unit="GPUs", detail=said)
    looser = _lifted(case, "NVLINK_DOMAIN")
    if looser is None:
        return None
    said = f"needs {looser.split.tensor} tensor ranks, and {widest} GPUs share NVLink"
    return Short(constraint="tp_in_nvlink", required=looser.split.tensor, available=widest, unit="GPUs", detail=said)


def joined_by_infiniband(case: Case) -> Short | None:
    """VMs that train together must have InfiniBand, where one does not do."""
    looser = _lifted(case, "NO_INFINIBAND")
    if looser is None:
        return None
    known = "has no InfiniBand" if case.machine.infiniband is False else "no source says that it has InfiniBand"
    return Short(constraint="require_infiniband", detail=f"needs {looser.nodes} VMs, and {known}")


def _lifted(case: Case, code: str) -> Attempt | None:
    """The attempt that fits once a limit is lifted, where none does within it."""
    if case.attempt is not None and case.attempt.fits:
        return None
    looser = dict(case.asked.limits.looser(case.machine)).get(code)
    attempt = case.job.attempt(case.machine, looser) if looser is not None else None
    return attempt if attempt is not None and attempt.fits else None


def vms_suffice(case: Case) -> Short | None:
    """A split that is asked for, with its copies, must have as many VMs as are allowed."""
    machine, limits = case.machine, case.asked.limits
    if case.split == WHOLE and case.job.copies == 1:
        return None
    if case.split.tensor > machine.reach(case.split.tensor, in_nvlink=limits.in_nvlink):
        return None
    way = lie(case.split, machine.ranks)
    needed = ceil(case.job.copies / way.copies) * way.nodes
    allowed = limits.nodes_of(machine)
    if needed <= allowed:
        return None
    said = f"the split needs {needed} VMs, and {allowed} can be used"
    return Short(constraint="max_nodes", required=needed, available=allowed, unit="VMs", detail=said)


def failures(case: Case) -> Iterator[Failure]:
    """Tell every check that fails; without GPUs of known facts there is nothing else to check."""
    for code, check in CHECKS.items():
        short = check(case)
        if short is not None:
            yield Failure(
                constraint=short.constraint,
                code=code,
                required=short.required,
                available=short.available,
                unit=short.unit,
                detail=short.detail,
            )
            if code in _FIRST:
                return


def _gpus(case: Case) -> Short | None:
    if case.machine.gpus != 0:
        return None
    return Short(constraint="gpus", required=1, available=0, unit="count", detail="has no GPU")


def _known(case: Case) -> Short | None:
    machine = case.machine
    if machine.described:
        return None
    facts = {
        "number of GPUs": machine.gpus,
        "usable GPU memory": machine.usable_bytes,
        "memory bandwidth": machine.bandwidth if case.job.use == "inference" else 0,
        "compute capability": machine.capability,
    }
    unknown = [name for name, value in facts.items() if value is None]
    if not unknown:
        return None
    return Short(constraint="gpu", detail=f"no source says its {', '.join(unknown)}")


def _types(case: Case) -> Short | None:
    for name, kind in case.job.kinds:
        if legacy(case.machine) and not case.constraints.allow_legacy:
            return Short(constraint="allow_legacy", detail="its GPU is for graphics, or too old for language models")
        if not computes(case.machine, kind) and not (name == "dtype" and unpacks(case.machine, kind)):
            least, chip = CAPABILITY[kind], case.machine.capability
            what = f"keeps no KV cache in {kind}" if name == "kv_dtype" else f"does not compute in {kind}"
            return Short(constraint=name, detail=f"{what}: its GPU is {chip}, {least} is needed")
    return None


def _memory(case: Case) -> Short | None:
    attempt = case.attempt
    if attempt is None or attempt.fits:
        return None
    need, budget = attempt.need / GIB, attempt.budget / GIB
    where = f"each of {attempt.gpus} GPUs" if attempt.gpus > 1 else "one GPU"
    said = f"needs {need:.1f} GiB on {where}, and {budget:.1f} may be used"
    return Short(constraint="gpu_memory", required=need, available=budget, unit="GiB", detail=said)


def _memory_of_host(case: Case) -> Short | None:
    if case.attempt is None:
        return None
    return _host(case, "memory", case.job.host_bytes(case.machine, case.attempt), case.machine.memory_bytes)


def _disk(case: Case) -> Short | None:
    if not case.constraints.checkpoint_on_local_disk:
        return None
    return _host(case, "local_disk", case.job.disk_bytes, case.machine.disk_bytes)


def _host(case: Case, name: str, required: float, available: float | None) -> Short | None:
    """What a VM has beside its GPUs: memory to load a model through, local disk for a checkpoint."""
    needs = f"needs {required / GIB:.1f} GiB of {name.replace('_', ' ')}"
    if available is None:
        said = f"{needs}, and no source says what it has"
        short = Short(constraint=name, required=required / GIB, unit="GiB", detail=said)
        return None if case.machine.described else short
    if required <= available:
        return None
    said = f"{needs}, has {available / GIB:.1f}"
    return Short(constraint=name, required=required / GIB, available=available / GIB, unit="GiB", detail=said)


CHECKS: dict[str, Check] = {
    "GPU_COUNT": _gpus,
    "GPU_UNKNOWN": _known,
    "DTYPE_UNSUPPORTED": _types,
    "TP_HEADS": heads_divide,
    "TP_BLOCKS": blocks_divide,
    "PP_LAYERS": stages_have_layers,
    "FRACTIONAL_GPU": whole_gpus,
    "NVLINK_DOMAIN": one_domain,
    "NO_INFINIBAND": joined_by_infiniband,
    "MAX_NODES": vms_suffice,
    "GPU_MEMORY_PER_GPU": _memory,
    "RAM": _memory_of_host,
    "LOCAL_DISK": _disk,
}
"""Every check of a placement by its code, in their order."""

_FIRST = {"GPU_COUNT", "GPU_UNKNOWN"}
