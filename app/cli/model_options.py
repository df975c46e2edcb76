"""Options of the commands about language models, and what a body calls them."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from app.cli.options import ParsedBy, amount_parser, parse_dtype

ContextTokens = Annotated[int, ParsedBy(amount_parser(1024))]
TokenCount = Annotated[float, ParsedBy(amount_parser(1000))]
Dtype = Annotated[str, ParsedBy(parse_dtype)]


class ModelOptions(BaseModel):
    """A model and its use."""

    model: str | None = Field(default=None, description="A language model by any of its names: `llama-3.1-70b`.")
    context: ContextTokens | None = Field(default=None, description="Tokens that a sequence keeps; 32k is 32,768.")
    concurrency: int | None = Field(default=None, description="Sequences at a time. (default: 1)")
    allow_longer_context: bool | None = Field(
        default=None, description="Take a context that is longer than the model is made for."
    )
    dtype: Dtype | None = Field(default=None, description="Type of the weights. (default: as released)")
    kv_dtype: Dtype | None = Field(default=None, description="Type of the KV cache. (default: bf16)")
    train: bool | None = Field(default=None, description="The model is trained, not served.")
    method: Literal["full", "lora", "qlora"] | None = Field(default=None, description="Of training. (default: full)")
    recipe: str | None = Field(default=None, description="Of training: bytes a parameter, by name.")
    sequence: ContextTokens | None = Field(default=None, description="Of training: tokens of a sequence; 4k is 4,096.")
    micro_batch: int | None = Field(default=None, description="Of training: sequences at a time. (default: 1)")
    recompute: Literal["none", "selective", "full"] | None = Field(
        default=None, description="Of training. (default: none)"
    )
    zero_stage: int | None = Field(default=None, description="Of training: 0 to 3.")
    tokens: TokenCount | None = Field(
        default=None, description="Of training: tokens in all, 100M or 1e8; gives hours and the job's cost."
    )
    tensor_parallel: int | None = Field(default=None, description="GPUs that a layer is cut over.")
    pipeline_parallel: int | None = Field(default=None, description="Stages that the layers are cut into.")


class GpuOptions(BaseModel):
    """GPUs by their figures."""

    count: int | None = Field(default=None, description="GPUs. (default: 1)")
    usable_gib: float | None = Field(default=None, description="Memory of one GPU as the system sees it, GiB.")
    bandwidth_gb_per_s: float | None = Field(default=None, description="Memory bandwidth of one GPU, 10^9 bytes/s.")
    peak_tflops: float | None = Field(default=None, description="Dense peak of one GPU in the type used, TFLOP/s.")
    usd_per_gpu_hour: float | None = Field(default=None, description="Price of one GPU, USD an hour.")


_BOTH = {"tensor_parallel": "tensor_parallel", "pipeline_parallel": "pipeline_parallel"}
INFERENCE_FIELDS = _BOTH | {
    "context": "context_tokens",
    "concurrency": "concurrency",
    "allow_longer_context": "allow_longer_context",
    "dtype": "dtype",
    "kv_dtype": "kv_dtype",
}
"""Options of a model that is served, and the fields that they set."""
TRAINING_FIELDS = _BOTH | {
    "method": "method",
    "recipe": "recipe",
    "sequence": "sequence_tokens",
    "micro_batch": "micro_batch",
    "recompute": "recompute",
    "zero_stage": "zero_stage",
    "tokens": "tokens",
}
"""Options of a model that is trained."""
CONSTRAINT_FIELDS = {
    "region": "regions",
    "available_in": "available_in",
    "series": "series",
    "name": "name",
    "gpu": "gpu",
    "gpu_vendor": "gpu_vendor",
    "verified": "verified_only",
    "infiniband": "require_infiniband",
    "max_nodes": "max_nodes",
    "budget_usd_per_month": "budget_usd_per_month",
}
"""Options of any fit that are constraints."""
SCOPE_OPTIONS = ("q", "disputed")
"""Options of any fit that say which sizes are asked about, and that a body does not have."""
PRICING_FIELDS = {"os": "os", "hours": "hours", "hours_per_month": "hours_per_month"}
BODY_OPTIONS = ("sort", "limit", "include")
OPTION_OF_FIELD = {
    f"{use}.{field}": own
    for use, names in (("inference", INFERENCE_FIELDS), ("training", TRAINING_FIELDS))
    for own, field in names.items()
}
OPTION_OF_FIELD |= {f"constraints.{field}": own for own, field in CONSTRAINT_FIELDS.items()}
"""The option that sets a field, by its place in a body."""
