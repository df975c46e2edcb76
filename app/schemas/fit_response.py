"""The responses of POST /estimate, GET /fit and POST /fit: figures with their unit and certainty, options, and misses.

Parts of them are the results of app.fit as they are; a document calls them by the names in RESULTS.
"""

from collections.abc import Mapping
from datetime import date
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from app.catalog.queries.params import optional
from app.fit.formulas.quantities import Assumption, Figure, OmittedFigure
from app.fit.results import (
    CostFigures,
    InferenceFigures,
    ParameterFigures,
    PerGpuMemory,
    ServiceFigures,
    ServiceReport,
    SpeedFigures,
    TrainingFigures,
    WeightsType,
)
from app.schemas.sizes import (
    AdjustmentField,
    Amount,
    CommittedHours,
    EstimateField,
    ExchangeRateField,
    NextCursor,
    NoPriceField,
    Omittable,
    Out,
    PageOut,
    Total,
    Usd,
)

RESULTS: Mapping[str, str] = {
    "Figure": "FigureOut",
    "Evidence": "EvidenceOut",
    "ParameterFigures": "ParametersOut",
    "KvFigures": "KvCacheOut",
    "ServingMemory": "ServingMemoryOut",
    "DecodeFigures": "DecodeOut",
    "EncodeFigures": "EncodeOut",
    "InferenceFigures": "InferenceOut",
    "DisaggregationFigures": "DisaggregationOut",
    "ServiceReport": "EstimateServiceOut",
    "StateFigures": "StatesOut",
    "ActivationFigures": "ActivationsOut",
    "TrainingMemory": "TrainingMemoryOut",
    "ComputeFigures": "ComputeOut",
    "TrainingFigures": "TrainingOut",
    "CostFigures": "EstimateCostOut",
    "WeightsType": "WeightsTypeOut",
    "Assumption": "AssumptionOut",
    "OmittedFigure": "LeftOutOut",
    "ServiceFigures": "ServiceOut",
    "SpeedFigures": "SpeedOut",
    "PerGpuMemory": "PerGpuOut",
    "FamilyAccuracy": "FamilyAccuracyOut",
    "FeatureChange": "FeatureChangeOut",
}
"""What documents, and so clients, call the results of app.fit that are in responses."""


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


class EstimateOut(Out):
    """The figures of a workload; a part that was not requested, or of which too little is known, is left out."""

    architecture: ArchitectureOut = Field(description="The architecture that the figures are computed from.")
    parameters: Omittable[ParameterFigures] = Field(description="Parameters of the model.")
    inference: Omittable[InferenceFigures] = Field(description="With inference in the workload.")
    training: Omittable[TrainingFigures] = Field(description="With training in the workload.")
    serving: Omittable[ServiceReport] = optional(
        "With `serving`: the replicas that its load takes; the other figures are of its peak."
    )
    cost: Omittable[CostFigures] = Field(description="Needs gpus.usd_per_gpu_hour.")
    weights_type: Omittable[WeightsType] = Field(description="With inference: the type of the weights.")
    assumptions: list[Assumption] = Field(description="Every default that a figure was computed from.")
    left_out: list[OmittedFigure] = Field(description="Figures that were not computed, with the fields that they need.")


class ConvertedCostOut(Out):
    """The cost of all VMs in the requested currency, by the answer's exchange rate; what is unknown is left out."""

    currency: str = Field(description="The currency (ISO 4217): `EUR`.")
    cost_per_hour: Amount | None = Field(description="usd_per_hour, converted.")
    cost_per_month: Amount | None = Field(description="usd_per_month, converted.")
    cost_per_job: Omittable[Figure] = Field(description="usd_per_job, converted.")
    cost_per_million_tokens: Omittable[Figure] = Field(description="usd_per_million_tokens, converted.")
    cost_per_request: Omittable[Figure] = optional("usd_per_request, converted.")


class InterruptionsOut(Out):
    """What evictions of spot VMs add to a training."""

    overhead: float | None = Field(description="Extra time, as a share; null where the training would never end.")
    evictions_per_hour: float = Field(description="Of any of the VMs: one of them stops the training.")
    checkpoint_gib: float = Field(description="Size of a checkpoint: weights and optimizer.")
    checkpoint_minutes: float = Field(description="Time to write one.")
    checkpoint_interval_minutes: float | None = Field(
        description="Time of work between two: as given, else the best; null where there is nothing to save."
    )
    storage_usd_per_hour: float = Field(description="Storage of the checkpoints that are kept, USD an hour.")


