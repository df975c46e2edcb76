"""The endpoints of exports: sizes and prices, each as CSV, NDJSON and Parquet, unpaged.

Those of NDJSON are not in the OpenAPI document: a generator that does not know the media type gives up (ADR 11).
"""

from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Query, Request, Response

from app.api.exports import CsvResponse, NdjsonResponse, ParquetResponse
from app.catalog.queries.exports import Export, PriceExport, SizeExport, export_prices, export_sizes
from app.http.headers import if_match_holds, parse_headers
from app.http.streaming import ETAG_KEY

router = APIRouter(tags=["exports"])
SizesQuery = Annotated[SizeExport, Query()]
PricesQuery = Annotated[PriceExport, Query()]
_PARQUET_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {"content": {ParquetResponse.media_type: {"schema": {"type": "string", "format": "binary"}}}},
    **{status: {} for status in (400, 412, 416)},
}


@router.get("/sizes.csv", response_class=CsvResponse)
async def export_sizes_csv(asked: SizesQuery, request: Request) -> Response:
    """Export all sizes that a search finds, as CSV: a header line, CRLF, UTF-8."""
    return CsvResponse(request.app.state.streams, await _export_sizes(asked, request), file="sizes.csv")


@router.get("/sizes.ndjson", response_class=NdjsonResponse, include_in_schema=False)
async def export_sizes_ndjson(asked: SizesQuery, request: Request) -> Response:
    """Export all sizes that a search finds, as a JSON object a line."""
    return NdjsonResponse(request.app.state.streams, await _export_sizes(asked, request), file="sizes.ndjson")


@router.get("/sizes.parquet", response_class=ParquetResponse, responses=_PARQUET_RESPONSES)
async def export_sizes_parquet(asked: SizesQuery, request: Request) -> Response:
    """Export all sizes that a search finds, as a Parquet file, of which parts can be asked for."""
    return await _parquet_response(await _export_sizes(asked, request), request)


@router.get("/prices.csv", response_class=CsvResponse)
async def export_prices_csv(asked: PricesQuery, request: Request) -> Response:
    """Export prices as CSV: a header line, CRLF, UTF-8."""
    return CsvResponse(request.app.state.streams, await _export_prices(asked, request), file="prices.csv")


@router.get("/prices.ndjson", response_class=NdjsonResponse, include_in_schema=False)
async def export_prices_ndjson(asked: PricesQuery, request: Request) -> Response:
    """Export prices as a JSON object a line."""
    return NdjsonResponse(request.app.state.streams, await _export_prices(asked, request), file="prices.ndjson")


@router.get("/prices.parquet", response_class=ParquetResponse, responses=_PARQUET_RESPONSES)
async def export_prices_parquet(asked: PricesQuery, request: Request) -> Response:
    """Export prices as a Parquet file, of which parts can be asked for."""
    return await _parquet_response(await _export_prices(asked, request), request)


async def _export_sizes(asked: SizeExport, request: Request) -> Export:
    executor = request.app.state.executor
    return export_sizes(asked, await executor.snapshot(), executor.today())


async def _export_prices(asked: PriceExport, request: Request) -> Export:
    export: Export = await request.app.state.executor.run(partial(export_prices, asked))
    return export


async def _parquet_response(export: Export, request: Request) -> Response:
    """The file is known by its question and by what holds, as an answer that is kept in memory is."""
    etag: str = request.scope[ETAG_KEY]
    if not if_match_holds(parse_headers(request.scope["headers"]).if_match, etag.encode()):
        raise HTTPException(
            412, "The file is no longer the one that If-Match names; ask for it anew, without If-Match."
        )
    file = await request.app.state.files.get(etag.strip('"'), export)
    return ParquetResponse(file, file_name=request.url.path.removeprefix("/"), etag=etag)
