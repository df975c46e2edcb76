"""What is answered: every figure of a workload, None where too little is known, and what was left out and why."""

from dataclasses import dataclass

from app.fit.estimator.weights import WeightsType
from app.fit.formulas.architecture import Architecture
from app.fit.formulas.assumptions import Assumption, OmittedFigure
from app.fit.formulas.quantities import Figure


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterFigures:
    """Parameters of the model."""

    total: Figure
    active: Figure


@dataclass(frozen=True, slots=True, kw_only=True)
class KvFigures:
    """The KV cache of all GPUs of one copy together, and what a budget holds."""

    per_token: Figure | None
    per_sequence: Figure | None
    total: Figure | None
    tokens_in_budget: Figure | None
    sequences_in_budget: Figure | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingMemory:
    """What the fullest GPU of a copy needs, and what it may use."""

    tensor_parallel: int
    pipeline_parallel: int
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
    """Generating: the least time of a step, the most tokens a second; and what is expected of either."""

    step: Figure
    expected_step: Figure
    tokens_per_s: Figure
    expected_tokens_per_s: Figure


@dataclass(frozen=True, slots=True, kw_only=True)
class InferenceFigures:
    """A model that is served."""

    weights: Figure | None
    kv_cache: KvFigures | None
    memory_per_gpu: ServingMemory | None
    decode: DecodeFigures | None
    prefill: Figure | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StateFigures:
    """Model states of the fullest GPU; `host` is the memory of a node for what is offloaded."""

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
    """What the fullest GPU needs."""

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
    """What training computes, and how long it takes."""

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
    """A model that is trained."""

    trainable_params: Figure | None
    states: StateFigures | None
    activations: ActivationFigures | None
    memory_per_gpu: TrainingMemory | None
    compute: ComputeFigures


@dataclass(frozen=True, slots=True, kw_only=True)
class CostFigures:
    """What the given price comes to."""

    per_hour: Figure
    per_month: Figure
    per_job: Figure | None
    per_million_tokens: Figure | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """The whole answer; `architecture` is the model as it was understood."""

    architecture: Architecture
    parameters: ParameterFigures | None
    inference: InferenceFigures | None = None
    training: TrainingFigures | None = None
    cost: CostFigures | None = None
    weights_type: WeightsType | None = None
    assumptions: tuple[Assumption, ...] = ()
    left_out: tuple[OmittedFigure, ...] = ()