class OptionCostOut(Out):
    """The cost of all VMs under one purchase model; unknown figures are null, or left out."""

    usd_per_hour: Usd | None = Field(description="All VMs, USD an hour.")
    as_of: date | None = Field(description="The day from which the price is known to hold.")
    price_age_days: int | None = Field(description="Days since as_of, today.")
    approximate_date: bool | None = Field(
        description="The price's source is undated: as_of is only the year it points to."
    )
    usd_per_month: Usd | None = Field(
        description="All VMs for the month's hours; by a reservation or savings plan for committed_hours_per_month."
    )
    committed_hours_per_month: CommittedHours
    usd_per_job: Omittable[Figure] = Field(
        description="On spot, including the time that interruptions add to a training. By a reservation or savings "
        "plan it is the hours' share of what is paid anyway."
    )
    usd_per_million_tokens: Omittable[Figure] = Field(
        description="Generated at the expected rate, of a service on average; or trained on in the steps alone: "
        "usd_per_job has the run's overhead and interruptions, too."
    )
    usd_per_request: Omittable[Figure] = optional("Of a service: all VMs over the requests that it gets on average.")
    adjustment: AdjustmentField = None
    estimate: EstimateField = None
    interruptions: Omittable[InterruptionsOut] = optional(
        "On spot, of a training: what evictions add, where `spot_overhead` is not given."
    )
    converted: Omittable[ConvertedCostOut] = optional("With `currency`: the cost in that currency.")


class CostsOut(Out):
    """The cost of an option under each requested purchase model."""

    on_demand: Omittable[OptionCostOut] = Field(description="On demand.")
    spot: Omittable[OptionCostOut] = Field(description="On spot.")
    reserved_1y: Omittable[OptionCostOut] = Field(description="Reserved for a year.")
    reserved_3y: Omittable[OptionCostOut] = Field(description="Reserved for three years.")
    savings_1y: Omittable[OptionCostOut] = Field(description="Under a savings plan of a year.")
    savings_3y: Omittable[OptionCostOut] = Field(description="Under a savings plan of three years.")


class HeadroomOut(Out):
    """How much of a resource there is beyond what is required; all VMs together where the resource pools."""

    resource: str = Field(description="gpu_memory, gpu_memory_per_gpu, gpus, vcpus, memory, local_disk, … Extensible.")
    unit: str = Field(description="The unit of required and available.")
    required: float = Field(description="What the job needs.")
    available: float = Field(description="What the VMs have.")
    headroom_percent: Annotated[float, AfterValidator(lambda percent: round(percent, 2))] = Field(
        validation_alias="percent", description="100 x (available - required) / available."
    )


class OptionOut(Out):
    """A size that fits, and how many of it."""

    size: str = Field(description="Name of the size.")
    provider: str | None = Field(description="Who sells it; null for a machine that the request describes.")
    region: str | None = Field(description="Where the prices hold: the cheapest of the requested regions.")
    status: str = Field(description="preview, current, retiring, withdrawn or retired, today. Extensible.")
    nodes: int = Field(description="Number of VMs of this size.")
    cost: CostsOut = Field(description="The cost, by purchase model.")
    headroom: list[HeadroomOut] = Field(description="The headroom of each resource.")
    limiting_resource: str | None = Field(description="The resource with the least headroom.")
    unused_gpu_memory_gib: float | None = Field(description="GPU memory that is paid for beyond what is required.")
    unused_gpu_memory_percent: float | None = Field(description="The same in percent of all GPU memory.")
    warnings: list[str] = Field(
        description="NO_PRICE, OLD_PRICE, UNUSUAL_PRICE, COMMITMENT, PREVIEW, RETIRING, WITHDRAWN, RETIRED, "
        "UNVERIFIED. Extensible."
    )
    explanation: str = Field(description="Why it fits, in a sentence.")


class FailureOut(Out):
    """A constraint that a size does not meet."""

    constraint: str = Field(description="The constraint as in the request.")
    code: str = Field(description="GPU_MEMORY_TOTAL, VCPU, NOT_IN_REGION, … Extensible.")
    required: float | None = Field(description="What is needed; null if it is not an amount.")
    available: float | None = Field(description="What the VMs have; null if it is unknown or not an amount.")
    shortfall: float | None = Field(description="required - available.")
    unit: str | None = Field(description="The unit of the amounts; null where there are none.")
    detail: str = Field(description="The same in words.")


class RejectionOut(Out):
    """A size that does not fit, largest shortfall first."""

    size: str = Field(description="Name of the size.")
    provider: str | None = Field(description="Who sells it; null for a machine that the request describes.")
    status: str = Field(description="preview, current, retiring, withdrawn or retired, today. Extensible.")
    failures: list[FailureOut] = Field(description="Every constraint that it does not meet.")


