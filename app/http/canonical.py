"""Which requests ask the same: a query brought to the one question it means, or every reason why it means none."""

import json
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import UnionType
from typing import Any, TypeVar, get_args
from urllib.parse import parse_qsl, quote, quote_plus

import orjson
from fastapi import APIRouter
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, StreamingResponse
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError

from app.catalog.queries.params import multi_valued_fields
from app.nearest import did_you_mean, nearest
from app.validation import MOST_ERRORS


class _Object(dict[str, Any]):
    """An object of JSON that remembers which keys it was given more than once."""

    repeated: tuple[str, ...] = ()


def refuse_repeated_keys(body: bytes) -> None:
    """Raise RequestValidationError for keys that an object has twice; what cannot be read is left to others."""
    found: list[_Object] = []

    def made(pairs: list[tuple[str, Any]]) -> _Object:
        made = _Object(pairs)
        if len(made) < len(pairs):
            times = Counter(name for name, _ in pairs)
            made.repeated = tuple(name for name in made if times[name] > 1)
            found.append(made)
        return made

    try:
        whole = json.loads(body, object_pairs_hook=made)
    except (ValueError, RecursionError):
        return
    if found:
        said = "the key is given more than once"
        places = [place for place, _ in zip(_places(whole, ("body",)), range(MOST_ERRORS), strict=False)]
        raise RequestValidationError([{"type": "repeated", "loc": place, "msg": said} for place in places])


def _places(value: Any, here: tuple[int | str, ...]) -> Iterator[tuple[int | str, ...]]:
    if isinstance(value, _Object):
        yield from ((*here, name) for name in value.repeated)
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, part in inner:
        yield from _places(part, (*here, step))


Model = TypeVar("Model", bound=BaseModel)
Quick = Callable[[Any], Awaitable[str]]
"""Answers a question with JSON text, or raises what the app then says."""


