"""From errors to answers: RFC 9457 problems, and the one table that knows which error is which status."""

import logging
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from sqlalchemy.exc import OperationalError, ProgrammingError
from starlette.exceptions import HTTPException

from app.errors import BadQuestion, BadWorkload, Busy, NotFound, NotReady, VmsizesError

MEDIA_TYPE = "application/problem+json"
_log = logging.getLogger(__name__)

TITLES = {
    400: ("bad-request", "The request cannot be read"),
    404: ("not-found", "There is no such thing"),
    405: ("method-not-allowed", "This method is not for this path"),
    422: ("bad-parameter", "A parameter is not understood"),
    500: ("internal-error", "Something broke on our side"),
    503: ("not-ready", "The catalog is not ready"),
}

STATUS: dict[type[VmsizesError], int] = {NotFound: 404, BadQuestion: 422, BadWorkload: 422, NotReady: 503, Busy: 503}


class ProblemDetail(BaseModel):
    """One thing that is wrong: where, and what."""

    pointer: str = Field(description="Where it stands: `/query/min_gpu_mem`.")
    detail: str = Field(description="What it says and what is allowed.")


class Problem(BaseModel):
    """What went wrong, for people and programs (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    instance: str
    errors: list[ProblemDetail]


def problem(request: Request, status: int, detail: str, errors: Iterable[dict[str, str]] = ()) -> JSONResponse:
    """Answer with a problem; `errors` are of the form {pointer, detail}."""
    slug, title = TITLES.get(status, ("error", "The request cannot be answered"))
    body = {
        "type": f"/problems/{slug}",
        "title": title,
        "status": status,
        "detail": detail,
        "instance": quote(request.url.path, safe="/%"),
        "errors": list(errors),
    }
    return JSONResponse(body, status_code=status, media_type=MEDIA_TYPE)


def handle_problems(app: FastAPI) -> None:
    """Let every error of the app leave as a problem."""

    @app.exception_handler(VmsizesError)
    def _domain(request: Request, error: VmsizesError) -> JSONResponse:
        errors = []
        if isinstance(error, BadQuestion):
            errors = [{"pointer": f"/query/{error.field}", "detail": str(error)}]
        if isinstance(error, BadWorkload):
            errors = [{"pointer": f"/body/{error.field.replace('.', '/')}", "detail": str(error)}]
        return problem(request, STATUS.get(type(error), 500), str(error), errors)

    @app.exception_handler(RequestValidationError)
    def _invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        errors = [_detail(item) for item in error.errors()]
        return problem(request, 422, "; ".join(item["detail"] for item in errors), errors)

    @app.exception_handler(HTTPException)
    def _http(request: Request, error: HTTPException) -> JSONResponse:
        answer = problem(request, error.status_code, _spoken(request, error))
        answer.headers.update(error.headers or {})
        return answer

    @app.exception_handler(OperationalError)
    @app.exception_handler(ProgrammingError)
    def _database(request: Request, error: Exception) -> JSONResponse:
        _log.error("the database did not answer", exc_info=error)
        return problem(request, 503, "The database does not answer as it should; GET /readyz says why.")

    @app.exception_handler(Exception)
    def _crash(request: Request, error: Exception) -> JSONResponse:
        _log.error("a request crashed", exc_info=error)
        return problem(request, 500, "This is a fault of the service; it has been logged.")


def _spoken(request: Request, error: HTTPException) -> str:
    if error.status_code == 404:  # noqa: PLR2004
        return f"There is nothing at {request.url.path}; GET /docs shows what there is."
    return str(error.detail)


def _detail(error: dict[str, Any]) -> dict[str, str]:
    """One error of pydantic in our words: the field, the value, what is allowed."""
    place = [str(part) for part in error["loc"]]
    value = "" if isinstance(error.get("input"), dict | list | None) else f"={error.get('input')}"
    said = f"{'.'.join(place[1:])}{value}: {error['msg']}"
    return {"pointer": "/" + "/".join(place), "detail": said.removeprefix(": ")}
