"""The input of a placement, prepared for evaluation on every size: what does not depend on the size is computed once.

A request is a model and its workload, constraints on the sizes, and pricing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from functools import lru_cache
from typing import Any

from app.fit.estimator.estimate import raise_missing
from app.fit.estimator.model import Model, resolve_model
from app.fit.estimator.service_level import at_service_level
from app.fit.estimator.serving import (
    ServingSetup,
    check_context_length,
    has_no_context,
    kv_cache_of,
    load_of,
    served_model,
    weights_range,
    with_context,
    with_weights,
)
from app.fit.estimator.serving_speed import record_lengths, refuse_other_kinds, workload_of_kind
from app.fit.estimator.training_memory import (
    BASE_DTYPES,
    TrainingSetup,
    forward_pass_of,
    recipe_of,
    trainable_params,
    trained_model,
)
from app.fit.estimator.training_time import precision, run_overhead, work_per_token
from app.fit.estimator.workload import (
    PARALLEL_FIELDS,
    Gpus,
    InferenceWorkload,
    ServiceLevel,
    TrainingWorkload,
    check_experts,
    check_training,
)
from app.fit.formulas.architecture import Architecture, typical_shape
from app.fit.formulas.memory import Parallelism, missing_for_cache
from app.fit.formulas.quantities import DEFAULTS, ZERO, Assumption, Assumptions, InvalidWorkload
from app.fit.formulas.training_memory import TrainedModel
from app.fit.formulas.training_speed import PRECISION_DTYPES, SpotTerms
from app.fit.placement.jobs import ServingJob, TrainingJob
from app.fit.placement.layouts import PartitionLimits, SearchLimits, blocked_widths, checkpoint_quantization
from app.fit.placement.machine import KeptByGpus
from app.fit.verdict import SizeConstraints

Workload = InferenceWorkload | TrainingWorkload
Job = ServingJob | TrainingJob


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraints:
    """Constraints on an option."""

    regions: tuple[str, ...] = ()
    min_nodes: int = 1
    max_nodes: int = 1
    utilization: float | None = None
    tp_in_nvlink: bool = False
    require_infiniband: bool | None = None
    allow_preview: bool = True
    allow_retiring: bool = True
    allow_legacy: bool = False
    verified_only: bool = False
    checkpoint_on_local_disk: bool = False
    budget_usd_per_month: Decimal | None = None
    budget_usd_per_job: Decimal | None = None
    max_hours: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pricing:
    """Which purchase models are priced (the first one ranks), how long the VMs run, and the day of the prices.

    `spot_overhead` is what interruptions add to a training, as a share; where it is None, it follows from evictions and
    checkpoints.
    """

    purchases: tuple[str, ...] = ("on_demand", "spot")
    hours: Decimal | None = None
    hours_per_month: Decimal = Decimal(730)
    spot_overhead: Decimal | None = None
    spot_evictions_per_hour: float | None = None
    spot_restart_minutes: float | None = None
    checkpoint_interval_minutes: float | None = None
    checkpoint_gb_per_s: float | None = None
    checkpoint_usd_per_gb_month: float | None = None
    checkpoints_kept: int | None = None
    today: date

    @property
    def purchase(self) -> str:
        """The purchase model that options are ranked by and that budgets apply to."""
        return self.purchases[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacementRequest:
    """A placement request; `machine_described` where it is about one machine that is not of the catalog.

    `memory_unknown` where the GPU memory of that is not given.
    `serving` is the load and the targets of a service; None where the workload says its concurrency.
    """

    architecture: Architecture
    workload: Workload
    serving: ServiceLevel | None = None
    constraints: Constraints = field(default_factory=Constraints)
    pricing: Pricing
    machine_described: bool = False
    memory_unknown: bool = False

    def with_change(self, part: str, name: str, value: Any) -> "PlacementRequest":
        """Return this request with one field changed: of its constraints, its service level or else its workload."""
        if part == "constraints":
            return replace(self, constraints=replace(self.constraints, **{name: value}))
        if part == "serving" and self.serving is not None:
            return replace(self, serving=replace(self.serving, **{name: value}))
        return replace(self, workload=replace(self.workload, **{name: value}))

    @property
    def on_gpus(self) -> "PlacementRequest":
        """The request without what decides nothing about a job on GPUs: constraints on regions, statuses and costs.

        Of prices a training depends on those of spot VMs.
        """
        pricing = Pricing(today=date.min)
        if isinstance(self.workload, TrainingWorkload):
            pricing = replace(self.pricing, hours=None, hours_per_month=Decimal(0), today=date.min)
        return replace(
            self,
            constraints=replace(
                self.constraints,
                regions=(),
                allow_preview=True,
                allow_retiring=True,
                verified_only=False,
                checkpoint_on_local_disk=False,
                budget_usd_per_month=None,
                budget_usd_per_job=None,
            ),
            pricing=pricing,
        )

    @property
    def limits(self) -> SearchLimits:
        """The bounds of the search.

        Training over several VMs, and a replica of a service on several, require InfiniBand unless that is waived.
        """
        constraints, trains = self.constraints, isinstance(self.workload, TrainingWorkload)
        required = constraints.require_infiniband
        return SearchLimits(
            min_nodes=constraints.min_nodes,
            max_nodes=constraints.max_nodes,
            tp_in_nvlink=constraints.tp_in_nvlink,
            require_infiniband=trains or self.serving is not None if required is None else required,
            replicas_exchange_data=trains,
            timed=self.serving is not None,
        )

    @property
    def size_constraints(self) -> SizeConstraints:
        """The constraints that do not depend on the workload."""
        constraints = self.constraints
        orderable = {"preview": constraints.allow_preview, "retiring": constraints.allow_retiring}
        return SizeConstraints(
            statuses=frozenset({"current", *(status for status, allowed in orderable.items() if allowed)}),
            regions=constraints.regions,
            max_nodes=constraints.max_nodes,
            purchase=self.pricing.purchase,
            hours=self.pricing.hours,
            hours_per_month=self.pricing.hours_per_month,
            budget_usd_per_month=constraints.budget_usd_per_month,
            verified_only=constraints.verified_only,
            today=self.pricing.today,
        )


TRAINING_UTILIZATION = 0.95
"""Share of GPU memory that training may use; the rest is reserved for fragmentation.

