"""What endpoints need, as named types: a session to read with, today's date, and a query that is taken strictly."""

from collections import Counter
from collections.abc import Iterator
from datetime import date
from difflib import get_close_matches
from typing import Annotated, Any

from fastapi import Depends, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import BaseModel
from sqlmodel import Session

from app.db import reading


def _session(request: Request) -> Iterator[Session]:
    with reading(request.app.state.engine) as session:
        yield session


def _today(request: Request) -> date:
    today: date = request.app.state.today()
    return today


ReadSession = Annotated[Session, Depends(_session)]
Today = Annotated[date, Depends(_today)]


def strict_query(request: Request) -> None:
    """Refuse a parameter that the endpoint does not have, naming the nearest, and a second value of a single one."""
    allowed = _parameters(request.scope["route"])
    given = Counter(name for name, _ in request.query_params.multi_items())
    errors = [_unknown(name, request.query_params[name], allowed) for name in given if name not in allowed]
    errors += [_repeated(name, times) for name, times in given.items() if times > 1 and not allowed.get(name, True)]
    if errors:
        raise RequestValidationError(errors)


def _parameters(route: APIRoute) -> dict[str, bool]:
    """The query parameters of an endpoint, and whether each takes several values."""
    models = [field.field_info.annotation for field in route.dependant.query_params]
    return {
        name: isinstance(field.default, tuple)
        for model in models
        if isinstance(model, type) and issubclass(model, BaseModel)
        for name, field in model.model_fields.items()
    }


def _unknown(name: str, value: str, allowed: dict[str, bool]) -> dict[str, Any]:
    near = get_close_matches(name, allowed, 1)
    hint = f"did you mean {near[0]}?" if near else f"allowed are {', '.join(allowed) or 'none'}"
    said = f"there is no such parameter; {hint}"
    return {"type": "unknown_parameter", "loc": ("query", name), "input": value, "msg": said}


def _repeated(name: str, times: int) -> dict[str, Any]:
    return {"type": "repeated", "loc": ("query", name), "msg": f"takes one value, and {times} were given"}
