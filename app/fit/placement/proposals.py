"""What might be changed for a failure to go away, by its code: proposals, each of which is judged before it is made."""

from collections.abc import Callable, Iterator
from decimal import ROUND_CEILING, Decimal
from math import ceil

from app.fit.formulas.weights import BITS
from app.fit.placement.change import Change, Kind, Situation, setting
from app.fit.placement.layouts import divides
from app.fit.placement.proposals_of_memory import free_split, less_memory, more_nodes, narrower, up_to
from app.fit.placement.serving import ServingJob


def _waive(field: str, value: bool) -> Callable[[Situation], Iterator[Kind]]:
    """Propose to waive a constraint."""

    def propose(_: Situation) -> Iterator[Kind]:
        yield [setting("constraints", field, value)]

    return propose


def _tensor(at: Situation) -> Iterator[Kind]:
    """The nearest number of ranks that the model can be cut over, else any."""
    cut, asked = at.asked.job.cut, at.asked.split.tensor
    nearest = sorted((t for t in range(1, 2 * asked) if divides(cut, t)), key=lambda t: (abs(t - asked), t))
    yield [setting(at.part, "tensor_parallel", tensor) for tensor in nearest[:4]]
    yield from free_split(at)


def _domain(at: Situation) -> Iterator[Kind]:
    if at.failure.constraint == "tp_in_nvlink":
        yield [setting("constraints", "tp_in_nvlink", False)]
    else:
        yield from _tensor(at)
        if at.asked.limits.in_nvlink:
            yield [setting("constraints", "tp_in_nvlink", False)]


def _needed_nodes(at: Situation) -> Iterator[Kind]:
    yield [up_to(ceil(at.failure.required or 1), at.asked.limits.max_nodes)]
    yield from free_split(at)


def _types(at: Situation) -> Iterator[Kind]:
    if at.failure.constraint == "allow_legacy":
        yield [setting("constraints", "allow_legacy", True)]
    elif at.failure.constraint == "dtype":
        yield [setting("inference", "dtype", dtype) for dtype in ("int8", "fp16") if _is_wider(at, dtype)]
        yield [setting("inference", "dtype", "awq_int4")]
    elif at.failure.constraint == "kv_dtype":
        yield [setting("inference", "kv_dtype", dtype) for dtype in ("int8", "fp16")]
    else:
        yield [setting("training", "recipe", "mixed_adam")]


def _is_wider(at: Situation, dtype: str) -> bool:
    """Weights of 16 bits are offered fp16, those of 8 bits int8 first."""
    own = at.asked.job.dtype if isinstance(at.asked.job, ServingJob) else None
    return own is None or BITS[dtype] >= BITS[own]


def _status(at: Situation) -> Iterator[Kind]:
    for status in ("preview", "retiring"):
        if status in at.failure.detail:
            yield [setting("constraints", f"allow_{status}", True)]


def _host_memory(at: Situation) -> Iterator[Kind]:
    job = at.asked.job
    if isinstance(job, ServingJob):
        yield narrower(job)
    else:
        if job.asked.job.offload not in {None, "none"}:
            yield [setting("training", "offload", "none")]
        if job.loading == "whole":
            yield [setting("training", "loading", "sharded")]
    yield from more_nodes(at)


def _budget(at: Situation) -> Iterator[Kind]:
    """What it costs, rounded up to a cent."""
    field = at.failure.constraint
    needed = Decimal(repr(at.failure.required)).quantize(Decimal("0.01"), rounding=ROUND_CEILING)
    yield [(Change(part="constraints", field=field, value=needed, text=f"{field} >= {needed}"),)]


def _time(at: Situation) -> Iterator[Kind]:
    if at.failure.required is not None:
        hours = ceil(at.failure.required * 10) / 10
        yield [(Change(part="constraints", field="max_hours", value=hours, text=f"max_hours >= {hours:g}"),)]
        yield from more_nodes(at)


PROPOSALS: dict[str, Callable[[Situation], Iterator[Kind]]] = {
    "DTYPE_UNSUPPORTED": _types,
    "TP_HEADS": _tensor,
    "TP_BLOCKS": _tensor,
    "PP_LAYERS": free_split,
    "FRACTIONAL_GPU": less_memory,
    "NVLINK_DOMAIN": _domain,
    "NO_INFINIBAND": _waive("require_infiniband", False),
    "MAX_NODES": _needed_nodes,
    "GPU_MEMORY_PER_GPU": less_memory,
    "RAM": _host_memory,
    "LOCAL_DISK": _waive("checkpoint_on_local_disk", False),
    "STATUS": _status,
    "UNVERIFIED": _waive("verified_only", False),
    "BUDGET": _budget,
    "TIME": _time,
}
"""What may be proposed, by the code of a failure. What cannot be changed has none: a region, a GPU, a retired size."""
