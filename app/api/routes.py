"""The routes of the API: those of the registered questions, and the few that answer with files or need no catalog.

NDJSON and the feeds are left out of the OpenAPI document because generators that do not know their media types fail
(ADR 11), and files in the shapes of other programs because those programs have clients.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from inspect import Parameter, Signature, cleandoc
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, HTTPException, Path, Query, Request, Response
from fastapi.routing import APIRoute

from app.api.deps import Executor, Files, Streams, json_response
from app.api.executor import QueryExecutor
from app.api.exports import CsvResponse, ExportFileCache, ParquetResponse, StreamedExport
from app.catalog.providers import ProviderId
from app.catalog.queries.changes import ChangeFilter, find_revision_changes
from app.catalog.queries.exports import Export, PriceExport, SizeExport, export_offers, export_prices, export_sizes
from app.catalog.queries.lookups import ModelsByKey
from app.catalog.queries.params import PlainText
from app.catalog.queries.retirements import RetirementFilter, find_all_retirements
from app.formats.peers import GpuhuntCsv, InstancesJson, SizesJson, SkyPilotCsv
from app.formats.text import Csv, Ndjson, TextFormat
from app.http.cache import ETAG_KEY
from app.http.headers import if_match_holds, parse_headers
from app.http.long_bodies import PATHS, LongBodyRoute
from app.late_models import LateModel
from app.questions import ENDPOINTS, Endpoint, NoParams
from app.schemas.fit_request import EstimateIn

if TYPE_CHECKING:
    from app.formats.feeds import Feed

_NAMES: Mapping[str, Any] = {
    "name": Path(
        description="A size's name in any case, with or without `Standard_`, or an alias.",
        examples=["nd96isr_h100_v5"],
    ),
    "model_id": Path(
        description="A model's id, name, alias or repository in any case: `meta-llama/Llama-3.1-70B`.",
        examples=["llama-3.1-70b"],
    ),
    "series_id": Path(description="A series' id, name or alias.", examples=["nd_h100_v5"]),
}
"""What a name in a path is, by the name of the parameter."""
_NO_PARAMS = NoParams()


def api_routers() -> Iterator[APIRouter]:
    """Yield the routers of the API in the order of the OpenAPI document."""
    others = {"GET /prices": _exports, "POST /fit": _estimates, "GET /retirements": _calendars, "GET /changes": _feeds}
    for name, endpoint in ENDPOINTS.items():
        yield _router_of(name.partition(" ")[0], endpoint)
        if name in others:
            yield others[name]


def _router_of(method: str, endpoint: Endpoint) -> APIRouter:
    """Return a router with the route of a question."""

    async def respond(executor: QueryExecutor, params: Any = _NO_PARAMS, **name: str) -> Response:
        return json_response(await executor.ask(endpoint, *name.values(), params))

    is_long = endpoint.path in PATHS
    respond.__signature__ = Signature([*_parameters_of(method, endpoint)])  # type: ignore[attr-defined]  # read by FastAPI
    router = APIRouter(tags=[endpoint.tag], route_class=LongBodyRoute if is_long else APIRoute)
    router.add_api_route(
        endpoint.path,
        respond,
        methods=[method],
        name=endpoint.find.__name__,
        summary=endpoint.summary,
        description=cleandoc(endpoint.find.__doc__ or ""),
        response_model=endpoint.model,
    )
    return router


def _parameters_of(method: str, endpoint: Endpoint) -> Iterator[Parameter]:
    for name in re.findall(r"{(\w+)", endpoint.path):
        yield Parameter(name, Parameter.KEYWORD_ONLY, annotation=Annotated[PlainText, _NAMES[name]])
    if endpoint.params is not NoParams:
        annotation = endpoint.params if method == "POST" else Annotated[endpoint.params, Query()]
        yield Parameter("params", Parameter.KEYWORD_ONLY, annotation=annotation)
    yield Parameter("executor", Parameter.KEYWORD_ONLY, annotation=Executor)


# Files of whole lists.

_exports = APIRouter(tags=["exports"])
SizesQuery = Annotated[SizeExport, Query()]
PricesQuery = Annotated[PriceExport, Query()]
_PARQUET_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {"content": {ParquetResponse.media_type: {"schema": {"type": "string", "format": "binary"}}}},
    **{status: {} for status in (400, 412, 416)},
}


@_exports.get("/sizes.csv", response_class=CsvResponse)
async def export_sizes_csv(query: SizesQuery, executor: Executor, streams: Streams) -> Response:
    """Export all sizes that a search finds, as CSV: a header line, CRLF, UTF-8."""
    streams.ensure_free()
    return CsvResponse(streams, await _export_sizes(query, executor), Csv, file="sizes.csv")


@_exports.get("/sizes.ndjson", response_class=StreamedExport, include_in_schema=False)
async def export_sizes_ndjson(query: SizesQuery, executor: Executor, streams: Streams) -> Response:
    """Export all sizes that a search finds, as one JSON object per line."""
    streams.ensure_free()
    return StreamedExport(streams, await _export_sizes(query, executor), Ndjson, file="sizes.ndjson")


@_exports.get("/sizes.parquet", response_class=ParquetResponse, responses=_PARQUET_RESPONSES)
async def export_sizes_parquet(query: SizesQuery, executor: Executor, files: Files, request: Request) -> Response:
    """Export all sizes that a search finds, as a Parquet file; Range requests are supported."""
    return await _parquet_response(await _export_sizes(query, executor), files, request)


@_exports.get("/prices.csv", response_class=CsvResponse)
async def export_prices_csv(query: PricesQuery, executor: Executor, streams: Streams) -> Response:
    """Export prices as CSV: a header line, CRLF, UTF-8."""
    streams.ensure_free()
    return CsvResponse(streams, await executor.ask(export_prices, query), Csv, file="prices.csv")


@_exports.get("/prices.ndjson", response_class=StreamedExport, include_in_schema=False)
async def export_prices_ndjson(query: PricesQuery, executor: Executor, streams: Streams) -> Response:
    """Export prices as one JSON object per line."""
    streams.ensure_free()
    return StreamedExport(streams, await executor.ask(export_prices, query), Ndjson, file="prices.ndjson")


@_exports.get("/prices.parquet", response_class=ParquetResponse, responses=_PARQUET_RESPONSES)
async def export_prices_parquet(query: PricesQuery, executor: Executor, files: Files, request: Request) -> Response:
    """Export prices as a Parquet file; Range requests are supported."""
    return await _parquet_response(await executor.ask(export_prices, query), files, request)


def _add_offer_file(path: str, text_format: type[TextFormat], name: str) -> None:
    @_exports.get(f"/files/{{provider}}/{path}", response_class=StreamedExport, include_in_schema=False)
    async def export_offer_file(
        provider: Annotated[ProviderId, Path(description="Whose sizes the file has.", examples=["azure"])],
        executor: Executor,
        streams: Streams,
    ) -> Response:
        """Export what a provider sells today, as a file in the shape of another program."""
        streams.ensure_free()
        await executor.snapshot()  # refuses an empty catalog
        offers = export_offers(provider, executor.today())
        return StreamedExport(streams, offers, text_format, file=name.format(provider=provider))


_add_offer_file("vms.csv", SkyPilotCsv, "vms.csv")
_add_offer_file("gpuhunt.csv", GpuhuntCsv, "{provider}.csv")
_add_offer_file("instances.json", InstancesJson, "instances.json")
_add_offer_file("sizes.json", SizesJson, "sizes.json")


async def _export_sizes(query: SizeExport, executor: QueryExecutor) -> Export:
    return export_sizes(query, await executor.snapshot(), executor.today())


async def _parquet_response(export: Export, files: ExportFileCache, request: Request) -> Response:
    """Return the file of an export, which is named by its ETag: a hash of the query and the revision."""
    etag: str = request.scope[ETAG_KEY]
    if not if_match_holds(parse_headers(request.scope["headers"]).get(b"if-match", b""), etag.encode()):
        raise HTTPException(
            412, "The file is no longer the one that If-Match names; request it again without If-Match."
        )
    file = await files.get(etag.strip('"'), export)
    return ParquetResponse(file, file_name=request.url.path.removeprefix("/"), etag=etag)


# Estimates, which need the catalog for a preset only.

_estimates = APIRouter(tags=["fit"], route_class=LongBodyRoute)
_ESTIMATE = LateModel("app.schemas.fit_response.EstimateOut")
_ACCURACY = LateModel("app.schemas.catalog.AccuracyOut")


@_estimates.post("/estimate", summary="Estimate what a model needs", response_model=_ESTIMATE)
async def estimate_workload(workload: EstimateIn, executor: Executor) -> Response:
    """Break a workload down: memory, compute and cost, each figure exact, a bound, or an estimate with its range."""
    return json_response(await render_estimate(executor, workload))


async def render_estimate(executor: QueryExecutor, workload: EstimateIn) -> str:
    """Return the response to POST /estimate as JSON, computed in a thread; without a preset it needs no catalog."""
    if workload.model is None:
        return await executor.compute(_render_estimate, workload, {})
    return await executor.compute(_render_estimate, workload, (await executor.snapshot()).models)


def _render_estimate(workload: EstimateIn, models: ModelsByKey) -> str:
    from app.services.fit import estimate_body

    return estimate_body(workload, models).model_dump_json(by_alias=True)


@_estimates.get("/accuracy", summary="Show how accurate estimates are", response_model=_ACCURACY)
async def show_accuracy() -> Response:
    """Show how estimates agree with what was measured, by family: one figure for one kind of workload."""
    from app.fit.results import read_accuracy

    return json_response(_ACCURACY.to_json({"items": read_accuracy()}))


# Lists for calendars and for readers of feeds.

_calendars = APIRouter(tags=["retirements"])
_feeds = APIRouter(tags=["changes"], include_in_schema=False)


class CalendarResponse(Response):
    """An iCalendar in UTF-8."""

    media_type = "text/calendar"


class AtomResponse(Response):
    """An Atom feed in UTF-8."""

    media_type = "application/atom+xml"


class JsonFeedResponse(Response):
    """A JSON Feed in UTF-8."""

    media_type = "application/feed+json"


@_calendars.get("/retirements.ics", response_class=CalendarResponse)
async def export_retirements_ics(search: Annotated[RetirementFilter, Query()], executor: Executor) -> Response:
    """Export retirements as an iCalendar: an event for each series and date, with its sizes."""
    from app.formats.calendar import to_calendar

    revision = await executor.revision()
    rows = await executor.ask(find_all_retirements, search)
    return CalendarResponse(to_calendar(rows, stamped_at=revision["created_at"]))


@_feeds.get("/changes.atom", response_class=AtomResponse)
async def export_changes_atom(
    search: Annotated[ChangeFilter, Query()], executor: Executor, request: Request
) -> Response:
    """Export changes as an Atom feed: an entry for each revision, the newest first."""
    from app.formats.feeds import write_atom

    return AtomResponse(await _write_feed(search, executor, request, write_atom))


@_feeds.get("/changes.json", response_class=JsonFeedResponse)
async def export_changes_json(
    search: Annotated[ChangeFilter, Query()], executor: Executor, request: Request
) -> Response:
    """Export changes as a JSON Feed: an item for each revision, the newest first."""
    from app.formats.feeds import write_json_feed

    return JsonFeedResponse(await _write_feed(search, executor, request, write_json_feed))


async def _write_feed(
    search: ChangeFilter, executor: QueryExecutor, request: Request, write: Callable[["Feed"], str]
) -> str:
    from app.formats.feeds import to_feed

    newest = await executor.revision()
    revisions = await executor.ask(find_revision_changes, search)
    base = str(request.app.servers[0]["url"]).rstrip("/")
    return write(to_feed(revisions, search, path=request.url.path, base_url=base, updated_at=newest["created_at"]))
