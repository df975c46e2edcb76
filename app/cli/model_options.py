"""Options of the commands about language models, and what a body calls them."""

from typing import Annotated, Literal

from pydantic import BaseModel, Field

from app.cli.options import Reads, amount, dtype

Context = Annotated[int, Reads(amount(1024))]
Tokens = Annotated[float, Reads(amount(1000))]
Dtype = Annotated[str, Reads(dtype)]


class ModelOptions(BaseModel):
    """A model and its use."""

    model: str | None = Field(default=None, description="A language model by any of its names: `llama-3.1-70b`.")
    context: Context | None = Field(default=None, description="Tokens that a sequence keeps; 32k is 32,768.")
    concurrency: int | None = Field(default=None, description="Sequences at a time. (default: 1)")
    allow_longer_context: bool | None = Field(
        default=None, description="Take a context that is longer than the model is made for."
    )
    dtype: Dtype | None = Field(default=None, description="Type of the weights. (default: as released)")
    kv_dtype: Dtype | None = Field(default=None, description="Type of the KV cache. (default: bf16)")
    train: bool | None = Field(default=None, description="The model is trained, not served.")
    method: Literal["full", "lora", "qlora"] | None = Field(default=None, description="Of training. (default: full)")
    recipe: str | None = Field(default=None, description="Of training: bytes a parameter, by name.")
    sequence: Context | None = Field(default=None, description="Of training: tokens of a sequence; 4k is 4,096.")
    micro_batch: int | None = Field(default=None, description="Of training: sequences at a time. (default: 1)")
    recompute: Literal["none", "selective", "full"] | None = Field(
        default=None, description="Of training. (default: none)"
    )
    zero_stage: int | None = Field(default=None, description="Of training: 0 to 3.")
    tokens: Tokens | None = Field(
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
INFERENCE = _BOTH | {
    "context": "context_tokens",
    "concurrency": "concurrency",
    "allow_longer_context": "allow_longer_context",
    "dtype": "dtype",
    "kv_dtype": "kv_dtype",
}
"""Options of a model that is served, and the fields that they set."""
TRAINING = _BOTH | {
    "method": "method",
    "recipe": "recipe",
    "sequence": "sequence_tokens",
    "micro_batch": "micro_batch",
    "recompute": "recompute",
    "zero_stage": "zero_stage",
    "tokens": "tokens",
}
"""Options of a model that is trained."""
CONSTRAINTS = {
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
SCOPE = ("q", "disputed")
"""Options of any fit that say which sizes are asked about, and that a body does not have."""
PRICING = {"os": "os", "hours": "hours", "hours_per_month": "hours_per_month"}
TOP = ("sort", "limit", "include")
FIELDS = {
    f"{use}.{field}": own
    for use, names in (("inference", INFERENCE), ("training", TRAINING))
    for own, field in names.items()
}
FIELDS |= {f"constraints.{field}": own for own, field in CONSTRAINTS.items()}
"""The option that sets a field, by its place in a body."""
