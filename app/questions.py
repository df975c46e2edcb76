"""The registry of questions: each endpoint that asks the catalog, its parameters, and what answers it.

The routes of the API, the command line, the pages, the tools for agents and receipts ask here. An endpoint is a
function marked `@question`: its name is that of the operation, and its docstring the operation's description.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import orjson
from pydantic import BaseModel

from app.catalog.queries.lookups import get_model
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
    other_spellings,
)
from app.catalog.queries.sizes import find_size, find_sizes, render_page
from app.catalog.queries.snapshot import COMPUTING, SHORT, Catalog, computing, short, short_if
from app.errors import BadQuery
from app.late_models import LateModel
from app.nearest import did_you_mean, nearest, only_bound

if TYPE_CHECKING:
    from app.catalog.queries import changes, costs, prices, provenance, retirements
    from app.schemas import fit_request, preflight_request, retirement_request

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])


class NoParams(QueryParams):
    """The parameters of an endpoint or page that has none."""


class Question(NamedTuple):
    """A question: an endpoint of ENDPOINTS, its parameters or body, and the name in its path if it has one."""

    endpoint: str
    params: BaseModel
    name: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the question as JSON data; only what was given is in it."""
        dumped = orjson.dumps(self.params.model_dump(exclude_unset=True), default=float)  # amounts of money are numbers
        name = {"name": self.name} if self.name is not None else {}
        return {"endpoint": self.endpoint, **name, "params": orjson.loads(dumped)}


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Endpoint:
    """An endpoint that asks the catalog.

    `find` takes the catalog, the name in the path where there is one, and the parameters or the body; it returns a
    value that has the attributes of the schema, or the JSON of one. `path` is that of the route, `summary` is given
    where the name of `find` is none.
    """

    takes: type[BaseModel] | LateModel
    model: LateModel
    find: Callable[..., Any]
    tag: str
    path: str
    summary: str | None = None
    has_receipt: bool = False

    @property
    def params(self) -> type[BaseModel]:
        """Return the model of the parameters or the body."""
        return self.takes.load() if isinstance(self.takes, LateModel) else self.takes

    def __call__(self, catalog: Catalog, *args: Any) -> str:
        """Return the answer as JSON; raises what its query raises, such as NotFound."""
        result = self.find(catalog, *args)
        if isinstance(result, str):
            return result
        return result.model_dump_json(by_alias=True) if isinstance(result, BaseModel) else self.model.to_json(result)


ENDPOINTS: dict[str, Endpoint] = {}
"""The endpoints that can be asked, by method and path, in the order of the OpenAPI document."""


def ask(catalog: Catalog, endpoint: str, params: BaseModel, name: str | None = None) -> Any:
    """Return the answer of an endpoint as an object of its schema; raises what its query raises, such as NotFound."""
    asked = ENDPOINTS[endpoint]
    result = asked.find(catalog, *((name,) if "{" in endpoint else ()), params)
    if isinstance(result, str):
        return asked.model.load().model_validate_json(result)
    return asked.model.load().model_validate(result, from_attributes=True)


def answer(catalog: Catalog, endpoint: str, params: BaseModel, name: str | None = None) -> dict[str, Any]:
    """Return the answer of an endpoint as JSON data, as the API gives it; raises what its query raises."""
    result: dict[str, Any] = orjson.loads(ENDPOINTS[endpoint](catalog, *((name,) if "{" in endpoint else ()), params))
    return result


@dataclass(frozen=True, slots=True)
class Inquiry:
    """Asks the catalog, and remembers each question with its answer: what a reply or a receipt rests on."""

    catalog: Catalog
    asked: list[tuple[Question, Mapping[str, Any]]] = field(default_factory=list)

    def ask(self, endpoint: str, params: BaseModel, name: str | None = None) -> Any:
        """Return the answer to a question as JSON data."""
        asked = Question(endpoint, params, name)
        result = answer(self.catalog, *asked)
        self.asked.append((asked, result))
        return result