ZeRO, arXiv 1910.02054, section 6.3, saw more than 30 % of memory unusable.
"""
FULL_STAGES = (0, 1, 2, 3)
ADAPTER_STAGES = (0, 3)
"""ZeRO stages tried where none is requested. Adapters are so small that sharding only their states gains nothing."""


MAX_JOBS = 64
"""How many jobs are kept. A request with everything that is tried as a fix has 10, some have 30."""


class MemoryUnknown(InvalidWorkload):
    """The GPU memory of the machine is unknown, and the request asks for more than a partition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedRequest:
    """A request with everything that does not depend on the size; `parallelism` is the requested one, 1 where unset.

    `kept` is what was found for machines with it. `alone`: the model is on one VM, and its speed is no condition.
    """

    request: PlacementRequest
    job: Job
    parallelism: Parallelism
    limits: SearchLimits
    size_constraints: SizeConstraints
    alone: bool
    kept: KeptByGpus = field(compare=False, repr=False)


def prepare(request: PlacementRequest, assumptions: Assumptions) -> PreparedRequest:
    """Prepare a request; raises InvalidWorkload where it contradicts itself or a needed field is missing.

    Raises MemoryUnknown where the memory of a GPU is missing: only the caller, who described the machine, can say which
    field would state it.

    What is assumed is added to `assumptions`, which may already hold assumptions about the model.
    """
    released = request.architecture.released
    is_long = released is not None and released.quantization is not None and not released.quantization.is_kept
    is_kept = not request.machine_described and not is_long
    job, assumed, kept = kept_job(request.on_gpus) if is_kept else prepare_job(request)
    assumptions.add(assumed)
    return PreparedRequest(
        request=request,
        job=job,
        parallelism=job.partition.requested,
        limits=request.limits,
        size_constraints=request.size_constraints,
        # How well a training is measured may depend on the network of those that were, whatever its own VM has.
        alone=isinstance(job, ServingJob) and request.serving is None and request.constraints.max_nodes == 1,
        kept=kept,
    )


