"""Endpoints for the language models that a workload can name (presets)."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Response

from app.api.deps import Executor, answer, model_of
from app.catalog.queries.params import PlainText
from app.catalog.queries.provenance import ModelSearch
from app.converters.questions import NoParams

router = APIRouter(prefix="/models", tags=["models"])

ModelName = Annotated[
    PlainText,
    Path(
        description="A model's id, name, alias or repository in any case: `meta-llama/Llama-3.1-70B`.",
        examples=["llama-3.1-70b"],
    ),
]


@router.get("", response_model=model_of("GET /models"))
async def list_models(search: Annotated[ModelSearch, Query()], executor: Executor) -> Response:
    """List the language models whose configuration is known."""
    return await answer(executor, "GET /models", search)


@router.get("/{model_id:path}", response_model=model_of("GET /models/{name}"))
async def show_model(model_id: ModelName, executor: Executor) -> Response:
    """Show one language model's configuration."""
    return await answer(executor, "GET /models/{name}", model_id, NoParams())
