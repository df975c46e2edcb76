"""The checks of a placement, each a function of its own, in one table with their codes."""

from collections.abc import Iterator

from app.fit.formulas.quantities import GIB
from app.fit.placement.case import Case, Check, Short
from app.fit.placement.checks_of_cut import (
    blocks_divide,
    heads_divide,
    joined_by_infiniband,
    one_domain,
    stages_have_layers,
    vms_suffice,
    whole_gpus,
)
from app.fit.placement.types import CAPABILITY, computes, legacy, unpacks
from app.fit.verdict import Failure


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
