"""Resolves the model of a request (preset name, config.json or single fields) to an Architecture."""

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from functools import lru_cache
from typing import Any

import orjson

from app.errors import BadWorkload, NotFound
from app.fit.estimator.model import build_architecture
from app.fit.formulas.architecture import Architecture, missing_for_count
from app.fit.formulas.hf_config import read_config
from app.fit.formulas.hf_quantization import Checkpoint, read_checkpoint
from app.fit.formulas.quantities import Assumptions
from app.fit.formulas.quantization import ReleasedWeights, fp8_blocks, fp8_tensors, mxfp4_experts
from app.schemas.estimate_request import ModelIn


def resolve_architecture(
    spec: ModelIn, find: Callable[[str], Mapping[str, Any]], assumptions: Assumptions
) -> Architecture:
    """Return the architecture of a model; `find` gets a preset by name.

    Raises BadWorkload for an unknown preset, InvalidWorkload for a configuration or fields that make no model.
    """
    shape = _described_architecture(spec, find, assumptions)
    return shape if spec.safetensors is None else _with_checkpoint(shape, read_checkpoint(spec.safetensors))


def _with_checkpoint(shape: Architecture, checkpoint: Checkpoint) -> Architecture:
    """Return the architecture with the bytes of a checkpoint; its parameters and type where nothing else says them."""
    known = shape.params is not None or not (shape.unknown_type or missing_for_count(shape))
    stated = shape.released
    released = ReleasedWeights(
        dtype=stated.dtype if stated is not None else checkpoint.dtype,
        source="safetensors",
        quantization=stated.quantization if stated is not None else None,
        size=checkpoint.size,
        why=f"the checkpoint's {checkpoint.size} bytes, by {checkpoint.source}",
    )
    return replace(shape, released=released, params=shape.params if known else checkpoint.params)


def _described_architecture(
    spec: ModelIn, find: Callable[[str], Mapping[str, Any]], assumptions: Assumptions
) -> Architecture:
    if spec.model is not None:
        return to_architecture(_preset(spec.model, find))
    if spec.config is not None:
        return read_config(spec.config, assumptions)
    known = {name: value for name, value in (spec.fields or {}).items() if value is not None}
    return build_architecture(known, assumptions, attention=known.pop("attention", None))


def _preset(name: str, find: Callable[[str], Mapping[str, Any]]) -> Mapping[str, Any]:
    try:
        return find(name)
    except NotFound as unknown:
        hint = "" if unknown.suggestions else " Give architecture or config instead."
        raise BadWorkload("model", f"{unknown}{hint}") from None


def to_architecture(row: Mapping[str, Any]) -> Architecture:
    """Map a preset's row to an Architecture; missing columns are unknown."""
    if row.get("config"):
        shape = _read_preset_config(row)
        return replace(shape, released=_released(row)) if row.get("released_as") else shape
    names = {field.name for field in fields(Architecture)}
    known = {name: value for name, value in row.items() if name in names and value is not None}
    if not known.get("experts"):
        known = {name: value for name, value in known.items() if "expert" not in name and not name.startswith("moe_")}
    shared = (row.get("shared_experts") or 0) * (row.get("moe_intermediate") or 0)
    own = {"max_positions": row.get("max_context_tokens"), "released": _released(row)}
    return Architecture(**known | own | ({"shared_intermediate": shared} if shared else {}))


def _read_preset_config(row: Mapping[str, Any]) -> Architecture:
    """Read the configuration of a preset whose layers differ: an object, or its JSON text as in the table."""
    config = row["config"]
    shape = _read_text(config if isinstance(config, str) else orjson.dumps(config).decode())
    released = replace(shape.released, source="preset") if shape.released is not None else _released(row)
    return replace(shape, released=released, max_positions=row.get("max_context_tokens"))


@lru_cache(maxsize=128)
def _read_text(config: str) -> Architecture:
    return read_config(orjson.loads(config), Assumptions())


def _released(row: Mapping[str, Any]) -> ReleasedWeights | None:
    """Return how a preset's weights are stored, by the type its model card names; None where it names none."""
    dtype, block = row.get("dtype"), row.get("fp8_block")
    if dtype is None:
        return None
    if (suffix := row.get("released_as")) is not None:
        return ReleasedWeights(dtype=dtype, source="preset", why=f"the name ends in {suffix}")
    quantized = {"mxfp4": mxfp4_experts(), "fp8": fp8_blocks(block) if block else fp8_tensors()}
    stored = quantized.get(dtype)
    why = "the type it is released in"
    if stored is not None:
        what = "routed experts" if dtype == "mxfp4" else "the matrices of its layers"
        why = f"{why}: {what}, and all else in 16 bits"
    return ReleasedWeights(dtype=dtype, source="preset", quantization=stored, why=why)
