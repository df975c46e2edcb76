"""The registry of questions: each endpoint that asks the catalog, its parameters, and its answer as JSON.

The routes of the API, the tools for agents and the check of a receipt ask here.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson
from pydantic import BaseModel
from sqlmodel import SQLModel

from app.catalog.models import Gpu, Region, Revision, Series
from app.catalog.queries.availability import AvailabilitySearch, find_availability
from app.catalog.queries.changes import ChangeSearch, find_changes
from app.catalog.queries.costs import CostSearch
from app.catalog.queries.disks import DiskSearch
from app.catalog.queries.facets import render_facets
from app.catalog.queries.language_models import get_model
from app.catalog.queries.pagination import Listing
from app.catalog.queries.params import (
    CompareSearch,
    FacetSearch,
    FitSearch,
    PageParams,
    QueryParams,
    SimilarSearch,
    SizeFilter,
    SizeParams,
    SizeSearch,
)
from app.catalog.queries.prices import (
    AllPricesSearch,
    PriceHistorySearch,
    PriceSearch,
    find_all_prices,
    find_price_history,
    find_prices,
    is_quick,
    render_prices,
)
from app.catalog.queries.provenance import (
    ConflictSearch,
    FactSearch,
    ModelSearch,
    RefusedPriceSearch,
    find_conflicts,
    find_facts,
    find_models,
    find_refused_prices,
    find_rows,
    find_sources,
    get_series,
)
from app.catalog.queries.retirements import RetirementSearch, find_retirements
from app.catalog.queries.sizes import find_size, find_sizes, render_page
from app.catalog.queries.snapshot import COMPUTING, SHORT, Catalog, computing, short, short_if
from app.errors import BadQuery
from app.late_models import LateModel
from app.nearest import did_you_mean, nearest
from app.schemas.fit_request import FitIn
from app.schemas.retirement_request import RetirementPlanIn


class NoParams(QueryParams):
    """A question without parameters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question: an endpoint of ENDPOINTS, the name in its path if it has one, and its parameters or body."""

    endpoint: str
    params: BaseModel
    name: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the question as JSON data; only what was given is in it."""
        dumped = orjson.dumps(self.params.model_dump(exclude_unset=True), default=float)  # amounts of money are numbers
        name = {"name": self.name} if self.name is not None else {}
        return {"endpoint": self.endpoint, **name, "params": orjson.loads(dumped)}


@dataclass(frozen=True, slots=True, eq=False)
class Endpoint:
    """The parameters or the body of an endpoint, the module and name of its answer's schema, and what finds it.

    `find` takes the catalog, the name in the path where there is one, and the parameters; it returns a value that has
    the attributes of the schema, or its JSON.
    """

    params: type[BaseModel]
    schema: str
    find: Callable[..., Any]
    has_receipt: bool = False

    def __post_init__(self) -> None:
        if self.find in SHORT:
            SHORT[self] = SHORT[self.find]
        if self.find in COMPUTING:
            computing(self)

    @property
    def model(self) -> LateModel:
        """Return the schema of the answer."""
        module, name = self.schema.split(".")
        return LateModel(f"app.schemas.{module}", name)

    def __call__(self, catalog: Catalog, *args: Any) -> str:
        """Return the answer as JSON; raises what its query raises, such as NotFound."""
        found = self.find(catalog, *args)
        if isinstance(found, str):
            return found
        return found.model_dump_json(by_alias=True) if isinstance(found, BaseModel) else self.model.to_json(found)


def answer(catalog: Catalog, question: Question) -> dict[str, Any]:
    """Return the answer of the API as JSON data; raises what its query raises, such as NotFound."""
    named = (question.name or "",) if "{name}" in question.endpoint else ()
    found: dict[str, Any] = orjson.loads(ENDPOINTS[question.endpoint](catalog, *named, question.params))
    return found


def parse_question(data: Mapping[str, Any]) -> Question:
    """Return the question of a receipt from its JSON data; raises BadQuery for an endpoint that has no receipts.

    Raises pydantic's ValidationError for parameters of a wrong type.
    """
    endpoint = str(data.get("endpoint"))
    allowed = [name for name, other in ENDPOINTS.items() if other.has_receipt]
    if endpoint not in allowed:
        hint = did_you_mean(nearest(endpoint, allowed), " ")
        raise BadQuery("endpoint", endpoint, f"{hint}allowed are {', '.join(allowed)}")
    params = ENDPOINTS[endpoint].params.model_validate(data.get("params", {}))
    return Question(endpoint=endpoint, name=data.get("name"), params=params)


@short_if(lambda search: not search.names_a_day)
def _list_sizes(catalog: Catalog, search: SizeSearch) -> str:
    return render_page(find_sizes(catalog, search))


@short_if(is_quick)
def _list_prices(catalog: Catalog, search: AllPricesSearch) -> str:
    return render_prices(find_all_prices(catalog, search))


def _list_facets(catalog: Catalog, search: FacetSearch) -> str:
    from app.catalog.queries.facet_counts import find_facets

    return render_facets(find_facets(catalog, search))


def _show_coverage(catalog: Catalog, search: SizeFilter) -> BaseModel:
    from app.catalog.queries.coverage import find_coverage
    from app.schemas.catalog import CoverageOut

    return CoverageOut.model_validate(find_coverage(catalog, search))