def parse_question(data: Mapping[str, Any]) -> Question:
    """Return the question of a receipt from its JSON data; raises BadQuery for an endpoint that has no receipts.

    Raises pydantic's ValidationError for parameters of a wrong type.
    """
    endpoint = str(data.get("endpoint"))
    allowed = [name for name, other in ENDPOINTS.items() if other.has_receipt]
    if endpoint not in allowed:
        hint = did_you_mean(nearest(endpoint, allowed), " ")
        raise BadQuery("endpoint", endpoint, f"{hint}allowed are {', '.join(allowed)}")
    name, params, model = data.get("name"), data.get("params", {}), ENDPOINTS[endpoint].params
    if "{" in endpoint and not isinstance(name, str):
        raise BadQuery("name", name, "is required, a text")
    if "{" not in endpoint and name is not None:
        raise BadQuery("name", name, f"{endpoint} has no name in its path; leave it out")
    names = {*model.model_fields, *other_spellings(model)} if issubclass(model, QueryParams) else {*params}
    for unknown in params.keys() - names:
        hint = did_you_mean(nearest(unknown, names), sent=unknown) or only_bound(unknown, names)
        hint = hint or f"there are {', '.join(model.model_fields) or 'none'}"
        raise BadQuery(f"params.{unknown}", params[unknown], f"there is no such field; {hint}")
    given = {parameter: value for parameter, value in params.items() if value is not None}
    return Question(endpoint=endpoint, name=name, params=model.model_validate(given))


_TAGS = {
    **{name: name for name in ("sizes", "fit", "retirements", "preflight", "models", "changes")},
    **dict.fromkeys(("facets", "prices", "compare"), "sizes"),
}
"""The tag of an endpoint by the first part of its path."""


def question(
    endpoint: str,
    schema: str,
    *,
    path: str = "",
    summary: str | None = None,
    has_receipt: bool = False,
) -> Callable[[FunctionT], FunctionT]:
    """Register a function as what answers an endpoint; `schema` is the module in `app.schemas` and the class.

    The type of its last parameter is the model of the query or the body. It may be text, `prices.PriceSearch`, of a
    module in `app.catalog.queries` or, of a body, in `app.schemas`: a command that asks for sizes starts without the
    models of other questions.
    """
    method, _, own_path = endpoint.partition(" ")

    def register(find: FunctionT) -> FunctionT:
        *_, params = (kind for name, kind in find.__annotations__.items() if name != "return")
        package = "app.catalog.queries" if method == "GET" else "app.schemas"
        ENDPOINTS[endpoint] = added = Endpoint(
            takes=LateModel(f"{package}.{params}") if isinstance(params, str) else params,
            model=LateModel(f"app.schemas.{schema}"),
            find=find,
            tag=_TAGS.get(own_path.split("/")[1], "catalog"),
            path=path or own_path,
            summary=summary,
            has_receipt=has_receipt,
        )
        if find in SHORT:
            SHORT[added] = SHORT[find]
        if find in COMPUTING:
            computing(added)
        return find

    return register


@question("GET /sizes", "sizes.SizePage", has_receipt=True)
@short_if(lambda search: search.is_quick)
def list_sizes(catalog: Catalog, search: SizeSearch) -> str:
    """Find sizes, each with its price in the requested region, or in the cheapest one."""
    return render_page(find_sizes(catalog, search))


@question("GET /sizes/{name}", "sizes.SizeDetailOut", has_receipt=True)
@short_if(lambda _name, params: not params.names_a_day)
def show_size(catalog: Catalog, name: str, params: SizeParams) -> str:
    """Show one size, with its cheapest on-demand Linux price."""
    return find_size(catalog, name, params)


@question("GET /sizes/{name}/similar", "catalog.SimilarPage")
def list_similar_sizes(catalog: Catalog, name: str, search: SimilarSearch) -> BaseModel:
    """List the sizes that are most similar to one, each with the terms that make up its distance."""
    from app.services.compare import find_similar

    return find_similar(catalog, name, search)


@question("GET /sizes/{name}/facts", "sizes.FactPage", has_receipt=True)
@short
def list_size_facts(catalog: Catalog, name: str, search: "provenance.FactSearch") -> Listing:
    """List what each source says about a size, which values were accepted, and why."""
    from app.catalog.queries.provenance import find_facts

    return find_facts(catalog, name, search)


@question("GET /sizes/{name}/availability", "sizes.AvailabilityPage")
@short
def list_size_availability(catalog: Catalog, name: str, search: "provenance.AvailabilitySearch") -> Any:
    """List the regions and zones that have a size, whether or not a price is known there."""
    from app.catalog.queries.provenance import find_availability

    return find_availability(catalog, name, search)


@question("GET /sizes/{name}/prices", "sizes.PricePage", has_receipt=True)
def list_size_prices(catalog: Catalog, name: str, search: "prices.PriceSearch") -> Any:
    """List the prices of a size: those in force on a day, or the whole history."""
    from app.catalog.queries.prices import find_prices

    return find_prices(catalog, name, search)


