"""Canonical requests: every spelling of a request is parsed to one form, which is the cache key.

The same parsing rejects unknown and repeated parameters and keys, whether or not a response is cached.
"""

import json
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache, partial
from itertools import islice
from types import UnionType
from typing import Any, NamedTuple, TypeVar, get_args
from urllib.parse import parse_qsl, quote, quote_plus

import orjson
from fastapi import APIRouter
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, StreamingResponse
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError

from app.catalog.queries.params import BOTH_SPELLINGS, multi_valued_fields, other_spellings
from app.http.cache import digest
from app.http.headers import SECRETS
from app.late_models import LateModel
from app.nearest import did_you_mean, nearest, only_bound
from app.validation import MAX_ERRORS, check_encodable

PARSED = "vmsizes.parsed"
"""The key in the scope of a request whose parameters and body `canonicalize` has checked already."""

Model = TypeVar("Model", bound=BaseModel)
FastPath = Callable[[Any], Awaitable[str]]
"""Renders JSON text for an endpoint's params without FastAPI; if it raises, the app runs and reports the error."""


class RawRequest(NamedTuple):
    """A request as received; `method` is GET or POST."""

    method: str
    path: str
    query: bytes
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class CacheableEndpoint:
    """An endpoint whose responses depend on the request and the catalog alone.

    `model` returns what holds its query (GET) or its body (POST): that of a page is loaded then. A response that
    `streams` is as long as the catalog and never cached; a file has the same bytes each time, so clients may request
    ranges. One that `is_private` has figures of whoever asks, and is stored nowhere. `columns` returns the fields of a
    list item.
    A page for browsers has a `page_version`, which changes with its templates and assets: its response is HTML, and a
    query that is not written as `clean_query` writes it is left to the app, which redirects.
    """

    method: str
    path: str
    pattern: re.Pattern[str]
    model: Callable[[], type[BaseModel] | None]
    columns: Callable[[], tuple[str, ...]] = tuple
    streams: bool = False
    is_file: bool = False
    is_private: bool = False
    fast_path: FastPath | None = None
    page_version: str = ""


@dataclass(frozen=True)
class CanonicalRequest:
    """What a request means: the validated model, and its JSON without defaults.

    `canonical_path` is lowercase where the path has a parameter, since names of sizes match in any case.
    """

    canonical_path: str
    request: RawRequest
    endpoint: CacheableEndpoint
    params: BaseModel | None
    params_json: str = "{}"

    @cached_property
    def key(self) -> bytes:
        """The cache key, equal for equal requests."""
        version = self.endpoint.page_version
        return digest(f"{self.endpoint.method} {self.canonical_path}?{self.params_json}{version}".encode())


PRIVATE_PATHS = frozenset({"/preflight"})
"""Endpoints that are sent the figures of a subscription."""


def cacheable_endpoints(routers: Iterable[APIRouter], fast_paths: Mapping[str, FastPath]) -> list[CacheableEndpoint]:
    """List the endpoints of the API; all of them are read-only, POST too, so their responses may be cached.

    `fast_paths` are by the name of the endpoint's function.
    """
    return [
        CacheableEndpoint(
            method=method,
            path=route.path,
            pattern=route.path_regex,
            model=cache(
                partial(model_of, route.dependant.query_params if method == "GET" else route.dependant.body_params)
            ),
            columns=partial(item_columns, route.response_model),
            streams=_responds_with(route, StreamingResponse | FileResponse),
            is_file=_responds_with(route, FileResponse),
            is_private=route.path in PRIVATE_PATHS,
            fast_path=fast_paths.get(route.name),
        )
        for router in routers
        for route in router.routes
        if isinstance(route, APIRoute)
        for method in route.methods or ()
    ]


def item_columns(model: Any) -> tuple[str, ...]:
    """Return the fields of an item if the model of an answer is a page of a list."""
    if isinstance(model, LateModel):
        model = model.load()
    if not (isinstance(model, type) and issubclass(model, BaseModel) and "next_cursor" in model.model_fields):
        return ()
    (item,) = get_args(model.model_fields["items"].annotation)
    return tuple(item.model_fields)


def _responds_with(route: APIRoute, classes: type | UnionType) -> bool:
    response = route.response_class
    return isinstance(response, type) and issubclass(response, classes)


def model_of(fields: Iterable[Any]) -> type[BaseModel] | None:
    """Return the model of an endpoint's query parameters, or of its body, by FastAPI's fields of them."""
    models = [field.field_info.annotation for field in fields]
    return next((model for model in models if isinstance(model, type) and issubclass(model, BaseModel)), None)


