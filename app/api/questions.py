"""Which requests ask the same: a URL brought to the one question it means, so that equal questions share an answer."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import parse_qsl

from fastapi import APIRouter
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError


@dataclass(frozen=True, slots=True)
class Asked:
    """An endpoint that answers questions, and the model of its parameters where it has any."""

    pattern: re.Pattern[str]
    named: bool
    model: type[BaseModel] | None


def endpoints(routers: Iterable[APIRouter]) -> list[Asked]:
    """List the endpoints of the contract that answer GET: the ones whose answers may be kept."""
    return [
        Asked(pattern=route.path_regex, named="{" in route.path, model=query_model(route))
        for router in routers
        for route in router.routes
        if isinstance(route, APIRoute) and route.include_in_schema and "GET" in (route.methods or ())
    ]


def query_model(route: APIRoute) -> type[BaseModel] | None:
    """The one model that holds the query parameters of an endpoint."""
    models = [field.field_info.annotation for field in route.dependant.query_params]
    return next((model for model in models if isinstance(model, type) and issubclass(model, BaseModel)), None)


def question(path: str, query: bytes, known: list[Asked]) -> str | None:
    """The question that a URL means: parameters in one order and spelling, defaults and empty ones left out.

    None where it is no question of the contract, or a wrong one: the app says what is wrong with it.
    """
    for asked in known:
        if asked.pattern.match(path):
            where = path.lower() if asked.named else path
            parameters = _parameters(query, asked.model)
            return None if parameters is None else f"{where}?{parameters}"
    return None


def _parameters(query: bytes, model: type[BaseModel] | None) -> str | None:
    pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True)
    if model is None:
        return None if pairs else ""
    many = {name for name, field in model.model_fields.items() if isinstance(field.default, tuple)}
    if any(times > 1 and name not in many for name, times in Counter(name for name, _ in pairs).items()):
        return None
    given: dict[str, str | list[str]] = {name: [] for name, _ in pairs if name in many}
    for name, value in pairs:
        listed = given.get(name)
        if isinstance(listed, list):
            listed.append(value)
        else:
            given[name] = value
    try:
        return model.model_validate(given).model_dump_json(exclude_defaults=True)
    except ValidationError:
        return None
