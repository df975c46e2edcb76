"""Changes of a request that might resolve a failure, by its code. FixFinder evaluates each before it is suggested."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Decimal
from math import ceil
from typing import Any

from app.fit.formulas.memory import BITS
from app.fit.placement.layouts import can_partition
from app.fit.placement.machine import Machine
from app.fit.placement.prepare import PreparedRequest
from app.fit.placement.serving import ServingJob
from app.fit.placement.training import TrainingJob
from app.fit.verdict import Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One field of a request set to a value (None unsets it), and a short text of that."""

    part: str
    field: str
    value: Any
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FixContext:
    """A failure of one machine in a prepared request."""

    machine: Machine
    prepared: PreparedRequest
    failure: Failure

    @property
    def part(self) -> str:
        """The part of the request that holds the workload."""
        return self.prepared.job.workload_kind


Alternatives = list[tuple[Change, ...]]
"""Changes of one kind in the order to try them: the first that makes the size fit is enough."""


def set_field(part: str, field: str, value: Any) -> tuple[Change]:
    """Set a field: `dtype=fp8`."""
    return (Change(part=part, field=field, value=value, text=f"{field}={json.dumps(value).strip(chr(34))}"),)


def lower_field(part: str, field: str, value: int) -> tuple[Change]:
    """Lower a field to the most that fits: `concurrency <= 14`."""
    return (Change(part=part, field=field, value=value, text=f"{field} <= {value}"),)


MAX_EXTRA_NODES = 32
"""At most this many more VMs are proposed."""
NARROWER_DTYPES = ("fp8", "int8", "awq_int4")
"""Types of weights to propose, the widest first."""
MAX_BITS_RATIO = 0.9
"""A type is proposed only if it has at most this share of the bits: AWQ does not help a model in MXFP4."""


def _for_gpu_memory(context: FixContext) -> Iterator[Alternatives]:
    """Propose what needs less memory, to leave the parallelism to the search, and more VMs."""
    job = context.prepared.job
    yield from _serving_memory(context, job) if isinstance(job, ServingJob) else _training_memory(job)
    yield from _unset_parallelism(context)
    yield from _more_nodes(context)


def _serving_memory(context: FixContext, job: ServingJob) -> Iterator[Alternatives]:
    sequences = min(job.max_sequences(context.machine, context.prepared.limits), job.concurrency - 1)
    if sequences > 0:
        yield [lower_field("inference", "concurrency", sequences)]
    else:
        yield from _shorter_context(context, job)
    bits = BITS[job.kv_dtype or "bf16"]
    if job.serving.workload.kv_bytes_per_value is None and job.load.context_tokens:
        yield [set_field("inference", "kv_dtype", dtype) for dtype in NARROWER_DTYPES[:2] if BITS[dtype] < bits]
    yield _narrower_weights(job)


def _narrower_weights(job: ServingJob) -> Alternatives:
    """Propose narrower types of weights; none where bits or bytes are given instead of a type."""
    if job.dtype is None:
        return []
    return [
        set_field("inference", "dtype", dtype)
        for dtype in NARROWER_DTYPES
        if BITS[dtype] < MAX_BITS_RATIO * BITS[job.dtype]
    ]


def _shorter_context(context: FixContext, job: ServingJob) -> Iterator[Alternatives]:
    """Propose the longest context with which all sequences fit, in steps of 256 tokens, by binary search."""
    low, high = 0, job.load.context_tokens // 256
    while low < high:
        middle = (low + high + 1) // 2
        shorter = replace(job, load=replace(job.load, context_tokens=256 * middle), _shares={})
        if shorter.max_sequences(context.machine, context.prepared.limits) >= job.concurrency:
            low = middle
        else:
            high = middle - 1
    if 0 < 256 * low < job.load.context_tokens:
        yield [lower_field("inference", "context_tokens", 256 * low)]


def _training_memory(job: TrainingJob) -> Iterator[Alternatives]:
    workload = job.training.workload
    if workload.zero_stage is not None and len(job.states_by_stage) == 1 and next(iter(job.states_by_stage)) < 3:  # noqa: PLR2004  # ZeRO-3
        yield [set_field("training", "zero_stage", 3)]
    if workload.sequence_tokens is not None:
        batch = workload.micro_batch or 1
        yield [set_field("training", "recompute", mode) for mode in ("selective", "full") if mode != workload.recompute]
        yield [set_field("training", "micro_batch", size) for size in _halves(batch)]
    if workload.offload in {None, "none"}:
        yield [set_field("training", "offload", what) for what in ("optimizer", "all")]
    if workload.method in {None, "full"} and workload.data_parallel is None:
        yield [set_field("training", "method", method) for method in ("lora", "qlora")]


def _halves(number: int) -> list[int]:
    """Return half of a number, half of that, and so on to 1."""
    return [number >> shift for shift in range(1, number.bit_length())]


def _unset_parallelism(context: FixContext) -> Iterator[Alternatives]:
    """Propose to leave the given parallelism to the search."""
    workload = context.prepared.request.workload
    names = [name for name in ("tensor_parallel", "pipeline_parallel") if getattr(workload, name) is not None]
    if names:
        yield [tuple(change for name in names for change in set_field(context.part, name, None))]


