"""The dependencies of endpoints, as annotated types, and the check that every request passes first."""

from typing import Annotated, Any

from fastapi import Depends, Request, Response

from app.api.executor import QueryExecutor
from app.api.exports import ExportFileCache, ExportStreams
from app.catalog.queries.exports import select_columns
from app.http.canonical import PARSED, item_columns, model_of, reject_duplicate_keys, reject_unknown_params
from app.http.long_bodies import LongBodyRequest, require_json


def _of_state(name: str) -> Any:
    """Return the dependency that is what the state of the app has by a name."""

    async def get(request: Request) -> Any:
        return getattr(request.app.state, name)

    return Depends(get)


Executor = Annotated[QueryExecutor, _of_state("executor")]
"""Runs an endpoint's queries; endpoints open no session and start no thread of their own."""
Streams = Annotated[ExportStreams, _of_state("streams")]
Files = Annotated[ExportFileCache, _of_state("files")]
StaleAfterDays = Annotated[int, _of_state("stale_after_days")]
"""The age in days from which on prices and exchange rates are stale."""


def json_response(text: str) -> Response:
    """Return a response with a JSON body that is already serialized."""
    return Response(text, media_type="application/json")


async def validate_request(request: Request) -> None:
    """Reject unknown and repeated parameters, repeated keys of a body, and a body that is not JSON.

    FastAPI would ignore an unknown parameter and take the last of several values silently. What may be cached is
    checked already, when its key is made.
    """
    if PARSED in request.scope:
        return
    if request.method == "POST":
        require_json(request.headers.get("content-type", ""))
        if isinstance(request, LongBodyRequest):
            await request.check_keys()
        else:
            reject_duplicate_keys(await request.body())
    route = request.scope["route"]
    model = model_of(route.dependant.query_params)
    reject_unknown_params(request.query_params.multi_items(), model)
    if "fields" in request.query_params and (columns := item_columns(route.response_model)):
        names = (name.strip() for value in request.query_params.getlist("fields") for name in value.split(","))
        select_columns(dict.fromkeys(columns), [name for name in names if name], "field")
