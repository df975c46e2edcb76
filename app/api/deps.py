"""What endpoints need, as named types: a session, the day, what is known of the catalog, a query taken strictly."""

from collections.abc import Iterator
from datetime import date
from typing import Annotated

from fastapi import Depends, HTTPException, Request, Response
from sqlmodel import Session

from app.api.door.questions import query_model, refuse_strangers
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
    """Refuse a parameter that the endpoint does not have, a second value of a single one, a body not of JSON."""
    if request.method == "POST" and not _is_json(request.headers.get("content-type", "")):
        given = request.headers.get("content-type", "nothing")
        wanted = "application/json"
        raise HTTPException(415, f"Content-Type says {given}; send {wanted}.", {"Accept-Post": wanted})
    model = query_model(request.scope["route"])
    refuse_strangers(request.query_params.multi_items(), takes_several(model) if model else {})


def _is_json(content_type: str) -> bool:
    kind = content_type.partition(";")[0].strip().lower()
    return kind == "application/json" or (kind.startswith("application/") and kind.endswith("+json"))