OF_LOAD = ("users", "requests_per_second", "requests_per_day")
OF_LEVEL_ALONE = (*OF_LOAD, "ttft_ms", "tpot_ms")
"""Fields of a service that only change the load level of a job: concurrency and targets."""


def at_level(prepared: PreparedRequest, request: PlacementRequest, changed: Mapping[str, Any]) -> PreparedRequest:
    """Return a prepared service whose OF_LEVEL_ALONE fields are those of the request."""
    job = prepared.job
    if not isinstance(job, ServingJob) or job.level is None:
        raise ValueError("no service")
    same_targets = changed.keys() <= set(OF_LOAD)
    changed_job = job.with_level(replace(job.level, **changed), same_targets=same_targets)
    return replace(prepared, request=request, job=changed_job, kept=KeptByGpus())


def prepare_job(request: PlacementRequest) -> tuple[Job, tuple[Assumption, ...], KeptByGpus]:
    """Return the job of a request on any GPUs, what is assumed for it, and what is found for machines with it.

    Raises what `prepare` does.
    """
    assumptions, constraints, workload = Assumptions(), request.constraints, request.workload
    if constraints.min_nodes > constraints.max_nodes:
        detail = f"{constraints.min_nodes} is more than max_nodes, {constraints.max_nodes}"
        raise InvalidWorkload("constraints.min_nodes", detail)
    level = request.serving
    if level is not None and isinstance(workload, InferenceWorkload):
        workload, level = at_service_level(workload, level, assumptions)
    if request.memory_unknown and not _only_partition(workload):
        raise MemoryUnknown("memory_unknown", "only a given partition can be checked without the memory of a GPU")
    job: Job
    if isinstance(workload, InferenceWorkload):
        job = replace(_serving_job(request, workload, assumptions), level=level)
    else:
        job = _training_job(request, workload, assumptions)
    return job, assumptions.recorded, KeptByGpus()


kept_job = lru_cache(maxsize=MAX_JOBS)(prepare_job)
"""Returns a job as `prepare_job` does, the last ones with what was found for machines with them.

Clients vary regions, budgets and orders, and look for the same fixes. It is not for described machines, of which there
are as many as clients describe, nor for configurations with megabytes of names.
"""


def _only_partition(workload: Workload) -> bool:
    """Whether the request only checks that the model can be partitioned in a given way, without any memory."""
    if not isinstance(workload, InferenceWorkload) or not has_no_context(workload):
        return False
    partition_given = any(getattr(workload, name) is not None for name in PARALLEL_FIELDS)
    return partition_given and workload.prompt_tokens is None