class FitOut(PageOut):
    """The sizes that fit, best first, and why the others do not."""

    items: list[OptionOut] = Field(description="The options of this page.")
    rejected: list[RejectionOut] = Field(
        description="With `include=rejected`: the sizes that do not fit, the 2,000 nearest misses at most."
    )
    rejected_total: int = Field(description="Number of sizes that do not fit.")
    rejection_summary: dict[str, int] = Field(description="Number of sizes by the code of their largest shortfall.")
    nearest_misses: list[RejectionOut] = Field(description="The sizes that are nearest to fitting, at most three.")
    exchange_rate: ExchangeRateField = None
    no_price: NoPriceField = None


class ParallelismOut(Out):
    """How a model is distributed over the GPUs of all VMs."""

    tensor: int = Field(description="GPUs that each layer is split over.")
    pipeline: int = Field(description="Stages that the layers are cut into.")
    expert: int = Field(description="GPUs that routed experts are distributed over; 1: each is split.")
    data_attention: int = Field(description="Groups of a copy with sequences and attention of their own.")
    data: int = Field(description="Copies: replicas of a server, data-parallel ranks of a training.")
    zero_stage: int | None = Field(description="0 DDP to 3 FULL_SHARD; null for a server.")
    gpus: int = Field(description="GPUs that are used, over all VMs.")
    idle_gpus: int = Field(description="GPUs that are paid for but not used.")


class PlacedOut(Out):
    """A size that fits, and how; `parallelism`, `per_gpu` and `speed` are left out if the request gives resources."""

    size: str = Field(description="Name of the size.")
    provider: str | None = Field(description="Who sells it; null for a machine that the request describes.")
    region: str | None = Field(description="Where the prices hold: the cheapest of the requested regions.")
    status: str = Field(description="preview, current, retiring, withdrawn or retired, today. Extensible.")
    nodes: int = Field(description="Number of VMs of this size.")
    parallelism: Omittable[ParallelismOut] = Field(description="How the model is distributed.")
    per_gpu: Omittable[PerGpuMemory] = Field(description="The fullest GPU.")
    max_concurrency: Omittable[Figure] = Field(description="Sequences that all copies serve at the same time.")
    speed: Omittable[SpeedFigures] = Field(description="How fast it is.")
    serving: Omittable[ServiceFigures] = optional("With `serving`: the load it sustains.")
    cost: CostsOut = Field(description="The cost, by purchase model.")
    headroom: list[HeadroomOut] = Field(description="The headroom of each resource.")
    limiting_resource: str | None = Field(description="The resource with the least headroom.")
    unused_gpu_memory_gib: float | None = Field(
        description="GPU memory that is paid for beyond what the resources require; null for a model."
    )
    unused_gpu_memory_percent: float | None = Field(description="The same in percent of all GPU memory.")
    pareto_optimal: bool | None = Field(description="No other option is better in cost and time at once.")
    warnings: list[str] = Field(description="TP_OVER_PCIE, TIGHT, NO_PRICE, PREVIEW, … Extensible.")
    explanation: str = Field(description="Why it fits, in a sentence.")


class FixOut(Out):
    """A change after which the size fits."""

    text: str = Field(description="`concurrency <= 14`.")
    patch: dict[str, dict[str, Any]] = Field(description="The change of the request as a JSON Merge Patch (RFC 7396).")


class MissOut(RejectionOut):
    """A size that does not fit: its failures, largest shortfall first, and changes that would make it fit."""

    failures: list[FailureOut] = Field(description="Every constraint that it does not meet, largest shortfall first.")
    fixes: list[FixOut] = Field(description="Each makes the size fit; empty if no change of the request does.")


class WorkloadOut(Out):
    """The model that the figures are computed from."""

    architecture: ArchitectureOut = Field(description="Its shape.")
    parameters: Omittable[ParameterFigures] = Field(description="Its parameters.")


class FitAnswerOut(Out):
    """The sizes that fit, best first, and why the others do not."""

    fits: bool = Field(description="Whether any size fits.")
    items: list[PlacedOut] = Field(description="A page of the options, at most `limit`.")
    next_cursor: NextCursor
    total: Total
    rejected: list[MissOut] = Field(
        description="With `rejected` in include: the sizes that do not fit, the 2,000 nearest misses at most."
    )
    rejected_total: int = Field(description="Number of sizes that do not fit.")
    rejection_summary: dict[str, int] = Field(description="Number of sizes by the code of their largest shortfall.")
    nearest_misses: list[MissOut] = Field(description="The sizes that are nearest to fitting, at most three.")
    assumptions: list[Assumption] = Field(
        description="With `assumptions` in include: the defaults that were used; else empty."
    )
    weights_type: Omittable[WeightsType] = Field(
        description="Of a server: the data type of the weights, and where it comes from."
    )
    workload: Omittable[WorkloadOut] = Field(description="With `workload` in include.")
    exchange_rate: ExchangeRateField = None
    no_price: NoPriceField = None