def _more_nodes(context: FixContext) -> Iterator[Alternatives]:
    """Propose the fewest VMs that fit, where more than are allowed do."""
    limits, machine = context.prepared.limits, context.machine
    if limits.usable_nodes(machine) < limits.max_nodes:
        return
    attempt = context.prepared.job.find_attempt(machine, replace(limits, max_nodes=limits.max_nodes + MAX_EXTRA_NODES))
    if attempt is not None and attempt.fits and attempt.loadable and attempt.nodes > limits.max_nodes:
        yield [_raise_max_nodes(attempt.nodes, limits.max_nodes)]


def _raise_max_nodes(nodes: int, allowed: int) -> tuple[Change]:
    """Allow this many VMs: `+1 node`."""
    more = nodes - allowed
    text = f"+{more} node" if more == 1 else f"+{more} nodes"
    return (Change(part="constraints", field="max_nodes", value=nodes, text=text),)


def _waive(field: str, value: bool) -> Callable[[FixContext], Iterator[Alternatives]]:
    """Return a proposal that waives a constraint."""

    def propose(_: FixContext) -> Iterator[Alternatives]:
        yield [set_field("constraints", field, value)]

    return propose


def _for_tensor_parallel(context: FixContext) -> Iterator[Alternatives]:
    """Propose the nearest numbers of tensor ranks that divide the model, else to leave them to the search."""
    partition, tensor = context.prepared.job.partition, context.prepared.parallelism.tensor
    nearest = sorted(
        (t for t in range(1, 2 * tensor) if can_partition(partition, t)), key=lambda t: (abs(t - tensor), t)
    )
    yield [set_field(context.part, "tensor_parallel", ranks) for ranks in nearest[:4]]
    yield from _unset_parallelism(context)


def _for_nvlink_domain(context: FixContext) -> Iterator[Alternatives]:
    if context.failure.constraint == "tp_in_nvlink":
        yield [set_field("constraints", "tp_in_nvlink", False)]
    else:
        yield from _for_tensor_parallel(context)
        if context.prepared.limits.tp_in_nvlink:
            yield [set_field("constraints", "tp_in_nvlink", False)]


def _for_max_nodes(context: FixContext) -> Iterator[Alternatives]:
    yield [_raise_max_nodes(ceil(context.failure.required or 1), context.prepared.limits.max_nodes)]
    yield from _unset_parallelism(context)


def _for_dtype(context: FixContext) -> Iterator[Alternatives]:
    if context.failure.constraint == "allow_legacy":
        yield [set_field("constraints", "allow_legacy", True)]
    elif context.failure.constraint == "dtype":
        yield [set_field("inference", "dtype", dtype) for dtype in ("int8", "fp16") if _is_wider(context, dtype)]
        yield [set_field("inference", "dtype", "awq_int4")]
    elif context.failure.constraint == "kv_dtype":
        yield [set_field("inference", "kv_dtype", dtype) for dtype in ("int8", "fp16")]
    else:
        yield [set_field("training", "recipe", "mixed_adam")]


def _is_wider(context: FixContext, dtype: str) -> bool:
    """Whether a type is at least as wide as the weights: 16-bit weights are offered fp16, 8-bit weights int8 first."""
    own = context.prepared.job.dtype if isinstance(context.prepared.job, ServingJob) else None
    return own is None or BITS[dtype] >= BITS[own]


def _for_status(context: FixContext) -> Iterator[Alternatives]:
    for status in ("preview", "retiring"):
        if status in context.failure.detail:
            yield [set_field("constraints", f"allow_{status}", True)]


def _for_host_memory(context: FixContext) -> Iterator[Alternatives]:
    job = context.prepared.job
    if isinstance(job, ServingJob):
        yield _narrower_weights(job)
    else:
        if job.training.workload.offload not in {None, "none"}:
            yield [set_field("training", "offload", "none")]
        if job.loading == "whole":
            yield [set_field("training", "loading", "sharded")]
    yield from _more_nodes(context)


def _for_budget(context: FixContext) -> Iterator[Alternatives]:
    """Propose a budget of what the size costs, rounded up to a cent."""
    field = context.failure.constraint
    needed = Decimal(repr(context.failure.required)).quantize(Decimal("0.01"), rounding=ROUND_CEILING)
    yield [(Change(part="constraints", field=field, value=needed, text=f"{field} >= {needed}"),)]


def _for_time(context: FixContext) -> Iterator[Alternatives]:
    if context.failure.required is not None:
        hours = ceil(context.failure.required * 10) / 10
        yield [(Change(part="constraints", field="max_hours", value=hours, text=f"max_hours >= {hours:g}"),)]
        yield from _more_nodes(context)


PROPOSALS: dict[str, Callable[[FixContext], Iterator[Alternatives]]] = {
    "DTYPE_UNSUPPORTED": _for_dtype,
    "TP_HEADS": _for_tensor_parallel,
    "TP_BLOCKS": _for_tensor_parallel,
    "PP_LAYERS": _unset_parallelism,
    "FRACTIONAL_GPU": _for_gpu_memory,
    "NVLINK_DOMAIN": _for_nvlink_domain,
    "NO_INFINIBAND": _waive("require_infiniband", False),
    "MAX_NODES": _for_max_nodes,
    "GPU_MEMORY_PER_GPU": _for_gpu_memory,
    "RAM": _for_host_memory,
    "LOCAL_DISK": _waive("checkpoint_on_local_disk", False),
    "STATUS": _for_status,
    "UNVERIFIED": _waive("verified_only", False),
    "BUDGET": _for_budget,
    "TIME": _for_time,
}
"""Proposals by the code of a failure. What a request cannot change has none: a region, a GPU, a retired size."""