def canonicalize(request: RawRequest, endpoints: Iterable[CacheableEndpoint]) -> CanonicalRequest | None:
    """Return what a request means; None if no endpoint matches or it is invalid, which the app then reports."""
    for endpoint in endpoints:
        if endpoint.method == request.method and endpoint.pattern.match(request.path):
            break
    else:
        return None
    canonical_path = request.path.lower() if "{" in endpoint.path else request.path
    model = endpoint.model()
    if model is None:
        return None if request.query else CanonicalRequest(canonical_path, request, endpoint, None)
    try:
        if request.method == "GET":
            params = parse_query(request.query, model)
        else:
            reject_unknown_params(parse_qsl(request.query.decode("latin-1"), keep_blank_values=True), None)
            reject_duplicate_keys(request.body)
            params = model.model_validate_json(request.body)
    except (RequestValidationError, ValidationError):
        return None
    fields = getattr(params, "fields", ())
    columns = endpoint.columns() if fields else ()  # an endpoint that has none checks the fields itself
    if columns and not (len(set(fields)) == len(fields) and set(fields) <= set(columns)):
        return None
    if endpoint.page_version and not is_clean(request.query, params):
        return None
    return CanonicalRequest(canonical_path, request, endpoint, params, params.model_dump_json(exclude_defaults=True))


def clean_query(params: BaseModel) -> str:
    """Return the query string of a model: without defaults, each parameter once, the values of a list with commas."""
    values = orjson.loads(params.model_dump_json(exclude_defaults=True))
    return "&".join(f"{name}={quote(to_query_text(value), safe=_UNQUOTED)}" for name, value in values.items())


_UNQUOTED = "/:*,-._~"
"""What a query may have as it is, and reads better so (RFC 3986, section 3.4)."""


def is_clean(query: bytes, params: BaseModel) -> bool:
    """Check that a query has each parameter of its model that is no default once, and no other."""
    pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True)
    return len(pairs) == len(params.model_dump(exclude_defaults=True))


def parse_query(query: bytes, model: type[Model]) -> Model:
    """Parse a query string to a model; raises RequestValidationError."""
    return parse_pairs(parse_qsl(query.decode("latin-1"), keep_blank_values=True), model)


def parse_pairs(pairs: Collection[tuple[str, str]], model: type[Model]) -> Model:
    """Parse the parameters of a query to a model; raises RequestValidationError listing the first errors."""
    multi_valued = multi_valued_fields(model)
    values: dict[str, Any] = {}
    for name, value in pairs:
        if multi_valued.get(name):
            values.setdefault(name, []).append(value)
        else:
            values[name] = value
    names = multi_valued.keys() | other_spellings(model).keys()
    if len(values) < len(pairs) or not values.keys() <= names or any(_UNDECODABLE in value for _, value in pairs):
        reject_unknown_params(pairs, model)
    try:
        return model.model_validate(values)
    except ValidationError as error:
        raise RequestValidationError(
            [{**detail, "loc": ("query", *detail["loc"])} for detail in error.errors()]
        ) from None


def reject_unknown_params(pairs: Collection[tuple[str, str]], model: type[BaseModel] | None) -> None:
    """Raise RequestValidationError for unknown parameters, single values given twice, and values that are not UTF-8.

    A bound may be spelled in either of two ways; in both it is given twice. The nearest parameter is suggested for an
    unknown one. `model` has the parameters; None where there are none.
    """
    multi_valued = multi_valued_fields(model) if model is not None else {}
    spellings = other_spellings(model) if model is not None else {}
    counts = Counter(name for name, _ in pairs)
    values = dict(pairs)
    unknown = [name for name in counts if name not in multi_valued and name not in spellings]
    errors: list[dict[str, Any]] = []
    others = f"allowed are {', '.join(multi_valued)}" if multi_valued else "none is allowed here"
    for name in unknown[:MAX_ERRORS]:
        hint = (
            getattr(model, "elsewhere", {}).get(name)
            or did_you_mean(nearest(name, multi_valued), sent=name)
            or only_bound(name, multi_valued)
        )
        message = "; ".join(filter(None, (_NO_SUCH, hint or others)))
        value = None if SECRETS.fullmatch(f"{name}=") else values[name]
        errors.append({"type": "unknown_parameter", "loc": ("query", name), "input": value, "msg": message})
        if not hint and multi_valued:
            others = ""  # the first one lists what is allowed
    if len(unknown) > MAX_ERRORS:
        times = {"times": len(unknown) - MAX_ERRORS}
        errors.append({"type": "unknown_parameter", "loc": ("query", unknown[MAX_ERRORS]), "msg": "", "ctx": times})
    errors += [
        {"type": "repeated", "loc": ("query", name), "msg": f"takes one value, and {times} were given"}
        for name, times in counts.items()
        if times > 1 and not multi_valued.get(name, name not in spellings)
    ]
    errors += [
        {"type": "repeated", "loc": ("query", spelling), "msg": BOTH_SPELLINGS.format(spelling=spelling, name=name)}
        for spelling, name in spellings.items()
        if counts[spelling] and counts[name]
    ]
    wrong = dict.fromkeys(name for name, value in pairs if _UNDECODABLE in value and name not in unknown)
    errors += [
        {"type": "not_utf8", "loc": ("query", name), "msg": "its percent-escapes are not UTF-8"} for name in wrong
    ]
    if errors:
        raise RequestValidationError(errors)


