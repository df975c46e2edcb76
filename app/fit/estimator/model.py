"""Resolves a model: checks and completes its architecture, and counts its parameters."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from app.fit.formulas.architecture import Architecture, ParameterCount, count_parameters, missing_for_count
from app.fit.formulas.quantities import (
    DEFAULTS,
    Assumptions,
    Figure,
    InvalidWorkload,
    Range,
    estimate_gib,
    exact_or_bound_gib,
    single_value,
)

PARAMS_TOLERANCE = 0.01
"""Relative difference to the counted parameters that a published, rounded number may have without being recorded."""

AS_COUNTED = single_value(1.0)
"""What a model of a known type may have, as a factor of what is counted."""

UNKNOWN_TYPE_PARAMS = Range(low=0.95, mid=1.0, high=1.12)
"""Parameters of a model of an unknown type, of those that a standard decoder with its fields has.

That of nine in ten types of transformers is within: benchmarks/accuracy/standard_decoders.json.
"""

UNKNOWN_TYPE_CACHE = Range(low=0.5, mid=1.0, high=1.25)
"""KV cache of a model of an unknown type, of that which a standard decoder with its fields has.

Less with windows and narrower heads that the fields do not show, more with an indexer. An assumption.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """An architecture and its parameters; `count` is None where they are neither stated nor can be counted."""

    shape: Architecture
    count: ParameterCount | None

    def counted_within(self, params: int) -> Range:
        """What a counted number of parameters may be, as factors of it: not just these if the type is unknown.

        `params` is of all parameters or of those that a token uses. The low end of a model that may be tied is without
        the output layer.
        """
        if not self.shape.unknown_type or self.shape.params is not None:
            return AS_COUNTED
        if not self.shape.may_be_tied or self.count is None:
            return UNKNOWN_TYPE_PARAMS
        without_output = 1 - self.count.embeddings / 2 / params
        return replace(UNKNOWN_TYPE_PARAMS, low=UNKNOWN_TYPE_PARAMS.low * without_output)

    @property
    def cached_within(self) -> Range:
        """What the KV cache may be, as factors of what is counted."""
        return UNKNOWN_TYPE_CACHE if self.shape.unknown_type else AS_COUNTED


_AT_MOST = (
    ("active_params", "params"),
    ("kv_layers", "layers"),
    ("sliding_layers", "layers"),
    ("moe_layers", "layers"),
    ("experts_per_token", "experts"),
    ("kv_heads", "heads"),
)
"""Pairs of fields: the first must not be larger than the second, which it is a part of."""

_ONLY_WITH = (("moe_layers", "experts"), ("sliding_layers", "sliding_window"))
"""Pairs of fields: the first says nothing without the second."""


def architecture_paths(names: Iterable[str]) -> tuple[str, ...]:
    """Return fields of an Architecture as `architecture.name`, the form in which missing fields are recorded."""
    return tuple(f"architecture.{name}" for name in names)


def range_figure(size: Range, *, is_exact: bool = True) -> Figure:
    """Return bytes as GiB: exact where they are known and no pipeline stage is rounded up."""
    return exact_or_bound_gib(size.mid, is_exact=is_exact) if size.low == size.high else estimate_gib(size)


def build_architecture(
    given: Mapping[str, Any], assumptions: Assumptions, attention: str | None = None
) -> Architecture:
    """Build an Architecture of the given fields; raise InvalidWorkload where they contradict each other."""
    shape = Architecture(**given)
    if attention is not None:
        shape = _apply_attention(shape, attention)
    for part, whole in _AT_MOST:
        value, limit = getattr(shape, part), getattr(shape, whole)
        if value is not None and limit is not None and value > limit:
            raise InvalidWorkload(f"architecture.{part}", f"{value} is more than {whole}, {limit}")
    for part, whole in _ONLY_WITH:
        if getattr(shape, part) is not None and getattr(shape, whole) is None:
            raise InvalidWorkload(f"architecture.{part}", f"has no effect without {whole}")
    if shape.kv_lora_rank is None and shape.heads and shape.kv_heads and shape.heads % shape.kv_heads:
        raise InvalidWorkload("architecture.kv_heads", f"{shape.kv_heads} does not divide heads, {shape.heads}")
    filled = _fill_derived(shape, Assumptions())
    if missing_for_count(filled):
        return shape
    if shape.experts is None:
        _check_dense(filled)
    if shape.params is None:
        for name in ("mlp", "tied_embeddings"):
            if name not in given:
                assumptions.record(f"architecture.{name}", *DEFAULTS[f"architecture.{name}"])
    return shape


