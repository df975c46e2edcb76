"""What might be changed for a model to take less memory, or to have more: proposals, each judged before it is made."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from app.fit.formulas.weights import BITS
from app.fit.placement.change import Change, Kind, Situation, at_most, setting
from app.fit.placement.serving import ServingJob
from app.fit.placement.training import TrainingJob

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