@question("GET /sizes/{name}/cost", "catalog.CostOut")
@short
def show_size_cost(catalog: Catalog, name: str, search: "costs.CostSearch") -> BaseModel:
    """Show what VMs of a size cost with their disks: an hour, a month, a year, and by vCPU, GiB and GPU."""
    from app.services.costs import compute_costs

    return compute_costs(catalog, name, search)


@question("GET /sizes/{name}/buy", "catalog.BuyOut")
@short
def compare_ways_to_buy(catalog: Catalog, name: str, search: "costs.BuySearch") -> BaseModel:
    """Compare the ways to buy VMs of a size over months: cost, month of break-even, and the use from which each wins.

    On demand, spot, reservations and savings plans, each with its prices, their days and sources.
    """
    from app.services.costs import compare_ways

    return compare_ways(catalog, name, search)


@question("GET /sizes/{name}/price-history", "sizes.PriceHistoryPage", has_receipt=True)
def list_size_price_history(catalog: Catalog, name: str, search: "prices.PriceHistorySearch") -> Any:
    """List what a size cost in a region over time, with the days between which each source has a price."""
    from app.catalog.queries.prices import find_price_history

    return find_price_history(catalog, name, search)


@question("GET /facets", "sizes.FacetsOut", has_receipt=True)
def list_facets(catalog: Catalog, search: FacetSearch) -> str:
    """Count what a search finds by each facet, and return the ranges of its figures.

    Facets are cloud, GPU and its maker, series, type, region, status, architecture, maker of the processor, disk
    controller, fabric, confidential computing and flags. A size with two disk controllers counts for both.
    """
    from app.catalog.queries.facets import find_facets, render_facets

    return render_facets(find_facets(catalog, search))


@question("GET /prices", "sizes.SizePricePage")
@short_if(lambda search: search.is_quick)
def list_prices(catalog: Catalog, search: "prices.AllPricesSearch") -> str:
    """List prices by size, region, OS and purchase model: those in force on a day, or the whole history."""
    from app.catalog.queries.prices import find_all_prices, render_prices

    return render_prices(find_all_prices(catalog, search))


@question("GET /compare", "catalog.ComparisonOut", has_receipt=True)
def compare_sizes(catalog: Catalog, search: CompareSearch) -> BaseModel:
    """Compare sizes field by field: each value with its difference from a baseline, and prices per unit of GPU."""
    from app.services.compare import compare

    return compare(catalog, search)


@question("GET /fit", "fit_response.FitOut", summary="Find sizes for raw needs", has_receipt=True)
@computing
def fit_resources(catalog: Catalog, search: FitSearch) -> BaseModel:
    """Find the sizes that have the given resources, with their cost; if none has, return the nearest misses."""
    from app.schemas.fit_response import FitOut
    from app.services.resource_fit import plan_resource_fit

    return FitOut.model_validate(plan_resource_fit(catalog, search, rejected="rejected" in search.include))


@question("POST /fit", "fit_response.FitAnswerOut", summary="Find sizes for a model", has_receipt=True)
@computing
def fit_workload(catalog: Catalog, body: "fit_request.FitIn") -> BaseModel:
    """Find the sizes that can serve or train a model, or have given resources: how, how fast and at what cost.

    Sizes that do not fit are returned with every constraint that they fail, and with changes that would make them fit.
    """
    from app.services.fit import plan_fit

    return plan_fit(catalog, body)


@question("GET /retirements", "retirements.RetirementPage")
def list_retirements(catalog: Catalog, search: "retirements.RetirementSearch") -> Any:
    """List the sizes that retire, then those that have retired, by date, each with the source of the date."""
    from app.catalog.queries.retirements import find_retirements

    return find_retirements(catalog, search)


@question(
    "POST /retirements",
    "retirements.RetirementPlanOut",
    summary="Plan for retirements",
)
@computing
def plan_retirements(catalog: Catalog, body: "retirement_request.RetirementPlanIn") -> BaseModel:
    """Find out which sizes of an inventory retire, when, and which sizes can take their place at what cost.

    A size or a region that the catalog does not have is an error of its item; the other items are answered.
    """
    from app.services.retirements import plan_body

    return plan_body(catalog, body)


