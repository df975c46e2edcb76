"""Probes, and what the types of problems mean; none of it is part of the contract."""

from typing import Any

from fastapi import APIRouter
from sqlalchemy.exc import SQLAlchemyError

from app.api.deps import ReadSession
from app.api.door.problems import KINDS, TITLES, kind_of
from app.catalog.keep.revisions import latest_revision
from app.errors import NotFound, NotReady
from app.schema import newest, older_than_needed

router = APIRouter(include_in_schema=False)


@router.get("/healthz")
def healthz() -> dict[str, str]:
    """Say that the process answers."""
    return {"status": "ok"}


@router.get("/readyz")
def readyz(session: ReadSession) -> dict[str, Any]:
    """Say that the catalog is there, and which revision of it; 503 with what to do next otherwise."""
    try:
        older = older_than_needed(session)
        revision = latest_revision(session)
    except SQLAlchemyError as error:
        raise NotReady(
            "The database has no catalog tables; run `vmsizes migrate`, then `vmsizes ingest seeds`."
        ) from error
    if older:
        raise NotReady(
            f"The database has the schema {older}, and this program needs {newest()}; run `vmsizes migrate`."
        )
    if revision is None:
        raise NotReady("The catalog is empty; run `vmsizes ingest seeds`.")
    return {"status": "ready", "revision": revision["number"], "digest": revision["digest"]}


@router.get("/problems/{slug}")
def problems(slug: str) -> dict[str, Any]:
    """Say what the `type` of a problem means."""
    for status, known, title in (*KINDS.values(), *map(kind_of, TITLES)):
        if known == slug:
            return {"type": f"/problems/{slug}", "title": title, "status": status}
    raise NotFound("problem", slug)
