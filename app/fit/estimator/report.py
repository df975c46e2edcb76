"""The result of an estimate: every figure of a workload; None where too little is known."""

from dataclasses import dataclass

from app.fit.estimator.weights import WeightsType
from app.fit.formulas.architecture import Architecture
from app.fit.formulas.assumptions import Assumption, OmittedFigure
from app.fit.formulas.quantities import Figure


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterFigures:
    """Numbers of parameters of the model."""

    total: Figure
    active: Figure


@dataclass(frozen=True, slots=True, kw_only=True)
class KvFigures:
    """KV cache over all GPUs of one copy, and the tokens and sequences that fit into a budget."""

    per_token: Figure | None
    per_sequence: Figure | None
    total: Figure | None
    tokens_in_budget: Figure | None
    sequences_in_budget: Figure | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingMemory:
    """Memory that the fullest GPU of a copy needs, and its budget."""

    tensor_parallel: int
    pipeline_parallel: int
    expert_parallel: int
    data_parallel_attention: int
    copies: int
    weights: Figure
    kv_cache: Figure
    activations: Figure
    overhead: Figure
    need: Figure
    budget: Figure | None
    fits: bool | None
    max_concurrency: Figure | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeFigures:
    """Decoding: the bounds of step time and tokens per second, and their expected values."""

    step: Figure
    expected_step: Figure
    tokens_per_s: Figure
    expected_tokens_per_s: Figure


@dataclass(frozen=True, slots=True, kw_only=True)
class InferenceFigures:
    """Figures of a served model."""

    weights: Figure | None
    kv_cache: KvFigures | None
    memory_per_gpu: ServingMemory | None
    decode: DecodeFigures | None
    prefill: Figure | None
    ttft: Figure | None
    encode: DecodeFigures | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DisaggregationFigures:
    """Replicas that read prompts and replicas that generate, and how a prompt's cache gets from one to the other.

    `prefill_busy` is the share of the time that the former read prompts at the peak.
    """

    prefill_replicas: int
    decode_replicas: int
    prefill_replicas_at_mean: int
    decode_replicas_at_mean: int
    prefill_busy: float
    kv_transfer: Figure


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceReport:
    """What a service takes of one placement; figures are None where a replica misses a target or holds no request.

    `fits` is whether the GPUs that are given are as many as the replicas at the peak take; None where none are given.
    """

    meets_targets: bool
    fits: bool | None
    replicas: int | None
    replicas_at_mean: int | None
    gpus: int | None
    gpus_at_mean: int | None
    concurrency_per_replica: int
    max_concurrency_per_replica: int
    limited_by: str
    request: Figure | None = None
    requests_per_s: Figure | None = None
    peak_requests_per_s: Figure | None = None
    mean_requests_per_s: Figure | None = None
    disaggregation: DisaggregationFigures | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StateFigures:
    """Model states on the fullest GPU; `host` is the memory of a node for offloaded states."""

    recipe: str
    bytes_per_param: Figure
    weights: Figure
    gradients: Figure
    optimizer: Figure
    frozen_base: Figure
    static: Figure
    total: Figure
    host: Figure | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivationFigures:
    """Activations of one micro-batch on one GPU."""

    formula: str
    hidden_states: Figure | None
    checkpoints: Figure | None
    layer_working_set: Figure | None
    kept: Figure | None
    logits_fp32: Figure | None
    checkpointed_peak: Figure | None
    selective_saving: Figure | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingMemory:
    """Memory that the fullest GPU needs."""

    tensor_parallel: int
    pipeline_parallel: int
    data_parallel: int
    states: Figure
    activations: Figure | None
    buffers: Figure
    overhead: Figure
    need: Figure
    fits: bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputeFigures:
    """FLOPs, throughput and time of training."""

    model_flops: Figure | None
    hardware_flops: Figure | None
    tokens_per_s: Figure | None
    gpu_hours: Figure | None
    days: Figure | None
    iteration: Figure | None
    iteration_flops: Figure | None
    hfu_over_mfu: Figure | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingFigures:
    """Figures of a trained model."""

    trainable_params: Figure | None
    states: StateFigures | None
    activations: ActivationFigures | None
    memory_per_gpu: TrainingMemory | None
    compute: ComputeFigures


@dataclass(frozen=True, slots=True, kw_only=True)
class CostFigures:
    """Costs at the given price per GPU and hour."""

    per_hour: Figure
    per_month: Figure
    per_job: Figure | None
    per_million_tokens: Figure | None
    per_request: Figure | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """The whole result; `architecture` is the model as it was completed."""

    architecture: Architecture
    parameters: ParameterFigures | None
    inference: InferenceFigures | None = None
    training: TrainingFigures | None = None
    serving: ServiceReport | None = None
    cost: CostFigures | None = None
    weights_type: WeightsType | None = None
    assumptions: tuple[Assumption, ...] = ()
    left_out: tuple[OmittedFigure, ...] = ()