@question("POST /preflight", "preflight.PreflightOut", summary="Check a plan against quotas")
@computing
def check_quotas(catalog: Catalog, body: "preflight_request.PreflightIn") -> BaseModel:
    """Check whether the VMs of a plan fit into the quotas of a subscription, before anything is deployed.

    Of each quota: what is needed, used, allowed and missing, with the text of a request. What no file says is unknown,
    and never fits. Nothing is stored.
    """
    from app.converters.quotas import read_preflight
    from app.services.preflight import plan_preflight

    plan, files = read_preflight(body)
    return plan_preflight(catalog, plan, files)


@question("GET /models", "catalog.ModelPage")
@short
def list_models(catalog: Catalog, search: "provenance.ModelSearch") -> Listing:
    """List the language models whose configuration is known."""
    from app.catalog.queries.provenance import find_models

    return find_models(catalog, search)


@question("GET /models/{name}", "catalog.ModelOut", path="/models/{model_id:path}", has_receipt=True)
@short
def show_model(catalog: Catalog, name: str, _params: NoParams) -> Any:
    """Show one language model's configuration."""
    return get_model(catalog.snapshot.models, name)


@question("GET /changes", "catalog.ChangePage")
def list_changes(catalog: Catalog, search: "changes.ChangeSearch") -> Any:
    """List what ingests changed: prices, sizes, accepted values, disputes and retirements, the oldest first."""
    from app.catalog.queries.changes import find_changes

    return find_changes(catalog, search)


@question("GET /conflicts", "sizes.ConflictPage")
@short
def list_conflicts(catalog: Catalog, search: "provenance.ConflictSearch") -> Listing:
    """List every value of a source that was not accepted, with the value that was, and why."""
    from app.catalog.queries.provenance import find_conflicts

    return find_conflicts(catalog, search)


@question("GET /coverage", "catalog.CoverageOut")
def show_coverage(catalog: Catalog, search: SizeFilter) -> Any:
    """Show for how many sizes each figure is known, by type, and of which series it is not, with the reason."""
    from app.catalog.queries.coverage import find_coverage

    return find_coverage(catalog, search)


@question("GET /refused-prices", "sizes.RefusedPricePage")
@short
def list_refused_prices(catalog: Catalog, search: "provenance.RefusedPriceSearch") -> Listing:
    """List the prices of retail lists that were refused since they are the price of something else, with the reason."""
    from app.catalog.queries.provenance import find_refused_prices

    return find_refused_prices(catalog, search)


def _find_rows(catalog: Catalog, table: "provenance.Table", page: PageParams, *, newest_first: bool = False) -> Listing:
    from app.catalog.queries.provenance import find_rows

    return find_rows(catalog, table, page, newest_first=newest_first)


@question("GET /series", "catalog.SeriesPage")
@short
def list_series(catalog: Catalog, page: PageParams) -> Listing:
    """List the series."""
    return _find_rows(catalog, "series", page)


@question("GET /series/{name}", "catalog.SeriesDetailOut", path="/series/{series_id}")
@short
def show_series(catalog: Catalog, name: str, _params: NoParams) -> Any:
    """Show a series: its rack, its benchmarks, its sizes and the features that all of them support."""
    from app.catalog.queries.provenance import get_series

    return get_series(catalog, name)


@question("GET /gpus", "catalog.GpuPage")
@short
def list_gpus(catalog: Catalog, page: PageParams) -> Listing:
    """List the GPU models."""
    return _find_rows(catalog, "gpu", page)


@question("GET /disks", "catalog.DiskPage")
@short
def list_disks(catalog: Catalog, search: "costs.DiskSearch") -> BaseModel:
    """List the managed disks, each with its price in the requested region, or in the cheapest one."""
    from app.services.costs import find_disks

    return find_disks(catalog, search)


@question("GET /regions", "catalog.RegionPage")
@short
def list_regions(catalog: Catalog, page: PageParams) -> Listing:
    """List the regions."""
    return _find_rows(catalog, "region", page)


@question("GET /sources", "catalog.SourcePage")
def list_sources(catalog: Catalog, page: PageParams) -> Listing:
    """List the sources."""
    from app.catalog.queries.freshness import load_freshness

    listing = _find_rows(catalog, "source", page)
    freshness = load_freshness(catalog, catalog.today)
    return replace(listing, items=[row | {"newest_day": freshness.newest_day_of(row["id"])} for row in listing.items])


@question("GET /revisions", "catalog.RevisionPage")
@short
def list_revisions(catalog: Catalog, page: PageParams) -> Listing:
    """List the ingests that changed the catalog, newest first."""
    return _find_rows(catalog, "revision", page, newest_first=True)
