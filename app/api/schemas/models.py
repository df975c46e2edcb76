"""The wire of language models; what each figure is, is said where the configuration is described."""

from pydantic import ConfigDict, Field

from app.api.schemas.sizes import NextCursor, Out, Total
from app.catalog.presets import Preset


class ModelOut(Preset):
    """A language model's configuration: widths are numbers of values, contexts and windows are in tokens."""

    model_config = ConfigDict(from_attributes=True, json_schema_serialization_defaults_required=True)


class ModelPage(Out):
    """Language models."""

    items: list[ModelOut] = Field(description="The language models of this page.")
    next_cursor: NextCursor
    total: Total