@dataclass(frozen=True, slots=True)
class Request:
    """What a request says: `GET` or `POST`, where, and the query or the body, bytes as they came."""

    method: str
    path: str
    query: bytes
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An endpoint that answers questions, and the model of its query, or of its body, where it has any.

    What `streams` is no page: it is as long as the catalog is large, and is never kept. What is a `file` is the same
    bytes whenever it is asked for, so that parts of it may be. The items of a list have `columns`.
    """

    method: str
    place: str
    pattern: re.Pattern[str]
    named: bool
    model: type[BaseModel] | None
    columns: tuple[str, ...] = ()
    streams: bool = False
    file: bool = False
    quick: Quick | None = None


@dataclass(frozen=True, slots=True)
class Question:
    """What a request means: the endpoint's model, filled, and `says`, which is that as JSON without its defaults.

    `where` is the path, or all spellings of it as one.
    """

    where: str
    path: str
    endpoint: Endpoint
    asked: BaseModel | None
    says: str = "{}"

    @property
    def text(self) -> str:
        """A text that is the same for equal questions."""
        return f"{self.where}?{self.says}"


def endpoints(routers: Iterable[APIRouter], quick: Mapping[str, Quick]) -> list[Endpoint]:
    """List the endpoints of the contract: none of them changes anything, so all their answers may be kept.

    `quick` names those of them that are answered without the framework, and how.
    """
    return [
        Endpoint(
            method=method,
            place=place_of(route.path),
            pattern=route.path_regex,
            named="{" in route.path,
            model=query_model(route) if method == "GET" else body_model(route),
            columns=item_columns(route),
            streams=_answers_with(route, StreamingResponse | FileResponse),
            file=_answers_with(route, FileResponse),
            quick=quick.get(route.name),
        )
        for router in routers
        for route in router.routes
        if isinstance(route, APIRoute)
        for method in route.methods or ()
    ]


def item_columns(route: APIRoute) -> tuple[str, ...]:
    """The fields of an item, where an endpoint answers with a page of a list."""
    shape = route.response_model
    if not (isinstance(shape, type) and issubclass(shape, BaseModel) and "next_cursor" in shape.model_fields):
        return ()
    (item,) = get_args(shape.model_fields["items"].annotation)
    return tuple(item.model_fields)


def place_of(path: str) -> str:
    """The first part of a path, by which it is known whether it is one of the contract."""
    return path[1:].partition("/")[0]


def _answers_with(route: APIRoute, kinds: type | UnionType) -> bool:
    kind = route.response_class
    return isinstance(kind, type) and issubclass(kind, kinds)


def query_model(route: APIRoute) -> type[BaseModel] | None:
    """The one model that holds the query parameters of an endpoint."""
    models = [field.field_info.annotation for field in route.dependant.query_params]
    return next((model for model in models if isinstance(model, type) and issubclass(model, BaseModel)), None)


def body_model(route: APIRoute) -> type[BaseModel] | None:
    """The one model that holds the body of an endpoint."""
    models = [field.field_info.annotation for field in route.dependant.body_params]
    return next((model for model in models if isinstance(model, type) and issubclass(model, BaseModel)), None)


def question(request: Request, known: Iterable[Endpoint]) -> Question | None:
    """The question that a request means.

    None where it is no question of the contract, or a wrong one: the app says what is wrong with it.
    """
    for endpoint in known:
        if endpoint.method == request.method and endpoint.pattern.match(request.path):
            where = request.path.lower() if endpoint.named else request.path
            if endpoint.model is None:
                return None if request.query else Question(where, request.path, endpoint, None)
            try:
                asked = _read(request, endpoint.model)
            except (RequestValidationError, ValidationError):
                return None
            if not are_fields(getattr(asked, "fields", ()), endpoint.columns):
                return None
            return Question(where, request.path, endpoint, asked, asked.model_dump_json(exclude_defaults=True))
    return None


def are_fields(names: Sequence[str], columns: Sequence[str]) -> bool:
    """Whether the items of a list have all fields that are asked for; what is no list sees to that itself."""
    return not columns or (len(set(names)) == len(names) and set(names) <= set(columns))


def _read(request: Request, model: type[Model]) -> Model:
    if request.method == "GET":
        return read_query(request.query, model)
    refuse_strangers(parse_qsl(request.query.decode("latin-1"), keep_blank_values=True), {})
    refuse_repeated_keys(request.body)
    return model.model_validate_json(request.body)


def read_query(query: bytes, model: type[Model]) -> Model:
    """Take a whole query as one model; raises RequestValidationError for all that is wrong with it."""
    pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True)
    takes = multi_valued_fields(model)
    given: dict[str, Any] = {}
    for name, value in pairs:
        if takes.get(name):
            given.setdefault(name, []).append(value)
        else:
            given[name] = value
    if len(given) < len(pairs) or not given.keys() <= takes.keys():
        refuse_strangers(pairs, takes)
    try:
        return model.model_validate(given)
    except ValidationError as error:
        raise RequestValidationError([{**one, "loc": ("query", *one["loc"])} for one in error.errors()]) from None


def refuse_strangers(pairs: Collection[tuple[str, str]], takes: Mapping[str, bool]) -> None:
    """Refuse a parameter that is not there, naming the nearest, and a second value of one that takes one."""
    given = Counter(name for name, _ in pairs)
    values = dict(pairs)
    strangers = [name for name in given if name not in takes]
    errors = [_unknown(name, values[name], takes) for name in strangers[:MOST_ERRORS]]
    errors += [{"type": "unknown_parameter", "loc": ("query", name), "msg": ""} for name in strangers[MOST_ERRORS:]]
    errors += [_repeated(name, times) for name, times in given.items() if times > 1 and not takes.get(name, True)]
    if errors:
        raise RequestValidationError(errors)


def _unknown(name: str, value: str, allowed: Mapping[str, bool]) -> dict[str, Any]:
    hint = did_you_mean(nearest(name, allowed)) or f"allowed are {', '.join(allowed) or 'none'}"
    said = f"there is no such parameter; {hint}"
    return {"type": "unknown_parameter", "loc": ("query", name), "input": value, "msg": said}


def _repeated(name: str, times: int) -> dict[str, Any]:
    return {"type": "repeated", "loc": ("query", name), "msg": f"takes one value, and {times} were given"}


_KEY = b'"next_cursor":"'
"""In a text of JSON this is a key and nothing else: quotes inside of strings are escaped."""


def link(public_url: str, found: Question | None = None, body: bytes = b"") -> bytes:
    """The value of Link for an answer; `found` is the question that it answers."""
    contract = f'<{public_url}/openapi.json>; rel="service-desc"'
    cursor = next_cursor(body) if found is not None and found.endpoint.method == "GET" else ""
    if found is None or not cursor:
        return contract.encode()
    asked = {**orjson.loads(found.says), "cursor": cursor}
    query = "&".join(f"{name}={quote_plus(_written(value))}" for name, value in asked.items())
    return f'{contract}, <{public_url}{quote(found.path)}?{query}>; rel="next"'.encode()


def next_cursor(body: bytes) -> str:
    """The cursor that stands near the end of a page; empty on the last one."""
    start = body.rfind(_KEY) + len(_KEY)
    return body[start : body.index(b'"', start)].decode() if start >= len(_KEY) else ""


def _written(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)
