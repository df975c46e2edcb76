"""From errors to answers: RFC 9457 problems, and the one table that knows which error is which status."""

import logging
import re
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any, NamedTuple
from urllib.parse import quote

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, Field
from sqlalchemy.exc import DBAPIError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from app.errors import BadCursor, BadQuery, BadWorkload, Busy, CursorGone, NotFound, NotReady, VmsizesError
from app.http.headers import (
    PUBLIC_URL,
    REQUEST_ID,
    HeadResponseComplete,
    allowed_methods,
    is_preflight,
    preflight_headers,
)
from app.validation import MAX_ERRORS, display_value, explain, field_path

MEDIA_TYPE = "application/problem+json"
_log = logging.getLogger(__name__)

STATUS_PROBLEMS = {
    400: ("bad-request", "The request cannot be read"),
    404: ("not-found", "Nothing has this name"),
    405: ("method-not-allowed", "This method is not for this path"),
    412: ("precondition-failed", "The file is not the one that If-Match names"),
    413: ("too-long", "The body is too long"),
    414: ("url-too-long", "The URL is too long"),
    415: ("not-json", "The body is not of a type that is read"),
    416: ("range-not-satisfiable", "The file has no such part"),
    422: ("bad-parameter", "A parameter is not understood"),
    431: ("headers-too-long", "The headers are too long"),
    500: ("internal-error", "Something broke on our side"),
    503: ("not-ready", "The catalog is not ready"),
}
"""What a status means where no error of ours says more."""

ProblemType = tuple[int, str, str]
CONTRADICTION: ProblemType = (422, "contradiction", "The body contradicts itself, or says too little")
DOMAIN_PROBLEMS: dict[type[Exception], ProblemType] = {
    NotFound: (404, *STATUS_PROBLEMS[404]),
    BadCursor: (400, "bad-cursor", "This cursor is of another list"),
    CursorGone: (410, "cursor-gone", "The catalog has changed since the page before"),
    BadQuery: (422, "unknown-value", "The catalog has no such value"),
    BadWorkload: CONTRADICTION,
    NotReady: (503, *STATUS_PROBLEMS[503]),
    Busy: (503, "busy", "As much of this is being done as can be at once"),
}
"""What each error of the domain is. Only a `bad-parameter` is one that the OpenAPI document could have told of."""

_RETRY = {503: {"Retry-After": "5"}}


class ProblemDetail(BaseModel):
    """One thing that is wrong: where, and what."""

    pointer: str = Field(description="Where it stands: `/query/min_gpu_mem`, `/body/inference/dtype` (RFC 6901).")
    detail: str = Field(description="What it says and what is allowed.")


class Problem(BaseModel):
    """What went wrong, for people and programs (RFC 9457)."""

    type: str = Field(description="The URL that explains this kind of problem: `/problems/bad-parameter`. Extensible.")
    title: str = Field(description="The kind in words.")
    status: int = Field(description="The status of the answer.")
    detail: str = Field(description="What is wrong with this request, and what to do.")
    instance: str = Field(description="The path that was asked.")
    request_id: str = Field(description="The id of the request, as in X-Request-ID; the service's log has it, too.")
    errors: list[ProblemDetail] = Field(description="Each thing that is wrong; empty where it is no single thing.")