def _serving_job(request: PlacementRequest, workload: InferenceWorkload, assumptions: Assumptions) -> ServingJob:
    model = resolve_model(request.architecture, assumptions)
    if request.serving is not None:
        refuse_other_kinds(model.shape, "serving")
    stated = workload_of_kind(model.shape, workload, assumptions)
    workload = with_context(stated, model.shape, assumptions)
    workload = _with_usual_context(workload, model.shape, assumptions)
    parts = []
    is_assumed = any(note.field == "inference.context_tokens" for note in assumptions.recorded)
    if is_assumed and None in (stated.prompt_tokens, stated.output_tokens):
        parts.append(f"a context of {workload.context_tokens:,} tokens")
    check_experts(workload, model.shape.experts)
    given, limit = workload.utilization, request.constraints.utilization
    if limit is not None and given is not None:
        raise InvalidWorkload("constraints.utilization", "and inference.utilization say the same thing: give one")
    utilization = assumptions.get(given if limit is None else limit, "inference.utilization")
    workload = replace(workload, utilization=utilization)
    serving = with_weights(ServingSetup(model=model, workload=workload, gpus=Gpus(), assumptions=assumptions))
    draft = serving.workload.speculative
    if draft is not None and draft != workload.speculative:
        parts.append("a draft without weights" if draft.mtp_layers is None else "multi-token prediction as the draft")
    check_context_length(serving, is_service=request.serving is not None)
    if model.shape.kind == "decoder":
        record_lengths(serving)
    weights, cache = weights_range(serving), kv_cache_of(serving)
    if weights is None and not request.memory_unknown:
        raise_missing("inference", "inference.weights", assumptions)
    sized = cache is not None or workload.kv_bytes_per_sequence is not None or not model.shape.keeps_cache
    if not sized and workload.context_tokens is not None:
        raise_missing("inference.context_tokens", "inference.kv_cache", assumptions)
    weights = weights or ZERO
    dtype = serving.weights.type.dtype if serving.weights is not None else workload.dtype
    concurrency = assumptions.get(workload.concurrency, "inference.concurrency")
    served = served_model(serving, weights, cache)
    return ServingJob(
        serving=serving,
        weights=weights,
        served=served,
        load=load_of(serving, concurrency),
        concurrency=concurrency,
        utilization=utilization,
        partition=replace(
            _partition_limits(model, workload.tensor_parallel, workload.pipeline_parallel),
            experts=model.shape.experts if weights.mid else None,
            expert=workload.expert_parallel,
            data=workload.data_parallel_attention,
            blocked_widths=blocked_widths(model.shape, checkpoint_quantization(model.shape, dtype)),
        ),
        dtype=dtype,
        kv_dtype=workload.kv_dtype,
        assumed=f"assuming {' and '.join(parts)}" if parts else "",
    )


def _with_usual_context(
    workload: InferenceWorkload, shape: Architecture, assumptions: Assumptions
) -> InferenceWorkload:
    """Return the workload with a usual context where it says how many sequences are held, and not how long they are.

    Without one they would take no memory. Where neither is said, the question is whether the weights fit.
    """
    counted = shape.keeps_cache and not missing_for_cache(shape)
    if workload.concurrency is None or not has_no_context(workload) or not counted:
        return workload
    usual, why = DEFAULTS["inference.context_tokens"]
    context = assumptions.record("inference.context_tokens", min(usual, shape.max_positions or usual), why)
    return replace(workload, context_tokens=context)


def _partition_limits(model: Model, tensor: int | None, pipeline: int | None) -> PartitionLimits:
    shape = model.shape
    widths = {shape.intermediate, shape.shared_intermediate or None}
    return PartitionLimits(
        heads=shape.heads,
        kv_heads=shape.kv_heads if shape.kv_lora_rank is None else None,
        mlp_widths=tuple(sorted(width for width in widths if width is not None)),
        expert_widths=(shape.moe_intermediate,) if shape.experts and shape.moe_intermediate is not None else (),
        layers=shape.layers,
        tensor=tensor,
        pipeline=pipeline,
    )


