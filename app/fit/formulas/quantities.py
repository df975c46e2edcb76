"""Figures with their unit and certainty, the defaults and gaps behind them, and the descriptions of their fields.

Pydantic reads the metadata of fields where it writes a result as JSON; nothing here needs pydantic.
"""

import dataclasses
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Annotated, Any, Literal, TypeVar

ALWAYS_WRITTEN: Mapping[str, Any] = {"json_schema_serialization_defaults_required": True}
"""The `__pydantic_config__` of a result whose fields have defaults, which JSON has nevertheless."""


def about(text: str, *, alias: str | None = None) -> Mapping[str, Any]:
    """Describe a field; JSON has it under its alias, if there is one."""
    return {"description": text} | ({"serialization_alias": alias} if alias is not None else {})


def if_known(text: str) -> Mapping[str, Any]:
    """Describe a field that JSON leaves out where it is None."""
    return {"description": text, "exclude_if": lambda value: value is None}


class WrittenAs:
    """Says as which type JSON has a field, whatever type is computed with: "float" or "str"."""

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def __get_pydantic_core_schema__(self, _source: Any, _handler: Any) -> dict[str, Any]:
        if self._kind == "str":
            return {"type": "str"}
        to_float = {"type": "function-plain", "function": float, "return_schema": {"type": "float"}}
        return {"type": "float", "serialization": to_float}


Certainty = Literal["exact", "bound", "estimate"]
Number = int | float | Decimal

JsonFloat = Annotated[Number, WrittenAs("float")]

GIB = 2**30


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """An estimated quantity: its lowest, most likely and highest plausible value, in one unit."""

    low: float
    mid: float
    high: float

    def __add__(self, other: "Range | float") -> "Range":
        """Add a range end by end, or a known value to every end."""
        if isinstance(other, Range):
            return Range(low=self.low + other.low, mid=self.mid + other.mid, high=self.high + other.high)
        return Range(low=self.low + other, mid=self.mid + other, high=self.high + other)

    def times(self, factor: float) -> "Range":
        """Return the range multiplied by a factor, which must not be negative."""
        return Range(low=self.low * factor, mid=self.mid * factor, high=self.high * factor)

    def within(self, factors: "Range") -> "Range":
        """Return the range multiplied by factors end by end."""
        return Range(low=self.low * factors.low, mid=self.mid * factors.mid, high=self.high * factors.high)

    @property
    def spread(self) -> "Range":
        """The range relative to its middle: the uncertainty that a part adds to a sum of middles."""
        return Range(low=self.low - self.mid, mid=0.0, high=self.high - self.mid)

    def divide(self, amount: float) -> "Range":
        """Return `amount / self`: the highest divisor gives the lowest quotient."""
        return Range(low=amount / self.high, mid=amount / self.mid, high=amount / self.low)


def plus_minus(mid: float, share: float) -> Range:
    """Return `mid` with the same share of it to either side: 10 and 0.4 give 6 to 14."""
    return Range(low=mid * (1 - share), mid=mid, high=mid * (1 + share))


def single_value(value: float) -> Range:
    """Return a range of one known value."""
    return Range(low=value, mid=value, high=value)


