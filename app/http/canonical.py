"""Which requests ask the same: a query brought to the one question it means, or every reason why it means none."""

import json
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import UnionType
from typing import Any, NamedTuple, TypeVar, get_args
from urllib.parse import parse_qsl, quote, quote_plus

import orjson
from fastapi import APIRouter
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, StreamingResponse
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError

from app.catalog.queries.params import multi_valued_fields
from app.http.cache import digest
from app.nearest import did_you_mean, nearest
from app.validation import MAX_ERRORS


class _JsonObject(dict[str, Any]):
    """An object of JSON that remembers which keys it was given more than once."""

    repeated: tuple[str, ...] = ()


def reject_duplicate_keys(body: bytes) -> None:
    """Raise RequestValidationError for keys that an object has twice; what cannot be read is left to others."""
    duplicated: list[_JsonObject] = []

    def to_object(pairs: list[tuple[str, Any]]) -> _JsonObject:
        made = _JsonObject(pairs)
        if len(made) < len(pairs):
            times = Counter(name for name, _ in pairs)
            made.repeated = tuple(name for name in made if times[name] > 1)
            duplicated.append(made)
        return made

    try:
        whole = json.loads(body, object_pairs_hook=to_object)
    except (ValueError, RecursionError):
        return
    if duplicated:
        said = "the key is given more than once"
        places = [place for place, _ in zip(_duplicate_locations(whole, ("body",)), range(MAX_ERRORS), strict=False)]
        raise RequestValidationError([{"type": "repeated", "loc": place, "msg": said} for place in places])


def _duplicate_locations(value: Any, here: tuple[int | str, ...]) -> Iterator[tuple[int | str, ...]]:
    if isinstance(value, _JsonObject):
        yield from ((*here, name) for name in value.repeated)
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, part in inner:
        yield from _duplicate_locations(part, (*here, step))


Model = TypeVar("Model", bound=BaseModel)
FastPath = Callable[[Any], Awaitable[str]]
"""Answers a question with JSON text, or raises what the app then says."""


class RawRequest(NamedTuple):
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
    first_segment: str
    pattern: re.Pattern[str]
    has_path_params: bool
    model: type[BaseModel] | None
    columns: tuple[str, ...] = ()
    streams: bool = False
    is_file: bool = False
    fast_path: FastPath | None = None


@dataclass(frozen=True, slots=True)
class CanonicalRequest:
    """What a request means: the endpoint's model, filled, and `says`, which is that as JSON without its defaults.

    `where` is the path, or all spellings of it as one.
    """

    canonical_path: str
    path: str
    endpoint: Endpoint
    params: BaseModel | None
    params_json: str = "{}"

    @property
    def key(self) -> bytes:
        """The cache key, equal for equal requests."""
        return digest(f"{self.canonical_path}?{self.params_json}".encode())


