"""The response of POST /estimate: figures with their unit and certainty, grouped as in the request."""

from typing import Any

from pydantic import Field

from app.schemas.sizes import Omittable, Out


class ArchitectureOut(Out):
    """The architecture that the figures are computed from; null is unknown."""

    kind: str = Field(
        description="decoder (generates text), encoder (reads it only), speech or diffusion (images). Extensible."
    )
    params: int | None = Field(description="As stated; `parameters` has the figures that are used.")
    active_params: int | None = Field(description="Parameters that a token passes through.")
    layers: int | None = Field(description="Layers.")
    hidden: int | None = Field(description="Width of the residual stream.")
    heads: int | None = Field(description="Query heads.")
    kv_heads: int | None = Field(description="Key and value heads.")
    head_dim: int | None = Field(description="Width of a head's query and key.")
    intermediate: int | None = Field(description="Width of a dense MLP.")
    vocab: int | None = Field(description="Rows of the embedding.")
    max_positions: int | None = Field(description="The longest context the configuration names, tokens.")
    attention: str | None = Field(description="mha, gqa, mqa or mla. Extensible.")
    mlp: str = Field(description="gated or plain. Extensible.")
    tied_embeddings: bool = Field(description="Whether the output layer is the embedding.")
    kv_layers: int | None = Field(description="Layers that keep keys and values.")
    sliding_window: int | None = Field(description="Tokens that a windowed layer looks back on.")
    sliding_layers: int | None = Field(description="Layers that look back on the window only.")
    q_lora_rank: int | None = Field(description="mla: width that queries are compressed to.")
    kv_lora_rank: int | None = Field(description="mla: width of the latent vector that is cached.")
    qk_nope_head_dim: int | None = Field(description="mla: part of head_dim without position.")
    qk_rope_head_dim: int | None = Field(description="mla: part of head_dim with position.")
    v_head_dim: int | None = Field(description="mla: width of a head's value.")
    experts: int | None = Field(description="Routed experts of a layer.")
    experts_per_token: int | None = Field(description="Routed experts that a token uses.")
    moe_intermediate: int | None = Field(description="Width of one expert.")
    shared_intermediate: int = Field(description="Width of all shared experts together.")
    shared_expert_gate: bool = Field(description="Whether shared experts are gated.")
    moe_layers: int | None = Field(description="Layers with experts.")
    router_bias: bool = Field(description="Whether the router has a bias.")
    qkv_bias: bool = Field(description="Whether queries, keys and values have biases.")
    output_bias: bool = Field(description="Whether the output of attention has a bias.")
    mlp_bias: bool = Field(description="Whether the MLP has biases.")
    norm_bias: bool = Field(description="Whether norms have a bias.")
    lm_head_bias: bool = Field(description="Whether the output layer has a bias.")
    qk_norm: str | None = Field(description="per_head or all_heads. Extensible.")
    attention_sinks: bool = Field(description="Whether heads have a learned sink.")
    norms_per_layer: int = Field(description="Norms of a layer over the width.")
    embedding_norm: bool = Field(description="Whether there is a norm after the embedding.")
    learned_positions: int = Field(description="Positions with a learned embedding.")


class EvidenceOut(Out):
    """The measurements that the range of an estimate rests on."""

    family: str = Field(description="The family in GET /accuracy: `decode_step`. Extensible.")
    n: int = Field(description="The measurements of the family.")
    outside: list[str] = Field(
        description="In what the request departs from them, so that the range is wider: gpu, link, … Extensible."
    )


class FigureOut(Out):
    """A figure: `value` where it is exact or a bound, `low`, `mid` and `high` where it is an estimate."""

    certainty: str = Field(serialization_alias="class", description="exact, bound or estimate. Extensible.")
    unit: str = Field(description="The unit of all of them.")
    value: float | None = Field(description="The figure, or the bound; null of an estimate.")
    low: float | None = Field(description="The low end of an estimate.")
    mid: float | None = Field(description="The middle of an estimate.")
    high: float | None = Field(description="The high end of an estimate.")
    evidence: Omittable[EvidenceOut] = Field(
        default=None, description="What the range rests on, where it was compared with measurements."
    )


