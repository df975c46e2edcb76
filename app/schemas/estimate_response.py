"""The response of POST /estimate: figures with their unit and certainty, grouped as in the request.

Its parts are the results of app.fit as they are; a document calls them by the names in RESULTS.
"""

from collections.abc import Mapping

from pydantic import Field

from app.fit.formulas.assumptions import Assumption, OmittedFigure
from app.fit.results import CostFigures, InferenceFigures, ParameterFigures, ServiceReport, TrainingFigures, WeightsType
from app.schemas.sizes import Omittable, Out

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
    serving: Omittable[ServiceReport] = Field(
        default=None,
        description="With `serving`: the replicas that its load takes; the other figures are of its peak.",
    )
    cost: Omittable[CostFigures] = Field(description="Needs gpus.usd_per_gpu_hour.")
    weights_type: Omittable[WeightsType] = Field(description="With inference: the type of the weights.")
    assumptions: list[Assumption] = Field(description="Every default that a figure was computed from.")
    left_out: list[OmittedFigure] = Field(description="Figures that were not computed, with the fields that they need.")