def cacheable_endpoints(routers: Iterable[APIRouter], fast_paths: Mapping[str, FastPath]) -> list[Endpoint]:
    """List the endpoints of the contract: none of them changes anything, so all their answers may be kept.

    `quick` names those of them that are answered without the framework, and how.
    """
    return [
        Endpoint(
            method=method,
            first_segment=first_path_segment(route.path),
            pattern=route.path_regex,
            has_path_params="{" in route.path,
            model=query_model(route) if method == "GET" else body_model(route),
            columns=item_columns(route),
            streams=_responds_with(route, StreamingResponse | FileResponse),
            is_file=_responds_with(route, FileResponse),
            fast_path=fast_paths.get(route.name),
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


def first_path_segment(path: str) -> str:
    """The first part of a path, by which it is known whether it is one of the contract."""
    return path[1:].partition("/")[0]


def _responds_with(route: APIRoute, kinds: type | UnionType) -> bool:
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


def canonicalize(request: RawRequest, endpoints: Iterable[Endpoint]) -> CanonicalRequest | None:
    """The question that a request means.

    None where it is no question of the contract, or a wrong one: the app says what is wrong with it.
    """
    for endpoint in endpoints:
        if endpoint.method == request.method and endpoint.pattern.match(request.path):
            canonical_path = request.path.lower() if endpoint.has_path_params else request.path
            if endpoint.model is None:
                return None if request.query else CanonicalRequest(canonical_path, request.path, endpoint, None)
            try:
                params = _parse_request(request, endpoint.model)
            except (RequestValidationError, ValidationError):
                return None
            if not are_columns(getattr(params, "fields", ()), endpoint.columns):
                return None
            return CanonicalRequest(
                canonical_path, request.path, endpoint, params, params.model_dump_json(exclude_defaults=True)
            )
    return None


def are_columns(names: Sequence[str], columns: Sequence[str]) -> bool:
    """Whether the items of a list have all fields that are asked for; what is no list sees to that itself."""
    return not columns or (len(set(names)) == len(names) and set(names) <= set(columns))


def _parse_request(request: RawRequest, model: type[Model]) -> Model:
    if request.method == "GET":
        return parse_query(request.query, model)
    reject_unknown_params(parse_qsl(request.query.decode("latin-1"), keep_blank_values=True), {})
    reject_duplicate_keys(request.body)
    return model.model_validate_json(request.body)


def parse_query(query: bytes, model: type[Model]) -> Model:
    """Take a whole query as one model; raises RequestValidationError for all that is wrong with it."""
    pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True)
    multi_valued = multi_valued_fields(model)
    values: dict[str, Any] = {}
    for name, value in pairs:
        if multi_valued.get(name):
            values.setdefault(name, []).append(value)
        else:
            values[name] = value
    if len(values) < len(pairs) or not values.keys() <= multi_valued.keys():
        reject_unknown_params(pairs, multi_valued)
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise RequestValidationError([{**one, "loc": ("query", *one["loc"])} for one in error.errors()]) from None


def reject_unknown_params(pairs: Collection[tuple[str, str]], multi_valued: Mapping[str, bool]) -> None:
    """Refuse a parameter that is not there, naming the nearest, and a second value of one that takes one."""
    counts = Counter(name for name, _ in pairs)
    values = dict(pairs)
    unknown = [name for name in counts if name not in multi_valued]
    errors = [_unknown_param_error(name, values[name], multi_valued) for name in unknown[:MAX_ERRORS]]
    errors += [{"type": "unknown_parameter", "loc": ("query", name), "msg": ""} for name in unknown[MAX_ERRORS:]]
    errors += [
        _repeated_param_error(name, times)
        for name, times in counts.items()
        if times > 1 and not multi_valued.get(name, True)
    ]
    if errors:
        raise RequestValidationError(errors)


def _unknown_param_error(name: str, value: str, allowed: Mapping[str, bool]) -> dict[str, Any]:
    hint = did_you_mean(nearest(name, allowed)) or f"allowed are {', '.join(allowed) or 'none'}"
    said = f"there is no such parameter; {hint}"
    return {"type": "unknown_parameter", "loc": ("query", name), "input": value, "msg": said}


def _repeated_param_error(name: str, times: int) -> dict[str, Any]:
    return {"type": "repeated", "loc": ("query", name), "msg": f"takes one value, and {times} were given"}


_NEXT_CURSOR_KEY = b'"next_cursor":"'
"""In a text of JSON this is a key and nothing else: quotes inside of strings are escaped."""


def link_header(public_url: str, canonical: CanonicalRequest | None = None, body: bytes = b"") -> bytes:
    """The value of Link for an answer; `found` is the question that it answers."""
    contract = f'<{public_url}/openapi.json>; rel="service-desc"'
    cursor = next_cursor(body) if canonical is not None and canonical.endpoint.method == "GET" else ""
    if canonical is None or not cursor:
        return contract.encode()
    params = {**orjson.loads(canonical.params_json), "cursor": cursor}
    query = "&".join(f"{name}={quote_plus(_to_query_text(value))}" for name, value in params.items())
    return f'{contract}, <{public_url}{quote(canonical.path)}?{query}>; rel="next"'.encode()


def next_cursor(body: bytes) -> str:
    """The cursor that stands near the end of a page; empty on the last one."""
    start = body.rfind(_NEXT_CURSOR_KEY) + len(_NEXT_CURSOR_KEY)
    return body[start : body.index(b'"', start)].decode() if start >= len(_NEXT_CURSOR_KEY) else ""


def _to_query_text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)