class ParametersOut(Out):
    """Parameters of the model."""

    total: FigureOut = Field(description="All of them.")
    active: FigureOut = Field(description="Those that a token passes through.")


class KvCacheOut(Out):
    """The KV cache of one copy, replicas of heads on tensor ranks not counted."""

    per_token: Omittable[FigureOut] = Field(description="Of one sequence, before any window is full.")
    per_sequence: Omittable[FigureOut] = Field(description="Of one sequence of the context.")
    total: Omittable[FigureOut] = Field(description="Of all sequences at the same time.")
    tokens_in_budget: Omittable[FigureOut] = Field(description="Tokens that fit in the budget.")
    sequences_in_budget: Omittable[FigureOut] = Field(description="Sequences of the context that fit in the budget.")


class ServingMemoryOut(Out):
    """The memory that the fullest GPU of one copy needs, and whether it has it."""

    tensor_parallel: int = Field(description="GPUs that each layer is cut over.")
    pipeline_parallel: int = Field(description="Stages that the layers are cut into.")
    expert_parallel: int = Field(description="GPUs that routed experts are dealt out over, whole; 1: each is cut.")
    data_parallel_attention: int = Field(description="Groups of GPUs with sequences and attention of their own.")
    copies: int = Field(description="Copies of the model that the GPUs hold.")
    weights: FigureOut = Field(description="Weights on the fullest GPU.")
    kv_cache: FigureOut = Field(description="With heads that tensor ranks replicate.")
    activations: FigureOut = Field(description="Of one step.")
    overhead: FigureOut = Field(description="The runtime and the buffers of collectives.")
    need: FigureOut = Field(description="All parts together.")
    budget: Omittable[FigureOut] = Field(description="The memory of a GPU that may be used; needs gpus.usable_gib.")
    fits: bool | None = Field(description="Whether the middle of the need is within the budget.")
    max_concurrency: Omittable[FigureOut] = Field(description="Sequences that all copies serve at the same time.")


class DecodeOut(Out):
    """Generating tokens: the bound that no system beats, and the expected figures."""

    step: FigureOut = Field(description="The least time of one token of every sequence.")
    expected_step: FigureOut = Field(description="The expected time of a step.")
    tokens_per_s: FigureOut = Field(description="The most of all copies together.")
    expected_tokens_per_s: FigureOut = Field(description="Of all copies together, as expected.")


class EncodeOut(Out):
    """Reading a batch of sequences without generating: the bound that no system beats, and an assumption."""

    step: FigureOut = Field(description="The least time of a batch: `concurrency` sequences of `context_tokens`.")
    expected_step: FigureOut = Field(description="The expected time of a batch.")
    tokens_per_s: FigureOut = Field(description="The most that all copies together read.")
    expected_tokens_per_s: FigureOut = Field(description="Of all copies together; compared with no measurement yet.")


class InferenceOut(Out):
    """A model that is served."""

    weights: Omittable[FigureOut] = Field(description="Weights of one copy.")
    kv_cache: Omittable[KvCacheOut] = Field(description="The KV cache; needs inference.context_tokens.")
    memory_per_gpu: Omittable[ServingMemoryOut] = Field(description="The fullest GPU of one copy.")
    decode: Omittable[DecodeOut] = Field(description="Needs gpus.bandwidth_gb_per_s.")
    prefill: Omittable[FigureOut] = Field(description="Time to read one prompt; needs gpus.peak_tflops.")
    ttft: Omittable[FigureOut] = Field(
        description="Time to the first token under the load; needs gpus.peak_tflops and gpus.bandwidth_gb_per_s."
    )
    encode: Omittable[EncodeOut] = Field(default=None, description="Of an encoder; needs gpus.peak_tflops.")


