"""Get language models by any of their names."""

import re
from collections.abc import Mapping
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.catalog.column_types import table_of
from app.catalog.models import LanguageModel
from app.catalog.names import model_key, model_keys
from app.catalog.presets import Preset, split_names
from app.errors import NotFound
from app.nearest import starting_with

_table = table_of(LanguageModel)
_model = _table.c

ModelsByKey = Mapping[str, Mapping[str, Any]]
"""The rows of all models by the key of each of their names."""


def get_model(models: ModelsByKey, name: str) -> Preset:
    """Return a language model by its id, its name, its repository or an alias, in any spelling.

    Raises NotFound naming the nearest.
    """
    id_ = name.strip().lower()
    row = next((model for model in models.values() if model["id"] == id_), None)
    return Preset.model_validate(row if row is not None else get_model_row(models, name))


def load_models(session: Session) -> ModelsByKey:
    """Read all models by the key of each of their names."""
    rows = session.execute(select(_table).order_by(_model.id)).mappings()
    return {
        key: dict(row)
        for row in rows
        for key in model_keys((row["id"], row["name"], row["hf_repo"] or "", *split_names(row["aliases"])))
    }


RELEASE_TYPES: Mapping[str, str] = {
    "fp8": "fp8",
    "fp8-dynamic": "fp8",
    "int8": "int8",
    "awq": "awq_int4",
    "awq-int4": "awq_int4",
    "gptq": "gptq_int4",
    "gptq-int4": "gptq_int4",
    "gptq-int8": "int8",
    "bnb-4bit": "nf4",
    "nvfp4": "nvfp4",
    "mxfp4": "mxfp4",
    "bf16": "bf16",
    "fp16": "fp16",
}
"""What the names of repositories end in, and the type of the weights that it says."""

RELEASE_VARIANTS = ("instruct", "chat", "it", "base", "thinking", "[0-9]{4}")
"""Other endings of a release of the same size: how it was trained, and the year and month."""

_SUFFIX = re.compile(f"[- ](?:(?P<type>{'|'.join(RELEASE_TYPES)})|(?P<variant>{'|'.join(RELEASE_VARIANTS)}))$")


def get_release_row(models: ModelsByKey, name: str) -> Mapping[str, Any]:
    """Return the row of a model by any of its names, or by that of a release of it; raises NotFound naming the nearest.

    A name that ends in a type, such as `-FP8` or `-AWQ`, has that as its `dtype`, whoever released it, and the ending
    as `released_as`. A variant such as `-Instruct-2507` is a release of a model whose name says its size; the longest
    context of a dated one is unknown.
    """
    rest = name.strip().lower().replace("_", "-")
    types: list[str] = []
    variants: list[str] = []
    while (suffix := _SUFFIX.search(rest)) and model_key(rest) not in models:
        (types if suffix["type"] else variants).append(suffix[0])
        rest = rest[: suffix.start()]
    forms = (rest, rest.rpartition("/")[2]) if types else (rest,)
    key = next((key for form in forms if (key := model_key(form)) in models), None)
    if key is None or (variants and not _SIZED.search(key)):
        return get_model_row(models, name)
    row = models[key]
    if types:
        row = {**row, "dtype": RELEASE_TYPES[types[0][1:]], "fp8_block": None, "released_as": types[0]}
    dated = any(variant[1:].isdigit() for variant in variants)
    return {**row, "max_context_tokens": None} if dated else row


def _beginning_of(key: str, models: ModelsByKey) -> tuple[str, ...]:
    """Return the longest known key that a key begins with: of a variant, as `llama-3.1-70b-awq`, its model.

    The known one ends in a size, and a letter follows: another size is another model.
    """
    begun = [
        model for model in models if key.startswith(model) and _SIZED.search(model) and key[len(model) :][:1].isalpha()
    ]
    return (max(begun, key=len),) if begun else ()


_SIZED = re.compile(r"\d[bm]$")


def get_model_row(models: ModelsByKey, name: str) -> Mapping[str, Any]:
    """Return the row of a model by any of its names; raises NotFound naming the nearest."""
    key = model_key(name)
    if key not in models:
        near_keys = _beginning_of(key.rpartition("/")[2], models) or starting_with(key, models, 4)
        nearest = dict.fromkeys(models[near]["id"] for near in near_keys)
        raise NotFound("model", name, suggestions=tuple(nearest)[:2])
    return models[key]
