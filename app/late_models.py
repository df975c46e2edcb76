"""Models of responses that are imported when they are first needed: a start needs none of them."""

from importlib import import_module
from typing import Any, NamedTuple

from pydantic import BaseModel


class LateModel(NamedTuple):
    """The model of a response, by its path: `app.schemas.sizes.SizePage`.

    It is what a route has as `response_model`. FastAPI takes it for no model, since it is false: the endpoint writes
    the response itself, and the OpenAPI document is built of routes that have the class (`app.api.openapi.build`).
    """

    path: str

    def __bool__(self) -> bool:
        """Return False: FastAPI shall build nothing of it."""
        return False

    def load(self) -> type[BaseModel]:
        """Return the class; its module is imported with the first call."""
        module, _, name = self.path.rpartition(".")
        model: type[BaseModel] = getattr(import_module(module), name)
        return model

    def to_json(self, result: Any) -> str:
        """Return the JSON of a value: an object with the attributes of the model, or a mapping of them."""
        return self.load().model_validate(result, from_attributes=True).model_dump_json(by_alias=True)