class StatesOut(Out):
    """Model states of the fullest GPU."""

    recipe: str = Field(description="The recipe, or `given`. Extensible.")
    bytes_per_param: FigureOut = Field(description="Before sharding.")
    weights: FigureOut = Field(description="Weights that are trained.")
    gradients: FigureOut = Field(description="Gradients.")
    optimizer: FigureOut = Field(description="State of the optimizer.")
    frozen_base: FigureOut = Field(description="Of LoRA and QLoRA.")
    static: FigureOut = Field(description="Whatever else every GPU holds.")
    total: FigureOut = Field(description="All of them.")
    host: Omittable[FigureOut] = Field(description="Memory of a host for what is offloaded.")


class ActivationsOut(Out):
    """Activations of one micro-batch on one GPU."""

    formula: str = Field(description="korthikanti, modern or zero. Extensible.")
    hidden_states: Omittable[FigureOut] = Field(description="One hidden state.")
    checkpoints: Omittable[FigureOut] = Field(description="The inputs of all layers: what full recomputation keeps.")
    layer_working_set: Omittable[FigureOut] = Field(description="Activations of one layer.")
    kept: Omittable[FigureOut] = Field(description="Activations of all layers, with the recomputation in the request.")
    logits_fp32: Omittable[FigureOut] = Field(description="The logits of one micro-batch in fp32.")
    checkpointed_peak: Omittable[FigureOut] = Field(description="Checkpoints, one layer's working set, and logits.")
    selective_saving: Omittable[FigureOut] = Field(
        description="Share of a GPT layer that selective recomputation saves."
    )


class TrainingMemoryOut(Out):
    """The memory that the fullest GPU needs, and whether it has it."""

    tensor_parallel: int = Field(description="GPUs that each layer is cut over.")
    pipeline_parallel: int = Field(description="Stages that the layers are cut into.")
    data_parallel: int = Field(description="Copies of the model that train together.")
    states: FigureOut = Field(description="Weights, gradients, optimizer and frozen base.")
    activations: Omittable[FigureOut] = Field(description="With logits; needs training.sequence_tokens.")
    buffers: FigureOut = Field(description="What sharding gathers for a moment.")
    overhead: FigureOut = Field(description="The runtime and the buffers of collectives.")
    need: FigureOut = Field(description="All parts together.")
    fits: bool | None = Field(description="Whether the middle of the need is within gpus.usable_gib.")


class ComputeOut(Out):
    """What training computes, and how long it takes."""

    model_flops: Omittable[FigureOut] = Field(description="What the model needs, FLOPs.")
    hardware_flops: Omittable[FigureOut] = Field(description="Including recomputation.")
    tokens_per_s: Omittable[FigureOut] = Field(description="Of all GPUs together.")
    gpu_hours: Omittable[FigureOut] = Field(description="Hours of all GPUs.")
    days: Omittable[FigureOut] = Field(description="How long all GPUs together take.")
    iteration: Omittable[FigureOut] = Field(description="One step of the global batch.")
    iteration_flops: Omittable[FigureOut] = Field(description="FLOPs of one step of the global batch.")
    hfu_over_mfu: Omittable[FigureOut] = Field(description="What selective recomputation adds, for a GPT.")


class TrainingOut(Out):
    """A model that is trained."""

    trainable_params: Omittable[FigureOut] = Field(description="Parameters that are trained.")
    states: Omittable[StatesOut] = Field(description="Model states of the fullest GPU.")
    activations: Omittable[ActivationsOut] = Field(description="Activations; needs training.sequence_tokens.")
    memory_per_gpu: Omittable[TrainingMemoryOut] = Field(description="The fullest GPU.")
    compute: ComputeOut = Field(description="The compute, and how long it takes.")


class EstimateCostOut(Out):
    """The cost at the given price; every GPU is paid for."""

    per_hour: FigureOut = Field(description="All GPUs for an hour.")
    per_month: FigureOut = Field(description="730 hours.")
    per_job: Omittable[FigureOut] = Field(description="The whole training.")
    per_million_tokens: Omittable[FigureOut] = Field(
        description="Generated at the expected rate; of a service those it generates on average."
    )
    per_request: Omittable[FigureOut] = Field(
        default=None, description="Of a service: all GPUs over the requests that it gets on average."
    )


