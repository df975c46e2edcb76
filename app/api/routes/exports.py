"""Endpoints that export sizes and prices as CSV, NDJSON and Parquet, without pages.

NDJSON is left out of the OpenAPI document because generators that do not know its media type fail (ADR 11).
"""

from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Query, Request, Response

from app.api.deps import Executor, Files, Streams
from app.api.executor import QueryExecutor
from app.api.exports import CsvResponse, ExportFileCache, NdjsonResponse, ParquetResponse
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
async def export_sizes_csv(query: SizesQuery, executor: Executor, streams: Streams) -> Response:
    """Export all sizes that a search finds, as CSV: a header line, CRLF, UTF-8."""
    streams.ensure_free()
    return CsvResponse(streams, await _export_sizes(query, executor), file="sizes.csv")


@router.get("/sizes.ndjson", response_class=NdjsonResponse, include_in_schema=False)
async def export_sizes_ndjson(query: SizesQuery, executor: Executor, streams: Streams) -> Response:
    """Export all sizes that a search finds, as one JSON object per line."""
    streams.ensure_free()
    return NdjsonResponse(streams, await _export_sizes(query, executor), file="sizes.ndjson")


@router.get("/sizes.parquet", response_class=ParquetResponse, responses=_PARQUET_RESPONSES)
async def export_sizes_parquet(query: SizesQuery, executor: Executor, files: Files, request: Request) -> Response:
    """Export all sizes that a search finds, as a Parquet file; Range requests are supported."""
    return await _parquet_response(await _export_sizes(query, executor), files, request)


@router.get("/prices.csv", response_class=CsvResponse)
async def export_prices_csv(query: PricesQuery, executor: Executor, streams: Streams) -> Response:
    """Export prices as CSV: a header line, CRLF, UTF-8."""
    streams.ensure_free()
    return CsvResponse(streams, await _export_prices(query, executor), file="prices.csv")


@router.get("/prices.ndjson", response_class=NdjsonResponse, include_in_schema=False)
async def export_prices_ndjson(query: PricesQuery, executor: Executor, streams: Streams) -> Response:
    """Export prices as one JSON object per line."""
    streams.ensure_free()
    return NdjsonResponse(streams, await _export_prices(query, executor), file="prices.ndjson")


@router.get("/prices.parquet", response_class=ParquetResponse, responses=_PARQUET_RESPONSES)
async def export_prices_parquet(query: PricesQuery, executor: Executor, files: Files, request: Request) -> Response:
    """Export prices as a Parquet file; Range requests are supported."""
    return await _parquet_response(await _export_prices(query, executor), files, request)


async def _export_sizes(query: SizeExport, executor: QueryExecutor) -> Export:
    return export_sizes(query, await executor.snapshot(), executor.today())


async def _export_prices(query: PriceExport, executor: QueryExecutor) -> Export:
    return await executor.ask(export_prices, query)


async def _parquet_response(export: Export, files: ExportFileCache, request: Request) -> Response:
    """Return the file of an export, which is named by its ETag: a hash of the query and the revision."""
    etag: str = request.scope[ETAG_KEY]
    if not if_match_holds(parse_headers(request.scope["headers"]).get(b"if-match", b""), etag.encode()):
        raise HTTPException(
            412, "The file is no longer the one that If-Match names; request it again without If-Match."
        )
    file = await files.get(etag.strip('"'), export)
    return ParquetResponse(file, file_name=request.url.path.removeprefix("/"), etag=etag)
