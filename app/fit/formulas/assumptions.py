"""Defaults for what a workload leaves out, the record of those that were used, and the error for invalid workloads.

Fields are named `part.field`: `architecture`, `inference`, `training`, `serving`, `gpus`, `constraints` and `pricing`
stand for the dataclasses Architecture, InferenceWorkload, TrainingWorkload, ServiceLevel, Gpus, Constraints and
Pricing, `config` for a Hugging Face `config.json`; a field without a part is one of PlacementRequest.
Figures are named by their path in an Estimate. None of these are paths of a request: who reads
requests translates them.
"""

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from app.fit.shapes import about

T = TypeVar("T")
V = TypeVar("V")


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumption:
    """A default that was used."""

    field: str = dataclasses.field(metadata=about("The field of the request that would set it: `inference.dtype`."))
    value: Any = dataclasses.field(metadata=about("The value that was used: a number, a string or a boolean."))
    why: str = dataclasses.field(metadata=about("Why it was used."))


@dataclass(frozen=True, slots=True, kw_only=True)
class OmittedFigure:
    """A figure that was not computed."""

    figure: str = dataclasses.field(metadata=about("The figure: `inference.kv_cache`."))
    missing: tuple[str, ...] = dataclasses.field(metadata=about("The fields that it needs."))


class InvalidWorkload(ValueError):
    """A workload contradicts itself or lacks a field that it needs; `field` is `part.field` or a whole part.

    Services translate it to app.errors.BadWorkload, so that app.fit depends on nothing else of the app.
    """

    def __init__(self, field: str, detail: str) -> None:
        self.field, self.detail = field, detail
        super().__init__(f"{field}: {detail}")


DEFAULTS: dict[str, tuple[Any, str]] = {
    "architecture.mlp": ("gated", "most models since 2023 have a gated MLP (SwiGLU)"),
    "architecture.tied_embeddings": (False, "most models above 3B have an output layer of their own"),
    "inference.dtype": ("bf16", "most models are released in 16 bits"),
    "inference.kv_dtype": ("bf16", "engines keep the cache in 16 bits unless told otherwise"),
    "inference.concurrency": (1, "one sequence at a time"),
    "inference.block_tokens": (1, "tokens are counted one by one; vLLM's pages are 16"),
    "inference.max_batched_tokens": (8192, "a server's usual limit with chunked prefill"),
    "inference.utilization": (0.92, "vLLM's default share of a GPU's memory"),
    "inference.engine": ("vllm", "the engine that most use"),
    "serving.prefix_cache_hit": (0.0, "every prompt is read whole"),
    "serving.think_time_s": (0.0, "every user always has one request open"),
    "serving.peak_to_mean": (1.0, "the load that is given is the highest"),
    "gpus.link": ("nvlink", "tensor parallelism is for GPUs with NVLink"),
    "gpus.network": ("infiniband", "a copy on more than eight GPUs is on several VMs"),
    "inference.pipeline_parallel": (1, "tensor parallelism alone"),
    "gpus.count": (1, "no number of GPUs is given"),
    "training.method": ("full", "all parameters are trained"),
    "training.recipe": ("mixed_adam_fp32_grads", "mixed precision with 32-bit gradients: 18 bytes a parameter"),
    "training.zero_stage": (0, "no sharding"),
    "training.offload": ("none", "everything stays on the GPUs"),
    "training.loading": ("sharded", "each VM reads or initializes only what its GPUs hold"),
    "training.tensor_parallel": (1, "data parallelism alone"),
    "training.pipeline_parallel": (1, "data parallelism alone"),
    "training.micro_batch": (1, "one sequence at a time"),
    "training.sequence_tokens": (2048, "the default of LLaMA-Factory and Unsloth; TRL's is 1,024"),
    "training.recompute": ("none", "every activation is kept"),
    "training.activation_bytes": (2, "activations in 16 bits"),
    "training.lora_rank": (16, "a usual rank"),
    "training.lora_modules": (("q", "k", "v", "o", "gate", "up", "down"), "adapters on every linear layer"),
    "training.gpus_per_node": (8, "a usual node"),
    "pricing.spot_evictions_per_hour": (0.025, "middle of Azure's lowest band, 0 to 5 % an hour"),
    "pricing.spot_restart_minutes": (10.0, "to get VMs again and start the program; not measured"),
    "pricing.checkpoint_gb_per_s": (7.5, "60 Gbit/s, the default limit of an Azure storage account"),
    "pricing.checkpoint_usd_per_gb_month": (0.02, "hot object storage: 0.018 USD (Azure Blob, LRS) to 0.023 (S3)"),
    "pricing.checkpoints_kept": (2, "the last one, and the one being written"),
}
"""Every default of a workload that is a constant; those that follow from other fields are recorded where computed."""


class Assumptions:
    """Looks up defaults, and records which were used and which figures were left out."""

    def __init__(self) -> None:
        self._recorded: dict[str, Assumption] = {}
        self._left_out: dict[str, OmittedFigure] = {}

    def get(self, given: T | None, field: str) -> T:
        """Return the given value, or else the default of DEFAULTS, which is recorded."""
        if given is not None:
            return given
        value: T
        value, why = DEFAULTS[field]
        return self.record(field, value, why)

    def record(self, field: str, value: V, why: str) -> V:
        """Record a derived or assumed value and return it; only the first record of a field is kept."""
        if field not in self._recorded:
            self._recorded[field] = Assumption(field=field, value=value, why=why)
        return value

    def add(self, recorded: Iterable[Assumption]) -> None:
        """Add what was recorded elsewhere; only the first record of a field is kept."""
        for one in recorded:
            self._recorded.setdefault(one.field, one)

    def mark_missing(self, figure: str, missing: tuple[str, ...]) -> bool:
        """Return whether fields are missing for a figure, which is then recorded as left out."""
        if missing:
            self._left_out.setdefault(figure, OmittedFigure(figure=figure, missing=missing))
        return bool(missing)

    @property
    def left_out(self) -> tuple[OmittedFigure, ...]:
        """The figures that were left out, in the order they came up."""
        return tuple(self._left_out.values())

    @property
    def recorded(self) -> tuple[Assumption, ...]:
        """The recorded assumptions, in the order they were made."""
        return tuple(self._recorded.values())
