"""The configuration of a language model: all that its parameters, memory and time are computed from."""

import json
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

_OPEN_ENUM = WithJsonSchema({"type": "string"})
"""Published as any string in the API's schema: values may be added without breaking clients."""
Attention = Annotated[Literal["mha", "gqa", "mqa", "mla"], _OPEN_ENUM]
Dtype = Annotated[Literal["fp32", "fp16", "bf16", "fp8", "mxfp4", "nvfp4", "int4"], _OPEN_ENUM]
Mlp = Annotated[Literal["gated", "plain"], _OPEN_ENUM]
QkNorm = Annotated[Literal["per_head", "all_heads"], _OPEN_ENUM]


def split_names(names: str | None) -> tuple[str, ...]:
    """Split names that are joined by `; `, as in a file or a table."""
    return tuple(name.strip() for name in (names or "").split(";") if name.strip())


def _as_names(value: object) -> object:
    return split_names(value) if value is None or isinstance(value, str) else value


def _as_object(text: object) -> object:
    return json.loads(text) if isinstance(text, str) else text or {}


Config = Annotated[dict[str, Any], BeforeValidator(_as_object)]
"""An object, which files and tables have as JSON text."""
Names = Annotated[tuple[str, ...], BeforeValidator(_as_names)]
Params = Annotated[int, Field(ge=1, le=10**15)]
Width = Annotated[int, Field(ge=1, le=2_000_000_000)]
Number = Annotated[int, Field(ge=0, le=1_000_000)]


class Preset(BaseModel):
    """One model; for a part that it does not have, the number is zero and the width null."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    id: str = Field(pattern=r"^[a-z0-9][a-z0-9.-]*$", description="`llama-3.1-70b`.")
    name: str = Field(description="Its name: `Llama 3.1 70B`.")
    aliases: Names = Field(default=(), description="Other names it is found by.")
    hf_repo: str | None = Field(
        default=None, description="The repository on Hugging Face whose config.json the figures are those of."
    )
    license: str | None = Field(default=None, description="The licence of the weights.")
    dtype: Dtype | None = Field(default=None, description="The data type of the released weights. Extensible.")
    fp8_block: Annotated[int, Field(ge=1, le=65_536)] | None = Field(
        default=None,
        description="Rows and columns of the blocks of weights that share a scale in the vendor's FP8 checkpoint.",
    )
    params: Params = Field(description="All parameters of the language model.")
    active_params: Params = Field(description="Those that one token uses: of the experts only the chosen ones.")
    published_params: Params | None = Field(default=None, description="What the released checkpoint is said to hold.")
    params_note: str | None = Field(default=None, description="What the published number has besides `params`.")
    max_context_tokens: Width | None = Field(
        default=None, description="The longest context that it is released for, tokens."
    )
    layers: Width = Field(description="Layers.")
    hidden: Width = Field(description="Width of the model: values of a token between layers.")
    vocab: Number = Field(description="Rows of the embedding, with padding.")
    tied_embeddings: bool = Field(default=False, description="The output layer uses the weights of the embedding.")
    learned_positions: Number = Field(default=0, description="Rows of a learned embedding of positions.")
    attention: Attention = Field(
        description="mha: a key-value head for each head; gqa: several heads share one; mqa: all share one; "
        "mla: a joint latent vector is cached instead. Extensible."
    )
    heads: Width = Field(description="Heads of the queries.")
    kv_heads: Width = Field(description="Heads of the keys and values.")
    head_dim: Width = Field(description="Width of one head's query and key.")
    sliding_window: Width | None = Field(default=None, description="Tokens that a windowed layer looks back on.")
    sliding_layers: Number = Field(default=0, description="How many layers look back on the window only.")
    kv_lora_rank: Width | None = Field(default=None, description="mla: width of the latent vector that is cached.")
    q_lora_rank: Width | None = Field(default=None, description="mla: width that queries are compressed to.")
    qk_nope_head_dim: Width | None = Field(default=None, description="mla: part of `head_dim` without position.")
    qk_rope_head_dim: Width | None = Field(
        default=None, description="mla: part of `head_dim` with position; cached once a token beside the latent vector."
    )
    v_head_dim: Width | None = Field(default=None, description="mla: width of one head's value.")
    mlp: Mlp = Field(default="gated", description="gated: three matrices (SwiGLU, GeGLU); plain: two. Extensible.")
    intermediate: Width | None = Field(default=None, description="Width of the MLP in layers without experts.")
    moe_layers: Number = Field(default=0, description="How many layers have experts: the last ones.")
    experts: Number = Field(default=0, description="Experts of a layer that a token is routed to some of.")
    experts_per_token: Number = Field(default=0, description="Experts that one token is routed to.")
    shared_experts: Number = Field(default=0, description="Experts of a layer that every token uses.")
    moe_intermediate: Width | None = Field(default=None, description="Width of the MLP of one expert.")
    norms_per_layer: Number = Field(default=2, description="Norms of a layer over the whole width.")
    norm_bias: bool = Field(default=False, description="Norms add a bias (layer norm), or only scale.")
    embedding_norm: bool = Field(default=False, description="There is a norm after the embedding.")
    qk_norm: QkNorm | None = Field(
        default=None, description="Norm of queries and keys: one scale per_head for all, or over all_heads. Extensible."
    )
    qkv_bias: bool = Field(default=False, description="Queries, keys and values add a bias.")
    output_bias: bool = Field(default=False, description="The output of attention adds a bias.")
    mlp_bias: bool = Field(default=False, description="The matrices of the MLP add a bias.")
    lm_head_bias: bool = Field(default=False, description="The output layer adds a bias.")
    router_bias: bool = Field(default=False, description="The router adds a bias for each expert.")
    attention_sinks: bool = Field(default=False, description="Each head has a learned sink.")
    config: Config = Field(
        default={},
        description="Of a model whose layers differ: the fields of its config.json that everything is computed from. "
        "The other fields then describe it in outline. Empty for all others.",
    )
    source_id: str = Field(description="Id of the source in GET /sources.")

    @property
    def names(self) -> dict[str, tuple[str, ...]]:
        """Return all its names by the field that has them."""
        return {"id": (self.id,), "name": (self.name,), "hf_repo": (self.hf_repo or "",), "aliases": self.aliases}
