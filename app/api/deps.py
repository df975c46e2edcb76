"""What endpoints need, as named types: a session, the day, what is known of the catalog, a query taken strictly."""

from collections.abc import Iterator
from datetime import date
from typing import Annotated

from fastapi import Depends, HTTPException, Request, Response
from sqlmodel import Session

from app.api.door.bodies import is_json
from app.api.door.questions import item_columns, query_model, refuse_strangers
from app.api.door.repeats import refuse_repeated_keys
from app.catalog.ask.exports import chosen
from app.catalog.ask.known import Known
from app.catalog.ask.search import takes_several
from app.db.engines import reading


def _session(request: Request) -> Iterator[Session]:
    with reading(request.app.state.engine) as session:
        yield session


def _today(request: Request) -> date:
    today: date = request.app.state.today()
    return today


async def _known(request: Request) -> Known:
    known: Known = await request.app.state.desk.known()
    return known


ReadSession = Annotated[Session, Depends(_session)]
Today = Annotated[date, Depends(_today)]
KnownCatalog = Annotated[Known, Depends(_known)]


def as_json(text: str) -> Response:
    """Answer with JSON text."""
    return Response(text, media_type="application/json")


async def strict(request: Request) -> None:
    """Refuse what the endpoint does not have or take twice: a parameter, a key of a body, a body not of JSON."""
    if request.method == "POST":
        given = request.headers.get("content-type", "nothing")
        wanted = "application/json"
        if not is_json(given):
            raise HTTPException(415, f"Content-Type says {given}; send {wanted}.", {"Accept-Post": wanted})
        refuse_repeated_keys(await request.body())
    route = request.scope["route"]
    model = query_model(route)
    refuse_strangers(request.query_params.multi_items(), takes_several(model) if model else {})
    columns = item_columns(route)
    if columns and "fields" in request.query_params:
        asked = (name.strip() for given in request.query_params.getlist("fields") for name in given.split(","))
        chosen(dict.fromkeys(columns), [name for name in asked if name])
