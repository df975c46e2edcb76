"""Find changes of a request that make a rejected size fit.

Proposals are tables by failure code; `FixFinder` evaluates each before it is suggested.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Decimal
from functools import partial
from itertools import islice
from math import ceil
from typing import Any, NamedTuple, get_args

from app.fit.estimator.workload import PARALLEL_FIELDS, ServiceLevel
from app.fit.formulas.quantities import Assumptions, InvalidWorkload
from app.fit.formulas.quantization import BITS, KV_BITS
from app.fit.formulas.training_memory import Recompute
from app.fit.placement.evaluate import evaluate
from app.fit.placement.jobs import ServingJob, TrainingJob
from app.fit.placement.layouts import can_partition
from app.fit.placement.machine import Machine, supports_dtype
from app.fit.placement.prepare import OF_LEVEL_ALONE, OF_LOAD, PreparedRequest, at_level, prepare
from app.fit.verdict import Failure, Rejection, Vm


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One field of a request set to a value (None unsets it), and a short text of that.

    `part` is `constraints`, `inference`, `serving` or `training`, as in the names of assumptions. A bound that may be
    nearer to what is `given`, where other changes leave room for that, has it.
    """

    part: str
    field: str
    value: Any
    text: str
    given: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FixContext:
    """A failure of one machine in a prepared request."""

    machine: Machine
    prepared: PreparedRequest
    failure: Failure


Changes = tuple[FieldChange, ...]
Alternatives = list[Changes]
"""Changes of one kind in the order to try them: the first that makes the size fit is enough."""


def set_field(part: str, field: str, value: Any) -> tuple[FieldChange]:
    """Set a field: `dtype=fp8`."""
    return (FieldChange(part, field, value, f"{field}={json.dumps(value).strip(chr(34))}"),)


def lower_field(part: str, field: str, value: float, given: float | None = None) -> tuple[FieldChange]:
    """Lower a field to the most that fits: `concurrency <= 14`."""
    return (_bound(part, field, "<=", value, given),)


def _raise_field(part: str, field: str, needed: float, given: float | None = None) -> tuple[FieldChange]:
    """Raise a field to what is needed, rounded up to a tenth: `tpot_ms >= 12.3`."""
    return (_bound(part, field, ">=", ceil(needed * 10) / 10, given),)


def _bound(part: str, field: str, sign: str, value: float, given: float | None) -> FieldChange:
    plain = int(value) if value == int(value) else value  # written without a decimal point
    return FieldChange(part, field, plain, f"{field} {sign} {plain}", given)


