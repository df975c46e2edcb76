"""Questions to the catalog as values: an endpoint of the API with its parameters, and its answer as the API's JSON.

What answers questions without HTTP asks them here: the tools for agents, and the check of a receipt.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import orjson
from pydantic import BaseModel

from app.catalog.queries.facets import render_facets
from app.catalog.queries.language_models import get_model
from app.catalog.queries.params import CompareSearch, FacetSearch, FitSearch, QueryParams, SizeParams, SizeSearch
from app.catalog.queries.prices import PriceHistorySearch, PriceSearch, find_price_history, find_prices
from app.catalog.queries.provenance import FactSearch, find_facts
from app.catalog.queries.sizes import find_sizes, get_size, render_page
from app.catalog.queries.snapshot import Catalog
from app.converters.compare import to_comparison_out
from app.converters.fit_request import plan_fit
from app.converters.resource_fit import to_fit_out
from app.db.statements import run_plan
from app.errors import BadQuery
from app.nearest import did_you_mean, nearest
from app.schemas.catalog import ModelOut
from app.schemas.fit_request import FitIn
from app.schemas.sizes import FactPage, PriceHistoryPage, PricePage
from app.services.compare import compare
from app.services.resource_fit import plan_resource_fit

ModelT = TypeVar("ModelT", bound=BaseModel)


class NoParams(QueryParams):
    """A question without parameters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question: an endpoint of `ENDPOINTS`, the name in its path if it has one, and its parameters or body."""

    endpoint: str
    params: BaseModel
    name: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the question as JSON data; only what was given is in it."""
        dumped = orjson.dumps(self.params.model_dump(exclude_unset=True), default=float)  # amounts of money are numbers
        name = {"name": self.name} if self.name is not None else {}
        return {"endpoint": self.endpoint, **name, "params": orjson.loads(dumped)}


class _Endpoint(NamedTuple):
    params: type[BaseModel]
    render: Callable[[Catalog, Question], str | bytes]


def answer(catalog: Catalog, question: Question) -> dict[str, Any]:
    """Return the answer of the API as JSON data; raises what its query raises, such as NotFound."""
    found: dict[str, Any] = orjson.loads(ENDPOINTS[question.endpoint].render(catalog, question))
    return found


def parse_question(data: Mapping[str, Any]) -> Question:
    """Return a question from its JSON data; raises BadQuery for an endpoint or parameters that there are not.

    Raises pydantic's ValidationError for parameters of a wrong type.
    """
    endpoint = str(data.get("endpoint"))
    if endpoint not in ENDPOINTS:
        hint = did_you_mean(nearest(endpoint, ENDPOINTS), " ")
        raise BadQuery("endpoint", endpoint, f"{hint}allowed are {', '.join(ENDPOINTS)}")
    params = ENDPOINTS[endpoint].params.model_validate(data.get("params", {}))
    return Question(endpoint=endpoint, name=data.get("name"), params=params)


def _render_sizes(catalog: Catalog, question: Question) -> str:
    return render_page(run_plan(catalog.session, find_sizes(_params(question, SizeSearch), *catalog[1:])))


def _render_size(catalog: Catalog, question: Question) -> str:
    return get_size(catalog.session, question.name or "", _params(question, SizeParams), today=catalog.today)


def _render_facts(catalog: Catalog, question: Question) -> str:
    plan = find_facts(question.name or "", _params(question, FactSearch), catalog.snapshot)
    return FactPage.model_validate(run_plan(catalog.session, plan), from_attributes=True).model_dump_json(by_alias=True)


def _render_prices(catalog: Catalog, question: Question) -> str:
    plan = find_prices(question.name or "", _params(question, PriceSearch), *catalog[1:])
    return PricePage.model_validate(run_plan(catalog.session, plan)).model_dump_json(by_alias=True)


def _render_price_history(catalog: Catalog, question: Question) -> str:
    plan = find_price_history(question.name or "", _params(question, PriceHistorySearch), *catalog[1:])
    return PriceHistoryPage.model_validate(run_plan(catalog.session, plan)).model_dump_json(by_alias=True)


def _render_facets(catalog: Catalog, question: Question) -> str:
    from app.catalog.queries.facet_counts import find_facets

    return render_facets(run_plan(catalog.session, find_facets(_params(question, FacetSearch), *catalog[1:])))


def _render_comparison(catalog: Catalog, question: Question) -> str:
    comparison = run_plan(catalog.session, compare(_params(question, CompareSearch), *catalog[1:]))
    return to_comparison_out(comparison).model_dump_json(by_alias=True)


def _render_resource_fit(catalog: Catalog, question: Question) -> str:
    search = _params(question, FitSearch)
    plan = plan_resource_fit(search, *catalog[1:], rejected="rejected" in search.include)
    return to_fit_out(run_plan(catalog.session, plan)).model_dump_json(by_alias=True)


def _render_fit(catalog: Catalog, question: Question) -> str:
    plan = plan_fit(_params(question, FitIn), *catalog[1:])
    return run_plan(catalog.session, plan).model_dump_json(by_alias=True)


def _render_model(catalog: Catalog, question: Question) -> str:
    preset = get_model(catalog.snapshot.models, question.name or "")
    return ModelOut.model_validate(preset, from_attributes=True).model_dump_json(by_alias=True)


def _params(question: Question, model: type[ModelT]) -> ModelT:
    if not isinstance(question.params, model):
        raise TypeError(f"{question.endpoint} takes {model.__name__}")
    return question.params


ENDPOINTS: Mapping[str, _Endpoint] = {
    "GET /sizes": _Endpoint(SizeSearch, _render_sizes),
    "GET /sizes/{name}": _Endpoint(SizeParams, _render_size),
    "GET /sizes/{name}/facts": _Endpoint(FactSearch, _render_facts),
    "GET /sizes/{name}/prices": _Endpoint(PriceSearch, _render_prices),
    "GET /sizes/{name}/price-history": _Endpoint(PriceHistorySearch, _render_price_history),
    "GET /facets": _Endpoint(FacetSearch, _render_facets),
    "GET /compare": _Endpoint(CompareSearch, _render_comparison),
    "GET /fit": _Endpoint(FitSearch, _render_resource_fit),
    "POST /fit": _Endpoint(FitIn, _render_fit),
    "GET /models/{name}": _Endpoint(NoParams, _render_model),
}
"""The endpoints that can be asked, by method and path."""
