"""Search language models, and get one by any of its names."""

import re
from collections.abc import Mapping
from typing import Any

import orjson
from pydantic import Field
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.catalog.column_types import table_of
from app.catalog.models import LanguageModel
from app.catalog.names import model_key, model_keys
from app.catalog.presets import Preset, split_names
from app.catalog.queries.pagination import Listing, SortKey, fetch_page
from app.catalog.queries.params import LowerText, PageParams
from app.catalog.queries.provenance import split_lists
from app.errors import NotFound
from app.nearest import starting_with

_table = table_of(LanguageModel)
_model = _table.c
_SEARCHED = func.lower(
    _model.id + " " + _model.name + " " + func.coalesce(_model.hf_repo, "") + " " + func.coalesce(_model.aliases, "")
)


class ModelSearch(PageParams):
    """Which language models."""

    q: LowerText | None = Field(
        default=None,
        description="Words to find in id, name, repository and aliases; all must be there.",
        examples=["llama 3.1"],
    )


def find_models(session: Session, search: ModelSearch) -> Listing:
    """Find language models by words, in the order of their ids."""
    words = (search.q or "").split()
    query = select(_table).where(*(_SEARCHED.contains(word, autoescape=True) for word in words))
    sort_keys = [SortKey(name="id", expression=_model.id, nullable=False)]
    identity = f"models {search.model_dump_json(exclude=search.page_param_names())}"
    found = fetch_page(session, query, sort_keys, identity=identity, limit=search.limit, cursor=search.cursor)
    items = [split_lists(item) | {"config": parse_config(item["config"])} for item in found.items]
    return Listing(items=items, next_cursor=found.next_cursor, total=found.total)


def parse_config(text: str | None) -> Mapping[str, Any]:
    """Return the object that a row has as JSON text; empty where there is none."""
    return orjson.loads(text) if text is not None else {}


def get_model(session: Session, name: str) -> Preset:
    """Return a language model by its id, its name, its repository or an alias, in any spelling.

    Raises NotFound naming the nearest.
    """
    id_ = name.strip().lower()
    row = session.execute(select(_table).where(_model.id == id_)).mappings().first()
    return Preset.model_validate(dict(row if row is not None else get_model_row(load_models(session), name)))


ModelsByKey = Mapping[str, Mapping[str, Any]]
"""The rows of all models by the key of each of their names."""


def load_models(session: Session) -> ModelsByKey:
    """Read all models by the key of each of their names."""
    rows = session.execute(select(_table).order_by(_model.id)).mappings()
    return {
        key: dict(row)
        for row in rows
        for key in model_keys((row["id"], row["name"], row["hf_repo"] or "", *split_names(row["aliases"])))
    }


def _beginning_of(key: str, models: ModelsByKey) -> tuple[str, ...]:
    """Return the longest known key that a key begins with: of a variant, as `llama-3.1-70b-awq`, its model.

    The known one ends in a size, and a letter follows: another size is another model.
    """
    begun = [one for one in models if key.startswith(one) and _SIZED.search(one) and key[len(one) :][:1].isalpha()]
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