def _list_similar_sizes(catalog: Catalog, name: str, search: SimilarSearch) -> BaseModel:
    from app.services.similar import find_similar

    return find_similar(catalog, name, search)


def _compare_sizes(catalog: Catalog, search: CompareSearch) -> BaseModel:
    from app.services.compare import compare

    return compare(catalog, search)


@short
def _show_cost(catalog: Catalog, name: str, search: CostSearch) -> BaseModel:
    from app.services.costs import compute_costs

    return compute_costs(catalog, name, search)


@short
def _list_disks(catalog: Catalog, search: DiskSearch) -> BaseModel:
    from app.services.disks import find_disks

    return find_disks(catalog, search)


@computing
def _fit_resources(catalog: Catalog, search: FitSearch) -> BaseModel:
    from app.converters.resource_fit import to_fit_out
    from app.services.resource_fit import plan_resource_fit

    return to_fit_out(plan_resource_fit(catalog, search, rejected="rejected" in search.include))


@computing
def _fit_workload(catalog: Catalog, body: FitIn) -> BaseModel:
    from app.converters.fit_request import plan_fit

    return plan_fit(catalog, body)


@computing
def _plan_retirements(catalog: Catalog, body: RetirementPlanIn) -> BaseModel:
    from app.converters.retirements import plan_body

    return plan_body(catalog, body)


@short
def _show_model(catalog: Catalog, name: str, _params: BaseModel) -> Any:
    return get_model(catalog.snapshot.models, name)


@short
def _show_series(catalog: Catalog, name: str, _params: BaseModel) -> Any:
    return get_series(catalog, name)


def _rows_of(model: type[SQLModel], *, newest_first: bool = False) -> Callable[[Catalog, PageParams], Listing]:
    return short(lambda catalog, page: find_rows(catalog, model, page, newest_first=newest_first))


ENDPOINTS: Mapping[str, Endpoint] = {
    "GET /sizes": Endpoint(SizeSearch, "sizes.SizePage", _list_sizes, has_receipt=True),
    "GET /sizes/{name}": Endpoint(SizeParams, "sizes.SizeDetailOut", find_size, has_receipt=True),
    "GET /sizes/{name}/facts": Endpoint(FactSearch, "sizes.FactPage", find_facts, has_receipt=True),
    "GET /sizes/{name}/prices": Endpoint(PriceSearch, "sizes.PricePage", find_prices, has_receipt=True),
    "GET /sizes/{name}/price-history": Endpoint(
        PriceHistorySearch, "sizes.PriceHistoryPage", find_price_history, has_receipt=True
    ),
    "GET /sizes/{name}/similar": Endpoint(SimilarSearch, "compare.SimilarPage", _list_similar_sizes),
    "GET /sizes/{name}/availability": Endpoint(AvailabilitySearch, "sizes.AvailabilityPage", find_availability),
    "GET /sizes/{name}/cost": Endpoint(CostSearch, "costs.CostOut", _show_cost),
    "GET /facets": Endpoint(FacetSearch, "sizes.FacetsOut", _list_facets, has_receipt=True),
    "GET /coverage": Endpoint(SizeFilter, "catalog.CoverageOut", _show_coverage),
    "GET /compare": Endpoint(CompareSearch, "compare.ComparisonOut", _compare_sizes, has_receipt=True),
    "GET /fit": Endpoint(FitSearch, "fit_response.FitOut", _fit_resources, has_receipt=True),
    "POST /fit": Endpoint(FitIn, "fit_response.FitAnswerOut", _fit_workload, has_receipt=True),
    "GET /models/{name}": Endpoint(NoParams, "catalog.ModelOut", _show_model, has_receipt=True),
    "GET /models": Endpoint(ModelSearch, "catalog.ModelPage", find_models),
    "GET /prices": Endpoint(AllPricesSearch, "sizes.SizePricePage", _list_prices),
    "GET /changes": Endpoint(ChangeSearch, "changes.ChangePage", find_changes),
    "GET /retirements": Endpoint(RetirementSearch, "retirements.RetirementPage", find_retirements),
    "POST /retirements": Endpoint(RetirementPlanIn, "retirements.RetirementPlanOut", _plan_retirements),
    "GET /conflicts": Endpoint(ConflictSearch, "sizes.ConflictPage", find_conflicts),
    "GET /refused-prices": Endpoint(RefusedPriceSearch, "sizes.RefusedPricePage", find_refused_prices),
    "GET /series": Endpoint(PageParams, "catalog.SeriesPage", _rows_of(Series)),
    "GET /series/{name}": Endpoint(NoParams, "catalog.SeriesDetailOut", _show_series),
    "GET /gpus": Endpoint(PageParams, "catalog.GpuPage", _rows_of(Gpu)),
    "GET /disks": Endpoint(DiskSearch, "costs.DiskPage", _list_disks),
    "GET /regions": Endpoint(PageParams, "catalog.RegionPage", _rows_of(Region)),
    "GET /sources": Endpoint(PageParams, "catalog.SourcePage", find_sources),
    "GET /revisions": Endpoint(PageParams, "catalog.RevisionPage", _rows_of(Revision, newest_first=True)),
}
"""The endpoints that can be asked, by method and path; those with receipts first, in the order of an error's text."""
