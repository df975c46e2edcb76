"""A model as it is understood: its shape, completed where one field follows from others, and its parameters."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from app.fit.formulas.architecture import Architecture, ParameterCount, count_parameters, missing_for_count
from app.fit.formulas.assumptions import DEFAULTS, Assumptions, InvalidWorkload
from app.fit.formulas.quantities import Figure, Range, estimate_gib, exact_or_bound_gib

PARAMS_TOLERANCE = 0.01
"""How far a published number of parameters, which is rounded, may be from the counted one without a note."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A shape and the count of its parameters; None where neither is stated nor can be counted."""

    shape: Architecture
    count: ParameterCount | None


_AT_MOST = (
    ("active_params", "params"),
    ("kv_layers", "layers"),
    ("sliding_layers", "layers"),
    ("moe_layers", "layers"),
    ("experts_per_token", "experts"),
    ("kv_heads", "heads"),
)
"""What cannot be more than what it is a part of."""


def weight_figure(weights: Range, *, is_exact: bool = True) -> Figure:
    """Weights, GiB: exact where every one has the same bits, or their bytes are given, and no stage is rounded up."""
    return exact_or_bound_gib(weights.mid, is_exact=is_exact) if weights.low == weights.high else estimate_gib(weights)


def build_architecture(
    given: Mapping[str, Any], assumptions: Assumptions, attention: str | None = None
) -> Architecture:
    """Make a shape of the fields that were given; raises InvalidWorkload where they contradict each other."""
    shape = Architecture(**given)
    if attention is not None:
        shape = _apply_attention(shape, attention)
    for part, whole in _AT_MOST:
        some, all_of_them = getattr(shape, part), getattr(shape, whole)
        if some is not None and all_of_them is not None and some > all_of_them:
            raise InvalidWorkload(f"architecture.{part}", f"{some} is more than {whole}, {all_of_them}")
    if shape.params is None and not missing_for_count(_fill_derived(shape, Assumptions())):
        for name in ("mlp", "tied_embeddings"):
            if name not in given:
                assumptions.record(f"architecture.{name}", *DEFAULTS[f"architecture.{name}"])
    return shape


def _apply_attention(shape: Architecture, attention: str) -> Architecture:
    """Let the kind of attention say the number of KV heads where it is not given, and refuse another one."""
    heads = {"mha": shape.heads, "mqa": 1}.get(attention)
    if shape.kv_heads is None and heads is not None:
        shape = replace(shape, kv_heads=heads)
    if (attention == "mla") != (shape.kv_lora_rank is not None):
        raise InvalidWorkload(
            "architecture.kv_lora_rank", "is the rank of the latent of attention mla: give both or none"
        )
    if heads is not None and shape.kv_heads != heads:
        raise InvalidWorkload("architecture.kv_heads", f"is {shape.kv_heads}, and attention {attention} has {heads}")
    return shape


def resolve_model(shape: Architecture, assumptions: Assumptions) -> Model:
    """Complete a shape and count its parameters; a stated number counts before what the other fields make."""
    shape = _fill_derived(shape, assumptions)
    counted = None if missing_for_count(shape) else count_parameters(shape)
    if shape.params is None:
        return Model(shape=shape, count=counted)
    if counted is None:
        return Model(shape=shape, count=_count_from_total(shape, shape.params, assumptions))
    if abs(counted.total - shape.params) > PARAMS_TOLERANCE * shape.params:
        assumptions.record("architecture.params", shape.params, f"as stated; the other fields make {counted.total}")
    return Model(shape=shape, count=_scale_count(counted, shape.params, shape.active_params))


def _count_from_total(shape: Architecture, params: int, assumptions: Assumptions) -> ParameterCount:
    """A number of parameters that nothing else is known of but, perhaps, the embeddings."""
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


def _scale_count(counted: ParameterCount, params: int, active: int | None) -> ParameterCount:
    """The parts of a count, in proportion to the number that was stated: a published one is rounded."""
    share = Fraction(params, counted.total)
    return ParameterCount(
        total=params,
        active=max(1, round(counted.active * share)) if active is None else active,
        embeddings=round(counted.embeddings * share),
        experts=round(counted.experts * share),
        largest_layer=round(counted.largest_layer * share),
    )


def _fill_derived(shape: Architecture, assumptions: Assumptions) -> Architecture:
    """Fill what follows: KV heads as many as heads, head_dim hidden / heads."""
    if shape.kv_heads is None and shape.heads is not None and shape.kv_lora_rank is None:
        shape = replace(
            shape, kv_heads=assumptions.record("architecture.kv_heads", shape.heads, "as many as heads (MHA)")
        )
    if shape.head_dim is None and shape.heads and shape.hidden and shape.hidden % shape.heads == 0:
        width = assumptions.record("architecture.head_dim", shape.hidden // shape.heads, "hidden / heads")
        shape = replace(shape, head_dim=width)
    return shape