def _check_dense(shape: Architecture) -> None:
    """Raise InvalidWorkload where a complete model without experts is said to use a part of its parameters."""
    if shape.experts_per_token is not None:
        raise InvalidWorkload("architecture.experts_per_token", "has no effect without experts")
    total, active = shape.params or count_parameters(shape).total, shape.active_params
    if active is not None and abs(active - total) > PARAMS_TOLERANCE * total:
        detail = f"{active}: without experts a token passes through all parameters, {total}"
        raise InvalidWorkload("architecture.active_params", detail)


def _apply_attention(shape: Architecture, attention: str) -> Architecture:
    """Derive the number of KV heads from the kind of attention; raise InvalidWorkload where they contradict."""
    heads = {"mha": shape.heads, "mqa": 1}.get(attention)
    if shape.kv_heads is None and heads is not None:
        shape = replace(shape, kv_heads=heads)
    if (attention == "mla") != (shape.kv_lora_rank is not None):
        detail = "is the rank of the latent of attention mla: give both or none"
        raise InvalidWorkload("architecture.kv_lora_rank", detail)
    if heads is not None and shape.kv_heads != heads:
        raise InvalidWorkload("architecture.kv_heads", f"is {shape.kv_heads}, and attention {attention} has {heads}")
    return shape


def resolve_model(shape: Architecture, assumptions: Assumptions) -> Model:
    """Complete an architecture and count its parameters; a stated number takes precedence over the counted one."""
    shape = _fill_derived(shape, assumptions)
    count = None if missing_for_count(shape) else count_parameters(shape)
    if shape.params is not None:
        if count is None:
            return Model(shape=shape, count=_count_from_total(shape, shape.params, assumptions))
        if abs(count.total - shape.params) > PARAMS_TOLERANCE * shape.params:
            assumptions.record("architecture.params", shape.params, f"as stated; the other fields make {count.total}")
        # Published numbers are rounded: the parts are scaled to the stated one.
        share = Fraction(shape.params, count.total)
        count = ParameterCount(
            total=shape.params,
            active=max(1, round(count.active * share)),
            embeddings=round(count.embeddings * share),
            experts=round(count.experts * share),
            largest_layer=round(count.largest_layer * share),
        )
    if count is None or shape.active_params is None:
        return Model(shape=shape, count=count)
    active = shape.active_params
    if active > count.total:
        raise InvalidWorkload("architecture.active_params", f"{active} is more than all parameters, {count.total}")
    if abs(count.active - active) > PARAMS_TOLERANCE * active:
        assumptions.record("architecture.active_params", active, f"as stated; the other fields make {count.active}")
    return Model(shape=shape, count=replace(count, active=active))


def _count_from_total(shape: Architecture, params: int, assumptions: Assumptions) -> ParameterCount:
    """Return the count for a stated number of parameters of which at most the embeddings can be counted."""
    active = shape.active_params
    if active is None:
        active = params
        if shape.experts is not None:
            assumptions.record("architecture.active_params", active, "the experts cannot be counted: all parameters")
    embeddings = 0
    if not shape.missing_fields("vocab", "hidden"):
        vocab, hidden = shape.require("vocab", "hidden")
        embeddings = min(params, vocab * hidden * (1 if shape.tied_embeddings else 2))
    return ParameterCount(total=params, active=active, embeddings=embeddings)


def _fill_derived(shape: Architecture, assumptions: Assumptions) -> Architecture:
    """Fill fields that follow from others: kv_heads = heads, head_dim = hidden / heads."""
    if shape.kv_heads is None and shape.heads is not None and shape.kv_lora_rank is None:
        shape = replace(
            shape, kv_heads=assumptions.record("architecture.kv_heads", shape.heads, "as many as heads (MHA)")
        )
    if shape.head_dim is None and shape.heads and shape.hidden and shape.hidden % shape.heads == 0:
        width = assumptions.record("architecture.head_dim", shape.hidden // shape.heads, "hidden / heads")
        shape = replace(shape, head_dim=width)
    return shape
