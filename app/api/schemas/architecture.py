"""The architecture of a language model in requests and responses."""

from typing import Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from app.api.schemas.bodies import In, Layers, Params, Tokens, Width, contradiction
from app.api.schemas.sizes import Out
from app.catalog.queries.params import PlainText

AttentionKind = Literal["mha", "gqa", "mqa", "mla"]
MlpKind = Literal["gated", "plain"]
QkNormKind = Literal["per_head", "all_heads"]


class ArchitectureIn(In):
    """A model by its fields. A figure that needs a missing field is left out, and named in `left_out`."""

    params: Params | None = Field(default=None, description="All parameters; counted from the other fields if absent.")
    active_params: Params | None = Field(default=None, description="Parameters that a token passes through.")
    layers: Layers | None = Field(default=None, description="Layers.")
    hidden: Width | None = Field(default=None, description="Width of the residual stream.")
    heads: Width | None = Field(default=None, description="Query heads.")
    kv_heads: Width | None = Field(default=None, description="Key and value heads; default: as many as heads.")
    head_dim: Width | None = Field(default=None, description="Width of a head; default: hidden / heads.")
    intermediate: Width | None = Field(default=None, description="Width of a dense MLP.")
    vocab: Width | None = Field(default=None, description="Rows of the embedding.")
    attention: AttentionKind | None = Field(
        default=None, description="How keys and values are shared; checked against the heads."
    )
    mlp: MlpKind | None = Field(default=None, description="SwiGLU, or two matrices; default gated.")
    tied_embeddings: bool | None = Field(default=None, description="The output layer is the embedding; default false.")
    kv_layers: Layers | None = Field(default=None, description="Layers that keep a KV cache; default: all.")
    sliding_window: Tokens | None = Field(default=None, description="Tokens that a layer with a window sees.")
    sliding_layers: Layers | None = Field(default=None, description="Layers with the window; default: all.")
    q_lora_rank: Width | None = Field(default=None, description="MLA: rank of the queries.")
    kv_lora_rank: Width | None = Field(default=None, description="MLA: rank of the latent that is kept.")
    qk_nope_head_dim: Width | None = Field(default=None, description="MLA: width of a head without positions.")
    qk_rope_head_dim: Width | None = Field(default=None, description="MLA: width of the part with positions.")
    v_head_dim: Width | None = Field(default=None, description="MLA: width of a value head.")
    experts: Width | None = Field(default=None, description="Routed experts of a layer.")
    experts_per_token: Width | None = Field(default=None, description="Routed experts that a token uses.")
    moe_intermediate: Width | None = Field(default=None, description="Width of one expert; default: intermediate.")
    shared_intermediate: Width | None = Field(default=None, description="Width of all shared experts together.")
    moe_layers: Layers | None = Field(default=None, description="Layers with experts; default: all.")
    qkv_bias: bool | None = Field(default=None, description="Queries, keys and values have biases; default false.")
    output_bias: bool | None = Field(default=None, description="The output of attention has a bias; default false.")
    mlp_bias: bool | None = Field(default=None, description="The MLP has biases; default false.")
    norm_bias: bool | None = Field(default=None, description="Norms have a bias (LayerNorm); default false.")
    lm_head_bias: bool | None = Field(default=None, description="The output layer has a bias; default false.")
    qk_norm: QkNormKind | None = Field(default=None, description="Norms of queries and keys.")
    norms_per_layer: int | None = Field(default=None, ge=0, le=8, description="Norms over the width; default 2.")
    embedding_norm: bool | None = Field(default=None, description="A norm after the embedding; default false.")
    learned_positions: Width | None = Field(default=None, description="Positions with a learned embedding.")


class ModelIn(In):
    """A model: by name, by its fields or by its configuration."""

    model: PlainText | None = Field(default=None, description="A preset of GET /models: `llama-3.1-70b`.")
    architecture: ArchitectureIn | None = Field(default=None, description="The model by its fields.")
    config: dict[str, Any] | None = Field(
        default=None, max_length=500, description="The model by its Hugging Face `config.json`, as it is."
    )

    @field_validator("config")
    @classmethod
    def _absent_if_empty(cls, config: dict[str, Any] | None) -> dict[str, Any] | None:
        """Treat an empty object as absent: clients in typed languages send one for a field that is not set."""
        return config or None

    @model_validator(mode="after")
    def _one_model(self) -> Self:
        models = [name for name in ("model", "architecture", "config") if getattr(self, name) is not None]
        if len(models) > 1:
            raise contradiction(f"{' and '.join(models)} are given, and each is the whole model: give one")
        return self

    @property
    def fields(self) -> dict[str, Any] | None:
        """The fields of the architecture, if they are given."""
        return self.architecture.model_dump() if self.architecture is not None else None


class ArchitectureOut(Out):
    """The architecture that the figures are computed from; null is unknown."""

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
