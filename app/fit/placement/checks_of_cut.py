"""The checks of how a model is cut over GPUs: heads, layers, parts of a GPU, NVLink, InfiniBand, VMs."""

from math import ceil

from app.fit.formulas.sharding import WHOLE
from app.fit.placement.attempt import Attempt
from app.fit.placement.case import Case, Short
from app.fit.placement.layouts import lie, why_no_blocks, why_not


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
