"""What is assumed where a workload does not say: every default in one table, and the note of each that was used."""

from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T")
V = TypeVar("V")


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumption:
    """A value that was not given: of which field, what was taken, and why."""

    field: str
    value: Any
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OmittedFigure:
    """A figure that was not computed, and the fields that it misses."""

    figure: str
    missing: tuple[str, ...]


class InvalidWorkload(ValueError):
    """A workload contradicts itself or says too little: names the field and what is wrong."""

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
    "training.recompute": ("none", "every activation is kept"),
    "training.activation_bytes": (2, "activations in 16 bits"),
    "training.lora_rank": (16, "a usual rank"),
    "training.lora_modules": (("q", "k", "v", "o", "gate", "up", "down"), "adapters on every linear layer"),
    "training.gpus_per_node": (8, "a usual node"),
}
"""Every default of a workload that is a value by itself; those that follow from other fields are noted where made."""


class Assumptions:
    """Gives what was given, else the default; notes each default that was used, and each figure that was left out."""

    def __init__(self) -> None:
        self._notes: dict[str, Assumption] = {}
        self._gaps: dict[str, OmittedFigure] = {}

    def get(self, given: T | None, field: str) -> T:
        """Give a field's value, or its default of the table, which is noted."""
        if given is not None:
            return given
        value: T
        value, why = DEFAULTS[field]
        return self.record(field, value, why)

    def record(self, field: str, value: V, why: str) -> V:
        """Note a value that was derived or assumed, once, and give it."""
        self._notes.setdefault(field, Assumption(field=field, value=value, why=why))
        return value

    def mark_missing(self, figure: str, missing: tuple[str, ...]) -> bool:
        """Whether a figure misses fields; then it is noted as left out."""
        if missing:
            self._gaps.setdefault(figure, OmittedFigure(figure=figure, missing=missing))
        return bool(missing)

    @property
    def left_out(self) -> tuple[OmittedFigure, ...]:
        """All figures that were left out, in the order of their turn."""
        return tuple(self._gaps.values())

    @property
    def recorded(self) -> tuple[Assumption, ...]:
        """All that was noted, in the order of its use."""
        return tuple(self._notes.values())