class DisaggregationOut(Out):
    """Replicas that only read prompts, and replicas that only generate."""

    prefill_replicas: int = Field(description="Copies that read prompts, at the peak.")
    decode_replicas: int = Field(description="Copies that generate, at the peak.")
    prefill_replicas_at_mean: int = Field(description="Copies that read prompts, of the average load.")
    decode_replicas_at_mean: int = Field(description="Copies that generate, of the average load.")
    prefill_busy: float = Field(description="Share of the time that prompts are read, at the peak: 0 to 1.")
    kv_transfer: FigureOut = Field(description="Time in which the cache of a prompt moves to the copy that generates.")


class EstimateServiceOut(Out):
    """What a service takes of this placement; figures are left out where even one request misses a target."""

    meets_targets: bool = Field(description="Whether a replica takes at least one request within memory and targets.")
    fits: bool | None = Field(description="Whether `gpus.count` is enough for the peak; null if it is not given.")
    replicas: int | None = Field(description="Copies that share the requests at the peak.")
    replicas_at_mean: int | None = Field(description="Copies that the average load takes.")
    gpus: int | None = Field(description="GPUs of all replicas at the peak.")
    gpus_at_mean: int | None = Field(description="GPUs of the replicas that the average load takes.")
    concurrency_per_replica: int = Field(description="Requests that each replica has open at the peak.")
    max_concurrency_per_replica: int = Field(
        description="The most with which the targets are met and memory is enough."
    )
    limited_by: str = Field(
        description="What limits that: memory, tpot, ttft, prefill (prompts of others take most of a step) or engine "
        "(1,024 requests). Extensible."
    )
    request: Omittable[FigureOut] = Field(description="Time of a whole request: ttft + output tokens x expected_step.")
    requests_per_s: Omittable[FigureOut] = Field(description="Requests that all replicas answer at most, a second.")
    peak_requests_per_s: Omittable[FigureOut] = Field(description="Requests a second at the peak.")
    mean_requests_per_s: Omittable[FigureOut] = Field(description="Requests a second on average.")
    disaggregation: Omittable[DisaggregationOut] = Field(
        description="With `disaggregated`: copies of each kind; `concurrency_per_replica` is of those that generate."
    )


class WeightsTypeOut(Out):
    """The data type that the weights are counted in, and where it comes from."""

    dtype: str | None = Field(description="The type: `mxfp4`; null if bits or bytes were given instead. Extensible.")
    source: str = Field(
        description="request, preset (its release), quantization_config, torch_dtype or default. Extensible."
    )
    detail: str = Field(description="The field of the source, and how it stores weights.")


class AssumptionOut(Out):
    """A default that was used."""

    field: str = Field(description="The field of the request that would set it: `inference.dtype`.")
    value: Any = Field(description="The value that was used: a number, a string or a boolean.")
    why: str = Field(description="Why it was used.")


class LeftOutOut(Out):
    """A figure that was not computed."""

    figure: str = Field(description="The figure: `inference.kv_cache`.")
    missing: list[str] = Field(description="The fields that it needs.")


class EstimateOut(Out):
    """The figures of a workload; a part that was not requested, or of which too little is known, is left out."""

    architecture: ArchitectureOut = Field(description="The architecture that the figures are computed from.")
    parameters: Omittable[ParametersOut] = Field(description="Parameters of the model.")
    inference: Omittable[InferenceOut] = Field(description="With inference in the workload.")
    training: Omittable[TrainingOut] = Field(description="With training in the workload.")
    serving: Omittable[EstimateServiceOut] = Field(
        default=None,
        description="With `serving`: the replicas that its load takes; the other figures are of its peak.",
    )
    cost: Omittable[EstimateCostOut] = Field(description="Needs gpus.usd_per_gpu_hour.")
    weights_type: Omittable[WeightsTypeOut] = Field(description="With inference: the type of the weights.")
    assumptions: list[AssumptionOut] = Field(description="Every default that a figure was computed from.")
    left_out: list[LeftOutOut] = Field(description="Figures that were not computed, with the fields that they need.")