def problem_response(
    request: Request,
    problem_type: ProblemType,
    detail: str,
    errors: Iterable[dict[str, str]] = (),
    headers: Mapping[str, str] | None = None,
) -> JSONResponse:
    """Answer with a problem; `errors` are of the form {pointer, detail}."""
    status, slug, title = problem_type
    body = {
        "type": type_url(request, slug),
        "title": title,
        "status": status,
        "detail": _truncate(detail, _MAX_DETAIL_CHARS),
        "instance": _truncate(_instance(request), _MAX_DETAIL_CHARS),
        "request_id": request.scope.get(REQUEST_ID, b"").decode(),
        "errors": [{name: _truncate(text, _MAX_DETAIL_CHARS // 4) for name, text in error.items()} for error in errors],
    }
    return JSONResponse(body, status, headers=headers or _RETRY.get(status), media_type=MEDIA_TYPE)


def type_url(request: Request, slug: str) -> str:
    """The URL at which a type of problem is explained; with the public URL before it, where that is known."""
    return f"{request.scope.get(PUBLIC_URL, '')}/problems/{slug}"


_MAX_DETAIL_CHARS = 8_000
"""A detail has no more characters: it may repeat what was sent, which may be a megabyte."""


def _truncate(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}… ({len(text):,} characters)"


def status_problem(status: int) -> ProblemType:
    """What a status is where no more is known."""
    return (status, *STATUS_PROBLEMS.get(status, ("error", "The request cannot be answered")))


async def _handle_domain_error(request: Request, error: Exception) -> Response:
    errors = _to_details(error)
    return problem_response(
        request,
        DOMAIN_PROBLEMS.get(type(error), status_problem(500)),
        _shorten_lists(str(error)) if errors else str(error),
        errors,
    )


def _shorten_lists(detail: str) -> str:
    """Leave a long list of what is allowed to `errors`, where it stands already."""
    return _LONG_LIST.sub("`errors` lists what is allowed", detail)


_LONG_LIST = re.compile(r"(?:allowed|there) are (?:[\w=.-]+, ){11,}[\w=.-]+(?: also with -)?")
"""A list of a dozen names or more."""


async def _handle_validation_error(request: Request, error: Exception) -> Response:
    wrong = error.errors() if isinstance(error, RequestValidationError) else ()
    errors = [_to_detail(item) for item in wrong[:MAX_ERRORS]]
    told = [item["detail"] for item in errors]
    more = sum(item.get("ctx", {}).get("times", 1) for item in wrong[MAX_ERRORS:])
    if more:
        told.append(f"and {more:,} more errors, which are not listed")
    types = {item["type"] for item in wrong}
    kind = (
        status_problem(400)
        if "json_invalid" in types
        else CONTRADICTION
        if types == {"contradiction"}
        else status_problem(422)
    )
    return problem_response(request, kind, _shorten_lists("; ".join(told)), errors)


async def _handle_http_exception(request: Request, error: Exception) -> Response:
    status, headers = getattr(error, "status_code", 500), dict(getattr(error, "headers", None) or {})
    if status in {404, 405} and is_preflight(request.method, request.headers):
        return _preflight_response(request)
    if status == 405:  # noqa: PLR2004
        headers["Allow"] = allowed_methods(request.app.state.routes, request.scope)
        if request.method == "OPTIONS":
            return Response(status_code=204, headers=headers)
    detail = str(getattr(error, "detail", error))
    return problem_response(
        request,
        status_problem(status),
        _http_detail(request, status, detail, headers.get("Allow", "")),
        headers=headers,
    )


def _preflight_response(request: Request) -> Response:
    """Answer a browser that asks beforehand.

    A path that there is not may be asked by GET: the page can then read that it is not found.
    """
    allowed, asked = allowed_methods(request.app.state.routes, request.scope), request.headers
    wanted, headers = asked["access-control-request-method"], preflight_headers(asked, allowed)
    if wanted in allowed.split(", "):
        return Response(status_code=204, headers=headers)
    detail = f"A page of another origin cannot send {wanted} to {_instance(request)}; it takes {allowed}."
    return problem_response(request, status_problem(400), detail, headers=headers)


async def _handle_database_error(request: Request, error: DBAPIError) -> Response:
    trouble = request.app.state.watcher.explain_outage(error)
    if trouble is None:
        _log.error("the database did not answer %s", _request_label(request), exc_info=error)
    return problem_response(
        request, status_problem(503), trouble or "The database does not answer as it should; GET /readyz says why."
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
    DBAPIError: _handle_database_error,
    Exception: _handle_crash,
}
"""Every error of the app leaves as a problem."""


def _request_label(request: Request) -> str:
    return f"{request.scope.get(REQUEST_ID, b'').decode()} ({request.method} {_instance(request)})"


def _instance(request: Request) -> str:
    """The path as it was asked, every byte that is none of a URI's percent-encoded (RFC 3986)."""
    return quote(request.scope.get("raw_path") or request.url.path, safe="/%:@!$&'()*+,;=~")


def _http_detail(request: Request, status: int, detail: str, allowed: str) -> str:
    if status == 404:  # noqa: PLR2004
        return f"There is nothing at {_instance(request)}; GET /docs shows what there is."
    if status == 405:  # noqa: PLR2004
        return f"{request.method} is not for {_instance(request)}; it takes {allowed}."
    return detail


def _to_details(error: Exception) -> list[dict[str, str]]:
    """Where the thing stands that an error of the domain is about."""
    if isinstance(error, BadQuery):
        return [{"pointer": f"/query/{error.field}", "detail": str(error)}]
    if isinstance(error, BadWorkload):
        return [{"pointer": f"/body/{error.field.replace('.', '/')}", "detail": str(error)}]
    return []


def _to_detail(error: dict[str, Any]) -> dict[str, str]:
    """One error of pydantic in our words: the field, the value, what is allowed."""
    if error["type"] == "json_invalid":
        why = error.get("ctx", {}).get("error", error["msg"])
        return {"pointer": "/body", "detail": f"the body is not valid JSON: {why} at character {error['loc'][-1]}"}
    loc = [step for step in error["loc"] if error["loc"][0] == "body" or isinstance(step, str)]
    pointer = "/" + "/".join(str(step).replace("~", "~0").replace("/", "~1") for step in loc)
    field, given = field_path(loc[1:]), display_value(error.get("input")) if error["type"] != "missing" else None
    if not field:
        return {
            "pointer": pointer,
            "detail": ("" if error["type"] == "contradiction" else "the body: ") + explain(error),
        }
    return {"pointer": pointer, "detail": f"{field}{'' if given is None else f'={given}'}: {explain(error)}"}


class Explanation(NamedTuple):
    """A type of problem explained; `request` is one that is refused so, and `detail` what is then said."""

    meaning: str
    remedy: str
    request: str
    detail: str


EXPLANATIONS: Mapping[str, Explanation] = {
    "bad-request": Explanation(
        "The request cannot be read: its body is not valid JSON, its Range is none, or a browser asks beforehand for a "
        "method that the path does not have.",
        "Correct the request; `detail` says at which character JSON breaks off. Sending it again does not help.",
        'POST /fit {"model":',
        "the body is not valid JSON: Expecting value at character 9",
    ),
    "bad-cursor": Explanation(
        "The value of `cursor` is none that this service gave, or it belongs to another list, filter or order.",
        "Give `next_cursor` as it came, with the parameters of the page that it came with, or follow `link` rel=next.",
        "GET /sizes?cursor=abc",
        "cursor=abc: take next_cursor as it was given, with the same filters and order",
    ),
    "not-found": Explanation(
        "Nothing has this name: no size, series, model or type of problem, or no such path.",
        "Take one of the names that `detail` suggests; GET /docs shows all paths.",
        "GET /sizes/nd40rs_v3",
        "There is no size named 'nd40rs_v3'. Did you mean Standard_ND40rs_v2 or …?",
    ),
    "method-not-allowed": Explanation(
        "The path is there and does not take this method.",
        "Use one of the methods that the header `allow` names.",
        "DELETE /sizes",
        "DELETE is not for /sizes; it takes GET, HEAD, OPTIONS.",
    ),
    "cursor-gone": Explanation(
        "An ingest has changed the catalog since the page that gave the cursor, so a row might come twice or never.",
        "Begin the list again without `cursor`. Ingests are rare, and walks are short.",
        "GET /regions?limit=2&cursor=…",
        "The catalog has changed since this list was begun (revision 3-0f8fad5b, now 4-9cb469fa): a row might "
        "come twice or never. Begin again without cursor.",
    ),
    "precondition-failed": Explanation(
        "The file has changed, and If-Match asks for the one that was.",
        "Ask for the file anew without If-Match; parts of the old and of the new one do not fit together.",
        'GET /sizes.parquet, if-match: "0"',
        "The file is no longer the one that If-Match names; request it again without If-Match.",
    ),
    "too-long": Explanation(
        "The body is longer than any question can be.",
        "Send at most 1 MiB.",
        "POST /fit with 3 MiB",
        "The body has 3,145,728 bytes; at most 1,048,576 are taken.",
    ),
    "url-too-long": Explanation(
        "The path and the query of the URL are longer than any question has to be.",
        "Ask for fewer values at once, or by POST /fit with a body.",
        "GET /sizes?name=…",
        "The URL has … bytes after the host; at most 8,192 are taken.",
    ),
    "headers-too-long": Explanation(
        "The headers of the request have more bytes together than any client needs.",
        "Send fewer or shorter ones; the service reads no cookies.",
        "GET /sizes, accept-encoding: …",
        "The headers have too many bytes; at most 16,384 are taken.",
    ),
    "not-json": Explanation(
        "The body is of another media type than JSON.",
        "Send `content-type: application/json`, as the header `accept-post` says.",
        "POST /fit, content-type: text/plain",
        "Content-Type says text/plain; send application/json.",
    ),
    "range-not-satisfiable": Explanation(
        "The file ends before the part that Range asks for.",
        "Ask for a part within the length that the header `content-range` names.",
        "GET /sizes.parquet, range: bytes=99999999-",
        "The file ends before the requested range; Content-Range says how long it is.",
    ),
    "bad-parameter": Explanation(
        "A parameter, or a field of the body, is unknown, given twice, of another type, or out of bounds. The OpenAPI "
        "document says what is allowed.",
        "Correct what each entry of `errors` points to; it names the nearest parameter or what is allowed.",
        "GET /sizes?min_gpu_memory=80",
        "min_gpu_memory=80: there is no such parameter; did you mean min_gpu_mem?",
    ),
    "unknown-value": Explanation(
        "The parameter is well formed, and the catalog has nothing of that name: no such region, series, size, column.",
        "Take the name that `detail` suggests, or look it up in GET /regions, /series, /gpus, /sizes.",
        "GET /sizes?region=westeurop",
        "region=westeurop: no such region; did you mean westeurope? …",
    ),
    "contradiction": Explanation(
        "The parts of the question contradict each other, or together say too little to be answered.",
        "Change what each entry of `errors` points to; `detail` says what is missing or what excludes what.",
        "POST /fit {}",
        "give exactly one of resources, inference and training; none is given",
    ),
    "internal-error": Explanation(
        "A fault of the service. Nothing that a client sends should give one.",
        "Tell who runs the service the `request_id`: the log has the cause beside it.",
        "GET /sizes",
        "This is a fault of the service; it has been logged.",
    ),
    "busy": Explanation(
        "As much of this is being done as can be done at once.",
        "Ask again after the seconds that the header `retry-after` names.",
        "GET /prices.csv",
        "16 exports are being written; try again in a minute.",
    ),
    "not-ready": Explanation(
        "The database cannot be reached, its schema is older than this program needs, or it has no catalog yet.",
        "The detail says what to do; ask again after the seconds that the header `retry-after` names.",
        "GET /sizes",
        "The database cannot be reached: connection refused.",
    ),
}
