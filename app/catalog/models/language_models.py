"""The tables of language models and of benchmarks."""

from sqlalchemy import BigInteger
from sqlmodel import Field

from app.catalog.column_types import BYTEWISE, CatalogTable


class LanguageModel(CatalogTable, table=True):
    """A language model's configuration, a preset of the estimator; `app.catalog.presets` documents each column."""

    __tablename__ = "model"

    id: str = Field(sa_type=BYTEWISE, primary_key=True)
    name: str = Field(sa_type=BYTEWISE)
    aliases: str | None = Field(sa_type=BYTEWISE, default=None, description="joined by `; `")
    hf_repo: str | None = Field(sa_type=BYTEWISE, default=None)
    license: str | None = Field(sa_type=BYTEWISE, default=None)
    dtype: str | None = Field(sa_type=BYTEWISE, default=None)
    fp8_block: int | None = None
    params: int = Field(sa_type=BigInteger)
    active_params: int = Field(sa_type=BigInteger)
    published_params: int | None = Field(sa_type=BigInteger, default=None)
    params_note: str | None = Field(sa_type=BYTEWISE, default=None)
    max_context_tokens: int | None = None
    layers: int
    hidden: int
    vocab: int
    tied_embeddings: bool
    learned_positions: int
    attention: str = Field(sa_type=BYTEWISE)
    heads: int
    kv_heads: int
    head_dim: int
    sliding_window: int | None = None
    sliding_layers: int
    kv_lora_rank: int | None = None
    q_lora_rank: int | None = None
    qk_nope_head_dim: int | None = None
    qk_rope_head_dim: int | None = None
    v_head_dim: int | None = None
    mlp: str = Field(sa_type=BYTEWISE)
    intermediate: int | None = None
    moe_layers: int
    experts: int
    experts_per_token: int
    shared_experts: int
    moe_intermediate: int | None = None
    norms_per_layer: int
    norm_bias: bool
    embedding_norm: bool
    qk_norm: str | None = Field(sa_type=BYTEWISE, default=None)
    qkv_bias: bool
    output_bias: bool
    mlp_bias: bool
    lm_head_bias: bool
    router_bias: bool
    attention_sinks: bool
    config: str | None = Field(sa_type=BYTEWISE, default=None, description="JSON: fields of config.json")
    source_id: str = Field(sa_type=BYTEWISE, foreign_key="source.id")


class Benchmark(CatalogTable, table=True):
    """A published result."""

    id: str = Field(sa_type=BYTEWISE, primary_key=True)
    series_id: str | None = Field(sa_type=BYTEWISE, default=None, foreign_key="series.id", index=True)
    scope: str = Field(sa_type=BYTEWISE, description="gpu, vm or rack")
    workload: str = Field(sa_type=BYTEWISE)
    metric: str = Field(sa_type=BYTEWISE)
    value: float
    unit: str = Field(sa_type=BYTEWISE)
    comparison: str | None = Field(sa_type=BYTEWISE, default=None)
    source_id: str = Field(sa_type=BYTEWISE, foreign_key="source.id")
