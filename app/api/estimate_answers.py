"""The wire of an estimate: figures with their unit and how sure they are, in the order in which they are asked for."""

from typing import Any

from pydantic import Field

from app.api.estimate_models import ArchitectureOut
from app.api.schemas import Out, Part


class FigureOut(Out):
    """A figure: `value` where it is exact or a bound, `low`, `mid` and `high` where it is an estimate."""

    certainty: str = Field(serialization_alias="class", description="exact, bound or estimate. Extensible.")
    unit: str
    value: float | None
    low: float | None
    mid: float | None
    high: float | None


class ParametersOut(Out):
    """Parameters of the model."""

    total: FigureOut
    active: FigureOut = Field(description="Those that a token passes through.")


class KvCacheOut(Out):
    """The KV cache of one copy, replicas of heads on tensor ranks not counted."""

    per_token: Part[FigureOut] = Field(description="Of one sequence, before any window is full.")
    per_sequence: Part[FigureOut]
    total: Part[FigureOut] = Field(description="Of all sequences at the same time.")
    tokens_in_budget: Part[FigureOut]
    sequences_in_budget: Part[FigureOut]


class ServingMemoryOut(Out):
    """What the fullest GPU of one copy needs, and whether it has it."""

    tensor_parallel: int
    pipeline_parallel: int
    copies: int
    weights: FigureOut
    kv_cache: FigureOut = Field(description="With heads that tensor ranks replicate.")
    activations: FigureOut = Field(description="Of one step.")
    overhead: FigureOut = Field(description="The runtime and the buffers of collectives.")
    need: FigureOut
    budget: Part[FigureOut] = Field(description="What of a GPU is used; needs gpus.usable_gib.")
    fits: bool | None = Field(description="Whether the middle of the need is within the budget.")
    max_concurrency: Part[FigureOut] = Field(description="Sequences that all copies serve at the same time.")


class DecodeOut(Out):
    """Generating tokens: what no system beats, and what is expected."""

    step: FigureOut = Field(description="The least time of one token of every sequence.")
    expected_step: FigureOut
    tokens_per_s: FigureOut = Field(description="The most of all copies together.")
    expected_tokens_per_s: FigureOut


class InferenceOut(Out):
    """A model that is served."""

    weights: Part[FigureOut]
    kv_cache: Part[KvCacheOut]
    memory_per_gpu: Part[ServingMemoryOut]
    decode: Part[DecodeOut] = Field(description="Needs gpus.bandwidth_gb_per_s.")
    prefill: Part[FigureOut] = Field(description="Time to read one prompt; needs gpus.peak_tflops.")


class StatesOut(Out):
    """Model states of the fullest GPU."""

    recipe: str = Field(description="The recipe, or `given`. Extensible.")
    bytes_per_param: FigureOut = Field(description="Before sharding.")
    weights: FigureOut
    gradients: FigureOut
    optimizer: FigureOut
    frozen_base: FigureOut = Field(description="Of LoRA and QLoRA.")
    static: FigureOut
    total: FigureOut
    host: Part[FigureOut] = Field(description="Memory of a host for what is offloaded.")


class ActivationsOut(Out):
    """Activations of one micro-batch on one GPU."""

    formula: str = Field(description="korthikanti, modern or zero. Extensible.")
    hidden_states: Part[FigureOut] = Field(description="One hidden state.")
    checkpoints: Part[FigureOut] = Field(description="The inputs of all layers: what full recomputation keeps.")
    layer_working_set: Part[FigureOut] = Field(description="What one layer keeps.")
    kept: Part[FigureOut] = Field(description="What all layers keep, recomputed as asked.")
    logits_fp32: Part[FigureOut]
    checkpointed_peak: Part[FigureOut] = Field(description="Checkpoints, one layer's working set, and logits.")
    selective_saving: Part[FigureOut] = Field(description="Share of a GPT layer that selective recomputation saves.")


class TrainingMemoryOut(Out):
    """What the fullest GPU needs, and whether it has it."""

    tensor_parallel: int
    pipeline_parallel: int
    data_parallel: int
    states: FigureOut
    activations: Part[FigureOut] = Field(description="With logits; needs training.sequence_tokens.")
    buffers: FigureOut = Field(description="What sharding gathers for a moment.")
    overhead: FigureOut
    need: FigureOut
    fits: bool | None = Field(description="Whether the middle of the need is within gpus.usable_gib.")


class ComputeOut(Out):
    """What training computes, and how long it takes."""

    model_flops: Part[FigureOut]
    hardware_flops: Part[FigureOut] = Field(description="With what is computed anew.")
    tokens_per_s: Part[FigureOut] = Field(description="Of all GPUs together.")
    gpu_hours: Part[FigureOut]
    days: Part[FigureOut]
    iteration: Part[FigureOut] = Field(description="One step of the global batch.")
    iteration_flops: Part[FigureOut]
    hfu_over_mfu: Part[FigureOut] = Field(description="What selective recomputation adds, for a GPT.")


class TrainingOut(Out):
    """A model that is trained."""

    trainable_params: Part[FigureOut]
    states: Part[StatesOut]
    activations: Part[ActivationsOut]
    memory_per_gpu: Part[TrainingMemoryOut]
    compute: ComputeOut


class EstimateCostOut(Out):
    """What the given price comes to; every GPU is paid for."""

    per_hour: FigureOut
    per_month: FigureOut = Field(description="730 hours.")
    per_job: Part[FigureOut]
    per_million_tokens: Part[FigureOut] = Field(description="Generated at the expected rate.")


class AssumptionOut(Out):
    """A value that was not given."""

    field: str = Field(description="The field that would say it: `inference.dtype`.")
    value: Any
    why: str


class LeftOutOut(Out):
    """A figure that was not computed."""

    figure: str
    missing: list[str] = Field(description="The fields that it needs.")


class EstimateOut(Out):
    """A workload broken down; a part that was not asked for, or of which too little is known, is left out."""

    architecture: ArchitectureOut
    parameters: Part[ParametersOut]
    inference: Part[InferenceOut]
    training: Part[TrainingOut]
    cost: Part[EstimateCostOut] = Field(description="Needs gpus.usd_per_gpu_hour.")
    assumptions: list[AssumptionOut] = Field(description="Every default that a figure was computed from.")
    left_out: list[LeftOutOut]
