"""Endpoints for the language models that a workload can name (presets)."""

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Path, Query, Response

from app.api.deps import Executor, json_response
from app.catalog.queries.language_models import ModelSearch, find_models, get_model
from app.catalog.queries.params import PlainText
from app.schemas.catalog import ModelOut, ModelPage

router = APIRouter(prefix="/models", tags=["models"])

ModelName = Annotated[
    PlainText,
    Path(
        description="A model's id, name, alias or repository in any case: `meta-llama/Llama-3.1-70B`.",
        examples=["llama-3.1-70b"],
    ),
]


@router.get("", response_model=ModelPage)
async def list_models(search: Annotated[ModelSearch, Query()], executor: Executor) -> Response:
    """List the language models whose configuration is known."""
    return json_response(await executor.to_json(ModelPage, partial(find_models, search)))


@router.get("/{model_id:path}", response_model=ModelOut)
async def show_model(model_id: ModelName, executor: Executor) -> Response:
    """Show one language model's configuration."""
    preset = get_model((await executor.snapshot()).models, model_id)
    return json_response(ModelOut.model_validate(preset, from_attributes=True).model_dump_json(by_alias=True))
