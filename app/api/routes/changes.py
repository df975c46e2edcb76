"""Endpoints about what changed: the list of events, and the same as feeds.

The feeds are left out of the OpenAPI document: they are for feed readers, and generators that do not know their media
types fail (ADR 11).
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Query, Request, Response

from app.api.deps import Executor, answer, model_of
from app.api.executor import QueryExecutor
from app.catalog.queries.changes import ChangeFilter, ChangeSearch, find_revision_changes

if TYPE_CHECKING:
    from app.formats.feeds import Feed

router = APIRouter(tags=["changes"])


class AtomResponse(Response):
    """An Atom feed in UTF-8."""

    media_type = "application/atom+xml"


class JsonFeedResponse(Response):
    """A JSON Feed in UTF-8."""

    media_type = "application/feed+json"


@router.get("/changes", response_model=model_of("GET /changes"))
async def list_changes(search: Annotated[ChangeSearch, Query()], executor: Executor) -> Response:
    """List what ingests changed: prices, sizes, accepted values, disputes and retirements, the oldest first."""
    return await answer(executor, "GET /changes", search)


@router.get("/changes.atom", response_class=AtomResponse, include_in_schema=False)
async def export_changes_atom(
    search: Annotated[ChangeFilter, Query()], executor: Executor, request: Request
) -> Response:
    """Export changes as an Atom feed: an entry for each revision, the newest first."""
    from app.formats.feeds import write_atom

    return AtomResponse(await _write_feed(search, executor, request, write_atom))


@router.get("/changes.json", response_class=JsonFeedResponse, include_in_schema=False)
async def export_changes_json(
    search: Annotated[ChangeFilter, Query()], executor: Executor, request: Request
) -> Response:
    """Export changes as a JSON Feed: an item for each revision, the newest first."""
    from app.formats.feeds import write_json_feed

    return JsonFeedResponse(await _write_feed(search, executor, request, write_json_feed))


async def _write_feed(
    search: ChangeFilter, executor: QueryExecutor, request: Request, write: Callable[["Feed"], str]
) -> str:
    from app.converters.change_feed import to_feed

    newest = await executor.revision()
    revisions = await executor.ask(find_revision_changes, search)
    base = str(request.app.servers[0]["url"]).rstrip("/")
    return write(to_feed(revisions, search, path=request.url.path, base_url=base, updated_at=newest["created_at"]))
