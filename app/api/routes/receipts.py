"""The endpoint of receipts: what an answer rests on; not in the OpenAPI document, as a question may be of any kind."""

from typing import Annotated, Any

from fastapi import APIRouter, Body
from fastapi.exceptions import RequestValidationError
from pydantic import Field, ValidationError

from app.api.deps import Executor
from app.catalog.queries.params import PlainText
from app.catalog.queries.snapshot import Catalog
from app.converters.questions import answer, parse_question
from app.schemas.bodies import In

router = APIRouter(include_in_schema=False)


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
        located = [{**one, "loc": ("body", "params", *one["loc"])} for one in error.errors()]
        raise RequestValidationError(located) from None


def _make_receipt(catalog: Catalog, question: QuestionIn) -> dict[str, Any]:
    from app.converters.receipts import make_receipt

    asked = parse_question(question.model_dump())
    return make_receipt(catalog, [(asked, answer(catalog, asked))])