def _training_job(request: PlacementRequest, workload: TrainingWorkload, assumptions: Assumptions) -> TrainingJob:
    refuse_other_kinds(request.architecture, "training")
    check_training(workload)
    model = resolve_model(_with_typical_shape(request.architecture, assumptions), assumptions)
    # Where no stage is requested, `_zero_stages` copies this model to every stage to try.
    sharded = replace(workload, zero_stage=workload.zero_stage or 0)
    training = TrainingSetup(model=model, workload=sharded, gpus=Gpus(), assumptions=assumptions)
    params = trainable_params(training)
    base = trained_model(training, params, forward_pass_of(training)) if params is not None else None
    if base is None or params is None or model.count is None:
        raise_missing("training", "training", assumptions)
    utilization = request.constraints.utilization
    if utilization is None:
        utilization = assumptions.record("constraints.utilization", TRAINING_UTILIZATION, "room for fragmentation")
    name, recipe = recipe_of(training)
    if workload.tokens is not None and workload.gpu_hours is None:
        run_overhead(training, stated=workload.tokens_per_s_per_gpu is not None)
    weight_bytes = base.frozen_bytes if training.method in BASE_DTYPES else 2.0 * params
    return TrainingJob(
        training=training,
        states_by_stage=_zero_stages(base, workload.zero_stage, training.method, assumptions),
        utilization=utilization,
        partition=_partition_limits(
            model,
            workload.tensor_parallel,
            assumptions.get(workload.pipeline_parallel, "training.pipeline_parallel"),
        ),
        compute_dtype=_compute_dtype(training, name, recipe.weights),
        params=model.count.total,
        work=work_per_token(training),
        max_replicas=workload.global_batch // (workload.micro_batch or 1) if workload.global_batch else None,
        disk_bytes=weight_bytes + params * recipe.optimizer,
        spot=_spot_terms(request.pricing, assumptions),
        max_hours=request.constraints.max_hours,
        loading=assumptions.get(workload.loading, "training.loading"),
    )


def _spot_terms(pricing: Pricing, assumptions: Assumptions) -> SpotTerms | None:
    """Return how spot VMs are evicted and where checkpoints go; None where that is not needed."""
    if "spot" not in pricing.purchases or pricing.spot_overhead is not None:
        return None
    interval, get = pricing.checkpoint_interval_minutes, assumptions.get
    return SpotTerms(
        evictions_per_hour=get(pricing.spot_evictions_per_hour, "pricing.spot_evictions_per_hour"),
        restart_hours=get(pricing.spot_restart_minutes, "pricing.spot_restart_minutes") / 60,
        bytes_per_s=get(pricing.checkpoint_gb_per_s, "pricing.checkpoint_gb_per_s") * 1e9,
        usd_per_gb_month=get(pricing.checkpoint_usd_per_gb_month, "pricing.checkpoint_usd_per_gb_month"),
        checkpoints=get(pricing.checkpoints_kept, "pricing.checkpoints_kept"),
        interval_hours=interval / 60 if interval is not None else None,
    )


def _with_typical_shape(shape: Architecture, assumptions: Assumptions) -> Architecture:
    """Fill in typical layers and width for activations and adapters, where only parameters are known."""
    if shape.params is None or not shape.missing_fields("layers", "hidden"):
        return shape
    filled = typical_shape(shape)
    why = "a typical transformer with this number of parameters"
    for name in ("layers", "hidden"):
        assumptions.record(f"architecture.{name}", getattr(filled, name), why)
    return filled


def _zero_stages(
    base: TrainedModel, requested: int | None, method: str, assumptions: Assumptions
) -> dict[int, TrainedModel]:
    """Return the trained model under each ZeRO stage to try: the requested one, else all that make a difference."""
    if requested is not None:
        return {requested: base}
    stages = ADAPTER_STAGES if method in BASE_DTYPES else FULL_STAGES
    assumptions.record("training.zero_stage", list(stages), "the lowest with which the fewest VMs do")
    return {stage: replace(base, stage=stage) for stage in stages}


def _compute_dtype(training: TrainingSetup, recipe: str, weight_bytes: float) -> str:
    """Return the type of the precision, else of the recipe; fp16 stands for whichever 16-bit type the GPU has."""
    if training.workload.precision is not None:
        return PRECISION_DTYPES[training.workload.precision]
    if recipe.startswith("fp32") or (recipe == "given" and weight_bytes >= 4):  # noqa: PLR2004  # bytes of fp32
        return "fp32"
    precision(training)
    return "bf16" if recipe.startswith("bf16") else "fp16"
