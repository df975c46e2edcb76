"""Endpoints for the language models that a workload can name (presets)."""

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Path, Query, Response

from app.api.deps import Executor, json_response
from app.catalog.queries.language_models import ModelSearch, find_models, get_model
from app.catalog.queries.params import PlainText
from app.http.late_models import LateModel

router = APIRouter(prefix="/models", tags=["models"])
_MODEL = LateModel("app.schemas.catalog", "ModelOut")
_MODEL_PAGE = LateModel("app.schemas.catalog", "ModelPage")

ModelName = Annotated[
    PlainText,
    Path(
        description="A model's id, name, alias or repository in any case: `meta-llama/Llama-3.1-70B`.",
        examples=["llama-3.1-70b"],
    ),
]


@router.get("", response_model=_MODEL_PAGE)
async def list_models(search: Annotated[ModelSearch, Query()], executor: Executor) -> Response:
    """List the language models whose configuration is known."""
    return json_response(await executor.to_json(_MODEL_PAGE, partial(find_models, search)))


@router.get("/{model_id:path}", response_model=_MODEL)
async def show_model(model_id: ModelName, executor: Executor) -> Response:
    """Show one language model's configuration."""
    preset = get_model((await executor.snapshot()).models, model_id)
    return json_response(_MODEL.to_json(preset))
