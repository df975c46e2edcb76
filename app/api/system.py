"""Probes, metrics, explanations of problem types, and receipts; none of these is in the OpenAPI document."""

import asyncio
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import Annotated, Any

from fastapi import APIRouter, Body, HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import Field, ValidationError

from app.api.deps import Executor, StaleAfterDays
from app.api.metrics import catalog_values, render
from app.catalog.queries.params import PlainText
from app.catalog.queries.snapshot import Catalog
from app.errors import NotFound
from app.http.headers import HOLDER
from app.http.problems import (
    CONTRADICTION,
    DOMAIN_PROBLEMS,
    EXPLANATIONS,
    STATUS_PROBLEMS,
    ProblemType,
    status_problem,
    type_url,
)
from app.questions import answer, parse_question
from app.schemas.bodies import In

router = APIRouter(include_in_schema=False)

TEXT_FORMAT = "text/plain; version=0.0.4; charset=utf-8"
"""The media type of Prometheus' text format."""


@router.get("/metrics")
async def metrics(request: Request, executor: Executor, stale_after_days: StaleAfterDays) -> Response:
    """Return what all workers have counted, and the state of the catalog, for Prometheus."""
    catalog = await catalog_values(executor, stale_after_days)
    state = request.app.state

    def scrape() -> bytes:
        return render(
            state.observer.measure(), catalog, version=request.app.version, database=state.engine.dialect.name
        )

    # A page of text takes some milliseconds to write, which no other request should wait for.
    return Response(await asyncio.to_thread(scrape), media_type=TEXT_FORMAT)


@router.get("/healthz")
async def healthz() -> dict[str, str]:
    """Return 200 while the process runs; uses no thread and no database, so it does not queue behind requests."""
    return {"status": "ok"}


@router.get("/readyz")
async def readyz(executor: Executor, stale_after_days: StaleAfterDays) -> dict[str, Any]:
    """Return the revision of the catalog and the age of its prices, or 503 with what to do next if there is none.

    A stale catalog is ready: old prices are better than none.
    """
    revision, freshness, _, refreshes, replication = await executor.health()
    return {
        "status": "ready",
        "revision": revision["number"],
        "digest": revision["digest"],
        "stale": freshness.is_stale(stale_after_days),
        "stale_after_days": stale_after_days,
        "newest_prices_as_of": freshness.newest_prices_as_of,
        "prices_age_days": freshness.prices_age_days,
        "newest_exchange_rates_as_of": freshness.newest_exchange_rates_as_of,
        "exchange_rates_age_days": freshness.exchange_rates_age_days,
        "refreshes": {
            run.feed: {"ended_at": run.ended_at, "succeeded_at": run.succeeded_at, "failed": run.has_failed}
            for run in refreshes
        },
        "database_is_replica": replication.is_replica,
        "database_is_receiving": replication.is_receiving,
        "database_replay_age_seconds": replication.replay_age_seconds,
    }


@router.get("/problems")
async def problems(request: Request) -> dict[str, Any]:
    """List the problem types."""
    return {"items": [_describe_problem(request, problem_type) for problem_type in problem_types().values()]}


@router.get("/problems/{slug}")
async def problem(slug: str, request: Request) -> dict[str, Any]:
    """Explain a problem type: what it means, what to do, and a request that causes it."""
    types = problem_types()
    if slug not in types:
        raise NotFound("type of problem", slug, suggestions=tuple(get_close_matches(slug, types, 2)))
    return _describe_problem(request, types[slug])


def problem_types() -> dict[str, ProblemType]:
    """Return every problem type by its slug, ordered by status."""
    types = {*DOMAIN_PROBLEMS.values(), CONTRADICTION, *map(status_problem, STATUS_PROBLEMS)}
    return {kind[1]: kind for kind in sorted(types)}


def _describe_problem(request: Request, problem_type: ProblemType) -> dict[str, Any]:
    status, slug, title = problem_type
    described = {"type": type_url(request, slug), "title": title, "status": status}
    explanation = EXPLANATIONS.get(slug)
    if explanation is None:
        return described
    example = {"request": explanation.request, "detail": explanation.detail}
    return described | {"meaning": explanation.meaning, "remedy": explanation.remedy, "example": example}


@router.get("/sizes/{name}/observations")
async def observations(name: PlainText, request: Request, executor: Executor) -> Response:
    """Show what the holder of the API key observed of a size, as imported; without a key 401. No cache may keep it."""
    from app.services.observations import find_observations

    holder = request.scope.get(HOLDER)
    if holder is None:
        detail = "Observations are those of the holder of an API key, and this service has none: set VMSIZES_API_KEYS."
        raise HTTPException(401, detail, {"WWW-Authenticate": 'Bearer realm="vmsizes"'})
    found = await executor.ask(find_observations, name, holder, datetime.now(UTC))
    return Response(found.model_dump_json(), media_type="application/json", headers={"Cache-Control": "no-store"})


class QuestionIn(In):
    """A question: an endpoint, the name in its path, and its parameters or body."""

    endpoint: PlainText = Field(description="`GET /sizes`, `POST /fit` …")
    name: PlainText | None = Field(default=None, description="The size in the path.")
    params: dict[str, Any] = Field(default={}, description="The parameters of the query, or the body.")


@router.post("/receipts")
async def make_receipt(question: Annotated[QuestionIn, Body()], executor: Executor) -> dict[str, Any]:
    """Return the receipt of the answer to a question: what it rests on, for `vmsizes verify`."""
    try:
        return await executor.ask(_make_receipt, question)
    except ValidationError as error:
        located = [{**fault, "loc": ("body", "params", *fault["loc"])} for fault in error.errors()]
        raise RequestValidationError(located) from None


def _make_receipt(catalog: Catalog, question: QuestionIn) -> dict[str, Any]:
    from app.receipts import make_receipt

    asked = parse_question(question.model_dump())
    return make_receipt(catalog, [(asked, answer(catalog, *asked))])
