"""Problem responses (RFC 9457): which error becomes which status, and what each type of problem means."""

import json
import logging
import re
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.routing import Match

from app.catalog.queries.params import as_given
from app.db.errors import DatabaseError
from app.errors import (
    BadCursor,
    BadQuery,
    BadWorkload,
    Busy,
    CursorGone,
    NotFound,
    NotReady,
    UnknownInBody,
    VmsizesError,
)
from app.http.headers import PUBLIC_URL, REQUEST_ID, HeadResponseComplete, allowed_methods
from app.http.observer import CLIENT_GONE, note_problem
from app.lifespan import CLOSED_WITH
from app.validation import MAX_ERRORS, display_value, explain, field_path, truncate

MEDIA_TYPE = "application/problem+json"
_log = logging.getLogger(__name__)

STATUS_PROBLEMS = {
    400: ("bad-request", "Bad request"),
    401: ("unauthorized", "API key needed"),
    403: ("foreign-origin", "Foreign host or origin"),
    404: ("not-found", "Not found"),
    405: ("method-not-allowed", "Method not allowed"),
    408: ("request-timeout", "Request not sent in time"),
    412: ("precondition-failed", "Precondition failed"),
    413: ("too-long", "Request body too long"),
    414: ("url-too-long", "URL too long"),
    415: ("not-json", "Unsupported media type"),
    416: ("range-not-satisfiable", "Range not satisfiable"),
    422: ("bad-parameter", "Invalid parameter"),
    429: ("too-many-requests", "Too many requests"),
    431: ("headers-too-long", "Request headers too long"),
    500: ("internal-error", "Internal server error"),
    501: ("not-implemented", "Not implemented"),
    503: ("not-ready", "Catalog not ready"),
    505: ("http-version", "HTTP version not supported"),
}
"""The type of problem for a status that no domain error explains."""

ProblemType = tuple[int, str, str]
CONTRADICTION: ProblemType = (422, "contradiction", "Contradictory or incomplete request")
UNKNOWN_VALUE: ProblemType = (422, "unknown-value", "Unknown value")
DOMAIN_PROBLEMS: dict[type[Exception], ProblemType] = {
    NotFound: (404, *STATUS_PROBLEMS[404]),
    BadCursor: (400, "bad-cursor", "Invalid cursor"),
    CursorGone: (410, "cursor-gone", "Catalog changed since the previous page"),
    BadQuery: UNKNOWN_VALUE,
    BadWorkload: CONTRADICTION,
    UnknownInBody: UNKNOWN_VALUE,
    NotReady: (503, *STATUS_PROBLEMS[503]),
    Busy: (503, "busy", "Too busy"),
}
"""The type of problem for each domain error."""

_RETRY = {503: {"Retry-After": "5"}}


class ProblemDetail(BaseModel):
    """One error of a request: where it is, and what is wrong."""

    pointer: str = Field(description="Where the value is: `/query/min_gpu_mem`, `/body/inference/dtype` (RFC 6901).")
    detail: str = Field(description="The value, and what is allowed.")


class Problem(BaseModel):
    """What went wrong, for people and programs (RFC 9457)."""

    type: str = Field(description="The URL that explains this type of problem: `/problems/bad-parameter`. Extensible.")
    title: str = Field(description="The type in words.")
    status: int = Field(description="The HTTP status code.")
    detail: str = Field(description="What is wrong with this request, and what to do.")
    instance: str = Field(description="The requested path, after that of the public URL.")
    request_id: str = Field(description="The id of the request, as in X-Request-ID; the service's log has it, too.")
    errors: list[ProblemDetail] = Field(description="Each error; empty if the problem has no single location.")


