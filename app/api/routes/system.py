"""Probes, and what the types of problems mean; none of it is part of the contract."""

from difflib import get_close_matches
from typing import Any

from fastapi import APIRouter, Request

from app.api.deps import Executor
from app.errors import NotFound
from app.http.problems import CONTRADICTION, EXPLANATIONS, KINDS, TITLES, Kind, kind_of, type_of

router = APIRouter(include_in_schema=False)


@router.get("/healthz")
async def healthz() -> dict[str, str]:
    """Say that the process answers: it waits for no thread and no database."""
    return {"status": "ok"}


@router.get("/readyz")
async def readyz(executor: Executor) -> dict[str, Any]:
    """Say that the catalog is there, and which revision of it; 503 with what to do next otherwise."""
    revision = await executor.revision()
    return {"status": "ready", "revision": revision["number"], "digest": revision["digest"]}


@router.get("/problems")
async def problems(request: Request) -> dict[str, Any]:
    """List the types of problems."""
    return {"items": [_told(request, kind) for kind in _kinds().values()]}


@router.get("/problems/{slug}")
async def problem(slug: str, request: Request) -> dict[str, Any]:
    """Explain a type of problem: what it means, what to do, and a request that is refused so."""
    kinds = _kinds()
    if slug not in kinds:
        raise NotFound("type of problem", slug, nearest=tuple(get_close_matches(slug, kinds, 2)))
    return _told(request, kinds[slug])


def _kinds() -> dict[str, Kind]:
    """Every kind of problem by its name, in the order of their statuses."""
    kinds = {*KINDS.values(), CONTRADICTION, *map(kind_of, TITLES)}
    return {kind[1]: kind for kind in sorted(kinds)}


def _told(request: Request, kind: Kind) -> dict[str, Any]:
    status, slug, title = kind
    told = {"type": type_of(request, slug), "title": title, "status": status}
    explained = EXPLANATIONS.get(slug)
    if explained is None:
        return told
    example = {"request": explained.request, "detail": explained.detail}
    return told | {"meaning": explained.meaning, "remedy": explained.remedy, "example": example}
