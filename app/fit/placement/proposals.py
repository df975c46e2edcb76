"""What might be changed for a failure to go away, by its code: proposals, each of which is judged before it is made."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Decimal
from math import ceil
from typing import Any

from app.fit.formulas.memory import BITS
from app.fit.placement.layouts import divides
from app.fit.placement.machine import Machine
from app.fit.placement.prepare import Prepared
from app.fit.placement.serving import ServingJob
from app.fit.placement.training import TrainingJob
from app.fit.verdict import Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One field of a request set to a value, and how that is said; None is no value."""

    part: str
    field: str
    value: Any
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """A failure of one kind of VM in a question."""

    machine: Machine
    asked: Prepared
    failure: Failure

    @property
    def part(self) -> str:
        """The part of the request that holds the workload."""
        return self.asked.job.use


Kind = list[tuple[Change, ...]]
"""Changes of one kind, in the order in which they are to be tried: the first that does is enough."""


def setting(part: str, field: str, value: Any) -> tuple[Change]:
    """Set a field: `dtype=fp8`."""
    return (Change(part=part, field=field, value=value, text=f"{field}={json.dumps(value).strip(chr(34))}"),)


def at_most(part: str, field: str, value: int) -> tuple[Change]:
    """Set a field to the most that does: `concurrency <= 14`."""
    return (Change(part=part, field=field, value=value, text=f"{field} <= {value}"),)


MOST_NODES = 32
"""So many more VMs are proposed at most."""
NARROWER = ("fp8", "int8", "awq_int4")
"""Types of weights that are proposed, the widest first."""
NARROW = 0.9
"""A type must have so much fewer bits to be proposed: AWQ is no help to a model in MXFP4."""


def less_memory(at: Situation) -> Iterator[Kind]:
    """Propose what takes less memory, a split that is free, and more VMs."""
    job = at.asked.job
    yield from _serving_memory(at, job) if isinstance(job, ServingJob) else _training_memory(job)
    yield from free_split(at)
    yield from more_nodes(at)


def _serving_memory(at: Situation, job: ServingJob) -> Iterator[Kind]:
    held = min(job.capacity(at.machine, at.asked.limits), job.concurrency - 1)
    if held > 0:
        yield [at_most("inference", "concurrency", held)]
    else:
        yield from _context(at, job)
    kept = BITS[job.kv_dtype or "bf16"]
    if job.asked.load.kv_bytes_per_value is None and job.load.context_tokens:
        yield [setting("inference", "kv_dtype", dtype) for dtype in NARROWER[:2] if BITS[dtype] < kept]
    yield narrower(job)


def narrower(job: ServingJob) -> Kind:
    """Propose narrower types of weights; none where their bits or bytes are given by themselves."""
    if job.dtype is None:
        return []
    return [setting("inference", "dtype", dtype) for dtype in NARROWER if BITS[dtype] < NARROW * BITS[job.dtype]]


def _context(at: Situation, job: ServingJob) -> Iterator[Kind]:
    """The longest context with which all sequences fit, in steps of 256 tokens, found by halving."""
    low, high = 0, job.load.context_tokens // 256
    while low < high:
        middle = (low + high + 1) // 2
        shorter = replace(job, load=replace(job.load, context_tokens=256 * middle), _shares={})
        if shorter.capacity(at.machine, at.asked.limits) >= job.concurrency:
            low = middle
        else:
            high = middle - 1
    if 0 < 256 * low < job.load.context_tokens:
        yield [at_most("inference", "context_tokens", 256 * low)]


def _training_memory(job: TrainingJob) -> Iterator[Kind]:
    given = job.asked.job
    if given.zero_stage is not None and len(job.stages) == 1 and next(iter(job.stages)) < 3:  # noqa: PLR2004  # ZeRO-3
        yield [setting("training", "zero_stage", 3)]
    if given.sequence_tokens is not None:
        batch = given.micro_batch or 1
        yield [setting("training", "recompute", how) for how in ("selective", "full") if how != given.recompute]
        yield [setting("training", "micro_batch", size) for size in _halves(batch)]
    if given.offload in {None, "none"}:
        yield [setting("training", "offload", what) for what in ("optimizer", "all")]
    if given.method in {None, "full"} and given.data_parallel is None:
        yield [setting("training", "method", method) for method in ("lora", "qlora")]


def _halves(number: int) -> list[int]:
    """Half of a number, half of that, and so on to 1."""
    return [number >> shift for shift in range(1, number.bit_length())]


def free_split(at: Situation) -> Iterator[Kind]:
    """Leave a given split to the search."""
    given = [name for name in ("tensor_parallel", "pipeline_parallel") if _given(at, name) is not None]
    if given:
        yield [tuple(change for name in given for change in setting(at.part, name, None))]


def _given(at: Situation, name: str) -> Any:
    return getattr(at.asked.question.use, name)


def more_nodes(at: Situation) -> Iterator[Kind]:
    """The fewest VMs that do, where more than are allowed would."""
    limits, machine = at.asked.limits, at.machine
    if limits.nodes_of(machine) < limits.max_nodes:
        return
    attempt = at.asked.job.attempt(machine, replace(limits, max_nodes=limits.max_nodes + MOST_NODES))
    if attempt is not None and attempt.fits and attempt.loads and attempt.nodes > limits.max_nodes:
        yield [up_to(attempt.nodes, limits.max_nodes)]


def up_to(nodes: int, allowed: int) -> tuple[Change]:
    """Allow so many VMs: `+1 node`."""
    more = nodes - allowed
    text = f"+{more} node" if more == 1 else f"+{more} nodes"
    return (Change(part="constraints", field="max_nodes", value=nodes, text=text),)


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