def problem_response(
    request: Request,
    problem_type: ProblemType,
    detail: str,
    errors: Iterable[dict[str, str]] = (),
    headers: Mapping[str, str] | None = None,
) -> JSONResponse:
    """Return a problem as a response; each of `errors` has `pointer` and `detail`."""
    status, slug, title = problem_type
    note_problem(request.scope, slug)
    body = {
        "type": type_url(request, slug),
        "title": title,
        "status": status,
        "detail": truncate(detail, _MAX_DETAIL_CHARS),
        "instance": truncate(urlsplit(request.scope.get(PUBLIC_URL, "")).path + _instance(request), _MAX_DETAIL_CHARS),
        "request_id": request.scope.get(REQUEST_ID, b"").decode(),
        "errors": [{name: truncate(text, _MAX_DETAIL_CHARS // 4) for name, text in error.items()} for error in errors],
    }
    return JSONResponse(body, status, headers=headers or _RETRY.get(status), media_type=MEDIA_TYPE)


def type_url(request: Request, slug: str) -> str:
    """Return the URL that explains a type of problem; absolute if the public URL is known."""
    return f"{request.scope.get(PUBLIC_URL, '')}/problems/{slug}"


_MAX_DETAIL_CHARS = 8_000
"""Details are cut to this many characters."""


def status_problem(status: int) -> ProblemType:
    """Return the type of problem for a status."""
    return (status, *STATUS_PROBLEMS.get(status, ("error", "Request failed")))


async def _handle_domain_error(request: Request, error: Exception) -> Response:
    if isinstance(error, CursorGone):
        request.app.state.watcher.expire()  # who starts again must not get the stored first page of before
    errors = []
    if isinstance(error, BadQuery):
        # A body has a cursor, too, and forms of pages are bodies; no parameter of a query is one of a POST.
        place = "body" if request.method == "POST" else "query"
        errors = [{"pointer": _to_pointer(place, error.field), "detail": str(error)}]
    if isinstance(error, BadWorkload):
        errors = [{"pointer": _to_pointer("body", error.field), "detail": str(error)}]
    return problem_response(
        request,
        DOMAIN_PROBLEMS.get(type(error), status_problem(500)),
        _shorten_lists(str(error)) if errors else str(error),
        errors,
    )


def _to_pointer(place: str, path: str) -> str:
    """Return the path of a field, `usage[0].text`, as a JSON pointer."""
    return f"/{place}/{path.replace('[', '/').replace(']', '').replace('.', '/')}"


def _as_spelled(error: dict[str, Any], request: Request) -> dict[str, Any]:
    """Return an error about a parameter as one about the other spelling of it, if that is what the request has."""
    place, *steps = error["loc"]
    given = request.query_params
    if place != "query" or not steps or steps[0] in given:
        return error
    spelled = as_given(steps[0], given)
    return {**error, "loc": (place, spelled), "input": given[spelled]} if spelled in given else error


def _shorten_lists(detail: str) -> str:
    """Drop a long list of allowed values from `detail`, since `errors` has it already."""
    return _LONG_LIST.sub("`errors` lists what is allowed", detail)


_LONG_LIST = re.compile(r"(?:allowed|there) are (?:[\w=.-]+, ){11,}[\w=.-]+(?: also with -)?")
"""A list of at least a dozen names."""


async def _handle_validation_error(request: Request, error: Exception) -> Response:
    raised = error.errors() if isinstance(error, RequestValidationError) else ()
    # A list is too short for pydantic, too, where an entry of it is wrong.
    wrong = [item for item in raised if item["type"] != "too_short" or len(item["input"]) < item["ctx"]["min_length"]]
    errors = [_to_detail(_as_spelled(item, request)) for item in wrong[:MAX_ERRORS]]
    details = [item["detail"] for item in errors]
    more = sum(item.get("ctx", {}).get("times", 1) for item in wrong[MAX_ERRORS:])
    if more:
        details.append(f"and {more:,} more errors, which are not listed")
    types = {item["type"] for item in wrong}
    problem_type = status_problem(400 if "json_invalid" in types else 422)
    if types == {"contradiction"}:
        problem_type = CONTRADICTION
    return problem_response(request, problem_type, _shorten_lists("; ".join(details)), errors)


async def _handle_http_exception(request: Request, error: Exception) -> Response:
    if isinstance(error.__cause__, Busy):  # raised while FastAPI read the body
        return await _handle_domain_error(request, error.__cause__)
    status, headers = getattr(error, "status_code", 500), dict(getattr(error, "headers", None) or {})
    detail = str(getattr(error, "detail", error))
    sent, errors = request.headers, list[dict[str, str]]()
    if status in _UNROUTED and request.method == "OPTIONS" and "origin" in sent and _PREFLIGHT in sent:
        return _preflight_response(request, sent[_PREFLIGHT])
    if status == 404:  # noqa: PLR2004
        path = request.url.path.rstrip("/")
        scope = {**request.scope, "path": path}
        is_path = path != request.url.path and any(
            route.matches(scope)[0] is Match.FULL for route in request.app.state.routes
        )
        hint = f"did you mean {quote(path, safe=_OF_PATHS)}? " if is_path else ""
        detail = f"There is no path {_instance(request)}; {hint}GET /docs lists all paths."
    elif status == 405:  # noqa: PLR2004
        allowed = headers["Allow"] = allowed_methods(request.app.state.routes, request.scope)
        if request.method == "OPTIONS":
            return Response(status_code=204, headers=headers)
        detail = f"{request.method} is not allowed for {_instance(request)}; allowed are {allowed}."
    elif isinstance(error.__cause__, UnicodeDecodeError | RecursionError):  # raised while FastAPI parsed the body
        errors = [_not_json(_UNREADABLE[type(error.__cause__)])]
        detail = errors[0]["detail"]
    elif isinstance(error.__cause__, ClientDisconnect):  # the client is gone: for the log and the metrics
        status = request.scope.get("state", {}).get(CLOSED_WITH)
        if status is None:
            return Response(status_code=CLIENT_GONE)
        detail = "The rest of the body did not arrive."
    return problem_response(request, status_problem(status), detail, errors, headers=headers)


_UNREADABLE = {UnicodeDecodeError: "it is not in UTF-8", RecursionError: "it is nested too deeply"}
_UNROUTED = {404, 405}
_PREFLIGHT = "access-control-request-method"


def _preflight_response(request: Request, wanted: str) -> Response:
    """Return the response to a CORS preflight: the path's methods, and every requested header.

    GET is allowed for a path that does not exist, so that the page can read the 404.
    """
    allowed = allowed_methods(request.app.state.routes, request.scope)
    headers = {
        "Access-Control-Allow-Origin": "*",
        "Access-Control-Allow-Methods": allowed,
        "Access-Control-Max-Age": "86400",
        "Vary": "Access-Control-Request-Method, Access-Control-Request-Headers",
    }
    if "access-control-request-headers" in request.headers:
        headers["Access-Control-Allow-Headers"] = request.headers["access-control-request-headers"]
    if wanted in allowed.split(", "):
        return Response(status_code=204, headers=headers)
    detail = f"A page of another origin cannot send {wanted} to {_instance(request)}; allowed are {allowed}."
    return problem_response(request, status_problem(400), detail, headers=headers)


async def _handle_database_error(request: Request, error: DatabaseError) -> Response:
    outage = request.app.state.watcher.explain_outage(error)
    if outage is None:
        _log.error("query failed for %s", _request_label(request), exc_info=error)
    return problem_response(
        request, status_problem(503), outage or "The database does not answer as it should; GET /readyz says why."
    )


async def _handle_crash(request: Request, error: Exception) -> Response:
    if not isinstance(error, HeadResponseComplete | ClientDisconnect):
        _log.error("request %s crashed", _request_label(request), exc_info=error)
    return problem_response(request, status_problem(500), CRASH_DETAIL)


CRASH_DETAIL = "This is a fault of the service; it has been logged."
HANDLERS: dict[int | type[Exception], Callable[[Request, Any], Coroutine[Any, Any, Response]]] = {
    VmsizesError: _handle_domain_error,
    RequestValidationError: _handle_validation_error,
    HTTPException: _handle_http_exception,
    DatabaseError: _handle_database_error,
    Exception: _handle_crash,
}
"""FastAPI exception handlers: every error of the app becomes a problem."""


def _request_label(request: Request) -> str:
    return f"{request.scope.get(REQUEST_ID, b'').decode()} ({request.method} {_instance(request)})"


def _instance(request: Request) -> str:
    """Return the requested path, percent-encoded (RFC 3986)."""
    return quote(request.scope.get("raw_path") or request.url.path, safe=_OF_PATHS)


_OF_PATHS = "/%:@!$&'()*+,;=~"


def _to_detail(error: dict[str, Any]) -> dict[str, str]:
    """Return an error of pydantic as field, value and what is allowed."""
    if error["type"] == "json_invalid":
        why = error.get("ctx", {}).get("error", error["msg"])
        return _not_json(f"{why} at character {error['loc'][-1]}" if len(error["loc"]) > 1 else why)
    loc = [step for step in error["loc"] if error["loc"][0] == "body" or isinstance(step, str)]
    at = error["ctx"].get("at", "") if error["type"] == "contradiction" and "ctx" in error else ""
    steps = [*loc, *filter(None, at.split("."))]
    pointer = "/" + "/".join(str(step).replace("~", "~0").replace("/", "~1") for step in steps)
    field = field_path(loc[1:]) or ('""' if loc[1:] == [""] else "")
    value = display_value(error.get("input")) if error["type"] != "missing" else None
    if value is not None and isinstance(error["input"], list) and error["type"].endswith("_type"):
        value = json.dumps(error["input"], ensure_ascii=False)  # that it is a list is what is wrong
    if field:
        detail = f"{field}{'' if value is None else f'={value}'}: {explain(error)}"
    else:
        detail = ("" if error["type"] == "contradiction" else "the body: ") + explain(error)
    return {"pointer": pointer, "detail": detail}


def _not_json(why: str) -> dict[str, str]:
    return {"pointer": "/body", "detail": f"the body is not valid JSON: {why}"}


class Explanation(NamedTuple):
    """What `GET /problems/{slug}` says; `request` is an example that is refused, `detail` what its response says."""

    meaning: str
    remedy: str
    request: str
    detail: str


EXPLANATIONS: Mapping[str, Explanation] = {
    "bad-request": Explanation(
        "The request cannot be read: its body is not valid JSON, its Range is malformed, its Host is missing or there "
        "twice, or a CORS preflight asks for a method that the path does not allow.",
        "Correct the request; `detail` names the character where JSON becomes invalid. Repeating it does not help.",
        'POST /fit {"model":',
        "the body is not valid JSON: Expecting value at character 9",
    ),
    "bad-cursor": Explanation(
        "The value of `cursor` was not returned by this service, or belongs to another list, filter or order.",
        "Send `next_cursor` unchanged, with the parameters of the page that returned it, or follow `link` rel=next.",
        "GET /sizes?cursor=abc",
        "cursor=abc: use next_cursor as it was returned, with the same filters and order",
    ),
    "unauthorized": Explanation(
        "Whoever runs the service has set API keys, and the request has none, a wrong one, or two that differ.",
        "Send your key as `Authorization: Bearer KEY` or `X-API-Key: KEY`; whoever runs the service gives you one.",
        "GET /sizes",
        "This service needs an API key: send `Authorization: Bearer KEY` or `X-API-Key: KEY`.",
    ),
    "too-many-requests": Explanation(
        "The holder of the key, or the address where no key is needed, sent more requests than are allowed.",
        "Retry after the seconds in the header `retry-after`; `ratelimit` of each response says how many are left.",
        "GET /sizes, for the 101st time",
        "You may send 100 requests in 60 s; Retry-After says when the next one is served.",
    ),
    "foreign-origin": Explanation(
        "The request to the tools for agents names another host, or comes from a page of another origin: a page that a "
        "browser shows could reach a service in the browser's network that way.",
        "Use the service's own URL. Where that has a name, whoever runs the service sets VMSIZES_PUBLIC_URL to it.",
        "POST /mcp, origin: https://pages.example",
        "Pages of https://pages.example may not use the tools for agents of this service.",
    ),
    "not-found": Explanation(
        "No size, series, model or type of problem has this name, or the path does not exist.",
        "Use one of the names that `detail` suggests; GET /docs lists all paths.",
        "GET /sizes/nd40rs_v3",
        "There is no size named 'nd40rs_v3'. Did you mean Standard_ND40rs_v2 or …?",
    ),
    "method-not-allowed": Explanation(
        "The path exists, but does not allow this method.",
        "Use one of the methods in the header `allow`.",
        "DELETE /sizes",
        "DELETE is not allowed for /sizes; allowed are GET, HEAD, OPTIONS.",
    ),
    "cursor-gone": Explanation(
        "An ingest changed the catalog after the page that returned the cursor: rows could repeat or be missed.",
        "Start the list again without `cursor`. Ingests are rare.",
        "GET /regions?limit=2&cursor=…",
        "The catalog has changed since this list was started (revision 3-0f8fad5b, now 4-9cb469fa): rows could repeat "
        "or be missing. Start again without cursor.",
    ),
    "precondition-failed": Explanation(
        "The file has changed since the version that If-Match names.",
        "Request the file again without If-Match; ranges of two versions do not fit together.",
        'GET /sizes.parquet, if-match: "0"',
        "The file is no longer the one that If-Match names; request it again without If-Match.",
    ),
    "too-long": Explanation(
        "The body is longer than any valid request.",
        "Send at most 1 MiB. POST /fit and /estimate, which may hold a config.json, take 8 MiB of 250,000 values.",
        "POST /retirements with 3 MiB",
        "The body has 3,145,728 bytes; at most 1,048,576 are allowed.",
    ),
    "url-too-long": Explanation(
        "The path and the query of the URL are too long.",
        "Send fewer values at once, or use POST /fit with a body.",
        "GET /sizes?name=…",
        "The URL has … bytes after the host; at most 8,192 are allowed.",
    ),
    "headers-too-long": Explanation(
        "The headers of the request have too many bytes together.",
        "Send fewer or shorter headers; the service reads no cookies.",
        "GET /sizes, accept-encoding: …",
        "The headers have too many bytes; at most 16,384 are allowed.",
    ),
    "not-json": Explanation(
        "The body is not JSON by its media type, or it is compressed.",
        "Send `content-type: application/json`, as the header `accept-post` says, and no `content-encoding`.",
        "POST /fit, content-type: text/plain",
        "Content-Type says text/plain; send application/json.",
    ),
    "range-not-satisfiable": Explanation(
        "The file ends before the range that Range requests.",
        "Request a range within the length in the header `content-range`.",
        "GET /sizes.parquet, range: bytes=99999999-",
        "The file ends before the requested range; Content-Range says how long it is.",
    ),
    "bad-parameter": Explanation(
        "A parameter, or a field of the body, is unknown, repeated, of another type, or out of bounds. The OpenAPI "
        "document says what is allowed.",
        "Correct what each entry of `errors` points to; it names the nearest parameter or what is allowed.",
        "GET /sizes?min_gpu_memory=80",
        "min_gpu_memory=80: there is no such parameter; did you mean min_gpu_mem?",
    ),
    "unknown-value": Explanation(
        "The parameter is well formed, but the catalog has no region, series, size or column of that name, or another "
        "parameter or the day does not allow the value.",
        "Use what `detail` suggests, or look a name up in GET /regions, /series, /gpus, /sizes.",
        "GET /sizes?region=westeurop",
        "region=westeurop: no such region; did you mean westeurope? …",
    ),
    "contradiction": Explanation(
        "Parts of the request contradict each other, or something required is missing.",
        "Change what each entry of `errors` points to; `detail` says what is missing or what excludes what.",
        "POST /fit {}",
        "give exactly one of resources, inference, serving and training; none is given",
    ),
    "internal-error": Explanation(
        "A fault of the service; no request should cause one.",
        "Report the `request_id` to whoever runs the service: the log has the cause beside it.",
        "GET /sizes",
        "This is a fault of the service; it has been logged.",
    ),
    "not-implemented": Explanation(
        "The body comes in a Transfer-Encoding that the service does not read.",
        "Send the body as it is, with Content-Length, or as chunked.",
        "POST /fit, transfer-encoding: gzip, chunked",
        "The only Transfer-Encoding that is read is chunked.",
    ),
    "http-version": Explanation(
        "The request line names a version of HTTP that the service does not speak.",
        "Send HTTP/1.1; a proxy in front of the service may speak others.",
        "GET /sizes HTTP/2.0",
        "HTTP/1.1 and HTTP/1.0 are supported.",
    ),
    "request-timeout": Explanation(
        "The rest of a request did not arrive in time: a client has 10 seconds for headers and 30 for a body, unless "
        "the service is set otherwise. The connection is closed.",
        "Send the request again, at once and whole.",
        "POST /fit with half of its body",
        "The rest of the request did not arrive in time.",
    ),
    "busy": Explanation(
        "The service is already doing as much of this as it can.",
        "Retry after the seconds in the header `retry-after`.",
        "GET /prices.csv",
        "16 exports are being written; try again in a moment.",
    ),
    "not-ready": Explanation(
        "The database cannot be reached, its schema is older than this version needs, or it has no catalog yet.",
        "`detail` says what to do; retry after the seconds in the header `retry-after`.",
        "GET /sizes",
        "The database cannot be reached: connection refused.",
    ),
}
