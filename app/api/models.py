"""Language models: the presets that a workload can be named by."""

from typing import Annotated

from fastapi import APIRouter, Path, Query

from app.api.deps import ReadSession
from app.api.model_schemas import ModelOut, ModelPage
from app.catalog.ask.language_models import ModelSearch, find_models, get_model
from app.catalog.ask.paging import Listing
from app.catalog.ask.search import Text
from app.catalog.presets import Preset

router = APIRouter(prefix="/models", tags=["models"])

Name = Annotated[
    Text,
    Path(
        description="A model's id, name, alias or repository in any case: `meta-llama/Llama-3.1-70B`.",
        examples=["llama-3.1-70b"],
    ),
]


@router.get("", response_model=ModelPage)
def list_models(search: Annotated[ModelSearch, Query()], session: ReadSession) -> Listing:
    """List the language models whose configuration is known."""
    return find_models(session, search)


@router.get("/{model_id:path}", response_model=ModelOut)
def show_model(model_id: Name, session: ReadSession) -> Preset:
    """Show one language model's configuration."""
    return get_model(session, model_id)