ZERO = single_value(0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The measurements that the range of an estimate rests on."""

    __pydantic_config__ = ALWAYS_WRITTEN

    family: str = field(metadata=about("The family in GET /accuracy: `decode_step`. Extensible."))
    n: int = field(metadata=about("Its measurements that depart in all of `outside`; 0: no measurement backs it."))
    outside: tuple[str, ...] = field(
        default=(),
        metadata=about("In what the request departs from them, so that the range is wider: gpu, link, … Extensible."),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A figure: `value` where it is exact or a bound, `low`, `mid` and `high` where it is an estimate."""

    __pydantic_config__ = ALWAYS_WRITTEN

    certainty: Annotated[Certainty, WrittenAs("str")] = field(
        metadata=about("exact, bound or estimate. Extensible.", alias="class")
    )
    unit: str = field(metadata=about("The unit of all of them."))
    value: JsonFloat | None = field(default=None, metadata=about("The figure, or the bound; null of an estimate."))
    low: JsonFloat | None = field(default=None, metadata=about("The low end of an estimate."))
    mid: JsonFloat | None = field(default=None, metadata=about("The middle of an estimate."))
    high: JsonFloat | None = field(default=None, metadata=about("The high end of an estimate."))
    evidence: Evidence | None = field(
        default=None, metadata=if_known("What the range rests on, where it was compared with measurements.")
    )


def exact(value: Number, unit: str) -> Figure:
    """Return an exact figure: plain arithmetic on the input, without uncertainty."""
    return Figure(unit=unit, certainty="exact", value=value)


def bound(value: Number, unit: str) -> Figure:
    """Return a limit: no system does better, or no GPU holds more."""
    return Figure(unit=unit, certainty="bound", value=value)


def estimate(value: Range, unit: str, evidence: Evidence | None = None) -> Figure:
    """Return an estimate with the range seen in practice, and the measurements that say so."""
    return Figure(unit=unit, certainty="estimate", low=value.low, mid=value.mid, high=value.high, evidence=evidence)


def exact_within(value: float, unit: str, factors: Range) -> Figure:
    """Return an exact figure where the factors are 1, else an estimate: the value multiplied by them."""
    return exact(value, unit) if factors.low == factors.high else estimate(single_value(value).within(factors), unit)


def exact_gib(size_bytes: float) -> Figure:
    """Convert an exact number of bytes to a figure in GiB (2^30 bytes)."""
    return exact(size_bytes / GIB, "GiB")


def exact_or_bound_gib(size_bytes: float, *, is_exact: bool) -> Figure:
    """Convert bytes on the fullest GPU to GiB; a bound where layers were rounded up to whole ones per stage."""
    return exact_gib(size_bytes) if is_exact else bound(size_bytes / GIB, "GiB")


def estimate_gib(size_bytes: Range, evidence: Evidence | None = None) -> Figure:
    """Convert an estimated number of bytes to a figure in GiB (2^30 bytes)."""
    return estimate(size_bytes.times(1 / GIB), "GiB", evidence)


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


MAX_SHOWN = 80
"""Letters of a client's value that a message quotes."""


def shown(value: Any) -> str:
    """Return a value as messages quote it: text in quotes, all else as JSON has it; the beginning of a long one."""
    text = repr(value) if isinstance(value, str) else json.dumps(value, default=str)
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}..."


DEFAULTS: dict[str, tuple[Any, str]] = {
    "architecture.mlp": ("gated", "most models since 2023 have a gated MLP (SwiGLU)"),
    "architecture.tied_embeddings": (False, "most models above 3B have an output layer of their own"),
    "inference.dtype": ("bf16", "most models are released in 16 bits"),
    "inference.kv_dtype": ("bf16", "engines keep the cache in 16 bits unless configured otherwise"),
    "inference.concurrency": (1, "one sequence at a time"),
    "inference.context_tokens": (8192, "a usual context of a sequence; without one it would take no memory"),
    "inference.block_tokens": (1, "tokens are counted one by one; vLLM's pages are 16"),
    "inference.max_batched_tokens": (8192, "a server's usual limit with chunked prefill"),
    "inference.utilization": (0.92, "vLLM's default share of a GPU's memory"),
    "inference.engine": ("vllm", "the engine that most use"),
    "inference.speculative.draft_weight_gib": (0.0, "no draft is given: tokens are looked up in the prompt"),
    "serving.prefix_cache_hit": (0.0, "every prompt is read whole"),
    "serving.think_time_s": (0.0, "every user always has one request open"),
    "serving.peak_to_mean": (1.0, "the load that is given is the highest"),
    "gpus.link": ("nvlink", "tensor parallelism is for GPUs with NVLink"),
    "gpus.network": ("infiniband", "more GPUs than a VM has are on several VMs"),
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
        for assumption in recorded:
            self._recorded.setdefault(assumption.field, assumption)

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