class Scale(NamedTuple):
    """The numbered values among which a bound is searched: multiples of a step, or numbers of two digits."""

    step: Decimal | None

    def position(self, value: float) -> int:
        """Return the number of the greatest value up to `value`."""
        exact = Decimal(repr(value))
        if self.step is not None:
            return int(exact // self.step)
        exponent = exact.adjusted() - 1
        return 90 * exponent + int(exact.scaleb(-exponent)) - 10

    def value(self, position: int) -> float:
        """Return the value with this number."""
        if self.step is not None:
            return float(position * self.step)
        exponent, digits = divmod(position, 90)
        return float(f"{digits + 10}e{exponent}")


CONTEXT_STEP = 256
"""Step between the shorter contexts that are proposed, tokens."""
_WHOLE, _TENTHS, _TWO_DIGITS = Scale(Decimal(1)), Scale(Decimal("0.1")), Scale(None)
SCALES = {
    "concurrency": _WHOLE,
    "context_tokens": Scale(Decimal(CONTEXT_STEP)),
    "users": _WHOLE,
    "requests_per_second": _TWO_DIGITS,
    "requests_per_day": _TWO_DIGITS,
    "ttft_ms": _TENTHS,
    "tpot_ms": _TENTHS,
}
"""The values tried for each field that has a bound."""
MAX_STEPS = 20
"""Most values of a field that are evaluated to find its bound."""
MAX_NODES = 10_000
"""At most this many VMs can be asked for."""
MAX_EXTRA_NODES = 32
"""At most this many more VMs are proposed."""
NARROWER_DTYPES = ("bf16", "fp16", "fp8", "int8", "awq_int4", "gptq_int4")
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
    if job.level is not None:
        yield _shorter_prompts(job.level)
        yield _narrower_weights(job)
        return
    sequences = min(job.max_sequences(context.machine, context.prepared.limits), job.concurrency - 1)
    if sequences > 0:
        yield [lower_field("inference", "concurrency", sequences, job.concurrency)]
    else:
        longest = job.longest_context(context.machine, context.prepared.limits, step=CONTEXT_STEP)
        if 0 < longest < job.load.context_tokens:
            yield [lower_field("inference", "context_tokens", longest, job.load.context_tokens)]
    bits = KV_BITS[job.kv_dtype or "bf16"]
    cached = job.served.cache is not None and job.load.context_tokens
    if job.serving.workload.kv_bytes_per_value is None and cached:
        yield [set_field("inference", "kv_dtype", dtype) for dtype in ("fp8", "int8") if KV_BITS[dtype] < bits]
    yield _narrower_weights(job)


def _shorter_prompts(level: ServiceLevel) -> Alternatives:
    """Propose shorter prompts: half, a quarter and so on, to a sixteenth."""
    return [lower_field("serving", "input_tokens", tokens) for tokens in _halves(level.input_tokens)[:4]]


def _for_target(context: FixContext) -> Iterator[Alternatives]:
    """Propose a target that one request meets, else one with room for more; narrower weights; shorter prompts."""
    job, field = context.prepared.job, context.failure.constraint
    if not isinstance(job, ServingJob) or job.level is None or context.failure.required is None:
        return
    alone, target = context.failure.required, context.failure.available
    yield [_raise_field("serving", field, alone * factor, target) for factor in (1, 1.5, 3)]
    yield _narrower_weights(job)
    if field == "ttft_ms":
        yield _shorter_prompts(job.level)
    yield from _unset_parallelism(context)


def _lighter_load(level: ServiceLevel, share: float) -> Alternatives:
    """Propose fewer users, or requests, of which this share can be served."""
    for field in OF_LOAD:
        if (given := getattr(level, field)) is not None:
            scale = SCALES[field]
            fewer = [scale.value(scale.position(given * share * factor)) for factor in (1, 0.95, 0.8)]
            return [lower_field("serving", field, value, given) for value in fewer if 0 < value < given]
    return []


def _narrower_weights(job: ServingJob) -> Alternatives:
    """Propose narrower types of weights; none where bits or bytes are given instead of a type."""
    most = MAX_BITS_RATIO * BITS[job.dtype] if job.dtype is not None else 0.0
    return [set_field("inference", "dtype", dtype) for dtype in NARROWER_DTYPES if BITS[dtype] < most]


def _training_memory(job: TrainingJob) -> Iterator[Alternatives]:
    workload = job.training.workload
    if workload.zero_stage is not None and len(job.states_by_stage) == 1 and next(iter(job.states_by_stage)) < 3:  # noqa: PLR2004  # ZeRO-3
        yield [set_field("training", "zero_stage", 3)]
    kept, loss_kind = job.training.recompute, workload.cross_entropy
    modes = get_args(Recompute)
    yield [set_field("training", "recompute", mode) for mode in modes[modes.index(kept) + 1 :]]
    yield [set_field("training", "micro_batch", size) for size in _halves(workload.micro_batch or 1)]
    yield [set_field("training", "cross_entropy", kind) for kind in ("chunked", "fused") if kind != loss_kind]
    if workload.offload in {None, "none"}:
        yield [set_field("training", "offload", what) for what in ("optimizer", "all")]
    if workload.data_parallel is None:
        lighter = {"full": ("lora", "qlora"), "lora": ("qlora",)}.get(job.training.method, ())
        yield [set_field("training", "method", method) for method in lighter]


def _halves(number: int) -> list[int]:
    """Return half of a number, half of that, and so on to 1."""
    return [number >> shift for shift in range(1, number.bit_length())]


def _unset_parallelism(context: FixContext) -> Iterator[Alternatives]:
    """Propose to leave the given parallelism to the search."""
    workload = context.prepared.request.workload
    names = [name for name in PARALLEL_FIELDS if getattr(workload, name, None) is not None]
    if names:
        part = context.prepared.job.workload_kind
        yield [tuple(change for name in names for change in set_field(part, name, None))]


def _more_nodes(context: FixContext) -> Iterator[Alternatives]:
    """Propose the fewest VMs that fit, where more than are allowed do."""
    limits, machine = context.prepared.limits, context.machine
    if limits.usable_nodes(machine) < limits.max_nodes:
        return
    more, job = replace(limits, max_nodes=limits.max_nodes + MAX_EXTRA_NODES), context.prepared.job
    attempt = context.prepared.kept.find(machine, more, lambda compared: job.find_attempt(machine, more, compared))
    if attempt is not None and attempt.fits and attempt.loadable and attempt.nodes > limits.max_nodes:
        yield [_raise_max_nodes(attempt.nodes, limits.max_nodes)]


def _raise_max_nodes(nodes: int, allowed: int) -> tuple[FieldChange]:
    """Allow this many VMs: `+1 node`."""
    more = nodes - allowed
    text = f"+{more} node" if more == 1 else f"+{more} nodes"
    return (FieldChange("constraints", "max_nodes", nodes, text),)


def _waive(field: str, _: FixContext) -> Iterator[Alternatives]:
    """Propose to waive a constraint."""
    yield [set_field("constraints", field, False)]


def _for_tensor_parallel(context: FixContext) -> Iterator[Alternatives]:
    """Propose the nearest numbers of tensor ranks that divide the model, else to leave them to the search."""
    job, tensor = context.prepared.job, context.prepared.parallelism.tensor
    part, partition = job.workload_kind, job.partition
    nearest = sorted(
        (t for t in range(1, 2 * tensor) if can_partition(partition, t)), key=lambda t: (abs(t - tensor), t)
    )
    yield [set_field(part, "tensor_parallel", ranks) for ranks in nearest[:4]]
    if partition.experts is not None and partition.experts % tensor == 0 and partition.expert is None:
        yield [set_field(part, "expert_parallel", tensor)]
    yield from _unset_parallelism(context)


def _for_nvlink_domain(context: FixContext) -> Iterator[Alternatives]:
    if context.failure.constraint != "tp_in_nvlink":
        yield from _for_tensor_parallel(context)
    if context.prepared.limits.tp_in_nvlink:
        yield [set_field("constraints", "tp_in_nvlink", False)]


def _for_max_nodes(context: FixContext) -> Iterator[Alternatives]:
    job, (required, available) = context.prepared.job, (context.failure.required, context.failure.available)
    if isinstance(job, ServingJob) and job.level is not None and required and available:
        yield _lighter_load(job.level, available / required)
    if (needed := ceil(context.failure.required or 1)) <= MAX_NODES:
        yield [_raise_max_nodes(needed, context.prepared.limits.max_nodes)]
    yield from _unset_parallelism(context)


def _for_dtype(context: FixContext) -> Iterator[Alternatives]:
    if context.failure.constraint == "allow_legacy":
        yield [set_field("constraints", "allow_legacy", True)]
    elif context.failure.constraint == "dtype":
        # 16-bit weights are offered fp16, 8-bit weights int8 first.
        own = context.prepared.job.dtype if isinstance(context.prepared.job, ServingJob) else None
        wider = [dtype for dtype in ("int8", "fp16") if own is None or BITS[dtype] >= BITS[own]]
        yield [set_field("inference", "dtype", dtype) for dtype in wider]
        yield [set_field("inference", "dtype", dtype) for dtype in ("awq_int4", "gptq_int4")]
    elif context.failure.constraint == "kv_dtype":
        yield [set_field("inference", "kv_dtype", dtype) for dtype in (_activation_dtype(context), "int8")]
    elif context.failure.constraint == "precision":
        yield [set_field("training", "precision", precision) for precision in ("fp8", "bf16", None)]
    else:
        yield [set_field("training", "recipe", "mixed_adam")]


def _activation_dtype(context: FixContext) -> str:
    """Return the 16-bit type of a model's activations: bf16 unless its weights are fp16 or the GPU lacks bf16."""
    job = context.prepared.job
    is_fp16 = isinstance(job, ServingJob) and job.dtype == "fp16"
    return "fp16" if is_fp16 or not supports_dtype(context.machine, "bf16") else "bf16"


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
    yield [(FieldChange("constraints", field, needed, f"{field} >= {needed}"),)]


def _for_time(context: FixContext) -> Iterator[Alternatives]:
    if context.failure.required is not None:
        yield [_raise_field("constraints", "max_hours", context.failure.required)]
        yield from _more_nodes(context)


PROPOSALS: dict[str, Callable[[FixContext], Iterator[Alternatives]]] = {
    "DTYPE_UNSUPPORTED": _for_dtype,
    "TP_HEADS": _for_tensor_parallel,
    "TP_BLOCKS": _for_tensor_parallel,
    "EP_GROUPS": _unset_parallelism,
    "PP_LAYERS": _unset_parallelism,
    "FRACTIONAL_GPU": _for_gpu_memory,
    "NVLINK_DOMAIN": _for_nvlink_domain,
    "NO_INFINIBAND": partial(_waive, "require_infiniband"),
    "MAX_NODES": _for_max_nodes,
    "GPU_MEMORY_PER_GPU": _for_gpu_memory,
    "TPOT": _for_target,
    "TTFT": _for_target,
    "RAM": _for_host_memory,
    "LOCAL_DISK": partial(_waive, "checkpoint_on_local_disk"),
    "STATUS": _for_status,
    "UNVERIFIED": partial(_waive, "verified_only"),
    "BUDGET": _for_budget,
    "TIME": _for_time,
}
"""Proposals by the code of a failure. What a request cannot change has none: a region, a GPU, a retired size."""


MAX_CHANGES = 3
"""At most this many changes are combined, and only where fewer are not enough."""
MAX_COMBINATIONS = 4
"""At most this many combinations are suggested."""


class Fix(NamedTuple):
    """Changes that together make a size fit."""

    changes: Changes

    @property
    def text(self) -> str:
        """The changes as text: `concurrency <= 14`."""
        return " and ".join(change.text for change in self.changes)


class FixFinder:
    """Finds fixes for the rejected sizes of one request; a changed request is prepared once for all sizes."""

    def __init__(self, prepared: PreparedRequest) -> None:
        self._prepared = prepared
        self._prepared_by_changes: dict[Changes, PreparedRequest | None] = {(): prepared}
        self._rejections: dict[Changes, Rejection | None] = {}

    def find_fixes(self, vm: Vm, machine: Machine, rejection: Rejection) -> tuple[Fix, ...]:
        """Find every single change that makes a size fit; where there is none, combinations of up to three.

        Each bound of them is the nearest to what is given with which the size fits, all other changes made.
        """
        if not _is_fixable(rejection.failures):
            return ()
        self._rejections.clear()
        sufficient = [*self._sufficient_changes(vm, machine, rejection, ())]
        sufficient = sufficient or [*islice(self._combinations(vm, machine, rejection, ()), MAX_COMBINATIONS)]
        return tuple(map(Fix, dict.fromkeys(self._with_nearest_bounds(vm, machine, changes) for changes in sufficient)))

    def _with_nearest_bounds(self, vm: Vm, machine: Machine, changes: Changes) -> Changes:
        """Return changes with the nearest bounds that fit; proposed bounds are guesses, or predate the other changes.

        That of a lone `concurrency` or `context_tokens` is exact.
        """
        together = changes
        for change in changes:
            if change.given is None or (len(changes) == 1 and change.part == "inference"):
                continue
            place = together.index(change)
            before, after = together[:place], together[place + 1 :]

            def fits(bound: Changes, before: Changes = before, after: Changes = after) -> bool:
                return self._fits(vm, machine, (*before, *bound, *after))

            together = (*before, *_nearest_bound(change, change.given, fits), *after)
        return together

    def _sufficient_changes(self, vm: Vm, machine: Machine, rejection: Rejection, before: Changes) -> Iterator[Changes]:
        """Yield of each kind of change the first that makes the size fit, together with those `before`."""
        seen: set[Changes] = set()
        for failure in rejection.failures:
            for alternatives in self._proposals(machine, failure, before):
                for changes in alternatives:
                    together = (*before, *changes)
                    if together not in seen and self._fits(vm, machine, together):
                        seen.add(together)
                        yield together
                        break

    def _combinations(self, vm: Vm, machine: Machine, rejection: Rejection, before: Changes) -> Iterator[Changes]:
        """Yield combinations: a change that resolves the worst failure, then changes that resolve the rest."""
        worst = rejection.failures[0]
        kind = (worst.code, worst.constraint)
        for alternatives in self._proposals(machine, worst, before):
            rests: set[Changes] = set()
            for changes in alternatives:
                together = (*before, *changes)
                left = self._find_rejection(vm, machine, together)
                if left is None or any((failure.code, failure.constraint) == kind for failure in left.failures):
                    continue
                fix = next(self._completions(vm, machine, left, together), None)
                # A later alternative gives up more: with the rest of an earlier one it does so for nothing.
                if fix is None or (rest := fix[len(together) :]) in rests:
                    continue
                rests.add(rest)
                yield fix

    def _completions(self, vm: Vm, machine: Machine, rejection: Rejection, before: Changes) -> Iterator[Changes]:
        """Yield what resolves a remaining rejection: one more change, else more of them up to the limit."""
        if _is_fixable(rejection.failures):
            yield from self._sufficient_changes(vm, machine, rejection, before)
            if len(before) + 1 < MAX_CHANGES:
                yield from self._combinations(vm, machine, rejection, before)

    def _proposals(self, machine: Machine, failure: Failure, before: Changes) -> list[Alternatives]:
        """Return the proposals for a failure after the changes `before`; no field is changed twice."""
        prepared = self._prepare_with(before)
        if prepared is None:
            return []
        changed = {(change.part, change.field) for change in before}
        return [
            [changes for changes in alternatives if not changed & {(change.part, change.field) for change in changes}]
            for alternatives in PROPOSALS[failure.code](FixContext(machine=machine, prepared=prepared, failure=failure))
        ]

    def _fits(self, vm: Vm, machine: Machine, changes: Changes) -> bool:
        """Whether a size fits after changes that do not contradict each other; the reason is computed on demand."""
        prepared = self._prepare_with(changes)
        if prepared is None:
            return False
        if changes not in self._rejections and machine.gpus:
            limits, job = prepared.limits, prepared.job
            attempt = prepared.kept.find(machine, limits, lambda compared: job.find_attempt(machine, limits, compared))
            if attempt is None or not attempt.fits:
                return False
        return self._find_rejection(vm, machine, changes) is None

    def _find_rejection(self, vm: Vm, machine: Machine, changes: Changes) -> Rejection | None:
        """Return what a size fails after changes, found once; None where it fits, or the changes are contradictory."""
        if changes not in self._rejections:
            prepared = self._prepare_with(changes)
            verdict = evaluate(vm, machine, prepared) if prepared is not None else None
            self._rejections[changes] = verdict if isinstance(verdict, Rejection) else None
        return self._rejections[changes]

    def _prepare_with(self, changes: Changes) -> PreparedRequest | None:
        if changes not in self._prepared_by_changes:
            self._prepared_by_changes[changes] = self._prepare(changes)
        return self._prepared_by_changes[changes]

    def _prepare(self, changes: Changes) -> PreparedRequest | None:
        request, levels = self._prepared.request, {}
        for change in changes:
            request = request.with_change(change.part, change.field, change.value)
            if change.part == "serving" and change.field in OF_LEVEL_ALONE:
                levels[change.field] = change.value
        if levels:
            others = tuple(change for change in changes if change.field not in levels)
            prepared = self._prepare_with(others)
            return at_level(prepared, request, levels) if prepared is not None else None
        try:
            return self._sharing(prepare(request, Assumptions()))
        except InvalidWorkload:
            return None

    def _sharing(self, prepared: PreparedRequest) -> PreparedRequest:
        """Return a changed request with what is computed for another one whose workload is the same."""
        job = prepared.job
        if isinstance(job, ServingJob):
            for other in (request.job for request in self._prepared_by_changes.values() if request is not None):
                if isinstance(other, ServingJob) and job.serving.workload == other.serving.workload:
                    return replace(prepared, job=job.sharing(other))
        return prepared


def _nearest_bound(change: FieldChange, given: float, fits: Callable[[Changes], bool]) -> Changes:
    """Find the bound that fits nearest to the given value, starting from one that fits; None if none is needed."""
    if fits(()):
        return ()
    scale = SCALES[change.field]
    inside, outside = scale.position(change.value), scale.position(given)
    if change.value < given and scale.value(outside) < given:
        outside += 1
    for _ in range(MAX_STEPS):
        if abs(outside - inside) <= 1:
            break
        middle = (inside + outside) // 2
        sign = "<=" if change.value < given else ">="
        nearer = _bound(change.part, change.field, sign, scale.value(middle), given)
        if fits((nearer,)):
            inside, change = middle, nearer
        else:
            outside = middle
    return (change,)


def _is_fixable(failures: Iterable[Failure]) -> bool:
    """Whether every failure can be resolved by the request: where one cannot, no change of the others helps."""
    return all(failure.code in PROPOSALS for failure in failures)


def may_be_fixed(failures: Iterable[Failure], machine: Machine, prepared: PreparedRequest) -> bool:
    """Whether changes may make a size fit, without trying any: all failures have proposals, and a model has room.

    No fix does with less than its weights in the narrowest type, spread evenly over all GPUs that a copy may be on.
    """
    job, limits = prepared.job, prepared.limits
    if not isinstance(job, ServingJob) or not _is_fixable(failures):
        return _is_fixable(failures)
    narrower = [BITS[change.value] for (change,) in _narrower_weights(job)]
    share = min(narrower) / BITS[job.dtype] if narrower and job.dtype is not None else 1.0
    nodes = replace(limits, max_nodes=limits.max_nodes + MAX_EXTRA_NODES).replica_nodes(machine)
    gpus = 1 if machine.fractional else machine.ranks * nodes
    joins_more = any(failure.code == "NO_INFINIBAND" for failure in failures)
    return joins_more or job.weights.mid * share <= job.budget_bytes(machine) * gpus