_UNDECODABLE = "\N{REPLACEMENT CHARACTER}"
"""What stands in a value for bytes that are not UTF-8."""
_NO_SUCH = "there is no such parameter"


class _JsonObject(dict[str, Any]):
    """A JSON object that remembers which keys it had more than once."""

    repeated: tuple[str, ...] = ()


class JsonChecker:
    """Makes the objects of a JSON body, and notes a key that one of them has twice, and NaN, which JSON has not."""

    any_repeated = False
    constant: str | None = None

    def to_object(self, pairs: list[tuple[str, Any]]) -> _JsonObject:
        """Return an object; for `object_pairs_hook`."""
        value = _JsonObject(pairs)
        if len(value) < len(pairs):
            times = Counter(name for name, _ in pairs)
            value.repeated = tuple(name for name in value if times[name] > 1)
            self.any_repeated = True
        return value

    def to_number(self, constant: str) -> float:
        """Return what Python reads as NaN, Infinity or -Infinity; for `parse_constant`."""
        self.constant = constant
        return float(constant)

    def check(self, whole: Any, body: bytes) -> None:
        """Raise RequestValidationError if an object has a key twice, a text cannot be encoded, or a number is NaN."""
        if b"\\u" in body:  # as escapes alone can be half of a pair
            try:
                check_encodable(whole)
            except ValueError as error:
                raise RequestValidationError([{"type": "surrogate", "loc": ("body",), "msg": str(error)}]) from None
        if self.constant is not None:
            message = f"{self.constant} is not a JSON number"
            raise RequestValidationError([{"type": "json_invalid", "loc": ("body",), "msg": message}])
        if self.any_repeated:
            message = "the key is given more than once"
            locations = islice(_duplicate_locations(whole, ("body",)), MAX_ERRORS)
            raise RequestValidationError([{"type": "repeated", "loc": loc, "msg": message} for loc in locations])


def reject_duplicate_keys(body: bytes) -> None:
    """Parse a body and raise what JsonChecker does; invalid JSON is left to the model's validation."""
    checker = JsonChecker()
    try:
        whole = json.loads(body, object_pairs_hook=checker.to_object, parse_constant=checker.to_number)
    except (ValueError, RecursionError):
        return
    checker.check(whole, body)


def _duplicate_locations(value: Any, location: tuple[int | str, ...]) -> Iterator[tuple[int | str, ...]]:
    if isinstance(value, _JsonObject):
        yield from ((*location, name) for name in value.repeated)
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, child in children:
        yield from _duplicate_locations(child, (*location, step))


_NEXT_CURSOR_KEY = b'"next_cursor":"'
"""In JSON text this can only be the key: quotes inside strings are escaped."""


@lru_cache(maxsize=4)
def contract_link(public_url: str) -> bytes:
    """Return the link to the OpenAPI document: one object, which all stored responses without a next page share."""
    return f'<{public_url}/openapi.json>; rel="service-desc"'.encode()


def next_link(public_url: str, canonical: CanonicalRequest, cursor: str) -> bytes:
    """Return the link to the next page of a list, which begins at a cursor."""
    params = {**orjson.loads(canonical.params_json), "cursor": cursor}
    texts = ((name, to_query_text(value)) for name, value in params.items())
    # Most texts need no quoting, and telling that takes a tenth of the time.
    query = "&".join(f"{name}={text if _PLAIN.fullmatch(text) else quote_plus(text)}" for name, text in texts)
    return f'<{public_url}{quote(canonical.request.path)}?{query}>; rel="next"'.encode()


_PLAIN = re.compile("[A-Za-z0-9_.~-]*")


def next_cursor(body: bytes) -> str:
    """Return the cursor of the next page, which is near the end of the body; empty on the last page."""
    start = body.rfind(_NEXT_CURSOR_KEY) + len(_NEXT_CURSOR_KEY)
    return body[start : body.index(b'"', start)].decode() if start >= len(_NEXT_CURSOR_KEY) else ""


_MAX_PLAIN = 1e15
"""Whole numbers below this are written without an exponent."""


def to_query_text(value: object) -> str:
    """Return a value as a query writes it: `true`, `a,b`, `40` for 40.0."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.0f}" if value.is_integer() and abs(value) < _MAX_PLAIN else str(value)
    return ",".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
